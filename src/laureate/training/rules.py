"""In which direction a weight below the boundary is moved, from what its own layer saw alone.

The rules are our reading: the paper's abstract says Hebbian and one matrix product a layer, no more.
"""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import require

__all__ = ["AbstractRule", "Frozen", "Hebbian", "Oja", "RandomDirection", "Site"]


class Site(NamedTuple):
    """A linear layer while it is called: all that a rule may see.

    weight: W. inputs: a, what came in. outputs: z = W a, without a bias.
    pull: of a change of the outputs, Σ over examples and positions with the inputs that made them: for a dense layer
        ``pull(c) = Σ c aᵀ``, for a convolution the sum over all positions that share the weight.
    per_output: a row of numbers, one an output channel, in a shape that multiplies the weight.
    channels_last: whether the channels are the last axis of the outputs, or the first.
    """

    weight: Array
    inputs: Array
    outputs: Array
    pull: Callable[[Array], Array]
    per_output: Callable[[Array], Array]
    channels_last: bool

    def powers(self) -> Array:
        """Σ z² of each output channel."""
        axes = range(self.outputs.ndim)
        own = self.outputs.ndim - 1 if self.channels_last else 0
        return jnp.sum(self.outputs**2, axis=[axis for axis in axes if axis != own])


class AbstractRule(eqx.Module):
    """A local rule; for one of your own, say what a call of a layer contributes and what is made of the mean.

    ``reads_activity`` False: the rule looks at no activation, and ``contribution`` is never called.
    """

    @property
    @abc.abstractmethod
    def reads_activity(self) -> bool:
        """Whether activations are read."""

    @abc.abstractmethod
    def contribution(self, site: Site) -> Array:
        """Of one call of a layer, in the weight's shape; contributions of all examples are averaged."""

    @abc.abstractmethod
    def direction(self, key: Array, step: Array, weight: Array, mean: Array | None) -> Array | None:
        """ΔW from the mean contribution (None where no activity is read); None leaves the weight as it is."""


class Hebbian(AbstractRule):
    """Hebb's rule: what fires together is wired together.

    The mean over the examples, for a convolution the sum over all positions that share the weight::

        ΔW = E[ r(z) aᵀ ],   z = W a

    With r the identity it is the gradient of ½ E‖W a‖²: a power iteration on E[a aᵀ] in which no row knows of the
    others. All rows turn to the first principal component of a, and W grows without bound: keep the rate tiny.

    response: r; ``jax.nn.relu`` for the rule on activations after a ReLU.

    >>> Hebbian().reads_activity
    True
    """

    response: Callable[[Array], Array] = eqx.field(static=True, default=lambda z: z)

    @property
    def reads_activity(self) -> bool:
        """Yes."""
        return True

    def contribution(self, site: Site) -> Array:
        """R(z) aᵀ."""
        return site.pull(self.response(site.outputs))

    def direction(self, key: Array, step: Array, weight: Array, mean: Array | None) -> Array | None:
        """The mean."""
        return mean


class Oja(AbstractRule):
    """Oja's rule: Hebb's, with the decay that keeps each row at length one (Oja 1982)::

        ΔW_o = E[ z_o (a − d z_o W_o) ]

    With d = 1 its fixed point is a unit vector, the first principal component, for every row. It settles there only
    where steps may shrink, ``LocalizedTraining(normalise=None)``; steps of one length go on turning it by that length.

    decay: d >= 0; rows come to rest at length 1/√d, and without it the rule is Hebb's.
    """

    decay: float | Array = 1.0

    def __check_init__(self):
        require("Oja", "decay", ">= 0", self.decay, lambda d: d >= 0)

    @property
    def reads_activity(self) -> bool:
        """Yes."""
        return True

    def contribution(self, site: Site) -> Array:
        """Z aᵀ − d z² W, row by row."""
        return site.pull(site.outputs) - self.decay * site.per_output(site.powers()) * site.weight

    def direction(self, key: Array, step: Array, weight: Array, mean: Array | None) -> Array | None:
        """The mean."""
        return mean


class RandomDirection(AbstractRule):
    """A control: a normal direction that knows nothing of the data; made as long as the others by normalisation.

    hold: steps for which it stays the same, >= 1; 0: the same for ever. Weak supervision can only reward a direction
        that is still there at the next step, as Hebb's is.
    """

    hold: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require("RandomDirection", "hold", "an integer >= 0", self.hold, lambda n: isinstance(n, int) and n >= 0)

    @property
    def reads_activity(self) -> bool:
        """No."""
        return False

    def contribution(self, site: Site) -> Array:
        """Nothing."""
        return jnp.zeros_like(site.weight)

    def direction(self, key: Array, step: Array, weight: Array, mean: Array | None) -> Array | None:
        """N(0, 1) in every entry."""
        era = step // self.hold if self.hold else jnp.zeros_like(step)
        return jax.random.normal(jax.random.fold_in(key, era), weight.shape, weight.dtype)


class Frozen(AbstractRule):
    """Weights below the boundary stay as they are, bit by bit: the cheapest rule, and the one to beat."""

    @property
    def reads_activity(self) -> bool:
        """No."""
        return False

    def contribution(self, site: Site) -> Array:
        """Nothing."""
        return jnp.zeros_like(site.weight)

    def direction(self, key: Array, step: Array, weight: Array, mean: Array | None) -> Array | None:
        """None."""
        return None
