"""Certified thresholds: a cascade of two classifiers, and a shield for a policy."""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Scale
from laureate.papers.pac_confidence.experiments import DATA, MODELS, SEEN, TRIALS

__all__ = ["CASCADE", "SHIELD"]

GRIDS = (5, 20, 51, 200)

CASCADE = Experiment(
    name="cascade",
    title="A fast and a slow classifier of digits: is the error gap kept, and how many inputs are spared the slow one?",
    trial=f"{TRIALS}:cascade",
    problem=f"{MODELS}:FastAndSlow",
    accepts=("pool",),
    arms=(
        Arm("sequence", "Clopper-Pearson, fixed sequence", method="sequence"),
        Arm("difference", "the same, of the difference", method="difference"),
        Arm("union", "Clopper-Pearson, union over thresholds", method="union"),
        Arm("hoeffding", "Hoeffding, fixed sequence", method="hoeffding"),
        Arm("empirical", "the threshold that fits the calibration rows", method="empirical"),
        Arm("always-slow", "always the slow model", method="slow"),
        Arm("always-fast", "always the fast model", method="fast"),
    ),
    scales={
        "tiny": Scale(
            2, block=2, problem={"data": "digits", "train": 50, "steps": 5}, rows=120, draws=5, delta=0.1, grids=(3, 5)
        ),
        "smoke": Scale(
            10, cost=5, problem={"data": "digits", "train": 200}, rows=1000, draws=200, delta=0.1, grids=GRIDS
        ),
        "desk": Scale(
            20, cost=30, problem={"data": "mnist-5k", "train": 1000}, rows=1000, draws=1000, delta=0.1, grids=GRIDS
        ),
        "full": Scale(
            100, cost=500, problem={"data": "mnist-5k", "train": 1000}, rows=20_000, draws=1000, delta=0.1, grids=GRIDS
        ),
    },
    claims=(
        Claim(
            "cascade-gap",
            "With the certified threshold the cascade's error exceeds the slow model's by more than ξ = 0.02 in at "
            "most a share δ = 0.1 of calibration sets.",
            metric="violation_2",
            method="sequence",
            kind="bound",
            at_most=0.1,
            unit="share of calibration sets",
            source="theorem 2, which proves it",
            role="check",
            reported="23.26 % error against the slow network's 22.32 %, one calibration set",
        ),
        Claim(
            "cascade-gap-union",
            "With a union over thresholds, too, the gap exceeds ξ = 0.02 in at most a share δ = 0.1 of "
            "calibration sets.",
            metric="violation_2",
            method="union",
            kind="bound",
            at_most=0.1,
            unit="share of calibration sets",
            source="theorem 2",
            role="check",
        ),
        Claim(
            "cascade-gap-difference",
            "And so with the bound of the difference: in at most a share δ = 0.1 of calibration sets.",
            metric="violation_2",
            method="difference",
            kind="bound",
            at_most=0.1,
            unit="share of calibration sets",
            source="theorem 2",
            role="check",
        ),
        Claim(
            "cascade-others",
            "The threshold that just fits the calibration rows breaks the promise in more than 3 δ of calibration "
            "sets.",
            metric="violation_2",
            method="empirical",
            kind="bound",
            at_least=0.3,
            unit="share of calibration sets",
            source="figure 3: thresholds by calibrated points miss the bound",
            role="stand-in",
            reported="24.54 % error where 23.26 % keeps the bound",
        ),
        Claim(
            "cascade-saves",
            "The certified threshold spares the slow model more than half of the inputs.",
            metric="share_2",
            method="sequence",
            kind="bound",
            at_least=0.5,
            trivial="always-slow",
            unit="share of inputs",
            source="figure 3",
            role="stand-in",
            reported="32 % fewer operations, 54 % less time on a GPU",
        ),
        Claim(
            "cascade-price",
            "The certificate costs at most 0.15 of the inputs: so many more go to the slow model than with the loosest "
            "threshold that keeps the gap.",
            metric="regret_2",
            method="sequence",
            kind="bound",
            at_most=0.15,
            unit="share of inputs",
            source="theorem 3, optimality among thresholds",
            role="extension",
        ),
        Claim(
            "sequence-pays",
            "Trying thresholds in order spares more than a union bound over 51 of them, by more than 0.02.",
            metric="share_2",
            method="sequence",
            baseline="union",
            better="higher",
            margin=0.02,
            unit="share of inputs",
            source="our own default",
            role="extension",
        ),
        Claim(
            "cascade-shares",
            "What share does each spare at the tighter ξ = 0.01?",
            metric="share_1",
            method="sequence",
            kind="question",
            unit="share of inputs",
            role="extension",
        ),
    ),
    deviations=(
        SEEN,
        "A linear classifier of coarse digits and kernel ridge regression on whole ones, both trained on 1,000 images "
        "of MNIST (smoke: 200 of scikit-learn's digits), 1,000 calibration rows and 51 thresholds; the paper has an "
        "exit in ResNet-101 on ImageNet. Operations and seconds are not measured: only how many inputs the slow model "
        "is spared.",
        "Calibration sets are drawn with replacement from the images that were not trained on, on which the gap of "
        "every threshold is known exactly. One pool of images: seeds differ in the images trained on and in the draws.",
        "How the paper splits δ among its bounds we know at second hand, so its own rule is no arm: the fixed sequence "
        "is ours, and what cascade-saves measures is ours too. Always the slow model, which spares nothing, is beaten "
        "by every threshold.",
        "A threshold that fits an estimate which is right on average breaks the promise about every other time, by "
        "symmetry: that is the reason for a certificate, and holds for any two models.",
        "The loosest threshold that keeps the gap is looked for on the pool, among the same 51.",
    ),
    curves=(
        Curve(
            "grid_shares", "grid_sizes", "Spared inputs at ξ = 0.02", "thresholds tried", "share of inputs", log_x=True
        ),
    ),
    data=DATA,
    over_seeds="loop",
)

