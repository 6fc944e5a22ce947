"""Tensor-train algebra against dense tensors, and the two regressions against functions they must recover."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import BSpline

from laureate import loops
from laureate._core import Status
from laureate.pde import ALS, SALSA, CustomBasis, Fourier, FunctionalTensorTrain, Hermite, Polynomials, Splines
from laureate.pde.sweep import Samples


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def make_pair(dimension, ranks=(3, 2)):
    basis = Polynomials(-1.0, 1.0, 3)
    keys = jax.random.split(jax.random.key(dimension), 3)
    first = FunctionalTensorTrain.random(keys[0], dimension, basis, ranks[0])
    second = FunctionalTensorTrain.random(keys[1], dimension, basis, ranks[1])
    return first, second, jax.random.uniform(keys[2], (dimension,), minval=-1.0)


pair = functools.cache(eqx.filter_jit(make_pair))


@functools.cache
@eqx.filter_jit
def algebra(dimension):
    """One program for all that is compared with dense tensors; outside jit each operation would be one."""
    first, second, x = make_pair(dimension)
    return {
        "features": first.basis(x),
        "dense": (first.dense(), second.dense()),
        "value": first(x),
        "gradients": (first.gradient(x), jax.grad(first)(x)),
        "sum": (first + second).dense(),
        "difference": (first - 2.0 * second).dense(),
        "inner": first.inner(second),
        "norm": first.norm(),
    }


@pytest.mark.parametrize("dimension", [1, 4])
def test_evaluation_equals_the_dense_contraction(dimension):
    found = algebra(dimension)
    value = np.asarray(found["dense"][0])
    for feature in np.asarray(found["features"]):
        value = np.tensordot(feature, value, axes=1)
    assert np.abs(found["value"] - value) < 1e-12


@pytest.mark.parametrize("dimension", [1, 4, 7])
def test_gradient_equals_automatic_differentiation(dimension):
    if dimension <= 4:
        by_hand, automatic = algebra(dimension)["gradients"]
    else:
        train, _, x = pair(dimension)
        by_hand, automatic = jax.jit(lambda x: (train.gradient(x), jax.grad(train)(x)))(x)
    assert np.max(np.abs(np.asarray(by_hand) - np.asarray(automatic))) < 1e-10


@pytest.mark.parametrize("dimension", [1, 4])
def test_sum_difference_multiple_inner_product_and_norm(dimension):
    found = jax.tree.map(np.asarray, algebra(dimension))
    a, b = found["dense"]
    assert np.max(np.abs(found["sum"] - (a + b))) < 1e-12
    assert np.max(np.abs(found["difference"] - (a - 2 * b))) < 1e-12
    assert np.abs(found["inner"] - np.sum(a * b)) < 1e-12
    assert np.abs(found["norm"] - np.linalg.norm(a)) < 1e-12


@functools.cache
@eqx.filter_jit
def orthogonalised():
    train = make_pair(4)[0]
    swept = [train.orthogonalise(centre) for centre in (0, 1, 3)]
    return train.dense(), [(one.cores, one.dense()) for one in swept]


@pytest.mark.parametrize("centre", [0, 1, 3])
def test_orthogonalise_keeps_the_tensor_and_makes_orthonormal_cores(centre):
    dense, swept = orthogonalised()
    cores, same = swept[(0, 1, 3).index(centre)]
    assert np.max(np.abs(np.asarray(same) - np.asarray(dense))) < 1e-12
    for i in range(4):
        core = np.asarray(cores[i])
        if i < centre:
            unfolded = core[:1].reshape(-1, 3) if i == 0 else core.reshape(-1, 3)
            assert np.max(np.abs(unfolded.T @ unfolded - np.eye(3))) < 1e-12
        if i > centre:
            unfolded = core[:, :, :1].reshape(3, -1) if i == 3 else core.reshape(3, -1)
            assert np.max(np.abs(unfolded @ unfolded.T - np.eye(3))) < 1e-12


def test_rounding_finds_the_rank_and_keeps_its_promise():
    first, second, _ = pair(4, ranks=(2, 2))
    dense = eqx.filter_jit(lambda train: train.dense())
    doubled = (first + first).round()
    assert doubled.rank == 2
    one, two = np.asarray(dense(first)), np.asarray(dense(second))
    assert np.max(np.abs(dense(doubled) - 2 * one)) < 1e-12
    total, exact = first + 0.05 * second, one + 0.05 * two
    near, far = total.round(1e-3), total.round(0.3)
    for tolerance, rounded in ((1e-3, near), (0.3, far)):
        difference = np.asarray(dense(rounded)) - exact
        assert np.linalg.norm(difference) <= tolerance * np.linalg.norm(exact) * (1 + 1e-9)
    assert far.rank < near.rank


def test_rounding_drops_as_much_as_it_may_and_no_more():
    """Of a matrix, with many singular values alike: at each tolerance the least rank whose error is within it."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(6, 6)))[0] for _ in range(2))
    s = np.array([1.0, 0.3, 0.29, 0.28, 0.27, 0.26])
    cores = np.zeros((2, 6, 6, 6))
    cores[0, 0], cores[1, :, :, 0] = left * s, right
    tolerances = np.linspace(0.02, 0.9, 23)

    @jax.jit
    def rounded(cores, tolerances):
        train = FunctionalTensorTrain(cores, Polynomials(-1.0, 1.0, 5))
        return jax.vmap(lambda tolerance: train.round(tolerance).dense())(tolerances)

    for tolerance, found in zip(tolerances, np.asarray(rounded(cores, tolerances)), strict=True):
        tails = np.sqrt(np.cumsum(s[::-1] ** 2))[::-1]
        kept = int(np.sum(tails > tolerance * np.linalg.norm(s)))
        np.testing.assert_allclose(found, (left[:, :kept] * s[:kept]) @ right[:kept], atol=1e-12)


