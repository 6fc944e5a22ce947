"""What is sent instead of a whole vector."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import require

__all__ = ["ScaledSign", "TopK"]


class TopK(eqx.Module):
    """The largest entries alone: their values and their places.

    fraction: share of the entries that is sent, in (0, 1]; at least one is.

    >>> import jax.numpy as jnp
    >>> compressor = TopK(0.5)
    >>> compressor.decode(compressor.encode(jnp.asarray([3.0, -4.0, 1.0, 2.0])), 4).tolist()
    [3.0, -4.0, 0.0, 0.0]
    """

    fraction: float = eqx.field(static=True)

    def __check_init__(self):
        require("TopK", "fraction", "in (0, 1]", self.fraction, lambda f: 0 < f <= 1)

    def encode(self, vector: Array) -> Any:
        """Values and places of the entries of largest absolute value."""
        kept = max(1, round(self.fraction * vector.size))
        _, places = jax.lax.top_k(jnp.abs(vector), kept)
        return vector[places], places

    def decode(self, message: Any, size: int) -> Array:
        """A vector with zeros elsewhere."""
        values, places = message
        return jnp.zeros(size, values.dtype).at[places].set(values)


class ScaledSign(eqx.Module):
    """One bit an entry, and their mean absolute value: sign(v) ‖v‖₁ / size.

    >>> import jax.numpy as jnp
    >>> compressor = ScaledSign()
    >>> compressor.decode(compressor.encode(jnp.asarray([3.0, -1.0, 1.0, -3.0])), 4).tolist()
    [2.0, -2.0, 2.0, -2.0]
    """

    def encode(self, vector: Array) -> Any:
        """Bits, eight a byte, and the scale."""
        return jnp.packbits(vector >= 0), jnp.mean(jnp.abs(vector))

    def decode(self, message: Any, size: int) -> Array:
        """± the scale."""
        bits, scale = message
        signs = jnp.unpackbits(bits, count=size)
        return jnp.where(signs == 1, scale, -scale)
