"""What a discriminator and a generator play for: losses of one logit, the discriminator's unbounded output."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

__all__ = ["LOSSES", "AdversarialLoss", "imitation_reward"]


class AdversarialLoss(NamedTuple):
    """Three functions of logits l, each to be made small.

    real: of the discriminator at real examples. made: of the discriminator at made ones. generator: of the generator.
    """

    real: Callable[[Array], Array]
    made: Callable[[Array], Array]
    generator: Callable[[Array], Array]


def _real(logits: Array) -> Array:
    """−log D, with D = σ(l)."""
    return jax.nn.softplus(-logits)


def _made(logits: Array) -> Array:
    """−log(1 − D)."""
    return jax.nn.softplus(logits)


def _above(logits: Array) -> Array:
    return jax.nn.relu(1 - logits)


def _below(logits: Array) -> Array:
    return jax.nn.relu(1 + logits)


def _one(logits: Array) -> Array:
    return (logits - 1) ** 2


LOSSES = {
    # Goodfellow et al. 2014: max_G log D(G), whose gradient by the logit stays where the discriminator is sure.
    "non-saturating": AdversarialLoss(_real, _made, _real),
    # The minimax form that Peng et al. 2019 write: max_G −log(1 − D(G)).
    "saturating": AdversarialLoss(_real, _made, lambda logits: -_made(logits)),
    # Lim & Ye 2017, as in BigGAN.
    "hinge": AdversarialLoss(_above, _below, jnp.negative),
    # Arjovsky et al. 2017: a critic, which needs a gradient penalty.
    "wasserstein": AdversarialLoss(jnp.negative, jnp.positive, jnp.negative),
    # Mao et al. 2017.
    "lsgan": AdversarialLoss(_one, jnp.square, _one),
}


def imitation_reward(logits: Array) -> Array:
    """r = −log(1 − D) = softplus(l): the reward of GAIL, and of VAIL where l comes by the bottleneck's mean.

    Never negative, so that ending an episode early is punished: use it where episodes do not end, or end alike.

    >>> float(imitation_reward(jnp.asarray(0.0)))
    0.6931471824645996
    """
    return jax.nn.softplus(logits)
