"""A row for every calibration map, every kind of prediction sets and intervals; ``laureate.testing`` has the checks."""

from fractions import Fraction

import numpy as np
import pytest
from row_types import of_rows

from laureate.testing import check_calibrator, check_confidence_intervals, check_prediction_sets
from laureate.uncertainty import (
    APS,
    LAC,
    RAPS,
    SAPS,
    Beta,
    Constant,
    HistogramBinning,
    Identity,
    Isotonic,
    NaiveSets,
    PACConfidence,
    Platt,
    ScoreSets,
    SplineCalibrator,
    Temperature,
    TopK,
)

GENERATOR = np.random.default_rng(0)
P = np.round(GENERATOR.beta(3, 1, 60), 2)
Y = (GENERATOR.random(60) < P**2).astype(np.float32)
CALIBRATORS = {
    "beta": Beta(),
    "constant": Constant(),
    "histogram": HistogramBinning(4),
    "identity": Identity(),
    "isotonic": Isotonic(),
    "platt": Platt(),
    "spline": SplineCalibrator(4),
    "spline-free": SplineCalibrator((0.0, 0.3, 1.0), target="direct", ends="free", monotone=True),
    "temperature": Temperature(),
}
# Settings that are tuned for alpha move with it; sets that promise nothing are not counted.
# Of the others the temperature is fitted, on the tuning part.
UNTUNED = {"unused": ("tune_fraction",)}
SETS = {
    "raps": (RAPS(k_reg=2, lam=0.05), {}),
    "raps-tuned": (RAPS(), {"skip": ("a larger alpha gives subsets",)}),
    "aps": (APS(temperature=1.0), UNTUNED),
    "aps-rounded": (APS(randomized=False, empty="top1"), {"draws": False, "exact": False}),
    "lac": (LAC(), {"draws": False}),
    "naive": (NaiveSets(), {"skip": ("coverage",)}),
    "saps": (SAPS(0.2, lam=0.1), {}),
    "score": (ScoreSets(lambda p, u: (1 - p) / p, input="proba"), {"proba": True, "draws": False} | UNTUNED),
    "top-k": (TopK(), {}),
}
# Without a share for each bin, or with an approximate interval, nothing is promised.
NO_PROMISE = ("coverage", "coverage of groups")
INTERVALS = {
    "bonferroni": (PACConfidence(), {}),
    "sidak-hoeffding": (PACConfidence(0.2, method="hoeffding", levels="sidak", bins=(0.0, 0.2, 0.5, 0.8, 1.0)), {}),
    # The four scores are in a bin of their own each, of four bins or five.
    "wilson": (
        PACConfidence(0.3, method="wilson", levels="none", bins=4),
        {"skip": NO_PROMISE, "unused": ("bins",)},
    ),
}
TYPES = of_rows("test_calibrator", CALIBRATORS)
for test, rows in (("test_prediction_sets", SETS), ("test_confidence_intervals", INTERVALS)):
    TYPES |= of_rows(test, rows, lambda row: type(row[0]))


def newton_steps(features, targets, theta):
    """How many steps Newton's method takes in single precision, one more or less by rounding: by its rule.

    Steps are halved until they descend, and end with one that is next to nothing.
    """
    eps = np.finfo(np.float32).eps
    features, targets, theta = (np.asarray(part, np.float32) for part in (features, targets, theta))
    loss = lambda q: np.mean(np.logaddexp(0, features @ q) - targets * (features @ q))  # noqa: E731
    scale = 1.0
    for count in range(1, 51):
        chance = 1 / (1 + np.exp(-features @ theta))
        slope, bent = features.T @ (chance - targets), (features * (chance * (1 - chance))[:, None]).T @ features
        move = -scale * np.linalg.solve(bent / len(P) + eps * np.eye(len(theta)), slope / len(P))
        descends = loss(theta + move) <= loss(theta) * (1 + 4 * eps)
        done = np.all(np.abs(move) <= eps**0.75 * (1 + np.abs(theta)))
        theta, scale = (np.float32(theta + move), 1.0) if descends else (theta, scale / 2)
        if done:
            return count
    return 50


def pooling_rounds():
    """How often all neighbouring blocks whose means do not rise are pooled, until all do."""
    scores, groups = np.unique(P, return_inverse=True)
    blocks, rounds = [np.flatnonzero(groups == one).tolist() for one in range(len(scores))], 0
    while True:
        means, rounds = [Fraction(int(Y[block].sum()), len(block)) for block in blocks], rounds + 1
        pooled = [blocks[0]]
        for place in range(1, len(blocks)):
            if means[place - 1] >= means[place]:
                pooled[-1] = pooled[-1] + blocks[place]
            else:
                pooled.append(blocks[place])
        if len(pooled) == len(blocks):
            return rounds
        blocks = pooled


def costs():
    """Passes over the rows: one where nothing is iterated; by Newton's method its steps, of beta those of four fits."""
    low, high = (np.log(np.clip(part, 1e-7, 1)) for part in (P, 1 - P))
    ones, hits = np.ones_like(low), 2 * Y.sum()
    targets = np.where(Y == 1, (hits + 1) / (hits + 2), 1 / (2 * len(Y) - hits + 2))  # every row stands twice
    beta = np.stack([low, -high, ones], axis=1)
    allowed = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [0, 0, 1]])
    steps = {
        "platt": [newton_steps(np.stack([low - high, ones], axis=1), targets, [1, 0])],
        "temperature": [newton_steps((low - high)[:, None], Y, [1])],
        "beta": [newton_steps(beta * one, Y, one * [1, 1, 0]) for one in allowed],
    }
    around = {name: (sum(each) - len(each), sum(each) + len(each)) for name, each in steps.items()}
    plain = dict.fromkeys(("constant", "histogram", "spline", "spline-free"), 1)
    return around | plain | {"identity": 0, "isotonic": pooling_rounds()}


COSTS = costs()
SLOW = {"spline-free"}  # of which `spline` is a sibling


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CALIBRATORS])
def test_calibrator(name):
    check_calibrator(CALIBRATORS[name], P, Y, cost=COSTS[name])


@pytest.mark.parametrize("name", SETS)
def test_prediction_sets(name):
    estimator, options = SETS[name]
    check_prediction_sets(estimator, **options)


@pytest.mark.parametrize("name", INTERVALS)
def test_confidence_intervals(name):
    estimator, options = INTERVALS[name]
    check_confidence_intervals(estimator, groups=True, **options)
