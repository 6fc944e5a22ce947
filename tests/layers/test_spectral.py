"""Spectral normalisation against NumPy's singular values and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laureate._core import Status
from laureate.layers import SpectralNorm, SpectralState

KEY = jax.random.key(0)
WEIGHT = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (3, 3, 2, 5)])
def test_the_largest_singular_value_becomes_one(shape):
    weight = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    norm = SpectralNorm(num_steps=60)
    scaled, _, info = norm(jnp.asarray(weight), norm.init(KEY, weight))
    singular = np.linalg.svd(weight.reshape(-1, shape[-1]), compute_uv=False)
    assert_allclose(info.sigma, singular[0], rtol=1e-4)
    assert_allclose(np.linalg.norm(np.asarray(scaled).reshape(-1, shape[-1]), 2), 1.0, rtol=1e-4)
    assert info.residual < 1e-2
    assert int(info.status) == Status.OK


def test_one_iteration_a_call_converges_and_says_how_far_it_is():
    norm, weight = SpectralNorm(), jnp.asarray(WEIGHT)
    largest = np.linalg.svd(WEIGHT, compute_uv=False)
    state, sigmas = norm.init(KEY, weight), []
    for _ in range(60):
        _, state, info = norm(weight, state)
        sigmas.append(float(info.sigma))
        # some singular value lies within residual × σ of the estimate
        assert np.abs(largest - info.sigma).min() <= float(info.residual * info.sigma) + 1e-5
    assert np.all(np.diff(sigmas) > -1e-5)
    assert sigmas[-1] <= largest[0] * (1 + 1e-5)
    assert_allclose(sigmas[-1], largest[0], rtol=1e-4)


def test_without_iterations_the_state_stays():
    norm, weight = SpectralNorm(num_steps=0), jnp.asarray(WEIGHT)
    state = norm.init(KEY, weight)
    assert_array_equal(norm(weight, state)[1].right, state.right)
    assert [int(SpectralNorm(num_steps=n)(weight, state)[2].cost) for n in (0, 1, 3)] == [3, 5, 9]


def test_a_weight_that_is_not_finite_is_told():
    norm = SpectralNorm()
    info = norm(jnp.asarray(WEIGHT).at[2, 1].set(jnp.nan), norm.init(KEY, WEIGHT))[2]
    assert int(info.status) == Status.DIVERGED


def test_the_gradient_is_that_of_the_exact_norm():
    with jax.enable_x64(True):
        weight, toward = WEIGHT.astype(float), np.random.default_rng(2).normal(size=WEIGHT.shape)
        norm = SpectralNorm()
        leading = SpectralState(jnp.asarray(np.linalg.svd(weight)[2][0]))  # so that one iteration is exact
        sines = lambda w: jnp.sum(jnp.sin(norm(w, leading)[0]))  # noqa: E731
        slope = np.vdot(jax.jit(jax.grad(sines))(weight), toward)
        exact = lambda w: np.sum(np.sin(w / np.linalg.norm(w, 2)))  # noqa: E731
        step = 1e-6
        expected = (exact(weight + step * toward) - exact(weight - step * toward)) / (2 * step)
        assert_allclose(slope, expected, rtol=1e-6)


def test_the_gradient_holds_both_vectors_fixed_however_rough_they_are():
    """Before the iterations have converged: the slope of σ = uᵀWv is u vᵀ and nothing else, and the state has none."""
    counts, right = (0, 1, 3), np.array([1.0, 0, 0, 0], np.float32)

    @jax.jit
    def slopes(weight, right):
        sines = lambda w, v, n: jnp.sum(jnp.sin(SpectralNorm(n)(w, SpectralState(v))[0]))  # noqa: E731
        told = lambda w, v, n: SpectralNorm(n)(w, SpectralState(v))[2].sigma  # noqa: E731
        return [[jax.grad(one, (0, 1))(weight, right, n) for one in (sines, told)] for n in counts]

    weight, unit = WEIGHT.astype(float), lambda vector: vector / np.linalg.norm(vector)
    for count, found in zip(counts, slopes(WEIGHT, right), strict=True):
        v = right.astype(float)
        for _ in range(count):
            v = unit(weight.T @ unit(weight @ v))
        u = unit(weight @ v)
        sigma, cosines = u @ weight @ v, np.cos(weight / (u @ weight @ v))
        whole = cosines / sigma - np.sum(cosines * weight) / sigma**2 * np.outer(u, v)
        for (of_weight, of_state), expected in zip(found, (whole, np.outer(u, v)), strict=True):
            assert_allclose(of_weight, expected, rtol=1e-4, atol=1e-5)
            assert_array_equal(of_state, 0)


def test_a_weight_of_zeros_stays_one():
    norm, weight = SpectralNorm(), jnp.zeros((3, 2))
    scaled, state, info = norm(weight, norm.init(KEY, weight))
    assert_array_equal(scaled, 0.0)
    assert np.isfinite(state.right).all()
    assert float(info.sigma) == 0.0


def test_wrong_settings_raise():
    with pytest.raises(ValueError, match=r"SpectralNorm\.num_steps must be an integer >= 0; got -1"):
        SpectralNorm(-1)
    with pytest.raises(ValueError, match=r"SpectralNorm\.weight must be of two axes at least; got \(3,\)"):
        SpectralNorm().init(KEY, jnp.zeros(3))
