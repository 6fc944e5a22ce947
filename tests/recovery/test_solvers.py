"""Solvers against hand computations, each other, the lasso's own conditions, and what must not change a result."""

from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dictionaries import random_dictionary, sparse_codes

from laureate.recovery import (
    ALISTA,
    FISTA,
    ISTA,
    LISTA,
    LISTACP,
    HyperLISTA,
    SupportSchedule,
    TiLISTA,
    add_noise,
    analytic_weight,
    certified_schedule,
    max_sparsity,
    nmse_db,
    select_and_shrink,
    soft_threshold,
)

SOLVERS = {"ALISTA": ALISTA, "FISTA": FISTA, "HyperLISTA": HyperLISTA, "ISTA": ISTA, "LISTA": LISTA}
SOLVERS |= {"LISTACP": LISTACP, "TiLISTA": TiLISTA}


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


D = random_dictionary(8, 14)
B = sparse_codes(5, 14, entries=2) @ D.T


# One program for solvers that differ in numbers only; outside it every call compiles its loop.
call = eqx.filter_jit(lambda solver, b, x0=None: solver(b, x0=x0))
trace_of = eqx.filter_jit(lambda solver, b: solver.trace(b))


def soft(v, theta):
    return np.sign(v) * np.maximum(np.abs(v) - theta, 0)


def test_the_threshold_minimises_its_objective():
    v = np.array([-2.0, -0.3, 0.1, 0.9])
    found = np.asarray(soft_threshold(jnp.asarray(v), 0.5))
    grid = np.linspace(-3, 3, 60001)
    for entry, value in zip(v, found, strict=True):
        best = grid[np.argmin(0.5 * (grid - entry) ** 2 + 0.5 * np.abs(grid))]
        assert abs(best - value) < 2e-4


def test_two_layers_by_hand():
    weight = np.asarray(analytic_weight(jnp.asarray(D)))
    gamma, theta = np.array([0.9, 1.1]), np.array([0.2, 0.05])
    x = np.zeros((5, 14))
    for g, t in zip(gamma, theta, strict=True):
        x = soft(x - g * (x @ D.T - B) @ weight, t)
    solver = ALISTA(jnp.asarray(D), num_layers=2, gamma=gamma, theta=theta, support=None)
    np.testing.assert_allclose(call(solver, B), x, atol=1e-12)
    np.testing.assert_allclose(trace_of(solver, B)[-1], x, atol=1e-12)


def test_the_dictionary_as_weight_is_ista_to_the_bit():
    constant, penalty = 4.0, 0.1
    ista = ISTA(jnp.asarray(D), num_layers=6, penalty=penalty, lipschitz_constant=constant)
    solver = ALISTA(D, D, num_layers=6, gamma=1 / constant, theta=penalty / constant, support=None)
    np.testing.assert_array_equal(solver(jnp.asarray(B)), ista(jnp.asarray(B)))


def test_untrained_networks_are_ista_with_their_first_threshold():
    ista = call(ISTA(jnp.asarray(D), num_layers=3, penalty=0.4), B)
    for network in (
        LISTA(D, num_layers=3),
        LISTACP(D, num_layers=3, support=None),
        TiLISTA(D, num_layers=3, support=None),
    ):
        np.testing.assert_allclose(call(network, B), ista, atol=1e-12)
    analytic = call(ALISTA(D, num_layers=3, support=None), B)
    for network in (LISTACP, TiLISTA):
        found = call(network(D, num_layers=3, support=None, start="analytic"), B)
        np.testing.assert_allclose(found, analytic, atol=1e-12)


def test_each_layer_uses_its_own_parameters():
    first, second = np.random.default_rng(0).normal(size=(2, 8, 14))
    solver = eqx.tree_at(lambda s: s.weight, LISTACP(D, num_layers=2, support=None), jnp.stack([first, second]))
    theta = float(solver.theta[0])
    x = soft(B @ first, theta)
    np.testing.assert_allclose(call(solver, B), soft(x - (x @ D.T - B) @ second, theta), atol=1e-12)


@pytest.mark.parametrize("method", [ISTA, FISTA])
def test_the_lasso_is_solved(method):
    """Its own conditions: |Dᵀ(b − Dx)| <= λ, with equality and the sign of x where x is not zero."""
    x = np.asarray(call(method(jnp.asarray(D), num_layers=3000, penalty=0.1), B))
    pull = (B - x @ D.T) @ D
    assert np.all(np.abs(pull) <= 0.1 + 1e-7)
    np.testing.assert_allclose(pull[x != 0], 0.1 * np.sign(x[x != 0]), atol=1e-6)


