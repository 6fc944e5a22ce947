"""The analytic weight against what is known of it exactly: projector, invariances, bounds, other solvers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dictionaries import random_dictionary
from scipy.sparse.linalg import aslinearoperator

from laureate.recovery import (
    ALISTA,
    OperatorWeight,
    analytic_weight,
    coherence,
    coherence_loss,
    max_sparsity,
)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def cross(matrix):
    return np.asarray(analytic_weight(jnp.asarray(matrix))).T @ matrix


def test_diagonal_is_one_and_the_rest_is_the_projector_by_its_diagonal():
    matrix = random_dictionary()
    projector = matrix.T @ np.linalg.inv(matrix @ matrix.T) @ matrix
    np.testing.assert_allclose(np.trace(projector), 6, rtol=1e-12)  # its rank
    np.testing.assert_allclose(cross(matrix), projector / np.diag(projector)[:, None], atol=1e-12)
    np.testing.assert_allclose(np.diag(cross(matrix)), 1, atol=1e-13)


def test_lagrange_conditions_hold_and_nobody_feasible_is_better():
    matrix = random_dictionary()
    weight = np.asarray(analytic_weight(jnp.asarray(matrix)))
    slope = matrix @ matrix.T @ weight  # of ½‖WᵀD‖²: a multiple of d_m for every column
    multiples = np.sum(slope * matrix, axis=0)
    np.testing.assert_allclose(slope, matrix * multiples, atol=1e-12)
    draw = np.random.default_rng(1)
    for _ in range(20):
        other = weight + 0.1 * draw.normal(size=weight.shape)
        other /= np.sum(other * matrix, axis=0)
        assert np.sum((other.T @ matrix) ** 2) > np.sum((weight.T @ matrix) ** 2)


def test_an_invertible_change_of_the_signals_changes_nothing():
    matrix = random_dictionary()
    change = np.random.default_rng(2).normal(size=(6, 6))
    np.testing.assert_allclose(cross(change @ matrix), cross(matrix), atol=1e-9)


def test_columns_permuted_and_flipped_permute_and_flip_the_weight():
    matrix = random_dictionary()
    order, signs = np.random.default_rng(3).permutation(10), np.random.default_rng(4).choice([-1.0, 1.0], 10)
    weight = np.asarray(analytic_weight(jnp.asarray(matrix)))
    changed = np.asarray(analytic_weight(jnp.asarray(matrix[:, order] * signs)))
    np.testing.assert_allclose(changed, weight[:, order] * signs, atol=1e-12)


def test_an_orthonormal_dictionary_is_its_own_weight_and_one_layer_recovers():
    matrix, _ = np.linalg.qr(random_dictionary(5, 5))
    with pytest.warns(UserWarning, match="not overcomplete"):
        weight = analytic_weight(jnp.asarray(matrix))
    np.testing.assert_allclose(weight, matrix, atol=1e-12)
    x = np.random.default_rng(5).normal(size=(3, 5))
    solver = ALISTA(jnp.asarray(matrix), weight, num_layers=1, gamma=1.0, theta=0.0, support=None)
    np.testing.assert_allclose(solver(jnp.asarray(x @ matrix.T)), x, atol=1e-12)


def test_more_rows_than_columns_give_the_dual_basis():
    matrix = random_dictionary(8, 5)
    with pytest.warns(UserWarning, match="not overcomplete"):
        weight = np.asarray(analytic_weight(jnp.asarray(matrix)))
    np.testing.assert_allclose(weight.T @ matrix, np.eye(5), atol=1e-12)


def test_welch_bound_and_the_ladder_of_coherences():
    rows, columns = 12, 30
    matrix = random_dictionary(rows, columns)
    frobenius = analytic_weight(jnp.asarray(matrix))
    minimax = analytic_weight(jnp.asarray(matrix), "minimax")
    own, analytic, least = (float(coherence(matrix, w)) for w in (None, frobenius, minimax))
    assert own >= np.sqrt((columns - rows) / (rows * (columns - 1)))
    assert least < analytic < own
    np.testing.assert_allclose(np.sum(np.asarray(minimax) * matrix, axis=0), 1, atol=1e-9)
    assert float(coherence_loss(matrix, frobenius)) < float(coherence_loss(matrix, minimax))


def test_the_minimax_weight_is_the_best_of_all_directions():
    """In the plane w_m is any direction over its product with d_m: the least of its largest product with the others."""
    matrix = random_dictionary(2, 4)
    weight = np.asarray(analytic_weight(jnp.asarray(matrix), "minimax"))
    assert weight.dtype == np.float64
    np.testing.assert_allclose(np.sum(weight * matrix, axis=0), 1, rtol=1e-12)
    angles = np.linspace(0, np.pi, 20001)
    products = matrix.T @ np.stack([np.cos(angles), np.sin(angles)])
    for m in range(4):
        others = np.abs(np.delete(products, m, axis=0)).max(0)
        least = (others / np.maximum(np.abs(products[m]), 1e-9)).min()
        found = np.abs(np.delete(weight[:, m] @ matrix, m)).max()
        assert found <= least + 1e-12
        assert found == pytest.approx(least, rel=1e-3)


def test_projected_gradients_reach_the_closed_form():
    """For columns of any length."""
    matrix = jnp.asarray(random_dictionary(20, 40) * np.linspace(0.7, 1.3, 40))
    closed, iterated = analytic_weight(matrix), analytic_weight(matrix, "iterative", num_steps=3000)
    np.testing.assert_allclose(iterated, closed, atol=1e-8)


def test_a_ridge_keeps_the_constraint_and_tends_to_the_dictionary():
    matrix = jnp.asarray(random_dictionary())
    small, large = analytic_weight(matrix, ridge=1e-9), analytic_weight(matrix, ridge=1e9)
    np.testing.assert_allclose(small, analytic_weight(matrix), atol=1e-7)
    np.testing.assert_allclose(large, matrix, atol=1e-7)  # G → I/ridge, so w_m = d_m
    np.testing.assert_allclose(jnp.sum(analytic_weight(matrix, ridge=0.3) * matrix, axis=0), 1, atol=1e-12)


def test_the_edge_of_what_counts_as_singular():
    """DDᵀ with a condition number a little below 1e12 is solved with, and a little above refused; D alone has 1e6, of
    which single precision would know three digits."""
    for seed in range(4):
        u, _, vt = np.linalg.svd(random_dictionary(3, 5, seed), full_matrices=False)
        below, above = ((u * [1, 1e-3, 1e-6 / np.sqrt(share)]) @ vt for share in (0.9999, 1.0001))
        assert np.isfinite(analytic_weight(jnp.asarray(below))).all()
        with pytest.raises(np.linalg.LinAlgError, match="rank 2 < 3"):
            analytic_weight(jnp.asarray(above))


def test_gradients_pass_through_the_dictionary():
    matrix = jnp.asarray(random_dictionary(4, 6))
    direction = jnp.asarray(np.random.default_rng(6).normal(size=(4, 6)))
    value = lambda t: coherence_loss(matrix + t * direction, analytic_weight(matrix + t * direction))  # noqa: E731
    slope = jax.grad(value)(0.0)
    np.testing.assert_allclose(slope, (value(1e-6) - value(-1e-6)) / 2e-6, rtol=1e-5)


class Mine:
    """A dictionary of one's own, of which only two products are known."""

    def __init__(self, matrix):
        self._matrix, self.shape = jnp.asarray(matrix), matrix.shape

    def matvec(self, x):
        return self._matrix @ x

    def rmatvec(self, r):
        return self._matrix.T @ r


