"""Temple or flower? A small network tells patches of two photographs apart; how easily is it fooled?

laureate race examples/races/photograph_classifier.py:classifier --seconds 40
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_sample_image


class Classifier(eqx.Module):
    """Grey patches of 12 × 12 pixels; two layers."""

    network: eqx.nn.MLP
    images: jax.Array
    labels: jax.Array
    epsilon: float = eqx.field(static=True, default=0.03)

    def logits(self, images):
        """[batch, 2]."""
        return jax.vmap(self.network)(images.reshape(len(images), -1) - 0.4)


def patches(count, side=12):
    """Half of each photograph, shuffled."""
    rng = np.random.default_rng(0)
    found, labels = [], []
    for label, name in enumerate(("china.jpg", "flower.jpg")):
        grey = load_sample_image(name).mean(axis=2)[::3, ::3] / 255
        for i, j in rng.integers(0, np.array(grey.shape) - side, size=(count // 2, 2)):
            found.append(grey[i : i + side, j : j + side])
            labels.append(label)
    order = rng.permutation(count)
    return jnp.asarray(np.stack(found)[order, ..., None], jnp.float32), jnp.asarray(np.array(labels)[order])


def classifier():
    """Trained on 1,600 patches for 300 steps; 400 others are attacked."""
    images, labels = patches(2000)
    network = eqx.nn.MLP(144, 2, 32, 2, key=jax.random.key(0))
    optimiser = optax.adam(3e-3)
    rows = images[:1600].reshape(1600, -1) - 0.4

    def loss(network):
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(network)(rows), labels[:1600]).mean()

    @eqx.filter_jit
    def train(network):
        arrays, rest = eqx.partition(network, eqx.is_array)

        def step(carry, _):
            arrays, state = carry
            slope = eqx.filter_grad(loss)(eqx.combine(arrays, rest))
            changes, state = optimiser.update(slope, state)
            return (eqx.apply_updates(arrays, changes), state), None

        (arrays, _), _ = jax.lax.scan(step, (arrays, optimiser.init(arrays)), length=300)
        return eqx.combine(arrays, rest)

    return Classifier(train(network), images[1600:], labels[1600:])
