"""Scalar quantisation: every weight is rounded to one of 2^bits evenly spaced values."""

import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require
from laureate.compression.quantizer import Outputs, Quantizer

__all__ = ["Grid", "ScalarQuantizer"]

# Shares of the whole range that the observer "mse" tries, the whole first: where that has no error it is kept.
SHARES = tuple(1 - 0.025 * number for number in range(33))


class Grid(NamedTuple):
    """The parameters of a `ScalarQuantizer`: one pair, or one a channel, with the axes of the weights kept.

    scale: the step s. zero_point: the code z that stands for 0.
    """

    scale: Float[Array, "..."]
    zero_point: Int[Array, "..."]


class ScalarQuantizer(Quantizer):
    """Rounds each weight to few bits; the value 0 stays 0, exactly.

    affine:     s = (max - min) / (2^N - 1),   z = round(-min / s),   with min <= 0 <= max
    symmetric:  s = max|w| / (2^(N-1) - 1),    z = 2^(N-1) - 1
    c = clip(round(w/s) + z, 0, top),   φ(w) = (c - z) s,    top = 2^N - 1 (affine), 2^N - 2 (symmetric)

    num_bits: N, 1 to 16 (symmetric: 2 to 16).
    scheme: ``"affine"``, or ``"symmetric"``, which is odd, φ(-w) = -φ(w), and stores no zero point.
    granularity: one step for the ``"tensor"``, or one for each output ``"channel"``.
    observer: the range by ``"minmax"``, or the share of it with the least squared error, ``"mse"``, which cuts outliers
        off; what PyTorch's histogram observer estimates, this computes.
    outputs: which axis of a weight counts its output channels: ``"first"`` (Equinox, PyTorch) or ``"last"`` (Flax,
        ``laureate.layers``). Only channels need it.

    >>> import jax.numpy as jnp
    >>> weights = jnp.array([[-1.0, 0.2], [0.5, 2.0]])
    >>> quantizer = ScalarQuantizer(2)
    >>> grid = quantizer.fit(None, weights)
    >>> quantizer.encode(weights, grid).tolist()
    [0, 1, 1, 3]
    >>> quantizer.decode(quantizer.encode(weights, grid), grid, (2, 2)).tolist()
    [[-1.0, 0.0], [0.0, 2.0]]
    """

    num_bits: int = eqx.field(default=8, static=True)
    scheme: Literal["affine", "symmetric"] = eqx.field(default="affine", static=True)
    granularity: Literal["tensor", "channel"] = eqx.field(default="tensor", static=True)
    observer: Literal["minmax", "mse"] = eqx.field(default="minmax", static=True)
    outputs: Outputs = eqx.field(default="first", static=True)

    def __check_init__(self):
        name, whole = "ScalarQuantizer", isinstance(self.num_bits, int) and not isinstance(self.num_bits, bool)
        require(name, "num_bits", "an integer in 1..16", self.num_bits, lambda n: whole and 1 <= n <= 16)
        require(name, "scheme", "'affine' or 'symmetric'", self.scheme, ("affine", "symmetric").__contains__)
        require(name, "granularity", "'tensor' or 'channel'", self.granularity, ("tensor", "channel").__contains__)
        require(name, "observer", "'minmax' or 'mse'", self.observer, ("minmax", "mse").__contains__)
        require(name, "outputs", "'first' or 'last'", self.outputs, ("first", "last").__contains__)
        if self.scheme == "symmetric":
            remedy = "One bit has no value on both sides of 0: take scheme='affine'."
            require(name, "num_bits", ">= 2 for scheme='symmetric'", self.num_bits, lambda n: n >= 2, remedy)

    @property
    def top(self) -> int:
        """The highest code."""
        return 2**self.num_bits - (1 if self.scheme == "affine" else 2)

    @property
    def keeps_codes(self) -> bool:
        """Rounding is cheap: codes are found at every step."""
        return False

    def check(self, path: str, shape: tuple[int, ...]) -> None:
        """Every shape suits."""

    def bits(self, shape: tuple[int, ...]) -> int:
        """N."""
        return self.num_bits

    def count(self, shape: tuple[int, ...]) -> int:
        """A code for every weight."""
        return math.prod(shape)

    def spread(self, blocks: Array, shape: tuple[int, ...]) -> Array:
        """A block is a weight."""
        return blocks.reshape(shape)

    def fit(self, key: Any, weights: Float[Array, "..."], start: Any = None) -> Grid:
        """The step and the zero point for the range of these weights; nothing is drawn."""
        weights = weights.astype(jnp.promote_types(weights.dtype, jnp.float32))
        axes = self._axes(weights.ndim)
        low = jnp.minimum(jnp.min(weights, axes, keepdims=True), 0)  # the range must contain 0
        high = jnp.maximum(jnp.max(weights, axes, keepdims=True), 0)
        if self.observer == "minmax":
            return self._grid(low, high)

        size = jnp.maximum(-low, high)
        unit = _positive(size / (2 * jnp.frexp(size)[0]))  # a power of two: squares neither overflow nor vanish

        def error(share: Array) -> Array:
            grid = self._grid(share * low, share * high)
            return jnp.sum(((self._rounded(weights, grid) - weights) / unit) ** 2, axes, keepdims=True)

        shares = jnp.asarray(SHARES, weights.dtype)
        best = shares[jnp.argmin(jax.lax.map(error, shares), axis=0)]
        return self._grid(best * low, best * high)

    def encode(self, weights: Float[Array, "..."], parameters: Grid) -> Int[Array, "codes"]:
        """c = clip(round(w/s) + z, 0, top)."""
        return self._codes(weights, parameters).astype(jnp.int32).ravel()

    def decode(self, codes: Int[Array, "codes"], parameters: Grid, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """(c - z) s."""
        return (codes.reshape(shape) - parameters.zero_point) * parameters.scale

    def inside(self, weights: Float[Array, "..."], parameters: Grid) -> Bool[Array, "..."]:
        """Where round(w/s) + z is a code, so that nothing is clipped."""
        code = jnp.round(weights / parameters.scale) + parameters.zero_point
        return (code >= 0) & (code <= self.top)

    def excess(self, weights: Float[Array, "..."], parameters: Grid) -> Float[Array, ""]:
        """max |w| / max |φ|."""
        reach = jnp.maximum(parameters.zero_point, self.top - parameters.zero_point) * parameters.scale
        return jnp.max(jnp.max(jnp.abs(weights), self._axes(weights.ndim), keepdims=True) / reach)

    def store(self, parameters: Grid) -> tuple[Array, ...]:
        """The steps in four bytes each, and zero points, which are codes, in one or two."""
        scale = parameters.scale.astype(jnp.float32).ravel()
        if self.scheme == "symmetric":
            return (scale,)
        return scale, parameters.zero_point.astype(jnp.uint8 if self.num_bits <= 8 else jnp.uint16).ravel()

    def restore(self, stored: tuple[Array, ...], shape: tuple[int, ...]) -> Grid:
        """The grid again."""
        kept = tuple(1 if axis in self._axes(len(shape)) else size for axis, size in enumerate(shape))
        scale = stored[0].reshape(kept)
        if self.scheme == "symmetric":
            return Grid(scale, jnp.full(kept, self.top // 2, jnp.int32))
        return Grid(scale, stored[1].astype(jnp.int32).reshape(kept))

    def _axes(self, ndim: int) -> tuple[int, ...]:
        """The axes that share a step."""
        channel = {"first": 0, "last": ndim - 1}[self.outputs] if self.granularity == "channel" else None
        return tuple(axis for axis in range(ndim) if axis != channel)

    def _grid(self, low: Array, high: Array) -> Grid:
        if self.scheme == "symmetric":
            scale = _positive(jnp.maximum(-low, high) / (self.top // 2))
            return Grid(scale, jnp.full(scale.shape, self.top // 2, jnp.int32))
        scale = _positive((high - low) / self.top)
        return Grid(scale, jnp.round(-low / scale).astype(jnp.int32))

    def _codes(self, weights: Array, grid: Grid) -> Array:
        return jnp.clip(jnp.round(weights / grid.scale) + grid.zero_point, 0, self.top)

    def _rounded(self, weights: Array, grid: Grid) -> Array:
        return (self._codes(weights, grid) - grid.zero_point) * grid.scale


def _positive(scale: Array) -> Array:
    """A weight that is 0 everywhere has no range: any step keeps it."""
    return jnp.where(scale > 0, scale, 1)
