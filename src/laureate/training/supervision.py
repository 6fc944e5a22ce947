"""Weak supervision: one bit of the training loss for all local updates.

The paper's abstract says that the loss controls the rate of local updates; how it does was a reviewer's question. The
two readings here, sign and scale, differ in one number.
"""

import math

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from laureate._core import require

__all__ = ["WeakSupervision"]


class WeakSupervision(eqx.Module):
    """The factor of a local update: 1 while the loss falls, ``rising`` while it does not.

    With the running loss m::

        s_t = 1 if loss_t < m_{t−1} else rising,   m_t = m_{t−1} + (loss_t − m_{t−1}) / window

    rising: 1 is no supervision, −1 takes the last step back (sign), 0.1 makes a tenth of it (scale).
    window: steps over which the loss is averaged, >= 1. With 1 it is compared with the step before, and differences of
        two batches are mostly noise. The first step has nothing to be compared with: s = 1.

    >>> import jax.numpy as jnp
    >>> [float(WeakSupervision(rising=-1.0)(jnp.asarray(loss), jnp.asarray(0.5))) for loss in (0.4, 0.5, 0.6)]
    [1.0, -1.0, -1.0]
    """

    rising: float | Array = 1.0
    window: float | Array = 1.0

    def __check_init__(self):
        require("WeakSupervision", "rising", "finite", self.rising, lambda r: -math.inf < r < math.inf)
        require("WeakSupervision", "window", ">= 1", self.window, lambda w: w >= 1)

    def __call__(self, loss: Array, average: Array) -> Array:
        """The factor s."""
        return jnp.where(loss < average, 1.0, self.rising).astype(loss.dtype)

    def average(self, loss: Array, average: Array) -> Array:
        """The running loss m; infinite before the first step, which counts whole."""
        return jnp.where(jnp.isinf(average), loss, average + (loss - average) / self.window).astype(average.dtype)
