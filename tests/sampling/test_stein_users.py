"""Stein's tests and particles as users call them: wrong input, drivers, trees, and what is not finite."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from blackjax.util import run_inference_algorithm

from laureate._core import Status
from laureate.sampling import (
    Slices,
    SteinVariational,
    fit_slices,
    ksd,
    max_sliced_ksd,
    sliced_ksd,
    sliced_svgd,
    stein_mean_test,
    stein_test,
    svgd,
)
from laureate.sampling.stein_bootstrap import _check_bootstrap, _judged

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)).astype(np.float32)
KEY = jax.random.key(0)
EYE = np.eye(3, dtype=np.float32)
SGD = optax.sgd(0.1)


def wrong(row, value=np.nan):
    s = -X.copy()
    s[row, 1] = value
    return s


REFUSED = {
    "other shapes": (
        lambda: ksd(X, -X[:, :2]),
        r"ksd.scores must be of the shape of samples, \(30, 3\); got \(30, 2\)",
    ),
    "transposed": (lambda: ksd(X.T, -X), "transposed"),
    "one draw": (lambda: ksd(X[:1], -X[:1]), r"\[n >= 2, d >= 1\]; got \(1, 3\)"),
    "a vector": (lambda: sliced_ksd(X[:, 0], -X[:, 0]), "sliced_ksd.samples"),
    "not finite": (lambda: ksd(X, wrong(7)), "in row 7'. Is the support bounded"),
    "infinite draws": (lambda: sliced_ksd(wrong(2, np.inf), -X), "sliced_ksd.samples must be finite"),
    "equal draws": (lambda: ksd(0 * X, -X), "pass bandwidth="),
    "equal along a slice": (lambda: sliced_ksd(X * [1, 0, 1], -X), "along slice 1"),
    "bandwidth": (lambda: ksd(X, -X, bandwidth=0.0), "ksd.bandwidth must be > 0"),
    "bandwidth's name": (lambda: ksd(X, -X, bandwidth="mean"), "'median', 'log' or a number"),
    "kernel": (lambda: ksd(X, -X, kernel="linear"), "ksd.kernel must be"),
    "statistic": (lambda: ksd(X, -X, statistic="w"), "'u' or 'v'"),
    "slices of two sizes": (lambda: sliced_ksd(X, -X, Slices(EYE, EYE[:2])), "sliced_ksd.slices must be two arrays"),
    "slice of zeros": (lambda: sliced_ksd(X, -X, Slices(EYE, EYE * [[1], [0], [1]])), "0 in row 1"),
    "split": (lambda: max_sliced_ksd(KEY, X, -X, split=1.5), "split must be between 0 and 1"),
    "too few to fit": (lambda: max_sliced_ksd(KEY, X, -X), ">= 10, and 2 draws left; got 6"),
    "steps": (lambda: fit_slices(KEY, X, -X, num_steps=0), "num_steps must be >= 1"),
    "batch": (lambda: fit_slices(KEY, X, -X, batch=1), "batch must be None or >= 2"),
    "few replicates": (lambda: stein_test(KEY, X, -X, num_bootstrap=18), "no p-value is below 0.05"),
    "bootstrap": (lambda: stein_test(KEY, X, -X, bootstrap="block"), "bootstrap must be one of"),
    "flip": (lambda: stein_mean_test(KEY, X, -X, bootstrap="wild", flip=0.6), r"flip must be None or in \(0, 0.5\]"),
    "slices' name": (lambda: stein_test(KEY, X, -X, slices="axes"), "stein_test.slices must be one of"),
    "chains": (lambda: stein_test(KEY, X.reshape(2, 15, 3), -X.reshape(2, 15, 3)), 'bootstrap="wild"'),
    "one coordinate": (lambda: stein_test(KEY, X[:, 0], -X[:, 0]), r"samples\[:, None\]"),
    "its chain": (lambda: stein_test(KEY, X[:, 0], -X[:, 0], bootstrap="wild"), r"samples\[:, None\]"),
    "chains' scores": (lambda: stein_test(KEY, X.reshape(2, 15, 3), -X, bootstrap="wild"), "stein_test.scores"),
    "functions": (lambda: stein_mean_test(KEY, X, -X, functions=()), "functions must be at least one"),
    "one particle": (lambda: svgd(ksd, SGD).init(X[:1]), "two at least"),
    "leaves of two lengths": (lambda: svgd(ksd, SGD).init((X, X[:4])), "as many in every leaf"),
    "no optimiser of slices": (lambda: SteinVariational(ksd, SGD, slices="learned"), "slice_optimiser must be given"),
    "needless optimiser": (lambda: sliced_svgd(ksd, SGD, slice_optimiser=SGD), "slice_optimiser must be given"),
    "particles' bandwidth": (lambda: svgd(ksd, SGD, bandwidth=-1.0), "bandwidth must be > 0"),
    "particles' slices": (lambda: sliced_svgd(ksd, SGD, slices="none"), "sliced_svgd.slices"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_input_is_refused_with_the_rule(name):
    call, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        call()


def test_discrete_draws_have_no_scores():
    with pytest.raises(TypeError, match="Discrete draws"):
        ksd(np.arange(6).reshape(3, 2), np.zeros((3, 2)))


@pytest.mark.slow
def test_what_is_only_warned_about():
    with pytest.warns(UserWarning, match="slices.g are not of length 1"):
        long = sliced_ksd(X, -X, Slices(EYE, 2 * EYE))
    np.testing.assert_allclose(long.per_slice, sliced_ksd(X, -X).per_slice, atol=1e-6)
    chain = np.repeat(X, 3, axis=0)
    with pytest.warns(UserWarning, match="neighbours correlate by 0.6"):
        stein_mean_test(KEY, chain, -chain, num_bootstrap=19)
    with pytest.warns(UserWarning, match="all particles are equal"):
        svgd(ksd, SGD).init(0 * X)


def test_what_is_not_finite_is_no_rejection():
    """Inside jit a failure is a value: neither a small p-value nor a status of OK."""

    def run(s):
        p = stein_test(KEY, X, s, slices="identity", num_bootstrap=19), stein_mean_test(KEY, X, s, num_bootstrap=19)
        sampler = svgd(lambda x: x * jnp.sum(s), SGD)
        return p, sampler.step(KEY, sampler.init(X))[1].status

    run = jax.jit(run)
    found, status = run(wrong(3))
    assert all(np.isnan(one.p_value) and one.status == 1 for one in found)
    assert status == 1
    found, status = run(-X)
    assert all(0 < one.p_value <= 1 and one.status == 0 for one in found)
    assert status == 0


def test_one_draw_of_the_null_that_is_not_finite_is_enough():
    """Equal counts as at least as large: of three draws two, and the statistic itself."""
    null = np.tile(np.float32([0.1, 0.5, 0.9]), (4, 1))
    null[1, 0], null[2, 2] = np.nan, np.inf
    found = jax.jit(jax.vmap(_judged))(np.float32([0.5, 0.5, 0.5, -np.inf]), null)
    np.testing.assert_allclose(found.p_value, [3 / 4, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(found.status, [Status.OK, *[Status.DIVERGED] * 3])


def test_a_chain_far_from_zero_is_seen_to_be_one():
    """Doubles whose differences single precision would lose, all of them."""
    chain = 2.0**30 + np.repeat(np.random.default_rng(1).normal(size=(8, 2)), 4, axis=0)
    with pytest.warns(UserWarning, match=r"look like a chain: neighbours correlate by 0\.[67]"):
        _check_bootstrap("stein_test", chain, "multinomial", None, 19)


def test_several_chains_count_as_their_draws():
    """Their statistic is that of all draws, whatever the order of the chains."""
    chains = X.reshape(2, 15, 3)
    more = {"slices": None, "bootstrap": "wild", "num_bootstrap": 19}

    def run(x):
        one = stein_test(KEY, x, -x, **more), stein_test(KEY, x, lambda x: -x @ x / 2, **more)
        return one, ksd(x.reshape(-1, 3), -x.reshape(-1, 3))

    (array, function), value = jax.jit(run)(chains)
    assert float(array.value) == pytest.approx(float(value), abs=1e-6)
    np.testing.assert_allclose(array.null, function.null, atol=1e-6)


def test_blackjax_drives_particles_and_the_variance_of_many_dimensions_stays():
    """Its own SVGD takes no key, so that its driver refuses it; ours runs, and slices keep what whole points lose."""
    start = (2 * RNG.normal(size=(20, 25)) + 1).astype(np.float32)
    spreads = {}
    for name, sampler in {
        "whole": svgd(lambda x: -x @ x / 2, optax.adam(0.1)),
        "sliced": sliced_svgd(lambda x: -x @ x / 2, optax.adam(0.1)),
    }.items():
        last = lambda state, info: info.status  # noqa: E731
        state, status = run_inference_algorithm(KEY, sampler, 300, initial_position=start, transform=last)
        assert (np.asarray(status) == 0).all()
        spreads[name] = float(np.var(np.asarray(state.position), axis=0).mean())
    assert spreads["sliced"] == pytest.approx(1, abs=0.1)
    assert spreads["whole"] < 0.8


def test_particles_can_be_vmapped_and_differentiated():
    """Two sets of particles at once; a loss for one's own density by the gradient of the discrepancy."""
    sampler = sliced_svgd(lambda x, scale: -scale * x @ x / 2, SGD)

    def loss(scale):
        return sliced_ksd(X, lambda x: -scale * x @ x / 2, statistic="v").value

    def run(x):
        step = lambda x, scale: sampler.step(KEY, sampler.init(x), scale)[0].position  # noqa: E731
        many = jax.vmap(step)(x, jnp.array([1.0, 2.0]))
        return many, step(x[1], jnp.array(2.0)), jax.grad(loss)(jnp.array(3.0))

    many, alone, slope = eqx.filter_jit(run)(jnp.stack([X, X]))
    np.testing.assert_allclose(many[1], alone, atol=1e-6)
    assert float(slope) > 0  # 3 is too large for draws of N(0, I)