def test_fista_agrees_with_scikit_learn_and_is_faster_than_ista():
    from sklearn.linear_model import Lasso

    wanted = Lasso(alpha=0.1 / 8, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(D, B[0]).coef_
    trace = {m: np.asarray(trace_of(m(jnp.asarray(D), num_layers=400, penalty=0.1), B[0])) for m in (ISTA, FISTA)}
    np.testing.assert_allclose(trace[FISTA][-1], wanted, atol=1e-6)
    error = {m: np.linalg.norm(trace[m][60] - wanted) for m in trace}
    assert error[FISTA] < 0.5 * error[ISTA]


def test_fista_by_hand():
    """Two iterations alone would not show a wrong momentum: t is 1, 1.618, 2.194."""
    step = float(ISTA(D, num_layers=1).step)
    x = previous = np.zeros(14)
    before, t = 1.0, 1.0
    for _ in range(4):
        y = x + (before - 1) / t * (x - previous)
        x, previous = soft(y - step * (y @ D.T - B[0]) @ D, 0.1 * step), x
        before, t = t, (1 + np.sqrt(1 + 4 * t**2)) / 2
    np.testing.assert_allclose(call(FISTA(D, num_layers=4, penalty=0.1), B[0]), x, atol=1e-12)


def test_hyper_lista_by_hand():
    c = (0.1, 0.3, 1.5)  # a low threshold, so that momentum counts several entries
    solver = HyperLISTA(D, num_layers=3, c=c)
    weight = np.asarray(analytic_weight(jnp.asarray(D)))
    mu, inverse = np.max(np.abs(weight.T @ D - np.eye(14))), np.linalg.pinv(D)
    x = previous = np.zeros(14)
    for _ in range(3):
        residual = D @ x - B[0]
        error = np.abs(inverse @ residual).sum()
        v = x - weight.T @ residual + c[1] * mu * np.count_nonzero(x) * (x - previous)
        theta = c[0] * mu * error
        count = int(np.clip(c[2] * np.log(np.abs(inverse @ B[0]).sum() / error), 0, 14))
        chosen = np.argsort(-np.abs(v))[:count]
        new = soft(v, theta)
        new[chosen] = np.where(np.abs(v[chosen]) > theta, v[chosen], new[chosen])
        x, previous = new, x
    np.testing.assert_allclose(solver(jnp.asarray(B[0])), x, atol=1e-10)


def test_selected_entries_are_the_largest_above_the_threshold():
    v = jnp.array([[0.3, -3.0, 2.0, 0.0, 0.0], [0.1, 0.2, -0.3, 0.0, 0.0]])
    found = select_and_shrink(v, 0.5, 2, 3)
    np.testing.assert_allclose(found, [[0, -3, 2, 0, 0], [0, 0, 0, 0, 0]])
    np.testing.assert_allclose(select_and_shrink(v, 0.5, 1, 3), [[0, -3, 1.5, 0, 0], [0, 0, 0, 0, 0]])
    np.testing.assert_allclose(select_and_shrink(v, 0.0, 5, 5), v)
    np.testing.assert_array_equal(select_and_shrink(v, 0.5, 0, 3), soft_threshold(v, 0.5))


COUNTED = {name: (name, 13) for name in ("float32", "float64", "float16", "bfloat16")}
COUNTED |= {"bfloat16 of many": ("bfloat16", 900)}


@pytest.mark.parametrize(("dtype", "entries"), COUNTED.values(), ids=COUNTED)
def test_exactly_the_largest_pass_for_every_count_and_precision(dtype, entries):
    """Against a sort, with ties, zeros, one huge entry, a count a code, and counts above the most there can be.

    Of so many entries too that a short float cannot count them.
    """
    rng = np.random.default_rng(0)
    v = jnp.asarray(rng.normal(size=(15, 2, entries)) * 10.0 ** rng.integers(-4, 4, size=(15, 2, entries)), dtype)
    v = v.at[:, 0, :4].set(0).at[:, 1, 5:8].set(1.5).at[3, 1, 2].set(float(jnp.finfo(dtype).max))
    most, theta = entries - 1, 0.25
    numbers = np.arange(15) * (most + 2) // 14
    found = jax.jit(select_and_shrink, static_argnums=3)(v, theta, numbers[:, None], most)
    size = np.abs(np.asarray(v, np.float64))
    ordered = np.sort(size, axis=-1)[..., ::-1]
    edge = np.stack(
        [row[:, min(c, most) - 1] if c else np.full(2, np.inf) for row, c in zip(ordered, numbers, strict=True)]
    )
    selected = (size >= edge[..., None]) & (size > theta)
    np.testing.assert_array_equal(found, np.where(selected, v, soft_threshold(v, theta)))


def test_the_slope_in_the_threshold_is_that_of_the_shrunk_entries():
    v = jnp.array([0.3, -3.0, 2.0, -1.0])
    slope = jax.jacobian(lambda theta: select_and_shrink(v, theta, 1, 1))(0.5)
    np.testing.assert_allclose(slope, [0, 0, -1, 1])  # below; selected; −sign(v) of the shrunk
    passed = jax.jacobian(lambda v: select_and_shrink(v, 0.5, 1, 1))(v)
    np.testing.assert_allclose(passed, np.diag([0.0, 1, 1, 1]))


@pytest.mark.parametrize("size", [7, 20, 250, 500, 1001])
def test_a_schedule_in_percent(size):
    """min(p (k + 1), p_max) % of the size, to the nearest whole number, in exact fractions."""
    np.testing.assert_array_equal(SupportSchedule(1.2, 13).counts(16, 500)[[0, 1, 2, 10, 15]], [6, 12, 18, 65, 65])
    for p, most in (("0", "0"), ("0.7", "100"), ("1.2", "13"), ("3.3", "9.9"), ("10", "25"), ("35", "100")):
        shares = [min(Fraction(p) * k, Fraction(most)) * size / 100 for k in range(1, 17)]
        found = SupportSchedule(float(p), float(most)).counts(16, size)
        assert all(abs(count - share) <= Fraction(1, 2) for count, share in zip(found.tolist(), shares, strict=True))
        assert found.dtype == np.int32


@eqx.filter_jit
def every_way(solver, b):
    """One program for all ways to call a solver."""
    return solver(b), jax.vmap(solver)(b), solver.trace(b)[-1], solver(b[:, None])[:, 0], solver.solve(b)


@pytest.mark.parametrize("name", SOLVERS)
def test_jit_vmap_trace_and_batches_agree_and_nothing_measured_gives_nothing(name):
    solver = SOLVERS[name](D, num_layers=3)
    b = jnp.asarray(B)
    batch = solver(b)
    *found, (x, info) = every_way(solver, b)
    for other in found:
        np.testing.assert_allclose(other, batch, atol=1e-12)
    np.testing.assert_allclose(x, batch, atol=1e-12)
    np.testing.assert_allclose(info.residual, np.linalg.norm(np.asarray(x) @ D.T - B, axis=1), atol=1e-12)
    assert int(info.cost) == (3 * 3 + 1 if name == "HyperLISTA" else 3 * 2)
    assert not np.any(info.status)
    np.testing.assert_array_equal(every_way(solver, jnp.zeros_like(b))[0], np.zeros((5, 14)))
    narrow = b.astype(jnp.float32)
    assert jax.eval_shape(solver, narrow).dtype == jnp.float64  # the solver's precision is the wider
    single = eqx.filter_jit(SOLVERS[name](D.astype(np.float32), num_layers=3))(narrow)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, batch, atol=1e-4)


