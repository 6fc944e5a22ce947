"""Recall, training, features: what a user does with the memory, and what happens with bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import memory
from laureate.memory import BoltzmannMachine, store, to_boltzmann_machine


def patterns_of(count, units, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], (count, units))


def test_recall_restores_what_was_stored_and_the_energy_never_rises():
    patterns = patterns_of(10, 60)
    network = store(patterns)
    damaged = patterns.copy()
    damaged[:, :6] *= -1
    restored, info = jax.vmap(lambda key, s: memory.recall(key, network, s))(
        jax.random.split(jax.random.key(0), 10), jnp.asarray(damaged, jnp.float32)
    )
    np.testing.assert_array_equal(restored, patterns)
    assert (info.status == 0).all()
    assert (info.cost == 60 * info.num_sweeps).all()
    energy = jax.vmap(network.energy)
    assert (energy(restored) < energy(jnp.asarray(damaged, jnp.float32))).all()


def test_the_diagonal_pins_units_and_a_synchronous_cycle_is_reported():
    patterns = patterns_of(40, 100)
    network = store(patterns)
    damaged = jnp.asarray(patterns, jnp.float32).at[:, :10].multiply(-1)
    keys = jax.random.split(jax.random.key(0), 40)

    def success(keep):
        found, _ = jax.vmap(lambda key, s: memory.recall(key, network, s, keep_diagonal=keep))(keys, damaged)
        return float(jnp.mean(jnp.all(found == patterns, axis=1)))

    assert success(False) > success(True) + 0.3
    swap = memory.HopfieldNetwork(jnp.array([[0.0, -1], [-1, 0]]), jnp.zeros(2))
    _, info = memory.recall(jax.random.key(0), swap, jnp.ones(2), mode="sync", max_sweeps=9)
    assert int(info.status) == 2
    assert int(info.num_sweeps) == 9


@pytest.mark.slow
def test_training_in_one_program_repeats_and_does_not_compile_again_for_another_beta():
    data = jnp.asarray(np.repeat(patterns_of(2, 8), 20, 0), jnp.float32)
    traces = []

    @jax.jit
    def run(key, beta):
        traces.append(1)
        machine = BoltzmannMachine(memory.random_weights(key, 8, 2, 0.1), jnp.zeros(8), jnp.zeros(2), beta)
        trainer = memory.ContrastiveDivergence(optax.sgd(0.05), num_steps=3, train_bias=False)
        state, info = memory.train(key, trainer, trainer.init(machine), data, num_updates=60, batch_size=20)
        return state.machine, info

    first, info = run(jax.random.key(0), 1.5)
    again, _ = run(jax.random.key(0), 1.5)
    run(jax.random.key(1), 2.0)
    assert len(traces) == 1
    np.testing.assert_array_equal(first.weights, again.weights)
    assert (first.visible_bias == 0).all()  # it was not trained
    assert (info.status == 0).all()
    start = BoltzmannMachine(memory.random_weights(jax.random.key(0), 8, 2, 0.1), jnp.zeros(8), jnp.zeros(2), 1.5)
    assert float(memory.log_likelihood(first, data)) > float(memory.log_likelihood(start, data)) + 1


def test_a_gradient_that_is_not_finite_is_a_status():
    machine = BoltzmannMachine(jnp.full((3, 1), jnp.inf), jnp.zeros(3), jnp.zeros(1))
    trainer = memory.ContrastiveDivergence(optax.sgd(0.1))
    _, info = trainer.update(jax.random.key(0), trainer.init(machine), jnp.ones((2, 3)))
    assert int(info.status) == 1


def test_class_patterns_leave_out_copies_and_negatives():
    data = np.array([[1, 1, -1, -1], [1, 1, -1, -1], [-1, -1, 1, 1], [1, -1, 1, -1], [1, -1, 1, -1.0]])
    assert memory.class_patterns(data, [0, 0, 1, 2, 2]).tolist() == [[1, 1, -1, -1], [1, -1, 1, -1]]
    assert len(memory.class_patterns(data, np.zeros(5), per_class=3)) == 2


def test_principal_weights_are_the_directions_of_the_second_moments():
    data = patterns_of(30, 6) * np.array([1, 1, 1, 1, 1, 1.0])
    data[:, 1] = data[:, 0]
    weights = memory.principal_weights(data, 2)
    _, _, right = np.linalg.svd(data)
    np.testing.assert_allclose(np.abs(weights.T @ right[:2].T), np.eye(2), atol=1e-5)


def test_features_in_a_pipeline():
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    x, y = load_digits(return_X_y=True)
    model = make_pipeline(memory.HopfieldFeatures(per_class=3, threshold=7.5), LogisticRegression(max_iter=500))
    assert model.fit(x[:1000], y[:1000]).score(x[1000:], y[1000:]) > 0.8


@pytest.mark.slow
def test_scikit_learns_own_checks():
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(memory.HopfieldFeatures(), on_skip=None)


TRAINER = memory.ContrastiveDivergence(optax.sgd(0.1))
GOOD = store([[1, 1, -1, -1], [1, -1, 1, 1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: store([[0, 1], [1, 1]]), r"store.patterns must be -1 or \+1 everywhere; .*2 \* x - 1"),
        (lambda: store([[0.5, 1]]), "Binarise it first"),
        (lambda: store([1, -1]), "two-dimensional, a pattern a row"),
        (lambda: store(patterns_of(5, 3)), "at most as many as the 3 units; got 5. Are they transposed"),
        (lambda: store([[1, 1, 1], [1, -1, 1], [-1, -1, -1]]), r"linearly independent; got \[\d\].*pseudo-inverse"),
        (lambda: store([[1, -1]], rule="hopfield"), "store.rule must be a name in its table"),
        (lambda: store([[1, -1]], field=[1.0]), r"store.field must be of shape \(2,\)"),
        (lambda: to_boltzmann_machine(GOOD, beta=0.0), "BoltzmannMachine.beta must be > 0"),
        (lambda: to_boltzmann_machine(GOOD, factor="lu"), "factor must be a name in its table"),
        (lambda: to_boltzmann_machine(store(patterns_of(3, 9), rule="hebbian")), "'projection' or .*'eigen'"),
        (
            lambda: to_boltzmann_machine(store(patterns_of(2, 9), rule="storkey")),
            "network.rule must be 'projection' or",
        ),
        (lambda: memory.recall(jax.random.key(0), GOOD, jnp.zeros(4)), r"recall.spins must be -1 or \+1.*2 \* x - 1"),
        (lambda: memory.recall(jax.random.key(0), GOOD, jnp.ones((4, 4))), r"recall.spins must be of shape \(4,\)"),
        (lambda: memory.SpinGibbs(GOOD).init(jnp.zeros(4)), r"position must be -1 or \+1"),
        (lambda: memory.log_likelihood(to_boltzmann_machine(GOOD), jnp.zeros((2, 4))), r"data must be -1 or \+1"),
        (
            lambda: TRAINER.update(jax.random.key(0), TRAINER.init(to_boltzmann_machine(GOOD)), jnp.zeros((2, 4))),
            "data must",
        ),
        (lambda: memory.principal_weights(np.zeros((4, 3)), 2), r"principal_weights.data must be -1 or \+1"),
        (lambda: memory.all_spins(30), "all_spins.num_units must be <= 24; got 30. It would take 120 GiB"),
        (lambda: memory.log_partition(GOOD), "beta must be given for a HopfieldNetwork"),
        (lambda: memory.ContrastiveDivergence(optax.sgd(0.1), num_steps=0), "num_steps must be >= 1"),
        (lambda: memory.SpinGibbs(GOOD, beta=-1.0), "SpinGibbs.beta must be > 0"),
        (lambda: memory.SpinGibbs(GOOD).init(jnp.ones(3)), r"position must be of shape \(4,\)"),
        (lambda: memory.recall(jax.random.key(0), GOOD, jnp.ones(4), mode="both"), "'async' or 'sync'"),
        (lambda: memory.annealed_log_partition(jax.random.key(0), to_boltzmann_machine(GOOD), 1), "num_chains"),
        (lambda: memory.reverse_patterns(jax.random.key(0), to_boltzmann_machine(GOOD), 0), "num_patterns must be"),
        (lambda: memory.principal_weights(np.ones((4, 3)), 4), r"num_hidden must be in 1..3"),
        (lambda: memory.class_patterns([[1, -1]], [0, 1]), r"labels must be of shape \(1,\)"),
        (lambda: BoltzmannMachine(jnp.ones((3, 2)), jnp.zeros(2), jnp.zeros(2)), "visible_bias must be of shape"),
    ],
)
def test_bad_input_says_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_weights_that_are_not_numbers_are_no_estimate():
    machine = BoltzmannMachine(jnp.full((3, 1), jnp.nan), jnp.zeros(3), jnp.zeros(1))
    assert int(memory.annealed_log_partition(jax.random.key(0), machine, 4, 4).status) != 0


def test_inside_jit_only_the_projection_rule_has_orthonormal_weights():
    for rule in ("hebbian", "pseudo-inverse"):
        with pytest.raises(ValueError, match=r"network\.rule must be 'projection'"):
            jax.jit(lambda x, rule=rule: to_boltzmann_machine(store(x, rule=rule)).weights)(
                jnp.asarray(patterns_of(2, 6))
            )


def test_small_couplings_at_a_low_temperature_keep_their_law():
    network = store(patterns_of(2, 6), rule="hebbian")
    small = memory.HopfieldNetwork(1e-7 * network.couplings, network.field)
    weights = to_boltzmann_machine(small, factor="eigen").weights
    wanted = to_boltzmann_machine(network, factor="eigen").weights
    np.testing.assert_allclose(weights @ weights.T * 1e7, wanted @ wanted.T, atol=1e-4)
