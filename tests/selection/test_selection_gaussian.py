"""Gaussian, second-order, mixture and copula knockoffs against what is known exactly."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.selection import (
    CopulaKnockoffs,
    GaussianKnockoffs,
    GaussianMixtureKnockoffs,
    MixtureKnockoffs,
    SecondOrderKnockoffs,
    discrete_columns,
    solve_s,
    swap,
)
from laureate.selection.gaussian import BARRIER, ledoit_wolf
from laureate.selection.tables import check_table
from laureate.testing import KeyRecorder

KEY = jax.random.key(0)
LIGHT = {"xla_backend_optimization_level": 0}  # compiling is all the time these take
# Outside jit each operation of a sampler is a program of its own.
solved = jax.jit(solve_s, static_argnums=1)
sample = eqx.filter_jit(lambda sampler, key, x: sampler.sample(key, x))


def fitted(sampler, x):
    """``sampler.fit`` as one program."""
    return eqx.filter_jit(lambda key: sampler.fit(key, x))(KEY)


def autoregressive(p, rho):
    lag = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    return rho**lag


def random_covariance(p, seed=0):
    factors = np.random.default_rng(seed).normal(size=(p, 2 * p))
    return factors @ factors.T / p


@pytest.mark.parametrize("method", ["equi", "sdp", "mvr"])
def test_the_joint_covariance_is_swap_invariant_and_positive(method):
    """O1: G = [[Σ, Σ - S], [Σ - S, Σ]] does not change when j and j + p are exchanged, and S ≼ 2Σ."""
    sigma = random_covariance(6)
    s = np.asarray(solved(sigma, method), float)
    assert (s > 0).all()
    joint = np.block([[sigma, sigma - np.diag(s)], [sigma - np.diag(s), sigma]])
    order = np.arange(12)
    for j in (1, 4):
        order[[j, j + 6]] = order[[j + 6, j]]
    np.testing.assert_array_equal(joint[np.ix_(order, order)], joint)
    assert np.linalg.eigvalsh(joint)[0] > -1e-5


def test_the_conditional_law_by_the_schur_complement():
    """O2: mean and covariance of X̃ given X, from the joint law and not from the formula."""
    sigma, mean = random_covariance(5), np.arange(5.0)
    sampler = GaussianKnockoffs(mean, sigma, "equi")
    x = np.random.default_rng(1).normal(size=(3, 5))
    cross = sigma - np.diag(np.asarray(sampler.s))
    expected = mean + (x - mean) @ np.linalg.solve(sigma, cross)
    covariance = sigma - cross @ np.linalg.solve(sigma, cross)
    found = jax.jit(lambda x: sampler.conditional(x))(x)
    np.testing.assert_allclose(found[0], expected, atol=1e-4)
    np.testing.assert_allclose(found[1], covariance, atol=1e-4)


def test_draws_have_these_moments():
    sigma = autoregressive(3, 0.5)
    sampler, n = GaussianKnockoffs(np.ones(3), sigma), 40_000
    x = 1.0 + np.random.default_rng(0).normal(size=(n, 3)) @ np.linalg.cholesky(sigma).T
    knockoff = np.asarray(sample(sampler, jax.random.key(1), x), float)
    found = np.cov(np.hstack([np.asarray(x, float), knockoff]).T)
    cross = sigma - np.diag(np.asarray(sampler.s))
    # An entry of a sample covariance of unit variables has a standard error of at most √(2/n) = 0.007.
    np.testing.assert_allclose(found, np.block([[sigma, cross], [cross, sigma]]), atol=0.03)
    np.testing.assert_allclose(knockoff.mean(0), 1.0, atol=0.02)


def test_the_sdp_is_solved_by_its_dual():
    """O14. max Σ s = min_{Z ≽ 0} 2 tr(ΣZ) + Σ (1 - Z_jj)₊: the barrier's Z = b A is feasible, and the gap is small."""
    for sigma in (autoregressive(8, 0.6), random_covariance(8)):
        deviation = np.sqrt(np.diag(sigma))
        correlation = sigma / np.outer(deviation, deviation)
        s = np.asarray(solved(correlation, "sdp"), float)
        z = BARRIER[1] * np.linalg.inv(2 * correlation - np.diag(s) + 1e-6 * np.eye(8))
        best = min(
            2 * np.sum(correlation * (c * z)) + np.maximum(1 - c * np.diag(z), 0).sum()
            for c in np.geomspace(0.3, 1, 30)
        )
        assert s.sum() <= best
        assert best - s.sum() < 0.04 * s.sum()
        equal = np.asarray(solved(correlation, "equi"), float)
        assert s.sum() > equal.sum() - 8 * BARRIER[1]
        np.testing.assert_allclose(equal, min(1, 2 * np.linalg.eigvalsh(correlation)[0]), rtol=1e-3)


