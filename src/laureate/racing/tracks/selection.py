"""Made-up responses on a real table: which variables are found, and how many of them are false."""

import warnings
from typing import Any

import jax
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, view

__all__ = ["facts", "trial"]

SHARE = 0.3  # of the columns that are true variables
STRENGTH = 5.0  # of a true variable, in standard errors of its coefficient


def facts(problem: Any) -> dict[str, Any]:
    """The bound on false discoveries."""
    problem = view(problem)
    shape = np.shape(problem.X)
    if len(shape) != 2 or np.shape(problem.y) != shape[:1] or shape[0] < 40 or shape[1] < 5:
        raise UserError(
            f"table.X must be [rows >= 40, columns >= 5] and table.y a number a row; got {list(shape)} and "
            f"{list(np.shape(problem.y))}."
        )
    if not all(np.isfinite(np.asarray(values, float)).all() for values in (problem.X, problem.y)):
        raise UserError("table.X and table.y must be finite.", "Leave out rows that are not.")
    q = float(getattr(problem, "q", 0.2))
    if not 0 < q < 1:
        raise UserError(f"table.q must lie between 0 and 1; got {q:g}.")
    return {"q": q}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same made-up response for all entrants of a seed."""
    clock, table = Clock(scale), view(problem)
    x, y = np.asarray(table.X, float), np.asarray(table.y, float)
    rows, columns = x.shape
    standard = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1.0)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint32))
    true = np.zeros(columns, bool)
    true[rng.permutation(columns)[: max(1, round(SHARE * columns))]] = True
    signs = rng.choice([-1.0, 1.0], columns)
    noise = rng.permutation((y - y.mean()) / max(float(y.std()), 1e-12))
    response = standard @ (true * signs) * STRENGTH / np.sqrt(rows) + noise
    for target in clock.targets():
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a table that fails the validity test is still raced; false ones are counted
            selector = made(arm, budget=target)
            clock.timed(selector.fit, standard, response)
        found = np.asarray(selector.get_support())
        hits = int((found & true).sum())
        clock.note(
            target,
            f1=2 * hits / max(1, int(found.sum()) + int(true.sum())),
            power=hits / int(true.sum()),
            false=int((found & ~true).sum()) / max(1, int(found.sum())),
        )
        if clock.pilot:
            break
    return clock.record()