@pytest.mark.slow
def test_rounding_inside_jit_keeps_the_shape():
    first, _, _ = pair(4)
    rounded = eqx.filter_jit(lambda train: (train + train).round(1e-10))(first)
    assert rounded.rank == 6
    assert rounded.ranks().tolist() == [3, 3, 3]
    assert jnp.max(jnp.abs(rounded.dense() - 2 * first.dense())) < 1e-12


def test_polynomials_are_orthonormal_in_h2_up_to_the_constant():
    low, high, degree = -0.7, 2.0, 5
    basis = Polynomials(low, high, degree)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    x = jnp.asarray((high - low) / 2 * nodes + (high + low) / 2)

    @jax.jit
    def derivatives(x):
        once, twice = jax.jvp(basis.derivative, (x,), (jnp.ones_like(x),))
        return basis(x), once, twice

    found = [np.asarray(value) for value in derivatives(x)]
    gram = sum((v * weights[:, None]).T @ v for v in found) * (high - low) / 2
    assert np.max(np.abs(gram - (high - low) * np.eye(degree + 1))) < 1e-9
    assert np.all(found[0][:, 0] == 1.0)


def test_hermite_is_orthonormal_under_its_gaussian():
    basis = Hermite(1.0, 2.0, degree=5)
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    values = np.asarray(jax.jit(basis)(jnp.asarray(1.0 + 2.0 * nodes)))
    assert np.max(np.abs((values * weights[:, None]).T @ values / np.sqrt(2 * np.pi) - np.eye(6))) < 1e-10


def test_fourier_is_orthonormal_over_a_period():
    x = np.linspace(0.0, 3.0, 64, endpoint=False)
    values = np.asarray(jax.jit(Fourier(0.0, 3.0, degree=3))(x))
    assert np.max(np.abs(values.T @ values / 64 - np.eye(7))) < 1e-12


def test_splines_equal_scipys():
    basis = Splines(-1.0, 2.0, num_pieces=6)
    x = np.linspace(-1.0, 2.0, 97)[:-1]
    knots = np.linspace(-1 - 1.5, 2 + 1.5, 6 + 7)
    expected = BSpline.design_matrix(np.asarray(x), knots, 3).toarray()
    assert np.max(np.abs(jax.jit(basis)(x) - expected)) < 1e-12


BASES = [
    Polynomials(-2.0, 2.0, 3),
    Polynomials(-2.0, 2.0, 3, clip=True),
    Hermite(0.3, 0.8, 4),
    Fourier(-1.0, 1.0, 2),
    Splines(-2.0, 2.0, 5),
    CustomBasis((jnp.sin, jnp.tanh)),
]


@pytest.mark.parametrize("basis", BASES, ids=lambda b: type(b).__name__)
def test_every_basis_holds_the_constant_and_its_derivative(basis):
    x, step = np.linspace(-1.9, 1.9, 40).reshape(4, 10), 1e-6
    both = jax.jit(lambda x: (basis(x), basis.derivative(x)))
    (here, derivative), (after, _), (before, _) = (jax.tree.map(np.asarray, both(x + s)) for s in (0, step, -step))
    assert here.shape == (4, 10, basis.size)
    assert np.max(np.abs(here @ np.asarray(basis.constant) - 1)) < 1e-12
    assert np.max(np.abs(derivative - (after - before) / (2 * step))) < 1e-6