def test_mvr_is_a_stationary_point_of_its_loss():
    """d/ds_j [tr (2Σ - S)⁻¹ + Σ 1/s_j] = (A²)_jj - 1/s_j² = 0."""
    sigma = autoregressive(7, 0.7)
    s = np.asarray(solved(sigma, "mvr"), float)
    inverse = np.linalg.inv(2 * sigma - np.diag(s))
    np.testing.assert_allclose(np.diag(inverse @ inverse), s**-2, rtol=1e-2)


def test_scaling_a_column_scales_its_s():
    sigma, factor = autoregressive(4, 0.5), np.array([1.0, 10.0, 0.1, 3.0])
    plain, scaled = (np.asarray(solved(m, "mvr")) for m in (sigma, sigma * np.outer(factor, factor)))
    np.testing.assert_allclose(scaled, plain * factor**2, rtol=1e-3)


def test_second_order_knockoffs_take_the_tables_moments():
    x = np.random.default_rng(0).normal(size=(50, 4)) * [1, 2, 3, 4] + 5
    found = fitted(SecondOrderKnockoffs(), x)
    np.testing.assert_allclose(found.covariance, np.cov(x.T, bias=True), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.mean, x.mean(0), rtol=1e-5)
    shrunk = fitted(SecondOrderKnockoffs(shrinkage=1.0), x)
    np.testing.assert_allclose(shrunk.covariance, np.diag(x.var(0)), rtol=1e-4, atol=1e-6)


def test_ledoit_wolf_is_scikit_learns_on_standardised_columns():
    from sklearn.covariance import ledoit_wolf as reference

    z = np.random.default_rng(2).normal(size=(40, 6)) @ np.linalg.cholesky(autoregressive(6, 0.4)).T
    z = (z - z.mean(0)) / z.std(0)  # mean variance 1: scikit-learn's target is then the identity too
    assert float(jax.jit(ledoit_wolf)(z)) == pytest.approx(reference(z)[1], rel=1e-3)


def test_swapping_twice_is_nothing_and_an_empty_set_leaves_all():
    """O8."""
    x, knockoff = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    swapped, exchange = np.array([True, False, True]), jax.jit(swap)
    once = exchange(x, knockoff, swapped)
    np.testing.assert_array_equal(once, swap(x, knockoff, swapped.tolist()))
    np.testing.assert_array_equal(once[0], np.stack([knockoff[:, 0], x[:, 1], knockoff[:, 2]], 1))
    for first, second in ((exchange(*once, swapped), (x, knockoff)), (swap(x, knockoff, np.zeros(3)), (x, knockoff))):
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(first[1], second[1])


def test_a_mixture_of_one_is_the_gaussian_and_components_are_told_apart():
    sigma, mean = autoregressive(3, 0.5), np.arange(3.0)
    x = np.random.default_rng(0).normal(size=(200, 3))
    one = jax.jit(lambda: GaussianMixtureKnockoffs([1.0], mean[None], sigma[None]))()
    np.testing.assert_allclose(one.components.s[0], solved(sigma, "mvr"), rtol=1e-5)
    # Two clusters far apart: a knockoff stays in its original's cluster, as no Gaussian's would.
    centres = np.array([[10.0, 0.0, 0.0], [-10.0, 0.0, 0.0]])
    which = np.arange(200) % 2
    rows = x + centres[which]
    found = fitted(MixtureKnockoffs(num_components=2), rows)
    drawn = np.asarray(sample(found, jax.random.key(1), rows))
    np.testing.assert_array_equal(drawn[:, 0] > 0, which == 0)
    means = np.asarray(found.components.mean)
    np.testing.assert_allclose(means[np.argsort(-means[:, 0])], centres, atol=0.6)
    second_order = np.asarray(sample(fitted(SecondOrderKnockoffs(), rows), jax.random.key(1), rows))
    assert (np.abs(second_order[:, 0]) < 5).any()


def test_a_knockoff_is_of_the_component_that_bayes_draws():
    """One variable, N(±3, 1): s = 1, so that X̃ given the component is independent of X, and its sign tells which."""
    x, law = np.repeat([0.0, 0.4], 2000)[:, None], ([0.2, 0.8], [[3.0], [-3.0]], np.ones((2, 1, 1)), "equi")
    draw = jax.jit(lambda key: GaussianMixtureKnockoffs(*law).sample(key, x), compiler_options=LIGHT)
    drawn = np.asarray(draw(KEY)).reshape(2, -1)
    for rows, value in zip(drawn, (0.0, 0.4), strict=True):
        known = 0.2 * np.exp(3 * value) / (0.2 * np.exp(3 * value) + 0.8 * np.exp(-3 * value))
        assert abs(np.mean(rows > 0) - known) < 4 * np.sqrt(known * (1 - known) / len(rows))
        assert np.abs(rows).std() == pytest.approx(1, abs=4 / np.sqrt(2 * len(rows)))


