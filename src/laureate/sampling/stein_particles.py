"""Particles that a kernel moves towards a density: Stein variational gradient descent, whole and sliced."""

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Key

from laureate._core import Status, require
from laureate.sampling.stein_discrepancy import (
    Bandwidth,
    Kernel,
    Slices,
    bandwidth_of,
    in_blocks,
    profile,
    scores_at,
    slice_bandwidths,
    sliced_gram,
    summed,
    unit,
)

__all__ = ["ParticleInfo", "ParticleState", "SteinVariational", "sliced_svgd", "svgd"]

Directions = Literal["none", "identity", "learned", "rotate"]


class ParticleState(NamedTuple):
    """Where the particles are.

    position: a tree with the particles along the first axis of every leaf. optimiser: Optax's state for them. g: of
    "learned" slices, not normalised, [d, d]; else [0, 0]. slice_optimiser: Optax's state for g; None for other slices.
    """

    position: Any
    optimiser: Any
    g: Array
    slice_optimiser: Any


class ParticleInfo(NamedTuple):
    """What a step reports.

    force: mean length of the particles' forces φ. alignment: mean |r·g| over slices. bandwidth: ℓ, of each slice. cost:
    gradients of the log density. status: DIVERGED where a force is not finite; the step is taken all the same.
    """

    force: Float[Array, ""]
    alignment: Float[Array, ""]
    bandwidth: Float[Array, "m"]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class SteinVariational(eqx.Module):
    """Move particles until they stand for a density, without random walks.

    ::

        SVGD:    φ(y) = mean_x [ s(x) k(x, y) + ∇_x k(x, y) ]                        (Liu & Wang 2016)
        sliced:  φ(y) = Σ_r r φ_r(y),   φ_r(y) = mean_x [ s_r(x) k(u_x, u_y) + a ∂_{u_x} k(u_x, u_y) ]
                 u = g·x,   s_r = r·s,   a = r·g                                     (Gong, Li & Hernández-Lobato 2021)

    BlackJAX's ``init(particles)`` and ``step(key, state)``; made by `svgd` and `sliced_svgd`. With slices along the
    axes the particles keep the marginal variances of a product in any dimension, but behave as mean-field variational
    inference does on correlated densities: too narrow, and without correlation. "rotate" repairs that.

    logdensity_fn: of one particle, up to a constant; or its gradient. Further arguments of ``step`` are handed on.
    optimiser: of Optax; moves particles by −φ.
    slices: "none": SVGD. "identity": r = g = the axes. "learned": r the axes, g by one step of ``slice_optimiser``
        before each step. "rotate": r = g = a random rotation of the axes, another each step.
    slice_optimiser: of Optax, for "learned".
    kernel, bandwidth: as for `ksd`; of each slice.

    >>> sampler = svgd(lambda x: -jnp.sum(x**2) / 2, optax.adam(0.1))
    >>> state = sampler.init(jnp.array([[2.0, 1.0], [3.0, 1.5], [2.5, 0.5]]))
    >>> state, info = eqx.filter_jit(sampler.step)(jax.random.key(0), state)
    >>> bool((state.position < 3).all()), int(info.cost)
    (True, 3)
    """

    logdensity_fn: Callable[..., Array]
    optimiser: optax.GradientTransformation
    slices: Directions = eqx.field(default="none", static=True, kw_only=True)
    slice_optimiser: optax.GradientTransformation | None = eqx.field(default=None, kw_only=True)
    kernel: Kernel = eqx.field(default="rbf", static=True, kw_only=True)
    bandwidth: Bandwidth = eqx.field(default="median", kw_only=True)

    def __check_init__(self):
        owner, known = "SteinVariational", ("none", "identity", "learned", "rotate")
        require(owner, "slices", f"one of {known}", self.slices, lambda name: name in known)
        remedy = "For example optax.adam(1e-3)."
        pairs = (self.slices == "learned", self.slice_optimiser is not None)
        rule = 'given for "learned" slices and for no others'
        require(owner, "slice_optimiser", rule, pairs, lambda both: both[0] == both[1], remedy)
        if not isinstance(self.bandwidth, str):
            require(owner, "bandwidth", "> 0, 'median' or 'log'", self.bandwidth, lambda b: np.all(np.asarray(b) > 0))

    def init(self, position: Any, key: Key[Array, ""] | None = None) -> ParticleState:
        """Particles, along the first axis of every leaf. ``key`` is ignored; BlackJAX's drivers pass one."""
        counts = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(position)}
        rule = "as many in every leaf, two at least"
        require("SteinVariational", "particles", rule, counts, lambda c: len(c) == 1 and min(c) >= (2,))
        x = _flat(position)[0]
        if not isinstance(x, Tracer) and np.ptp(np.asarray(x), axis=0).max() == 0:
            warnings.warn(
                "SteinVariational.init: all particles are equal; they will stay so.", UserWarning, stacklevel=2
            )
        g = jnp.eye(x.shape[1] if self.slices == "learned" else 0, dtype=x.dtype)
        inner = None if self.slice_optimiser is None else self.slice_optimiser.init(g)
        return ParticleState(jax.tree.map(jnp.asarray, position), self.optimiser.init(x), g, inner)

    def step(self, key: Key[Array, ""], state: ParticleState, *more: Any) -> tuple[ParticleState, ParticleInfo]:
        """One step of all particles. more: for the log density, such as a batch of data."""
        x, unflatten = _flat(state.position)
        s = scores_at(lambda point, *more: self._of_point(unflatten, point, *more), x, *more)
        g, inner = state.g, state.slice_optimiser
        if self.slices == "none":
            ell = bandwidth_of("SteinVariational", self.bandwidth, x)
            phi, ells, alignment = _force(x, s, ell, self.kernel), ell[None], jnp.ones((), x.dtype)
        else:
            if self.slices == "learned" and self.slice_optimiser is not None:
                updates, inner = self.slice_optimiser.update(jax.grad(self._unseen)(g, x, s), inner, g)
                g = optax.apply_updates(g, updates)
            lines = self._slices(key, g, x)  # pyright: ignore[reportArgumentType]
            ells = slice_bandwidths("SteinVariational", self.bandwidth, x, lines.g)
            phi = _sliced_force(x, s, lines, ells, self.kernel)
            alignment = jnp.mean(jnp.abs(jnp.sum(lines.r * lines.g, axis=1)))
        updates, outer = self.optimiser.update(-phi, state.optimiser, x)
        position = jax.vmap(unflatten)(optax.apply_updates(x, updates))  # pyright: ignore[reportArgumentType]
        finite = jnp.all(jnp.isfinite(phi))
        status = jnp.where(finite, int(Status.OK), int(Status.DIVERGED))
        force = jnp.mean(jnp.sqrt(jnp.sum(phi**2, axis=1)))
        info = ParticleInfo(force, alignment, ells, jnp.asarray(len(x), jnp.int32), status)
        return ParticleState(position, outer, g, inner), info  # pyright: ignore[reportArgumentType]

    def _of_point(self, unflatten: Callable, point: Array, *more: Any) -> Array:
        """The log density, or the score raveled."""
        found = self.logdensity_fn(unflatten(point), *more)
        return found if jnp.shape(found) == () else ravel_pytree(found)[0]

    def _unseen(self, g: Array, x: Array, s: Array) -> Array:
        """Minus the sliced discrepancy, a V-statistic as published; g is not normalised."""
        ells = slice_bandwidths("SteinVariational", self.bandwidth, x, unit(g))

        def one(ell, r, g):
            return summed(sliced_gram(x, s, r, g, ell, self.kernel), "v")

        return -jnp.sum(jax.vmap(one)(ells, jnp.eye(len(g), dtype=x.dtype), unit(g)))

    def _slices(self, key: Array, g: Array, x: Array) -> Slices:
        axes = jnp.eye(x.shape[1], dtype=x.dtype)
        if self.slices == "rotate":
            axes = jnp.linalg.qr(jax.random.normal(key, axes.shape, x.dtype))[0].T
        return Slices(axes, unit(g) if self.slices == "learned" else axes)


