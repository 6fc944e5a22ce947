"""Knockoffs of Gaussian tables: exact where mean and covariance are known, second-order where they are estimated."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from laureate._core import require
from laureate.selection.tables import check_table, location_and_scale, refuse_response

__all__ = ["GaussianKnockoffs", "SecondOrderKnockoffs", "ledoit_wolf", "solve_s", "symmetric_root"]

Method = Literal["equi", "sdp", "mvr"]
METHODS = ("equi", "sdp", "mvr")
SWEEPS = 30
BARRIER = (0.3, 1e-3)  # first and last weight of the barrier -log det(2Σ - S) of the SDP


class GaussianKnockoffs(eqx.Module):
    """Exact knockoffs of rows that are N(mean, covariance).

    X̃ | X ~ N(X - (X - μ) Σ⁻¹ S, 2S - S Σ⁻¹ S),  S = diag(s),  0 ≼ S ≼ 2Σ  (Candès, Fan, Janson & Lv 2018, eq. 3.2)

    mean: ``[p]``.
    covariance: ``[p, p]``, positive definite.
    method: how s is chosen, `solve_s`.

    >>> import jax
    >>> sampler = GaussianKnockoffs(jnp.zeros(3), jnp.eye(3), "equi")
    >>> sampler.s.tolist(), sampler.sample(jax.random.key(0), jnp.ones((5, 3))).shape
    ([1.0, 1.0, 1.0], (5, 3))
    """

    mean: Array
    covariance: Array
    s: Array

    def __init__(self, mean: Any, covariance: Any, method: Method = "mvr"):
        self.mean, self.covariance = jnp.asarray(mean, float), jnp.asarray(covariance, float)
        p = self.mean.shape[0] if self.mean.ndim == 1 else -1
        require(
            "GaussianKnockoffs",
            "covariance",
            f"of shape {(p, p)}",
            self.covariance.shape,
            lambda found: found == (p, p),
        )
        check_definite("GaussianKnockoffs", "covariance", self.covariance)
        self.s = solve_s(self.covariance, method)

    def fit(self, key: Array, x: Any, y: Any = None) -> "GaussianKnockoffs":
        """The sampler itself: its law is known."""
        refuse_response("GaussianKnockoffs", y)
        return self

    def conditional(self, x: Array) -> tuple[Array, Array]:
        """Mean ``[n, p]`` and covariance ``[p, p]`` of X̃ given X."""
        mean, deviation, covariance = self._standardised(x)
        return mean, covariance * jnp.outer(deviation, deviation)

    def _standardised(self, x: Array) -> tuple[Array, Array, Array]:
        """The mean of X̃ given X, the standard deviations, and the covariance of X̃ given X in units of them.

        On the correlation R, where no column's unit drowns the others in float32: with Z = (X - μ) / σ and
        S_R = diag(s / σ²), X̃ = X - σ (Z R⁻¹ S_R) + σ N(0, 2 S_R - S_R R⁻¹ S_R).
        """
        deviation, correlation = correlation_of(self.covariance)
        s = self.s / deviation**2
        projected = jnp.linalg.solve(correlation, jnp.diag(s))  # R⁻¹ S_R
        mean = x - deviation * (((x - self.mean) / deviation) @ projected)
        covariance = 2.0 * jnp.diag(s) - s[:, None] * projected
        return mean, deviation, 0.5 * (covariance + covariance.T)

    def sample(self, key: Array, x: Any) -> Array:
        """One draw of knockoffs ``[n, p]`` for the rows of ``x``."""
        x = jnp.asarray(x, self.mean.dtype)
        mean, deviation, covariance = self._standardised(x)
        return mean + deviation * (jax.random.normal(key, x.shape, x.dtype) @ symmetric_root(covariance))


class SecondOrderKnockoffs(eqx.Module):
    """Gaussian knockoffs with mean and covariance estimated from the table: valid to second moments.

    method: as in `GaussianKnockoffs`.
    shrinkage: None for the sample covariance, "ledoit-wolf", or the share in [0, 1] by which correlations are shrunk.

    >>> import jax
    >>> x = jax.random.normal(jax.random.key(0), (50, 3))
    >>> fitted = SecondOrderKnockoffs("equi").fit(jax.random.key(1), x)
    >>> fitted.sample(jax.random.key(2), x).shape
    (50, 3)
    """

    method: Method = eqx.field(static=True, default="mvr")
    shrinkage: float | str | None = None

    def __check_init__(self):
        require("SecondOrderKnockoffs", "method", f"one of {METHODS}", self.method, lambda m: m in METHODS)
        require(
            "SecondOrderKnockoffs",
            "shrinkage",
            "None, 'ledoit-wolf' or in [0, 1]",
            self.shrinkage,
            lambda s: s is None or s == "ledoit-wolf" or (not isinstance(s, str) and 0 <= s <= 1),
        )

    def fit(self, key: Array, x: Any, y: Any = None) -> GaussianKnockoffs:
        """Gaussian knockoffs with the table's own moments."""
        refuse_response("SecondOrderKnockoffs", y)
        x = check_table("SecondOrderKnockoffs", x)
        n, p = x.shape
        if self.shrinkage is None:
            require(
                "SecondOrderKnockoffs",
                "X",
                "of more rows than columns without shrinkage",
                (n, p),
                lambda shape: shape[0] > shape[1],
                "Its covariance is singular: give shrinkage='ledoit-wolf'.",
            )
        mean, scale = location_and_scale(x)
        z = (x - mean) / scale
        correlation = z.T @ z / n
        if isinstance(self.shrinkage, str):
            weight = ledoit_wolf(z)
        else:
            weight = 0.0 if self.shrinkage is None else self.shrinkage
        shrunk = (1 - weight) * correlation + weight * jnp.diag(jnp.diag(correlation))
        return GaussianKnockoffs(mean, shrunk * jnp.outer(scale, scale), self.method)


