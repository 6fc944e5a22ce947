"""Changing what a model says by setting the units that say it: which units, to what, and whether that is still sane."""

import warnings
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require
from laureate.interpretation.interventions import SetUnits, steer
from laureate.interpretation.probes import GaussianProbe

__all__ = ["ControlPlan", "OffDistributionWarning", "control", "property_units"]


class OffDistributionWarning(UserWarning):
    """A unit is set to a value that it hardly ever has; what the model then says may be nonsense."""


class ControlPlan(NamedTuple):
    """Which units are set, to what, and how far that is from where they are.

    units: True for those set. values: what to, ``[units]``. distance: from the class to change from, in its standard
    deviations.
    """

    units: Bool[Array, "d"]
    values: Float[Array, "d"]
    distance: Float[Array, "d"]


def property_units(scores: Float[Array, "d"], num_units: int) -> Int[Array, "k"]:
    """The units with the highest scores, as of a probe's accuracy; of equals the first.

    num_units: how many, in 1..units.

    >>> property_units(jnp.array([0.5, 0.9, 0.7]), 2).tolist()
    [1, 2]
    """
    scores = jnp.asarray(scores)
    rule = f"in 1..{len(scores)}"
    require("property_units", "num_units", rule, num_units, lambda k: 1 <= k <= len(scores))
    return jnp.argsort(-scores, stable=True)[:num_units]


def control(
    probe: GaussianProbe,
    units: Int[Array, "k"],
    change: tuple[int, int],
    strength: float | Array = 0.0,
    positions: Bool[Array, "..."] | None = None,
) -> tuple[SetUnits, ControlPlan]:
    """Set units so that tokens of one class are taken for another: an intervention, and what it does.

    probe: fitted on tokens like these, for the classes' means. units: which to set, as of `property_units`.
    change: the class to change from and the class wanted. strength: as for `steer`; 0 is the mean of the class wanted.
    positions: True for the tokens to change; None: all.
    """
    classes, width = probe.means.shape
    rule = f"two different classes in 0..{classes - 1}"
    fine = lambda pair: len(set(pair)) == 2 and all(0 <= c < classes for c in pair)  # noqa: E731
    require("control", "change", rule, tuple(change), fine)
    inside = lambda u: u.ndim == 1 and u.size > 0 and bool(np.all((u >= 0) & (u < width)))  # noqa: E731
    units = jnp.asarray(units)
    require("control", "units", f"a list of numbers in 0..{width - 1}", units, inside)
    start, end = change
    values = steer(probe.means[start], probe.means[end], strength)
    chosen = jnp.zeros(width, bool).at[units].set(True)
    distance = jnp.abs(values - probe.means[start]) / jnp.sqrt(probe.variances[start])
    plan = ControlPlan(chosen, values, distance)
    _warn(distance, chosen)
    return SetUnits(chosen, values, positions), plan


def _warn(distance: Array, chosen: Array) -> None:
    try:
        far = np.flatnonzero(np.asarray(chosen & (distance > 5)))
    except Exception:  # under jit nothing is known yet; the plan has the distances
        return
    if far.size:
        warnings.warn(
            f"units {far[:10].tolist()} are set more than 5 standard deviations from where they are: the model has "
            "never seen such activations, and may answer nonsense. Set more units, each by less.",
            OffDistributionWarning,
            stacklevel=3,
        )
