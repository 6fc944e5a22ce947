"""Laws whose draws carry a gradient: one-hot choices, normal numbers, and normal numbers within bounds.

A network gives the ``size`` numbers of a law; a draw has ``width`` numbers. They serve as the latents of world models
and as the actions of policies that are differentiated through a model.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import erf, erfinv
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["AbstractLaw", "DiagonalNormal", "OneHot", "TruncatedNormal", "kl_balance", "straight_through_one_hot"]

LEAST = 0.1  # of a standard deviation, as in the authors' code


def straight_through_one_hot(logits: Float[Array, "... n"], noise: Float[Array, "..."]) -> Float[Array, "... n"]:
    """A one-hot draw with the gradient of its probabilities, exact where what follows is linear in the draw.

    ::

        z = onehot(i) + p − sg(p),    p = softmax(logits),    i drawn with p     (Hafner et al. 2021, algorithm 1)

    logits: of n options. noise: uniform on [0, 1), one number a draw; i is where it falls among the sums of p.

    >>> draw = lambda logits: straight_through_one_hot(logits, jnp.asarray(0.6))
    >>> draw(jnp.zeros(2)).tolist(), jax.grad(lambda logits: draw(logits)[1])(jnp.zeros(2)).tolist()
    ([0.0, 1.0], [-0.25, 0.25])
    """
    p = jax.nn.softmax(logits)
    reached = jnp.cumsum(jax.lax.stop_gradient(p), axis=-1)
    index = jnp.sum(reached <= noise[..., None] * reached[..., -1:], axis=-1)
    hard = jax.nn.one_hot(jnp.minimum(index, logits.shape[-1] - 1), logits.shape[-1], dtype=p.dtype)
    return hard + (p - jax.lax.stop_gradient(p))


class AbstractLaw(eqx.Module):
    """A law whose draws carry a gradient; inherit from it for latents or actions of your own.

    A network gives ``size`` numbers; a draw has ``width``.
    """

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Numbers that a network gives."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Numbers of a draw."""

    @abc.abstractmethod
    def noise(self, key: Array, shape: tuple[int, ...]) -> Array:
        """What draws of this shape are made from, by ``draw``."""

    @abc.abstractmethod
    def draw(self, stats: Float[Array, "... size"], noise: Array) -> Float[Array, "... width"]:
        """A draw from noise, with a gradient."""

    @abc.abstractmethod
    def mode(self, stats: Float[Array, "... size"]) -> Float[Array, "... width"]:
        """What is likeliest."""

    @abc.abstractmethod
    def entropy(self, stats: Float[Array, "... size"]) -> Float[Array, "..."]:
        """In nats, summed over all that is drawn."""

    def sample(self, key: Array, stats: Float[Array, "... size"]) -> Float[Array, "... width"]:
        """A draw."""
        return self.draw(stats, self.noise(key, stats.shape[:-1]))


class OneHot(AbstractLaw):
    """Independent choices, each one-hot, with straight-through gradients: DreamerV2's latents, and discrete actions.

    ::

        z = onehot(i) + p − sg(p),    KL(q‖p) = Σ_variables Σ_classes q (log q − log p)

    num_variables: choices, >= 1 (the paper: 32). num_classes: options of each, >= 2 (the paper: 32).

    >>> law = OneHot(2, 3)
    >>> law.size, law.sample(jax.random.key(0), jnp.zeros(6)).sum().item(), round(law.entropy(jnp.zeros(6)).item(), 4)
    (6, 2.0, 2.1972)
    """

    num_variables: int = eqx.field(static=True, default=32)
    num_classes: int = eqx.field(static=True, default=32)

    def __check_init__(self):
        require("OneHot", "num_variables", ">= 1", self.num_variables, lambda n: n >= 1)
        require("OneHot", "num_classes", ">= 2", self.num_classes, lambda n: n >= 2)

    @property
    def size(self) -> int:
        """Numbers that a network gives: logits."""
        return self.num_variables * self.num_classes

    @property
    def width(self) -> int:
        """Numbers of a draw."""
        return self.size

    def noise(self, key: Array, shape: tuple[int, ...]) -> Array:
        """What draws of this shape are made from, by ``draw``."""
        return jax.random.uniform(key, (*shape, self.num_variables))

    def draw(self, stats: Float[Array, "... size"], noise: Array) -> Float[Array, "... width"]:
        """A draw from noise; its gradient is that of the probabilities."""
        return straight_through_one_hot(self._logits(stats), noise).reshape(stats.shape)

    def mode(self, stats: Float[Array, "... size"]) -> Float[Array, "... width"]:
        """The likeliest of each, without a gradient."""
        logits = self._logits(stats)
        return jax.nn.one_hot(jnp.argmax(logits, axis=-1), self.num_classes, dtype=stats.dtype).reshape(stats.shape)

    def log_probability(self, stats: Float[Array, "... size"], draw: Float[Array, "... width"]) -> Array:
        """Σ z log p."""
        return jnp.sum(self._logits(draw) * jax.nn.log_softmax(self._logits(stats)), axis=(-2, -1))

    def entropy(self, stats: Float[Array, "... size"]) -> Array:
        """−Σ p log p, summed over the variables."""
        log = jax.nn.log_softmax(self._logits(stats))
        return -jnp.sum(jnp.exp(log) * log, axis=(-2, -1))

    def kl(self, q: Float[Array, "... size"], p: Float[Array, "... size"]) -> Array:
        """KL(q‖p), summed over the variables."""
        log_q, log_p = (jax.nn.log_softmax(self._logits(stats)) for stats in (q, p))
        return jnp.sum(jnp.exp(log_q) * (log_q - log_p), axis=(-2, -1))

    def _logits(self, stats: Array) -> Array:
        return stats.reshape(*stats.shape[:-1], self.num_variables, self.num_classes)


