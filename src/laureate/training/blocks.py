"""Blocks of a network, in order: what a boundary may lie between. Each takes a whole batch and gives one.

Any callable pytree of arrays is a block; these are the ones that users would otherwise write again and again.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from laureate._core import require
from laureate.layers import BatchNorm, RunningStatistics

__all__ = ["Chain", "Dense", "Normalised", "PerExample", "advance", "keeps_statistics", "trainable"]


class Dense(eqx.Module):
    """z = W a + b for a batch of rows, with He's initialisation: normal, variance 2/inputs, and b = 0.

    drawn: standard normal numbers [outputs, inputs].

    >>> Dense(jax.random.normal(jax.random.key(0), (3, 5)))(jnp.ones((2, 5))).shape
    (2, 3)
    """

    weight: Float[Array, "o i"]
    bias: Float[Array, " o"]

    def __init__(self, drawn: Float[Array, "o i"]):
        require("Dense", "drawn", "a matrix [outputs, inputs]", drawn.shape, lambda s: len(s) == 2)
        self.weight = drawn * math.sqrt(2 / drawn.shape[1])
        self.bias = jnp.zeros(drawn.shape[0], drawn.dtype)

    def __call__(self, inputs: Float[Array, "b i"]) -> Float[Array, "b o"]:
        """One row of outputs an example."""
        return inputs @ self.weight.T + self.bias


class Chain(eqx.Module):
    """Layers and functions, applied in turn, as one block.

    layers: each takes what the one before gives.

    >>> block = Chain((Dense(jnp.ones((3, 5))), jax.nn.relu))
    >>> block(-jnp.ones((2, 5))).tolist()[0]
    [0.0, 0.0, 0.0]
    """

    layers: tuple[Callable, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        rule = "one or more callables"
        require("Chain", "layers", rule, self.layers, lambda ls: len(ls) > 0 and all(callable(f) for f in ls))

    def __call__(self, inputs: Array) -> Array:
        """What the last layer gives."""
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs


class PerExample(eqx.Module):
    """A module for one example, as Equinox's own layers are, for a batch.

    module: called under ``jax.vmap``.

    >>> linear = eqx.nn.Linear(5, 3, key=jax.random.key(0))
    >>> PerExample(linear)(jnp.ones((2, 5))).shape
    (2, 3)
    """

    module: Callable

    def __call__(self, inputs: Array) -> Array:
        """A row an example."""
        return jax.vmap(self.module)(inputs)


class Normalised(eqx.Module):
    """A layer, batch normalisation, and what follows: a block that keeps running statistics.

    ``train`` normalises by the batch and averages its statistics into the running ones, which a call uses.

    layer: before the normalisation. norm: ``laureate.layers.BatchNorm``. after: an activation or pooling.
    momentum: of the running statistics, in [0, 1).

    >>> block = Normalised(Dense(jnp.ones((3, 5))), BatchNorm(3), jax.nn.relu)
    >>> outputs, block = block.train(jnp.arange(10.0).reshape(2, 5))
    >>> int(block.statistics.count), outputs.tolist()[0]
    (2, [0.0, 0.0, 0.0])
    """

    layer: Callable
    norm: BatchNorm
    after: Callable
    momentum: float = eqx.field(static=True)
    statistics: RunningStatistics

    def __init__(self, layer: Callable, norm: BatchNorm, after: Callable = jax.nn.relu, momentum: float = 0.9):
        require("Normalised", "momentum", "in [0, 1)", momentum, lambda m: 0 <= m < 1)
        self.layer, self.norm, self.after, self.momentum = layer, norm, after, momentum
        self.statistics = norm.init()

    def __call__(self, inputs: Array) -> Array:
        """With the running statistics, as to evaluate."""
        return self.after(self.norm(self.layer(inputs), self.statistics)[0])

    def train(self, inputs: Array) -> tuple[Array, "Normalised"]:
        """With the batch's statistics, and the block that remembers them."""
        normal, batch = self.norm(self.layer(inputs))
        new = eqx.tree_at(lambda b: b.statistics, self, self.statistics.average(batch, self.momentum))
        return self.after(normal), new


def keeps_statistics(block: Any) -> bool:
    """Whether it offers ``train(inputs) -> (outputs, block)``."""
    return hasattr(block, "train")


def advance(block: Any, inputs: Array, training: bool = True) -> tuple[Array, Any]:
    """The outputs and the block after them, which differs in its running statistics, if it keeps any."""
    return block.train(inputs) if training and keeps_statistics(block) else (block(inputs), block)


def trainable(block: Any) -> tuple[Any, Any]:
    """What a gradient changes, and the rest: functions, integers and running statistics."""
    is_statistics = lambda node: isinstance(node, RunningStatistics)  # noqa: E731
    wanted = jax.tree.map(
        lambda node: not is_statistics(node) and eqx.is_inexact_array(node), block, is_leaf=is_statistics
    )
    return eqx.partition(block, wanted, is_leaf=is_statistics)
