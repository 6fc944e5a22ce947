"""DARTS-PT: what surrounds the choice: when it is made, on how many images, by which details, and at what cost."""

from laureate.lab.claim import Arm, Claim, Curve, Experiment
from laureate.papers.darts_pt.experiments import (
    ACCEPTS,
    CELLS,
    FIXED,
    LATER,
    MAGNITUDE,
    PERTURBATION,
    PILOTS,
    RANDOM,
    RATES,
    TABLE,
    TRIALS,
    WITHOUT_NONE,
    arm,
    scale,
)

__all__ = ["ALPHA_RATE", "FRONTS", "RELEASED", "TRAJECTORY", "VALIDATION"]


def at_rate(factor: float, name: str, label: str) -> tuple[Arm, ...]:
    """The three rules for one rate of alpha."""
    rules = (MAGNITUDE, WITHOUT_NONE, PERTURBATION)
    return tuple(Arm(f"{a.name}-{name}", f"{a.label}, {label}", factor=factor, **a.settings) for a in rules)


ALPHA_RATE = Experiment(
    "alpha-rate",
    title="Does it depend on the rate at which alpha is learned?",
    trial=f"{TRIALS}:rates",
    problem=CELLS,
    accepts=ACCEPTS,
    arms=(
        *at_rate(0.25, "quarter", "a quarter of the rate"),
        *at_rate(1.0, "usual", "the usual rate"),
        *at_rate(4.0, "fourfold", "four times the rate"),
        *at_rate(0.0, "validated", "the rate of the best supernet"),
    ),
    scales={
        "tiny": scale("tiny", 2, 2, 0.0, factors=(0.25, 1.0, 4.0)),
        "desk": scale("desk", 10, 10, 25.0, factors=(0.25, 1.0, 4.0)),
        "full": scale("full", 10, 1, 3e6, factors=(0.25, 1.0, 4.0)),
    },
    claims=(
        Claim(
            "alpha-rate",
            "On how many edges is the largest weight that of none when alpha is learned more slowly or more quickly?",
            metric="none_share",
            method="magnitude-usual",
            kind="question",
            unit="share of edges",
            source="our own question: the rate was not tuned",
            role="extension",
        ),
        Claim(
            "alpha-rate-accuracy",
            "And how good are the networks?",
            metric="accuracy",
            method="perturbation-validated",
            kind="question",
            unit="share of test images",
            source="our own question",
            role="extension",
        ),
    ),
    deviations=(
        TABLE,
        RATES,
        "A quarter, once and four times the rate of the other experiments; a rate is chosen for each seed by the "
        "accuracy of the whole supernet on validation images, the same for all rules. Not at smoke. " + PILOTS,
    ),
    data=LATER,
    over_seeds="loop",
)

TRAJECTORY = Experiment(
    "trajectory",
    title="Does the chosen network become worse while the supernet is trained?",
    trial=f"{TRIALS}:trajectory",
    problem=CELLS,
    accepts=ACCEPTS,
    arms=(
        PERTURBATION,
        MAGNITUDE,
        WITHOUT_NONE,
        FIXED,
    ),
    scales={
        "tiny": scale("tiny", 2, 2, 0.0),
        "desk": scale("desk", 10, 5, 25.0),
        "full": scale("full", 10, 1, 3e6),
    },
    claims=(
        Claim(
            "trajectory",
            "over the course of the supernet's training the network of perturbation gains more (or loses less) than "
            "that of magnitude.",
            metric="slope",
            method="perturbation",
            baseline="magnitude",
            better="higher",
            unit="accuracy over the whole training",
            source="figure 4",
            role="stand-in",
        ),
        Claim(
            "trajectory-fixed",
            "Does training longer harm, with learned alpha and with fixed?",
            metric="slope",
            method="perturbation",
            kind="question",
            unit="accuracy over the whole training",
            source="a reviewer: does more than 20 epochs of supernet training hurt?",
            role="extension",
        ),
    ),
    curves=(
        Curve(
            "accuracy", "progress", "What is chosen, as the supernet is trained", "share of its training", "accuracy"
        ),
    ),
    deviations=(
        TABLE,
        RATES,
        "Five moments of one training, whose learning rate falls on the way; straight lines through them. Not at "
        "smoke. " + PILOTS,
    ),
    data=LATER,
    over_seeds="loop",
)

