"""A map fitted to so many rows of the first half, and judged by rows of the second."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, view
from laureate.uncertainty import brier, ks_error, nll, top_scores

__all__ = ["facts", "trial"]

LEAST = 200


def facts(problem: Any) -> dict[str, Any]:
    """The rows that can be fitted; they must be enough and sound."""
    problem = view(problem)
    shape = np.shape(problem.probabilities)
    if len(shape) != 2 or shape[0] < LEAST or np.shape(problem.labels) != shape[:1]:
        raise UserError(
            f"scored.probabilities must be [rows >= {LEAST}, classes] with a label each; got {list(shape)} and "
            f"{list(np.shape(problem.labels))}."
        )
    try:
        top_scores(jnp.asarray(problem.probabilities), jnp.asarray(problem.labels))
    except ValueError as error:
        raise UserError(f"scored: {error}") from error
    return {"largest": shape[0] // 2}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """A seed draws the rows that are fitted and those that judge; tuning never sees the second half."""
    clock, scored = Clock(scale), view(problem)
    p, y = (np.asarray(part) for part in top_scores(jnp.asarray(scored.probabilities), jnp.asarray(scored.labels)))
    half = len(p) // 2
    # Maps are fitted to rows before `known`; while tuning, the last third of the first half judges.
    known, end = (half * 2 // 3, half) if scale.phase == "tune" else (half, len(p))
    first, second = jax.random.split(key)
    fitted = np.asarray(jax.random.permutation(first, known))
    asked = known + np.asarray(jax.random.permutation(second, end - known))[: (end - known) // 2]
    for target in clock.targets():
        rows = fitted[: min(target, known)]
        gamma = clock.run(_mapped, made(arm), p[rows], y[rows], p[asked])
        found = clock.run(_judge, gamma, y[asked], free=True)
        clock.note(len(rows), **found)
    return clock.record()


def _mapped(calibrator: Any, p: Any, y: Any, asked: Any) -> Any:
    return calibrator.fit(p, y).transform(asked)


def _judge(gamma: Any, y: Any) -> dict[str, Any]:
    return {"brier": brier(gamma, y), "nll": nll(gamma, y), "ks": ks_error(gamma, y)}
