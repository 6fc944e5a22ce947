"""Settings take effect: Gibbs steps, temperatures, fields, tolerances and factors."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import memory
from laureate.memory import BoltzmannMachine, HopfieldNetwork, store, to_boltzmann_machine


class Turning:
    """A kernel whose every step turns all spins."""

    def __init__(self, machine):
        del machine

    def init(self, position):
        return memory.SpinState(position)

    def step(self, key, state):
        del key
        return memory.SpinState(-state.position), None


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_chains_are_moved_as_often_as_asked(monkeypatch, steps):
    monkeypatch.setattr("laureate.memory.contrastive.LayerGibbs", Turning)
    machine = BoltzmannMachine(jnp.full((3, 1), 0.1), jnp.zeros(3), jnp.zeros(1))
    chains = jnp.array([[1.0, -1, 1], [1, 1, 1]])
    trainer = memory.ContrastiveDivergence(optax.sgd(0.1), num_steps=steps)
    state, _ = trainer.update(jax.random.key(0), trainer.init(machine, chains), chains)
    np.testing.assert_array_equal(state.chains, chains * (-1) ** steps)


@pytest.mark.slow  # test_annealing_agrees_with_enumeration_also_with_fields
def test_annealing_is_right_on_average_with_three_temperatures():
    """Few temperatures and many chains: E[w] = Z/Z₀ holds only if a chain moves at the temperature it has reached."""
    with jax.enable_x64(True):
        weights = 0.8 * jnp.array([[0.7, 0.1], [-0.6, 0.3], [0.5, 0.4], [0.2, -0.6], [0.4, 0.5]])
        machine = BoltzmannMachine(weights, jnp.array([0.3, -0.2, 0.1, 0.4, 0.0]), jnp.array([0.3, -0.2]), 1.3)
        found = jax.jit(lambda key: memory.annealed_log_partition(key, machine, 100_000, 3))(jax.random.key(0))
        assert float(found.standard_error) < 0.01
        assert abs(float(found.log_partition - memory.log_partition(machine))) < 4 * float(found.standard_error)


def test_the_field_counts_in_synchronous_recall():
    network = HopfieldNetwork(jnp.zeros((3, 3)), jnp.array([0.0, 1.0, -1.0]))
    found, _ = memory.recall(jax.random.key(0), network, jnp.array([-1.0, -1, -1]), mode="sync")
    assert found.tolist() == [-1, 1, -1]


def test_a_unit_sees_the_units_that_moved_before_it_in_the_same_sweep():
    """Of two units that want to differ one moves, and then the other has no reason to."""
    swap = HopfieldNetwork(jnp.array([[0.0, -1], [-1, 0]]), jnp.zeros(2))
    found, info = memory.recall(jax.random.key(0), swap, jnp.ones(2), max_sweeps=9)
    assert float(found @ jnp.ones(2)) == 0
    assert int(info.status) == 0


def test_binary_is_the_share_of_entries_within_a_tenth():
    machine = BoltzmannMachine(jnp.eye(5), jnp.zeros(5), jnp.zeros(5))
    found, info = memory.reverse_patterns(jax.random.key(0), machine, 40, learning_rate=1e-9, num_steps=1)
    distance = np.abs(np.abs(np.asarray(found)) - 1)  # all but where the search began: uniform in [0, 1]
    np.testing.assert_allclose(info.binary, (distance < 0.1).mean(1), atol=1e-6)
    assert 0 < float(info.binary.mean()) < 0.3
    np.testing.assert_allclose(info.residual, (distance**2).mean(1), rtol=1e-5)


def test_features_have_the_factor_asked_for():
    rows = np.random.default_rng(0).choice([-1.0, 1.0], (12, 7))
    labels = np.arange(12) % 3
    made = {f: memory.HopfieldFeatures(threshold=0.0, factor=f).fit(rows, labels) for f in ("qr", "lowdin")}
    for factor, features in made.items():
        wanted = to_boltzmann_machine(store(features.patterns_), factor=factor).weights
        np.testing.assert_allclose(features.weights_, wanted, atol=1e-6)
    assert np.abs(made["qr"].weights_ - made["lowdin"].weights_).max() > 0.01