class Copying:
    """A sampler whose knockoffs are the originals; it draws from its keys, for a recorder to see."""

    def fit(self, key, x):
        return self

    def sample(self, key, x):
        return x + 0 * jax.random.uniform(key)


def test_the_map_of_scores_and_back_is_the_identity_and_what_was_not_seen_becomes_a_neighbour():
    """x = F⁻¹(Φ(z)) for every value that was fitted to, repeated ones as well; beyond the ends the last one."""
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], float)[:, None] * [1.0, -2.0]
    between = np.repeat([[3.5, -7.0], [0.0, 0.0], [10.0, -20.0]], 40, axis=0)

    @functools.partial(jax.jit, compiler_options=LIGHT)
    def back(key):
        found = CopulaKnockoffs(Copying(), (0,)).fit(key, x)
        return found.sample(jax.random.fold_in(key, 5), np.concatenate([x, between]))

    with KeyRecorder() as recorder:
        drawn = np.asarray(back(KEY))
        assert recorder.reused() == []
    np.testing.assert_array_equal(drawn[:12], x)
    np.testing.assert_allclose(drawn[:, 1], np.concatenate([x, between])[:, 1])  # a column that is not mapped
    assert set(drawn[12:52, 0]) == {3.0, 4.0}
    assert set(drawn[52:92, 0]) == {1.0}
    assert set(drawn[92:, 0]) == {9.0}


def test_binary_and_coded_columns_come_out_as_they_went_in():
    generator = np.random.default_rng(0)
    latent = generator.normal(size=(400, 3)) @ np.linalg.cholesky(autoregressive(3, 0.6)).T
    x = np.stack([latent[:, 0] > 0.5, np.digitize(latent[:, 1], [-1, 0, 1]), latent[:, 2]], 1).astype(float)
    assert discrete_columns(x) == (0, 1)
    assert discrete_columns([[2**24 + 0.5], [2**24 + 2.5]]) == ()  # halves that float32 does not have
    drawn = np.asarray(sample(fitted(CopulaKnockoffs(columns=(0, 1)), x), jax.random.key(1), x))
    assert set(drawn[:, 0]) == {0.0, 1.0}
    assert set(drawn[:, 1]) == {0.0, 1.0, 2.0, 3.0}
    # The share of ones, within four standard errors, and a continuous column that is not among those seen.
    assert abs(drawn[:, 0].mean() - x[:, 0].mean()) < 4 * np.sqrt(0.25 / 400)
    assert not set(drawn[:, 2]) <= set(np.float32(x[:, 2]))
    skewed = np.exp(latent)
    drawn = np.asarray(sample(fitted(CopulaKnockoffs(), skewed), jax.random.key(1), skewed))
    assert set(np.float32(drawn.ravel())) <= set(np.float32(skewed.ravel()))


def test_a_sampler_is_a_pytree_and_draws_by_key():
    sampler = GaussianKnockoffs(np.zeros(2), np.eye(2))
    x = jnp.ones((4, 2))
    keys = jax.random.split(KEY, 3)
    many = jax.jit(jax.vmap(lambda s, k: s.sample(k, x), in_axes=(None, 0)))(sampler, keys)
    np.testing.assert_allclose(many[1], sample(sampler, keys[1], x), rtol=1e-6)
    np.testing.assert_array_equal(sample(sampler, keys[1], np.ones((4, 2), int)), sample(sampler, keys[1], x))
    assert not np.allclose(many[0], many[1])


@pytest.mark.slow  # test_scaling_a_column_scales_its_s sees the scaling exactly
def test_units_of_columns_do_not_matter():
    """Five columns, a middle and the last one in units 1e5 times smaller: the joint moments are those of the rows.

    An entry of a sample covariance of unit variables has a standard error of at most √(2/n) = 0.01.
    """
    n, factor = 20_000, np.array([1.0, 1.0, 1e5, 1.0, 1e5])
    sigma = autoregressive(5, 0.6)
    rows = np.random.default_rng(0).normal(size=(n, 5)) @ np.linalg.cholesky(sigma).T
    with pytest.warns(UserWarning, match="they are standardised inside"):
        check_table("SecondOrderKnockoffs", rows * factor)
    for sampler in (SecondOrderKnockoffs(), MixtureKnockoffs(1, num_restarts=1, num_steps=2)):
        found = fitted(sampler, rows * factor)
        knockoff = np.asarray(sample(found, jax.random.key(1), rows * factor), float) / factor
        found = np.cov(np.hstack([rows, knockoff]).T)
        np.testing.assert_allclose(found[5:, 5:], sigma, atol=0.06)  # the mixture's ridge adds 0.01
        off = ~np.eye(5, dtype=bool)
        np.testing.assert_allclose(found[:5, 5:][off], sigma[off], atol=0.06)


