"""What holds on average: no bias, the variance of the formulas, and the baselines' bias as the power of each test.

Tolerances are standard errors of the very sample: 4.5 of them, beyond which chance falls about once in 100,000 numbers.
Keys are fixed, so a test that passes goes on passing.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gradients_reference import QUICK, THETA, Tank, pes_by_truncation, tank_gradient
from scipy import stats

from laureate.gradients import (
    GPES,
    AnalyticPES,
    FullES,
    NoiseReuseES,
    PersistentES,
    TruncatedBackprop,
    TruncatedES,
    train,
)

LIMIT = 4.5
# Every number of the other estimators is looked at in test_gradients_exact.py, so that here one of them runs always.
SLOW = pytest.mark.slow


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def sums(estimator, theta, number, repeats, change=None):
    """Independent sums of ``number`` estimates with θ held still: [repeats, P]; ``change`` may alter the settings."""
    key, theta = jax.random.key(7), jnp.asarray(theta)
    return np.asarray(compiled_sums(key, estimator, theta, number, repeats, change or unchanged))


@functools.partial(jax.jit, static_argnums=(3, 4, 5), compiler_options=QUICK)
def compiled_sums(key, estimator, theta, number, repeats, change):
    """Once for estimators that differ in numbers only."""

    def one(key):
        def step(state, i):
            gradient, state, _ = change(estimator, i).step(jax.random.fold_in(key, i), theta, state)
            return state, gradient

        return jax.lax.scan(step, estimator.init(key, theta), jnp.arange(number))[1].sum(axis=0)

    return jax.vmap(one)(jax.random.split(key, repeats))


def unchanged(estimator, i):
    return estimator


def deviations(sample, exact):
    """By how many standard errors the mean is off, in each coordinate."""
    return (sample.mean(axis=0) - exact) / (sample.std(axis=0, ddof=1) / np.sqrt(len(sample)))


def hotelling(sample, exact):
    """The p-value of Hotelling's T² for mean = exact."""
    n, p = sample.shape
    error = sample.mean(axis=0) - exact
    t2 = n * error @ np.linalg.solve(np.cov(sample.T), error)
    return stats.f.sf((n - p) / (p * (n - 1)) * t2, p, n - p)


CUT = {"num_pairs": 1, "truncation": 3, "horizon": 12, "sigma": 0.4}


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (PersistentES, {}),
        pytest.param(GPES, {"noise_steps": 2}, marks=SLOW),
        pytest.param(NoiseReuseES, {}, marks=SLOW),
        pytest.param(AnalyticPES, {}, marks=SLOW),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_mean_over_an_episode_is_the_gradient(make, settings):
    """4,000 episodes against ∇ of the whole unroll, with a learned first state: Hotelling's T² at α = 0.001."""
    sample = sums(make(Tank(learned=0.5), **CUT, **settings), THETA, 4, 4000)
    assert hotelling(sample, tank_gradient(12, learned=0.5)) > 0.001


def test_the_same_test_rejects_truncated_es():
    sample = sums(TruncatedES(Tank(learned=0.5), **CUT), THETA, 4, 4000)
    assert hotelling(sample, tank_gradient(12, learned=0.5)) < 1e-12


@pytest.mark.slow
def test_a_reset_inside_a_truncation_is_unbiased_and_the_near_misses_are_not():
    """T = 7, K = 3: seven truncations hold three whole episodes. Wrong by the hundred standard errors otherwise.

    Of the plain algorithm, whose numbers are those of ``PersistentES`` (tests/gradients/test_gradients_exact.py).
    """
    exact, sigma = 3 * tank_gradient(7), 0.3
    noise = sigma * np.random.default_rng(0).normal(size=(7, 100_000, 2))
    assert np.abs(deviations(pes_by_truncation(noise, 3, 7, sigma).sum(axis=0), exact)).max() < LIMIT
    for rule in ("zero", "inclusive", "late"):
        wrong = pes_by_truncation(noise, 3, 7, sigma, rule).sum(axis=0)
        assert np.abs(deviations(wrong, exact)).max() > 50, rule


@pytest.mark.slow
def test_a_reset_inside_a_truncation_is_unbiased():
    ours = sums(PersistentES(Tank(), num_pairs=1, truncation=3, horizon=7, sigma=0.3), THETA, 7, 20000)
    assert np.abs(deviations(ours, 3 * tank_gradient(7))).max() < LIMIT


