"""Referring segmentation: pairs of words that were never seen together, and a narrow network among many objects."""

from typing import Any

from laureate.lab.claim import Claim, Experiment, Guard, Scale
from laureate.papers.referring_segmentation.experiments import (
    DESK,
    GUARDS,
    PILOTS,
    PROBLEM,
    SETTING,
    TINY,
    TRIALS,
    TRIVIAL,
    make_arm,
)

__all__ = ["COMPOSED", "NARROW"]

HELD_OUT = {"held_out": 2}
COMPOSED = Experiment(
    "composed",
    title="Does it understand pairs of colour and shape that it never saw?",
    trial=f"{TRIALS}:composed",
    problem=PROBLEM,
    arms=(
        make_arm("both", "both ways", "both"),
        make_arm("film", "both ways, FiLM", "both", modulation="film"),
        make_arm("none", "no language", "none"),
        *TRIVIAL,
    ),
    scales={
        "tiny": Scale(2, block=2, problem=HELD_OUT, **TINY),
        "desk": Scale(10, block=5, cost=60.0, problem=HELD_OUT, **DESK),
    },
    claims=(
        Claim(
            "compositional",
            "on pairs of colour and shape that were in no scene to train on the masks lose at most 0.1 of mean IoU.",
            metric="novel_gap",
            method="both",
            kind="bound",
            at_most=0.1,
            unit="mean IoU, the same scenes with pairs that were seen less those with the others",
            role="extension",
            source="our own question; the phrases of photographs hold out no pairs by design",
        ),
        Claim(
            "compositional-blind",
            "on such pairs the masks are better than without language by more than 0.1.",
            metric="novel_iou",
            method="both",
            baseline="none",
            better="higher",
            margin=0.1,
            unit="mean IoU on novel pairs",
            role="extension",
            trivial="mean-mask",
            source="our own question",
        ),
        Claim(
            "compositional-film",
            "on such pairs language-conditional filters give better masks than FiLM with as many weights.",
            metric="novel_iou",
            method="both",
            baseline="film",
            better="higher",
            unit="mean IoU on novel pairs",
            role="extension",
            trivial="mean-mask",
            source="our own question",
        ),
    ),
    # Who has learned nothing has no gap either.
    guards=(*GUARDS, Guard("effective", "seen_iou", low=0.3, arms=("both",), claims=("compositional",))),
    over_seeds="loop",
    over="data sets",
    deviations=(
        SETTING,
        "Two of the twelve pairs, the red square and the green cross, are in no scene and in no phrase to train on; "
        "each colour and each shape is there with others. In a novel scene one object is of such a pair, and the "
        "phrase names it. It is compared with the same scene in which that object is a red cross or a green square, "
        "which were seen: colours and shapes are as frequent, places and sizes the same. The other objects are of the "
        "eight further pairs.",
        PILOTS,
    ),
)

CLUTTER = {"size": 24, "grid": 3}
NARROWER: dict[str, Any] = {"width": 4, "batch": 16}
NARROW = Experiment(
    "narrow",
    title="Does the way down matter more for a narrow network among many objects?",
    trial=f"{TRIALS}:segmented",
    problem=PROBLEM,
    accepts=("draw",),
    arms=(
        make_arm("both", "both ways", "both"),
        make_arm("top-down", "top-down", "top-down"),
        *TRIVIAL,
    ),
    scales={
        "tiny": Scale(2, block=2, problem={"size": 18, "grid": 3}, **TINY),
        "desk": Scale(10, block=5, cost=50.0, problem=CLUTTER, **DESK | NARROWER),
    },
    claims=(
        Claim(
            "narrow-network",
            "with 4 channels and nine objects language on both ways gives better masks than on the way up alone.",
            metric="iou",
            method="both",
            baseline="top-down",
            better="higher",
            unit="mean IoU",
            role="extension",
            trivial="mean-mask",
            source="our own question: where what is not asked for cannot all be kept, asking early should matter",
        ),
    ),
    guards=GUARDS,
    over_seeds="loop",
    over="data sets",
    deviations=(
        SETTING,
        "Nine objects on 24 × 24 pixels, 4 channels, two levels, batches of 16 scenes; the note that "
        "proposed this had four levels.",
        PILOTS,
    ),
)
