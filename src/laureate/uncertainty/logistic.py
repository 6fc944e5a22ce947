"""Maps that are linear in the logit: temperature, Platt's sigmoid, the beta family; each a convex fit by Newton."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import Status
from laureate.uncertainty.binning import as_info
from laureate.uncertainty.calibration import (
    AbstractCalibrator,
    AbstractScoreMap,
    CalibrationInfo,
    checked,
    checked_weights,
    floating,
)
from laureate.uncertainty.scores import check_rows

__all__ = ["Beta", "LogitMap", "Platt", "Temperature", "TemperatureMap"]

MOST_STEPS = 50


class LogitMap(AbstractScoreMap):
    """γ(s) = σ(a ln s − b ln(1 − s) + c)."""

    a: Float[Array, ""]
    b: Float[Array, ""]
    c: Float[Array, ""]
    info: CalibrationInfo

    def transform(self, p: Float[Array, "..."]) -> Float[Array, "..."]:
        """The probability of each score."""
        return _sigmoid(self.a, self.b, self.c, p)


@jax.jit
def _sigmoid(a, b, c, p):
    low, high = logarithms(p)
    return jax.nn.sigmoid(a * low - b * high + c)


class TemperatureMap(AbstractScoreMap):
    """softmax(β ln P) of rows of probabilities; β = 1/T."""

    beta: Float[Array, ""]
    info: CalibrationInfo

    def transform(self, p: Float[Array, "*rows classes"]) -> Float[Array, "*rows classes"]:
        """The rows at the fitted temperature."""
        return jax.nn.softmax(self.beta * logarithms(jnp.asarray(p))[0], axis=-1)


class Platt(AbstractCalibrator):
    """A sigmoid of the logit, γ(s) = σ(a logit s + c), with Platt's targets (Platt 1999).

    Hits count as (N₊ + 1)/(N₊ + 2) and misses as 1/(N₋ + 2), so that separable rows have a finite fit, as in
    scikit-learn's ``CalibratedClassifierCV(method="sigmoid")``.

    >>> map = Platt().fit(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 1, 0, 1]))
    >>> print(f"{map.transform(0.5):.3f}")
    0.500
    """

    def fit(
        self, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
    ) -> LogitMap:
        """Slope and offset of the largest likelihood."""
        return _fit_platt(*checked("Platt", p, y, weights))


@eqx.filter_jit
def _fit_platt(p, y, weights) -> LogitMap:
    hits, misses = jnp.sum(weights * y), jnp.sum(weights * (1 - y))
    targets = y * (hits + 1) / (hits + 2) + (1 - y) / (misses + 2)
    low, high = logarithms(p)
    features = jnp.stack([low - high, jnp.ones_like(p)], axis=1)
    (a, c), _, info = newton(cross_entropy(features, targets, weights), jnp.array([1.0, 0.0], p.dtype))
    return LogitMap(a, a, c, info)


class Beta(AbstractCalibrator):
    """The beta family, γ(s) = σ(a ln s − b ln(1 − s) + c) with a, b ≥ 0 (Kull, Silva Filho & Flach 2017).

    It holds the identity (a = b = 1, c = 0) and curves that no sigmoid of the logit has.

    >>> p = (np.arange(8) + 0.5) / 8
    >>> map = Beta().fit(p, np.array([0, 1, 0, 0, 1, 0, 1, 1]))
    >>> bool((map.a >= 0) & (map.b >= 0))
    True
    """

    def fit(
        self, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
    ) -> LogitMap:
        """The largest likelihood with a, b ≥ 0."""
        return _fit_beta(*checked("Beta", p, y, weights))


@eqx.filter_jit
def _fit_beta(p, y, weights) -> LogitMap:
    low, high = logarithms(p)
    features = jnp.stack([low, -high, jnp.ones_like(p)], axis=1)

    def restricted(allowed):
        # Of a convex fit with signs, the best is the free fit of some subset of the slopes, the others being 0.
        loss = cross_entropy(features * allowed, y, weights)
        theta, value, info = newton(loss, allowed * jnp.array([1.0, 1.0, 0.0], p.dtype))
        return theta * allowed, jnp.where(jnp.all(theta[:2] * allowed[:2] >= 0), value, jnp.inf), info

    subsets = jnp.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [0, 0, 1]], p.dtype)
    thetas, values, infos = jax.vmap(restricted)(subsets)
    best = jnp.argmin(values)
    a, b, c = thetas[best]
    return LogitMap(a, b, c, jax.tree.map(lambda part: part[best], infos)._replace(cost=jnp.sum(infos.cost)))


class Temperature(AbstractCalibrator):
    """One number for the steepness of all logits, γ(s) = σ(logit(s)/T), of rows softmax(ln P / T) (Guo et al. 2017).

    Given rows of probabilities [rows, classes] and labels, it fits and transforms whole rows, whose largest entry stays
    the largest; given scores and hits, it is the map of a slope alone. The temperature is that of the largest
    likelihood; 1/T = 0, a guess, where the scores speak against the labels. Probabilities below the precision of their
    type (1e-7 in float32) count as that much: of a model that is very sure among many classes give rows in float64, or
    its logits to `fit_temperature`, which finds the same T without weights.

    >>> p = np.array([0.9, 0.8, 0.9, 0.7])
    >>> float(Temperature().fit(p, np.array([1, 0, 1, 1])).a) < 1  # too sure: made flatter
    True
    """

    def fit(
        self,
        p: Float[Array, "rows"] | Float[Array, "rows classes"],
        y: Float[Array, "rows"] | Int[Array, "rows"],
        weights: Float[Array, "rows"] | None = None,
    ) -> "LogitMap | TemperatureMap":
        """The temperature, of scores with hits or of rows with labels."""
        if np.ndim(p) == 1:
            return _fit_slope(*checked("Temperature", p, y, weights))
        check_rows("Temperature", p, y)
        mass = checked_weights("Temperature", np.shape(p)[0], weights)
        rows, mass = floating(jnp.asarray(p), jnp.asarray(mass))
        return _fit_rows(rows, jnp.asarray(y).astype(int), mass)  # whole numbers of any type


@eqx.filter_jit
def _fit_slope(p, y, weights) -> LogitMap:
    low, high = logarithms(p)
    (beta,), _, info = newton(cross_entropy((low - high)[:, None], y, weights), jnp.ones(1, p.dtype))
    beta = jnp.maximum(beta, 0)
    return LogitMap(beta, beta, jnp.zeros_like(beta), info)


@eqx.filter_jit
def _fit_rows(probabilities, labels, weights) -> TemperatureMap:
    logits = logarithms(probabilities)[0]
    right = jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    share = weights / jnp.sum(weights)

    def loss(theta):  # of one number: mean and variance of the logits under softmax(β ln P) are its derivatives
        scaled = theta * logits
        chance = jax.nn.softmax(scaled, axis=1)
        mean = jnp.sum(chance * logits, axis=1)
        variance = jnp.sum(chance * (logits - mean[:, None]) ** 2, axis=1)
        value = jnp.sum(share * (jax.nn.logsumexp(scaled, axis=1) - theta * right))
        return Local(value, jnp.sum(share * (mean - right))[None], jnp.sum(share * variance)[None, None])

    (beta,), _, info = newton(loss, jnp.ones(1, logits.dtype))
    return TemperatureMap(jnp.maximum(beta, 0), info)


def logarithms(p: Array) -> tuple[Array, Array]:
    """ln p and ln(1 − p), of scores moved in from 0 and 1 by the precision of their type."""
    (p,) = floating(p)
    margin = jnp.finfo(p.dtype).eps
    p = jnp.clip(p, margin, 1 - margin)
    return jnp.log(p), jnp.log1p(-p)


class Local(NamedTuple):
    """A function at a point: its value, gradient and second derivatives."""

    value: Array
    gradient: Array
    curvature: Array


def cross_entropy(features: Array, targets: Array, weights: Array) -> Callable[[Array], Local]:
    """The mean of −[y ln σ(z) + (1 − y) ln σ(−z)], z = features · θ, as a function of θ."""
    share = weights / jnp.sum(weights)

    def loss(theta):
        z = features @ theta
        chance = jax.nn.sigmoid(z)
        value = jnp.sum(share * (jax.nn.softplus(z) - targets * z))
        bent = features * (share * chance * (1 - chance))[:, None]
        return Local(value, features.T @ (share * (chance - targets)), bent.T @ features)

    return loss


def newton(loss: Callable[[Array], Local], theta: Array) -> tuple[Array, Array, CalibrationInfo]:
    """The minimum of a convex function of a few numbers and its value: Newton's steps, halved until they descend."""
    precision = jnp.finfo(theta.dtype).eps
    tolerance, ridge = precision**0.75, precision * jnp.eye(theta.size, dtype=theta.dtype)

    def step(state):
        theta, here, scale, _, count = state
        move = -scale * jnp.linalg.solve(here.curvature + ridge, here.gradient)
        there = loss(theta + move)
        # Within rounding of the loss a step counts as a descent: Newton's is the better of the two.
        descends = there.value <= here.value + 4 * precision * jnp.abs(here.value)
        done = jnp.all(jnp.abs(move) <= tolerance * (1 + jnp.abs(theta)))
        kept = jax.tree.map(lambda new, old: jnp.where(descends, new, old), (theta + move, there), (theta, here))
        return *kept, jnp.where(descends, 1.0, scale / 2).astype(scale.dtype), done, count + 1

    start = (theta, loss(theta), jnp.ones((), theta.dtype), jnp.asarray(False), jnp.asarray(0))
    theta, here, _, done, count = jax.lax.while_loop(lambda s: ~s[3] & (s[4] < MOST_STEPS), step, start)
    status = jnp.where(done, Status.OK, Status.NOT_CONVERGED)
    return theta, here.value, as_info(jnp.where(jnp.all(jnp.isfinite(theta)), status, Status.DIVERGED), count)
