"""How the small networks of problems are trained: all alike."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, Key

from laureate.loops import repeat

__all__ = ["train_by_adam"]


def train_by_adam(
    key: Key[Array, ""],
    model: Any,
    loss_fn: Callable[[Any, Int[Array, "batch"]], Array],
    num_rows: int,
    num_steps: int,
    batch: int,
    learning_rate: float | Array,
) -> Any:
    """The model after steps of Adam, its rate falling to 0 as a cosine; batches are drawn with replacement.

    key: of the batches. model: an Equinox module. loss_fn: ``loss_fn(model, rows)`` of a batch, given by its rows.
    num_rows: how many there are. num_steps, batch: of Adam, and rows each. learning_rate: the first.
    """
    optimiser = optax.adam(lambda count: learning_rate * 0.5 * (1 + jnp.cos(jnp.pi * count / num_steps)))
    rows = jax.random.randint(key, (num_steps, batch), 0, num_rows)
    arrays, rest = eqx.partition(model, eqx.is_array)

    def loss(arrays, chosen):
        return loss_fn(eqx.combine(arrays, rest), chosen)

    def step(state, index):
        arrays, moments = state
        updates, moments = optimiser.update(jax.grad(loss)(arrays, rows[index]), moments)
        return (optax.apply_updates(arrays, updates), moments), None

    (arrays, _), _ = repeat(step, (arrays, optimiser.init(arrays)), 0, num_steps)
    return eqx.combine(arrays, rest)
