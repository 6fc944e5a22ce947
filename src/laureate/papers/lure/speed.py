"""Many labelling sessions with their estimates beside the same in NumPy, one pick after the other."""

import jax
import jax.numpy as jnp
import numpy as np

from laureate.active import lure_risk, plackett_luce
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS"]

POOL, PICKS, SESSIONS = 1500, 50, 200


def _pool() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.exponential(size=POOL)
    return scores, scores * rng.exponential(size=POOL)


def our_sessions() -> Side:
    """All sessions at once: Gumbel noise, the largest, weights, a standard error."""
    scores, losses = (jnp.asarray(x, jnp.float32) for x in _pool())

    def session(key):
        picks, log_q = plackett_luce(key, jnp.log(scores), PICKS)
        return lure_risk(losses[picks], log_q, POOL, log=True)

    run = jax.jit(jax.vmap(session))
    keys = jax.random.split(jax.random.key(0), SESSIONS)
    return Side(lambda: run(keys).value, note="With a standard error for each.")


def their_sessions() -> Side:
    """A loop over sessions and picks, as published code labels: ``Generator.choice`` among those left."""
    scores, losses = _pool()

    def session(generator):
        left, value = scores.copy(), 0.0
        for m in range(1, PICKS + 1):
            p = left / left.sum()
            pick = generator.choice(POOL, p=p)
            v = 1 + (POOL - PICKS) / (POOL - m) * (1 / ((POOL - m + 1) * p[pick]) - 1)
            value += v * losses[pick] / PICKS
            left[pick] = 0
        return value

    return Side(lambda: np.array([session(np.random.default_rng(i)) for i in range(SESSIONS)]), note="Without one.")


COMPARISONS = (
    Comparison(
        work=f"{SESSIONS} sessions of {PICKS} labels from a pool of {POOL:,}, with LURE",
        peer="NumPy, pick after pick",
        package="numpy",
        ours=our_sessions,
        theirs=their_sessions,
    ),
)
