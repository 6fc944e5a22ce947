"""Confidence intervals for scores: known bins, real scores, and what intervals without a promise do.

Tests, margins and sizes were committed before anything here was run; what had been seen before stands in
``deviations``.
"""

from laureate.lab.claim import Arm, Claim, Experiment, Scale

__all__ = ["BINS", "DATA", "MODELS", "SCORES", "SEEN", "TRIALS"]

TRIALS = "laureate.papers.pac_confidence.trials"
MODELS = "laureate.problems.two_models"
DATA = {"tiny": ("digits",), "smoke": ("digits",), "desk": ("mnist-5k",), "full": ("mnist-5k",)}
SEEN = (
    "Seen before the declaration: pilots of the notes, by another code, on other rates and models. Joint misses at "
    "δ = 0.1 with 10 bins of 1,000 rows: Clopper-Pearson 0.062, Wilson 0.102, Wald 0.290, without the union bound "
    "0.503. Real scores: 0.045, and histogram points too sure by more than 0.02 somewhere in 0.79 to 1.00 of draws. "
    "Cascade at ξ = 0.02: violations 0.002 for the sequence, 0.461 for the empirical threshold, shares 0.725 and 0.801."
)


def _interval(name: str, label: str, method: str = "", levels: str = "bonferroni") -> Arm:
    return Arm(name, label, method=method or name, levels=levels)


INTERVALS = (
    _interval("clopper-pearson", "Clopper-Pearson, δ/K"),
    _interval("sidak", "Clopper-Pearson, Šidák's level", "clopper-pearson", "sidak"),
    _interval("no-union", "Clopper-Pearson, δ for each bin", "clopper-pearson", "none"),
    _interval("wilson", "Wilson, δ/K"),
    _interval("jeffreys", "Jeffreys, δ/K"),
    _interval("wald", "Wald, δ/K"),
    _interval("hoeffding", "Hoeffding, δ/K"),
    _interval("histogram", "the share that was right, a point"),
    _interval("anything", "[0, 1]"),
)

BINS = Experiment(
    name="bins",
    title="Ten bins whose rates are known: how often is some interval wrong?",
    trial=f"{TRIALS}:bins",
    arms=INTERVALS,
    scales={
        "tiny": Scale(2, block=2, bins=3, draws=10, delta=0.1),
        "smoke": Scale(10, cost=1, bins=10, draws=200, delta=0.1),
        "desk": Scale(20, cost=5, bins=10, draws=1000, delta=0.1),
        "full": Scale(100, cost=60, bins=10, draws=4000, delta=0.1),
    },
    claims=(
        Claim(
            "guarantee",
            "In at most a share δ = 0.1 of calibration sets is any of the ten intervals wrong, with 300, 1,000 and "
            "5,000 rows.",
            metric="miss_worst",
            method="clopper-pearson",
            kind="bound",
            at_most=0.1,
            unit="share of calibration sets, the largest of three",
            source="theorem 1, which proves it",
            role="check",
        ),
        Claim(
            "guarantee-width",
            "Clopper and Pearson's is no empty promise: with 1,000 rows the intervals are narrower than Hoeffding's, "
            "which promise the same.",
            metric="width_1000",
            method="clopper-pearson",
            baseline="hoeffding",
            trivial="anything",
            unit="mean width",
            source="a reviewer's question",
            role="extension",
        ),
        Claim(
            "union-needed",
            "Without sharing δ among the bins some interval is wrong in more than three times δ of calibration sets of "
            "1,000 rows.",
            metric="miss_1000",
            method="no-union",
            kind="bound",
            at_least=0.3,
            unit="share of calibration sets",
            source="section 3, the union bound",
            role="extension",
        ),
        Claim(
            "wald-misses",
            "Wald's interval, with the same levels, is wrong somewhere in more than 2 δ of calibration sets of 1,000 "
            "rows.",
            metric="miss_1000",
            method="wald",
            kind="bound",
            at_least=0.2,
            unit="share of calibration sets",
            source="a reviewer's question",
            role="extension",
        ),
        Claim(
            "conservative",
            "How much of δ is wasted, and by whom? Joint misses with 1,000 rows; 0.1 would be exact.",
            metric="miss_1000",
            method="clopper-pearson",
            kind="question",
            unit="share of calibration sets",
            role="extension",
        ),
        Claim(
            "widths",
            "And what does it cost? Mean widths with 1,000 rows.",
            metric="width_1000",
            method="clopper-pearson",
            kind="question",
            unit="mean width",
            role="extension",
        ),
    ),
    deviations=(
        SEEN,
        "The paper shows one calibration set; the promise is one over calibration sets, so we draw thousands. Each "
        "seed has its own bins: masses from a flat Dirichlet law, rates within 0.1 of the bins' middles and "
        "cut to [0, 1].",
        "Where a rate was cut to 1, Wilson's upper end, which by rounding may be 2e-16 below 1, counts as a miss: his "
        "row of the tables is too high in some seeds. No claim reads it.",
    ),
    over_seeds="loop",
    over="data sets",
)

