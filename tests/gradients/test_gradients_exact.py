"""What must hold to the last digit: plain re-implementations, closed forms, and identities between the estimators."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients_reference import (
    QUICK,
    THETA,
    A,
    B,
    Q,
    Tank,
    noise_of,
    pes_by_truncation,
    run_steps,
    step_keys,
    tank_gradient,
    tank_step,
    worker_by_truncation,
)
from numpy.testing import assert_allclose

from laureate.gradients import (
    GPES,
    RTRL,
    AnalyticPES,
    FullES,
    NoiseReuseES,
    PersistentES,
    TruncatedBackprop,
    TruncatedES,
    full_unroll_loss,
    pairs,
)

SIGMA, PAIRS = 0.3, 6
ROUNDING = 1e-13  # double precision; two programs of the same equation may add in another order


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def drawn(number, sigma=SIGMA):
    return np.stack([noise_of(key, PAIRS, THETA, sigma) for key in step_keys(number)])


@pytest.mark.parametrize(("horizon", "truncation"), [(7, 3), (6, 3), (4, 1)])
@pytest.mark.parametrize("learned", [0.0, 0.7])
def test_pes_is_the_plain_algorithm(horizon, truncation, learned):
    """Resets inside a truncation included: exclusive cumsum, ξ = ε for what began inside, init from θ ± ε."""
    estimator = PersistentES(
        Tank(learned=learned), num_pairs=PAIRS, truncation=truncation, horizon=horizon, sigma=SIGMA
    )
    gradients, _, infos = run_steps(estimator, THETA, 8)
    expected = pes_by_truncation(drawn(8), truncation, horizon, SIGMA, learned=learned)
    assert_allclose(gradients, expected.mean(axis=1), rtol=1e-11)
    assert_allclose(infos.num_done.sum(), 8 * truncation // horizon * PAIRS)


@pytest.mark.parametrize("rule", ["zero", "inclusive", "late"])
def test_the_wrong_rules_are_told_apart(rule):
    expected = pes_by_truncation(drawn(8), 3, 7, SIGMA).mean(axis=1)
    wrong = pes_by_truncation(drawn(8), 3, 7, SIGMA, rule).mean(axis=1)
    assert np.abs(wrong - expected).max() > 0.05 * np.abs(expected).max()


def test_gradient_of_a_scalar_system_in_closed_form():
    """s ← a s + θ, L = ½ s_T²: dL/dθ = s_T (1 − a^T)/(1 − a)."""
    a, horizon, theta = 0.8, 6, 0.4

    class Scalar:
        def init(self, key, theta):
            return jnp.ones(())

        def step(self, key, theta, state):
            state = a * state + theta
            return state, 0.5 * state**2

    s = a**horizon + theta * (1 - a**horizon) / (1 - a)
    exact = s * (1 - a**horizon) / (1 - a)
    by_hand = jax.grad(lambda x: full_unroll_loss(jax.random.key(0), Scalar(), x, horizon, telescope=True))(theta)
    assert_allclose(by_hand, exact, rtol=1e-12)
    for estimator in (
        RTRL(Scalar(), truncation=2, horizon=horizon, telescope=True),
        TruncatedBackprop(Scalar(), truncation=horizon, horizon=horizon, telescope=True),
    ):
        gradients, _, _ = run_steps(estimator, theta, horizon // estimator.truncation)
        assert_allclose(gradients.sum(), exact, rtol=1e-12)


def test_pes_over_a_whole_episode_is_antithetic_es():
    """Given the same noise; the estimators are the same program up to the last bits of rounding."""
    common = {"num_pairs": PAIRS, "truncation": 7, "horizon": 7, "sigma": SIGMA}
    pes, state, _ = run_steps(PersistentES(Tank(), **common), THETA, 3)
    for estimator in (FullES(Tank(), **common), NoiseReuseES(Tank(), **common)):
        assert_allclose(run_steps(estimator, THETA, 3)[0], pes, rtol=ROUNDING)
    noise = drawn(3)
    assert_allclose(state.pairs.score, noise[2] / SIGMA**2, rtol=ROUNDING)
    for eps, gradient in zip(noise, pes, strict=True):
        loss = {+1: np.zeros(PAIRS), -1: np.zeros(PAIRS)}
        for sign in loss:
            s = np.broadcast_to(np.array([1.0, -0.5]), eps.shape)
            for _ in range(7):
                s, step_loss = tank_step(THETA + sign * eps, s)
                loss[sign] = loss[sign] + step_loss
        assert_allclose(gradient, ((loss[1] - loss[-1])[:, None] * eps).mean(0) / (2 * SIGMA**2), rtol=1e-11)


class Noisy(eqx.Module):
    """Draws from its keys in init and in every step: what the two signs must share."""

    def init(self, key, theta):
        return jax.random.uniform(key, (2,)) + theta

    def step(self, key, theta, state):
        state = 0.9 * state + theta * jax.random.uniform(key, (2,))
        return state, jnp.sum(state**2)


def test_the_first_truncation_is_truncated_es():
    """Also with a learned, random first state; afterwards the two part."""
    common = {"num_pairs": PAIRS, "truncation": 2, "horizon": 6, "sigma": SIGMA}
    pes, truncated = (run_steps(E(Noisy(), **common), THETA, 4)[0] for E in (PersistentES, TruncatedES))
    assert_allclose(pes[0], truncated[0], rtol=ROUNDING)
    assert_allclose(pes[3], truncated[3], rtol=ROUNDING)  # the next episode's first
    assert np.abs(pes[1] - truncated[1]).max() > 1e-3


def test_truncated_es_is_the_plain_algorithm():
    """All particles from one state, which θ itself advances."""
    estimator = TruncatedES(Tank(), num_pairs=PAIRS, truncation=3, horizon=9, sigma=SIGMA)
    gradients, _, _ = run_steps(estimator, THETA, 3)
    center = np.array([[1.0, -0.5]])
    for eps, gradient in zip(drawn(3), gradients, strict=True):
        plus = minus = np.broadcast_to(center, eps.shape)
        difference = np.zeros(PAIRS)
        for _ in range(3):
            plus, loss_plus = tank_step(THETA + eps, plus)
            minus, loss_minus = tank_step(THETA - eps, minus)
            center, _ = tank_step(THETA[None], center)
            difference = difference + loss_plus - loss_minus
        assert_allclose(gradient, (difference[:, None] * eps).mean(0) / (2 * SIGMA**2), rtol=1e-11)


def test_swapping_the_signs_changes_nothing(monkeypatch):
    estimator = PersistentES(Tank(learned=0.3), num_pairs=PAIRS, truncation=3, horizon=7, sigma=SIGMA)
    before, _, _ = run_steps(estimator, THETA, 8)
    draw = pairs.draw_noise
    monkeypatch.setattr(pairs, "draw_noise", lambda *args: jax.tree.map(jnp.negative, draw(*args)))
    after, _, _ = run_steps(estimator, THETA, 8, anew=True)
    assert_allclose(before, after, rtol=ROUNDING)


def test_a_constant_is_not_seen_and_a_factor_is_a_factor():
    """loss + c: unchanged up to rounding; 2·loss: exactly twice the gradient, so nothing shapes or ranks the losses."""
    plain, shifted, doubled = (
        run_steps(PersistentES(tank, num_pairs=PAIRS, truncation=3, horizon=7, sigma=SIGMA), THETA, 8)[0]
        for tank in (Tank(), Tank(offset=5.0), Tank(scale=2.0))
    )
    assert_allclose(shifted, plain, rtol=1e-11)
    assert_allclose(doubled, 2 * plain, rtol=ROUNDING)


def test_reuse_adds_up_to_full_es_over_an_episode():
    """NRES ≡ GPES(None), and its steps of one episode sum to full ES with the same noise."""
    common = {"num_pairs": PAIRS, "truncation": 2, "horizon": 8, "sigma": SIGMA}
    reuse, _, _ = run_steps(NoiseReuseES(Tank(learned=0.4), **common), THETA, 4)
    general, _, _ = run_steps(GPES(Tank(learned=0.4), **common, noise_steps=None), THETA, 4)
    full, _, _ = run_steps(FullES(Tank(learned=0.4), **common), THETA, 1)
    assert_allclose(reuse, general, rtol=ROUNDING)
    assert_allclose(reuse.sum(axis=0), full[0], rtol=1e-11)


@pytest.mark.parametrize("horizon", [6, pytest.param(None, marks=pytest.mark.slow)])
def test_gpes_with_noise_a_truncation_is_pes(horizon):
    common = {"num_pairs": PAIRS, "truncation": 3, "horizon": horizon, "sigma": SIGMA}
    pes, _, _ = run_steps(PersistentES(Tank(), **common), THETA, 5)
    general, _, _ = run_steps(GPES(Tank(), **common, noise_steps=3), THETA, 5)
    assert_allclose(pes, general, rtol=ROUNDING)


@pytest.mark.parametrize("noise_steps", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_truncation_of_gpes_is_only_how_often_it_reports(noise_steps, monkeypatch):
    """The same noise for the same part of an episode, cut into other truncations: the same sum."""
    table = jnp.asarray(np.random.default_rng(1).normal(size=(8, PAIRS, 2)))
    now, redraw = {}, pairs.redraw

    def redraw_from_table(est, keys, theta, held, due):
        now["noise"] = table[jnp.where(held.episode.over, 0, held.episode.clock)[0] // noise_steps]
        return redraw(est, keys, theta, held, due)

    monkeypatch.setattr(pairs, "redraw", redraw_from_table)
    monkeypatch.setattr(pairs, "draw_noise", lambda keys, theta: now["noise"])
    sums = []
    for truncation in (1, 8) if noise_steps == 2 else (1, 2, 8):
        settings = {"num_pairs": PAIRS, "truncation": truncation, "horizon": 8, "sigma": SIGMA}
        estimator = GPES(Tank(), **settings, noise_steps=noise_steps)
        sums.append(run_steps(estimator, THETA, 8 // truncation, anew=True)[0].sum(axis=0))
    assert_allclose(sums[1:], [sums[0]] * (len(sums) - 1), rtol=1e-11)


@pytest.mark.parametrize("other", [{"restart": "border"}, {"horizon": None}, {"horizon": (6, 6)}])
def test_ends_inside_and_ends_on_borders_agree_where_they_meet(other):
    """Whoever ends the episodes, at whichever place in the code: the same numbers when K divides T."""
    common = {"num_pairs": PAIRS, "truncation": 3, "horizon": 6, "sigma": SIGMA}
    border, _, _ = run_steps(PersistentES(Tank(learned=0.5), **common), THETA, 5)
    tank = Tank(learned=0.5, ends=6) if "horizon" not in other or other["horizon"] is None else Tank(learned=0.5)
    same, _, infos = run_steps(PersistentES(tank, **(common | other)), THETA, 5)
    assert_allclose(same, border, rtol=1e-11)
    assert infos.num_done.tolist() == [0, PAIRS, 0, PAIRS, 0]


@pytest.mark.parametrize("number", [pytest.param(4, marks=pytest.mark.slow), 5])
def test_products_telescope_to_the_last_loss_times_its_noise(number):
    """Σ_t g_t = ξ_M (L_M⁺ − L_M⁻)/(2σ²), exactly, pair by pair."""
    estimator = PersistentES(Tank(), num_pairs=1, truncation=2, horizon=10, sigma=SIGMA, telescope="products")
    gradients, state, _ = run_steps(estimator, THETA, number)
    level = state.pairs.episode.previous[0]
    assert_allclose(gradients.sum(axis=0), state.pairs.score[0] * (level[0] - level[1]) / 2, rtol=1e-11)


def test_the_two_forms_of_telescoping_differ_by_the_old_level_times_the_new_noise():
    common = {"num_pairs": 1, "truncation": 2, "horizon": 10, "sigma": SIGMA}
    differences, _, _ = run_steps(PersistentES(Tank(), **common, telescope=True), THETA, 3)
    products, _, _ = run_steps(PersistentES(Tank(), **common, telescope="products"), THETA, 3)
    _, state, _ = run_steps(PersistentES(Tank(), **common, telescope=True), THETA, 2)
    level = state.pairs.episode.previous[0]
    last_noise = noise_of(step_keys(3)[2], 1, THETA, SIGMA)[0]
    expected = (level[0] - level[1]) * last_noise / (2 * SIGMA**2)
    assert_allclose(products[2] - differences[2], expected, rtol=1e-9)
    assert_allclose(products[0], differences[0], rtol=ROUNDING)


def test_telescoping_begins_every_episode_from_zero():
    """An episode a step: Σ_k (L_k − L_{k−1}) is its own last level, and not that minus the last episode's."""
    estimator = PersistentES(Tank(), num_pairs=3, truncation=4, horizon=4, sigma=SIGMA, telescope=True)
    _, state, infos = run_steps(estimator, THETA, 3)
    level = state.pairs.episode.previous
    assert_allclose(infos.difference[-1], level[:, 0] - level[:, 1], rtol=1e-11)
    assert np.abs(level[:, 0] - level[:, 1]).min() > 0


