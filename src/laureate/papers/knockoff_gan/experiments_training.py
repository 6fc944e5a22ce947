"""KnockoffGAN trained: as published, with its terms changed, against simpler samplers.

Tests, margins and settings were written down before anything here was run; what had been seen before says so in
``deviations``.
"""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale
from laureate.papers.knockoff_gan.experiments import MEDIAN

__all__ = ["ARCHITECTURE", "FRONTIER", "NON_GAUSSIAN", "REAL_NETWORK", "TRAINING"]

TRIALS = "laureate.papers.knockoff_gan.trials_training"
TABLES = "laureate.problems.tables"
TINY = {"rows": 24, "batch": 8, "steps": 4, "learning_rate": 1e-3, "num_true": 3, "amplitude": 4.0, "q": 0.3}
SMOKE = {"rows": 300, "batch": 64, "learning_rate": 1e-3, "num_true": 8, "amplitude": 4.0, "q": 0.2}
DESK = {"rows": 1000, "batch": 128, "learning_rate": 1e-3, "num_true": 8, "amplitude": 4.0, "q": 0.2}
FULL = {
    "rows": 3000,
    "batch": 128,
    "steps": 2000,
    "learning_rate": 1e-4,
    "num_true": 60,
    "amplitude": 2.5,
    "q": 0.1,
    "responses": 100,
}
REAL_SIZE = {"num_true": 10, "amplitude": 8.0, "q": 0.2}
SIZE = (
    "20 variables, 8 of them true, n = 1000, q = 0.2 (smoke: n = 300, batch 64) where the paper has 1000, 60, 3000 and "
    "0.1; Adam at 0.001 for fewer steps where its code has 0.0001 for 2000: with so narrow networks little else moves. "
    "full has the paper's size and was never run by us."
)
STANDARDISED = (
    "Inputs are standardised where the paper scales them to variance 1/n; Z is U[0, 1] as in the text, or normal of "
    "the inputs' own scale as in the code. Networks have one hidden layer of p units, T two tanh units, as in the code."
)
SEEN = (
    "Seen before the declaration: our pilots (p = 30: a held-out test told trained knockoffs in 93 % of rows at λ = 0 "
    "to 0.1; p = 16, 500 steps on Gaussian tables: 0.74 as published, 0.50 corrected) and an earlier attempt of ours, "
    "in which the published settings failed a held-out test and stability and power claims were refuted."
)


def _cut(before: int, now: int) -> str:
    return (
        f"Steps at desk were cut from {before} to {now}, for their cost, after a smoke run had been seen and before "
        "any at desk: what more steps would do was not measured."
    )


def _network(name: str, label: str, **changed: float) -> Arm:
    """The paper's settings but for what is changed; all are numbers, so all arms are one program."""
    published = {
        "power": 1.0,
        "stability": 1.0,
        "hidden": 0.5,
        "uniform": 1.0,
        "inner_steps": 5.0,
        "simultaneous": 0.0,
        "start": 0.0,
        "moments": 0.0,
        "rate": 1.0,
    }
    return Arm(name, label, **(published | changed))


UNTRAINED = {"start": 1.0, "rate": 1e-9, "inner_steps": 1.0}

