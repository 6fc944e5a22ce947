"""Learning rate and weight decay of logistic regression on the breast-cancer table, tuned through 60 steps of training.

laureate race examples/races/weight_decay_unroll.py:unroll --seconds 30
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer


class Training(eqx.Module):
    """θ = (log rate, log decay); a step is one of gradient descent, its loss that of patients not trained on."""

    x: jax.Array
    y: jax.Array
    held_x: jax.Array
    held_y: jax.Array
    horizon: int = eqx.field(static=True, default=60)

    def theta0(self, key):
        """Far too careful, somewhere."""
        return jnp.array([-4.0, -2.0]) + 0.5 * jax.random.normal(key, (2,))

    def init(self, key, theta):
        """Weights of zero."""
        return jnp.zeros(self.x.shape[1])

    def step(self, key, theta, state):
        """On a batch of 32 patients."""
        rows = jax.random.randint(key, (32,), 0, len(self.y))
        x, y = self.x[rows], self.y[rows]
        slope = -x.T @ (y * jax.nn.sigmoid(-y * (x @ state))) / 32 + jnp.exp(theta[1]) * state
        state = state - jnp.exp(theta[0]) * slope
        return state, jnp.mean(jax.nn.softplus(-self.held_y * (self.held_x @ state)))


def unroll():
    """Two thirds of the patients train, a third judges."""
    table, labels = map(np.asarray, load_breast_cancer(return_X_y=True))
    table = (table - table.mean(0)) / table.std(0)
    order = np.random.default_rng(0).permutation(len(labels))
    x, y = jnp.asarray(table[order], jnp.float32), jnp.asarray(2.0 * labels[order] - 1.0, jnp.float32)
    cut = 2 * len(labels) // 3
    return Training(x[:cut], y[:cut], x[cut:], y[cut:])
