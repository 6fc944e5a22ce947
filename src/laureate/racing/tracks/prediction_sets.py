"""Sets of labels calibrated on some rows and judged on others."""

import warnings
from typing import Any

import jax
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, view
from laureate.uncertainty import rank_label, worst_violation

__all__ = ["facts", "trial"]

FEWEST = 200  # calibration rows with which something can be tuned


def facts(problem: Any) -> dict[str, Any]:
    """The share of sets that may miss, and the rows that can calibrate."""
    problem = view(problem)
    shape = np.shape(problem.scores)
    if len(shape) != 2 or shape[1] < 2 or np.shape(problem.labels) != shape[:1] or shape[0] < 4 * FEWEST:
        raise UserError(
            f"scored.scores must be [rows >= {4 * FEWEST}, classes >= 2] and scored.labels an index a row; got "
            f"{list(shape)} and {list(np.shape(problem.labels))}."
        )
    labels, alpha = np.asarray(problem.labels), float(getattr(problem, "alpha", 0.1))
    if not np.isfinite(np.asarray(problem.scores)).all():
        raise UserError("scored.scores must be finite.", "Leave out rows that are not.")
    if not np.isin(labels, np.arange(shape[1])).all():
        raise UserError(
            f"scored.labels must be whole numbers from 0 to {shape[1] - 1}; got {labels.min():g} to {labels.max():g}."
        )
    if not 0 < alpha < 1:
        raise UserError(f"scored.alpha must lie between 0 and 1; got {alpha:g}.")
    return {"alpha": alpha, "largest": shape[0] // 4}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same rows for all entrants of a seed: one half of all is for tuning the race's settings, one for scoring."""
    clock, scored = Clock(scale), view(problem)
    scores, labels = np.asarray(scored.scores), np.asarray(scored.labels)
    split_key, fit_key, set_key = jax.random.split(key, 3)
    half = len(labels) // 2
    rows = np.asarray(jax.random.permutation(split_key, half)) + (0 if scale.phase == "tune" else half)
    for target in clock.targets():
        count = min(max(target, FEWEST), half // 2)
        known, judged = rows[:count], rows[half // 2 :]
        method = made(arm)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # equal rows; judged by other ones all the same
            method.fit(fit_key, scores[known], labels[known])  # compiles what draws: nobody's time
            clock.timed(method.fit, fit_key, scores[known], labels[known])
        size = clock.timed(method.predict_size, set_key, scores[judged])
        rank = rank_label(scores[judged], labels[judged]).rank
        covered, hard = rank <= size, rank > 1
        clock.note(
            count,
            size=size.mean(),
            violation=worst_violation(size, covered, arm.alpha),
            hard=covered[hard].sum() / max(1, hard.sum()),
            coverage=covered.mean(),
        )
        if clock.pilot and count < target:
            break
    return clock.record()
