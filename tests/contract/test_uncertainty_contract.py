"""A row for every calibration map; ``laureate.testing`` has the checks."""

import numpy as np
import pytest

from laureate.testing import check_calibrator
from laureate.uncertainty import (
    Beta,
    Constant,
    HistogramBinning,
    Identity,
    Isotonic,
    Platt,
    SplineCalibrator,
    Temperature,
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
TYPES = {type(one) for one in CALIBRATORS.values()}
# Platt has the fit of the others, `spline` that of its sibling; two compute nothing.
SLOW = {"beta", "constant", "identity", "spline-free", "temperature"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CALIBRATORS])
def test_calibrator(name):
    check_calibrator(CALIBRATORS[name], P, Y)
