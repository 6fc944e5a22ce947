"""From ten cheap measurements of a wine: its grower, and three dear ones, in the laboratory's units.

laureate race examples/races/wine_tasks.py:tasks --seconds 20
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_wine

DEAR = (12, 9, 4)  # proline in mg/l, colour, magnesium in mg/l
PARTS = {"train": slice(0, 90), "validation": slice(90, 130), "test": slice(130, 178)}


class Wines(eqx.Module):
    """A shared layer; squared errors are in the laboratory's squared units: proline's are a million times colour's."""

    inputs: jax.Array
    labels: jax.Array
    numbers: jax.Array  # standardised
    units: jax.Array

    def params0(self, key):
        first, second, third = jax.random.split(key, 3)
        return {
            "trunk": 0.5 * jax.random.normal(first, (self.inputs.shape[1], 16)),
            "grower": 0.3 * jax.random.normal(second, (16, 3)),
            "numbers": 0.3 * jax.random.normal(third, (16, 3)),
        }

    def shared(self, path):
        return "trunk" in path

    def batch(self, key):
        return jax.random.randint(key, (32,), 0, 90)

    def answers(self, params, rows):
        hidden = jnp.tanh(self.inputs[rows] @ params["trunk"])
        return hidden @ params["grower"], hidden @ params["numbers"]

    def losses(self, params, batch):
        grower, numbers = self.answers(params, batch)
        entropy = optax.softmax_cross_entropy_with_integer_labels(grower, self.labels[batch]).mean()
        errors = jnp.mean((self.units * (numbers - self.numbers[batch])) ** 2, axis=0)
        return jnp.concatenate([entropy[None], errors])

    def scores(self, params, part):
        rows = jnp.arange(178)[PARTS[part]]
        grower, numbers = self.answers(params, rows)
        right = jnp.mean(jnp.argmax(grower, axis=1) == self.labels[rows])
        truth = self.numbers[rows]
        explained = 1 - jnp.mean((numbers - truth) ** 2, axis=0) / jnp.var(truth, axis=0)
        return jnp.concatenate([right[None], explained])


def tasks():
    """90 bottles to train on, 40 to choose by, 48 to be judged by."""
    table, growers = map(np.asarray, load_wine(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(growers))
    table, growers = table[order], growers[order]
    known = table[PARTS["train"]]
    scaled = jnp.asarray((table - known.mean(0)) / known.std(0), jnp.float32)
    cheap = [column for column in range(table.shape[1]) if column not in DEAR]
    units = jnp.asarray(known.std(0)[list(DEAR)], jnp.float32)
    return Wines(scaled[:, cheap], jnp.asarray(growers), scaled[:, list(DEAR)], units)
