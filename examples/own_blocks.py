"""Two moons, and a network of Equinox layers of one's own: what may be frozen, and what does a local rule do?

Also a problem for the lab: laureate run localized-learning/dense --problem examples/own_blocks.py:Moons
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.training import (
    Frozen,
    Hebbian,
    LocalizedTraining,
    NormRule,
    PerExample,
    WeakSupervision,
    cost_table,
    fit,
    predict,
)


def two_moons(rng, count):
    angle, labels = rng.uniform(0, np.pi, count), rng.integers(2, size=count)
    points = np.stack([np.cos(angle), np.sin(angle)], 1) * np.where(labels, -1, 1)[:, None]
    points = points + labels[:, None] * np.array([1.0, 0.5]) + rng.normal(0, 0.15, (count, 2))
    return jnp.asarray(points, jnp.float32), jnp.asarray(labels)


class Moons(eqx.Module):
    """Points of two interleaved half circles: to learn from, to choose by, to report."""

    inputs: jax.Array
    labels: jax.Array
    validation_inputs: jax.Array
    validation_labels: jax.Array
    test_inputs: jax.Array
    test_labels: jax.Array

    def __init__(self):
        rng = np.random.default_rng(0)
        self.inputs, self.labels = two_moons(rng, 400)
        self.validation_inputs, self.validation_labels = two_moons(rng, 200)
        self.test_inputs, self.test_labels = two_moons(rng, 300)


class Residual(eqx.Module):
    """x + relu(W x + b): a block of one's own, for one example."""

    linear: eqx.nn.Linear

    def __call__(self, x):
        return x + jax.nn.relu(self.linear(x))


def network(key):
    keys = jax.random.split(key, 4)
    first = eqx.nn.Sequential([eqx.nn.Linear(2, 32, key=keys[0]), eqx.nn.Lambda(jax.nn.relu)])
    middle = [Residual(eqx.nn.Linear(32, 32, key=k)) for k in keys[1:3]]
    return [PerExample(module) for module in (first, *middle, eqx.nn.Linear(32, 2, key=keys[3]))]


if __name__ == "__main__":
    moons = Moons()
    rules = {"frozen": (Frozen(), WeakSupervision()), "Hebb, sign": (Hebbian(), WeakSupervision(rising=-1.0))}
    for name, (rule, supervision) in rules.items():
        trainer = LocalizedTraining(
            NormRule(fraction=0.95, start=3), rule, optax.adam(0.01), supervision=supervision, local_rate=1e-4
        )
        state = trainer.init(jax.random.key(1), network(jax.random.key(0)))
        state, history = fit(jax.random.key(2), trainer, state, moons.inputs, moons.labels, batch=40, num_epochs=12)
        right = jnp.argmax(predict(state.blocks, moons.test_inputs), axis=1) == moons.test_labels
        table = cost_table(trainer, state.blocks, moons.inputs[:40], moons.labels[:40])
        work = np.mean([table[report.boundary].localized for report in history])
        boundaries = "".join(str(report.boundary) for report in history)
        print(f"{name}: accuracy {float(jnp.mean(right)):.2f}, boundaries {boundaries}, {work:.0%} of the operations")