def test_a_covariance_that_is_singular_but_for_rounding_is_refused():
    """float32 leaves a smallest eigenvalue of about 1e-8 where the exact one is 0; units do not matter."""
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows = np.column_stack([rows, rows.sum(1)])
    singular = np.cov(rows.T) + 1e-8 * np.eye(4)
    for factor in (np.ones(4), np.array([1.0, 1e4, 1.0, 1e-4])):
        with pytest.raises(ValueError, match=r"positive definite; got .*leave out columns"):
            GaussianKnockoffs(np.zeros(4), singular * np.outer(factor, factor))
    for variances in ([1e10, 1e-4], [1e25, 1e-25]):  # products of the latter are beyond float32
        GaussianKnockoffs(np.zeros(2), np.diag(variances), "equi")


def test_a_column_is_constant_where_its_own_precision_says_so():
    rows = 1e7 + 1e-2 * np.random.default_rng(0).normal(size=(9, 2))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(check_table("SecondOrderKnockoffs", rows), rows)
    with pytest.raises(ValueError, match=r"without constant columns; got 10000000\.0 throughout column 0"):
        check_table("SecondOrderKnockoffs", rows)


def maximised(z, weights, means, covariances, ridge):
    """A step of expectation maximisation, and the mean log-likelihood before it.

    P(k | z), then means and covariances weighted by it, as many rows of a unit sphere as columns and the ridge added.
    """
    from scipy.stats import multivariate_normal

    p, law = z.shape[1], zip(weights, means, covariances, strict=True)
    densities = np.stack([w * multivariate_normal(m, c).pdf(z) for w, m, c in law], axis=1)
    shares = densities / densities.sum(1, keepdims=True)
    mass = shares.sum(0)
    means = shares.T @ z / mass[:, None]
    spread = [(part[:, None] * (z - mean)).T @ (z - mean) for part, mean in zip(shares.T, means, strict=True)]
    covariances = (spread + p * np.eye(p)) / (mass + p)[:, None, None] + ridge * np.eye(p)
    return (shares.mean(0), means, covariances), np.mean(np.log(densities.sum(1)))


def test_of_several_mixtures_fitted_by_hand_the_likeliest_is_kept_in_the_tables_units(monkeypatch):
    """From different rows for every start; the likeliest fit has not the likeliest start."""
    rows = np.random.default_rng(3).normal(size=(24, 2)) ** 3 * [1.0, 30.0] + [0.0, 100.0]
    sampler = MixtureKnockoffs(2, "equi", num_restarts=4, num_steps=6, ridge=0.02)

    def choice(key, number, shape, replace):  # sorting by random numbers takes long to compile
        assert (number, shape, replace) == (24, (2,), False)
        return (jax.random.key_data(key)[-1] + jnp.array([0, 7], jnp.uint32)) % 24

    monkeypatch.setattr(jax.random, "choice", choice)
    found = jax.jit(lambda key: sampler.fit(key, rows), compiler_options=LIGHT)(KEY)
    mean, scale = rows.mean(0), rows.std(0)
    z, fits, likelihoods = (rows - mean) / scale, [], np.zeros((4, 6))
    for number, bits in enumerate(np.asarray(jax.random.key_data(jax.random.split(KEY, 4)))):
        fit = np.full(2, 0.5), z[[bits[-1] % 24, (bits[-1] + 7) % 24]], np.stack([np.eye(2)] * 2)
        for step in range(6):
            fit, likelihoods[number, step] = maximised(z, *fit, 0.02)
        fits.append(fit)
    first, last = likelihoods[:, 0].argmax(), likelihoods[:, -1].argmax()
    assert first != last, likelihoods
    weights, means, covariances = fits[last]
    np.testing.assert_allclose(np.exp(found.log_weights), weights, rtol=1e-4)
    np.testing.assert_allclose(found.components.mean, mean + scale * means, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.components.covariance, covariances * np.outer(scale, scale), rtol=1e-3)


@pytest.mark.slow
def test_a_mixture_that_is_none_is_refused():
    means, covariances = np.zeros((2, 2)), np.stack([np.eye(2), np.eye(2)])
    with pytest.raises(ValueError, match=r"GaussianMixtureKnockoffs.weights must be .*got \[-1.0, 2.0\]"):
        GaussianMixtureKnockoffs((-1.0, 2.0), means, covariances)
    with pytest.raises(ValueError, match=r"covariances\[1\] must be symmetric and positive definite"):
        GaussianMixtureKnockoffs((0.5, 0.5), means, np.stack([np.eye(2), np.ones((2, 2))]))
    with pytest.raises(ValueError, match=r"covariances must be of shape \(2, 2, 2\); got \(1, 2, 2\)"):
        GaussianMixtureKnockoffs((0.5, 0.5), means, covariances[:1])
