"""Features of tumours without labels: two views of a row of the breast-cancer table lack different measurements.

laureate race examples/races/tumour_views.py:views --seconds 40
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer


class Tumours(eqx.Module):
    """A view hides a third of the 30 measurements and jostles the others; a small network learns what stays."""

    images: jax.Array
    labels: jax.Array
    test_images: jax.Array
    test_labels: jax.Array
    dim: int = eqx.field(static=True, default=16)

    def model0(self, key):
        """Two hidden layers, of which the last is the features."""
        first, second = jax.random.split(key)
        return eqx.nn.Linear(30, 32, key=first), eqx.nn.Linear(32, self.dim, key=second)

    def features(self, model, examples):
        """The hidden layer."""
        return jax.nn.relu(jax.vmap(model[0])(examples))

    def apply(self, model, batch):
        """The projection that the methods work on."""
        return jax.vmap(model[1])(self.features(model, batch))

    def views(self, key, number):
        """Two views of ``number`` random tumours."""
        keys = jax.random.split(key, 5)
        rows = self.images[jax.random.randint(keys[0], (number,), 0, len(self.labels))]
        shown = [jax.random.bernoulli(k, 2 / 3, rows.shape).astype(rows.dtype) for k in keys[1:3]]
        noise = [0.1 * jax.random.normal(k, rows.shape) for k in keys[3:]]
        return shown[0] * (rows + noise[0]), shown[1] * (rows + noise[1])


def views():
    """369 tumours to learn from, 200 to be judged by."""
    table, labels = map(np.asarray, load_breast_cancer(return_X_y=True))
    table = (table - table.mean(0)) / table.std(0)
    order = np.random.default_rng(0).permutation(len(labels))
    x, y = jnp.asarray(table[order], jnp.float32), jnp.asarray(labels[order])
    return Tumours(x[:369], y[:369], x[369:], y[369:])
