"""Policies: laws of actions, and networks that give a law and the values of every head for one observation."""

import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require
from laureate.loops import Discrete

__all__ = ["ActorCritic", "Categorical", "Gaussian", "law_of", "make_actor_critic", "make_perceptron"]

TRUNKS = ("shared", "separate", "stopped")


class Categorical(eqx.Module):
    """Choices among ``num`` actions; a network gives their logits.

    num: how many.

    >>> law = Categorical(2)
    >>> round(float(law.log_probability(jnp.array([0.0, 0.0]), jnp.asarray(1))), 4), law.size
    (-0.6931, 2)
    """

    num: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        """Numbers that the network gives."""
        return self.num

    def sample(self, key: Array, logits: Float[Array, "... A"]) -> Array:
        """An action for every row, by the inverse of the distribution function: one random number each."""
        reached = jnp.cumsum(jax.nn.softmax(logits), axis=-1)
        drawn = jax.random.uniform(key, (*logits.shape[:-1], 1), logits.dtype) * reached[..., -1:]
        return jnp.minimum(jnp.sum(reached <= drawn, axis=-1), self.num - 1).astype(jnp.int32)

    def log_probability(self, logits: Float[Array, "... A"], action: Array) -> Array:
        """log π(a)."""
        return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], axis=-1)[..., 0]

    def entropy(self, logits: Float[Array, "... A"]) -> Array:
        """−Σ π log π."""
        log = jax.nn.log_softmax(logits)
        return -jnp.sum(jnp.exp(log) * log, axis=-1)


class Gaussian(eqx.Module):
    """Independent normal numbers; a network gives means and logarithms of standard deviations, one after the other.

    What lies outside the bounds of an action space is clipped on its way to the environment, not here.

    num: numbers of an action.

    >>> law = Gaussian(1)
    >>> round(float(law.log_probability(jnp.array([1.0, 0.0]), jnp.array([1.0]))), 4), law.size
    (-0.9189, 2)
    """

    num: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        """Numbers that the network gives."""
        return 2 * self.num

    def sample(self, key: Array, parameters: Float[Array, "... 2*n"]) -> Array:
        """μ + σ ε."""
        mean, log_sigma = jnp.split(parameters, 2, axis=-1)
        return mean + jnp.exp(log_sigma) * jax.random.normal(key, mean.shape, mean.dtype)

    def log_probability(self, parameters: Float[Array, "... 2*n"], action: Array) -> Array:
        """log π(a)."""
        mean, log_sigma = jnp.split(parameters, 2, axis=-1)
        z = (action - mean) * jnp.exp(-log_sigma)
        return -jnp.sum(0.5 * z**2 + log_sigma + 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self, parameters: Float[Array, "... 2*n"]) -> Array:
        """Σ log σ + ½ log 2πe."""
        log_sigma = jnp.split(parameters, 2, axis=-1)[1]
        return jnp.sum(log_sigma + 0.5 * math.log(2 * math.pi * math.e), axis=-1)


def law_of(action_space: Any) -> Categorical | Gaussian:
    """The law for the actions of an environment: choices for ``Discrete``, normal numbers for a ``Box`` of one axis."""
    if isinstance(action_space, Discrete):
        return Categorical(action_space.num)
    shape = getattr(action_space, "shape", None)
    remedy = "Flatten the actions in the environment's step."
    require("law_of", "action_space", "Discrete, or a Box of one axis", shape, lambda s: s and len(s) == 1, remedy)
    return Gaussian(action_space.shape[0])