@pytest.mark.parametrize("make", [RTRL, TruncatedBackprop])
@pytest.mark.parametrize(
    ("horizon", "truncation", "telescope"),
    [
        (5, 2, True),
        pytest.param(6, 2, False, marks=pytest.mark.slow),
        pytest.param(6, 2, True, marks=pytest.mark.slow),
        pytest.param(7, 3, False, marks=pytest.mark.slow),
    ],
)
def test_workers_are_the_plain_algorithm(make, horizon, truncation, telescope):
    """Truncation by truncation over several episodes, with ends inside a truncation and a learned first state."""
    estimator = make(Tank(learned=0.7), truncation=truncation, horizon=horizon, telescope=telescope, num_workers=2)
    gradients, _, infos = run_steps(estimator, THETA, 8)
    expected, levels, ended = worker_by_truncation(8, truncation, horizon, telescope, 0.7, make is RTRL)
    assert_allclose(gradients, expected, rtol=1e-11)
    assert_allclose(infos.loss, levels, rtol=1e-11)
    assert infos.num_done.tolist() == [2 * number for number in ended]
    assert infos.cost.tolist() == [2 * truncation] * 8


@pytest.mark.parametrize("telescope", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_rtrl_is_exact(telescope):
    """Over whole episodes, with a learned first state."""
    estimator = RTRL(Tank(learned=0.7), truncation=2, horizon=6, telescope=telescope)
    gradients, _, _ = run_steps(estimator, THETA, 6)
    exact = tank_gradient(6, learned=0.7, last=telescope)
    for episode in (gradients[:3], gradients[3:]):
        assert_allclose(episode.sum(axis=0), exact, rtol=1e-11)


def test_backprop_through_the_whole_episode_is_exact_and_through_less_is_not():
    common = {"horizon": 6}
    exact = tank_gradient(6, learned=0.7)
    whole, _, _ = run_steps(TruncatedBackprop(Tank(learned=0.7), truncation=6, **common), THETA, 1)
    parts, _, _ = run_steps(TruncatedBackprop(Tank(learned=0.7), truncation=2, **common), THETA, 3)
    assert_allclose(whole[0], exact, rtol=1e-11)
    assert np.linalg.norm(parts.sum(axis=0) - exact) > 0.2 * np.linalg.norm(exact)


@pytest.mark.parametrize(("make", "ends"), [(TruncatedBackprop, 0), (RTRL, 4)])
def test_workers_begin_inside_a_truncation(make, ends):
    """A new episode inside counts from its own init(θ); over several whole episodes the sum is known."""
    tank = Tank(learned=0.7, ends=ends)
    estimator = make(tank, truncation=12, horizon=None if ends else 12)
    gradients, _, infos = run_steps(estimator, THETA, 1)
    episodes = 12 // (ends or 12)
    assert_allclose(gradients[0] / episodes, tank_gradient(ends or 12, learned=0.7), rtol=1e-11)
    assert infos.num_done[0] == episodes


class Filled(eqx.Module):
    """s ← s + data, L = (θ₁ + θ₂) s: linear in θ, so that every pair's difference is known."""

    def init(self, key, theta):
        return jnp.zeros((), theta.dtype)

    def step(self, key, theta, state, batch):
        return state + batch, jnp.sum(theta) * (state + batch)


def test_the_centre_of_truncated_es_has_the_data_of_the_first_pair():
    """T = 4, K = 2, an episode and a half: a pair's difference is 2 (ε₁ + ε₂) times the sum of its states."""
    data = np.random.default_rng(0).uniform(1, 2, size=(3, 2, PAIRS))
    estimator = TruncatedES(Filled(), num_pairs=PAIRS, truncation=2, horizon=4, sigma=SIGMA, batches_per_pair=True)

    @jax.jit
    def run(key, theta, data):
        def step(state, given):
            index, batch = given
            gradient, state, _ = estimator.step(jax.random.fold_in(key, index), theta, state, batch)
            return state, gradient

        return jax.lax.scan(step, estimator.init(key, theta), (jnp.arange(3), data))[1]

    gradients = run(jax.random.key(0), jnp.asarray(THETA), data)
    starts = [0.0, data[0, :, 0].sum(), 0.0]
    for eps, start, batch, gradient in zip(drawn(3), starts, data, gradients, strict=True):
        states = start + np.cumsum(batch, axis=0)
        assert_allclose(gradient, ((eps.sum(1) * states.sum(0))[:, None] * eps).mean(0) / SIGMA**2, rtol=1e-9)


class Kink(eqx.Module):
    """L = data θ + 1; where the data are negative the loss is finite, and its slope is not."""

    def init(self, key, theta):
        return jnp.zeros(())

    def step(self, key, theta, state, batch):
        return state + 1.0, batch * theta + jnp.sqrt(jnp.where(batch < 0, 1.0 + 0.0 * theta - 1.0, 1.0))


@pytest.mark.parametrize("make", [TruncatedBackprop, RTRL])
def test_workers_whose_slope_is_not_finite_are_left_out_of_gradient_and_loss(make):
    """T = 5, K = 2, three workers with data of their own: the third is broken in the second step, and comes back."""
    data = np.random.default_rng(0).uniform(1, 2, size=(3, 2, 3))
    data[1, 0, 2] = -1.0
    estimator = make(Kink(), truncation=2, horizon=5, num_workers=3, batches_per_worker=True)

    @jax.jit
    def run(key, theta, data):
        def step(state, given):
            index, batch = given
            gradient, state, info = estimator.step(jax.random.fold_in(key, index), theta, state, batch)
            return state, (gradient, info)

        return jax.lax.scan(step, estimator.init(key, theta), (jnp.arange(3), data))[1]

    gradients, infos = run(jax.random.key(0), jnp.asarray(0.5), data)
    kept = [3, 2, 3]
    assert_allclose(gradients, [data[i, :, :n].sum() / n for i, n in enumerate(kept)], rtol=1e-11)
    assert_allclose(infos.loss, [0.5 * data[i, :, :n].mean() + 1 for i, n in enumerate(kept)], rtol=1e-11)
    assert infos.num_nonfinite.tolist() == [0, 1, 0]
    assert infos.num_done.tolist() == [0, 0, 3]


class Heap(eqx.Module):
    """s ← s + θ, L = s."""

    def init(self, key, theta):
        return jnp.zeros((), theta.dtype)

    def step(self, key, theta, state):
        return state + theta, state + theta


def test_analytic_pes_has_the_noise_of_the_past_alone():
    """Of sums, a = 1: the first step has no noise at all, the second ε₁ (2 ε₁ + 2 ε₂ − 2 ε₂)/(2σ²) of every pair."""
    estimator = AnalyticPES(Heap(), num_pairs=3, truncation=1, horizon=2, sigma=SIGMA)

    @partial(jax.jit, compiler_options=QUICK)
    def run(key):
        def step(state, key):
            gradient, state, info = estimator.step(key, 0.5, state)
            return state, (gradient, info.noise_rms)

        return jax.lax.scan(step, estimator.init(key, 0.5), jax.random.split(key, 3))[1]

    gradients, noise = run(jax.random.key(0))
    assert_allclose(gradients, [1, 1 + noise[0] ** 2, 1], rtol=1e-6)  # the report is in single precision


def test_analytic_pes_is_the_plain_algorithm():
    """g_t = a + 1/(2Nσ²) Σ ξ_{t−1} (L⁺ − L⁻ − 2 ε·a), with ξ_{t−1} free of ε_t."""
    estimator = AnalyticPES(Tank(), num_pairs=PAIRS, truncation=2, horizon=6, sigma=SIGMA)
    gradients, _, _ = run_steps(estimator, THETA, 4)
    center, xi = np.array([1.0, -0.5]), np.zeros((PAIRS, 2))
    plus = minus = np.broadcast_to(center, (PAIRS, 2))
    for t, (eps, gradient) in enumerate(zip(drawn(4), gradients, strict=True)):
        if t == 3:
            center, xi = np.array([1.0, -0.5]), np.zeros((PAIRS, 2))
            plus = minus = np.broadcast_to(center, (PAIRS, 2))
        one = A @ center + B @ THETA
        two = A @ one + B @ THETA
        a = B.T @ Q @ one + (A @ B + B).T @ Q @ two  # of ½ sᵀ Q s after one step and after two
        difference = np.zeros(PAIRS)
        for _ in range(2):
            plus, loss_plus = tank_step(THETA + eps, plus)
            minus, loss_minus = tank_step(THETA - eps, minus)
            center = tank_step(THETA[None], center[None])[0][0]
            difference = difference + loss_plus - loss_minus
        expected = a + (xi * (difference - 2 * eps @ a)[:, None]).mean(0) / (2 * SIGMA**2)
        assert_allclose(gradient, expected, rtol=1e-10)
        xi = xi + eps


class Sum(eqx.Module):
    """A loss of θ = {a, b}, each leaf in units of its own."""

    units: dict

    def init(self, key, theta):
        return jnp.zeros(())

    def step(self, key, theta, state):
        state = state + jnp.sin(self.units["a"] * theta["a"]) + jnp.sum((self.units["b"] * theta["b"]) ** 2)
        return state, state**2


def test_sigma_by_leaf_scales_each_leaf():
    """A tree of sigmas, scalars and arrays, is the scalar case in scaled coordinates."""
    theta = {"a": np.asarray(0.3), "b": np.asarray([0.1, -0.2])}
    one, units = ({"a": np.asarray(a), "b": np.asarray(b)} for a, b in ((1.0, [1.0, 1.0]), (2.0, [3.0, 4.0])))

    def gradient(units, theta, sigma):
        estimator = PersistentES(Sum(units), num_pairs=PAIRS, truncation=2, horizon=4, sigma=sigma)
        return run_steps(estimator, theta, 2)[0]

    whole = gradient(one, theta, SIGMA)
    same = gradient(one, theta, {"a": SIGMA, "b": np.full(2, SIGMA)})
    assert_allclose(same["b"], whole["b"], rtol=ROUNDING)
    scaled = gradient(units, {name: theta[name] / units[name] for name in theta}, SIGMA)
    direct = gradient(one, theta, {"a": 2 * SIGMA, "b": SIGMA * units["b"]})
    assert_allclose(2 * direct["a"], scaled["a"], rtol=1e-11)
    assert_allclose(units["b"] * direct["b"], scaled["b"], rtol=1e-11)
