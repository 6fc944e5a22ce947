"""Settings take effect: noise, stages and rates of training, the ridge and the scaling of operators, sizes of drift."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optax
import pytest
from dictionaries import random_dictionary
from scipy.sparse.linalg import LinearOperator

from laureate.recovery import (
    ALISTA,
    UnrolledCoherence,
    analytic_weight,
    as_dictionary,
    dense_matrix,
    estimator,
    fit,
    fit_encoder,
    robust,
)
from laureate.testing import KeyRecorder

call = eqx.filter_jit(lambda solver, b: solver(b))  # outside it every call compiles its loop
KEY = jax.random.key(0)
D = jnp.asarray(random_dictionary(8, 14), jnp.float32)
CODE = jnp.zeros((1, 14)).at[0, 3].set(1.5).at[0, 9].set(-0.7)  # one code: whichever is drawn, it is this one


def counting() -> optax.GradientTransformation:
    """Its n-th update since it began is n/1000, whatever the gradient."""

    def update(gradients, count, parameters=None):
        del parameters
        return jax.tree.map(lambda g: jnp.full_like(g, 0.001) * (count + 1), gradients), count + 1

    return optax.GradientTransformation(lambda parameters: jnp.zeros(()), update)


def test_greedy_stages_begin_the_optimiser_anew_and_scale_what_it_says():
    solver = ALISTA(D, num_layers=1, gamma=1.0)
    trained, _ = fit(KEY, solver, CODE, optimiser=counting(), num_steps=2, mode="greedy")
    # Three stages of steps 1 and 2, with the factors 1, 0.2 and 0.02.
    np.testing.assert_allclose(trained.gamma, 1 + 0.001 * 3 * (1 + 0.2 + 0.02), rtol=1e-6)


def test_greedy_losses_are_those_of_the_layer_in_training():
    solver = ALISTA(D, num_layers=2)
    _, losses = fit(KEY, solver, CODE, optimiser=optax.sgd(0.0), num_steps=1, batch=3, mode="greedy")
    after = jnp.sum((solver.trace(CODE @ D.T) - CODE) ** 2, axis=(1, 2))
    assert abs(float(after[0] - after[1])) > 0.1
    np.testing.assert_allclose(losses, jnp.repeat(after, 3), rtol=1e-4)


def test_a_normalised_operator_is_the_normalised_matrix():
    matrix = D * jnp.linspace(0.5, 3.0, 14)
    b = CODE @ matrix.T
    wanted = ALISTA(matrix, num_layers=4, normalise=True)
    found = ALISTA(lineax.MatrixLinearOperator(matrix), num_layers=4, normalise=True)
    np.testing.assert_allclose(call(found, b), call(wanted, b), atol=1e-4)
    residual = jnp.asarray(np.random.default_rng(0).normal(size=8), jnp.float32)
    np.testing.assert_allclose(found.dictionary.rmatvec(residual), wanted.dictionary.rmatvec(residual), atol=1e-5)


@pytest.mark.parametrize("wrap", [lambda matrix: matrix, lineax.MatrixLinearOperator])
@pytest.mark.parametrize("decoder", ["perturbed", "nominal"])
def test_a_normalised_solver_at_its_own_dictionary_is_itself(wrap, decoder):
    matrix = D * jnp.linspace(0.5, 3.0, 14)
    solver = ALISTA(wrap(matrix), num_layers=4, normalise=True)
    b = CODE @ matrix.T
    for weight in ("closed_form", "stale"):
        again = solver.at(wrap(matrix), weight, decoder)
        np.testing.assert_allclose(call(again, b), call(solver, b), atol=1e-4)
        np.testing.assert_allclose(again.synthesise(CODE), b, atol=1e-5)


def test_a_normalised_solver_gives_codes_in_the_units_of_the_new_dictionary():
    solver = ALISTA(D * 2.0, num_layers=4, normalise=True)
    scales, b = jnp.linspace(0.5, 3.0, 14), CODE @ D.T
    for weight in ("closed_form", "stale", analytic_weight):  # the function sees unit columns, as the others do
        np.testing.assert_allclose(call(solver.at(D * scales, weight), b), 2 * call(solver, b) / scales, atol=1e-4)
    seen = []
    solver.at(D * scales, lambda given: seen.append(given) or given)
    np.testing.assert_allclose(jnp.linalg.norm(seen[0], axis=0), 1, atol=1e-5)


class Doubled(LinearOperator):
    """A user's own subclass of scipy's operator: NumPy inside, in a module that is not scipy's."""

    def __init__(self):
        super().__init__(np.float64, D.shape)

    def _matvec(self, x):
        return np.asarray(2 * D) @ np.asarray(x)

    def _rmatvec(self, x):
        return np.asarray(2 * D).T @ np.asarray(x)


