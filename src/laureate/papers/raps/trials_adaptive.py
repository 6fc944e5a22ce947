"""Is it the grid? RAPS tuned for adaptiveness with the paper's penalties and with more."""

from typing import Any

import jax
import numpy as np
from jax import Array

from laureate.lab.claim import Settings
from laureate.problems.scores import DigitNumbers
from laureate.uncertainty import RAPS, rank_label, worst_violation

__all__ = ["adaptive"]

ALPHA = 0.1
PENALTIES = (0.0, 1e-5, 1e-4, 8e-4, 9e-4, 1e-3, 1.5e-3, 2e-3, 5e-3, 0.01, 0.03, 0.1)


def adaptive(key: Array, arm: Settings, problem: DigitNumbers, scale: Settings) -> dict[str, Any]:
    """The worst violation with penalties up to ``arm.most``; with none it is APS."""
    row_key, fit_key, set_key = jax.random.split(key, 3)
    logits, y = (np.asarray(v) for v in problem.sample(row_key, scale.tune + scale.calibrate + scale.test))
    lams = [lam for lam in PENALTIES if lam <= arm.most]
    method = RAPS(ALPHA, lams=lams, criterion="adaptive", tune_fraction=scale.tune / (scale.tune + scale.calibrate))
    method.fit(fit_key, logits[scale.test :], y[scale.test :])
    size = method.predict_size(set_key, logits[: scale.test])
    covered = rank_label(logits[: scale.test], y[: scale.test]).rank <= size
    found = {"violation": worst_violation(size, covered, ALPHA), "size": size.mean(), "lam": method.lam_}
    return {name: np.float32(value) for name, value in found.items()}