def test_every_basis_tells_its_interval_where_its_numbers_are_traced():
    """As within ``solve``, whose programs serve any value of a setting."""
    everywhere = (-np.inf, np.inf)
    expected = [(-2.0, 2.0), (-2.0, 2.0), (0.3 - 6 * 0.8, 0.3 + 6 * 0.8), everywhere, (-2.0, 2.0), everywhere]
    traced = eqx.filter_jit(lambda bases: [basis.interval for basis in bases])(loops.firm(BASES))
    np.testing.assert_allclose(traced, expected, rtol=1e-15)
    np.testing.assert_allclose([basis.interval for basis in BASES], expected, rtol=1e-15)


def test_clipped_polynomials_do_not_explode():
    basis = Polynomials(-1.0, 1.0, 7, clip=True)
    values, slopes = jax.jit(lambda x: (basis(x), basis.derivative(x)))(np.array([50.0, 1.0]))
    assert np.array_equal(values[0], values[1])
    assert np.all(np.asarray(slopes[0]) == 0)


def additive(seed, dimension, samples):
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, size=(samples, dimension))
    weights = np.arange(1.0, dimension + 1)
    return x, x**2 @ weights + x[:, 0] * x[:, 1] + 1.0


# A fit from a start, as one program; what differs in numbers only shares it.
@eqx.filter_jit
def fitted(key, x, y, basis, rank, method):
    return FunctionalTensorTrain.start(key, x.shape[1], basis, rank=rank).fit(x, y, method)


@pytest.mark.parametrize("method", [ALS(max_sweeps=100, tolerance=1e-6), SALSA(max_sweeps=200)], ids=["als", "salsa"])
def test_regression_recovers_a_function_in_its_span(method):
    x, y = additive(0, 8, 1000)
    train, info = fitted(jax.random.key(1), x, y, Polynomials(-1.0, 1.0, 2), 3, method)
    fresh, truth = additive(2, 8, 200)
    found = np.asarray(eqx.filter_jit(lambda train: jax.vmap(train)(fresh))(train))
    error = np.sqrt(np.mean((found - truth) ** 2) / np.mean(truth**2))
    assert info.residual < 1e-7
    assert error < 1e-6
    assert info.status == Status.OK


@pytest.mark.slow
def test_als_recovers_a_random_train_to_rounding():
    basis = Polynomials(-1.0, 1.0, 3)
    keys = jax.random.split(jax.random.key(7), 3)
    truth = FunctionalTensorTrain.random(keys[0], 5, basis, rank=2)
    x = jax.random.uniform(keys[1], (2000, 5), minval=-1.0)
    start = FunctionalTensorTrain.start(keys[2], 5, basis, rank=2)
    train, info = start.fit(x, jax.vmap(truth)(x), ALS(ridge=0.0, damping=0.0, max_sweeps=100, tolerance=1e-6))
    assert info.residual < 1e-10
    assert (train - truth).norm() < 1e-9 * truth.norm()


@pytest.mark.slow
def test_als_recovers_a_train_of_rank_three_in_twenty_dimensions():
    """Interactions of all orders, each weaker than the one before: see ``fit`` for what cannot be found."""
    basis = Polynomials(-1.0, 1.0, 3)
    keys = jax.random.split(jax.random.key(0), 4)
    cores = FunctionalTensorTrain.start(keys[0], 20, basis, rank=3, noise=0.1).cores
    truth = FunctionalTensorTrain(cores.at[0, 0].set(jax.random.normal(keys[2], cores.shape[2:])), basis)
    x = jax.random.uniform(keys[1], (5000, 20), minval=-1.0)
    start = FunctionalTensorTrain.start(keys[3], 20, basis, rank=3)
    method = ALS(ridge=1e-14, damping=0.0, max_sweeps=100, tolerance=1e-6)
    train, info = eqx.filter_jit(lambda s: s.fit(x, jax.vmap(truth)(x), method))(start)
    assert info.residual < 1e-10
    assert (train - truth).norm() < 1e-9 * truth.norm()


