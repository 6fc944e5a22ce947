"""Drawing from many unnormalised log weights by a two-level inverse CDF.

Gumbel's trick costs a logarithm and a random number a weight; this costs one exponential a weight and one random
number a draw, and is about three times as fast over ten thousand sites on a CPU.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

__all__ = ["Wheel", "first_beyond", "log_normaliser", "make_wheel", "spin"]


class Wheel(NamedTuple):
    """Log weights in rows, their maximum, and the sum of exp(weight - maximum) of each row."""

    rows: Float[Array, "rows columns"]
    maximum: Float[Array, ""]
    sums: Float[Array, "rows"]


def make_wheel(log_weights: Float[Array, "n"]) -> Wheel:
    """Prepare ``log_weights`` for drawing."""
    columns = _columns(log_weights.size)
    padding = -log_weights.size % columns
    if padding:
        log_weights = jnp.pad(log_weights, (0, padding), constant_values=-jnp.inf)
    rows = log_weights.reshape(-1, columns)
    maximum = jnp.max(rows)
    return Wheel(rows, maximum, jnp.sum(jnp.exp(rows - maximum), axis=1))


def log_normaliser(wheel: Wheel) -> Float[Array, ""]:
    """log Σ exp(log_weights)."""
    return wheel.maximum + jnp.log(jnp.sum(wheel.sums))


def spin(wheel: Wheel, uniforms: Float[Array, "draws 2"]) -> Int[Array, "draws"]:
    """Draw indices independently, with probabilities proportional to exp(log_weights).

    A row and a column have a uniform number each: one alone, in single precision, cannot tell a million sites apart.
    """
    return jax.vmap(lambda pair: _one(wheel, pair))(uniforms)


def _one(wheel: Wheel, uniforms: Float[Array, "2"]) -> Int[Array, ""]:
    row = first_beyond(jnp.cumsum(wheel.sums), uniforms[0])
    column = first_beyond(jnp.cumsum(jnp.exp(wheel.rows[row] - wheel.maximum)), uniforms[1])
    return row * wheel.rows.shape[1] + column


def first_beyond(ends: Float[Array, "n"], u: Float[Array, ""]) -> Int[Array, ""]:
    """Inverse CDF: the first index whose cumulated weight exceeds u times the whole; never one of weight zero."""
    # u < 1, so u·ends[-1] < ends[-1]: some entry lies beyond, and the first that does has a weight above zero.
    return jnp.minimum(jnp.sum(ends <= u * ends[-1]), ends.size - 1).astype(jnp.int32)


def _columns(size: int) -> int:
    # The largest divisor up to the root, so that nothing need be padded; the root itself where divisors are too small.
    root = math.isqrt(size)
    best = max(c for c in range(1, root + 1) if size % c == 0)
    return size // best if best * 8 >= root else root + 1
