"""A small conditional GAN, as a baseline: least squares, with or without a regression cost beside it."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from laureate._core import require
from laureate.generative.conditional import (
    AbstractConditional,
    ConditionalInfo,
    ConditionalState,
    Hooks,
    Optimiser,
    absolute_error,
    descend,
    status_of,
)

__all__ = ["ConditionalGAN"]


def _adam(learning_rate: Any) -> optax.GradientTransformation:
    """Adam with the momentum that GANs are trained with."""
    return optax.adam(learning_rate, b1=0.5)


class ConditionalGAN(AbstractConditional):
    """A generator against a discriminator that sees x, with least squares as losses (Mao et al. 2017)::

        min_D E (D(x, y) − 1)² + E D(x, g(x, z))²
        min_g E (D(x, g(x, z)) − 1)² + weight · E d(g(x, z), y),   z ~ N(0, I)

    The second term is that of pix2pix: it steadies training and takes diversity away. A step is one of D and one of g.

    generator: g, from (x, z) to an answer.
    discriminator: D, from (x, y) to one number.
    num_latents: numbers in z, >= 1.
    weight: of the regression cost, >= 0.
    learning_rate: of both, > 0.
    cost: d(ŷ, y).
    optimiser: from a learning rate to an Optax optimiser; Adam with b1 = 0.5 unless given.

    >>> model = ConditionalGAN(lambda x, z: x + z, lambda x, y: jnp.sum(y))
    >>> model.draw(jax.random.key(0), model.init(), jnp.zeros(2)).shape
    (2,)
    """

    generator: Callable[[Array, Array], Array]
    discriminator: Callable[[Array, Array], Array]
    num_latents: int = eqx.field(static=True, default=2)
    weight: float | Array = 0.0
    learning_rate: float | Array = 1e-3
    cost: Callable[[Array, Array], Array] = eqx.field(static=True, default=absolute_error)
    optimiser: Optimiser = eqx.field(static=True, default=_adam)

    def __check_init__(self):
        require("ConditionalGAN", "num_latents", ">= 1", self.num_latents, lambda n: n >= 1)
        require("ConditionalGAN", "weight", ">= 0", self.weight, lambda v: v >= 0)
        require("ConditionalGAN", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)

    @property
    def networks(self) -> Any:
        """g and D."""
        return {"generator": self.generator, "discriminator": self.discriminator}

    @property
    def hooks(self) -> Hooks:
        """Nothing beside the usual."""
        return Hooks()

    def init(self) -> ConditionalState:
        """Zero steps, the first weights, an optimiser each."""
        parameters = self.arrays()
        states = {name: self.optimiser(self.learning_rate).init(part) for name, part in parameters.items()}
        return ConditionalState(jnp.zeros((), jnp.int32), parameters, states)

    def step(self, key: Array, x: Array, y: Array, state: ConditionalState) -> tuple[ConditionalState, ConditionalInfo]:
        """One step of D, then one of g against the new D, with the same z."""
        z = jax.random.normal(key, (len(x), self.num_latents), y.dtype)
        networks, optimiser = self.trained(state.parameters), self.optimiser(self.learning_rate)
        judge = lambda network, answers: jax.vmap(network)(x, answers).reshape(len(x))  # noqa: E731
        fakes = jax.vmap(networks["generator"])(x, z)

        def discriminator_loss(part):
            network = eqx.combine(part, self.discriminator)
            return jnp.mean((judge(network, y) - 1) ** 2) + jnp.mean(judge(network, fakes) ** 2)

        first, (judging, judging_state) = descend(
            optimiser, discriminator_loss, state.parameters["discriminator"], state.optimiser["discriminator"]
        )
        against = eqx.combine(judging, self.discriminator)

        def generator_loss(part):
            answers = jax.vmap(eqx.combine(part, self.generator))(x, z)
            near = jnp.mean(jax.vmap(self.cost)(answers, y))
            return jnp.mean((judge(against, answers) - 1) ** 2) + self.weight * near

        second, (making, making_state) = descend(
            optimiser, generator_loss, state.parameters["generator"], state.optimiser["generator"]
        )
        after = ConditionalState(
            state.step + 1,
            {"generator": making, "discriminator": judging},
            {"generator": making_state, "discriminator": judging_state},
        )
        # D on true and on made answers; g through D.
        return after, ConditionalInfo(second, jnp.asarray(4), status_of(first + second))

    def draw(self, key: Array, state: ConditionalState, x: Array, **options: Any) -> Array:
        """g(x, z), z ~ N(0, I)."""
        networks = self.trained(state.parameters)
        return networks["generator"](x, jax.random.normal(key, (self.num_latents,), x.dtype))