def svgd(
    logdensity_fn: Callable[..., Array],
    optimiser: optax.GradientTransformation,
    *,
    kernel: Kernel = "rbf",
    bandwidth: Bandwidth = "median",
) -> SteinVariational:
    """Stein variational gradient descent; its particles stand too close in many dimensions.

    The arguments are those of `SteinVariational`. bandwidth="log" is BlackJAX's own, narrower.

    >>> svgd(lambda x: -jnp.sum(x**2) / 2, optax.adam(0.1)).slices
    'none'
    """
    return SteinVariational(logdensity_fn, optimiser, kernel=kernel, bandwidth=bandwidth)


def sliced_svgd(
    logdensity_fn: Callable[..., Array],
    optimiser: optax.GradientTransformation,
    *,
    slices: Literal["identity", "learned", "rotate"] = "identity",
    slice_optimiser: optax.GradientTransformation | None = None,
    kernel: Kernel = "rbf",
    bandwidth: Bandwidth = "median",
) -> SteinVariational:
    """Sliced Stein variational gradient descent, which keeps variances in many dimensions.

    The arguments are those of `SteinVariational`; "learned" slices move by adam(0.001), unless said.

    >>> sampler = sliced_svgd(lambda x: -jnp.sum(x**2) / 2, optax.adam(0.1), slices="rotate")
    >>> particles = jax.random.normal(jax.random.key(0), (5, 3))
    >>> run = jax.jit(lambda key, x: sampler.step(key, sampler.init(x)))
    >>> state, info = run(jax.random.key(1), particles)
    >>> state.position.shape, info.bandwidth.shape
    ((5, 3), (3,))
    """
    require("sliced_svgd", "slices", "'identity', 'learned' or 'rotate'", slices, lambda name: name != "none")
    inner = optax.adam(1e-3) if slices == "learned" and slice_optimiser is None else slice_optimiser
    more: dict[str, Any] = {"slices": slices, "slice_optimiser": inner, "kernel": kernel, "bandwidth": bandwidth}
    return SteinVariational(logdensity_fn, optimiser, **more)


