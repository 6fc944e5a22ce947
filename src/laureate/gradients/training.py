"""The loop most users write: estimate, update, repeat, as one compiled scan."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate._core import require

__all__ = ["History", "TrainState", "train"]


class TrainState(eqx.Module):
    """All that training needs to go on: a pytree to be saved, and to be given back as ``train(start=...)``."""

    theta: Any
    estimator: Any
    optimiser: Any
    update: Array
    cost: Array


class History(eqx.Module):
    """What happened.

    loss, status, num_nonfinite: of every update, from the estimator's info.
    update, cost: at every record, updates and inner steps done since the very start.
    recorded: ``record(theta)`` at every record.
    last: where to go on.
    """

    loss: Array
    status: Array
    num_nonfinite: Array
    update: Array
    cost: Array
    recorded: Any
    last: TrainState


def train(
    key: Array,
    estimator: Any,
    optimiser: optax.GradientTransformation,
    theta: Any,
    num_updates: int,
    *,
    start: TrainState | None = None,
    record: Callable[[Any], Any] | None = None,
    every: int = 1,
    batches: Callable[[Array], Any] | None = None,
) -> tuple[Any, History]:
    """Train."""
    require("train", "num_updates", "an integer >= 1", num_updates, lambda n: n >= 1)
    require(
        "train", "every", f"a divisor of num_updates ({num_updates})", every, lambda n: n >= 1 and num_updates % n == 0
    )
    if start is None:
        init_key = jax.random.fold_in(key, 0)
        start = TrainState(
            theta=jax.tree.map(jnp.asarray, theta),
            estimator=estimator.init(init_key, theta),
            optimiser=optimiser.init(theta),
            update=jnp.asarray(0, jnp.int32),
            cost=jnp.asarray(0.0),
        )
    return _train(key, estimator, optimiser, start, num_updates, record, every, batches)


@eqx.filter_jit
def _train(key, estimator, optimiser, start, num_updates, record, every, batches):
    def update(state, _):
        step_key = jax.random.fold_in(key, state.update + 1)  # by the absolute update: chunks change nothing
        data = None if batches is None else batches(state.update)
        gradient, carried, info = estimator.step(step_key, state.theta, state.estimator, data)
        updates, memory = optimiser.update(gradient, state.optimiser, state.theta)
        theta = optax.apply_updates(state.theta, updates)
        cost = state.cost + info.cost.astype(state.cost.dtype)
        return TrainState(theta, carried, memory, state.update + 1, cost), (info.loss, info.status, info.num_nonfinite)

    def chunk(state, _):
        state, infos = jax.lax.scan(update, state, length=every)
        recorded = None if record is None else record(state.theta)
        return state, (infos, state.update, state.cost, recorded)

    last, (infos, updates, cost, recorded) = jax.lax.scan(chunk, start, length=num_updates // every)
    loss, status, num_nonfinite = (x.reshape(num_updates) for x in infos)
    return last.theta, History(loss, status, num_nonfinite, updates, cost, recorded, last)
