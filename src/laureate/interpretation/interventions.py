"""What is done to activations while a model runs: pure functions h -> h, where h is ``[..., units]``.

Each leaves all other units, and positions that are not named, as they are to the last bit.
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from laureate._core import require
from laureate.interpretation.moments import at_least_single

__all__ = ["Identity", "Project", "Resample", "SetDirection", "SetUnits", "erasure_masks", "steer"]


class Identity(eqx.Module):
    """Nothing is done: what every intervention is compared with."""

    def __call__(self, h: Float[Array, "... d"]) -> Float[Array, "... d"]:
        """h itself."""
        return h


class SetUnits(eqx.Module):
    """Units set to values: erasure (zero or mean) and control.

    h_i ← value_i where ``units`` says so.

    units: True for those to set, ``[units]``. values: of each unit, or one for all; zero erases.
    positions: True where it is done, of h's shape without units; None: everywhere.

    >>> SetUnits(jnp.array([True, False]), 0.0)(jnp.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[0.0, 2.0], [0.0, 4.0]]
    """

    units: Bool[Array, "d"]
    values: Float[Array, "d"] | float = 0.0
    positions: Bool[Array, "..."] | None = None

    def __check_init__(self):
        require("SetUnits", "units", "one entry a unit, [units]", jnp.ndim(self.units), lambda n: n == 1)

    def __call__(self, h: Float[Array, "... d"]) -> Float[Array, "... d"]:
        """h with these units set."""
        _check_width("SetUnits", "units", len(self.units), h)
        where = jnp.asarray(self.units, bool)
        if self.positions is not None:
            where = where & jnp.asarray(self.positions, bool)[..., None]
        return jnp.where(where, jnp.asarray(self.values).astype(h.dtype), h)


class Resample(eqx.Module):
    """Units take the values that they have on other tokens: nothing off their distribution, and nothing said.

    units: True for those to set. donors: activations of h's own shape, as h with its tokens exchanged.
    """

    units: Bool[Array, "d"]
    donors: Float[Array, "... d"]

    def __call__(self, h: Float[Array, "... d"]) -> Float[Array, "... d"]:
        """h with these units from the donors."""
        _check_width("Resample", "units", len(self.units), h)
        require("Resample", "donors", f"of shape {h.shape}", self.donors.shape, lambda shape: shape == h.shape)
        return jnp.where(jnp.asarray(self.units, bool), self.donors.astype(h.dtype), h)


class SetDirection(eqx.Module):
    """The component along a direction set to a value; what is orthogonal to it stays.

    h ← h + v (α − h·v/‖v‖²), so that the new component, in multiples of v, is α.

    direction: v, ``[units]``, not 0. value: α. positions: as for `SetUnits`.

    >>> SetDirection(jnp.array([0.0, 2.0]), 1.0)(jnp.array([5.0, 7.0])).tolist()
    [5.0, 2.0]
    """

    direction: Float[Array, "d"]
    value: Float[Array, ""] | float
    positions: Bool[Array, "..."] | None = None

    def __check_init__(self):
        require("SetDirection", "direction", "not 0", self.direction, lambda v: bool(np.any(v != 0)))

    def __call__(self, h: Float[Array, "... d"]) -> Float[Array, "... d"]:
        """h with this component."""
        _check_width("SetDirection", "direction", len(self.direction), h)
        wide = at_least_single(h)
        x, v = h.astype(wide), self.direction.astype(wide)
        change = (self.value - (x @ v) / (v @ v))[..., None] * v
        moved = (x + change).astype(h.dtype)
        return moved if self.positions is None else jnp.where(jnp.asarray(self.positions, bool)[..., None], moved, h)


class Project(eqx.Module):
    """Directions erased by a projection: h ← centre + (h − centre) P.

    matrix: P, ``[units, units]``, as of `keep_directions`. centre: 0 as in the paper, or the units' means, so that the
        erasure of a direction is not also one of the mean along it.
    """

    matrix: Float[Array, "d d"]
    centre: Float[Array, "d"] | float = 0.0

    def __check_init__(self):
        square = lambda shape: len(shape) == 2 and shape[0] == shape[1]  # noqa: E731
        require("Project", "matrix", "square", jnp.shape(self.matrix), square)

    def __call__(self, h: Float[Array, "... d"]) -> Float[Array, "... d"]:
        """h without what P leaves out."""
        _check_width("Project", "matrix", len(self.matrix), h)
        centre = jnp.asarray(self.centre).astype(h.dtype)
        return centre + (h - centre) @ self.matrix.astype(h.dtype)


def erasure_masks(order: Array, fractions: Array, from_: Literal["top", "bottom"] = "top") -> Bool[Array, "f d"]:
    """Which units to erase for each fraction, counted from the top or the bottom of a ranking.

    order: units, the most important first. fractions: in [0, 1]; that of d units is rounded to the nearest number.

    >>> erasure_masks(jnp.array([2, 0, 1]), jnp.array([0.0, 0.34]), "bottom").tolist()
    [[False, False, False], [False, True, False]]
    """
    require("erasure_masks", "from_", "'top' or 'bottom'", from_, lambda end: end in ("top", "bottom"))
    order, fractions = jnp.asarray(order), jnp.atleast_1d(jnp.asarray(fractions))
    require("erasure_masks", "order", "one entry a unit, [units]", order.ndim, lambda n: n == 1)
    inside = lambda shares: bool(np.all((shares >= 0) & (shares <= 1)))  # noqa: E731
    require("erasure_masks", "fractions", "in [0, 1]", fractions, inside)
    size = len(order)
    every = lambda units: np.array_equal(np.sort(units), np.arange(size))  # noqa: E731
    require("erasure_masks", "order", f"each of the {size} units once", order, every, "Give the order of a ranking.")
    rank = jnp.zeros(size, int).at[order].set(jnp.arange(size))
    counts = jnp.round(fractions * size)[:, None]
    return rank < counts if from_ == "top" else rank >= size - counts


def steer(mu_from: Array, mu_to: Array, strength: float | Array = 0.0) -> Array:
    """The value to set a unit to, so that its token changes from one class to another: μ_to + s (μ_to − μ_from).

    Strength 0 is the mean of the class wanted, more is beyond it. The paper writes α = μ₁ + β(μ₁ − μ₂) with μ₁ the mean
    to change *from*, so that its β > 0 leads away from the class wanted: s = −β − 1.

    mu_from, mu_to: the unit's mean over tokens of either class. strength: s.

    >>> float(steer(1.0, 3.0, 0.5))
    4.0
    """
    return jnp.asarray(mu_to + strength * (jnp.asarray(mu_to) - jnp.asarray(mu_from)))


def _check_width(owner: str, field: str, width: int, h: Array) -> None:
    rule = f"{h.shape[-1]} wide, as the activations are"
    require(owner, field, rule, width, lambda size: size == h.shape[-1])
