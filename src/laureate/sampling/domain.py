"""Which values a discrete variable may take, and the moves a local sampler has at one site.

A position is any pytree of integer (or boolean) arrays of *codes*; a domain is a pytree of the same structure whose
leaves are `Binary`, `Categorical` or `Ordinal`. The log density never sees codes: it is given floats, so that it
can be differentiated.
"""

import operator
from functools import partial
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require

__all__ = ["Binary", "Categorical", "Domain", "Ordinal"]


def _integer(owner: str, field: str, value: Any, remedy: str = "") -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{owner}.{field} must be one integer; got {value!r}. {remedy}".rstrip()) from None


_ONE_SIZE = "For K that differs among the sites of a leaf, split it into leaves or use category_mask."


class Binary(eqx.Module):
    """Variables in {0, 1}; the log density sees floats 0.0 and 1.0 of the same shape.

    >>> Binary().relax(jnp.array([0, 1]))
    Array([0., 1.], dtype=float32)
    """

    @property
    def num_values(self) -> int:
        """How many values a variable has."""
        return 2

    @property
    def num_moves(self) -> int:
        """How many moves a site has: the one flip."""
        return 1

    @property
    def squared_distances(self) -> np.ndarray:
        """|x' - x|² of each move, in the floats the log density sees."""
        return np.ones(1)

    def contains(self, codes: Array) -> Bool[Array, "..."]:
        """Where the codes are values of this domain."""
        return (codes == 0) | (codes == 1)

    def relax(self, codes: Array) -> Float[Array, "..."]:
        """The floats that the log density is given."""
        return codes.astype(float)

    def differences(self, codes: Array, gradient: Float[Array, "..."]) -> Float[Array, "... 1"]:
        """First-order f(x') - f(x) of each move: d̃ = -(2x - 1) ∂f/∂x."""
        return jnp.where(codes.astype(bool), -gradient, gradient)[..., None]

    def target(self, code: Int[Array, "..."], move: Int[Array, "..."]) -> Int[Array, "..."]:
        """The code a move leads to."""
        return 1 - code

    def move(self, start: Int[Array, "..."], end: Int[Array, "..."]) -> tuple[Int[Array, "..."], Bool[Array, "..."]]:
        """The move from one code to another, and whether there is one."""
        return jnp.zeros_like(start), start != end

    def code(self, index: Any) -> Any:
        """The code of the value with this index, 0 <= index < num_values."""
        return index

    def index(self, code: Int[Array, "..."]) -> Int[Array, "..."]:
        """The index of a code."""
        return code


class Categorical(eqx.Module):
    """Variables with ``num_categories`` unordered values 0..K-1; the log density sees one-hot rows, shape (..., K).

    >>> Categorical(3).relax(jnp.array([2, 0]))
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """

    num_categories: int = eqx.field(
        static=True, converter=partial(_integer, "Categorical", "num_categories", remedy=_ONE_SIZE)
    )

    def __check_init__(self):
        require("Categorical", "num_categories", ">= 2 (no move possible)", self.num_categories, lambda k: k >= 2)

    @property
    def num_values(self) -> int:
        """How many values a variable has."""
        return self.num_categories

    @property
    def num_moves(self) -> int:
        """How many moves a site has: one a category; the one to itself is never available."""
        return self.num_categories

    @property
    def squared_distances(self) -> np.ndarray:
        """|x' - x|² of each move between one-hot rows."""
        return np.full(self.num_categories, 2.0)

    def contains(self, codes: Array) -> Bool[Array, "..."]:
        """Where the codes are values of this domain."""
        return (codes >= 0) & (codes < self.num_categories)

    def relax(self, codes: Array) -> Float[Array, "... K"]:
        """The floats that the log density is given."""
        return self._is_current(codes).astype(float)

    def differences(self, codes: Array, gradient: Float[Array, "... K"]) -> Float[Array, "... K"]:
        """First-order f(x') - f(x) of each move: d̃_ij = ∂f/∂x_ij - x_i·∂f/∂x_i; -inf at the current category."""
        current = self._is_current(codes)
        here = jnp.sum(jnp.where(current, gradient, 0.0), axis=-1, keepdims=True)
        return jnp.where(current, -jnp.inf, gradient - here)

    def target(self, code: Int[Array, "..."], move: Int[Array, "..."]) -> Int[Array, "..."]:
        """The code a move leads to."""
        return move

    def move(self, start: Int[Array, "..."], end: Int[Array, "..."]) -> tuple[Int[Array, "..."], Bool[Array, "..."]]:
        """The move from one code to another, and whether there is one."""
        return end, start != end

    def code(self, index: Any) -> Any:
        """The code of the value with this index, 0 <= index < num_values."""
        return index

    def index(self, code: Int[Array, "..."]) -> Int[Array, "..."]:
        """The index of a code."""
        return code

    def _is_current(self, codes: Array) -> Bool[Array, "... K"]:
        return codes[..., None].astype(jnp.int32) == jnp.arange(self.num_categories, dtype=jnp.int32)


