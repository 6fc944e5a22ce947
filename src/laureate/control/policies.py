"""Policies: laws of actions, and networks that give a law and the values of every head for one observation."""

import itertools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require
from laureate.loops import Discrete

__all__ = ["ActorCritic", "Categorical", "Gaussian", "Layers", "law_of", "make_actor_critic", "make_perceptrons"]

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

    What lies outside the bounds of an action space is not clipped here. ``GymnasiumEnvironments`` does it on the way;
    an environment of your own that is a pure function must.

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
    number = 1 + num_heads if kind == "separate" else 1
    trunk = Layers((num_inputs, *[width] * depth), last=True)
    policy, head = Layers((width, num_outputs), 0.01), Layers((width, 1), 0.01)
    made = make_perceptrons(key, *[trunk] * number, policy, *[head] * num_heads)
    return ActorCritic(tuple(made[:number]), made[number], tuple(made[number + 1 :]), kind)


class Layers(NamedTuple):
    """A perceptron to be made.

    sizes: of its input, hidden layers and output. gain: by which orthogonal weights are multiplied. last: whether the
    activation stands after the last layer too. activation: between the layers, of arrays.
    """

    sizes: tuple[int, ...]
    gain: float = math.sqrt(2)
    last: bool = False
    activation: Callable[[Array], Array] = jax.nn.relu


def make_perceptrons(key: Array, *plans: Layers) -> list[Callable[[Array], Array]]:
    """Perceptrons with orthogonal weights and biases 0, all from one draw: drawing is what compiles slowly.

    >>> one, two = make_perceptrons(jax.random.key(0), Layers((3, 8, 2)), Layers((3, 1)))
    >>> one(jnp.ones(3)).shape, two(jnp.ones(3)).shape
    ((2,), (1,))
    """
    rule = "at least an input and an output, all >= 1"
    for plan in plans:
        require("Layers", "sizes", rule, plan.sizes, lambda s: len(s) > 1 and min(s) >= 1)
    counts = [a * b for plan in plans for a, b in itertools.pairwise(plan.sizes)]
    pool, used, made = jax.random.normal(key, (sum(counts),)), 0, []
    for plan in plans:
        layers: list[Any] = []
        for inputs, outputs in itertools.pairwise(plan.sizes):
            drawn = pool[used : used + inputs * outputs].reshape(max(inputs, outputs), min(inputs, outputs))
            used += inputs * outputs
            q, r = jnp.linalg.qr(drawn)
            q = q * jnp.where(jnp.diagonal(r) < 0, -1, 1)  # so that all orthogonal matrices are as likely
            weight = plan.gain * (q if outputs >= inputs else q.T)
            empty = eqx.filter_eval_shape(eqx.nn.Linear, inputs, outputs, key=key)
            linear = eqx.tree_at(lambda layer: (layer.weight, layer.bias), empty, (weight, jnp.zeros(outputs)))
            layers += [linear, eqx.nn.Lambda(plan.activation)]
        made.append(eqx.nn.Sequential(layers if plan.last else layers[:-1]))
    return made