TRAINING = Experiment(
    name="training",
    title="KnockoffGAN on uniform variables with correlated neighbours: validity, order of training, stability term",
    trial=f"{TRIALS}:training",
    problem=f"{TABLES}:Design",
    arms=(
        _network("published", "as in the text: λ = 1, μ = 1"),
        _network("released", "as in the code: λ = 0.01, normal Z, hidden hints 0", power=0.01, hidden=0.0, uniform=0.0),
        _network("slow", "as in the text, a tenth of the rate", rate=0.1),
        _network("without-stability", "μ = 0", stability=0.0),
        _network("little-stability", "μ = 0.3", stability=0.3),
        _network("much-stability", "μ = 3", stability=3.0),
        _network("simultaneous", "G answers D, f and T as they were before their updates", simultaneous=1.0),
        _network("one-inner-step", "one update of D, f and T for one of G", inner_steps=1.0),
        _network("second-order", "second-order Gaussian knockoffs, nothing trained", **UNTRAINED),
    ),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", problem={"kind": "uniform", "num_variables": 4}, responses=2, **TINY
        ),
        "smoke": Scale(
            10,
            compilation="lightest",
            cost=8,
            problem={"kind": "uniform", "num_variables": 20},
            steps=60,
            responses=10,
            **SMOKE,
        ),
        "desk": Scale(10, cost=55, problem={"kind": "uniform", "num_variables": 20}, steps=500, responses=20, **DESK),
        "full": Scale(10, block=1, cost=500_000, problem={"kind": "uniform", "num_variables": 1000}, **FULL),
    },
    claims=(
        Claim(
            "validity-gan",
            "Trained as published, the knockoffs pass: a held-out test tells them from their originals with an "
            "accuracy of at most 0.55.",
            metric="accuracy",
            method="published",
            kind="bound",
            at_most=0.55,
            unit="share of held-out rows",
            source="section 4: the generator's knockoffs satisfy exchangeability at the optimum",
            role="stand-in",
        ),
        Claim(
            "training-order",
            "It does not matter whether G answers D, f and T after or before their updates: held-out accuracies differ "
            "by less than 0.05.",
            metric="accuracy",
            method="published",
            baseline="simultaneous",
            kind="equal",
            margin=0.05,
            unit="share of held-out rows",
            source="a reviewer's question; algorithm 1",
            role="extension",
        ),
        Claim(
            "stability-term",
            "The critic's term raises power: with μ = 1 more of the true variables are found than with μ = 0.",
            metric="tpr",
            method="published",
            baseline="without-stability",
            better="higher",
            unit="share of the true ones",
            source="section 5.1.4, AR-uniform",
            role="stand-in",
            reported="a higher TPR in the figure, no numbers",
        ),
        Claim(
            "training-losses",
            "What does D's own loss say of validity? (-0.693 a coordinate would be perfect.)",
            metric="swap_loss",
            method="published",
            kind="question",
            unit="nats a coordinate",
            role="extension",
        ),
        Claim(
            "training-fdr",
            "And what is the false discovery rate with each?",
            metric="fdp",
            method="published",
            kind="question",
            unit="share of the selected",
            role="extension",
        ),
    ),
    deviations=(
        SIZE,
        STANDARDISED,
        SEEN,
        _cut(800, 500),
        "Neighbours are correlated 0.5 through a Gaussian copula.",
        "The order among D, f and T cannot matter: they share a minibatch and no parameters (a test proves it). What "
        "can is whether G sees them before or after; both arms make the same number of updates.",
        "After the first desk run, which told both orders in 99.5 % of rows and called them equal: at such a ceiling "
        "any two arms are equal, so a guard now holds the claim back where accuracies reach 0.98.",
        "Validity is tested on fresh rows; selections are made on the rows trained on, as in the paper.",
    ),
    guards=(
        Guard("limit", "tpr", low=0.0, high=1.0, arms=("published",), claims=("stability-term",)),
        Guard("limit", "accuracy", high=0.98, claims=("training-order",)),
    ),
    over="data sets",
)

FRONTIER = Experiment(
    name="frontier",
    title="The power term: correlation with the originals against power, λ = 0, 0.01, 0.1, 0.3, 1, 3",
    trial=f"{TRIALS}:frontier",
    problem=f"{TABLES}:Design",
    arms=(
        Arm("moments", "with our penalty on moments", moments=1.0, stability=1.0, rate=1.0),
        Arm("published", "as published", moments=0.0, stability=1.0, rate=1.0),
    ),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", problem={"kind": "gaussian", "num_variables": 4}, responses=2, **TINY
        ),
        "desk": Scale(
            10, block=5, cost=40, problem={"kind": "gaussian", "num_variables": 20}, steps=300, responses=20, **DESK
        ),
        "full": Scale(10, block=1, cost=700_000, problem={"kind": "gaussian", "num_variables": 1000}, **FULL),
    },
    claims=(
        Claim(
            "frontier",
            "Less likeness, more power: over the six weights λ, the share of true variables found falls as the "
            "correlation of knockoffs with their originals grows.",
            metric="tpr",
            against="correlation",
            method="moments",
            kind="trend",
            better="lower",
            unit="share of the true ones for a correlation of 1",
            source="a reviewer's question: do discriminator and power network conflict?",
            role="extension",
        ),
        Claim(
            "frontier-correlation",
            "The power term does what it is for: the correlation of knockoffs with their originals falls from step to "
            "step of λ.",
            metric="correlation",
            against="step",
            method="moments",
            kind="trend",
            better="lower",
            unit="correlation a step of λ",
            source="section 4.3, the power network",
            role="check",
        ),
        Claim(
            "frontier-validity",
            "How well are knockoffs told from their originals with the λ for which they are told least?",
            metric="accuracy_lowest",
            method="moments",
            kind="question",
            unit="share of held-out rows",
            role="extension",
        ),
    ),
    deviations=(
        SIZE,
        STANDARDISED,
        SEEN,
        _cut(500, 300),
        "Not at smoke, where forty steps move no correlation. The table of accuracies gives one number an arm: a first "
        "run at smoke could not print six.",
        "The trend is judged with our penalty on moments: our pilots found no correlation to trade away without it. "
        "The published objective is in the table.",
    ),
    curves=(
        Curve("tpr", "correlation", "Power against likeness", x_label="mean correlation of X_j and X̃_j", y_label="TPR"),
        Curve("accuracy", "step", "Held-out accuracy against the power term", x_label="step of λ", y_label="accuracy"),
    ),
    over="data sets",
)

