"""What a quantiser is: three functions and how many bits its codes have. Write one of your own by inheriting."""

import abc
from typing import Any, Literal

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

__all__ = ["Outputs", "Quantizer", "as_rows", "from_rows"]

Outputs = Literal["first", "last"]


class Quantizer(eqx.Module):
    """How a weight is written with few bits.

    θ = fit(W),   c = encode(W, θ) in {0, …, 2^bits - 1},   φ(W) = decode(c, θ)

    The parameters θ are a pytree; their real arrays can be trained while the codes stay. A code stands for one block of
    weights (a single weight, or several), and noise chooses among those blocks.
    """

    @abc.abstractmethod
    def check(self, path: str, shape: tuple[int, ...]) -> None:
        """Raise ``ValueError`` with the path of a weight whose shape does not suit."""

    @abc.abstractmethod
    def bits(self, shape: tuple[int, ...]) -> int:
        """Bits of a code."""

    @abc.abstractmethod
    def count(self, shape: tuple[int, ...]) -> int:
        """How many codes such a weight has."""

    @abc.abstractmethod
    def fit(self, key: Any, weights: Float[Array, "..."], start: Any = None) -> Any:
        """θ, from the weights alone; ``start`` is an earlier θ."""

    @abc.abstractmethod
    def encode(self, weights: Float[Array, "..."], parameters: Any) -> Int[Array, "codes"]:
        """The codes, in one row."""

    @abc.abstractmethod
    def decode(self, codes: Int[Array, "codes"], parameters: Any, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """The weights that these codes stand for."""

    @abc.abstractmethod
    def spread(self, blocks: Array, shape: tuple[int, ...]) -> Array:
        """One value a code as one value a weight."""

    @abc.abstractmethod
    def inside(self, weights: Float[Array, "..."], parameters: Any) -> Bool[Array, "..."]:
        """Where the weights lie in the range that the codes can reach: there a gradient may pass."""

    @abc.abstractmethod
    def excess(self, weights: Float[Array, "..."], parameters: Any) -> Float[Array, ""]:
        """The largest weight in units of the largest that a code can stand for; 0 where there is no such range."""

    @abc.abstractmethod
    def store(self, parameters: Any) -> tuple[Array, ...]:
        """θ as the arrays that are written to disk."""

    @abc.abstractmethod
    def restore(self, stored: tuple[Array, ...], shape: tuple[int, ...]) -> Any:
        """θ again; ``restore(store(θ))`` decodes as θ does."""

    @property
    @abc.abstractmethod
    def keeps_codes(self) -> bool:
        """Whether codes are too dear to be found at every step: then training keeps those of the last refresh."""


def as_rows(weights: Array, outputs: Outputs) -> Array:
    """A weight as ``[outputs, inputs]``: [out, in, *space] or, with outputs last, [*space, in, out].

    The inputs of a convolution are in the order (in, *space), so that a block of 9 is a 3 x 3 kernel in both layouts.
    """
    if outputs == "last":
        weights = weights.transpose(weights.ndim - 1, weights.ndim - 2, *range(weights.ndim - 2))
    return weights.reshape(weights.shape[0], -1)


def from_rows(rows: Array, shape: tuple[int, ...], outputs: Outputs) -> Array:
    """The weight of which ``rows`` are the rows."""
    if outputs == "first":
        return rows.reshape(shape)
    *space, inputs, last = shape
    turned = rows.reshape(last, inputs, *space)
    return turned.transpose(*range(2, len(shape)), 1, 0)