def test_sigma_may_change_inside_an_episode():
    """Each noise is weighted with its own 1/σ²: still unbiased (a common 1/σ² would not be)."""
    scales = jnp.asarray([0.2, 0.6, 0.3, 0.5])
    change = lambda estimator, i: eqx.tree_at(lambda e: e.sigma, estimator, scales[i])  # noqa: E731
    sample = sums(PersistentES(Tank(), **CUT), THETA, 4, 20000, change)
    assert np.abs(deviations(sample, tank_gradient(12))).max() < LIMIT


@pytest.mark.slow  # tests/gradients/test_gradients_exact.py looks at every number of both
@pytest.mark.parametrize("telescope", [True, "products"])
def test_only_the_last_loss_counts_when_telescoping(telescope):
    sample = sums(PersistentES(Tank(), **CUT, telescope=telescope), THETA, 4, 10000)
    assert np.abs(deviations(sample, tank_gradient(12, last=True))).max() < LIMIT
    assert np.abs(deviations(sample, tank_gradient(12))).max() > 20  # and it tells the two apart


PAIRS = 1000


class Mortal(eqx.Module):
    """Lives two steps, or one with probability ½ + θ/5; every step costs 1. So E[Σ L] = 3/2 − θ/5, smoothed or not."""

    def init(self, key, theta):
        return jnp.zeros((), jnp.int32)

    def step(self, key, theta, state):
        return state + 1, jnp.ones_like(theta), (state == 1) | (jax.random.uniform(key) < 0.5 + theta / 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "restart"),
    [
        (PersistentES, "inside"),
        pytest.param(PersistentES, "border", marks=pytest.mark.slow),
        pytest.param(NoiseReuseES, "inside", marks=pytest.mark.slow),
    ],
)
def test_ends_that_depend_on_theta_do_not_bias(make, restart):
    """Whoever dies of its noise must not hand it on: the next episode inside the truncation gets noise of its own.

    With the truncation's noise kept instead, a pair whose signs both died young has small noise: E[ε²] < σ².
    """
    estimator = make(Mortal(), num_pairs=PAIRS, truncation=4, horizon=None, sigma=0.5, restart=restart)
    theta = jnp.asarray(0.0)

    def block(state, b):
        def step(state, i):
            gradient, state, info = estimator.step(jax.random.key(i), theta, state)
            return state, (PAIRS * gradient, info.num_done)

        state, (gradients, ended) = jax.lax.scan(step, state, 20 * b + jnp.arange(20))
        return state, gradients.sum() / ended.sum()

    def run():
        return jax.lax.scan(block, estimator.init(jax.random.key(0), theta), jnp.arange(21))[1]

    sample = np.asarray(jax.jit(run, compiler_options=QUICK)())[1:]  # the first block still knows the common start
    assert abs(deviations(sample, -0.2)) < LIMIT
    assert LIMIT * sample.std() / np.sqrt(len(sample)) < 0.007  # so that the bias, 0.008, could not hide


class Slopes(eqx.Module):
    """L_t = Σ_{τ≤t} a_{tτ}·θ_τ with θ_τ the θ given at step τ: every slope chosen."""

    slopes: jax.Array

    def init(self, key, theta):
        return jnp.zeros((), jnp.int32), jnp.zeros(self.slopes.shape[1:])

    def step(self, key, theta, state):
        t, history = state
        history = history.at[t].set(theta)
        return (t + 1, history), jnp.sum(self.slopes[t] * history)


def pes_variance(slopes):
    """Σ_{t,u} [min(t,u) P ⟨a_t,a_u⟩ + x_t·x_u + x_tu·x_ut] − ‖g‖², one pair (section 2 of the notes)."""
    number, _, size = slopes.shape
    total = 0.0
    for t in range(number):
        for u in range(number):
            x_tu, x_ut = slopes[u, : t + 1].sum(axis=0), slopes[t, : u + 1].sum(axis=0)
            total += (min(t, u) + 1) * size * np.sum(slopes[t] * slopes[u])
            total += slopes[t].sum(axis=0) @ slopes[u].sum(axis=0) + x_tu @ x_ut
    return total - np.sum(slopes.sum(axis=(0, 1)) ** 2)


def slopes_of(kind, number=8, size=5):
    draw = np.random.default_rng(5)
    if kind == "all":  # every truncation feels all the past
        return draw.normal(size=(number, number, size)) * np.tri(number)[:, :, None]
    own = np.ones((number, size)) if kind == "repeat" else draw.normal(size=(number, size))
    return np.eye(number)[:, :, None] * own[None]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["all", "repeat", "random"])