def test_operators_of_three_kinds_give_the_same_as_the_matrix():
    import lineax

    matrix = random_dictionary()
    b = jnp.asarray(np.random.default_rng(7).normal(size=(2, 3, 6)))
    wanted = ALISTA(jnp.asarray(matrix), num_layers=4)(b)
    for operator in (Mine(matrix), lineax.MatrixLinearOperator(jnp.asarray(matrix)), aslinearoperator(matrix)):
        solver = ALISTA(operator, num_layers=4)
        np.testing.assert_allclose(solver(b), wanted, atol=1e-10)
    weight = analytic_weight(Mine(matrix))
    assert isinstance(weight, OperatorWeight)
    np.testing.assert_allclose(weight.rmatvec(b), b @ np.asarray(analytic_weight(jnp.asarray(matrix))), atol=1e-12)


def test_the_certified_sparsity_by_hand():
    # μ = 0.6: s < (1 + 1/0.6)/2 = 1.33; μ = 0.2: s < 3, so 2; nothing in common: all.
    assert max_sparsity(jnp.array([[1.0, 0.6], [0.0, 0.8]])) == 1
    angle = np.sqrt(1 - 0.2**2)
    assert max_sparsity(jnp.array([[1.0, 0.2, 0.0], [0.0, angle, 0.0], [0.0, 0.0, 1.0]])) == 2
    assert max_sparsity(jnp.eye(3)) == 3
