"""Fifteen Florentine families, joined by marriage, train one classifier of wines; each family has wines of its own.

laureate race examples/races/florentine_network.py:network --seconds 20
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from sklearn.datasets import load_wine

from laureate.decentralized import Topology, from_graph


class Families(eqx.Module):
    """Softmax regression on 13 measurements; wines are dealt out sorted by cultivar, so that no family knows all."""

    graph: Topology = eqx.field(static=True)
    data: tuple[jax.Array, jax.Array]

    def theta0(self, key):
        """Zeros."""
        return jnp.zeros((14, 3))

    def gradient(self, key, params, data):
        """On four of a family's own wines."""
        rows = jax.random.randint(key, (4,), 0, len(data[1]))
        return jax.grad(self._loss)(params, data[0][rows], data[1][rows])

    def loss(self, params):
        """On everybody's wines."""
        return self._loss(params, self.data[0].reshape(-1, 14), self.data[1].reshape(-1))

    def _loss(self, params, x, y):
        scores = jax.nn.log_softmax(x @ params)
        return -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=1)) + 5e-3 * jnp.sum(params**2)


def network():
    """Eleven wines a family."""
    table, labels = map(np.asarray, load_wine(return_X_y=True))
    table = np.c_[(table - table.mean(0)) / table.std(0), np.ones(len(labels))]
    kept = np.sort(np.random.default_rng(0).permutation(len(labels))[: 15 * 11])  # sorted by cultivar, as they come
    shares = jnp.asarray(table[kept].reshape(15, 11, 14), jnp.float32), jnp.asarray(labels[kept].reshape(15, 11))
    return Families(from_graph(nx.florentine_families_graph()), shares)
