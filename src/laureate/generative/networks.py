"""Small perceptrons for models that come without networks of one's own."""

import itertools
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from laureate._core import require

__all__ = ["Perceptron", "perceptrons"]


class Perceptron(eqx.Module):
    """A perceptron of one example, whatever the shapes of its inputs: they are flattened and put in a row.

    weights: a matrix [outputs, inputs] a layer.
    biases: a vector [outputs] a layer.
    shape: of the output; None for the vector as it is.
    activation: between layers.

    >>> (network,) = perceptrons(jax.random.key(0), (3 + 2, 8, 4))
    >>> network(jnp.ones(3), jnp.ones(2)).shape
    (4,)
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    shape: tuple[int, ...] | None = eqx.field(static=True, default=None)
    activation: Callable[[Array], Array] = eqx.field(static=True, default=jax.nn.relu)

    def __check_init__(self):
        rule = "as many as there are weights"
        require("Perceptron", "biases", rule, len(self.biases), lambda n: n == len(self.weights) > 0)

    def __call__(self, *parts: Array) -> Array:
        """The output for one example."""
        values = jnp.concatenate([jnp.ravel(part) for part in parts])
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = self.activation(weight @ values + bias)
        values = self.weights[-1] @ values + self.biases[-1]
        return values if self.shape is None else values.reshape(self.shape)


def perceptrons(
    key: Array, *sizes: Sequence[int], shapes: Sequence[tuple[int, ...] | None] = (), activation=jax.nn.relu
) -> list[Perceptron]:
    """One perceptron for each list of layer sizes, all from one draw: He's normal weights, biases 0.

    shapes: of the outputs, where they are no vectors.
    """
    rule = "at least an input and an output, all >= 1"
    require("perceptrons", "sizes", rule, sizes, lambda all_: all(len(s) > 1 and min(s) >= 1 for s in all_))
    # One call of the generator for all: each call is a tenth of a second of compiling.
    counts = [a * b for layers in sizes for a, b in itertools.pairwise(layers)]
    pool, used, made = jax.random.normal(key, (sum(counts),)), 0, []
    for number, layers in enumerate(sizes):
        weights, biases = [], []
        for inputs, outputs in itertools.pairwise(layers):
            drawn = pool[used : used + inputs * outputs].reshape(outputs, inputs)
            used += inputs * outputs
            last = len(weights) == len(layers) - 2
            weights.append(drawn * ((1 if last else 2) / inputs) ** 0.5)
            biases.append(jnp.zeros(outputs, pool.dtype))
        made.append(Perceptron(tuple(weights), tuple(biases), shapes[number] if shapes else None, activation))
    return made
