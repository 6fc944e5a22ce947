"""Theorem 1 as numbers: up to which sparsity recovery is guaranteed, with which thresholds, and how fast.

The guarantee is worst-case and covers little: for a random D of 250 × 500 codes with at most two entries, while fifty
are recovered in practice.
"""

import math
import warnings
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from laureate._core import require
from laureate.recovery.weights import coherence

__all__ = ["Certificate", "certified_schedule", "max_sparsity"]


class Certificate(NamedTuple):
    """Steps and thresholds for which Theorem 1 holds, and what it then says.

    gamma, theta: [layers], for `ALISTA(D, W, gamma=…, theta=…, support=None)`.
    error_bound: [layers + 1], no code's error ‖x^k − x*‖₁ is above it after k layers; rate: its factor a layer.
    """

    gamma: Array
    theta: Array
    error_bound: Array
    rate: Array


def max_sparsity(D: Any, W: Any = None) -> int:  # noqa: N803
    """The largest s < (1 + 1/μ)/2 with μ the coherence of D with W: Theorem 1 covers codes with so many entries.

    >>> max_sparsity(jnp.array([[1.0, 0.6], [0.0, 0.8]]))
    1
    """
    size = jnp.asarray(D).shape[-1]
    mu = float(coherence(D, W))
    return size if mu == 0 else min(size, math.ceil((1 + 1 / mu) / 2) - 1)


def certified_schedule(
    D: Any,  # noqa: N803
    W: Any,  # noqa: N803
    *,
    sparsity: int,
    bound: float = 1.0,
    num_layers: int = 16,
    gamma: float | Array = 1.0,
) -> Certificate:
    """θ_k = γ μ sup‖x^k − x*‖₁ and the bound that follows, for codes of at most ``sparsity`` entries within ±``bound``.

    sup‖x^{k+1} − x*‖₁ <= ((2μs − μ)γ + |1 − γ|) sup‖x^k − x*‖₁, from sup‖x*‖₁ = s B. No training, no data.
    Warns where s is beyond the theorem: the numbers are then no guarantee.

    D, W: the dictionary and its analytic weight (`analytic_weight`). num_layers: of thresholds. gamma: γ, the step.
    """
    require("certified_schedule", "sparsity", ">= 1", sparsity, lambda s: s >= 1)
    require("certified_schedule", "bound", "> 0", bound, lambda b: b > 0)
    require("certified_schedule", "num_layers", ">= 1", num_layers, lambda n: n >= 1)
    matrix, weight = jnp.asarray(D), jnp.asarray(W)
    diagonal = jnp.sum(weight * matrix, axis=0)
    mu = coherence(matrix, weight)
    if not isinstance(mu, Tracer):
        if (worst := float(jnp.max(jnp.abs(diagonal - 1)))) > 1e-3:
            raise ValueError(
                f"W must have w_mᵀ d_m = 1; one is off by {worst:.3g}. Compute it anew: analytic_weight(D)."
            )
        covered = max_sparsity(matrix, weight)
        if sparsity > covered:
            warnings.warn(
                f"Theorem 1 covers s <= {covered} for this D (coherence {float(mu):.3g}); s = {sparsity} requested.",
                stacklevel=2,
            )
        largest = 2 / (2 * float(mu) * sparsity - float(mu) + 1)
        rule = f"within 0 and 2/(2μs − μ + 1) = {largest:.4g}"
        require("certified_schedule", "gamma", rule, gamma, lambda g: np.all((g > 0) & (g < largest)))
    rate = (2 * mu * sparsity - mu) * gamma + jnp.abs(1 - jnp.asarray(gamma, mu.dtype))
    error_bound = sparsity * bound * rate ** jnp.arange(num_layers + 1, dtype=mu.dtype)
    gammas = jnp.full(num_layers, gamma, mu.dtype)
    return Certificate(gammas, gammas * mu * error_bound[:-1], error_bound, rate)
