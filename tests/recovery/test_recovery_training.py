"""Training moves what it says and nothing else; drift; dictionaries from data; scikit-learn's contract."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from dictionaries import learned_round, random_dictionary

from laureate.recovery import (
    ALISTA,
    LISTACP,
    BernoulliGaussian,
    SparseCoder,
    TiLISTA,
    UnrolledCoherence,
    analytic_weight,
    coherence_loss,
    dense_matrix,
    fit,
    fit_encoder,
    learn_dictionary,
    nmse_db,
    perturb,
    training,
)

D = jnp.asarray(random_dictionary(10, 20), jnp.float32)
PRIOR = BernoulliGaussian(20, density=0.1)
KEY = jax.random.key(0)


@pytest.mark.slow
def test_training_lowers_the_error_and_moves_only_the_scalars():
    solver = ALISTA(D, num_layers=3)
    trained, losses = fit(KEY, solver, PRIOR, optimiser=optax.adam(0.02), num_steps=150)
    assert losses.shape == (150,)
    x = PRIOR(jax.random.key(1), 500)
    b = solver.synthesise(x)
    call = eqx.filter_jit(lambda solver: solver(b))
    assert nmse_db(call(trained), x) < nmse_db(call(solver), x) - 2
    np.testing.assert_array_equal(trained.weight.matrix, solver.weight.matrix)
    np.testing.assert_array_equal(dense_matrix(trained.dictionary), dense_matrix(solver.dictionary))
    assert np.all(np.asarray(trained.theta) >= 0)


def test_one_step_of_sgd_is_the_gradient_of_the_loss():
    solver = LISTACP(D, num_layers=2)
    codes = PRIOR(jax.random.key(2), 1)  # one code: whichever is drawn, it is this one
    trained, _ = fit(KEY, solver, codes, optimiser=optax.sgd(0.1), num_steps=1, batch=4)
    loss = lambda weight: jnp.sum((eqx.tree_at(lambda s: s.weight, solver, weight)(codes @ D.T) - codes) ** 2)  # noqa: E731
    np.testing.assert_allclose(trained.weight, solver.weight - 0.1 * jax.grad(loss)(solver.weight), atol=1e-6)


def test_pairs_as_they_were_measured_and_a_loss_of_ones_own():
    signals = jnp.ones((3, 10))
    seen = []

    def loss(solver, estimate, target):
        seen.append((estimate.shape, target.shape))
        return jnp.mean((solver.synthesise(estimate) - target) ** 2)

    fit(KEY, ALISTA(D, num_layers=2), (signals, signals), optimiser=optax.sgd(0.1), num_steps=2, batch=5, loss=loss)
    assert seen[0] == ((5, 20), (5, 10))


def test_a_greedy_stage_leaves_other_layers_alone(monkeypatch):
    """The second of three layers alone, then with the one behind it; the weight decays in what is trained only."""
    solver, codes = TiLISTA(D, num_layers=3, support=None), np.eye(20, dtype=np.float32)
    measured = codes @ np.asarray(D).T, codes

    @jax.jit
    def trained(plan):
        monkeypatch.setattr(training, "_plan", lambda *_: plan)
        optimiser = optax.adamw(0.05, weight_decay=0.1)
        found, losses = fit(KEY, solver, measured, optimiser=optimiser, num_steps=2, batch=20, mode="greedy")
        rows = jax.random.randint(jax.random.split(jax.random.split(KEY, 2)[0], 3)[1], (20,), 0, 20)
        signals, targets = (jnp.asarray(part)[rows] for part in measured)
        first = jnp.sum((solver.trace(signals) - targets) ** 2, axis=(1, 2)) / 20
        return {name: getattr(found, name) for name in solver.trainable}, losses[0], first

    for alone in (True, False):
        plan = training._Plan(np.array([1, 1]), np.full(2, alone), np.ones(2), np.array([True, False]))
        found, loss, first = trained(plan)
        assert float(loss) == pytest.approx(float(first[1]), rel=1e-5)  # at the layer in training, not the last
        assert abs(float(first[1] - first[2])) > 1e-3
        anew = trained(plan._replace(fresh=np.array([True, True])))[0]  # an optimiser that begins again has no moments
        assert not np.allclose(anew["gamma"][1], found["gamma"][1], rtol=1e-4)
        for name in ("gamma", "theta"):
            changed = np.asarray(found[name] != getattr(solver, name))
            np.testing.assert_array_equal(changed, [not alone, True, False])
        assert np.all(np.asarray(found["weight"] != solver.weight))  # of all layers


def test_a_drifted_dictionary_keeps_the_scalars_and_takes_the_weight_asked_for():
    solver = ALISTA(D, num_layers=3, gamma=[0.7, 0.8, 0.9])
    drifted = perturb(jax.random.key(3), D, 0.05)
    np.testing.assert_allclose(jnp.linalg.norm(drifted, axis=0), 1, atol=1e-5)
    fresh, stale = solver.at(drifted), solver.at(drifted, "stale")
    np.testing.assert_allclose(fresh.weight.matrix, analytic_weight(drifted), atol=1e-4)
    np.testing.assert_array_equal(stale.weight.matrix, solver.weight.matrix)
    for other in (fresh, stale):
        np.testing.assert_array_equal(dense_matrix(other.dictionary), drifted)
        np.testing.assert_array_equal(other.gamma, solver.gamma)
    np.testing.assert_array_equal(dense_matrix(solver.at(drifted, decoder="nominal").dictionary), D)
    encoded = solver.at(drifted, UnrolledCoherence(D))
    np.testing.assert_allclose(encoded.weight.matrix, UnrolledCoherence(D)(drifted))


def test_the_encoder_is_gradient_descent_until_it_is_trained():
    weight = D
    for _ in range(4):
        weight = weight - 0.1 * D @ (D.T @ weight - jnp.eye(20))
    np.testing.assert_allclose(UnrolledCoherence(D)(D), weight / jnp.sum(weight * D, axis=0), atol=1e-5)
    encoder, losses = fit_encoder(KEY, UnrolledCoherence(D), D, 0.02, optimiser=optax.adam(1e-3), num_steps=60, batch=4)
    drifted = perturb(jax.random.key(4), D, 0.02)
    assert coherence_loss(drifted, encoder(drifted)) < coherence_loss(drifted, UnrolledCoherence(D)(drifted))
    assert losses.shape == (60,)
    # A mean over drifts: before the first step about that of any one dictionary, here within a tenth.
    np.testing.assert_allclose(losses[0], coherence_loss(D, UnrolledCoherence(D)(D)), rtol=0.1)


def test_a_round_of_learning_by_hand():
    """Five steps of FISTA, least squares, unit columns; columns that no code uses become random directions."""
    with jax.enable_x64(True):
        signals = np.random.default_rng(0).normal(size=(12, 4))
        settings = {"num_rounds": 1, "num_steps": 5}
        learn = jax.jit(lambda key, penalty: learn_dictionary(key, signals, 6, penalty=penalty, **settings))
        found, unused = learn(KEY, 0.3), learn(KEY, 1e6)
        choice_key, noise_key, _, round_key = jax.random.split(KEY, 4)
        chosen, noise = jax.random.randint(choice_key, (6,), 0, 12), jax.random.normal(noise_key, (4, 6))
        spare = np.asarray(jax.random.normal(jax.random.split(round_key, 1)[0], (4, 6)))
    power = np.sqrt(np.mean(signals**2))
    start = signals[np.asarray(chosen)].T + 0.1 * power * np.asarray(noise)
    start /= np.linalg.norm(start, axis=0)
    np.testing.assert_allclose(found, learned_round(signals, start, 0.3, 5), atol=1e-9)
    np.testing.assert_allclose(unused, spare / np.linalg.norm(spare, axis=0), atol=1e-9)


@pytest.mark.slow
def test_a_planted_dictionary_is_found_again():
    codes = BernoulliGaussian(16, density=0.1)(jax.random.key(5), 1500)
    planted = jnp.asarray(random_dictionary(12, 16, seed=2), jnp.float32)
    found = learn_dictionary(KEY, codes @ planted.T, 16, num_rounds=40, penalty=0.1)
    likeness = np.abs(np.asarray(found.T @ planted)).max(axis=0)
    assert np.mean(likeness > 0.95) > 0.5  # of random ones none is


@pytest.mark.slow
def test_scikit_learn_wrapper_recovers_planted_codes():
    codes = BernoulliGaussian(20, density=0.1)(jax.random.key(6), 200)
    atoms = 3 * np.asarray(D).T
    coder = SparseCoder(atoms, num_layers=6, random_state=0).fit(np.asarray(codes) @ atoms)
    found = coder.transform(np.asarray(codes) @ atoms)
    assert 10 * np.log10(np.sum((found - codes) ** 2) / np.sum(codes**2)) < -8
    np.testing.assert_allclose(coder.inverse_transform(np.asarray(codes)), codes @ atoms, atol=1e-5)
    assert len(coder.get_feature_names_out()) == 20


def test_the_wrapper_scales_signals_and_takes_numbers_of_any_kind():
    """Signals are divided by the size their codes are trained for, whose square float32 need not hold."""
    signals = np.random.default_rng(0).integers(-4, 5, size=(6, 10)).astype(float)
    make = lambda: SparseCoder(3 * np.asarray(D).T, num_layers=2, num_steps=1, batch=2, random_state=0)  # noqa: E731
    coder, huge = make().fit(signals), make().fit(signals * 2.0**80)
    size = np.sqrt(np.mean(np.sum(signals**2, axis=1)) / (0.1 * 20))
    assert coder.size_ == pytest.approx(size, rel=1e-12)
    found = coder.transform(signals)
    codes = np.asarray(eqx.filter_jit(lambda solver, b: solver(b))(coder.solver_, np.float32(signals / size)))
    assert np.any(codes != 0)
    np.testing.assert_allclose(found, codes * size / 3, rtol=1e-5, atol=1e-6)
    for same in (signals.tolist(), signals.astype(np.float16), signals.astype(int)):
        np.testing.assert_array_equal(coder.transform(same), found)
    np.testing.assert_allclose(huge.transform(signals * 2.0**80) / 2.0**80, found, rtol=1e-6)


def test_sizes_units_and_kinds_of_numbers_are_the_wrappers_own(monkeypatch):
    """The same with a network that multiplies by its dictionary, so that nothing is trained or compiled."""
    monkeypatch.setattr("laureate.recovery.estimator.ALISTA", lambda unit, weight, layers, support: np.asarray(unit))
    monkeypatch.setattr("laureate.recovery.estimator._trained", lambda key, solver, *settings: solver)
    monkeypatch.setattr("laureate.recovery.estimator._codes", lambda unit, signals: np.asarray(signals) @ unit)
    signals = np.random.default_rng(0).integers(-4, 5, size=(6, 10)).astype(float)
    make = lambda: SparseCoder(3 * np.asarray(D).T, random_state=0)  # noqa: E731
    coder, huge = make().fit(signals), make().fit(signals * 2.0**80)
    size = np.sqrt(np.mean(np.sum(signals**2, axis=1)) / (0.1 * 20))
    assert coder.size_ == pytest.approx(size, rel=1e-12)
    found = coder.transform(signals)
    np.testing.assert_allclose(found, signals @ np.asarray(D) / 3, rtol=1e-4, atol=1e-5)
    for same in (signals.tolist(), signals.astype(np.float16), signals.astype(int)):
        np.testing.assert_array_equal(coder.transform(same), found)
    np.testing.assert_allclose(huge.transform(signals * 2.0**80) / 2.0**80, found, rtol=1e-6)


@pytest.mark.slow
def test_scikit_learns_contract():
    from sklearn.exceptions import SkipTestWarning
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # of checks for what is not installed
        check_estimator(SparseCoder(num_layers=2, num_steps=3, random_state=0))
