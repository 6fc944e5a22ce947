"""Sessions of labelling on a pool whose losses are known: how far the estimated mean is from the true one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, traced, view

__all__ = ["facts", "trial"]

FEWEST = 80


def facts(problem: Any) -> dict[str, Any]:
    """The labels that can be paid for, which is the budget."""
    pool = view(problem)
    losses, scores = (np.asarray(part, float) for part in (pool.losses, pool.scores))
    if losses.ndim != 1 or len(losses) < FEWEST or scores.shape != losses.shape:
        raise UserError(
            f"pool.losses must be [n >= {FEWEST}] and pool.scores a number for each; got {list(losses.shape)} and "
            f"{list(scores.shape)}."
        )
    if not (np.isfinite(losses).all() and np.isfinite(scores).all() and (scores >= 0).all() and scores.any()):
        raise UserError("pool.losses must be finite, and pool.scores finite, >= 0 and somewhere above 0.")
    if any(part.mean() == 0 for part in halves(losses)):
        raise UserError("pool.losses must not average 0, for errors are relative to their mean.")
    most = len(losses) // 4
    labels = int(getattr(pool, "num_labels", max(8, len(losses) // 20)))
    if not 8 <= labels <= most:
        raise UserError(f"pool.num_labels must be between 8 and {most}, half of what scores; got {labels}.")
    return {"budget": labels, "largest": most}


def halves(values: Any) -> tuple[Any, Any]:
    """What tunes, and what scores."""
    order = np.random.default_rng(0).permutation(len(values))
    middle = len(values) // 2
    return values[order[:middle]], values[order[middle:]]


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """Many sessions a seed, each with a key of its own, the same for all entrants."""
    clock, pool, settings = Clock(scale), view(problem), traced(arm)
    part = 0 if scale.phase == "tune" else 1
    losses, scores = (jnp.asarray(halves(np.asarray(x))[part], jnp.float32) for x in (pool.losses, pool.scores))
    keys = jax.random.split(key, int(scale.sessions))
    for target in clock.targets():
        labels = min(target, len(losses))
        found = clock.run(_sessions, settings, losses, scores, keys, labels)
        clock.note(labels, **found)
        if clock.pilot and labels < target:
            break
    return clock.record()


def _sessions(settings: dict, losses: Any, scores: Any, keys: Any, labels: int) -> dict[str, Any]:
    acquisition, risk = made(settings)
    truth = jnp.mean(losses)

    def session(key):
        def pick(state, key):
            index, state, info = acquisition.step(key, scores, state)
            return state, (index, info.q)

        _, (picks, q) = jax.lax.scan(pick, acquisition.init(len(scores)), jax.random.split(key, labels))
        found = risk(losses[picks], q, len(scores))
        return found.value - truth, found.standard_error

    gap, error = jax.vmap(session)(keys)
    return {
        "error": jnp.sqrt(jnp.mean(gap**2)) / jnp.abs(truth),
        "bias": jnp.abs(jnp.mean(gap) / truth),
        "covered": jnp.mean(jnp.abs(gap) <= 2 * error),
    }
