"""A choice within a network of one's own: which of the 13 measurements of a wine should be bought?

The network may look at one measurement only and must say which of three growers made the wine. Which one is a draw,
trained by gradients through it. The answers of all measurements, above the middle or not, are also a problem for the
lab:

    laureate run gumbel-rao/vae --problem examples/own_choices.py:Wines
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_wine

from laureate.gradients import gumbel_rao, st_gumbel_softmax, straight_through, zgr

WINE: Any = load_wine()
INPUTS, GROWERS = np.asarray(WINE.data), np.asarray(WINE.target)
TABLE = jnp.asarray((INPUTS - INPUTS.mean(0)) / INPUTS.std(0), jnp.float32)
LABELS = jnp.asarray(GROWERS)


class Wines:
    """Rows of −1 and +1: below or above the middle of each measurement."""

    def __init__(self):
        order = np.random.default_rng(0).permutation(len(TABLE))
        signs = np.where(np.asarray(TABLE)[order] > 0, 1.0, -1.0).astype(np.float32)
        self.spins, self.test_spins = jnp.asarray(signs[:140]), jnp.asarray(signs[140:])


def train(estimator, num_steps=400):
    """How likely each measurement is to be bought at the end, and the share of wines told right by the likeliest."""
    params = {
        "choice": jnp.zeros(13),
        "w": 0.1 * jax.random.normal(jax.random.key(0), (13, 3, 3)),
        "b": jnp.zeros((13, 3)),
    }
    optimiser = optax.adam(0.05)

    def answers(params, z):
        seen = TABLE @ z
        features = jnp.stack([seen, seen**2, jnp.ones_like(seen)], axis=1)
        return features @ jnp.einsum("m,mfk->fk", z, params["w"]) + z @ params["b"]

    def loss(params, key):
        z = estimator(key, params["choice"])  # one-hot: the measurement that is bought
        return optax.softmax_cross_entropy_with_integer_labels(answers(params, z), LABELS).mean()

    def step(carry, key):
        params, state = carry
        each = jax.vmap(jax.grad(loss), (None, 0))(params, jax.random.split(key, 4))
        updates, state = optimiser.update(jax.tree.map(lambda g: g.mean(0), each), state)
        return (optax.apply_updates(params, updates), state), None

    run = jax.jit(lambda keys: jax.lax.scan(step, (params, optimiser.init(params)), keys)[0][0])
    params = run(jax.random.split(jax.random.key(1), num_steps))
    best = jax.nn.one_hot(params["choice"].argmax(), 13)
    return jax.nn.softmax(params["choice"]), jnp.mean(answers(params, best).argmax(1) == LABELS)


if __name__ == "__main__":
    names = WINE.feature_names
    for name, estimator in {
        "gumbel_rao": lambda key, logits: gumbel_rao(key, logits, 0.1, 10),
        "st_gumbel_softmax": lambda key, logits: st_gumbel_softmax(key, logits, 0.1),
        "straight_through": straight_through,
        "zgr": zgr,
    }.items():
        likely, right = train(estimator)
        print(f"{name:18} buys {names[int(likely.argmax())]} ({float(likely.max()):.0%}), {float(right):.0%} right")
