"""Many steps as one compiled program; every step knows its absolute index."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

__all__ = ["repeat"]


def repeat(
    step: Callable[[Any, Array], tuple[Any, Any]],
    state: Any,
    first: Array | int,
    length: int,
    *,
    every: int = 1,
    record: Callable[[Any], Any] | None = None,
    count: Array | int | None = None,
) -> tuple[Any, tuple[Any, Any]]:
    """``length`` blocks of ``every`` steps each, for use inside jit, vmap and shard_map.

    step: ``step(state, index) -> (state, seen)`` with the absolute index of the step, ``first`` for the first one. All
        that varies with the step is made from that index, so that how a run is cut into calls changes nothing.
    record: a function of the state, computed at the end of every block.
    count: None: all blocks, by ``lax.scan``. A number up to ``length``, which may be traced: only so many blocks are
        done, and the rest of what is returned is zeros. One program then serves every number of steps.

    Returns the state and (seen, recorded), with leading axes [length, every] and [length].

    >>> import jax.numpy as jnp
    >>> state, (seen, _) = repeat(lambda x, t: (x + t, x), jnp.asarray(0), 10, 4, count=3)
    >>> int(state), seen[:, 0].tolist()
    (33, [0, 10, 21, 0])
    """
    arrays, rest = eqx.partition(state, eqx.is_array)
    first = jnp.asarray(first, jnp.int32)

    def one(arrays: Any, index: Array) -> tuple[Any, Any]:
        new, seen = step(eqx.combine(arrays, rest), index)
        return eqx.filter(new, eqx.is_array), seen

    def block(arrays: Any, number: Array) -> tuple[Any, Any]:
        indices = first + number * every + jnp.arange(every, dtype=jnp.int32)
        arrays, seen = jax.lax.scan(one, arrays, indices)
        return arrays, (seen, None if record is None else record(eqx.combine(arrays, rest)))

    if count is None:
        arrays, kept = jax.lax.scan(block, arrays, jnp.arange(length, dtype=jnp.int32))
        return eqx.combine(arrays, rest), kept
    block = jax.jit(block, inline=True)  # traced once, though its shapes are asked for first
    shapes = jax.eval_shape(block, arrays, jnp.asarray(0, jnp.int32))[1]
    nothing = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), shapes)

    def body(number: Array, carry: Any) -> Any:
        arrays, kept = carry
        arrays, new = block(arrays, number)
        put = lambda rows, row: jax.lax.dynamic_update_index_in_dim(rows, row, number, 0)  # noqa: E731
        return arrays, jax.tree.map(put, kept, new)

    stop = jnp.asarray(count, jnp.int32)
    arrays, kept = jax.lax.fori_loop(jnp.asarray(0, jnp.int32), stop, body, (arrays, nothing))
    return eqx.combine(arrays, rest), kept
