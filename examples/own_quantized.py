"""A model of your own made small: two moons told apart with two bits a weight, saved and read back.

Also a problem for the lab: laureate run quant-noise/two-bits --problem examples/own_quantized.py:Moons
"""

import tempfile
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.compression import ScalarQuantizer, dequantize, load, match, quant_noise, quantize, save


class Moons(eqx.Module):
    """Two half moons to be told apart: rows of two numbers, labels 0 and 1."""

    inputs: jax.Array
    labels: jax.Array
    test_inputs: jax.Array
    test_labels: jax.Array
    num_classes: int = eqx.field(static=True)

    def __init__(self, train: int = 1400, test: int = 600):
        rng = np.random.default_rng(0)
        labels = rng.integers(2, size=train + test)
        angle = rng.uniform(0, np.pi, train + test)
        moons = np.stack([np.cos(angle), np.sin(angle)], 1) * np.where(labels, -1, 1)[:, None]
        rows = moons + np.outer(labels, [1.0, 0.5]) + rng.normal(scale=0.15, size=moons.shape)
        self.inputs, self.test_inputs = (jnp.asarray(part, jnp.float32) for part in (rows[:train], rows[train:]))
        self.labels, self.test_labels = jnp.asarray(labels[:train]), jnp.asarray(labels[train:])
        self.num_classes = 2


if __name__ == "__main__":
    moons = Moons()
    model = eqx.nn.MLP(2, 2, 32, 2, key=jax.random.key(0))
    # The first rule that fits wins; biases stay as they are. The first layer has few weights: 8 bits.
    spec = match({r"layers\.0\.weight": ScalarQuantizer(8), r".*": ScalarQuantizer(2)})
    optimiser = optax.adam(0.01)

    def loss(model):
        logits = jax.vmap(model)(moons.inputs)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, moons.labels))

    def accuracy(model):
        return 100 * float(jnp.mean(jnp.argmax(jax.vmap(model)(moons.test_inputs), 1) == moons.test_labels))

    @eqx.filter_jit
    def step(key, rate, model, state):
        gradient = eqx.filter_grad(lambda model: loss(quant_noise(model, spec, rate, key)))(model)  # the one new line
        changes, state = optimiser.update(gradient, state)
        return eqx.apply_updates(model, changes), state

    for name, rate in (("rounded after training", 0.0), ("trained with noise", 0.5)):
        trained, state = model, optimiser.init(eqx.filter(model, eqx.is_inexact_array))
        for key in jax.random.split(jax.random.key(1), 300):
            trained, state = step(key, jnp.asarray(rate), trained, state)
        packed, report = quantize(trained, spec)
        print(f"{name}: {accuracy(trained):.1f} %, with two bits a weight {accuracy(dequantize(packed)):.1f} %")
    print(report)
    with tempfile.TemporaryDirectory() as folder:
        written = save(Path(folder, "moons"), packed)
        again = load(Path(folder, "moons"), model)
    same = eqx.tree_equal(eqx.filter(again, eqx.is_array), eqx.filter(packed, eqx.is_array))
    print(f"{written:,} bytes on disk, read back the same: {bool(same)}")