class Ordinal(eqx.Module):
    """Ordered integers low..high; the log density sees them as floats of the same shape.

    A move changes one variable by at most ``window``, up or down: for a smooth log density the gradient says little
    about values far away.

    >>> Ordinal(0, 255).num_moves
    2
    """

    low: int = eqx.field(static=True, converter=partial(_integer, "Ordinal", "low"))
    high: int = eqx.field(static=True, converter=partial(_integer, "Ordinal", "high"))
    window: int = eqx.field(static=True, default=1, converter=partial(_integer, "Ordinal", "window"))

    def __check_init__(self):
        require("Ordinal", "high", f"> low = {self.low} (no move possible)", self.high, lambda h: h > self.low)
        widest = self.high - self.low
        require("Ordinal", "window", f">= 1 and <= high - low = {widest}", self.window, lambda w: 1 <= w <= widest)

    @property
    def num_values(self) -> int:
        """How many values a variable has."""
        return self.high - self.low + 1

    @property
    def num_moves(self) -> int:
        """How many moves a site has: ``window`` down and ``window`` up."""
        return 2 * self.window

    @property
    def squared_distances(self) -> np.ndarray:
        """|x' - x|² of each move."""
        return self._shifts.astype(float) ** 2

    def contains(self, codes: Array) -> Bool[Array, "..."]:
        """Where the codes are values of this domain."""
        return (codes >= self.low) & (codes <= self.high)

    def relax(self, codes: Array) -> Float[Array, "..."]:
        """The floats that the log density is given."""
        return codes.astype(float)

    def differences(self, codes: Array, gradient: Float[Array, "..."]) -> Float[Array, "... moves"]:
        """First-order f(x') - f(x) of each move δ: d̃ = δ ∂f/∂x; -inf where x + δ leaves the domain."""
        shifts = jnp.asarray(self._shifts, jnp.int32)
        inside = self.contains(codes[..., None].astype(jnp.int32) + shifts)
        return jnp.where(inside, gradient[..., None] * shifts.astype(gradient.dtype), -jnp.inf)

    def target(self, code: Int[Array, "..."], move: Int[Array, "..."]) -> Int[Array, "..."]:
        """The code a move leads to."""
        return code + jnp.asarray(self._shifts, jnp.int32)[jnp.clip(move, 0, self.num_moves - 1)]

    def move(self, start: Int[Array, "..."], end: Int[Array, "..."]) -> tuple[Int[Array, "..."], Bool[Array, "..."]]:
        """The move from one code to another, and whether there is one."""
        shift = end - start
        near = (shift != 0) & (jnp.abs(shift) <= self.window)
        return jnp.where(near, shift + self.window - (shift > 0), 0), near

    def code(self, index: Any) -> Any:
        """The code of the value with this index, 0 <= index < num_values."""
        return index + self.low

    def index(self, code: Int[Array, "..."]) -> Int[Array, "..."]:
        """The index of a code."""
        return code - self.low

    @property
    def _shifts(self) -> np.ndarray:
        return np.array([*range(-self.window, 0), *range(1, self.window + 1)])


Domain: TypeAlias = Binary | Categorical | Ordinal