NON_GAUSSIAN = Experiment(
    name="non-gaussian",
    title="A mixture of four Gaussians: KnockoffGAN against second-order and mixture knockoffs",
    trial=f"{TRIALS}:non_gaussian",
    problem=f"{TABLES}:Design",
    arms=(
        Arm("published", "KnockoffGAN as in the text", sampler="network", start=0.0, rate=1.0),
        Arm("second-order", "second-order Gaussian knockoffs", sampler="network", start=1.0, rate=1e-9),
        Arm("mixture", "mixture of four Gaussians, fitted", sampler="mixture"),
        Arm("refined", "second-order, corrected by a network (ours)", sampler="refined"),
    ),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", problem={"kind": "mixture", "num_variables": 4}, responses=2, **TINY
        ),
        "smoke": Scale(
            10,
            compilation="lightest",
            cost=9,
            problem={"kind": "mixture", "num_variables": 20},
            steps=60,
            responses=10,
            **SMOKE,
        ),
        "desk": Scale(
            12, block=6, cost=75, problem={"kind": "mixture", "num_variables": 20}, steps=600, responses=20, **DESK
        ),
        "full": Scale(20, block=1, cost=300_000, problem={"kind": "mixture", "num_variables": 1000}, **FULL),
    },
    claims=(
        Claim(
            "non-gaussian-fdr",
            "With KnockoffGAN as published the false discovery rate is at most q = 0.2.",
            metric="fdp",
            method="published",
            kind="bound",
            at_most=0.2,
            unit="share of the selected",
            source="section 5.1, mixture of Gaussians",
            role="stand-in",
            reported="about 0.1 at q = 0.1 in the figure",
        ),
        Claim(
            "non-gaussian-power",
            "It finds more of the true variables than second-order Gaussian knockoffs.",
            metric="tpr",
            method="published",
            baseline="second-order",
            better="higher",
            unit="share of the true ones",
            source="section 5.1, mixture of Gaussians",
            role="stand-in",
            reported="a higher TPR in the figure, no numbers",
        ),
        Claim(
            "non-gaussian-fdr-refined",
            "With our corrected second-order knockoffs the false discovery rate is at most q = 0.2.",
            metric="fdp",
            method="refined",
            kind="bound",
            at_most=0.2,
            unit="share of the selected",
            source="our own sampler",
            role="extension",
        ),
        Claim(
            "non-gaussian-power-refined",
            "They find more of the true variables than second-order Gaussian knockoffs.",
            metric="tpr",
            method="refined",
            baseline="second-order",
            better="higher",
            unit="share of the true ones",
            source="our own sampler",
            role="extension",
        ),
        Claim(
            "mixture-baseline",
            "Knockoffs of a fitted mixture are told from their originals less often than KnockoffGAN's, by more than "
            "0.05.",
            metric="accuracy",
            method="mixture",
            baseline="published",
            better="lower",
            margin=0.05,
            unit="share of held-out rows",
            source="a reviewer's request: mixture knockoffs as a baseline",
            role="extension",
        ),
        Claim(
            "non-gaussian-validity",
            "How well are the knockoffs of each sampler told from their originals?",
            metric="accuracy",
            method="published",
            kind="question",
            unit="share of held-out rows",
            role="extension",
        ),
    ),
    deviations=(
        SIZE,
        STANDARDISED,
        SEEN,
        _cut(1000, 600),
        MEDIAN,
        "Centres at random corners of ±1.5 standard deviations, equal weights and the same autoregressive covariance "
        "(0.5) in all four components; the paper's mixture is not specified in the text at hand.",
        "The mixture sampler is told that there are four components; it is not told which.",
        "The refined sampler keeps a quarter of the rows back to choose when to stop.",
        "Power of knockoffs that fail the validity test is no power to trust: read it beside their accuracy and FDR.",
    ),
    guards=(
        Guard("limit", "tpr", low=0.0, arms=("published",), claims=("non-gaussian-fdr",)),
        Guard("limit", "tpr", low=0.0, arms=("refined",), claims=("non-gaussian-fdr-refined",)),
    ),
    over="data sets",
)