@pytest.mark.slow
def test_residual_never_rises_from_sweep_to_sweep_without_regularisation():
    x, y = additive(3, 6, 400)
    y = y + jnp.sin(3 * x[:, 2] * x[:, 4])
    train = FunctionalTensorTrain.start(jax.random.key(4), 6, Polynomials(-1.0, 1.0, 3), rank=3)
    one_sweep = eqx.filter_jit(lambda t: t.fit(x, y, ALS(ridge=0.0, damping=0.0, max_sweeps=1)))
    residuals = []
    for _ in range(6):
        train, info = one_sweep(train)
        residuals.append(float(info.residual))
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(residuals))


def test_the_sweep_leaves_orthonormal_cores():
    """Cores right of the first are orthonormal from the right: each local problem is as well posed as its features."""
    x, y = additive(3, 4, 300)
    train, _ = fitted(
        jax.random.key(4), x, y, Polynomials(-1.0, 1.0, 2), 2, ALS(max_sweeps=2, tolerance=jnp.asarray(1e-4))
    )
    for core in np.asarray(train.cores[1:]):
        unfolded = core.reshape(2, -1)
        assert np.max(np.abs(unfolded @ unfolded.T - np.eye(2))) < 1e-12


def test_a_fit_says_what_ended_it():
    """Sweeps that were spent, a stall, nothing left to fit, or what is not finite; the program is that of above."""
    x, y = additive(3, 4, 300)
    broken = np.where(np.arange(300) == 7, np.nan, y)
    cases = [
        (y, 1e-4, Status.NOT_CONVERGED, 2),  # each of the two sweeps lowered the residual by more than that
        (y, 0.999, Status.OK, 2),  # the second did not
        (0 * y, 1e-4, Status.OK, 1),
        (broken, 1e-4, Status.DIVERGED, 1),
    ]
    for targets, tolerance, status, sweeps in cases:
        method = ALS(max_sweeps=2, tolerance=jnp.asarray(tolerance))
        _, info = fitted(jax.random.key(4), x, targets, Polynomials(-1.0, 1.0, 2), 2, method)
        assert (int(info.status), int(info.cost)) == (status, sweeps)


def test_the_train_that_test_samples_like_best_is_given():
    """Their targets are what the first sweep gives: the second, nearer to the samples, is not taken."""
    x, y = additive(3, 4, 300)

    @eqx.filter_jit
    def swept(sweeps, targets):
        start = FunctionalTensorTrain.start(jax.random.key(4), 4, Polynomials(-1.0, 1.0, 2), rank=2)
        test = None if targets is None else (x, targets)
        train, info = start.fit(x, y, ALS(max_sweeps=sweeps, tolerance=jnp.asarray(1e-4)), test=test)
        return jax.vmap(train)(x), info.cost

    first, _ = swept(1, None)
    found, cost = swept(2, first)
    assert int(cost) == 2
    np.testing.assert_allclose(found, first, atol=1e-9)
    assert np.abs(first - y).max() > 1e-3


@pytest.fixture(scope="module")
def swept_once():
    """One sweep from a train of rank one, as it is and padded to three, and the constant alone: all beside x ↦ ∏ x."""
    with jax.enable_x64(True):
        (x, y), (fresh, truth) = additive(3, 4, 300), additive(5, 4, 100)

        def swept(rank, degree):
            basis = Polynomials(-1.0, 1.0, degree)
            samples, test = (
                Samples.of(basis, inputs, targets + 9 * np.prod(inputs, axis=1), np.prod(inputs, axis=1)[:, None])
                for inputs, targets in ((jnp.asarray(x), y), (jnp.asarray(fresh), truth))
            )
            start = FunctionalTensorTrain.constant(1.0, 4, basis, rank)
            train, weights, info = ALS(max_sweeps=1).fit(start, samples, test)
            return train.dense(), weights, info, (samples, test)

        quick = {"xla_backend_optimization_level": 0}
        all_of = jax.jit(lambda: [swept(1, 2), swept(3, 2), swept(1, 0)], compiler_options=quick)
        return jax.tree.map(np.asarray, all_of())


def test_slots_beyond_the_rank_change_nothing(swept_once):
    """The same function, if not yet the best one."""
    (alone, weights, info, _), (padded, same_weights, same, _), _ = swept_once
    np.testing.assert_allclose(padded, alone, atol=1e-9)
    np.testing.assert_allclose(same_weights, weights, rtol=1e-9)
    np.testing.assert_allclose(same.residual, info.residual, rtol=1e-9)


