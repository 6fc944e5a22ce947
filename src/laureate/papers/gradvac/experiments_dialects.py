"""Five dialects of digits, related or not, as a stand-in for languages of unequal resources."""

from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale
from laureate.papers.gradvac.experiments import OUR_OWN, PILOTS

__all__ = ["RELATED", "RELATED_EQUAL", "RELATED_SGD", "UNRELATED"]

UNIT = "mean share of right answers over dialects"
GAIN = "the abstract: gains on multilingual translation and XTREME; over what and by how much could not be read"
LABELS = {
    "gradvac": "GradVac, β = 0.01",
    "half": "GradVac, β = 0.5",
    "leaf": "GradVac, a target a matrix",
    "rescaled": "GradVac with the plain sum's length",
    "pcgrad": "PCGrad",
    "uniform": "plain sum",
    "longer": "plain sum, 1.2 times as long",
    "sizes": "weights by the root of the rows",
    "unit-sum": "sum of unit gradients",
    "frozen": "not trained",
}
ROWS = {"unequal": "600, 200, 100, 50 and 50 rows", "equal": "200 rows each"}
RATES = {"adam": (0.001, 0.003, 0.01, 0.03, 0.1), "sgd": (0.001, 0.004, 0.015, 0.06, 0.25)}


def _experiment(
    name: str,
    title: str,
    kind: str,
    optimiser: str,
    methods: tuple[str, ...],
    claims: tuple[Claim, ...],
    sizes: str = "unequal",
    further: tuple[str, ...] = (),
) -> Experiment:
    among = " ".join(methods)
    smoke = Scale(
        12,
        block=12,
        cost=14.0,
        compilation="lightest",
        problem={"kind": kind, "hidden": 16, "batch_size": 8},
        rates=(0.003, 0.01, 0.03, 0.1, 0.3),
        steps=60,
    )
    rates, problem = RATES[optimiser], {"kind": kind, "sizes": sizes}
    return Experiment(
        name,
        title=title,
        trial="laureate.papers.gradvac.trials:dialects",
        problem="laureate.problems.several_tasks:Dialects",
        accepts=("params0", "batch", "losses", "scores"),
        arms=tuple(
            Arm(method, LABELS[method], method=float(number), optimiser=optimiser, among=among)
            for number, method in enumerate(methods)
        ),
        scales={
            "tiny": Scale(
                2, block=2, compilation="lightest", problem={**problem, "hidden": 4, "batch_size": 4},
                rates=(0.01, 0.1), steps=2,
            ),
            **({"smoke": smoke} if name == "related" else {}),
            "desk": Scale(12, block=12, cost=35.0, problem=problem, rates=rates, steps=300),
            "full": Scale(24, block=12, cost=900.0, problem={**problem, "hidden": 64}, rates=rates, steps=3000),
        },
        claims=claims,
        guards=(Guard("grid", "rate", grid="rates"), Guard("limit", "mean", low=-1.0)),
        deviations=(
            f"scikit-learn's digits in five dialects, with {ROWS[sizes]}, and a network of 32 hidden "
            "units that is shared whole, 300 steps with 16 rows a dialect; the paper has languages, a Transformer of "
            "375 million parameters and 64 accelerators. At smoke 16 units and 60 steps.",
            "Every arm has the same grid of rates, chosen by the mean on 300 validation rows. " + PILOTS,
            "Cosines of two dialects' gradients were about 0.1 in training and 0.25 at the start: fewer agree here "
            "than the paper's languages may.",
            "A seed draws the split and who is in which dialect; intervals are over splits of one data set.",
            *further,
        ),
        data=("digits",),
    )  # fmt: skip


def _claim(name: str, statement: str, method: str, baseline: str, **more) -> Claim:
    settings = {"metric": "mean", "better": "higher", "unit": UNIT, "source": OUR_OWN, "role": "extension"}
    return Claim(name, statement, method=method, baseline=baseline, **(settings | more))  # pyright: ignore[reportArgumentType]


