"""Knockoffs of mixtures of Gaussians: exact where the mixture is known, else fitted by expectation maximisation."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer

from laureate import loops
from laureate._core import require
from laureate.selection.gaussian import METHODS, GaussianKnockoffs, Method, check_definite
from laureate.selection.tables import check_table, location_and_scale, refuse_response

__all__ = ["GaussianMixtureKnockoffs", "MixtureKnockoffs"]


class GaussianMixtureKnockoffs(eqx.Module):
    """Exact knockoffs of rows from Σ_k w_k N(μ_k, Σ_k) (Gimenez, Ghorbani & Zou 2019).

    k ~ P(k | X) ∝ w_k N(X; μ_k, Σ_k),  then X̃ as in `GaussianKnockoffs` of component k.

    weights: ``[K]``, >= 0; only their ratios matter.
    means: ``[K, p]``.
    covariances: ``[K, p, p]``, positive definite.
    method: how each component's s is chosen, `solve_s`.

    >>> sampler = GaussianMixtureKnockoffs([0.3, 0.7], [[-2.0, 0.0], [2.0, 0.0]], [jnp.eye(2), jnp.eye(2)], "equi")
    >>> sampler.sample(jax.random.key(0), jnp.ones((5, 2))).shape
    (5, 2)
    """

    log_weights: Array
    components: GaussianKnockoffs  # every leaf with a leading axis of components

    def __init__(self, weights: Any, means: Any, covariances: Any, method: Method = "mvr"):
        weights, means, covariances = (jnp.asarray(v, float) for v in (weights, means, covariances))
        _check_mixture(weights, means, covariances)
        self.log_weights = jnp.log(weights)
        self.components = jax.vmap(lambda mean, covariance: GaussianKnockoffs(mean, covariance, method))(
            means, covariances
        )

    def fit(self, key: Array, x: Any, y: Any = None) -> "GaussianMixtureKnockoffs":
        """The sampler itself: its law is known."""
        refuse_response("GaussianMixtureKnockoffs", y)
        return self

    def sample(self, key: Array, x: Any) -> Array:
        """One draw of knockoffs ``[n, p]`` for the rows of ``x``."""
        x = jnp.asarray(x, self.log_weights.dtype)
        which_key, noise_key = jax.random.split(key)
        scores = log_densities(x, self.log_weights, self.components.mean, self.components.covariance)
        which = jax.random.categorical(which_key, scores)  # [n]
        draws = jax.vmap(lambda component: component.sample(noise_key, x))(self.components)  # [K, n, p]
        return jnp.take_along_axis(draws, which[None, :, None], axis=0)[0]


class MixtureKnockoffs(eqx.Module):
    """Knockoffs from a mixture of Gaussians that is fitted to the table.

    (w, μ, Σ) = argmax Σ_i log Σ_k w_k N(X_i; μ_k, Σ_k) by expectation maximisation, then `GaussianMixtureKnockoffs`.

    num_components: K, >= 1.
    method: how each component's s is chosen, `solve_s`.
    num_restarts: how many fits from random rows, >= 1; the likeliest is kept.
    num_steps: of each fit, >= 1.
    ridge: > 0, added to the variances of a component, in units of the table's own.

    >>> x = jax.random.normal(jax.random.key(0), (60, 2))
    >>> fitted = MixtureKnockoffs(2, "equi", num_restarts=1, num_steps=3).fit(jax.random.key(1), x)
    >>> fitted.sample(jax.random.key(2), x).shape
    (60, 2)
    """

    num_components: int = eqx.field(static=True, default=4)
    method: Method = eqx.field(static=True, default="mvr")
    num_restarts: int = eqx.field(static=True, default=4)
    num_steps: int = eqx.field(static=True, default=60)
    ridge: float | Array = 1e-2

    def __check_init__(self):
        require("MixtureKnockoffs", "num_components", ">= 1", self.num_components, lambda v: v >= 1)
        require("MixtureKnockoffs", "method", f"one of {METHODS}", self.method, lambda m: m in METHODS)
        require("MixtureKnockoffs", "num_restarts", ">= 1", self.num_restarts, lambda v: v >= 1)
        require("MixtureKnockoffs", "num_steps", ">= 1", self.num_steps, lambda v: v >= 1)
        require("MixtureKnockoffs", "ridge", "> 0", self.ridge, lambda v: v > 0)

    def fit(
        self, key: Array, x: Any, y: Any = None, progress: Callable[[loops.Progress], None] | None = None
    ) -> GaussianMixtureKnockoffs:
        """The likeliest of several mixtures, with its knockoffs.

        progress: called about every second with a ``laureate.loops.Progress``; not within jit.
        """
        refuse_response("MixtureKnockoffs", y)
        x = check_table("MixtureKnockoffs", x)
        require(
            "MixtureKnockoffs",
            "X",
            f"of more rows than num_components = {self.num_components}",
            x.shape[0],
            lambda n: n > self.num_components,
        )
        mean, scale = location_and_scale(x)
        z = (x - mean) / scale
        starts = jax.vmap(lambda k: self._start(k, z))(jax.random.split(key, self.num_restarts))
        step = lambda fits, _: jax.vmap(lambda fit: self._expectation_maximisation(fit, z))(fits)  # noqa: E731
        fits, likelihoods = loops.scan(step, starts, jnp.arange(self.num_steps), progress=progress)
        best = jnp.argmax(likelihoods[-1])
        log_weights, means, covariances = (leaf[best] for leaf in fits)
        means, covariances = mean + scale * means, covariances * jnp.outer(scale, scale)
        return GaussianMixtureKnockoffs(jnp.exp(log_weights), means, covariances, self.method)

    def _start(self, key: Array, z: Array) -> tuple[Array, Array, Array]:
        (n, p), k = z.shape, self.num_components
        start = z[jax.random.choice(key, n, (k,), replace=False)]
        return jnp.full(k, -jnp.log(k), z.dtype), start, jnp.broadcast_to(jnp.eye(p, dtype=z.dtype), (k, p, p))

    def _expectation_maximisation(
        self, fit: tuple[Array, Array, Array], z: Array
    ) -> tuple[tuple[Array, Array, Array], Array]:
        """One step, and the mean log-likelihood before it."""
        log_weights, means, covariances = fit
        p = z.shape[1]
        eye = jnp.eye(p, dtype=z.dtype)
        scores = log_densities(z, log_weights, means, covariances)
        shares = jax.nn.softmax(scores, axis=1)  # E: P(k | z_i)
        mass = jnp.sum(shares, axis=0) + 1e-6
        means = shares.T @ z / mass[:, None]  # M
        centred = z[None] - means[:, None]
        second = jnp.einsum("ik,kip,kiq->kpq", shares, centred, centred)
        # A component with few rows leans on the spherical one, so that no covariance is singular.
        covariances = (second + p * eye) / (mass[:, None, None] + p) + self.ridge * eye
        return (jnp.log(mass / jnp.sum(mass)), means, covariances), jnp.mean(jax.nn.logsumexp(scores, axis=1))


def _check_mixture(weights: Array, means: Array, covariances: Array) -> None:
    """Here and not in the components, which are built under vmap, where no value can be seen."""
    owner = "GaussianMixtureKnockoffs"
    require(owner, "means", "of shape [K, p]", means.shape, lambda shape: len(shape) == 2 and min(shape) >= 1)
    count, p = means.shape
    require(owner, "weights", f"of shape {(count,)}", weights.shape, lambda shape: shape == (count,))
    require(owner, "covariances", f"of shape {(count, p, p)}", covariances.shape, lambda shape: shape == (count, p, p))
    if not isinstance(weights, Tracer):
        require(
            owner,
            "weights",
            ">= 0, finite and not all 0",
            weights.tolist(),
            lambda found: min(found) >= 0 and 0 < sum(found) < float("inf"),
        )
    if not isinstance(covariances, Tracer):
        for k, covariance in enumerate(covariances):
            check_definite(owner, f"covariances[{k}]", covariance)


def log_densities(x: Array, log_weights: Array, means: Array, covariances: Array) -> Array:
    """log w_k N(x_i; μ_k, Σ_k), ``[n, K]``."""

    def one(log_weight, mean, covariance):
        root = jnp.linalg.cholesky(covariance)
        whitened = jax.scipy.linalg.solve_triangular(root, (x - mean).T, lower=True)
        log_determinant = jnp.sum(jnp.log(jnp.diag(root)))
        return log_weight - 0.5 * jnp.sum(whitened**2, axis=0) - log_determinant - 0.5 * mean.size * jnp.log(2 * jnp.pi)

    return jax.vmap(one, out_axes=1)(log_weights, means, covariances)
