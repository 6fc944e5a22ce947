"""Which measurement should be bought next, for each patient? 569 tumours of scikit-learn's breast cancer data.

Five measurements are known; from them a network chooses one of the other 25 and tells from all six whether the tumour
is malignant. The choice is of one option: its gradient must be estimated.

laureate race examples/races/tumour_question.py:model --seconds 20
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer

KNOWN = 5


class Question(eqx.Module):
    inputs: jax.Array
    targets: jax.Array

    def theta0(self, key):
        first, second = jax.random.split(key)
        options = self.inputs.shape[1] - KNOWN
        return {
            "hidden": jax.random.normal(first, (KNOWN, 16)) / np.sqrt(KNOWN),
            "choice": 0.1 * jax.random.normal(second, (16, options)),
            "known": jnp.zeros(KNOWN),
            "slope": jnp.zeros(options),
            "level": jnp.zeros(options),
        }

    def logits(self, params, inputs):
        return jnp.tanh(inputs[:, :KNOWN] @ params["hidden"]) @ params["choice"]

    def loss(self, params, z, inputs, targets):
        bought = jnp.sum(z * (inputs[:, KNOWN:] * params["slope"] + params["level"]), axis=-1)
        return jax.nn.softplus(-targets * (inputs[:, :KNOWN] @ params["known"] + bought))


def model():
    """Measurements in units of their spread; the target is −1 for a malignant tumour and 1 for a benign one."""
    table, benign = load_breast_cancer(return_X_y=True)
    table = (table - table.mean(0)) / table.std(0)  # pyright: ignore[reportCallIssue]
    return Question(jnp.asarray(table, jnp.float32), jnp.asarray(2.0 * benign - 1, jnp.float32))