def test_signals_and_thresholds_scaled_scale_the_codes():
    theta = jnp.array([0.2, 0.1, 0.05])
    one, three = (call(ALISTA(D, num_layers=3, theta=factor * theta), factor * B) for factor in (1, 3))
    np.testing.assert_allclose(three, 3 * one, atol=1e-12)


def test_a_start_of_ones_own_continues_where_the_first_half_ended():
    gamma, theta = jnp.linspace(0.8, 1, 4), jnp.linspace(0.2, 0.1, 4)
    whole = ALISTA(D, num_layers=4, gamma=gamma, theta=theta, support=None)
    halves = [ALISTA(D, num_layers=2, gamma=gamma[i : i + 2], theta=theta[i : i + 2], support=None) for i in (0, 2)]
    np.testing.assert_allclose(call(halves[1], B, call(halves[0], B)), call(whole, B), atol=1e-12)


def test_unnormalised_columns_give_codes_in_their_own_units():
    sizes = np.linspace(0.5, 3, 14)
    with pytest.warns(UserWarning, match="normalise=True"):
        ALISTA(D * sizes, num_layers=2)
    plain, scaled = ALISTA(D, num_layers=3), ALISTA(D * sizes, num_layers=3, normalise=True)
    start = np.asarray(call(plain, B))
    np.testing.assert_allclose(call(scaled, B), start / sizes, atol=1e-12)
    np.testing.assert_allclose(call(scaled, B, start / sizes), np.asarray(call(plain, B, start)) / sizes, atol=1e-12)
    np.testing.assert_allclose(scaled.synthesise(start / sizes), plain.synthesise(start), atol=1e-12)


