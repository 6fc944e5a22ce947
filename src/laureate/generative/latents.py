"""Where latents live: the unit sphere or a box, how one is drawn, and how a step is brought back."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["AbstractLatent", "Box", "Sphere"]

TINY = 1e-12


class AbstractLatent(eqx.Module):
    """A bounded set of latents with a law to draw from; inherit from it for a set of one's own."""

    dim: eqx.AbstractVar[int]

    @abc.abstractmethod
    def draw(self, key: Array, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Latents drawn at random."""

    @abc.abstractmethod
    def project(self, z: Array) -> Array:
        """The nearest latent of the set, over the last axis."""

    @abc.abstractmethod
    def tangent(self, z: Array, vector: Array) -> Array:
        """The part of a vector at z that does not leave the set."""


class Sphere(AbstractLatent):
    """Latents of length 1: z ~ uniform on S^{d−1}, the paper's choice.

    A step along the tangent is brought back by dividing by the length, one example at a time.

    dim: d, at least 2, for the two points of S⁰ are not connected.

    >>> z = Sphere(3).draw(jax.random.key(0), (5,))
    >>> z.shape, bool(jnp.allclose(jnp.linalg.norm(z, axis=-1), 1.0))
    ((5, 3), True)
    """

    dim: int = eqx.field(static=True)

    def __check_init__(self):
        remedy = "S⁰ = {−1, 1} has no path from one point to the other: use Box(1), or two dimensions."
        require("Sphere", "dim", "an integer >= 2", self.dim, lambda d: isinstance(d, int) and d >= 2, remedy)

    def draw(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """A normal vector divided by its length is uniform on the sphere."""
        return self.project(jax.random.normal(key, (*shape, self.dim)))

    def project(self, z: Array) -> Array:
        """z / ‖z‖."""
        return z / jnp.sqrt(jnp.sum(z**2, axis=-1, keepdims=True) + TINY**2)

    def tangent(self, z: Array, vector: Array) -> Array:
        """(I − zzᵀ) v."""
        return vector - jnp.sum(z * vector, axis=-1, keepdims=True) * z


class Box(AbstractLatent):
    """Latents with entries in [−r, r]: z ~ uniform, steps are clipped.

    dim: d, at least 1.
    radius: r > 0; the authors' toy has 0.1 in one dimension, their images 1 in ten.

    >>> bool(jnp.all(jnp.abs(Box(2, 0.1).draw(jax.random.key(0), (7,))) <= 0.1))
    True
    """

    dim: int = eqx.field(static=True)
    radius: float | Array = 1.0

    def __check_init__(self):
        require("Box", "dim", "an integer >= 1", self.dim, lambda d: isinstance(d, int) and d >= 1)
        require("Box", "radius", "> 0", self.radius, lambda r: r > 0)

    def draw(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Uniform in every entry."""
        return self.radius * jax.random.uniform(key, (*shape, self.dim), minval=-1.0)

    def project(self, z: Array) -> Array:
        """Clip every entry."""
        return jnp.clip(z, -self.radius, self.radius)

    def tangent(self, z: Array, vector: Array) -> Array:
        """The vector itself: a box has its full dimension, and ``project`` clips."""
        return vector