def test_residuals_are_those_of_the_train_and_the_functions_beside_it(swept_once):
    """Of the samples and of those held out, relative to the size of the former's targets."""
    for dense, weights, info, both in swept_once:
        size = np.sqrt(np.mean(both[0].targets ** 2))
        assert weights[0] == pytest.approx(9, abs=3)
        for samples, residual in zip(both, (info.residual, info.test_residual), strict=True):
            values = np.einsum("ijkl,ni,nj,nk,nl->n", dense, *samples.features) + samples.extras @ weights
            assert residual == pytest.approx(np.sqrt(np.mean((values - samples.targets) ** 2)) / size, rel=1e-9)


def test_ridge_keeps_collinear_functions_apart():
    x = np.random.default_rng(0).uniform(-1.0, 1.0, size=(300, 3))
    y = np.sum(np.sin(x), axis=1)
    twice = CustomBasis((jnp.sin, lambda x: 2 * jnp.sin(x)))
    train, info = fitted(jax.random.key(1), x, y, twice, 2, ALS(damping=0.0))
    assert info.status == Status.OK
    assert info.residual < 1e-4
    assert eqx.filter_jit(lambda train: train.norm())(train) < 10


def test_damping_keeps_small_what_the_samples_cannot_tell():
    """Near t = 0 the paths have hardly moved: noise over 1e-3 of x must not become a slope of a hundred."""
    generator = np.random.default_rng(0)
    x, y = 1e-3 * generator.normal(size=(300, 3)), 1 + 0.1 * generator.normal(size=300)
    basis = Polynomials(-1.0, 1.0, 2)
    norm = eqx.filter_jit(lambda damping: fitted(jax.random.key(2), x, y, basis, 2, ALS(damping=damping))[0].norm())
    assert abs(norm(jnp.array(1.0)) - 1) < 0.1
    assert norm(jnp.array(0.0)) > 3


def test_salsa_grows_the_rank_it_needs():
    """From a train of rank one within room for three."""
    x, y = additive(0, 6, 800)

    @jax.jit
    def grown():
        start = FunctionalTensorTrain.constant(1.0, 6, Polynomials(-1.0, 1.0, 2), rank=3)
        train, info = start.fit(x, y, SALSA(max_sweeps=200))
        return train.ranks(1e-5), info.residual

    ranks, residual = grown()
    assert residual < 1e-6
    assert np.all(np.asarray(ranks) >= 2)


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_salsa_in_much_noise_ends_with_the_rank_and_its_scout(noise):
    """s_min follows the relative decrease: a fit that has stalled asks for no more slots, in each of which is noise."""
    draw = np.random.default_rng(0)
    x = draw.uniform(-1.0, 1.0, size=(400, 4))
    y = np.prod(1 + 0.3 * x, axis=1) + noise * draw.normal(size=400)
    _, info = fitted(jax.random.key(1), x, y, Polynomials(-1.0, 1.0, 2), 4, SALSA())
    assert info.status == Status.OK
    assert np.all(np.asarray(info.ranks) <= 2)  # there is room for 3, 4 and 3


@pytest.mark.slow
def test_salsa_keeps_unneeded_slots_out():
    """Rank one and noise of a thousandth, in which each slot more would find something to learn."""
    keys = jax.random.split(jax.random.key(0), 5)
    (x, y), held_out = (
        (inputs, jnp.prod(1 + 0.3 * inputs, axis=1) + 1e-3 * jax.random.normal(key, (2000,)))
        for inputs, key in (
            (jax.random.uniform(k, (2000, 8), minval=-1.0), n) for k, n in zip(keys[:2], keys[2:4], strict=True)
        )
    )
    start = FunctionalTensorTrain.start(keys[4], 8, Polynomials(-1.0, 1.0, 2), rank=5)
    train, info = eqx.filter_jit(lambda s: s.fit(x, y, SALSA(), test=held_out))(start)
    assert jnp.all(info.ranks <= 2)  # the rank and its scout
    assert jnp.all(train.ranks(1e-2) == 1)  # the scout holds no more than noise


