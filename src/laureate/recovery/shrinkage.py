"""Soft thresholding, and support selection: the largest entries are let through unshrunk (Chen et al. 2018)."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require

__all__ = ["SupportSchedule", "select_and_shrink", "soft_threshold"]


def soft_threshold(v: Array, theta: Array | float) -> Array:
    """η_θ(v) = sign(v) max(|v| − θ, 0), which minimises ½‖x − v‖² + θ‖x‖₁.

    >>> soft_threshold(jnp.array([-3.0, 0.5, 2.0]), 1.0).tolist()
    [-2.0, 0.0, 1.0]
    """
    return jnp.sign(v) * jnp.maximum(jnp.abs(v) - theta, 0)


@dataclass(frozen=True)
class SupportSchedule:
    """Layer k (from 0) lets through p_k = min(p (k + 1), p_max) % of the entries, if they are above the threshold.

    p, p_max: in percent. The paper's 1.2 and 13 go with codes of which 10 % are not zero.
    """

    p: float = 1.2
    p_max: float = 13.0

    def __post_init__(self):
        require("SupportSchedule", "p", "within 0 and 100 (percent)", self.p, lambda p: 0 <= p <= 100)
        rule = f"within p = {self.p} and 100 (percent)"
        require("SupportSchedule", "p_max", rule, self.p_max, lambda most: self.p <= most <= 100)

    def counts(self, num_layers: int, size: int) -> np.ndarray:
        """How many entries of a code of that size each layer lets through.

        >>> SupportSchedule(p=10, p_max=25).counts(4, 20).tolist()
        [2, 4, 5, 5]
        """
        percent = np.minimum(self.p * np.arange(1, num_layers + 1), self.p_max)
        return np.round(percent * size / 100).astype(np.int32)


def select_and_shrink(v: Array, theta: Array | float, count: Array | int, max_count: int, code_axes: int = 1) -> Array:
    """Shrink all entries but those above θ that are among the ``count`` largest of their code.

    max_count: the largest count there can be; ``count`` itself may be traced. code_axes: how many last axes are one
        code.
    The choice is no function to be differentiated: gradients see a mask.
    """
    if max_count == 0:
        return soft_threshold(v, theta)
    magnitude = jax.lax.stop_gradient(jnp.abs(v))
    flat = magnitude.reshape(*v.shape[: v.ndim - code_axes], math.prod(v.shape[v.ndim - code_axes :]))
    count = jnp.broadcast_to(jnp.minimum(count, max_count), flat.shape[:-1])
    edge = jnp.where(count > 0, _kth_largest(flat, count), jnp.inf)
    edge = edge.reshape(edge.shape + (1,) * code_axes)
    selected = (magnitude >= edge) & (magnitude > theta)  # entries at 0 tie, and are never selected
    return jnp.where(selected, v, soft_threshold(v, theta))


def _kth_largest(values: Array, k: Array) -> Array:
    """The k-th largest (k >= 1) of the last axis, of numbers >= 0, exactly.

    Such numbers are ordered as their bits are, so the answer is found bit by bit, the highest first: the largest number
    that k or more of the values reach. On a CPU that is five times as fast as `jax.lax.top_k` at 500 values and k = 65.
    """
    bits = jnp.finfo(values.dtype).bits
    integer = jnp.dtype(f"uint{bits}")
    counted = jnp.promote_types(values.dtype, jnp.float32)  # counts as floats are summed twice as fast as integers

    def step(i, found):
        candidate = found | (jnp.ones((), integer) << (bits - 2 - i).astype(integer))
        edge = jax.lax.bitcast_convert_type(candidate, values.dtype)[..., None]
        reached = jnp.sum(jnp.where(values >= edge, 1, 0).astype(counted), axis=-1)
        return jnp.where(reached >= k, candidate, found)

    found = jax.lax.fori_loop(0, bits - 1, step, jnp.zeros(values.shape[:-1], integer))
    return jax.lax.bitcast_convert_type(found, values.dtype)