def test_a_weight_of_ones_own_starts_with_a_safe_step():
    solver = ALISTA(D, D, num_layers=50, support=None)
    assert float(solver.gamma[0]) < 1 / np.linalg.norm(D, 2) ** 2
    solve = eqx.filter_jit(lambda solver: solver.solve(jnp.asarray(B))[1].status)
    assert np.all(np.asarray(solve(solver)) == 0)
    wild = ALISTA(D, D, num_layers=400, gamma=20.0, theta=0.0)
    assert np.all(np.asarray(solve(wild)) != 0)  # a failure is a value


def test_thresholds_for_every_coordinate():
    theta = np.tile(np.linspace(0.01, 0.3, 14), (2, 1))
    weight = np.asarray(analytic_weight(jnp.asarray(D)))
    x = soft(B @ weight, theta[0])
    x = soft(x - (x @ D.T - B) @ weight, theta[1])
    solver = ALISTA(D, num_layers=2, theta=theta, threshold="coordinate", support=None)
    np.testing.assert_allclose(call(solver, B), x, atol=1e-12)
    assert solver.num_parameters == 2 + 28


def test_theorem_1_holds_and_fails_without_its_threshold():
    """A dictionary with low coherence, so that the theorem covers two entries: no false entry, no error above."""
    matrix = random_dictionary(100, 120, seed=3)
    weight = analytic_weight(jnp.asarray(matrix))
    assert max_sparsity(matrix, weight) >= 2
    codes = sparse_codes(200, 120, entries=2, seed=4)
    schedule = certified_schedule(matrix, weight, sparsity=2, bound=1.0, num_layers=30)
    solver = ALISTA(matrix, weight, num_layers=30, gamma=schedule.gamma, theta=schedule.theta, support=None)
    trace = np.asarray(trace_of(solver, codes @ matrix.T))
    errors = np.abs(trace - codes).sum(-1)
    assert not np.any((trace != 0) & (codes == 0))
    assert np.all(errors <= np.asarray(schedule.error_bound)[1:, None] * (1 + 1e-9))
    assert errors[-1].max() < 1e-2 * errors[0].max()
    eager = ALISTA(matrix, weight, num_layers=30, gamma=schedule.gamma, theta=0.05 * schedule.theta, support=None)
    assert np.any((np.asarray(trace_of(eager, codes @ matrix.T)) != 0) & (codes == 0))


def test_the_schedule_by_hand():
    matrix = np.array([[1.0, 0.2, 0.0], [0.0, np.sqrt(0.96), 0.0], [0.0, 0.0, 1.0]])
    schedule = certified_schedule(matrix, matrix, sparsity=2, bound=0.5, num_layers=2, gamma=0.9)
    rate = (2 * 0.2 * 2 - 0.2) * 0.9 + 0.1
    np.testing.assert_allclose(schedule.error_bound, [1.0, rate, rate**2], rtol=1e-12)
    np.testing.assert_allclose(schedule.theta, [0.9 * 0.2 * 1.0, 0.9 * 0.2 * rate], rtol=1e-12)


def test_nmse_is_a_ratio_of_sums_and_noise_has_its_size():
    target = jnp.array([[1.0, 0.0], [10.0, 0.0]])
    np.testing.assert_allclose(nmse_db(target + jnp.array([[1.0, 0.0], [0.0, 0.0]]), target), 10 * np.log10(1 / 101))
    b = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4000))) * jnp.array([[1.0], [2.0], [3.0], [4.0]])
    noise = add_noise(jax.random.key(0), b, 20.0) - b
    np.testing.assert_allclose(np.std(noise, axis=1) / np.std(b, axis=1), 0.1, rtol=0.05)
    np.testing.assert_array_equal(add_noise(jax.random.key(0), b, jnp.inf), b)