def _force(x: Array, s: Array, ell: Array, kernel: Kernel) -> Array:
    """φ(y) = mean_x [ s(x) k + ∇_x k ],   ∇_x k = 2φ'(x − y)/ℓ²."""
    centred = x - jnp.mean(x, axis=0)
    squares = jnp.sum(centred**2, axis=1)
    distance = jnp.maximum(squares[:, None] + squares[None, :] - 2 * centred @ centred.T, 0.0)
    k, first, _ = profile(kernel, distance / ell**2)
    slope = 2 * first / ell**2
    return (k @ s + slope @ centred - jnp.sum(slope, axis=1)[:, None] * centred) / len(x)


def _sliced_force(x: Array, s: Array, slices: Slices, ells: Array, kernel: Kernel) -> Array:
    """φ(y) = Σ_r r φ_r(y)."""

    def one(row):
        ell, r, g = row
        u, s_r, a = x @ g, s @ r, r @ g
        delta = u[:, None] - u[None, :]  # u_x − u_y
        k, first, _ = profile(kernel, (delta / ell) ** 2)
        return jnp.mean(s_r[:, None] * k + a * 2 * first * delta / ell**2, axis=0)

    return in_blocks(one, (ells, *slices), len(x) ** 2).T @ slices.r


def _flat(position: Any) -> tuple[Float[Array, "n d"], Callable[[Array], Any]]:
    """The particles as rows, and the way back of one."""
    unflatten = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], position))[1]
    return jax.vmap(lambda one: ravel_pytree(one)[0])(position), unflatten