def test_a_subclass_of_scipys_operator_becomes_a_matrix():
    np.testing.assert_allclose(dense_matrix(as_dictionary(Doubled())), 2 * D, atol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.int32])
def test_a_dictionary_of_short_numbers_is_computed_with_in_single_precision(dtype):
    matrix = (3 * D).astype(dtype)
    solver = ALISTA(matrix, num_layers=2, normalise=True)
    assert jax.eval_shape(solver, CODE @ matrix.T.astype(jnp.float32)).dtype == jnp.float32
    np.testing.assert_allclose(solver.synthesise(CODE), CODE @ matrix.T.astype(jnp.float32), atol=1e-5)


@pytest.mark.filterwarnings("ignore:D is not overcomplete")
@pytest.mark.parametrize("columns", [5, 8])
def test_the_ridge_counts_where_there_are_as_many_rows_as_columns(columns):
    matrix, ridge = np.asarray(D[:, :columns], np.float64), 0.3
    solved = np.linalg.solve(matrix @ matrix.T + ridge * np.eye(8), matrix)
    wanted = solved / np.sum(solved * matrix, axis=0)
    np.testing.assert_allclose(analytic_weight(D[:, :columns], ridge=ridge), wanted, atol=1e-5)
    np.testing.assert_allclose(jax.jit(lambda r: analytic_weight(D[:, :columns], ridge=r))(ridge), wanted, atol=1e-5)
    assert np.abs(np.asarray(analytic_weight(D[:, :columns])) - wanted).max() > 1e-2


def test_the_ridge_of_an_operator_is_that_of_the_matrix():
    b = jnp.asarray(np.random.default_rng(1).normal(size=(3, 8)), jnp.float32)
    found = analytic_weight(lineax.MatrixLinearOperator(D), ridge=0.5).rmatvec(b)
    np.testing.assert_allclose(found, b @ analytic_weight(D, ridge=0.5), atol=1e-4)
    assert float(jnp.abs(found - b @ analytic_weight(D)).max()) > 1e-2


def test_an_encoder_uses_no_key_twice():
    """Nor that of a step for the look at the largest drift before them all."""
    with KeyRecorder() as recorder:
        fit_encoder(KEY, UnrolledCoherence(D), D, 0.1, optimiser=optax.sgd(0.01), num_steps=2, batch=2)
        assert recorder.reused() == []


def test_a_coder_learns_its_dictionary_and_trains_with_keys_of_their_own(monkeypatch):
    learned = lambda key, signals, atoms: jax.random.normal(key, (signals.shape[1], atoms))  # noqa: E731
    monkeypatch.setattr(estimator, "_learned", learned)
    monkeypatch.setattr(estimator, "_trained", lambda key, *given: jax.random.gumbel(key))
    with KeyRecorder() as recorder:
        estimator.SparseCoder(n_components=4, random_state=0).fit(np.eye(3))
        assert recorder.reused() == []
        assert recorder.uses


def test_the_encoders_weight_is_feasible():
    encoder, _ = fit_encoder(KEY, UnrolledCoherence(D), D, 0.1, optimiser=optax.adam(0.01), num_steps=5, batch=4)
    moved = robust.perturb(KEY, D, 0.1)
    np.testing.assert_allclose(jnp.sum(encoder(moved) * moved, axis=0), 1, atol=1e-5)
