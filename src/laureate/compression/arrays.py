"""A weight that is quantised: codes and parameters in its place."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate.compression.packing import num_bytes, pack, unpack
from laureate.compression.quantizer import Quantizer

__all__ = ["QuantizedArray", "encoded", "fitted", "is_quantized", "is_stored", "shipped_bytes"]


class QuantizedArray(eqx.Module):
    """A weight as codes and parameters; ``quantize`` and ``freeze`` put them in the places of a model's weights.

    data: the codes; as bytes where ``packed``, else one integer a code.
    parameters: the arrays to be stored where ``packed``, else what `Quantizer.decode` takes, which can be trained.
    quantizer: by which it is decoded. shape, dtype: of the weight.
    """

    data: Array
    parameters: Any
    quantizer: Quantizer
    shape: tuple[int, ...] = eqx.field(static=True)
    dtype: str = eqx.field(static=True)
    packed: bool = eqx.field(static=True)

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        return sum(array.nbytes for array in jax.tree.leaves((self.data, self.parameters)))

    @property
    def original_nbytes(self) -> int:
        """Bytes of the weight."""
        return math.prod(self.shape) * jnp.dtype(self.dtype).itemsize

    def decoded(self) -> Float[Array, "..."]:
        """The weight, in its own type."""
        codes, parameters = self.data, self.parameters
        if self.packed:
            codes = unpack(codes, self.quantizer.bits(self.shape), self.quantizer.count(self.shape))
            parameters = self.quantizer.restore(parameters, self.shape)
        return self.quantizer.decode(codes, parameters, self.shape).astype(self.dtype)

    def package(self) -> "QuantizedArray":
        """The same with its codes as bytes and its parameters as they are stored."""
        if self.packed:
            return self
        data, stored = pack(self.data, self.quantizer.bits(self.shape)), self.quantizer.store(self.parameters)
        return QuantizedArray(data, stored, self.quantizer, self.shape, self.dtype, packed=True)


def is_quantized(value: Any) -> bool:
    """Whether it is a `QuantizedArray`, which is one leaf of a model."""
    return isinstance(value, QuantizedArray)


def is_stored(value: Any) -> bool:
    """Whether it has bytes: an array of JAX or NumPy, or a `QuantizedArray`."""
    return eqx.is_array(value) or isinstance(value, np.ndarray) or is_quantized(value)


def fitted(key: Any, quantizer: Quantizer, weights: Array, start: Any = None) -> Any:
    """The quantiser's parameters in the precision in which they are stored: one trains with what one ships."""
    return quantizer.restore(quantizer.store(quantizer.fit(key, weights, start)), weights.shape)


@eqx.filter_jit
def encoded(key: Any, quantizer: Quantizer, weights: Array) -> QuantizedArray:
    """The weight as codes and parameters, not packed; compiled once for all weights of a shape."""
    parameters = fitted(key, quantizer, weights)
    codes = quantizer.encode(weights, parameters)
    return QuantizedArray(codes, parameters, quantizer, weights.shape, str(weights.dtype), packed=False)


def shipped_bytes(quantizer: Quantizer, weights: Any) -> int:
    """Bytes that a weight of this shape and type becomes; nothing is computed."""
    stored = jax.eval_shape(lambda key, w: quantizer.store(quantizer.fit(key, w)), jax.random.key(0), weights)
    codes = num_bytes(quantizer.count(weights.shape), quantizer.bits(weights.shape))
    return codes + sum(math.prod(array.shape) * array.dtype.itemsize for array in jax.tree.leaves(stored))