SCORES = Experiment(
    name="scores",
    title="Real scores: a classifier of digits, ten bins, calibration sets drawn from a pool whose rates are known",
    trial=f"{TRIALS}:scores",
    problem=f"{MODELS}:FastAndSlow",
    accepts=("pool",),
    arms=(
        *(arm for arm in INTERVALS if arm.name not in ("jeffreys", "hoeffding")),
        _interval("isotonic", "isotonic regression, a point"),
        _interval("temperature", "temperature scaling, a point"),
        _interval("raw", "the score itself, a point"),
    ),
    scales={
        "tiny": Scale(
            2, block=2, problem={"data": "digits", "train": 50, "steps": 5}, bins=3, rows=50, draws=5, delta=0.1
        ),
        "smoke": Scale(10, cost=11, problem={"data": "digits", "train": 60}, bins=10, rows=500, draws=100, delta=0.1),
        "desk": Scale(
            20, cost=53, problem={"data": "mnist-5k", "train": 300}, bins=10, rows=1000, draws=300, delta=0.1
        ),
        "full": Scale(
            100, cost=2000, problem={"data": "mnist-5k", "train": 300}, bins=20, rows=20_000, draws=300, delta=0.1
        ),
    },
    claims=(
        Claim(
            "guarantee-scores",
            "On real scores, too, some interval is wrong in at most a share δ = 0.1 of calibration sets.",
            metric="miss",
            method="clopper-pearson",
            kind="bound",
            at_most=0.1,
            unit="share of calibration sets",
            source="figure 2",
            role="check",
            reported="every shown bin's interval holds its accuracy, one calibration set, ImageNet",
        ),
        Claim(
            "others-miss",
            "Points over-claim: in more than half of the calibration sets histogram binning is too sure, by more than "
            "0.02, in some bin with more than 1 % of the scores.",
            metric="overclaims",
            method="histogram",
            kind="bound",
            at_least=0.5,
            unit="share of calibration sets",
            source="figure 2 and section 4, the comparison with calibrated points",
            role="stand-in",
        ),
        Claim(
            "others-miss-isotonic",
            "Isotonic regression, too, is so much too sure in some bin in more than half of the calibration sets.",
            metric="overclaims",
            method="isotonic",
            kind="bound",
            at_least=0.5,
            unit="share of calibration sets",
            source="a reviewer's question",
            role="extension",
        ),
        Claim(
            "others-miss-temperature",
            "Temperature scaling, too, is so much too sure in some bin in more than half of the calibration sets.",
            metric="overclaims",
            method="temperature",
            kind="bound",
            at_least=0.5,
            unit="share of calibration sets",
            source="section 4",
            role="stand-in",
        ),
        Claim(
            "intervals-do-not",
            "The interval's lower end is too high by more than 0.02 in some bin in at most a share δ/2 = 0.05 "
            "of calibration sets.",
            metric="overclaims",
            method="clopper-pearson",
            kind="bound",
            at_most=0.05,
            unit="share of calibration sets",
            source="theorem 1",
            role="check",
        ),
        Claim(
            "widths-scores",
            "How wide are the intervals where the scores are? Mean over the pool.",
            metric="width",
            method="clopper-pearson",
            kind="question",
            unit="width",
            role="extension",
        ),
    ),
    deviations=(
        SEEN,
        "A linear classifier of coarse digits, trained on 300 images of MNIST (smoke: 60 of scikit-learn's digits), "
        "ten bins and 1,000 calibration rows, where the paper has ResNet-101 on ImageNet, 20 bins and 20,000.",
        "Calibration sets are drawn with replacement from the images that were not trained on, whose rates are "
        "therefore known exactly. One pool of images: seeds differ in the images trained on and in the draws.",
        "A point that is right on average is too high in some of ten bins nearly always, by symmetry, and a bin with "
        "1 % of 1,000 scores has ten rows, whose share is off by 0.1: that points over-claim is the reason for "
        "intervals and no victory of theirs.",
        "A calibrator's claim for a bin of the raw score is its mean over the pool's scores in the bin.",
        "Raw is the control: its claim does not depend on the draw, so each seed gives 0 or 1.",
    ),
    data=DATA,
    over_seeds="loop",
)
