"""What the two signs of a pair share, when noise is drawn, how episodes begin and end: seen by an unroll that logs."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laureate._core import Status
from laureate.gradients import (
    GPES,
    RTRL,
    FullES,
    NoiseReuseES,
    PersistentES,
    Sharded,
    TruncatedBackprop,
    TruncatedES,
)
from laureate.gradients.episodes import NO_END, draw_length
from laureate.gradients.noise import Shard, pair_keys
from laureate.gradients.workers import center_key

QUICK = {"xla_backend_optimization_level": 0}
ROOM = 24


class Diary(eqx.Module):
    """Remembers what it was given: θ and key of init, and θ, key and data of every step of the episode."""

    def init(self, key, theta):
        pages = jnp.zeros(ROOM)
        return {"start": theta, "init": bits(key), "t": 0, "theta": pages, "key": pages, "data": pages}

    def step(self, key, theta, state, batch=0.0):
        t = state["t"]
        log = {"theta": theta, "key": bits(key), "data": jnp.asarray(batch, jnp.float32)}
        pages = {name: state[name].at[t].set(value) for name, value in log.items()}
        return {**state, **pages, "t": t + 1}, theta**2


def bits(key):
    """A key as one float."""
    return jax.random.uniform(key)


STEPS = 6
options: dict[str, Any] = {"compiler_options": QUICK}


@functools.partial(eqx.filter_jit, **options)
def states_and_infos(estimator, theta, batches):
    """Those of STEPS steps, or of as many as there are batches, stacked."""

    def step(state, given):
        seed, data = given
        _, state, info = estimator.step(jax.random.key(seed), theta, state, data)
        return state, (eqx.filter(state.pairs or state.center, is_number), info)

    seeds = 10 + jnp.arange(STEPS if batches is None else len(batches))
    return jax.lax.scan(step, estimator.init(jax.random.key(0), theta), (seeds, batches))[1]


def run(estimator, number, theta=0.7, batches=None):
    """The states after each of ``number`` steps and the infos, as NumPy; estimators of one kind share a program."""
    stacked = jax.tree.map(np.asarray, states_and_infos(estimator, theta, batches))  # pyright: ignore[reportCallIssue]
    each = [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(number)]
    return [states for states, _ in each], [infos for _, infos in each]


def is_number(leaf):
    return eqx.is_array(leaf) and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def test_both_signs_share_keys_and_data_and_no_two_pairs_do():
    batches = np.arange(36.0).reshape(3, 4, 3)
    common = {"num_pairs": 3, "truncation": 4, "horizon": 8, "sigma": 0.1}
    states, _ = run(PersistentES(Diary(), **common, batches_per_pair=True), 3, batches=batches)
    for number, state in enumerate(states):
        inner = state.episode.inner
        for name in ("init", "key", "data"):
            assert_array_equal(inner[name][:, 0], inner[name][:, 1])
        assert len(np.unique(inner["init"])) == 3
        steps = 4 if number != 1 else 8
        assert len(np.unique(inner["key"][:, 0, :steps])) == 3 * steps  # a key of its own for every pair and step
    assert_array_equal(states[1].episode.inner["data"][:, 0, :8], np.concatenate(batches[:2]).T)


class Given(eqx.Module):
    """The loss is what the step was given, whatever θ is."""

    def init(self, key, theta):
        return jnp.zeros(())

    def step(self, key, theta, state, batch):
        return state, batch + 0.0 * theta


def test_data_of_a_pair_are_the_same_for_both_signs():
    estimator = PersistentES(Given(), num_pairs=3, truncation=2, horizon=2, sigma=0.1, batches_per_pair=True)
    batches = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], np.float32)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def step(key):
        return estimator.step(key, 0.7, estimator.init(key, 0.7), batches)[2]

    info = step(jax.random.key(0))
    assert_array_equal(info.difference, 0)
    assert float(info.loss) == batches.mean()


def test_shared_batches_reach_everybody_in_order():
    common = {"num_pairs": 2, "truncation": 3, "horizon": 6, "sigma": 0.1}
    states, _ = run(PersistentES(Diary(), **common), 2, batches=np.arange(6.0).reshape(2, 3))
    assert_array_equal(states[1].episode.inner["data"][..., :6], np.broadcast_to(np.arange(6.0), (2, 2, 6)))


def noises(states, number):
    """ε of every episode step, seen from both signs."""
    theta = states.episode.inner["theta"][..., :number]
    assert_allclose(theta[:, 0] - 0.7, 0.7 - theta[:, 1], atol=1e-6)
    return theta[:, 0] - np.float32(0.7)


@pytest.mark.parametrize(
    ("estimator", "changes"),
    [
        (PersistentES(Diary(), num_pairs=3, truncation=4, horizon=12, sigma=0.1), (4, 8)),
        (NoiseReuseES(Diary(), num_pairs=3, truncation=4, horizon=12, sigma=0.1), ()),
        pytest.param(
            GPES(Diary(), num_pairs=3, truncation=4, horizon=12, sigma=0.1, noise_steps=6), (6,), marks=pytest.mark.slow
        ),
        (GPES(Diary(), num_pairs=3, truncation=4, horizon=12, sigma=0.1, noise_steps=3), (3, 6, 9)),
        (GPES(Diary(), num_pairs=3, truncation=4, horizon=11, sigma=0.1, noise_steps=5), (5, 10)),
    ],
    ids=["pes", "nres", "gpes-6", "gpes-3", "gpes-5-unaligned"],
)
def test_when_noise_is_drawn(estimator, changes):
    """Once a truncation for PES, once an episode for NRES, every ``noise_steps`` for GPES; anew with every episode."""
    states, _ = run(estimator, 4)
    number = estimator.horizon - (estimator.horizon % 4 and 3)
    eps = noises(states[2] if estimator.horizon == 12 else states[1], number if estimator.horizon == 12 else 8)
    seen = tuple(np.flatnonzero(np.abs(np.diff(eps, axis=1)).max(axis=0) > 1e-6) + 1)
    assert seen == tuple(c for c in changes if c < eps.shape[1])
    later = noises(states[3], 1)
    assert np.abs(later[:, 0] - eps[:, 0]).min() > 1e-6  # the next episode's noise is another


def test_gpes_draws_inside_a_truncation_where_an_episode_ends_there():
    """T = 11, K = 4: the second episode begins at the last step of the third truncation, with its own noise."""
    estimator = GPES(Diary(), num_pairs=3, truncation=4, horizon=11, sigma=0.1, noise_steps=5)
    states, infos = run(estimator, 4)
    assert [int(info.num_done) for info in infos] == [0, 0, 3, 0]
    eps = noises(states[3], 5)
    assert np.abs(np.diff(eps, axis=1)).max() < 1e-6
    assert_allclose(eps[:, 0], states[3].noise, atol=1e-6)


def test_pairs_out_of_step_draw_when_their_own_noise_is_due():
    """phase="random": whoever else draws, a pair's noise changes at every third of its own steps; ξ is their sum."""
    estimator = GPES(Diary(), num_pairs=12, truncation=4, horizon=12, sigma=0.1, noise_steps=3, phase="random")
    states, _ = run(estimator, 6)
    for state in states[1:]:
        assert len(np.unique(state.episode.clock)) > 1
        for pair, clock in enumerate(state.episode.clock):
            eps = state.episode.inner["theta"][pair, 0, :clock] - np.float32(0.7)
            drawn = eps[::3]
            assert_allclose(eps, np.repeat(drawn, 3)[:clock], atol=1e-6)
            assert len(np.unique(drawn)) == len(drawn)
            assert_allclose(state.score[pair], drawn.sum() / 0.1**2, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("truncation", [1, 2])
def test_the_centre_has_a_key_that_no_pair_may_have(truncation):
    estimator = TruncatedES(Diary(), num_pairs=3, truncation=truncation, horizon=4, sigma=0.1)
    draws, shard = np.arange(2 * truncation), Shard(jnp.arange(3), None)

    @jax.jit
    def keys(key):
        pairs = jax.vmap(lambda draw: jax.random.key_data(pair_keys(key, 3, shard, draw)))(draws)
        return jax.random.key_data(center_key(estimator, key)), pairs.reshape(-1, 2)

    centre, pairs = map(np.asarray, keys(jax.random.key(0)))
    assert len(np.unique(np.vstack([centre, pairs]), axis=0)) == 1 + 3 * 2 * truncation


def test_two_shards_together_are_the_whole():
    """An axis of vmap in place of devices, of which tests/gradients/test_sharding.py takes four."""
    estimator = PersistentES(Diary(), num_pairs=6, truncation=2, horizon=4, sigma=0.1)
    mesh: Any = jax.sharding.AbstractMesh((2,), ("pairs",))
    first, second = jax.random.key(0), jax.random.key(1)

    def on_a_device(_):
        shard = Sharded(estimator, mesh)._shard()
        state = estimator.local_init(first, jnp.asarray(0.7), shard)
        return estimator.local_step(second, jnp.asarray(0.7), state, None, shard)[::2]

    @jax.jit
    def both():
        whole = estimator.step(second, 0.7, estimator.init(first, 0.7))[::2]
        return whole, jax.vmap(on_a_device, axis_name="pairs")(jnp.arange(2))

    (gradient, info), (parts, infos) = both()
    assert_allclose(parts, [gradient] * 2, rtol=1e-5)
    assert_allclose(infos.difference.ravel(), info.difference, rtol=1e-5)
    for name in ("loss", "cost", "noise_rms"):
        assert_allclose(getattr(infos, name), [getattr(info, name)] * 2, rtol=1e-5)


def test_the_first_state_is_made_from_the_perturbed_parameters():
    states, _ = run(PersistentES(Diary(), num_pairs=3, truncation=4, horizon=8, sigma=0.1), 1)
    inner = states[0].episode.inner
    assert_array_equal(inner["start"], inner["theta"][..., 0])
    assert np.abs(inner["start"] - 0.7).min() > 1e-4


def test_every_particle_keeps_its_own_state():
    states, _ = run(PersistentES(Diary(), num_pairs=3, truncation=4, horizon=8, sigma=0.1), 2)
    assert len(np.unique(states[1].episode.inner["theta"][..., 0])) == 6


def test_truncated_es_keeps_one_state_that_theta_advances():
    states, infos = run(TruncatedES(Diary(), num_pairs=3, truncation=4, horizon=8, sigma=0.1), 2)
    assert_allclose(states[1].inner["theta"][:8], 0.7, atol=1e-7)
    assert states[1].inner["t"] == 8
    assert int(infos[0].cost) == 7 * 4


def test_random_phase_spreads_the_episodes_and_lockstep_does_not():
    common = {"num_pairs": 200, "truncation": 2, "horizon": 10, "sigma": 0.1}
    states, infos = run(PersistentES(Diary(), **common, phase="random"), 6)
    counts = np.bincount(states[5].episode.clock, minlength=11)
    assert set(np.flatnonzero(counts)) == {2, 4, 6, 8, 10}  # all phases, on borders
    assert counts[[2, 4, 6, 8, 10]].min() > 20  # 40 expected, standard deviation 5.7
    assert all(20 < int(info.num_done) < 60 for info in infos)
    states, infos = run(PersistentES(Diary(), **common), 5)
    assert np.ptp(states[3].episode.clock) == 0
    assert [int(info.num_done) for info in infos] == [0, 0, 0, 0, 200]


def test_episode_lengths_have_the_law_that_is_said():
    """P(length = n) = log((n+1)/n) / log((high+1)/low); in random phases the first is uniform up to such a length."""
    log_uniform, share, fixed, n = np.zeros(13), np.zeros(13), np.eye(13)[12], np.arange(3, 10)
    log_uniform[n] = np.log((n + 1) / n) / np.log(10 / 3)
    for length in n:
        share[1 : length + 1] += log_uniform[length] / length
    grains = np.isin(np.arange(13), (4, 8, 12)) / 3
    laws = {True: (share, grains), False: (log_uniform, fixed)}

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def drawn(key, first):
        return draw_length(key, (3, 9), "random", 1, first), draw_length(key, 12, "random", 4, first)

    for first, expected in laws.items():
        for found, law in zip(drawn(jax.random.split(jax.random.key(0), 4000), first), expected, strict=True):
            counts = np.bincount(found, minlength=13)
            assert (np.abs(counts - 4000 * law) <= 4 * np.sqrt(4000 * law * (1 - law))).all()
    assert draw_length(jax.random.key(0), 12, "lockstep", 4, jnp.asarray(True)) == 12
    assert draw_length(jax.random.key(0), None, "lockstep", 1, jnp.asarray(True)) == NO_END


def test_every_pair_and_worker_draws_a_length_of_its_own():
    for make, count in ((PersistentES, {"num_pairs": 40, "sigma": 0.1}), (RTRL, {"num_workers": 40})):
        states, _ = run(make(Diary(), truncation=2, horizon=(3, 9), **count), 1)
        assert len(np.unique(states[0].episode.length)) == 7


class Race(eqx.Module):
    """Walks by θ; done once it has passed 1; the loss is the place. The two signs may end at different steps."""

    garbage: bool = eqx.field(static=True, default=False)

    def init(self, key, theta):
        return jnp.zeros(())

    def step(self, key, theta, state):
        place = state + theta
        loss = jnp.where(state >= 1, jnp.nan, place) if self.garbage else place
        return place, loss, place >= 1


def race_by_hand(eps, theta, steps):
    """Σ (L⁺ − L⁻) with absorption, and joint resets, for one pair whose noise never changes."""
    total, ended, unequal = 0.0, 0, 0
    place, done = np.zeros(2), np.zeros(2, bool)
    for _ in range(steps):
        place = place + theta + np.array([eps, -eps])
        loss = np.where(done, 0.0, place)
        total += loss[0] - loss[1]
        done = done | (place >= 1)
        unequal += done[0] != done[1]
        if done.all():
            place, done, ended = np.zeros(2), np.zeros(2, bool), ended + 1
    return total, ended, unequal


@pytest.mark.parametrize("garbage", [False, True])
def test_who_ends_first_waits_with_zero_loss_and_both_begin_anew_together(garbage, monkeypatch):
    """Noise is held still by a patch; even not-a-number after the end must not be seen."""
    from laureate.gradients import pairs

    eps = np.array([0.05, 0.11, 0.15, 0.001], np.float32)
    monkeypatch.setattr(pairs, "draw_noise", lambda keys, theta: jnp.asarray(eps))
    estimator = PersistentES(Race(garbage), num_pairs=4, truncation=23, horizon=None, sigma=1.0)
    _, infos = run(estimator, 1, theta=0.253)
    expected = [race_by_hand(e, 0.253, 23) for e in eps]
    assert_allclose(infos[0].difference, [total for total, _, _ in expected], rtol=1e-4)
    assert int(infos[0].num_done) == sum(ended for _, ended, _ in expected)
    assert int(infos[0].num_unequal) == sum(unequal > 0 for _, _, unequal in expected) > 0
    assert int(infos[0].num_nonfinite) == 0


def test_an_episode_may_end_twice_inside_a_truncation():
    """The weight of an old episode never touches the new one's noise: each is settled with its own score."""
    estimator = PersistentES(Race(), num_pairs=3, truncation=9, horizon=None, sigma=0.01)
    _, infos = run(estimator, 1, theta=0.4)
    assert int(infos[0].num_done) == 9  # three steps an episode, three episodes a pair


def test_waiting_for_the_border():
    """restart="border": one episode a truncation, and who is through adds nothing until the next."""
    estimator = PersistentES(Race(), num_pairs=3, truncation=9, horizon=None, sigma=0.01, restart="border")
    states, infos = run(estimator, 2, theta=0.4)
    assert [int(info.num_done) for info in infos] == [3, 3]
    assert_allclose(infos[0].loss, (0.4 + 0.8 + 1.2) / 3, rtol=0.05)  # the mean over the steps that counted
    assert states[0].episode.over.all()


def test_full_es_is_one_episode_even_if_it_ends_early():
    estimator = FullES(Race(), num_pairs=5, horizon=9, sigma=0.01)
    state = estimator.init(jax.random.key(0), 0.4)
    gradient, _, info = jax.jit(lambda s: estimator.step(jax.random.key(1), 0.4, s))(state)
    assert int(info.num_done) == 5
    assert_allclose(gradient, (1 + 2 + 3) * info.noise_rms**2, rtol=1e-3)  # d/dθ (θ + 2θ + 3θ), times mean ε²/σ²


class Fragile(eqx.Module):
    """θ ± ε beyond a threshold gives a loss that is not finite, from the third step of an episode on."""

    bad: jax.Array = eqx.field(default=float("nan"), converter=jnp.asarray)

    def init(self, key, theta):
        return jnp.zeros((), jnp.int32)

    def step(self, key, theta, state):
        return state + 1, jnp.where((theta > 0.85) & (state >= 2), self.bad, theta)


fragile_step = jax.jit(  # one program for all that is not finite
    lambda estimator: estimator.step(jax.random.key(1), 0.7, estimator.init(jax.random.key(0), 0.7)),
    compiler_options=QUICK,
)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("horizon", [6, 7], ids=["aligned", "unaligned"])
def test_a_pair_that_is_not_finite_is_left_out_and_counted(bad, horizon):
    estimator = PersistentES(Fragile(bad), num_pairs=64, truncation=3, horizon=horizon, sigma=0.1)
    gradient, state, info = fragile_step(estimator)
    finite = np.isfinite(np.asarray(info.difference)) & (np.asarray(info.difference) != 0.0)
    lost = 64 - int(finite.sum())
    assert 0 < int(info.num_nonfinite) == lost < 32  # P(|n| > 1.5) = 0.13
    eps = np.asarray(state.pairs.score) * 0.01
    kept = np.abs(eps) <= 0.15
    assert int(info.num_nonfinite) == (~kept).sum()
    expected = (3 * 2 * eps[kept] * eps[kept] / 0.01).mean() / 2
    assert_allclose(gradient, expected, rtol=1e-4)
    assert_allclose(info.loss, 0.7, rtol=1e-5)
    assert info.status == Status.OK


@pytest.mark.parametrize("make", [PersistentES, FullES, TruncatedES, NoiseReuseES, TruncatedBackprop])
def test_if_nobody_is_left_the_gradient_is_zero_and_the_status_says_so(make):
    class Broken:
        def init(self, key, theta):
            return jnp.zeros(())

        def step(self, key, theta, state):
            return state, theta / 0.0

    extra = {} if make is TruncatedBackprop else {"num_pairs": 3, "sigma": 0.1}
    estimator = make(Broken(), truncation=2, horizon=4, **extra)
    state = estimator.init(jax.random.key(0), 1.0)
    gradient, _, info = jax.jit(lambda s: estimator.step(jax.random.key(1), 1.0, s), compiler_options=QUICK)(state)
    assert gradient == 0.0
    assert info.status == Status.DIVERGED
    assert int(info.num_nonfinite) == (1 if make is TruncatedBackprop else 3)


def test_a_pair_that_blew_up_begins_anew_out_of_lockstep_and_waits_in_lockstep():
    common = {"num_pairs": 64, "truncation": 3, "horizon": 12, "sigma": 0.1}
    for phase, comes_back in (("random", True), ("lockstep", False)):
        states, infos = run(PersistentES(Fragile(), **common, phase=phase), 2)
        lost = ~np.isfinite(np.asarray(infos[0].difference))
        assert lost.any()
        assert (states[0].episode.over[lost] == comes_back).all()
        if comes_back:
            assert (states[1].episode.clock[lost] == 3).all()


def test_large_losses_cancel_step_by_step_in_float32():
    """L = 10⁴ + θ over 1,000 steps: two sums of 10⁷ would cancel to nothing (their last digit is 1)."""

    class High:
        def init(self, key, theta):
            return jnp.zeros(())

        def step(self, key, theta, state):
            return state, 1e4 + 0.5 * jnp.round(1000 * theta)

    estimator = PersistentES(High(), num_pairs=1, truncation=1000, horizon=1000, sigma=0.01)
    states, infos = run(estimator, 1, theta=0.0)
    eps = float(states[0].score[0]) * 1e-4
    expected = 1000 * (0.5 * np.round(1000 * eps) - 0.5 * np.round(-1000 * eps))
    assert_allclose(float(infos[0].difference[0]), expected, rtol=1e-6)


def test_the_noise_sum_grows_as_the_root_of_the_draws_and_is_reported():
    _, infos = run(PersistentES(Diary(), num_pairs=2000, truncation=1, horizon=4, sigma=0.1), 5)
    reported = [float(info.noise_rms) for info in infos]
    assert_allclose(reported, np.sqrt([1, 2, 3, 4, 1]), rtol=0.07)


def test_a_plain_object_and_a_module_are_both_unrolls():
    class Plain:
        def init(self, key, theta):
            return jnp.zeros(())

        def step(self, key, theta, state):
            return state + theta, state * theta

    class Module(eqx.Module):
        gain: jax.Array

        def init(self, key, theta):
            return jnp.zeros(())

        def step(self, key, theta, state):
            return state + self.gain * theta, state * theta

    def gradient(unroll):
        estimator = PersistentES(unroll, num_pairs=3, truncation=2, horizon=4, sigma=0.1)
        assert all(eqx.is_array(leaf) for leaf in jax.tree.leaves(estimator))
        state = estimator.init(jax.random.key(0), 0.3)
        return jax.jit(lambda e, s: e.step(jax.random.key(1), 0.3, s)[0], compiler_options=QUICK)(estimator, state)

    assert gradient(Plain()) == gradient(Module(jnp.asarray(1.0)))


def test_old_style_keys_do_too():
    estimator = PersistentES(Diary(), num_pairs=2, truncation=2, horizon=4, sigma=0.1, checked=True)
    state = estimator.init(jax.random.PRNGKey(0), 0.3)
    gradient, state, _ = jax.jit(lambda k, s: estimator.step(k, 0.3, s))(jax.random.PRNGKey(1), state)
    assert np.isfinite(gradient)
