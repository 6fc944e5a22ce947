"""A small conditional diffusion: today's default for many answers, with few steps."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from laureate._core import require
from laureate.generative.conditional import AbstractOneNetwork, ConditionalState, Optimiser

__all__ = ["ConditionalDiffusion"]


class ConditionalDiffusion(AbstractOneNetwork):
    """Answers out of noise in a few deterministic steps (DDIM, Song et al. 2021).

    The network predicts velocities, which no level of noise makes large or small::

        y_s = α_s y + σ_s ε,   α_s = cos(π s / 2),   σ_s = sin(π s / 2),   min E ‖f(x, y_s, s) − (α_s ε − σ_s y)‖²
        from s = 1 to 0:   ŷ = α_s y_s − σ_s v,   ε̂ = σ_s y_s + α_s v,   y_{s'} = α_{s'} ŷ + σ_{s'} ε̂

    Answers should have mean 0 and deviation 1, as the noise has.

    network: f, from (x, y_s, features of s) to v, of y's shape; the features are (s, α_s, σ_s).
    shape: of an answer.
    num_levels: steps to an answer, and noise levels of training, >= 1.
    learning_rate: > 0.
    optimiser: from a learning rate to an Optax optimiser.

    >>> model = ConditionalDiffusion(lambda x, y, s: 0 * y, shape=(3,))
    >>> model.draw(jax.random.key(0), model.init(), jnp.zeros(1)).shape
    (3,)
    """

    network: Callable[[Array, Array, Array], Array]
    shape: tuple[int, ...] = eqx.field(static=True)
    num_levels: int = eqx.field(static=True, default=20)
    learning_rate: float | Array = 1e-3
    optimiser: Optimiser = eqx.field(static=True, default=optax.adam)

    def __check_init__(self):
        require("ConditionalDiffusion", "num_levels", ">= 1", self.num_levels, lambda n: n >= 1)
        require("ConditionalDiffusion", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)

    def loss(self, key: Array, networks: Any, x: Array, y: Array) -> Array:
        """‖f − v‖² at one of the levels."""
        level_key, noise_key = jax.random.split(key)
        s = (jax.random.randint(level_key, (), 0, self.num_levels) + 1).astype(y.dtype) / self.num_levels
        noise = jax.random.normal(noise_key, y.shape, y.dtype)
        alpha, sigma = _rates(s)
        found = networks(x, alpha * y + sigma * noise, jnp.stack([s, alpha, sigma]))
        return jnp.mean((found - (alpha * noise - sigma * y)) ** 2)

    def draw(self, key: Array, state: ConditionalState, x: Array, **options: Any) -> Array:
        """From noise to an answer in ``num_levels`` steps."""
        network = self.trained(state.parameters)

        def one(y, index):
            s = ((self.num_levels - index) / self.num_levels).astype(y.dtype)
            (alpha, sigma), (next_alpha, next_sigma) = _rates(s), _rates(s - 1 / self.num_levels)
            v = network(x, y, jnp.stack([s, alpha, sigma]))
            clean, noise = alpha * y - sigma * v, sigma * y + alpha * v
            return next_alpha * clean + next_sigma * noise, None

        start = jax.random.normal(key, self.shape, x.dtype)
        answer, _ = jax.lax.scan(one, start, jnp.arange(self.num_levels))
        return answer


def _rates(s: Array) -> tuple[Array, Array]:
    """α and σ, with α² + σ² = 1."""
    return jnp.cos(0.5 * jnp.pi * s), jnp.sin(0.5 * jnp.pi * s)
