"""Statistics of features that are gathered while training and then only used; a value, not a hidden variable."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from laureate.layers import RunningStatistics

__all__ = ["Normaliser"]

FLOOR = 1e-8  # the least deviation: a feature that never changes is mapped to 0


class Normaliser(eqx.Module):
    """Mean 0 and deviation 1 for the features of nodes, edges or targets, by what was seen in the first batches.

    ::

        apply(x) = (x − mean) / max(deviation, 1e-8),   inverse(y) = y max(deviation, 1e-8) + mean

    Every row of a batch counts once, padding never. After ``max_batches`` the numbers stay as they are.

    statistics: count, mean and squared deviations so far. num_batches: how many batches were seen.
    max_batches: how many are to be seen at most (the authors' code: a million).

    >>> import jax, jax.numpy as jnp
    >>> normaliser = jax.jit(lambda rows: Normaliser.empty(1).gather(rows))(jnp.array([[1.0], [3.0]]))
    >>> normaliser.apply(jnp.array([[5.0]])).tolist(), normaliser.inverse(jnp.array([[3.0]])).tolist()
    ([[3.0]], [[5.0]])
    """

    statistics: RunningStatistics
    num_batches: Int[Array, ""]
    max_batches: Int[Array, ""]

    @classmethod
    def empty(cls, size: int, dtype: Any = jnp.float32, max_batches: int = 10**6) -> "Normaliser":
        """Of features with so many entries, nothing seen yet."""
        numbers = (jnp.asarray(number, jnp.int32) for number in (0, max_batches))
        return cls(RunningStatistics.empty((size,), dtype), *numbers)

    @property
    def is_ready(self) -> Bool[Array, ""]:
        """Whether anything was seen."""
        return self.statistics.count > 0

    def gather(self, rows: Float[Array, "*b n f"], mask: Bool[Array, "*b n"] | None = None) -> "Normaliser":
        """With one more batch, whatever its leading axes; rows where ``mask`` is False do not count."""
        mask = None if mask is None else jnp.broadcast_to(mask, rows.shape[:-1]).reshape(-1)
        more = self.statistics.update(rows.reshape(-1, rows.shape[-1]), mask)
        open_ = self.num_batches < self.max_batches
        kept = [jnp.where(open_, new, old) for new, old in zip(_parts(more), _parts(self.statistics), strict=True)]
        return Normaliser(RunningStatistics(*kept), self.num_batches + open_, self.max_batches)

    def deviation(self) -> Float[Array, " f"]:
        """The deviation, at least 1e-8."""
        return jnp.maximum(jnp.sqrt(self.statistics.variance()), FLOOR)

    def apply(self, rows: Float[Array, "*n f"]) -> Float[Array, "*n f"]:
        """Normalised."""
        return ((rows - self.statistics.mean) / self.deviation()).astype(rows.dtype)

    def inverse(self, rows: Float[Array, "*n f"]) -> Float[Array, "*n f"]:
        """As they were before ``apply``."""
        return (rows * self.deviation() + self.statistics.mean).astype(rows.dtype)


def _parts(statistics: RunningStatistics) -> tuple[Array, Array, Array]:
    return statistics.count, statistics.mean, statistics.squares
