"""The simplest maps: leave scores as they are, one number for all, one number a bin."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import Status, require
from laureate.uncertainty.calibration import AbstractCalibrator, AbstractScoreMap, CalibrationInfo, checked

__all__ = ["Constant", "HistogramBinning", "Identity", "IdentityMap", "StepMap"]


def as_info(status: Array | int = Status.OK, cost: Array | int = 1, clipped: Array | float = 0.0) -> CalibrationInfo:
    """An info of arrays."""
    return CalibrationInfo(jnp.asarray(cost), jnp.asarray(clipped), jnp.asarray(status))


class StepMap(AbstractScoreMap):
    """One value a bin: ``values[b]`` for scores in (edges[b − 1], edges[b]]."""

    edges: Float[Array, "inner"]
    values: Float[Array, "bins"]
    info: CalibrationInfo

    def transform(self, p: Float[Array, "..."]) -> Float[Array, "..."]:
        """The value of each score's bin."""
        return _looked_up(self.edges, self.values, p)


@jax.jit
def _looked_up(edges, values, p):
    return values[jnp.searchsorted(edges, p, side="left")]


class IdentityMap(AbstractScoreMap):
    """The scores as they are."""

    info: CalibrationInfo

    def transform(self, p: Float[Array, "..."]) -> Float[Array, "..."]:
        """The same scores."""
        return jnp.asarray(p)


class Identity(AbstractCalibrator):
    """Leaves scores as they are, γ(s) = s: what every other map should improve.

    >>> import numpy as np
    >>> print(Identity().fit(np.array([0.2, 0.9]), np.array([0, 1])).transform(np.array([0.5])))
    [0.5]
    """

    def fit(
        self, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
    ) -> IdentityMap:
        """Nothing is learned."""
        checked("Identity", p, y, weights)
        return IdentityMap(as_info(cost=0))


class Constant(AbstractCalibrator):
    """One number for every score, γ(s) = ȳ, the share of hits: calibrated, and of no use to tell rows apart.

    >>> import numpy as np
    >>> print(Constant().fit(np.array([0.2, 0.9]), np.array([0, 1])).transform(np.array([0.7])))
    [0.5]
    """

    def fit(
        self, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
    ) -> StepMap:
        """The mean of the hits."""
        return _fit_constant(*checked("Constant", p, y, weights))


@eqx.filter_jit
def _fit_constant(p, y, weights) -> StepMap:
    return StepMap(jnp.zeros(0, p.dtype), jnp.average(y, weights=weights)[None], as_info())


class HistogramBinning(AbstractCalibrator):
    """The share of hits in each bin of scores, γ(s) = ȳ_b for s in bin b (Zadrozny & Elkan 2001).

    num_bins: how many, >= 1.
    scheme: ``"mass"``: bins of equally many rows (of equal weight); ``"width"``: equally wide ones. A bin without rows
        gives its middle.

    >>> import numpy as np
    >>> map = HistogramBinning(num_bins=2).fit(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 1, 1, 1]))
    >>> print(map.transform(np.array([0.0, 1.0])))
    [0.5 1. ]
    """

    num_bins: int = eqx.field(static=True, default=15)
    scheme: Literal["mass", "width"] = eqx.field(static=True, default="mass")

    def __check_init__(self):
        require("HistogramBinning", "num_bins", ">= 1", self.num_bins, lambda b: b >= 1)
        require("HistogramBinning", "scheme", "mass or width", self.scheme, lambda s: s in ("mass", "width"))

    def fit(
        self, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
    ) -> StepMap:
        """The edges, and the share of hits between them."""
        return _fit(self, *checked("HistogramBinning", p, y, weights))


@eqx.filter_jit
def _fit(self: HistogramBinning, p, y, weights) -> StepMap:
    shares = jnp.arange(1, self.num_bins, dtype=p.dtype) / self.num_bins
    if self.scheme == "mass":
        order = jnp.argsort(p)
        # The largest score of the rows that hold the first b/bins of the weight.
        mass = jnp.cumsum(weights[order]) / jnp.sum(weights)
        edges = p[order][jnp.searchsorted(mass, shares - 4 * jnp.finfo(p.dtype).eps)]
    else:
        edges = shares
    which = jnp.searchsorted(edges, p, side="left")
    mass, hits = (jax.ops.segment_sum(part, which, self.num_bins) for part in (weights, weights * y))
    ends = jnp.concatenate([jnp.zeros(1, p.dtype), edges, jnp.ones(1, p.dtype)])
    values = jnp.where(mass > 0, hits / jnp.where(mass > 0, mass, 1), (ends[1:] + ends[:-1]) / 2)
    return StepMap(edges, values, as_info())
