"""What keeps a discriminator from winning too early: penalties of its slope, and noise on what it sees."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["AbstractRegulariser", "Examples", "GradientPenalty", "InstanceNoise", "Logit", "rows_of"]

# A batch of examples [n, ...], or a tuple of it with what the discriminator is told beside (labels), rows first.
Examples = Any
# From one example, and what is told beside, to its logit.
Logit = Callable[..., Array]
TINY = 1e-12


def rows_of(examples: Examples) -> tuple[Array, ...]:
    """The examples, then their conditions."""
    return tuple(examples) if isinstance(examples, tuple | list) else (examples,)


class AbstractRegulariser(eqx.Module):
    """What stands between examples and the discriminator: it may change what is seen, and ask for a price.

    The trainer calls ``see`` for every batch, adds ``penalty`` to the discriminator's loss, calls ``update`` once after
    every step of the discriminator and ``respond`` once after every step of the generator.
    """

    @property
    @abc.abstractmethod
    def networks(self) -> Any:
        """What is learned together with the discriminator; None for nothing."""

    @property
    @abc.abstractmethod
    def passes(self) -> int:
        """How many passes a penalty costs beside those of the loss."""

    @abc.abstractmethod
    def init(self) -> Any:
        """The state before the first step."""

    @abc.abstractmethod
    def see(self, key: Array | None, networks: Any, x: Array, state: Any, *, learner: str) -> tuple[Array, Array]:
        """What the discriminator sees of a batch x [n, ...], and the nats it costs [n].

        key: None for what is seen without noise. learner: whose step it is, "discriminator" or "generator".
        """

    @abc.abstractmethod
    def penalty(self, key: Array, judge: Logit, real: Examples, made: Examples, nats: Array, state: Any) -> Array:
        """What is added to the discriminator's loss.

        judge: from an example to its logit, without noise. real, made: the batches. nats: the mean cost of what was
            seen, ½ real + ½ made.
        """

    @abc.abstractmethod
    def update(self, state: Any, nats: Array) -> Any:
        """After a step of the discriminator: the state, given the nats before that step."""

    @abc.abstractmethod
    def respond(self, state: Any, slopes: Float[Array, " n"]) -> Any:
        """After a step of the generator: the state, given the length of its gradient at each made example."""


class GradientPenalty(AbstractRegulariser):
    """Keep the discriminator's slope small, or near 1 (R1, R2, WGAN-GP)::

        "real"          weight · E ‖∇l(x)‖², x real: R1, with weight = γ/2 (Mescheder et al. 2018)
        "made"          the same at made examples: R2
        "interpolated"  weight · E (‖∇l(x̂)‖ − 1)², x̂ uniform between a real and a made one (Gulrajani et al. 2017)

    weight: >= 0.
    at: where slopes are taken, "real", "made" or "interpolated".

    >>> penalty = GradientPenalty(2.0)
    >>> x, slope = jnp.ones((4, 2)), jnp.array([3.0, 4.0])
    >>> float(penalty.penalty(jax.random.key(0), lambda x: x @ slope, x, x, jnp.zeros(()), ()))
    50.0
    """

    weight: float | Array = 1.0
    at: str = eqx.field(static=True, default="real")

    def __check_init__(self):
        require("GradientPenalty", "weight", ">= 0", self.weight, lambda w: w >= 0)
        rule = "'real', 'made' or 'interpolated'"
        require("GradientPenalty", "at", rule, self.at, lambda at: at in ("real", "made", "interpolated"))

    @property
    def networks(self) -> Any:
        """Nothing is learned."""
        return None

    @property
    def passes(self) -> int:
        """Forward and backward, differentiated once more."""
        return 2

    def init(self) -> Any:
        """Nothing is remembered."""
        return ()

    def see(self, key: Array | None, networks: Any, x: Array, state: Any, *, learner: str) -> tuple[Array, Array]:
        """The examples as they are."""
        return x, jnp.zeros(len(x), x.dtype)

    def penalty(self, key: Array, judge: Logit, real: Examples, made: Examples, nats: Array, state: Any) -> Array:
        """weight · E ‖∇l‖², or weight · E (‖∇l‖ − 1)²."""
        x, *beside = rows_of(made if self.at == "made" else real)
        if self.at == "interpolated":
            share = jax.random.uniform(key, (len(x), *[1] * (x.ndim - 1)), x.dtype)
            x = share * x + (1 - share) * rows_of(made)[0]
        slopes = jax.vmap(jax.grad(judge))(x, *beside)
        squares = jnp.sum(slopes**2, axis=tuple(range(1, slopes.ndim)))
        terms = (jnp.sqrt(squares + TINY) - 1) ** 2 if self.at == "interpolated" else squares
        return self.weight * jnp.mean(terms)

    def update(self, state: Any, nats: Array) -> Any:
        """Nothing is remembered."""
        return state

    def respond(self, state: Any, slopes: Float[Array, " n"]) -> Any:
        """Nothing is remembered."""
        return state


class InstanceNoise(AbstractRegulariser):
    """Show the discriminator real and made examples under the same noise, so that their laws overlap (Sønderby 2017)::

        x + σ_t ε,   ε ~ N(0, I),   σ_t = σ max(0, 1 − t / horizon)

    Both players see it (Sønderby et al.).

    sigma: σ, in the unit of the examples, >= 0.
    horizon: steps of the discriminator until there is none, > 0; infinite for the same noise for ever.

    >>> noise = InstanceNoise(0.5, horizon=10.0)
    >>> float(noise.level(jnp.asarray(5)))
    0.25
    """

    sigma: float | Array = 0.1
    horizon: float | Array = jnp.inf

    def __check_init__(self):
        require("InstanceNoise", "sigma", ">= 0", self.sigma, lambda s: s >= 0)
        require("InstanceNoise", "horizon", "> 0", self.horizon, lambda t: t > 0)

    @property
    def networks(self) -> Any:
        """Nothing is learned."""
        return None

    @property
    def passes(self) -> int:
        """None."""
        return 0

    def init(self) -> Any:
        """Steps taken."""
        return jnp.zeros((), jnp.int32)

    def level(self, step: Array) -> Array:
        """σ_t."""
        return self.sigma * jnp.maximum(0.0, 1 - step / self.horizon)

    def see(self, key: Array | None, networks: Any, x: Array, state: Any, *, learner: str) -> tuple[Array, Array]:
        """x + σ_t ε."""
        noise = 0.0 if key is None else self.level(state).astype(x.dtype) * jax.random.normal(key, x.shape, x.dtype)
        return x + noise, jnp.zeros(len(x), x.dtype)

    def penalty(self, key: Array, judge: Logit, real: Examples, made: Examples, nats: Array, state: Any) -> Array:
        """Nothing."""
        return jnp.zeros((), nats.dtype)

    def update(self, state: Any, nats: Array) -> Any:
        """t + 1."""
        return state + 1

    def respond(self, state: Any, slopes: Float[Array, " n"]) -> Any:
        """As it is."""
        return state
