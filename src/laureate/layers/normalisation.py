"""Normalisations whose statistics are values: nothing is changed behind the caller's back."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from laureate._core import require
from laureate.layers.running import RunningStatistics

__all__ = ["BatchNorm", "GroupNorm"]


class BatchNorm(eqx.Module):
    """Mean 0 and variance 1 of each channel over the batch and all positions; then a scale and a shift a channel.

    While training, call it with the batch alone: the batch's own statistics come back beside the result, and what
    becomes of them is the caller's choice. An exponential average is ``running.average(batch, 0.9)``; the exact
    statistics over many batches (standing statistics) are ``standing.merge(batch)``. To evaluate, hand one of them in.
    (Sergey Ioffe and Christian Szegedy, ICML 2015.)

    channels: the last axis.
    affine: False for no scale and shift of its own; a conditional one hands them in as ``scale`` and ``shift`` of shape
        [batch, channels], a row an example.
    epsilon: added to the variance.

    >>> import jax.numpy as jnp
    >>> norm = BatchNorm(2)
    >>> images = jnp.arange(16.0).reshape(2, 2, 2, 2)
    >>> normal, batch = norm(images)
    >>> running = norm.init().average(batch, 0.9)
    >>> again, _ = norm(images[:1], running)
    >>> normal.shape, float(batch.mean[0]), bool(jnp.allclose(again, normal[:1]))
    ((2, 2, 2, 2), 7.0, True)
    """

    scale: Float[Array, " c"] | None
    shift: Float[Array, " c"] | None
    channels: int = eqx.field(static=True)
    epsilon: float = eqx.field(static=True)

    def __init__(self, channels: int, affine: bool = True, epsilon: float = 1e-5):
        require("BatchNorm", "channels", ">= 1", channels, lambda c: c >= 1)
        require("BatchNorm", "epsilon", "> 0", epsilon, lambda e: e > 0)
        self.channels, self.epsilon = channels, epsilon
        self.scale, self.shift = (jnp.ones(channels), jnp.zeros(channels)) if affine else (None, None)

    def init(self) -> RunningStatistics:
        """The statistics before the first batch."""
        return RunningStatistics.empty((self.channels,))

    def __call__(
        self,
        x: Float[Array, "b *positions c"],
        statistics: RunningStatistics | None = None,
        scale: Float[Array, "b c"] | None = None,
        shift: Float[Array, "b c"] | None = None,
    ) -> tuple[Float[Array, "b *positions c"], RunningStatistics]:
        """The normalised batch in the type of x, and the statistics that were used (without a gradient)."""
        require("BatchNorm", "x", f"of {self.channels} channels in the last axis", x.shape, self._fits)
        used = RunningStatistics.of(x.reshape(-1, self.channels)) if statistics is None else statistics
        middle = (1,) * (x.ndim - 2)
        mean, factor = (v.reshape(1, *middle, -1) for v in (used.mean, jax.lax.rsqrt(used.variance() + self.epsilon)))
        result = (x - mean) * factor
        for factor in (self.scale, scale):
            result = result if factor is None else result * factor.reshape(-1, *middle, self.channels)
        for term in (self.shift, shift):
            result = result if term is None else result + term.reshape(-1, *middle, self.channels)
        return result.astype(jnp.result_type(x, 1.0)), jax.lax.stop_gradient(used)  # of integers: floats

    def _fits(self, shape: tuple[int, ...]) -> bool:
        return len(shape) >= 2 and shape[-1] == self.channels


class GroupNorm(eqx.Module):
    """Mean 0 and deviation 1 of each group of channels within each image; then a scale and a shift a channel.

    Of one image at a time, so that a representation does not depend on its neighbours in the batch
    (Yuxin Wu and Kaiming He, ECCV 2018).

    channels: the last axis.
    groups: must divide the channels.

    With its gradient, batch 256, on one thread: means over axes (positions, channels of a group) 36 ms, over positions
    first 9 ms.
    """

    scale: Float[Array, " c"]
    shift: Float[Array, " c"]
    groups: int = eqx.field(static=True)

    def __init__(self, channels: int, groups: int = 4):
        require("GroupNorm", "groups", f"a divisor of {channels}", groups, lambda g: g >= 1 and channels % g == 0)
        self.scale, self.shift, self.groups = jnp.ones(channels), jnp.zeros(channels), groups

    def __call__(self, images: Float[Array, "b h w c"]) -> Float[Array, "b h w c"]:
        """The normalised images, in the type of those given."""
        channels = images.shape[-1]
        each = channels // self.groups

        def mean(values: Float[Array, "b h w c"]) -> Float[Array, "b 1 1 c"]:
            # Over positions first, and only then over a group's few channels: the rows stay contiguous.
            grouped = values.mean((1, 2)).reshape(-1, self.groups, each).mean(2)
            return jnp.repeat(grouped, each, axis=1)[:, None, None, :]

        wide = images.astype(jnp.promote_types(images.dtype, jnp.float32))
        centred = wide - mean(wide)
        factor = jax.lax.rsqrt(mean(centred**2) + 1e-5) * self.scale[None, None, None, :]
        return (centred * factor + self.shift[None, None, None, :]).astype(jnp.result_type(images, 1.0))