def solve_s(covariance: Array, method: Method = "mvr") -> Array:
    """The diagonal s of S = Σ - cov(X, X̃): the larger, the less a knockoff resembles its original.

    equi: s_j = min(1, 2 λ_min(R)) Σ_jj, the same for all. sdp: max Σ s_j, 0 <= s <= 1. mvr: min tr G⁻¹ of the joint
    covariance G, whose blocks are 2R - S and S: tr (2R - S)⁻¹ + Σ 1/s_j (Spector & Janson 2022). All on the
    correlation R, then scaled back.

    >>> [round(float(v), 3) for v in solve_s(jnp.array([[1.0, 0.8], [0.8, 1.0]]), "equi")]
    [0.4, 0.4]
    """
    require("solve_s", "method", f"one of {METHODS}", method, lambda m: m in METHODS)
    deviation, correlation = correlation_of(covariance)
    p = correlation.shape[0]
    smallest = jnp.linalg.eigvalsh(correlation)[0]
    equal = jnp.full(p, jnp.clip(2.0 * smallest, 0.0, 1.0), correlation.dtype)
    if method == "equi":
        s = equal
    else:
        s = _coordinate_descent(correlation, 0.5 * equal, method)
        # Rounding, and the last barrier, may leave S a hair outside 2R: λ_max(√S (2R)⁻¹ √S) must be 1 at most.
        root = jnp.sqrt(s)
        reach = jnp.linalg.eigvalsh(root[:, None] * jnp.linalg.inv(2.0 * correlation) * root)[-1]
        s = s / jnp.maximum(1.0, reach * (1.0 + 20.0 * jnp.finfo(s.dtype).eps))
    return s * deviation**2