VALIDATION = Experiment(
    "validation",
    title="How many validation images does a choice need?",
    trial=f"{TRIALS}:validation",
    problem=CELLS,
    accepts=ACCEPTS,
    arms=(
        Arm("accuracy", "by accuracy", criterion="accuracy"),
        Arm("loss", "by the loss", criterion="loss"),
    ),
    scales={
        "tiny": scale("tiny", 2, 2, 0.0, sizes=(2, 4), judged=4, resamples=3),
        "desk": scale("desk", 10, 10, 10.0, sizes=(25, 50, 100, 200, 400, 700), judged=200, resamples=200),
        "full": scale("full", 20, 1, 3e6, sizes=(25, 50, 100, 200, 800, 3200), judged=200, resamples=200),
    },
    claims=(
        Claim(
            "validation-size",
            "with 200 validation images the operation chosen by accuracy is that of all validation images in nine of "
            "ten resampled sets.",
            metric="judged",
            method="accuracy",
            kind="bound",
            at_least=0.9,
            unit="share of resampled sets",
            source="our own question; the paper scores on 25,000 images",
            role="extension",
        ),
        Claim(
            "validation-loss",
            "and more often so where it is chosen by the loss.",
            metric="judged",
            method="loss",
            baseline="accuracy",
            better="higher",
            unit="share of resampled sets",
            source="our own question",
            role="extension",
        ),
    ),
    curves=(
        Curve("agreement", "size", "The same choice again", "validation images", "share of resampled sets", log_x=True),
    ),
    deviations=(
        RATES,
        "The first decision of every edge, before any tuning; ties are broken by chance. Resampled with replacement "
        "from the validation images themselves, so that sets of 200 and all 700 share images, and from scores with the "
        "statistics of all of them: what fewer images do to the statistics is not in it. Not at smoke. " + PILOTS,
    ),
    data=LATER,
    over_seeds="loop",
)

RELEASED = Experiment(
    "released",
    title="What do the released code's rule for ties, and running statistics, cost?",
    trial=f"{TRIALS}:selection",
    problem=CELLS,
    accepts=ACCEPTS,
    arms=(
        arm("ours", "ties by chance, 50 images", examples=50),
        arm("by-loss", "ties by the loss, 50 images", examples=50, ties="loss"),
        arm("first", "ties to the first operation, 50 images", examples=50, ties="first"),
        arm("first-all", "ties to the first operation, all images", ties="first"),
        arm("running", "scored with running statistics, all images", statistics="running"),
        RANDOM,
    ),
    scales={
        "tiny": scale("tiny", 2, 2, 0.0),
        "desk": scale("desk", 10, 10, 10.0),
        "full": scale("full", 20, 1, 3e6),
    },
    claims=(
        Claim(
            "released-rule",
            "How good are networks chosen with the released rule for ties (the first operation, which is none), and "
            "with running instead of batch statistics?",
            metric="accuracy",
            method="ours",
            kind="question",
            unit="share of test images",
            source="the authors' code, as the method note has it",
            role="extension",
        ),
    ),
    deviations=(
        TABLE,
        RATES,
        "Our own loop with the released rule for ties, not the released code. That code also lets scoring change the "
        "running statistics, which its own scores never read; the arm with running statistics shows what reading them "
        "would do. Where edges are dropped, which no network here needs, that code scores each edge with all others in "
        "place, those it has dropped among them; ours scores without these. Not at smoke. " + PILOTS,
    ),
    data=LATER,
    over_seeds="loop",
)

FRONTS = Experiment(
    "fronts",
    title="Are the networks on the way from the supernet to the last one good for their cost?",
    trial=f"{TRIALS}:fronts",
    problem=CELLS,
    accepts=ACCEPTS,
    arms=(
        Arm("perturbation", "perturbation", penalty=0.0, **dict(PERTURBATION.settings)),
        Arm("penalised", "accuracy less a fifth of the relative cost", penalty=0.2, **dict(PERTURBATION.settings)),
        Arm(
            "per-cost",
            "accuracy lost for its cost",
            penalty=0.0,
            **(dict(PERTURBATION.settings) | {"rule": "per-cost"}),
        ),
        Arm("random", "random pruning", penalty=0.0, **(dict(RANDOM.settings) | {"tuned": 1})),
    ),
    scales={
        "tiny": scale("tiny", 2, 2, 0.0),
        "desk": scale("desk", 10, 10, 10.0),
        "full": scale("full", 20, 1, 3e6),
    },
    claims=(
        Claim(
            "pareto",
            "the networks that perturbation passes, decision by decision, beat more of the plane of cost and accuracy "
            "than those of random pruning.",
            metric="hypervolume",
            method="perturbation",
            baseline="random",
            better="higher",
            unit="area, of 1",
            source="a reviewer: is it progressive pruning along a front?",
            role="extension",
        ),
        Claim(
            "pareto-cost",
            "And where the criterion knows the cost?",
            metric="hypervolume",
            method="per-cost",
            kind="question",
            unit="area, of 1",
            source="a reviewer's question",
            role="extension",
        ),
    ),
    deviations=(
        RATES,
        "Snapshots are judged as they are after their tuning, on test images and with the statistics of these, and not "
        "trained anew; their areas compare arms and say little by themselves. Cost: multiplications "
        "of all operations with any weight, over those of the supernet. Not at smoke. " + PILOTS,
    ),
    data=LATER,
    over_seeds="loop",
)
