"""Where the best rule is known: consistency on Gaussians and at one input, τ with true posteriors, and an identity."""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Scale

__all__ = ["CONSISTENCY", "FAMILY", "IDENTITY", "POSTERIORS"]

TRIALS = "laureate.papers.logit_adjustment.trials"
DIGITS = "laureate.problems.long_tails:LongTailedDigits"
PILOTS = "The method note's pilots were known when this was declared."
THEOREM = "the theorem on consistent losses"


def _arm(name: str, label: str, **settings: float) -> Arm:
    off = {"weight": 0.0, "inside": 0.0, "after": 0.0, "under": 0.0, "centroid": 0.0}
    return Arm(name, label, **(off | settings))


CONSISTENCY = Experiment(
    "consistency",
    title="With more and more data, is the best balanced error reached?",
    trial=f"{TRIALS}:gaussians",
    arms=(
        _arm("loss", "logit-adjusted loss", inside=1.0),
        _arm("after", "adjusted after training", after=1.0),
        _arm("plain", "cross-entropy"),
        _arm("weighted", "weighted cross-entropy", weight=1.0),
        _arm("under", "undersampling", under=1.0),
        _arm("centroid", "nearest centroid", centroid=1.0),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", rows=(40, 80), runs=2, rare=0.1, ridge=0.01),
        "smoke": Scale(16, block=16, cost=5.0, rows=(200, 1000, 4000), runs=10, rare=0.05, ridge=0.01),
        "desk": Scale(30, block=10, cost=130.0, rows=(200, 1000, 5000, 20000), runs=20, rare=0.05, ridge=0.01),
        "full": Scale(100, block=10, cost=1500.0, rows=(200, 1000, 5000, 20000, 80000), runs=50, rare=0.05, ridge=0.01),
    },
    claims=(
        Claim(
            "consistency",
            "On two Gaussians, one with a twentieth of the rows, the logit-adjusted loss comes within 0.001 of the "
            "best balanced error at the largest number of rows.",
            metric="excess_most",
            method="loss",
            kind="bound",
            at_most=0.001,
            trivial="plain",
            unit="balanced error beyond the best",
            source=THEOREM + ", section 5",
            role="stand-in",
            reported="consistent",
        ),
        Claim(
            "plain-inconsistent",
            "Plain cross-entropy does not: it stays above by more than 0.05.",
            metric="excess_most",
            method="plain",
            kind="bound",
            at_least=0.05,
            unit="balanced error beyond the best",
            source="section 2: why the balanced error needs something else",
            role="stand-in",
        ),
        Claim(
            "weighted-consistent",
            "Weighted cross-entropy does as well, within 0.001.",
            metric="excess_most",
            method="weighted",
            kind="bound",
            at_most=0.001,
            unit="balanced error beyond the best",
            source=THEOREM + ", with δ = 1: our own question, often told otherwise",
            role="extension",
        ),
        Claim(
            "consistency-rate",
            "The excess of the logit-adjusted loss falls as one over the number of rows: a slope between -1.25 and "
            "-0.75.",
            metric="log_excess",
            against="log_rows",
            method="loss",
            kind="trend",
            better="lower",
            at_least=-1.25,
            at_most=-0.75,
            unit="log excess a log row",
            source="our own question",
            role="extension",
        ),
        Claim(
            "against-weights",
            "With 1,000 rows the adjusted loss is nearer to the best than weighted cross-entropy, by more than a "
            "tenth.",
            metric="log_excess_some",
            method="loss",
            baseline="weighted",
            trivial="plain",
            margin=0.1,
            unit="log of the balanced error beyond the best",
            source="our own question: does it matter which consistent loss one takes?",
            role="extension",
        ),
        Claim(
            "same-optimum",
            "Where training finds the optimum, loss and correction afterwards are one: with 1,000 rows they differ "
            "by less than a hundredth.",
            metric="log_excess_some",
            method="loss",
            baseline="after",
            kind="equal",
            margin=0.01,
            unit="log of the balanced error beyond the best",
            source="an identity of the two, by a free bias",
            role="check",
        ),
        Claim(
            "gaussian-rivals",
            "How near do undersampling and the nearest centroid, here the right model, come with 1,000 rows?",
            metric="log_excess_some",
            method="loss",
            kind="question",
            unit="log of the balanced error beyond the best",
            source="a reviewer's question: trivial baselines",
            role="extension",
        ),
    ),
    curves=(Curve("log_excess", "log_rows", "Balanced error beyond the best", "log rows", "log excess"),),
    deviations=(
        "Logistic regression by Newton's method with a penalty of 0.01/n; the rare class has exactly its share of "
        "rows. "
        "The error is exact, from the normal distribution. " + PILOTS,
        "At smoke the largest number of rows is 4,000, at desk 20,000.",
    ),
    over="data sets",
)

