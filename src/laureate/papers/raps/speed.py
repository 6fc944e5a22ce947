"""RAPS beside MAPIE: the same probabilities, k_reg and λ; calibration and the sets of 5,000 inputs of 1,000 classes."""

from typing import Any

import jax
import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.uncertainty import RAPS

__all__ = ["COMPARISONS", "K_REG", "LAM", "our_side", "rows", "their_side"]

ROWS, CALIBRATION, CLASSES, K_REG, LAM = 5000, 5000, 1000, 3, 0.1


def rows(num_rows: int, num_classes: int) -> tuple[Any, Any]:
    """Probabilities in float32, and labels drawn from them."""
    generator = np.random.default_rng(0)
    logits = generator.uniform(2, 16, size=(num_rows, 1)) * generator.normal(size=(num_rows, num_classes))
    y = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True)).astype(np.float32), y


def our_side(num_rows: int = ROWS, num_calibration: int = CALIBRATION, num_classes: int = CLASSES) -> Side:
    """Fit and sets, from probabilities."""
    p, y = rows(num_rows + num_calibration, num_classes)
    raps = RAPS(k_reg=K_REG, lam=LAM, temperature=1.0, input="proba")
    calls = 0

    def run():
        nonlocal calls
        calls += 1
        fit_key, set_key = jax.random.split(jax.random.key(calls))
        return raps.fit(fit_key, p[num_rows:], y[num_rows:]).predict_set(set_key, p[:num_rows])

    return Side(run)


def their_side(num_rows: int = ROWS, num_calibration: int = CALIBRATION, num_classes: int = CLASSES) -> Side:
    """The same by MAPIE."""
    raise NotImplementedError


COMPARISONS = (
    Comparison(
        work=f"RAPS from probabilities: {CALIBRATION} rows to calibrate, {ROWS} sets, {CLASSES} classes",
        peer="MAPIE",
        package="mapie",
        ours=our_side,
        theirs=their_side,
    ),
)