def _coordinate_descent(correlation: Array, start: Array, method: Method) -> Array:
    """One s_j after another, each to its optimum in closed form, with A = (2R - S)⁻¹ kept by rank-one updates.

    s_j → s_j + δ turns tr A into tr A + δ (A²)_jj / (1 - δ A_jj) and det into det (1 - δ A_jj), so
    mvr: (s_j + δ) c = 1 - δ A_jj,  c = √(A²)_jj;      sdp with barrier b: δ = 1/A_jj - b, then s_j cut to [0, 1].
    """
    p = correlation.shape[0]
    barriers = jnp.geomspace(*BARRIER, SWEEPS).astype(correlation.dtype)

    def sweep(s, barrier):
        # Anew each sweep: errors of rank-one updates do not add up.
        inverse = jnp.linalg.inv(2.0 * correlation - jnp.diag(s))

        def coordinate(j, carry):
            s, inverse = carry
            row = inverse[j]
            if method == "mvr":
                c = jnp.linalg.norm(row)
                delta = (1.0 - s[j] * c) / (row[j] + c)
            else:
                delta = jnp.clip(s[j] + 1.0 / row[j] - barrier, 0.0, 1.0) - s[j]
            inverse = inverse + (delta / (1.0 - delta * row[j])) * jnp.outer(row, row)
            return s.at[j].add(delta), inverse

        return jax.lax.fori_loop(0, p, coordinate, (s, inverse))[0], None

    return jax.lax.scan(sweep, start, barriers)[0]


def ledoit_wolf(z: Array) -> Array:
    """By how much to shrink the correlations of standardised rows ``z`` towards 0 (Ledoit & Wolf 2004).

    δ = min(1, b²/d²) with d² = ‖R - I‖²/p and b² the mean squared error of R: Σ_i ‖z_i z_iᵀ - R‖² / (n² p).
    """
    n, p = z.shape
    r = z.T @ z / n
    distance = jnp.sum((r - jnp.eye(p, dtype=z.dtype)) ** 2) / p
    error = (jnp.sum(jnp.sum(z**2, axis=1) ** 2) / n - jnp.sum(r**2)) / (n * p)
    return jnp.clip(error / jnp.maximum(distance, 1e-12), 0.0, 1.0)


def symmetric_root(covariance: Array) -> Array:
    """A symmetric root of a matrix that may be singular, as it is where s reaches its bound."""
    values, vectors = jnp.linalg.eigh(covariance)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T


def correlation_of(covariance: Array) -> tuple[Array, Array]:
    """Standard deviations ``[p]`` and correlations ``[p, p]``."""
    deviation = jnp.sqrt(jnp.diag(covariance))
    return deviation, covariance / jnp.outer(deviation, deviation)


def check_definite(owner: str, field: str, covariance: Array) -> None:
    """``ValueError`` unless the matrix is symmetric and its correlations positive definite beyond rounding.

    The smallest eigenvalue must exceed p · eps · λ_max, eps of the matrix's own type. A traced one is let through.
    """
    if isinstance(covariance, Tracer):
        return
    values = np.asarray(covariance, np.float64)
    found: float | str = float("nan")
    tolerance = 0.0
    if np.isfinite(values).all():
        variances = np.diag(values)
        found = float(variances.min())  # where a variance is not positive there are no correlations
        if found > 0:
            correlation = values / np.sqrt(np.outer(variances, variances))
            eigenvalues = np.linalg.eigvalsh(0.5 * (correlation + correlation.T))
            tolerance = len(values) * float(jnp.finfo(covariance.dtype).eps) * float(eigenvalues[-1])
            found = (
                float(eigenvalues[0]) if np.allclose(correlation, correlation.T, atol=1e-5) else "an unsymmetric matrix"
            )
    require(
        owner,
        field,
        "symmetric and positive definite",
        found,
        lambda found: not isinstance(found, str) and found > tolerance,
        "The number is the smallest eigenvalue of its correlations: leave out columns that others determine, or "
        "shrink it.",
    )
