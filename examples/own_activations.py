"""Activations of one's own, from any framework: which units of a model matter, and is that more than chance?

Three small networks learn to tell the time of year from noisy weather; their hidden activations are saved as ``.npz``,
as another framework would, and read back. Also a problem for the lab:

    laureate run important-neurons/erasure --problem examples/own_activations.py:RunningMaximum --scale smoke
"""

import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.interpretation import (
    SetUnits,
    ablation_effects,
    erase_curve,
    insert,
    open_activations,
    permutation_null,
    rank_agreement,
    rank_neurons,
    record,
)


class RunningMaximum(eqx.Module):
    """What the lab asks for: source and target words, -1 for padding. Here: say the largest word so far."""

    sources: jax.Array
    targets: jax.Array
    test_sources: jax.Array
    test_targets: jax.Array

    def __init__(self):
        words = np.random.default_rng(0).integers(12, size=(7300, 10))
        said = np.maximum.accumulate(words, axis=1)
        self.sources, self.targets = jnp.asarray(words[:7000]), jnp.asarray(said[:7000])
        self.test_sources, self.test_targets = jnp.asarray(words[7000:]), jnp.asarray(said[7000:])


def weather(rng, count):
    """Twelve months as noisy numbers: temperature, daylight and four that say nothing."""
    months = rng.integers(12, size=count)
    angle = 2 * np.pi * months / 12
    told = np.stack([np.cos(angle), np.sin(angle), *rng.normal(size=(4, count))], axis=1)
    return jnp.asarray(told + 0.2 * rng.normal(size=told.shape), jnp.float32), jnp.asarray(months)


def fit(key, inputs, labels, steps=300):
    """A perceptron with 16 hidden units, trained by a few lines of Optax."""
    network = eqx.nn.MLP(6, 12, 16, 1, key=key)
    optimiser = optax.adam(0.02)

    @eqx.filter_jit
    def run(network):
        arrays, rest = eqx.partition(network, eqx.is_inexact_array)

        def step(carry, _):
            arrays, state = carry
            gradient = jax.grad(lambda a: loss(eqx.combine(a, rest), inputs, labels))(arrays)
            updates, state = optimiser.update(gradient, state)
            return (optax.apply_updates(arrays, updates), state), None

        (arrays, _), _ = jax.lax.scan(step, (arrays, optimiser.init(arrays)), length=steps)
        return eqx.combine(arrays, rest)

    return run(network)


def loss(network, inputs, labels):
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(network)(inputs), labels).mean()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    inputs, labels = weather(rng, 2000)
    held, held_labels = weather(rng, 2000)
    networks: list[Any] = [fit(jax.random.key(seed), inputs, labels) for seed in range(3)]

    # Any framework's activations will do: arrays [tokens, units], on the same tokens in the same order.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hidden.npz"
        found = [record(lambda network, x: network(x), one, "layers.0", held)[0] for one in networks]
        hidden: dict[str, Any] = {f"model{seed}": np.asarray(jax.nn.relu(h)) for seed, h in enumerate(found)}
        np.savez(path, **hidden)
        activations = open_activations(path)

    ranking = rank_neurons(activations, model="model0", method="max-corr")
    null = permutation_null(jax.random.key(0), list(activations.values()), 0, num_permutations=99)
    agreeing = int((null.adjusted <= 0.05).sum())
    print(f"units that agree with another model's beyond chance: {agreeing} of 16")
    print("the first three by MaxCorr:", ranking.order[:3].tolist())

    # And is the ranking right about this network? Erase units inside it, in the order of the ranking and one by one.
    mine = networks[0]
    means = jnp.mean(found[0], axis=0)

    def evaluate(intervention):
        return loss(insert(mine, "layers.0", intervention), held, held_labels)

    curves = {
        end: erase_curve(evaluate, ranking.order, jnp.array([0.0, 0.25, 0.5]), from_=end, values=means)
        for end in ("top", "bottom")
    }
    for end, curve in curves.items():
        print(f"loss with none, a quarter and half erased from the {end}: {np.round(curve.values, 2).tolist()}")
    effects = ablation_effects(evaluate, 16, values=means, batch=16).effects
    print(f"rank correlation with each unit's own effect: {rank_agreement(ranking.scores, effects):.1f}")
    changed = insert(mine, "layers.0", SetUnits(jnp.arange(16) == ranking.order[0], 0.0))
    same = (jnp.argmax(jax.vmap(changed)(held), 1) == jnp.argmax(jax.vmap(mine)(held), 1)).mean()
    print(f"answers that stay when the first unit is silent: {float(same):.0%}")
