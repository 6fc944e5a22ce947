"""Adam on an unroll, driven by an estimator: the loss of fresh episodes at equal inner steps."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.gradients import full_unroll_loss
from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view

__all__ = ["facts", "trial"]

PAIRS = 8
MOST_PARAMETERS = 500  # of RTRL, whose step does the work of one for each


def facts(problem: Any) -> dict[str, Any]:
    """Horizon, truncation, pairs, and the cost of the dearest update."""
    problem = view(problem)
    horizon = problem.horizon
    if not isinstance(horizon, int | np.integer) or horizon < 1:
        raise UserError(f"unroll.horizon must be an integer >= 1; got {horizon!r}.", "An endless unroll has none.")
    horizon = int(horizon)
    wanted = min(int(getattr(problem, "truncation", max(1, horizon // 10))), horizon)
    truncation = max(k for k in range(1, wanted + 1) if horizon % k == 0)
    theta = jax.eval_shape(problem.theta0, jax.random.key(0))
    size = sum(int(np.prod(leaf.shape, dtype=int)) for leaf in jax.tree.leaves(theta))
    absent = {}
    if size > MOST_PARAMETERS:
        absent["rtrl"] = f"theta has {size} numbers, and each step would do the work of as many"
    return {
        "horizon": horizon,
        "truncation": truncation,
        "middle": min(horizon, 2 * truncation),
        "num_pairs": PAIRS,
        "smallest": 4 * (2 * PAIRS + 1) * horizon,
        "absent": absent,
    }


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same start, the same fresh episodes to be judged by, for all entrants of a seed."""
    clock, unroll, settings = Clock(scale), view(problem), traced(arm)
    start_key, run_key, judge_key = jax.random.split(key, 3)
    carry = clock.run(_begin, settings, unroll, start_key)
    for target in clock.targets():
        carry = clock.run(_advance, settings, unroll, run_key, carry, jnp.asarray(target, jnp.int32))
        loss = 0.0 if clock.pilot else clock.run(_judge, unroll, judge_key, carry[0][0], int(scale.episodes), free=True)
        clock.note(int(carry[2]), loss=loss)
    return clock.record()


def _begin(settings: dict, unroll: Any, key: Any) -> Any:
    estimator = made(settings, unroll=unroll)
    theta_key, state_key = jax.random.split(key)
    theta = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), unroll.theta0(theta_key))
    state = (theta, estimator.init(state_key, theta), optax.adam(settings["learning_rate"]).init(theta))
    return state, jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32)


def _advance(settings: dict, unroll: Any, key: Any, carry: Any, target: Any) -> Any:
    estimator, adam = made(settings, unroll=unroll), optax.adam(settings["learning_rate"])

    def update(state, index):
        theta, carried, memory = state
        gradient, carried, info = estimator.step(jax.random.fold_in(key, index), theta, carried)
        updates, memory = adam.update(gradient, memory, theta)
        return (optax.apply_updates(theta, updates), carried, memory), info.cost

    state, count, cost = carry
    return spend(update, state, count, cost, target)


def _judge(unroll: Any, key: Any, theta: Any, episodes: int) -> Any:
    horizon = unroll.horizon
    keys = jax.random.split(key, episodes)
    return jnp.mean(jax.vmap(lambda k: full_unroll_loss(k, unroll, theta, horizon))(keys)) / horizon
