"""Interaction within perturbations: how strong the loss may be, and whether another index would say the same."""

from laureate.lab.claim import Claim, Curve, Experiment, Guard, Scale
from laureate.papers.interaction_attack.experiments import (
    CLOTHES,
    DIGITS,
    LARGE,
    LEAST,
    MLPS,
    OFFERS,
    PILOTS,
    PROBLEM,
    SETTING,
    SMALL,
    TRIALS,
    WHOLE,
    make_arm,
)

__all__ = ["INDEX", "STRENGTH"]

STRENGTHS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
FEW = (0.0, 0.01, 0.1, 1.0, 10.0)
STRENGTH = Experiment(
    "strength",
    title="How strong may the interaction loss be?",
    trial=f"{TRIALS}:strength",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=(
        make_arm("cross-entropy", "beside the cross-entropy", "reduced"),
        make_arm("margin", "beside the margin", "reduced", loss="margin"),
        make_arm("positive", "max(T, 0) beside the cross-entropy", "reduced", penalty="positive"),
    ),
    scales={
        "tiny": Scale(
            2,
            block=2,
            problem={"data": "digits", "train": 200, "test": 40},
            networks=MLPS[:3],
            strengths=(0.0, 1.0, 10.0),
            **LEAST,
        ),
        "smoke": Scale(10, block=5, cost=13.0, problem=DIGITS, networks=MLPS, strengths=FEW, **SMALL),
        "desk": Scale(
            10,
            block=5,
            cost=71.0,
            problem=CLOTHES | {"test": 300, "pool": 2},
            networks=MLPS,
            strengths=STRENGTHS,
            **LARGE,
        ),
        "full": Scale(
            20,
            block=1,
            cost=400000.0,
            problem={"data": "fashion-mnist", "train": 60000, "test": 1000},
            networks=(*MLPS, "convolutional"),
            strengths=STRENGTHS,
            **WHOLE,
        ),
    },
    claims=(
        Claim(
            "strength",
            "ten times the authors' strength destroys the attack: transfer with λ = 10 is lower than without the "
            "penalty by more than two points.",
            metric="lost_at_strongest",
            method="cross-entropy",
            kind="bound",
            at_least=0.02,
            unit="share of images and networks",
            role="extension",
            source="our own pilot: interaction is driven below 0",
        ),
        Claim(
            "transfer-tuned",
            "with a λ above 0 chosen on other images and on a network that counts nowhere, IR transfers better than "
            "without the penalty, by more than half a point.",
            metric="tuned_gain",
            method="cross-entropy",
            kind="bound",
            at_least=0.005,
            unit="share of images and networks",
            role="extension",
            source="our own question: λ depends on the scale of the logits",
        ),
        Claim(
            "transfer-tuned-margin",
            "with the margin as loss and a λ above 0 chosen likewise, IR transfers better than without the penalty, by "
            "more than half a point.",
            metric="tuned_gain",
            method="margin",
            kind="bound",
            at_least=0.005,
            unit="share of images and networks",
            role="extension",
            source="our own question",
        ),
        Claim(
            "positive-part",
            "What does the penalty max(T, 0), which stops at no interaction, lose at λ = 10?",
            metric="lost_at_strongest",
            method="positive",
            kind="question",
            unit="share of images and networks",
            role="extension",
            source="our own question",
        ),
    ),
    curves=(
        Curve("transfer", "place", "Transfer by strength", "place of λ in the grid, from 0 to 10", "share fooled"),
    ),
    guards=(
        Guard("grid", "chosen_strength", low=0.01, high=10.0, claims=("transfer-tuned", "transfer-tuned-margin")),
        Guard("effective", "counted", low=50.0),
    ),
    deviations=(
        SETTING,
        PILOTS,
        "Half of the images choose λ, the others judge it beside λ = 0. Images of 14 × 14 at desk, averaged from "
        "28 × 28.",
    ),
    over_seeds="loop",
    data={"tiny": ("digits",), "smoke": ("digits",), "desk": ("fashion-mnist",), "full": ("fashion-mnist",)},
)

INDEX = Experiment(
    "index",
    title="Does it matter which interaction index is taken?",
    trial=f"{TRIALS}:index_choice",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=(make_arm("pgd", "PGD", "plain"),),
    scales={
        "tiny": Scale(
            2,
            block=2,
            problem={"data": "digits", "train": 200, "test": 20},
            networks=("narrow",),
            rows=2,
            columns=2,
            **LEAST,
        ),
        "smoke": Scale(
            10,
            block=10,
            cost=4.0,
            problem={"data": "digits", "train": 1400, "test": 60},
            networks=("narrow",),
            rows=3,
            columns=4,
            **SMALL,
        ),
        "desk": Scale(
            10,
            block=5,
            cost=4.0,
            problem={"data": "digits", "train": 1400, "test": 300},
            networks=("narrow",),
            rows=3,
            columns=4,
            **SMALL,
        ),
        "full": Scale(
            20,
            block=1,
            cost=20000.0,
            problem={"data": "fashion-mnist", "train": 60000, "test": 1000},
            networks=("narrow",),
            rows=4,
            columns=4,
            **WHOLE,
        ),
    },
    claims=(
        Claim(
            "index-choice",
            "images are ranked alike by their mean Shapley and their mean Banzhaf interaction: rank correlation of at "
            "least 0.8.",
            metric="banzhaf_correlation",
            method="pgd",
            kind="bound",
            at_least=0.8,
            unit="Spearman's correlation",
            role="extension",
            source="a reviewer's point: it is the Shapley interaction index, one of several",
        ),
        Claim(
            "index-choice-faith",
            "images are ranked alike by their mean Shapley and their mean Faith-Shap interaction: rank correlation of "
            "at least 0.8.",
            metric="faith_correlation",
            method="pgd",
            kind="bound",
            at_least=0.8,
            unit="Spearman's correlation",
            role="extension",
            source="a reviewer's point",
        ),
        Claim(
            "identity",
            "the mean over pairs from 2n + 2 rewards is that from all 2ⁿ, to nine digits.",
            metric="log10_error",
            method="pgd",
            kind="bound",
            at_most=-9.0,
            unit="log10 of the largest error over the largest mean",
            role="check",
            source="appendix: E[I] by single units",
        ),
    ),
    deviations=(
        "Twelve units (3 × 4 rectangles) of perturbations of a narrow perceptron, all 2¹² sets enumerated in double "
        "precision. " + PILOTS,
    ),
    over_seeds="loop",
    x64=True,
    data={"tiny": ("digits",), "smoke": ("digits",), "desk": ("digits",), "full": ("fashion-mnist",)},
)
