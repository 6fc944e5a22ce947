"""Who sides with whom in Zachary's karate club? The posterior of a stochastic block model over its 34 members.

laureate race examples/races/karate_energy.py:energy --seconds 20
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np


class BlockModel(eqx.Module):
    """f(x) = Σ_{i<j} log p(edge_ij | x_i = x_j or not), with friends four times as likely within a side."""

    adjacency: jax.Array
    within: float = 0.22
    between: float = 0.055

    def __call__(self, x):
        """The log posterior of relaxed sides."""
        s = 2 * x - 1
        same = (1 + s[:, None] * s[None, :]) / 2
        edge = self.adjacency * (same * np.log(self.within) + (1 - same) * np.log(self.between))
        none = (1 - self.adjacency) * (same * np.log1p(-self.within) + (1 - same) * np.log1p(-self.between))
        return jnp.sum(jnp.triu(edge + none, 1))

    def start(self, key):
        """Sides at random."""
        return jax.random.bernoulli(key, 0.5, self.adjacency.shape[:1])


energy = BlockModel(jnp.asarray(nx.to_numpy_array(nx.karate_club_graph()) > 0, jnp.float32))
