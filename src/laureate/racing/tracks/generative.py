"""Training on half of the pairs; draws for inputs kept apart are judged by the answers that came."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.generative import diversity, energy_score
from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view

__all__ = ["facts", "trial"]

BATCH = 64
SAMPLES = 16
DEAREST = 62  # passes of a step of cGML with 20 steps in the latent


def facts(problem: Any) -> dict[str, Any]:
    """The batch, and the cost of a few steps; another seed has other first weights."""
    problem = view(problem)
    x, y = (np.asarray(part, np.float64) for part in (problem.x, problem.y))
    if min(x.ndim, y.ndim) < 2 or len(x) != len(y) or len(x) < 32:
        raise UserError(
            f"pairs.x and pairs.y must be [n >= 32, ...] with as many rows; got {list(x.shape)} and {list(y.shape)}.",
            "Numbers in a row become a column by values[:, None].",
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise UserError("pairs.x and pairs.y must be finite; got nan or inf.", "Drop those rows.")
    return {"batch": min(BATCH, len(x) // 2), "seed": 0, "smallest": 8 * DEAREST}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same pairs and batches for all entrants of a seed; tuning is judged by other pairs than scoring."""
    clock, settings = Clock(scale), traced(arm)
    seed_key, run_key, draw_key = jax.random.split(key, 3)
    train, judged = _parts(view(problem), str(scale.phase))
    seed = jax.random.randint(seed_key, (), 0, 2**31 - 1)
    carry = clock.run(_begin, settings, train, seed)
    for target in clock.targets():
        carry = clock.run(_advance, settings, train, seed, run_key, carry, jnp.asarray(target, jnp.int32))
        clock.note(int(carry[2]), **clock.run(_judge, settings, train, judged, seed, draw_key, carry[0], free=True))
    return clock.record()


class _Pairs:
    """What the code calls the problem, with arrays of the program."""

    def __init__(self, x: Any, y: Any):
        self.x, self.y = x, y


def _parts(problem: Any, phase: str) -> tuple[Any, Any]:
    """Pairs to train on and pairs to be judged by, in deviations of the first; whose is which is no seed's doing."""
    x, y = (np.asarray(part, np.float32) for part in (problem.x, problem.y))
    order = np.random.default_rng(0).permutation(len(x))
    half, quarter = len(x) // 2, len(x) // 4
    first = half if phase == "tune" else half + quarter
    rows, others = order[:half], order[first : first + quarter]
    scaled = [(part - part[rows].mean(0)) / (part[rows].std(0) + 1e-6) for part in (x, y)]
    return tuple(part[rows] for part in scaled), tuple(part[others] for part in scaled)


def _model(settings: dict, train: Any, seed: Any) -> Any:
    return made(settings | {"seed": seed}, pairs=_Pairs(*train))


def _begin(settings: dict, train: Any, seed: Any) -> Any:
    return _model(settings, train, seed).init(), jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32)


def _advance(settings: dict, train: Any, seed: Any, key: Any, carry: Any, target: Any) -> Any:
    model = _model(settings, train, seed)
    state, count, cost = carry

    def update(state, index):
        state, info = model.train(key, *train, state, num_steps=1, batch=settings["batch"])
        return state, info.cost[0]

    return spend(update, state, count, cost, target)


def _judge(settings: dict, train: Any, judged: Any, seed: Any, key: Any, state: Any) -> dict[str, Any]:
    x, y = judged
    samples = _model(settings, train, seed).sample(key, state, x, SAMPLES)
    return {
        "score": jnp.mean(jax.vmap(energy_score, (1, 0))(samples, y)),
        "error": jnp.mean(jnp.abs(samples - y[None])),
        "diversity": jnp.mean(jax.vmap(diversity, 1)(samples)),
    }