ARCHITECTURE = Experiment(
    name="architecture",
    title="How much the networks' width, depth and activation matter",
    trial=f"{TRIALS}:architecture",
    problem=f"{TABLES}:Design",
    arms=(
        Arm("narrow", "one layer of p tanh units, as published", width=1, depth=1, activation="tanh"),
        Arm("wide", "one layer of 4p tanh units", width=4, depth=1, activation="tanh"),
        Arm("deep", "two layers of p tanh units", width=1, depth=2, activation="tanh"),
        Arm("relu", "one layer of p rectified units", width=1, depth=1, activation="relu"),
    ),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", problem={"kind": "uniform", "num_variables": 4}, responses=2, **TINY
        ),
        "desk": Scale(
            5, block=5, cost=33, problem={"kind": "uniform", "num_variables": 20}, steps=300, responses=20, **DESK
        ),
        "full": Scale(10, block=1, cost=500_000, problem={"kind": "uniform", "num_variables": 1000}, **FULL),
    },
    claims=(
        Claim(
            "architecture",
            "How well are knockoffs told from their originals with other networks?",
            metric="accuracy",
            method="narrow",
            kind="question",
            unit="share of held-out rows",
            source="a reviewer's question",
            role="extension",
        ),
        Claim(
            "architecture-power",
            "And what share of the true variables is found?",
            metric="tpr",
            method="narrow",
            kind="question",
            unit="share of the true ones",
            source="a reviewer's question",
            role="extension",
        ),
    ),
    deviations=(
        SIZE,
        STANDARDISED,
        _cut(500, 300),
        "G, D and f change together; T keeps its two units. λ = μ = 1 throughout.",
    ),
    over="data sets",
)

REAL_NETWORK = Experiment(
    name="real-network",
    title="KnockoffGAN on real inputs: made-up responses and the real one",
    trial=f"{TRIALS}:real_network",
    problem=f"{TABLES}:BreastCancer",
    accepts=("inputs", "response"),
    data=("breast-cancer",),
    arms=(
        _network("published", "as in the text: λ = 1, μ = 1"),
        _network("released", "as in the code: λ = 0.01, normal Z, hidden hints 0", power=0.01, hidden=0.0, uniform=0.0),
        _network("second-order", "second-order Gaussian knockoffs, nothing trained", **UNTRAINED),
    ),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", responses=2, **{n: v for n, v in TINY.items() if n != "rows"}
        ),
        "desk": Scale(20, cost=30, responses=20, steps=300, **(REAL_SIZE | {"batch": 64, "learning_rate": 1e-3})),
        "full": Scale(100, cost=3600, responses=100, steps=2000, **(REAL_SIZE | {"batch": 128, "learning_rate": 1e-4})),
    },
    claims=(
        Claim(
            "real-network",
            "For the response that the table came with, KnockoffGAN selects more variables than second-order "
            "knockoffs do, by more than one.",
            metric="selected",
            method="published",
            baseline="second-order",
            better="higher",
            margin=1.0,
            unit="variables",
            source="section 5.2",
            role="stand-in",
            reported="9 and 8 variables at q = 0.05, the original knockoffs none",
        ),
        Claim(
            "real-network-fdr",
            "On these inputs, with true variables that we chose, it keeps the false discovery rate at most at q = 0.2.",
            metric="fdp",
            method="published",
            kind="bound",
            at_most=0.2,
            unit="share of the selected",
            source="section 5.2 has no truth to compare with; our own question",
            role="extension",
        ),
        Claim(
            "real-network-validity",
            "How well are its knockoffs told from the real rows?",
            metric="accuracy",
            method="published",
            kind="question",
            unit="share of held-out rows",
            role="extension",
        ),
    ),
    guards=(
        Guard("limit", "accuracy", high=0.6, arms=("published", "second-order"), claims=("real-network",)),
        Guard("limit", "tpr", low=0.0, arms=("published",), claims=("real-network-fdr",)),
    ),
    deviations=(
        "scikit-learn's breast cancer table (569 × 30, its label as a number) where the paper has a biobank that is "
        "not public; q = 0.2 where it has 0.05, for with 30 columns hardly anything could be selected; the lasso's "
        "statistic where it has a random forest's.",
        "A count is worth nothing where the knockoffs are invalid: the claim is held back where the knockoffs of "
        "either arm are told in 60 % of held-out rows or more, about where KnockoffSelector refuses this many.",
        "Adam at 0.001 for 300 steps of 64 rows; full has the authors' 2,000 steps of 128 at 0.0001 and was never run "
        "by us. Not at smoke, where so few steps move nothing.",
        STANDARDISED,
        SEEN,
        "Declared after desk results of the other experiments, none of this one.",
        "One table: seeds differ in networks, knockoffs, true variables and noise.",
    ),
)
