"""Calibration by the slope of a spline through cumulated hits."""

import warnings
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import Status, require
from laureate.uncertainty.binning import as_info
from laureate.uncertainty.calibration import AbstractCalibrator, CalibrationWarning, checked, running, sort_rows
from laureate.uncertainty.isotonic import InterpolatedMap, pool_adjacent_violators

__all__ = ["NaturalSpline", "SplineCalibrator"]


class NaturalSpline:
    """The natural cubic splines with given knots; each is linear in its values v at the knots.

    On [k_j, k_{j+1}], with u = t − k_j, S(t) = Σ_m (coefficients[m, j] · v) u^m. NumPy, once for all fits.

    knots: ascending positions, at least two.

    >>> import jax
    >>> spline = NaturalSpline((0.0, 0.5, 1.0))
    >>> print(jax.jit(spline.design)(jnp.array([0.5]))[0])
    [0. 1. 0.]
    """

    def __init__(self, knots: tuple[float, ...]):
        self.knots = np.asarray(knots, np.float64)
        size, h = len(self.knots), np.diff(self.knots)
        # Second derivatives M = B v: h_{i-1} M_{i-1} + 2 (h_{i-1} + h_i) M_i + h_i M_{i+1} = 6 (slope_i − slope_{i-1}),
        # with M = 0 at both ends.
        slope = (np.eye(size)[1:] - np.eye(size)[:-1]) / h[:, None]
        bands, right = np.eye(size), np.zeros((size, size))
        for i in range(1, size - 1):
            bands[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
            right[i] = 6 * (slope[i] - slope[i - 1])
        second = np.linalg.solve(bands, right)
        linear = slope - h[:, None] * (2 * second[:-1] + second[1:]) / 6
        cubic = (second[1:] - second[:-1]) / (6 * h[:, None])
        self.coefficients = np.stack([np.eye(size)[:-1], linear, second[:-1] / 2, cubic])  # [power, piece, knot]

    def design(self, t: Float[Array, "points"]) -> Float[Array, "points knots"]:
        """A(t), so that S(t) = A(t) v."""
        piece = jnp.clip(jnp.searchsorted(self.knots, t, side="right") - 1, 0, len(self.knots) - 2)
        u = (t - jnp.asarray(self.knots, t.dtype)[piece])[:, None]
        c0, c1, c2, c3 = (jnp.asarray(part, t.dtype)[piece] for part in self.coefficients)
        return c0 + u * (c1 + u * (c2 + u * c3))

    def mean_slope(
        self, low: Float[Array, "points"], high: Float[Array, "points"], values: Float[Array, "knots"]
    ) -> Float[Array, "points"]:
        """(S(high) − S(low)) / (high − low), piece by piece, so that nothing cancels where the two are near."""
        _, c1, c2, c3 = jnp.asarray(self.coefficients, values.dtype) @ values  # [piece] each
        total = jnp.zeros_like(low)
        for j, (start, end) in enumerate(zip(self.knots[:-1], self.knots[1:], strict=True)):
            a, b = jnp.clip(low, start, end) - start, jnp.clip(high, start, end) - start
            total += (b - a) * (c1[j] + c2[j] * (a + b) + c3[j] * (a**2 + a * b + b**2))
        return total / (high - low)


class SplineCalibrator(AbstractCalibrator):
    """Turns scores into probabilities without bins, by the slope of a spline through running sums of hits.

    ::

        h(t) = P(hit, score ≤ s(t)),   γ(s(t)) = h'(t)     (Gupta et al. 2021, proposition 4.1)

    With rows by ascending score and t_i their fractiles, a natural cubic spline S is fitted by least squares to the
    running sums of y − s (``target="residual"``: γ = s + S') or of y (``"direct"``: γ = S'). Of each row counts the
    mean slope over its own step of t, of rows with equal scores the mean over all of them; between scores γ is linear,
    beyond them constant.

    knots: how many, equally spaced in t, >= 2, or their positions from 0 to 1. Four suffice below 500 rows.
    target: ``"residual"``, as the authors' code has it, or ``"direct"``, as their text.
    ends: ``"pinned"``: S begins at 0 and ends at the whole sum, so that the mean of γ over the fitted rows is the share
        of hits, exactly; ``"free"``, as in the paper: all values are fitted, (0, 0) as one more point.
    monotone: whether γ is then made never to fall, by isotonic regression; as published it may fall a little.

    >>> p = 0.5 + np.arange(100) / 200
    >>> map = SplineCalibrator(knots=3).fit(p, p - 0.1 * p**2)
    >>> print(np.round(map.transform(np.array([0.6, 0.9])), 2))
    [0.57 0.82]
    """

    knots: int | tuple[float, ...] = eqx.field(static=True, default=6)
    target: Literal["residual", "direct"] = eqx.field(static=True, default="residual")
    ends: Literal["pinned", "free"] = eqx.field(static=True, default="pinned")
    monotone: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if isinstance(self.knots, int):
            require("SplineCalibrator", "knots", ">= 2", self.knots, lambda k: k >= 2)
        else:
            rule = "positions ascending from 0 to 1"
            fine = lambda k: len(k) >= 2 and k[0] == 0 and k[-1] == 1 and bool(np.all(np.diff(k) > 0))  # noqa: E731
            require("SplineCalibrator", "knots", rule, self.knots, fine)
        for field, choices in (("target", ("residual", "direct")), ("ends", ("pinned", "free"))):
            require("SplineCalibrator", field, " or ".join(choices), getattr(self, field), lambda v: v in choices)  # noqa: B023

    def positions(self) -> tuple[float, ...]:
        """Of the knots, in fractiles."""
        return tuple(np.linspace(0, 1, self.knots).tolist()) if isinstance(self.knots, int) else self.knots

    def fit(
        self, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
    ) -> InterpolatedMap:
        """The map γ; warns where rows, or distinct scores, are too few for it (not under jit)."""
        p, y, weights = checked("SplineCalibrator", p, y, weights)
        number = len(self.positions())
        remedy = f"Use at most {max(2, p.size // 5)} knots, or Constant." if p.size >= 10 else "Use Constant."
        require("SplineCalibrator", "rows", f">= 5 a knot, {5 * number}", p.size, lambda n: n >= 5 * number, remedy)
        fitted = _fit(self, p, y, weights)
        if not any(isinstance(part, Tracer) for part in (p, y, fitted.values)):
            self._doubt(np.asarray(p), np.asarray(y), number, float(fitted.info.clipped))
        return fitted

    def _doubt(self, p: np.ndarray, y: np.ndarray, number: int, clipped: float) -> None:
        distinct = len(np.unique(p))
        doubts = (
            (y.min() == y.max(), f"every row has y = {y[0]}: the map is that constant"),
            (p.size < 500 and number > 4, f"{p.size} rows are few for {number} knots; use knots=4"),
            (
                distinct < max(2 * number, p.size / 2),
                f"{p.size} rows have {distinct} distinct scores; use HistogramBinning or Constant",
            ),
            (clipped > 0.05, f"{clipped:.0%} of the fitted probabilities were clipped to [0, 1]; use fewer knots"),
        )
        for doubtful, words in doubts:
            if doubtful:
                warnings.warn(f"SplineCalibrator: {words}.", CalibrationWarning, stacklevel=3)


@eqx.filter_jit
def _fit(self: SplineCalibrator, p, y, weights) -> InterpolatedMap:
    spline, rows = NaturalSpline(self.positions()), sort_rows(p, y, weights)
    base = rows.score if self.target == "residual" else jnp.zeros_like(rows.score)
    t, sums = running(rows.weight), running(rows.weight * (rows.hit - base))
    t_low, t_high, h = t[rows.first], t[rows.last], sums[rows.last]
    values = _knot_values(spline, self.ends, t_high, h, rows.weight, sums[-1])
    gamma = base + spline.mean_slope(t_low, t_high, values)  # γ(s(t)) = h'(t)
    if self.monotone:
        gamma, _ = pool_adjacent_violators(gamma, rows.weight, rows.first)
    kept = jnp.clip(gamma, 0, 1)
    same = jnp.max(y) == jnp.min(y)  # a spline has nothing to say then
    status = jnp.where(jnp.all(jnp.isfinite(gamma)), Status.OK, Status.DIVERGED)
    info = as_info(status, 1, jnp.mean((gamma < 0) | (gamma > 1)))
    return InterpolatedMap(rows.score, jnp.where(same, y[0], kept), info)


def _knot_values(spline: NaturalSpline, ends: str, t, h, weights, total):
    """The values at the knots of the spline nearest to (t, h) in weighted squares."""
    if ends == "free":  # with the origin, as heavy as a row
        t, h = (jnp.concatenate([jnp.zeros(1, part.dtype), part]) for part in (t, h))
        weights = jnp.concatenate([jnp.full(1, 1 / weights.size, weights.dtype), weights])
        return _least_squares(spline.design(t), h, weights)
    # S(0) = 0 and S(1) = the whole sum; the inner values are free.
    design = spline.design(t)
    free = _least_squares(design[:, 1:-1], h - design[:, -1] * total, weights)
    return jnp.concatenate([jnp.zeros(1, h.dtype), free, total[None]])


def _least_squares(design, aims, weights):
    """Of the shortest solution where few distinct scores leave several; cardinal splines are well conditioned."""
    if not design.shape[1]:
        return jnp.zeros(0, aims.dtype)
    weighted = design * weights[:, None]
    return jnp.linalg.lstsq(weighted.T @ design, weighted.T @ aims)[0]