@pytest.mark.slow
def test_test_samples_stop_a_fit_that_learns_noise():
    keys = jax.random.split(jax.random.key(11), 4)
    basis = Polynomials(-1.0, 1.0, 5)

    def draw(key, count):
        return jax.random.uniform(key, (count, 6), minval=-1.0)

    def truth(x):
        return jnp.sum(x**2, axis=1)

    def error(train):
        return jnp.mean((jax.vmap(train)(fresh) - truth(fresh)) ** 2)

    x, held_out, fresh = draw(keys[0], 250), draw(keys[1], 250), draw(keys[2], 2000)
    noise = jax.random.normal(keys[3], (2, 250))
    start = FunctionalTensorTrain.start(jax.random.key(12), 6, basis, rank=4)
    method = ALS(max_sweeps=40, tolerance=1e-9)
    greedy, _ = start.fit(x, truth(x) + noise[0], method)
    careful, info = start.fit(x, truth(x) + noise[0], method, test=(held_out, truth(held_out) + noise[1]))
    assert error(careful) < error(greedy)
    assert info.cost < 40
    # However long it goes on learning noise, the best train that it met is the one it gives.
    scores = []
    for sweeps in (2, 6, 18):
        patient = ALS(max_sweeps=sweeps, tolerance=1e-9, patience=30)
        _, info = start.fit(x, truth(x) + noise[0], patient, test=(held_out, truth(held_out) + noise[1]))
        scores.append(float(info.test_residual))
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomials(-1.0, 1.0, -1), "Polynomials.degree must be >= 0; got -1."),
        (lambda: Polynomials(1.0, 1.0, 2), "Polynomials.high must be > low = 1.0; got 1.0."),
        (lambda: Hermite(0.0, 0.0), "Hermite.scale must be > 0"),
        (lambda: Fourier(0.0, 1.0, -2), "Fourier.degree"),
        (lambda: Splines(0.0, 1.0, 0), "Splines.num_pieces must be >= 1"),
        (lambda: CustomBasis((3,)), "CustomBasis.functions must be callables"),  # type: ignore[arg-type]
        (lambda: ALS(ridge=-1.0), "ALS.ridge must be >= 0; got -1.0."),
        (lambda: ALS(max_sweeps=0), "ALS.max_sweeps"),
        (lambda: SALSA(shrink=1.0), "SALSA.shrink must be > 1"),
        (lambda: SALSA(patience=1), "SALSA.patience must be >= 3"),
    ],
)
def test_wrong_settings_are_told(make, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        make()


def test_wrong_shapes_are_told():
    train, other, x = pair(3)
    with pytest.raises(ValueError, match="takes one point of shape"):
        train(jnp.zeros((5, 3)))
    with pytest.raises(ValueError, match="other must be a train of 3 coordinates"):
        _ = train + pair(2)[0]
    with pytest.raises(ValueError, match="centre must be in 0"):
        train.orthogonalise(3)
    with pytest.raises(ValueError, match=r"inputs must be \[k, d\]"):
        train.fit(x, jnp.zeros(3))
    with pytest.raises(ValueError, match="cores must be of shape"):
        FunctionalTensorTrain(jnp.zeros((3, 2, 5, 2)), other.basis)


def test_trains_over_different_functions_are_not_put_together():
    """Of as many functions: other ends, another scale, another kind. Those made anew, or by a program, are the same."""
    over = lambda basis: FunctionalTensorTrain(jnp.ones((3, 1, 3, 1)), basis)  # noqa: E731
    bases = [
        Polynomials(-1.0, 1.0, 2),
        Polynomials(-2.0, 2.0, 2),
        Hermite(0.0, 1.0),
        Hermite(0.0, 2.0),
        Fourier(0, 1, 1),
    ]
    for (one, first), (two, second) in itertools.product(enumerate(bases), repeat=2):
        for combine in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a.inner(b)):
            put = functools.partial(jax.eval_shape, lambda a=first, b=second, f=combine: f(over(a), over(b)))
            if one == two:
                assert put() is not None
            else:
                with pytest.raises(ValueError, match=r"other must be over \w+\(.*; got \w+\("):
                    put()
    bare = over(bases[2])
    inside = jax.eval_shape(lambda basis: over(basis).inner(bare), bases[2])
    assert inside.shape == ()
    short = jax.tree.map(np.float32, Hermite(0.1, 0.3))  # what a program in single precision gives back
    assert over(Hermite(0.1, 0.3))._is_my_basis(short)


def test_program_size_does_not_grow_with_dimension():
    def lines(dimension):
        basis, x, y = Polynomials(-1.0, 1.0, 2), np.ones((50, dimension)), np.ones(50)
        fit = jax.jit(lambda cores: FunctionalTensorTrain(cores, basis).fit(x, y)[0].cores)
        return len(fit.lower(np.ones((dimension, 2, 3, 2))).as_text().splitlines())

    assert lines(40) == lines(4)
