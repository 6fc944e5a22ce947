"""How large a perturbation may be, and what a step of the steepest ascent is within that size."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Key

from laureate._core import require

__all__ = ["L2", "AbstractBall", "Linf"]


class AbstractBall(eqx.Module):
    """Perturbations of norm at most ε that keep every value of an image between ``low`` and ``high``.

    All methods treat the first axis as a batch: an image is measured by its own norm.
    """

    epsilon: eqx.AbstractVar[float | Array]
    low: eqx.AbstractVar[float | Array]
    high: eqx.AbstractVar[float | Array]

    @abc.abstractmethod
    def norm(self, delta: Float[Array, "b ..."]) -> Float[Array, "b"]:
        """The size of each image's perturbation."""

    @abc.abstractmethod
    def steepest(self, gradient: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """The step of norm 1 along which a linear function with this gradient grows most; 0 where it is 0."""

    @abc.abstractmethod
    def within(self, delta: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """The nearest perturbation of norm at most ε, whatever the values of the image."""

    @abc.abstractmethod
    def draw(self, key: Key[Array, ""], images: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """Perturbations uniform in the ball; the same for all images of the batch."""

    def project(self, images: Float[Array, "b ..."], delta: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """Back into the ball, then into the range: the second only shortens δ, so both hold."""
        return jnp.clip(images + self.within(delta), self.low, self.high) - images


class Linf(AbstractBall):
    """No value may change by more than ε: ‖δ‖_∞ ≤ ε.

    epsilon: ε, in the unit of the images' values, > 0 and at most high - low.
    low, high: the range of an image's values.

    >>> ball = Linf(0.1)
    >>> delta = ball.project(jnp.array([[0.5, 0.75]]), jnp.array([[-0.3, 0.05]]))
    >>> [round(value, 3) for value in delta[0].tolist()]
    [-0.1, 0.05]
    """

    epsilon: float | Array
    low: float | Array = 0.0
    high: float | Array = 1.0

    def __check_init__(self):
        _check_range(self)
        if not any(isinstance(value, Tracer) for value in (self.epsilon, self.low, self.high)):
            width = float(self.high) - float(self.low)
            remedy = f"The images' values have a range of {width:g}; did you mean {float(self.epsilon):g}/255?"
            require("Linf", "epsilon", "<= high - low", float(self.epsilon), lambda e: e <= width, remedy)

    def norm(self, delta: Float[Array, "b ..."]) -> Float[Array, "b"]:
        """max_i |δ_i|."""
        return jnp.max(jnp.abs(_flat(delta)), axis=1)

    def steepest(self, gradient: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """sign(g)."""
        return jnp.sign(gradient)

    def within(self, delta: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """Each value clipped to ±ε."""
        return jnp.clip(delta, -self.epsilon, self.epsilon)

    def draw(self, key: Key[Array, ""], images: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """Each value uniform in [-ε, ε]."""
        drawn = jax.random.uniform(key, images.shape[1:], images.dtype, -1.0, 1.0)
        return jnp.broadcast_to(self.epsilon * drawn, images.shape)


class L2(AbstractBall):
    """The Euclidean length of an image's perturbation is bounded: ‖δ‖₂ ≤ ε.

    epsilon: ε, > 0; the authors take 16/255 √(number of values).
    low, high: the range of an image's values.

    >>> ball = L2(1.0)
    >>> ball.within(jnp.array([[3.0, 4.0], [0.3, 0.4]])).round(1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.30000001192092896, 0.4000000059604645]]
    """

    epsilon: float | Array
    low: float | Array = 0.0
    high: float | Array = 1.0

    def __check_init__(self):
        _check_range(self)

    def norm(self, delta: Float[Array, "b ..."]) -> Float[Array, "b"]:
        """√Σ_i δ_i²."""
        return jnp.linalg.norm(_flat(delta), axis=1)

    def steepest(self, gradient: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """g / ‖g‖₂."""
        return per_image(reciprocal(self.norm(gradient)), gradient) * gradient

    def within(self, delta: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """δ min(1, ε / ‖δ‖₂), one factor an image: values that are 0 stay 0."""
        return per_image(jnp.minimum(1.0, self.epsilon * reciprocal(self.norm(delta))), delta) * delta

    def draw(self, key: Key[Array, ""], images: Float[Array, "b ..."]) -> Float[Array, "b ..."]:
        """A direction at random, and a length ε u^(1/d) with u uniform."""
        length_key, key = jax.random.split(key)
        drawn = jax.random.normal(key, images.shape[1:], images.dtype)
        length = jax.random.uniform(length_key, (), images.dtype) ** (1 / drawn.size)
        return jnp.broadcast_to(self.epsilon * length * drawn / jnp.linalg.norm(drawn.ravel()), images.shape)


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1)


def reciprocal(norms: Float[Array, "b"]) -> Array:
    """1/norm, and 0 where that is 0."""
    return jnp.where(norms > 0, 1 / jnp.where(norms > 0, norms, 1), 0)


def per_image(factors: Float[Array, "b"], values: Float[Array, "b ..."]) -> Array:
    """One factor an image, in a shape that multiplies all its values."""
    return factors.reshape(-1, *(1,) * (values.ndim - 1))


def _check_range(ball: AbstractBall) -> None:
    owner = type(ball).__name__
    require(owner, "epsilon", "> 0", ball.epsilon, lambda e: e > 0)
    if not any(isinstance(value, Tracer) for value in (ball.low, ball.high)):
        low = float(ball.low)
        require(owner, "high", f"> low = {low:g}", float(ball.high), lambda high: high > low)