class DiagonalNormal(AbstractLaw):
    """Independent normal numbers, reparameterised: the latents that DreamerV2 is compared with.

    ::

        z = μ + σ ε,    σ = 2 sigmoid(s/2) + 0.1;    a network gives μ and s, one after the other

    num: numbers of a draw, >= 1.

    >>> law = DiagonalNormal(2)
    >>> law.size, round(float(law.kl(jnp.array([1.0, 0, 0, 0]), jnp.zeros(4))), 4)  # 1 / (2 · 1.1²)
    (4, 0.4132)
    """

    num: int = eqx.field(static=True, default=32)

    def __check_init__(self):
        require("DiagonalNormal", "num", ">= 1", self.num, lambda n: n >= 1)

    @property
    def size(self) -> int:
        """Numbers that a network gives."""
        return 2 * self.num

    @property
    def width(self) -> int:
        """Numbers of a draw."""
        return self.num

    def noise(self, key: Array, shape: tuple[int, ...]) -> Array:
        """What draws of this shape are made from, by ``draw``."""
        return jax.random.normal(key, (*shape, self.num))

    def draw(self, stats: Float[Array, "... size"], noise: Array) -> Float[Array, "... width"]:
        """μ + σ ε."""
        mean, sigma = _moments(stats)
        return mean + sigma * noise

    def mode(self, stats: Float[Array, "... size"]) -> Float[Array, "... width"]:
        """μ."""
        return _moments(stats)[0]

    def entropy(self, stats: Float[Array, "... size"]) -> Array:
        """Σ log σ + ½ log 2πe."""
        return jnp.sum(jnp.log(_moments(stats)[1]) + 0.5 * math.log(2 * math.pi * math.e), axis=-1)

    def kl(self, q: Float[Array, "... size"], p: Float[Array, "... size"]) -> Array:
        """KL(q‖p) = Σ log σ_p/σ_q + (σ_q² + (μ_q − μ_p)²) / (2 σ_p²) − ½."""
        (mean_q, sigma_q), (mean_p, sigma_p) = _moments(q), _moments(p)
        ratio = (sigma_q**2 + (mean_q - mean_p) ** 2) / (2 * sigma_p**2)
        return jnp.sum(jnp.log(sigma_p / sigma_q) + ratio - 0.5, axis=-1)


