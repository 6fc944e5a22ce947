"""Isotonic regression: the best map among those that never fall."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int
from scipy.optimize import isotonic_regression

from laureate.uncertainty.binning import as_info
from laureate.uncertainty.calibration import AbstractCalibrator, AbstractScoreMap, CalibrationInfo, checked, sort_rows

__all__ = ["InterpolatedMap", "Isotonic", "pool_adjacent_violators"]


class InterpolatedMap(AbstractScoreMap):
    """Straight lines between the scores that were fitted, ascending; constant beyond the lowest and the highest."""

    scores: Float[Array, "rows"]
    values: Float[Array, "rows"]
    info: CalibrationInfo

    def transform(self, p: Float[Array, "..."]) -> Float[Array, "..."]:
        """The value of each score."""
        return jnp.interp(p, self.scores, self.values)

    def outside(self, p: Float[Array, "..."]) -> Int[Array, ""]:
        """How many scores lie beyond those that were fitted, where the map is a guess."""
        return jnp.sum((p < self.scores[0]) | (p > self.scores[-1]))


class Isotonic(AbstractCalibrator):
    """The least-squares map that never falls, argmin Σ w (γ(s) − y)² with γ(s) ≤ γ(s') for s < s'.

    Equal to scikit-learn's ``IsotonicRegression(out_of_bounds="clip")``, inside jit and vmap (Zadrozny & Elkan 2002).

    >>> import numpy as np
    >>> map = Isotonic().fit(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1]))
    >>> print(map.transform(np.array([0.0, 0.25, 0.3])))
    [0.  0.5 0.5]
    """

    def fit(
        self, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
    ) -> InterpolatedMap:
        """The map, by pooling adjacent violators."""
        rows = checked("Isotonic", p, y, weights)
        return _fit(*rows) if any(isinstance(part, Tracer) for part in rows) else _fit_here(*map(np.asarray, rows))


@eqx.filter_jit
def _fit(p, y, weights) -> InterpolatedMap:
    rows = sort_rows(p, y, weights)
    values, rounds = pool_adjacent_violators(rows.hit, rows.weight, rows.first)
    return InterpolatedMap(rows.score, values, as_info(cost=rounds))


def _fit_here(p: np.ndarray, y: np.ndarray, weights: np.ndarray) -> InterpolatedMap:
    """The same outside jit, in one pass of SciPy's: on a CPU XLA's sort alone takes longer than all of this."""
    order = np.argsort(p)
    score, weight = p[order], weights[order].astype(np.float64)
    start = np.flatnonzero(np.append(True, score[1:] != score[:-1]))  # of rows with equal scores
    mass = np.add.reduceat(weight, start)
    means = np.add.reduceat(weight * y[order], start) / mass
    values = isotonic_regression(means, weights=mass).x
    values = np.repeat(values, np.diff(np.append(start, len(p)))).astype(p.dtype)
    return InterpolatedMap(jnp.asarray(score), jnp.asarray(values), as_info())


def pool_adjacent_violators(
    y: Float[Array, "rows"], weights: Float[Array, "rows"], groups: Int[Array, "rows"] | None = None
) -> tuple[Float[Array, "rows"], Int[Array, ""]]:
    """The non-falling values nearest to ``y`` in weighted squares, and how many rounds of pooling they took.

    All neighbouring blocks whose means fall are pooled at once, and again until none falls: neighbours that fall have
    one value in the solution, so nothing pooled is wrong. Noisy rows take about ten rounds; rows made to provoke it
    take one a row.

    groups: rows with equal numbers, next to each other, get one value from the start.

    >>> import numpy as np
    >>> print(jax.jit(pool_adjacent_violators)(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4))[0])
    [1.  2.5 2.5 4. ]
    """
    size = y.shape[0]

    def means(block):
        total, mass = (
            jax.ops.segment_sum(part, block, size, indices_are_sorted=True) for part in (weights * y, weights)
        )
        return (total / jnp.where(mass > 0, mass, 1))[block]

    def numbered(new):
        return jnp.cumsum(jnp.concatenate([jnp.zeros(1, bool), new]).astype(int))

    def pool(state):
        block, value, _, rounds = state
        new = (block[1:] != block[:-1]) & (value[1:] > value[:-1])
        pooled = numbered(new)
        return pooled, means(pooled), pooled[-1] < block[-1], rounds + 1

    start = jnp.arange(size) if groups is None else numbered(groups[1:] != groups[:-1])
    first = (start, means(start), jnp.asarray(True), jnp.asarray(0))
    _, values, _, rounds = jax.lax.while_loop(lambda state: state[2], pool, first)
    return values, rounds
