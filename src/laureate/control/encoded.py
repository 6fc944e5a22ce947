"""Policies and values on an encoder of one's own, which learns with them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require
from laureate.control.policies import Layers, make_perceptrons

__all__ = ["EncodedActorCritic", "make_encoded_actor_critic"]


class EncodedActorCritic(eqx.Module):
    """A network for ``PPO`` on any encoder: the policy and every value see the same features, and all train it.

    ::

        e = encoder(s),    π(· | s) = law(policy(e)),    V_h(s) = head_h(e)

    So two agents can be compared that see alike, e.g. one with the encoder of a world model, ``WorldModel.encoder``.

    encoder: from one observation, of any shape, to a vector.
    policy: from features to what the law of actions wants.
    heads: one for each kind of reward, from features to one number.

    >>> encoder = eqx.nn.Linear(3, 4, key=jax.random.key(0))
    >>> network = make_encoded_actor_critic(jax.random.key(1), encoder, jnp.ones(3), 2, width=8)
    >>> parameters, values = network(jnp.ones(3))
    >>> parameters.tolist(), values.tolist()  # the first policy is uniform
    ([0.0, 0.0], [0.0])
    """

    encoder: Callable[[Array], Array]
    policy: Callable[[Array], Array]
    heads: tuple[Callable[[Array], Array], ...]

    def __check_init__(self):
        require("EncodedActorCritic", "heads", "at least one", len(self.heads), lambda n: n >= 1)

    def __call__(self, observation: Array) -> tuple[Array, Float[Array, " heads"]]:
        """What the law of actions wants, and the values."""
        features = self.encoder(observation)
        return self.policy(features), jnp.stack([jnp.reshape(head(features), ()) for head in self.heads])


def make_encoded_actor_critic(
    key: Array,
    encoder: Callable[[Array], Array],
    observation: Any,
    num_outputs: int,
    *,
    num_heads: int = 1,
    width: int = 64,
    depth: int = 2,
) -> EncodedActorCritic:
    """Heads as DreamerV2's actor and critic, on an encoder that brings its own first weights.

    Hidden layers of exponential linear units with orthogonal weights; the last layer is of zeros.

    encoder: from one observation to a vector.
    observation: one, or its ``jax.ShapeDtypeStruct``: to learn how many features there are.
    num_outputs: what the law of actions wants (``law_of(space).size``).
    num_heads: kinds of rewards, >= 1. width, depth: of each head's hidden layers, >= 1.
    """
    for name, value in (("num_outputs", num_outputs), ("num_heads", num_heads), ("width", width), ("depth", depth)):
        require("make_encoded_actor_critic", name, ">= 1", value, lambda n: n >= 1)
    shape = eqx.filter_eval_shape(encoder, observation).shape
    rule, remedy = "one that gives a vector", "Flatten what it gives: lambda s: jnp.ravel(encoder(s))."
    require("make_encoded_actor_critic", "encoder", rule, shape, lambda s: len(s) == 1, remedy)
    hidden = Layers((shape[0], *[width] * depth), 1.0, True, jax.nn.elu)
    ends = [Layers((width, outputs), 0.0) for outputs in (num_outputs, *[1] * num_heads)]
    made = make_perceptrons(key, *[hidden] * len(ends), *ends)
    policy, *heads = (eqx.nn.Sequential([*made[i].layers, *made[len(ends) + i].layers]) for i in range(len(ends)))  # pyright: ignore[reportFunctionMemberAccess]
    return EncodedActorCritic(encoder, policy, tuple(heads))