class TruncatedNormal(AbstractLaw):
    """Independent normal numbers within −1 and 1, reparameterised: continuous actions.

    ::

        a = μ + σ Φ⁻¹(Φ(l) + u (Φ(h) − Φ(l))),    l, h = (∓1 − μ)/σ,    μ = tanh m,    σ = 2 sigmoid(s/2) + 0.1

    num: numbers of a draw, >= 1.

    >>> law = TruncatedNormal(1)
    >>> law.draw(jnp.zeros(2), jnp.array([0.5])).tolist(), bool(jnp.abs(law.sample(jax.random.key(0), jnp.ones(2))) < 1)
    ([0.0], True)
    """

    num: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require("TruncatedNormal", "num", ">= 1", self.num, lambda n: n >= 1)

    @property
    def size(self) -> int:
        """Numbers that a network gives."""
        return 2 * self.num

    @property
    def width(self) -> int:
        """Numbers of a draw."""
        return self.num

    def noise(self, key: Array, shape: tuple[int, ...]) -> Array:
        """What draws of this shape are made from, by ``draw``."""
        return jax.random.uniform(key, (*shape, self.num), minval=1e-4, maxval=1 - 1e-4)

    def draw(self, stats: Float[Array, "... size"], noise: Array) -> Float[Array, "... width"]:
        """By the inverse of the distribution function."""
        mean, sigma, low, high = self._edges(stats)
        below, above = _below(low), _below(high)
        z = math.sqrt(2) * erfinv(2 * (below + noise * (above - below)) - 1)
        return jnp.clip(mean + sigma * z, -1 + 1e-6, 1 - 1e-6)

    def mode(self, stats: Float[Array, "... size"]) -> Float[Array, "... width"]:
        """μ."""
        return self._edges(stats)[0]

    def log_probability(self, stats: Float[Array, "... size"], draw: Float[Array, "... width"]) -> Array:
        """Σ log φ((a − μ)/σ) − log σ − log(Φ(h) − Φ(l))."""
        mean, sigma, low, high = self._edges(stats)
        log = -0.5 * ((draw - mean) / sigma) ** 2 - jnp.log(sigma) - 0.5 * math.log(2 * math.pi)
        return jnp.sum(log - jnp.log(_below(high) - _below(low)), axis=-1)

    def entropy(self, stats: Float[Array, "... size"]) -> Array:
        """Σ log(√(2πe) σ Z) + (l φ(l) − h φ(h)) / 2Z,  Z = Φ(h) − Φ(l)."""
        _, sigma, low, high = self._edges(stats)
        mass = _below(high) - _below(low)
        edge = low * jnp.exp(-0.5 * low**2) - high * jnp.exp(-0.5 * high**2)
        log = jnp.log(sigma * mass) + 0.5 * math.log(2 * math.pi * math.e)
        return jnp.sum(log + edge / (2 * mass * math.sqrt(2 * math.pi)), axis=-1)

    def _edges(self, stats: Array) -> tuple[Array, Array, Array, Array]:
        mean, sigma = _moments(stats)
        mean = jnp.tanh(mean)
        return mean, sigma, (-1 - mean) / sigma, (1 - mean) / sigma


def kl_balance(
    law: OneHot | DiagonalNormal,
    posterior: Float[Array, "... size"],
    prior: Float[Array, "... size"],
    alpha: float | Array = 0.8,
    free: float | Array = 0.0,
) -> tuple[Float[Array, ""], Float[Array, "..."]]:
    """The mean KL divergence with a gradient that moves the prior more than the posterior, and KL of every row.

    ::

        α max(c, mean KL(sg(q)‖p)) + (1 − α) max(c, mean KL(q‖sg(p)))     (Hafner et al. 2021, algorithm 2)

    law: of both, with ``kl``.
    posterior, prior: what a network gives for q and p.
    alpha: α, within 0 and 1; ½ is half the gradient of the KL divergence for both.
    free: c, nats below which neither has a gradient, >= 0. It applies to the mean over all rows, as in the authors'
        code.

    >>> q, p = jnp.array([1.0, 0.0]), jnp.array([0.0, 0.0])
    >>> balanced = jax.grad(lambda p: kl_balance(OneHot(1, 2), q, p)[0])(p)
    >>> plain = jax.grad(lambda p: OneHot(1, 2).kl(q, p))(p)
    >>> [round(float(one / two), 4) for one, two in zip(balanced, plain)]
    [0.8, 0.8]
    """
    require("kl_balance", "alpha", "within 0 and 1", alpha, lambda a: 0 <= a <= 1)
    require("kl_balance", "free", ">= 0", free, lambda c: c >= 0)
    fixed = jax.lax.stop_gradient
    to_prior, to_posterior = law.kl(fixed(posterior), prior), law.kl(posterior, fixed(prior))
    least = lambda kl: jnp.maximum(jnp.mean(kl), free)  # noqa: E731
    return alpha * least(to_prior) + (1 - alpha) * least(to_posterior), fixed(to_prior)


def _moments(stats: Array) -> tuple[Array, Array]:
    mean, raw = jnp.split(stats, 2, axis=-1)
    return mean, 2 * jax.nn.sigmoid(raw / 2) + LEAST


def _below(z: Array) -> Array:
    """Φ."""
    return 0.5 * (1 + erf(z / math.sqrt(2)))
