"""A row for every calibration map, every kind of prediction sets and intervals; ``laureate.testing`` has the checks."""

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
SETS = {
    "raps": (RAPS(k_reg=2, lam=0.05), {}),
    "raps-tuned": (RAPS(), {"skip": ("a larger alpha gives subsets",)}),
    "aps": (APS(temperature=1.0), {}),
    "aps-rounded": (APS(randomized=False, empty="top1"), {"draws": False, "exact": False}),
    "lac": (LAC(), {"draws": False}),
    "naive": (NaiveSets(), {"skip": ("coverage",)}),
    "saps": (SAPS(0.2, lam=0.1), {}),
    "score": (ScoreSets(lambda p, u: (1 - p) / p, input="proba"), {"proba": True, "draws": False}),
    "top-k": (TopK(), {}),
}
# Without a share for each bin, or with an approximate interval, nothing is promised.
NO_PROMISE = ("coverage", "coverage of groups")
INTERVALS = {
    "bonferroni": (PACConfidence(), ()),
    "sidak-hoeffding": (PACConfidence(0.2, method="hoeffding", levels="sidak", bins=(0.0, 0.2, 0.5, 0.8, 1.0)), ()),
    "wilson": (PACConfidence(0.3, method="wilson", levels="none", bins=4), NO_PROMISE),
}
TYPES = of_rows("test_calibrator", CALIBRATORS)
for test, rows in (("test_prediction_sets", SETS), ("test_confidence_intervals", INTERVALS)):
    TYPES |= of_rows(test, rows, lambda row: type(row[0]))
# Passes over the rows, where nothing is iterated.
COSTS = {"identity": 0, **dict.fromkeys(("constant", "histogram", "spline", "spline-free"), 1)}
SLOW = {"spline-free"}  # of which `spline` is a sibling


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CALIBRATORS])
def test_calibrator(name):
    check_calibrator(CALIBRATORS[name], P, Y, cost=COSTS.get(name))


@pytest.mark.parametrize("name", SETS)
def test_prediction_sets(name):
    estimator, options = SETS[name]
    check_prediction_sets(estimator, **options)


@pytest.mark.parametrize("name", INTERVALS)
def test_confidence_intervals(name):
    estimator, skip = INTERVALS[name]
    check_confidence_intervals(estimator, groups=True, skip=skip)
