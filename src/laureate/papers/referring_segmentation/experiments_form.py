"""Referring segmentation: filters of one position or of several, and filters against other ways to tell a network."""

from laureate.lab.claim import Experiment, Scale
from laureate.papers.referring_segmentation.experiments import (
    CURVES,
    DESK,
    FAIR,
    GUARDS,
    METRIC,
    PILOTS,
    PROBLEM,
    SETTING,
    TINY,
    TRIALS,
    TRIVIAL,
    higher,
    make_arm,
)

__all__ = ["FORM"]

FORM = Experiment(
    "form",
    title="In which form should language enter: filters, of which size, or something simpler?",
    trial=f"{TRIALS}:segmented",
    problem=PROBLEM,
    accepts=("draw",),
    arms=(
        make_arm("both", "filters of 1 × 1", "both"),
        make_arm("both-3", "filters of 3 × 3", "both", filter_size=3),
        make_arm("film", "FiLM", "both", modulation="film"),
        make_arm("concatenation", "concatenation", "both", modulation="concatenation"),
        *TRIVIAL,
    ),
    scales={
        "tiny": Scale(2, block=2, **TINY),
        "desk": Scale(10, block=5, cost=85.0, **DESK),
    },
    claims=(
        higher(
            "filter-size",
            "filters of 3 × 3 give better masks than filters of 1 × 1 for phrases that relate two objects.",
            "both-3",
            "both",
            "stand-in",
            "abstract of version 1: wider filters help relational phrases",
            metric="iou_relation",
        ),
        higher(
            "filter-size-specific",
            "filters of 3 × 3 help phrases that relate two objects more than phrases of colour and shape.",
            "both-3",
            "both",
            "extension",
            "our own question: are relations special, or is it the number of weights?",
            metric="relation_minus_attribute",
            trivial="",
            unit="mean IoU, one kind less the other",
        ),
        higher(
            "against-film",
            "language-conditional filters give better masks than FiLM with as many weights, both ways.",
            "both",
            "film",
            "extension",
            "the authors' code has FiLM as an option; whether the paper compares is not known to us",
        ),
        higher(
            "against-concatenation",
            "language-conditional filters give better masks than concatenation with as many weights, both ways.",
            "both",
            "concatenation",
            "extension",
            "the baseline of Hu et al. (2016), there on the last map alone",
        ),
    ),
    curves=CURVES,
    guards=GUARDS,
    over_seeds="loop",
    over="data sets",
    deviations=(
        SETTING,
        FAIR,
        METRIC,
        "Filters of 5 × 5, which the authors also try, cover the whole of our maps and were left out for time. Filters "
        "of 3 × 3 have nine times the weights of those of 1 × 1; that is what is compared in the paper as well.",
        "FiLM has 1 + γ, and a hidden layer that gives it as many weights as the filters; concatenation likewise.",
        PILOTS,
    ),
)