RELATED = _experiment(
    "related",
    "Rotated digits, which are related: do vaccinated gradients learn more?",
    "rotated",
    "adam",
    ("gradvac", "pcgrad", "uniform", "half", "leaf", "sizes", "unit-sum", "frozen"),
    (
        _claim(
            "against-pcgrad",
            "On five rotations of digits GradVac is better than PCGrad, by more than half a point.",
            "gradvac", "pcgrad", margin=0.005, trivial="frozen", source=GAIN, role="stand-in",
        ),
        _claim(
            "against-sum",
            "And better than the plain sum, by more than half a point.",
            "gradvac", "uniform", margin=0.005, trivial="frozen", source=GAIN, role="stand-in",
        ),
        _claim(
            "against-sum-small",
            "Of the two dialects with 50 rows it is better than the plain sum, by more than a point.",
            "gradvac", "uniform", metric="small", margin=0.01, trivial="frozen", source=GAIN, role="stand-in",
            unit="mean share of right answers, two dialects with 50 rows",
        ),
        _claim(
            "against-sum-equal",
            "GradVac and the plain sum differ by less than a point.",
            "gradvac", "uniform", kind="equal", margin=0.01, source="our own question, seen in pilots",
        ),
        _claim(
            "temperature",
            "Weights by the root of a dialect's rows, the usual tool, differ from GradVac by less than a point.",
            "sizes", "gradvac", kind="equal", margin=0.01, source="a reviewer's question: sampling temperature",
        ),
        Claim(
            "cosines",
            "What is the mean cosine of two dialects' gradients?",
            metric="cosine", method="uniform", kind="question", unit="cosine", source=OUR_OWN, role="extension",
        ),
        Claim(
            "conflicting-pairs",
            "And in what share of pairs is it negative?",
            metric="conflicts", method="uniform", kind="question", unit="share of pairs", source=OUR_OWN,
            role="extension",
        ),
    ),
    further=(
        "Weights by size have the exponent 1/2 alone; sampling temperatures are usually tuned.",
    ),
)  # fmt: skip

RELATED_EQUAL = _experiment(
    "related-equal",
    "Do gradients of rotations that are closer agree more?",
    "rotated",
    "adam",
    ("uniform", "gradvac", "frozen"),
    (
        Claim(
            "interference",
            "Gradients of rotations that are further apart have a smaller cosine: its mean over training and the "
            "difference of angles have a rank correlation below -0.8 over the ten pairs.",
            metric="correlation", method="uniform", kind="bound", at_most=-0.8,
            unit="Spearman's correlation over pairs",
            source="the abstract: similarity of gradients along training goes with the proximity of languages",
            role="stand-in",
        ),
    ),
    sizes="equal",
    further=(
        "The claim was first decided with unequal sizes, where the order of angles was that of sizes, and by Pearson's "
        "correlation; it was changed after that result was known. Differences of angles have ties: ranks are averaged.",
    ),
)  # fmt: skip

RELATED_SGD = _experiment(
    "related-sgd",
    "And under SGD, where a longer step is a larger learning rate?",
    "rotated",
    "sgd",
    ("gradvac", "pcgrad", "uniform", "longer", "rescaled", "frozen"),
    (
        _claim(
            "against-sum-sgd",
            "Under SGD with momentum GradVac is better than the plain sum, by more than half a point.",
            "gradvac", "uniform", margin=0.005, trivial="frozen", source=GAIN, role="stand-in",
        ),
        _claim(
            "longer-step",
            "It differs from the plain sum with steps 1.2 times as long by less than a point.",
            "gradvac", "longer", kind="equal", margin=0.01, source="a reviewer's question: is it only a larger step?",
        ),
        _claim(
            "same-length",
            "With the length of the plain sum it differs from GradVac by less than a point.",
            "rescaled", "gradvac", kind="equal", margin=0.01, source="a reviewer's question: is it only a larger step?",
        ),
    ),
    further=(
        "The longer plain sum is 1.2 times as long whatever the vaccine's own amplification is, and its rate is tuned "
        "on the same grid.",
    ),
)  # fmt: skip

UNRELATED = _experiment(
    "unrelated",
    "Unrelated dialects: does a vaccine do harm?",
    "unrelated",
    "adam",
    ("gradvac", "pcgrad", "uniform", "half", "leaf", "unit-sum", "frozen"),
    (
        _claim(
            "unrelated-sum",
            "On transposed, inverted, shuffled and noisy digits GradVac and the plain sum differ by less than a point.",
            "gradvac", "uniform", kind="equal", margin=0.01, source="our own question, seen in pilots",
        ),
        _claim(
            "unrelated-pcgrad",
            "So do GradVac and PCGrad.",
            "gradvac", "pcgrad", kind="equal", margin=0.01, source="our own question, seen in pilots",
        ),
        _claim(
            "unrelated-unit-sum",
            "The plain sum is better than the sum of unit gradients, by more than a point.",
            "uniform", "unit-sum", margin=0.01, trivial="frozen", source="our own question, seen in pilots",
        ),
    ),
)  # fmt: skip
