"""What cGML is compared with, behind the same calls: regression, a CVAE, mixtures of densities, best of k answers."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from laureate._core import require
from laureate.generative.conditional import (
    AbstractOneLoss,
    AbstractOneNetwork,
    ConditionalState,
    Optimiser,
    squared_error,
)

__all__ = ["CVAE", "BestOfK", "MixtureDensity", "Regression"]

# The least log σ of a mixture: data on a curve would make its density infinite.
LEAST_LOG_SCALE = -5.0


def _number(value: Any) -> Array:
    """As an array of a fixed type: one that follows others would compile the second step anew."""
    return jnp.asarray(value, jnp.asarray(value).dtype)


class Regression(AbstractOneNetwork):
    """One answer for every x: min_f E d(f(x), y). With several right answers and d = squares, their average.

    network: f, from an x to an answer.
    learning_rate: > 0.
    cost: d(ŷ, y). With absolute errors and two equally frequent answers anything between them is as good.
    optimiser: from a learning rate to an Optax optimiser.

    >>> model = Regression(jnp.negative)
    >>> float(model.loss(jax.random.key(0), model.networks, jnp.ones(1), jnp.ones(1)))
    4.0
    """

    network: Callable[[Array], Array]
    learning_rate: float | Array = 1e-3
    cost: Callable[[Array, Array], Array] = eqx.field(static=True, default=squared_error)
    optimiser: Optimiser = eqx.field(static=True, default=optax.adam)

    def __check_init__(self):
        require("Regression", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)

    def loss(self, key: Array, networks: Any, x: Array, y: Array) -> Array:
        """d(f(x), y)."""
        return self.cost(networks(x), y)

    def draw(self, key: Array, state: ConditionalState, x: Array, **options: Any) -> Array:
        """f(x), whatever the key."""
        return self.trained(state.parameters)(x)


class CVAE(AbstractOneLoss):
    """A conditional variational auto-encoder with a learned size σ of what it leaves over (Sohn et al. 2015)::

        min E_q(z|x,y) ‖y − g(x, z)‖² / 2σ² + D log σ + weight · KL(q(z | x, y) ‖ N(0, I))

    A learned σ weighs the two terms by itself, so that there is no weight to tune. A draw is g(x, z) with z ~ N(0, I);
    the leftover of size σ is not added.

    posterior: q, from (x, y) to means and log deviations, [2 num_latents].
    decoder: g, from (x, z) to an answer.
    num_latents: numbers in z, >= 1.
    weight: of KL, > 0; 1 is the bound on the likelihood.
    log_scale: log σ at the start.
    learning_rate: > 0.
    optimiser: from a learning rate to an Optax optimiser.

    >>> model = CVAE(lambda x, y: jnp.zeros(4), lambda x, z: 2 * x)
    >>> float(model.loss(jax.random.key(0), model.networks, jnp.ones(1), jnp.zeros(1)))  # 2² / 2, and no KL
    2.0
    """

    posterior: Callable[[Array, Array], Array]
    decoder: Callable[[Array, Array], Array]
    num_latents: int = eqx.field(static=True, default=2)
    weight: float | Array = 1.0
    log_scale: Array = eqx.field(converter=_number, default=0.0)
    learning_rate: float | Array = 1e-3
    optimiser: Optimiser = eqx.field(static=True, default=optax.adam)

    def __check_init__(self):
        require("CVAE", "num_latents", ">= 1", self.num_latents, lambda n: n >= 1)
        require("CVAE", "weight", "> 0", self.weight, lambda v: v > 0)
        require("CVAE", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)

    @property
    def networks(self) -> Any:
        """q, g and log σ."""
        return {"posterior": self.posterior, "decoder": self.decoder, "log_scale": self.log_scale}

    @property
    def passes(self) -> int:
        """q and g."""
        return 2

    def loss(self, key: Array, networks: Any, x: Array, y: Array) -> Array:
        """The negative bound on log p(y | x), of one pair, a number of y."""
        mean, log_deviation = jnp.split(networks["posterior"](x, y), 2)
        z = mean + jnp.exp(log_deviation) * jax.random.normal(key, mean.shape, mean.dtype)
        log_scale = jnp.maximum(networks["log_scale"], LEAST_LOG_SCALE)
        left = jnp.sum((y - networks["decoder"](x, z)) ** 2) / (2 * jnp.exp(2 * log_scale)) + y.size * log_scale
        divergence = jnp.sum(0.5 * (mean**2 + jnp.exp(2 * log_deviation) - 1) - log_deviation)
        return (left + self.weight * divergence) / y.size

    def draw(self, key: Array, state: ConditionalState, x: Array, **options: Any) -> Array:
        """g(x, z), z ~ N(0, I)."""
        return self.trained(state.parameters)["decoder"](x, jax.random.normal(key, (self.num_latents,), x.dtype))


class MixtureDensity(AbstractOneNetwork):
    """A mixture of K normal laws whose weights, means and deviations depend on x (Bishop 1994)::

        p(y | x) = Σ_k π_k(x) N(y; μ_k(x), diag σ_k(x)²),   min −E log p(y | x)

    network: from an x to [K (1 + 2 D)] numbers: log weights, means, log deviations.
    num_components: K >= 1.
    shape: of an answer.
    learning_rate: > 0.
    optimiser: from a learning rate to an Optax optimiser.

    >>> model = MixtureDensity(lambda x: jnp.zeros(6), 2, (1,))  # twice the standard normal law
    >>> float(model.loss(jax.random.key(0), model.networks, jnp.ones(1), jnp.ones(1)))
    0.5
    """

    network: Callable[[Array], Array]
    num_components: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    learning_rate: float | Array = 1e-3
    optimiser: Optimiser = eqx.field(static=True, default=optax.adam)

    def __check_init__(self):
        require("MixtureDensity", "num_components", ">= 1", self.num_components, lambda n: n >= 1)
        require("MixtureDensity", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)

    def mixture(self, networks: Any, x: Array) -> tuple[Array, Array, Array]:
        """log π [K], μ [K, D] and log σ [K, D] for one x."""
        logits, means, log_scales = jnp.split(
            networks(x).reshape(self.num_components, -1), [1, 1 + math.prod(self.shape)], 1
        )
        return jax.nn.log_softmax(logits[:, 0]), means, jnp.maximum(log_scales, LEAST_LOG_SCALE)

    def loss(self, key: Array, networks: Any, x: Array, y: Array) -> Array:
        """−log p(y | x), without the constant, a number of y."""
        log_weights, means, log_scales = self.mixture(networks, x)
        apart = (jnp.ravel(y)[None] - means) * jnp.exp(-log_scales)
        logs = log_weights - jnp.sum(0.5 * apart**2 + log_scales, axis=1)
        return -jax.nn.logsumexp(logs) / y.size

    def draw(self, key: Array, state: ConditionalState, x: Array, **options: Any) -> Array:
        """A component by its weight, then a normal draw."""
        which_key, noise_key = jax.random.split(key)
        log_weights, means, log_scales = self.mixture(self.trained(state.parameters), x)
        k = jax.random.categorical(which_key, log_weights)
        noise = jax.random.normal(noise_key, means[0].shape, means.dtype)
        return (means[k] + jnp.exp(log_scales[k]) * noise).reshape(self.shape)


class BestOfK(AbstractOneNetwork):
    """K answers for every x, of which the nearest to y learns.

    How often each is the nearest is learned as well::

        min E (1 − ε) min_k d(f_k(x), y) + ε mean_k d(f_k(x), y) − log π_best(x)

    Multiple-choice learning (Guzman-Rivera et al. 2012), relaxed by ε so that no answer is left behind (Rupprecht et
    al. 2017). A draw is one of the K, by π.

    network: from an x to [K (1 + D)] numbers: log weights and answers.
    num_answers: K >= 1.
    shape: of an answer.
    relaxation: ε in [0, 1).
    learning_rate: > 0.
    cost: d(ŷ, y).
    optimiser: from a learning rate to an Optax optimiser.

    >>> model = BestOfK(lambda x: jnp.array([0.0, 1.0, 0.0, -1.0]), 2, (1,))  # 1 or −1, as often
    >>> model.draw(jax.random.key(0), model.init(), jnp.zeros(1)).shape
    (1,)
    """

    network: Callable[[Array], Array]
    num_answers: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    relaxation: float | Array = 0.05
    learning_rate: float | Array = 1e-3
    cost: Callable[[Array, Array], Array] = eqx.field(static=True, default=squared_error)
    optimiser: Optimiser = eqx.field(static=True, default=optax.adam)

    def __check_init__(self):
        require("BestOfK", "num_answers", ">= 1", self.num_answers, lambda n: n >= 1)
        require("BestOfK", "relaxation", "within 0 and 1", self.relaxation, lambda v: 0 <= v < 1)
        require("BestOfK", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)

    def answers(self, networks: Any, x: Array) -> tuple[Array, Array]:
        """log π [K] and the answers [K, ...] for one x."""
        found = networks(x).reshape(self.num_answers, -1)
        return jax.nn.log_softmax(found[:, 0]), found[:, 1:].reshape(self.num_answers, *self.shape)

    def loss(self, key: Array, networks: Any, x: Array, y: Array) -> Array:
        """The nearest answer's cost, a little of all others', and −log of the nearest one's weight."""
        log_weights, answers = self.answers(networks, x)
        costs = jax.vmap(lambda answer: self.cost(answer, y))(answers)
        best = jnp.argmin(costs)
        return (1 - self.relaxation) * costs[best] + self.relaxation * jnp.mean(costs) - log_weights[best]

    def draw(self, key: Array, state: ConditionalState, x: Array, **options: Any) -> Array:
        """One of the K answers, by its weight."""
        log_weights, answers = self.answers(self.trained(state.parameters), x)
        return answers[jax.random.categorical(key, log_weights)]
