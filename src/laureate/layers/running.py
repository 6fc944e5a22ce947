"""The mean and the variance of a stream, kept as a value: batches are merged, and so are streams."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from laureate._core import require

__all__ = ["RunningStatistics"]


class RunningStatistics(eqx.Module):
    """Count, mean and sum of squared deviations of all rows seen so far, for every entry of a row.

    Two of them merge into that of all their rows together (Chan, Golub and LeVeque, 1979)::

        δ = mean_b − mean_a,   mean = mean_a + δ n_b / n,   squares = squares_a + squares_b + δ² n_a n_b / n

    No difference of two large sums is formed, so a mean far from zero costs no digits. The count stops at the largest
    integer of its type; from there on the statistics are a slow average.

    count: rows seen.
    mean, squares: of a row's shape.

    >>> import jax.numpy as jnp
    >>> statistics = RunningStatistics.empty((1,)).update(jnp.array([[1.0], [2.0]])).update(jnp.array([[6.0]]))
    >>> int(statistics.count), float(statistics.mean[0]), round(float(statistics.variance()[0]), 4)
    (3, 3.0, 4.6667)
    """

    count: Int[Array, ""]
    mean: Float[Array, "*row"]
    squares: Float[Array, "*row"]

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: Any = jnp.float32) -> "RunningStatistics":
        """Of no row at all. Float16 and bfloat16 are summed in float32."""
        dtype = jnp.promote_types(dtype, jnp.float32)
        return cls(jnp.asarray(0, jnp.asarray(0).dtype), jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))

    @classmethod
    def of(cls, rows: Float[Array, "n *row"], mask: Bool[Array, " n"] | None = None) -> "RunningStatistics":
        """Of the rows along the first axis; where ``mask`` is given, of those where it is True."""
        require("RunningStatistics", "rows", "of one axis at least", rows.ndim, lambda n: n >= 1)
        rows = rows.astype(jnp.promote_types(rows.dtype, jnp.float32))
        if mask is None:
            mean = jnp.sum(rows, axis=0) / max(rows.shape[0], 1)
            count = jnp.asarray(rows.shape[0], jnp.asarray(0).dtype)
            return cls(count, mean, jnp.sum((rows - mean[None]) ** 2, axis=0))
        weight = mask.reshape(-1, *(1,) * (rows.ndim - 1))
        count = jnp.sum(mask)
        rows = jnp.where(weight, rows, 0)  # what is masked may be NaN
        mean = jnp.sum(rows, axis=0) / jnp.maximum(count, 1).astype(rows.dtype)
        squares = jnp.sum(jnp.where(weight, rows - mean[None], 0) ** 2, axis=0)
        return cls(count.astype(jnp.asarray(0).dtype), mean, squares)

    def update(self, rows: Float[Array, "n *row"], mask: Bool[Array, " n"] | None = None) -> "RunningStatistics":
        """With these rows too."""
        return self.merge(RunningStatistics.of(rows, mask))

    def merge(self, other: "RunningStatistics") -> "RunningStatistics":
        """Of the rows of both."""
        most = jnp.iinfo(self.count.dtype).max
        own, more = (number.astype(self.mean.dtype) for number in (self.count, other.count))
        full = self.count > most - other.count
        count = jnp.where(full, most, self.count + other.count)
        total = jnp.where(full, own + more, jnp.maximum(count, 1).astype(self.mean.dtype))
        share = more / total
        difference = other.mean.astype(self.mean.dtype) - self.mean
        squares = self.squares + other.squares + difference**2 * share * own
        kept = jnp.where(full, most / total, 1.0)  # squares are those of as many rows as are counted
        return RunningStatistics(count, self.mean + difference * share, squares * kept)

    def average(self, new: "RunningStatistics", momentum: float | Array) -> "RunningStatistics":
        """An exponential average: momentum × this + (1 − momentum) × new, in mean and variance; the first counts whole.

        For statistics that change while a network is trained. What has no rows is no news.
        """
        require("RunningStatistics", "momentum", "in [0, 1)", momentum, lambda m: 0 <= m < 1)
        keep = jnp.where(self.count == 0, 0.0, jnp.where(new.count == 0, 1.0, momentum)).astype(self.mean.dtype)
        most = jnp.iinfo(self.count.dtype).max
        count = jnp.where(self.count > most - new.count, most, self.count + new.count)
        mean, variance = (keep * a + (1 - keep) * b for a, b in zip(self._both(), new._both(), strict=True))
        return RunningStatistics(count, mean, variance * count.astype(mean.dtype))

    def variance(self, ddof: int = 0) -> Float[Array, "*row"]:
        """The squared deviations over count − ddof; zero where nothing was seen."""
        return self.squares / jnp.maximum(self.count - ddof, 1).astype(self.squares.dtype)

    def normalise(
        self, rows: Float[Array, "*rows"], epsilon: float = 1e-8, clip: float | None = None
    ) -> Float[Array, "*rows"]:
        """(rows − mean) / √(variance + ε), within ±clip where given."""
        mean, factor = self._like(rows, self.mean), self._like(rows, jax.lax.rsqrt(self.variance() + epsilon))
        scaled = (rows - mean) * factor
        return scaled if clip is None else jnp.clip(scaled, -clip, clip)

    def restore(self, scaled: Float[Array, "*rows"], epsilon: float = 1e-8) -> Float[Array, "*rows"]:
        """The inverse of ``normalise`` without a clip."""
        deviation = self._like(scaled, jnp.sqrt(self.variance() + epsilon))
        return scaled * deviation + self._like(scaled, self.mean)

    def _like(self, rows: Array, value: Array) -> Array:
        return value.reshape((1,) * (rows.ndim - value.ndim) + value.shape)

    def _both(self) -> tuple[Array, Array]:
        return self.mean, self.variance()
