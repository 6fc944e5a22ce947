"""A density whose mean and covariance are known: what samplers and particles are held against."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["GaussianTarget"]


class GaussianTarget(eqx.Module):
    """N(0, Σ), Σ_ij = ρ^|i−j|: neighbours correlate by ρ, and the precision has three diagonals.

    Its ``mean`` and ``covariance`` are what a reference gives for a density of one's own.

    >>> target = GaussianTarget(3, 0.5)
    >>> float(target.logdensity(jnp.zeros(3))), target.covariance[0].tolist()
    (-0.0, [1.0, 0.5, 0.25])
    """

    mean: Float[Array, "d"]
    covariance: Float[Array, "d d"]
    precision: Float[Array, "d d"]

    def __init__(self, dimension: int, correlation: float = 0.0):
        require("GaussianTarget", "dimension", ">= 1", dimension, lambda d: d >= 1)
        require("GaussianTarget", "correlation", "in (-1, 1)", correlation, lambda c: -1 < c < 1)
        lags = np.abs(np.arange(dimension)[:, None] - np.arange(dimension))
        covariance = np.where(lags > 0, float(correlation) ** lags, 1.0)
        self.mean = jnp.zeros(dimension)
        self.covariance = jnp.asarray(covariance, jnp.float32)
        self.precision = jnp.asarray(np.linalg.inv(covariance), jnp.float32)

    def logdensity(self, x: Float[Array, "d"]) -> Array:
        """Up to a constant."""
        return -x @ self.precision @ x / 2