class ActorCritic(eqx.Module):
    """A policy and the values of several heads from one observation, which is flattened.

    trunks: one network from the observation to features; with ``kind="separate"`` one more for each head.
    policy: from features to what the law of actions wants.
    heads: one for each kind of reward, from features to one number.
    kind: "shared": all from the first trunk. "separate": each head from a trunk of its own. "stopped": as shared, but
        only the policy and the first head train the trunk.

    >>> network = make_actor_critic(jax.random.key(0), 3, 2, num_heads=2, width=8)
    >>> parameters, values = network(jnp.ones(3))
    >>> parameters.shape, values.shape
    ((2,), (2,))
    """

    trunks: tuple[Callable[[Array], Array], ...]
    policy: Callable[[Array], Array]
    heads: tuple[Callable[[Array], Array], ...]
    kind: Literal["shared", "separate", "stopped"] = eqx.field(static=True, default="shared")

    def __check_init__(self):
        require("ActorCritic", "kind", f"one of {', '.join(TRUNKS)}", self.kind, lambda k: k in TRUNKS)
        wanted = 1 + len(self.heads) if self.kind == "separate" else 1
        require("ActorCritic", "trunks", f"{wanted} of them", len(self.trunks), lambda n: n == wanted)

    def __call__(self, observation: Array) -> tuple[Array, Float[Array, " heads"]]:
        """What the law of actions wants, and the values."""
        seen = jnp.ravel(observation).astype(jnp.promote_types(observation.dtype, jnp.float32))
        features = self.trunks[0](seen)
        if self.kind == "separate":
            each = [trunk(seen) for trunk in self.trunks[1:]]
        else:
            later = jax.lax.stop_gradient(features) if self.kind == "stopped" else features
            each = [features, *[later] * (len(self.heads) - 1)]
        values = [head(one) for head, one in zip(self.heads, each, strict=True)]
        return self.policy(features), jnp.stack([jnp.reshape(value, ()) for value in values])


def make_actor_critic(
    key: Array,
    num_inputs: int,
    num_outputs: int,
    *,
    num_heads: int = 2,
    width: int = 64,
    depth: int = 2,
    kind: Literal["shared", "separate", "stopped"] = "shared",
) -> ActorCritic:
    """Perceptrons for small observations, with the paper's orthogonal weights: √2 within, 0.01 at the heads.

    num_inputs: numbers of an observation. num_outputs: what the law of actions wants (``law_of(space).size``).
    num_heads: 2 for extrinsic and intrinsic values. width, depth: of the hidden layers.
    """
    for name, value in (("num_heads", num_heads), ("width", width), ("depth", depth)):
        require("make_actor_critic", name, ">= 1", value, lambda n: n >= 1)
    keys = jax.random.split(key, 2 + num_heads)
    number = 1 + num_heads if kind == "separate" else 1
    layers = (num_inputs, *[width] * depth)
    trunks = tuple(make_perceptron(one, layers, last=True) for one in jax.random.split(keys[0], number))
    policy = make_perceptron(keys[1], (width, num_outputs), gain=0.01)
    heads = tuple(make_perceptron(one, (width, 1), gain=0.01) for one in keys[2:])
    return ActorCritic(trunks, policy, heads, kind)


def make_perceptron(
    key: Array,
    sizes: tuple[int, ...],
    *,
    gain: float = math.sqrt(2),
    last: bool = False,
    activation: Callable[[Array], Array] = jax.nn.relu,
) -> Callable[[Array], Array]:
    """Layers of the given sizes with orthogonal weights times ``gain`` and biases 0.

    last: whether the activation stands after the last layer too.

    >>> make_perceptron(jax.random.key(0), (3, 8, 2))(jnp.ones(3)).shape
    (2,)
    """
    rule = "at least an input and an output, all >= 1"
    require("make_perceptron", "sizes", rule, sizes, lambda s: len(s) > 1 and min(s) >= 1)
    keys = jax.random.split(key, len(sizes) - 1)
    draw = jax.nn.initializers.orthogonal(gain)
    layers: list[Any] = []
    for one, inputs, outputs in zip(keys, sizes, sizes[1:], strict=False):
        # Zeros first: what Equinox would draw is thrown away, and drawing is what compiles slowly.
        empty = eqx.filter_eval_shape(eqx.nn.Linear, inputs, outputs, key=one)
        linear = eqx.tree_at(
            lambda layer: (layer.weight, layer.bias), empty, (draw(one, (outputs, inputs)), jnp.zeros(outputs))
        )
        layers += [linear, eqx.nn.Lambda(activation)]
    return eqx.nn.Sequential(layers if last else layers[:-1])