FAMILY = Experiment(
    "family",
    title="What does each loss converge to at one input?",
    trial=f"{TRIALS}:family",
    arms=(
        Arm("adjusted", "logit-adjusted", loss="logit-adjusted"),
        Arm("weighted", "weighted", loss="weighted"),
        Arm("pairs", "any δ", loss="family"),
        Arm("label-margin", "LDAM's margin", loss="label-margin"),
        Arm("equalised", "equalised", loss="equalised"),
        Arm("plain", "cross-entropy", loss="cross-entropy"),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", classes=3, inputs=3, steps=40),
        "smoke": Scale(16, block=16, cost=3.0, classes=4, inputs=50, steps=60),
        "desk": Scale(20, block=20, cost=12.0, classes=4, inputs=200, steps=60),
        "full": Scale(50, block=10, cost=300.0, classes=10, inputs=500, steps=100),
    },
    claims=(
        Claim(
            "minimiser",
            "The logit-adjusted loss is minimised by log P(y|x)/π_y, up to a constant, for random class probabilities.",
            metric="log10_distance",
            method="adjusted",
            kind="bound",
            at_most=-8.0,
            unit="log10 of the largest distance of a logit",
            source=THEOREM,
            role="check",
            reported="0",
        ),
        Claim(
            "minimiser-pairs",
            "So is the family of pairwise margins, for random δ.",
            metric="log10_distance",
            method="pairs",
            kind="bound",
            at_most=-8.0,
            unit="log10 of the largest distance of a logit",
            source=THEOREM,
            role="check",
            reported="0",
        ),
        Claim(
            "label-margin-inconsistent",
            "LDAM's margin is not consistent: at more than a twentieth of random inputs it prefers a wrong class.",
            metric="wrong",
            method="label-margin",
            kind="bound",
            at_least=0.05,
            unit="share of inputs",
            source="section on earlier margins",
            role="stand-in",
            reported="not consistent",
        ),
        Claim(
            "equalised-inconsistent",
            "The equalised loss, not consistent either, prefers a wrong class at more than a twentieth as well.",
            metric="wrong",
            method="equalised",
            kind="bound",
            at_least=0.05,
            unit="share of inputs",
            source="section on earlier margins",
            role="stand-in",
            reported="not consistent",
        ),
    ),
    deviations=(
        "Probabilities and priors are softmax of 1.5 times normal numbers; minimised by Newton's method. " + PILOTS,
        "A loss that prefers a wrong class anywhere is not consistent; the twentieth asks how often, under our own law "
        "of inputs. At desk the equalised loss does at one in forty: it is refuted that this is often, not that it is "
        "so.",
    ),
    x64=True,
    over="data sets",
)

POSTERIORS = Experiment(
    "posteriors",
    title="Which τ is best where the probabilities are right?",
    trial=f"{TRIALS}:posteriors",
    arms=(Arm("posterior", "true posteriors"),),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", rows=50, prior=(0.9, 0.08, 0.02), taus=(0.0, 1.0, 2.0)),
        "smoke": Scale(
            16,
            block=16,
            cost=1.0,
            rows=20000,
            prior=(0.9, 0.08, 0.02),
            taus=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0),
        ),
        "desk": Scale(
            30,
            block=10,
            cost=3.0,
            rows=100000,
            prior=(0.9, 0.08, 0.02),
            taus=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0),
        ),
        "full": Scale(
            100,
            block=10,
            cost=60.0,
            rows=1000000,
            prior=(0.9, 0.08, 0.02),
            taus=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0),
        ),
    },
    claims=(
        Claim(
            "tau-one-exact",
            "With true posteriors no other τ has a balanced error lower by more than 0.002.",
            metric="gap",
            method="posterior",
            kind="bound",
            at_most=0.002,
            unit="balanced error",
            source="section 4: τ = 1 is the Bayes rule",
            role="check",
            reported="0",
        ),
        Claim(
            "price",
            "How much plain error, under the training frequencies, does the lowest balanced error cost?",
            metric="price",
            method="posterior",
            kind="question",
            unit="error",
            source="a reviewer's question: who pays?",
            role="extension",
        ),
    ),
    curves=(
        Curve("balanced", "tau", "Balanced error", "τ", "balanced error"),
        Curve("plain", "tau", "Error under the training frequencies", "τ", "error"),
    ),
    deviations=("Three Gaussians at random places in the plane. " + PILOTS,),
    over="data sets",
)

IDENTITY = Experiment(
    "identity",
    title="Is the adjusted loss plain training from another bias?",
    trial=f"{TRIALS}:identity",
    problem=DIGITS,
    arms=(
        Arm("free", "no decay", tau=1.0, decay=0.0),
        Arm("strong", "no decay, τ = 2", tau=2.0, decay=0.0),
        Arm("decay", "decay of the biases", tau=1.0, decay=0.01),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", problem={"head": 20, "ratio": 5.0}, hidden=4, steps=5),
        "smoke": Scale(16, block=16, cost=2.0, problem={"head": 40, "ratio": 10.0}, hidden=16, steps=50),
        "desk": Scale(20, block=10, cost=8.0, problem={"head": 90, "ratio": 30.0}, hidden=32, steps=300),
        "full": Scale(20, block=10, cost=120.0, problem={"head": 90, "ratio": 30.0}, hidden=64, steps=1000),
    },
    claims=(
        Claim(
            "identity",
            "Training a network with the adjusted loss is training it plainly from an output bias of τ log π, which is "
            "subtracted in the end: no parameter differs by more than 1e-9.",
            metric="log10_apart",
            method="free",
            kind="bound",
            at_most=-9.0,
            unit="log10 of the largest difference of a parameter",
            source="our own: what the two ways differ in",
            role="check",
        ),
        Claim(
            "identity-decay",
            "With weight decay on the output bias they are not one: the parameters differ by more than 0.001.",
            metric="log10_apart",
            method="decay",
            kind="bound",
            at_least=-3.0,
            unit="log10 of the largest difference of a parameter",
            source="our own: the authors' network decays its bias",
            role="extension",
        ),
    ),
    deviations=("Float64, Adam with all rows at each step. " + PILOTS,),
    data=("digits",),
    x64=True,
)
