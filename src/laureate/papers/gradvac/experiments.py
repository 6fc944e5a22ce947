"""Random gradients: are targets reached, where do they settle, and what does a vaccine do to the length of a step?"""

from laureate.lab.claim import Arm, Claim, Experiment, Scale

__all__ = ["OUR_OWN", "PAIRS", "PILOTS", "STEADY"]

TRIALS = "laureate.papers.gradvac.trials"
OUR_OWN = "our own question"
PILOTS = (
    "The method note's pilots were known when this was declared. The body of the paper could not be read here: "
    "formulas come from its abstract, public implementations and derivation; β = 0.01 unless said."
)

PAIRS = Experiment(
    "pairs",
    title="Does a corrected gradient have the cosine it was given as a target?",
    trial=f"{TRIALS}:pairs",
    arms=(
        Arm("two", "2 tasks", tasks=2),
        Arm("five", "5 tasks", tasks=5),
        Arm("ten", "10 tasks", tasks=10),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", draws=4, dim=20),
        "smoke": Scale(12, block=12, cost=2.0, compilation="lightest", draws=200, dim=50),
        "desk": Scale(12, block=12, cost=3.0, compilation="lightest", draws=2000, dim=50),
        "full": Scale(24, block=12, cost=30.0, draws=20000, dim=50),
    },
    claims=(
        Claim(
            "reaches-target",
            "With two tasks, a gradient below its target has exactly that cosine afterwards, to 1e-9 in double "
            "precision.",
            metric="log10_miss",
            method="two",
            kind="bound",
            at_most=-9.0,
            unit="log10 of the largest difference of cosines",
            source="the correction's closed form",
            role="check",
        ),
        Claim(
            "reaches-target-many",
            "With five tasks, later visits undo earlier ones: more than a tenth of the pairs that were below their "
            "target still are, by more than 0.01.",
            metric="missed",
            method="five",
            kind="bound",
            at_least=0.1,
            unit="share of pairs",
            source=OUR_OWN,
            role="extension",
        ),
    ),
    deviations=("Random gradients and targets, uniform in ±0.9. " + PILOTS,),
    x64=True,
    over="data sets",
)


def _arm(name: str, label: str, tasks: int, cosine: float, beta: float = 0.01, track="modified", inside=0.0) -> Arm:
    return Arm(name, label, tasks=tasks, cosine=cosine, beta=beta, track=track, inside=inside)


STEADY = Experiment(
    "steady",
    title="Where do targets settle, and how much longer does the step become?",
    trial=f"{TRIALS}:steady",
    arms=(
        _arm("ten", "10 unrelated tasks", 10, 0.0),
        _arm("two", "2 unrelated tasks", 2, 0.0),
        _arm("related", "10 tasks, cosine 0.5", 10, 0.5),
        _arm("related-raw", "10 tasks, cosine 0.5, raw cosines tracked", 10, 0.5, track="raw"),
        _arm("three", "3 tasks, cosine 0.3, β = 0.1", 3, 0.3, beta=0.1),
        _arm("inside", "the same, targets moved only with corrections", 3, 0.3, beta=0.1, inside=1.0),
        _arm("pcgrad", "10 unrelated tasks, β = 0", 10, 0.0, beta=0.0),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", steps=6, dim=20),
        "smoke": Scale(12, block=12, cost=4.0, compilation="lightest", steps=600, dim=60),
        "desk": Scale(12, block=12, cost=8.0, compilation="lightest", steps=2000, dim=60),
        "full": Scale(24, block=12, cost=60.0, steps=20000, dim=60),
    },
    claims=(
        Claim(
            "amplification",
            "With ten unrelated tasks the vaccinated sum is more than a fifth longer than the plain one: a hidden "
            "learning rate.",
            metric="amplification",
            method="ten",
            kind="bound",
            at_least=1.2,
            unit="length over that of the plain sum",
            source=OUR_OWN,
            role="extension",
        ),
        Claim(
            "always-corrected",
            "Of unrelated tasks more than a third of all pairs is corrected for ever.",
            metric="corrected",
            method="ten",
            kind="bound",
            at_least=1 / 3,
            unit="share of pairs",
            source=OUR_OWN,
            role="extension",
        ),
        Claim(
            "inflated-targets",
            "Of ten tasks of cosine 0.5 targets settle above the cosine, by more than 0.02, because corrected "
            "gradients are measured.",
            metric="excess",
            method="related",
            kind="bound",
            at_least=0.02,
            unit="target less cosine",
            source=OUR_OWN,
            role="extension",
        ),
        Claim(
            "position-of-average",
            "Where targets move only with a correction, as in one public implementation, they fall below the cosine "
            "by more than 0.2.",
            metric="excess",
            method="inside",
            kind="bound",
            at_most=-0.2,
            unit="target less cosine",
            source=OUR_OWN,
            role="extension",
        ),
        Claim(
            "lengths",
            "How long is the sum for other numbers of tasks and ways of tracking?",
            metric="amplification",
            method="ten",
            kind="question",
            unit="length over that of the plain sum",
            source="a reviewer's question: is it only a larger step?",
            role="extension",
        ),
    ),
    deviations=("Fresh normal gradients around a fixed common one at every step. " + PILOTS,),
    over="data sets",
)
