"""A network that tells tumours apart, made to fit into 1,600 bytes for a small device.

laureate race examples/races/tumour_compression.py:trained --seconds 20
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_breast_cancer


class Trained(eqx.Module):
    """30 measurements, two layers of 48 units: 15 kilobytes as it is."""

    model: eqx.nn.MLP
    inputs: jax.Array
    labels: jax.Array
    size: int = eqx.field(static=True, default=1600)

    def apply(self, model, inputs):
        """[n, 2]."""
        return jax.vmap(model)(inputs)


def trained():
    """Trained on 300 patients; 269 others judge."""
    table, labels = map(np.asarray, load_breast_cancer(return_X_y=True))
    table = (table - table.mean(0)) / table.std(0)
    order = np.random.default_rng(0).permutation(len(labels))
    x, y = jnp.asarray(table[order], jnp.float32), jnp.asarray(labels[order])
    model = eqx.nn.MLP(32, 2, 48, 2, key=jax.random.key(0))
    x = jnp.pad(x, ((0, 0), (0, 2)))  # 32 inputs, so that blocks of weights divide them
    optimiser = optax.adamw(3e-3, weight_decay=1e-2)
    state = optimiser.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state):
        slope = eqx.filter_grad(
            lambda m: optax.softmax_cross_entropy_with_integer_labels(jax.vmap(m)(x[:300]), y[:300]).mean()
        )(model)
        changes, state = optimiser.update(slope, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, changes), state

    for _ in range(150):
        model, state = step(model, state)
    return Trained(model, x[300:], y[300:])