def test_variance_of_pes_is_the_formulas(kind):
    slopes = slopes_of(kind)
    sample = sums(
        PersistentES(Slopes(jnp.asarray(slopes)), num_pairs=1, truncation=1, horizon=8, sigma=0.5),
        np.zeros(5),
        8,
        60_000,
    )
    check_variance(sample, slopes.sum(axis=(0, 1)), pes_variance(slopes))


def check_variance(sample, gradient, expected):
    squares = np.sum((sample - gradient) ** 2, axis=1)
    error = squares.std() / np.sqrt(len(squares))
    assert error < 0.02 * expected  # sharp enough to mean something
    assert abs(squares.mean() - expected) < LIMIT * error


@pytest.mark.slow
@pytest.mark.parametrize("make", [NoiseReuseES, FullES])
def test_variance_with_one_noise_an_episode_is_p_plus_one_times_the_gradient(make):
    slopes = slopes_of("random")
    estimator = make(Slopes(jnp.asarray(slopes)), num_pairs=1, truncation=1, horizon=8, sigma=0.5)
    number = 1 if make is FullES else 8
    sample = sums(estimator, np.zeros(5), number, 60_000)
    gradient = slopes.sum(axis=(0, 1))
    check_variance(sample, gradient, 6 * gradient @ gradient)


def test_the_numbers_of_the_notes():
    """M = 8, P = 5: PES 2.94‖g‖² when the truncations agree, 6‖g‖² for full ES; many times more when they do not."""
    agree, cancel = slopes_of("repeat"), slopes_of("random")
    ratio = lambda slopes: pes_variance(slopes) / np.sum(slopes.sum(axis=(0, 1)) ** 2)  # noqa: E731
    assert ratio(agree) == pytest.approx(2.9375)
    assert ratio(cancel) > 6


@pytest.mark.slow
def test_analytic_pes_has_less_variance_than_pes():
    plain = sums(PersistentES(Tank(), **CUT), THETA, 4, 4000)  # the programs of the first test
    analytic = sums(AnalyticPES(Tank(), **CUT), THETA, 4, 4000)
    ratio = analytic.var(axis=0).sum() / plain.var(axis=0).sum()
    assert ratio < 0.8


class Influence:
    """Tallec & Ollivier's task: x ← ½(I + shift) x + θ v with 10 entries +1 and 13 entries −1; L = ½ (x_1 − 1)²."""

    signs = jnp.where(jnp.arange(23) < 10, 1.0, -1.0)

    def init(self, key, theta):
        return jnp.ones(23, theta.dtype)

    def step(self, key, theta, state):
        shifted = jnp.concatenate([state[1:], jnp.zeros(1, state.dtype)])
        state = 0.5 * state + 0.5 * shifted + theta * self.signs.astype(state.dtype)
        return state, 0.5 * (state[0] - 1.0) ** 2


@pytest.mark.slow
def test_influence_balancing():
    """x_∞[1] = 2θ(2p − n), so θ* = −1/6: PES and NRES get there by steps of one, truncated methods run away."""
    task, theta = Influence(), jnp.asarray(0.5)
    state = task.init(None, theta)
    for _ in range(400):
        state, _ = task.step(None, theta, state)
    assert float(state[0]) == pytest.approx(2 * 0.5 * (20 - 23))

    def trained(estimator, updates=3000):
        return float(train(jax.random.key(1), estimator, optax.sgd(1e-4), theta, updates)[0])

    common = {"num_pairs": 250, "truncation": 1, "horizon": None, "sigma": 0.1}
    assert trained(PersistentES(task, **common)) == pytest.approx(-1 / 6, abs=1e-4)
    assert trained(TruncatedES(task, **common)) > 1
    assert trained(TruncatedBackprop(task, truncation=1, horizon=None)) > 1


def test_hysteresis_is_of_first_order_in_the_step_size():
    """With θ moving during an episode the estimate is off by O(outer step size): halve it, and half is left."""
    estimator = PersistentES(Tank(), num_pairs=50, truncation=2, horizon=20, sigma=0.1)

    @jax.jit
    def summed(rate):
        def step(carry, i):
            theta, state = carry
            gradient, state, _ = estimator.step(jax.random.key(i), theta, state)
            return (theta - rate * gradient / jnp.linalg.norm(gradient), state), gradient

        theta = jnp.asarray(THETA)
        _, gradients = jax.lax.scan(step, (theta, estimator.init(jax.random.key(0), theta)), jnp.arange(10))
        return gradients.sum(axis=0)

    still, one, half = summed(0.0), summed(2e-3), summed(1e-3)
    assert np.linalg.norm(one - still) / np.linalg.norm(half - still) == pytest.approx(2, rel=0.05)