SHIELD = Experiment(
    name="shield",
    title="A policy with a safe fallback: is the risk kept?",
    trial=f"{TRIALS}:shield",
    arms=(
        Arm("product", "the product of two bounds", method="product"),
        Arm("direct", "counting unsafe rollouts with the shield", method="direct"),
        Arm("empirical", "the threshold that fits the rollouts", method="empirical"),
        Arm("fallback", "always the fallback", method="fallback"),
    ),
    scales={
        "tiny": Scale(2, block=2, rows=60, draws=5, delta=0.1, risk=0.05, unsafe=0.3),
        "smoke": Scale(10, cost=1, rows=1000, draws=300, delta=0.1, risk=0.05, unsafe=0.7),
        "desk": Scale(20, cost=2, rows=1000, draws=1000, delta=0.1, risk=0.05, unsafe=0.7),
        "full": Scale(100, cost=40, rows=1000, draws=2000, delta=0.1, risk=0.05, unsafe=0.7),
    },
    claims=(
        Claim(
            "shield",
            "The certified threshold lets more than 5 % of rollouts become unsafe in at most a share δ = 0.1 of "
            "calibrations.",
            metric="violation",
            method="product",
            kind="bound",
            at_most=0.1,
            unit="share of calibrations",
            source="section 6",
            role="check",
        ),
        Claim(
            "shield-others",
            "The threshold that just fits the rollouts lets more than 5 % become unsafe in more than 3 δ of "
            "calibrations.",
            metric="violation",
            method="empirical",
            kind="bound",
            at_least=0.3,
            unit="share of calibrations",
            source="section 6, naive thresholds",
            role="stand-in",
        ),
        Claim(
            "shield-use",
            "How often is the policy trusted in a state that is not unsafe?",
            metric="use",
            method="product",
            kind="question",
            unit="share of safe states",
            role="extension",
        ),
    ),
    deviations=(
        "A closed form where the paper has a robot in a simulated house: a policy alone becomes unsafe in 0.7 of "
        "rollouts, as the paper's; scores at first unsafe states are Beta(1, b), elsewhere Beta(b, 1), with b between "
        "3 and 6, another for each seed.",
        "Seen before the declaration: 3.0 % of violations for the product, 9.0 % for direct counting, in a similar "
        "toy.",
        "A threshold that fits the rollouts breaks the promise about every other time, by symmetry. The trial has the "
        "bounds and the sequence of `Shield` in closed form and does not call it.",
        "Direct counting needs new rollouts with the shield for every threshold; here it is given them, and the first "
        "unlucky of 201 ends the sequence.",
    ),
    over_seeds="loop",
    over="data sets",
)
