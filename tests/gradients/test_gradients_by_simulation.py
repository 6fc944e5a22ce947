"""Options of the estimators against a simulation by hand, step by step and pair by pair, with all that is reported.

It follows the definitions alone: g = 1/(2N) Σ ξ/σ² (L⁺ − L⁻), and for "products" Σ_t (L_t ξ_t − L_{t−1} ξ_{t−1}). It is
given the noise that would be drawn at each place, and how long first episodes of random phase are.
"""

from dataclasses import dataclass, field
from math import gcd
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients_reference import QUICK, step_keys
from numpy.testing import assert_allclose, assert_array_equal

from laureate.gradients import (
    GPES,
    RTRL,
    AnalyticPES,
    FullES,
    NoiseReuseES,
    PersistentES,
    Sharded,
    TruncatedBackprop,
    TruncatedES,
    full_unroll_loss,
)
from laureate.gradients.noise import Shard, draw_noise, pair_keys

PAIRS, THETA, SIGMA = 5, 0.27, 0.125
SIGMAS = SIGMA * np.array([1, 1.5, 1, 0.5, 2, 1, 1.5])  # another in every step: it takes effect with the next draw
NUMBER = len(SIGMAS)


class Walk(eqx.Module):
    """s ← 0.9 s + θ from θ/2, the level s³. ``ends``: done once s passes 1.

    Beyond ``cliff`` there is no level, beyond ``steep`` no slope.
    """

    ends: bool = eqx.field(static=True, default=False)
    cliff: Any = eqx.field(default=np.inf, converter=np.asarray)
    steep: float | None = eqx.field(static=True, default=None)

    def init(self, key, theta):
        return 0.5 * theta

    def step(self, key, theta, state) -> Any:
        state = 0.9 * state + theta
        level = jnp.where(state > self.cliff, jnp.nan, state**3)
        if self.steep is not None:
            level = level + 0 * jnp.sqrt(jnp.where(state > self.steep, state - state, 1.0))
        return (state, level, state >= 1) if self.ends else (state, level)


@dataclass
class Pair:
    """Two particles and what they remember, both signs in one array; ``xi`` is Σ ε/σ² of the episode."""

    state: np.ndarray = field(default_factory=lambda: np.zeros(2))
    level: np.ndarray = field(default_factory=lambda: np.zeros(2))
    ended: np.ndarray = field(default_factory=lambda: np.zeros(2, bool))
    clock: int = -1
    length: float = np.inf
    over: bool = True
    eps: float = 0.0
    xi: float = 0.0


def through_a_truncation(est, pair, noise, sigma, length, adds):
    """The pair through ``est.window`` inner steps; noise[k]: what is drawn at step k. What it adds up, by name.

    adds: whether ξ is the sum of the draws, or the last of them.
    """
    every, unroll = est.redraw_every, est.unroll
    inside = est.restart == "inside" and not est.whole_episodes
    unaligned = unroll.ends or isinstance(est.horizon, tuple) or (est.horizon or est.window) % est.window != 0
    segment = 1 if unaligned and inside else gcd(est.window, every) if every else est.window
    found: dict[str, Any] = dict.fromkeys(("gradient", "difference", "loss", "alive", "done", "unequal"), 0)
    before = 0.0 if pair.over else (pair.level[0] - pair.level[1]) * pair.xi  # (L⁺ − L⁻) ξ of the step before
    found["past"] = 0.0 if pair.over else pair.xi
    for k in range(est.window):
        drawn = noise[k // segment]
        begins = pair.over and (inside or k == 0)
        if every == 0 and k == 0:
            pair.eps, pair.xi = drawn, drawn / sigma**2 + (pair.xi if adds and not pair.over else 0.0)
        elif not begins and every and pair.clock % every == 0 and not pair.over:
            pair.eps, pair.xi = drawn, drawn / sigma**2 + (pair.xi if adds else 0.0)
        if begins:
            # The noise of a truncation is kept where it had no part in the ending.
            pair.eps = pair.eps if every == 0 and (k == 0 or not unroll.ends) else drawn
            pair.xi, before = pair.eps / sigma**2, 0.0
            first = pair.clock < 0 and not est.whole_episodes
            pair.length = length if first or isinstance(est.horizon, tuple) else est.horizon or np.inf
            pair.state, pair.level = 0.5 * (THETA + np.array([pair.eps, -pair.eps])), np.zeros(2)
            pair.ended, pair.clock, pair.over = np.zeros(2, bool), 0, False
        pair.state = 0.9 * pair.state + THETA + np.array([pair.eps, -pair.eps])
        pair.clock += 1
        alive = ~pair.ended & (not pair.over)
        level = np.where(pair.state > unroll.cliff, np.nan, pair.state**3)
        loss = np.where(alive, level - (pair.level if est.telescope else 0.0), 0.0)
        pair.level = np.where(alive, level, pair.level)
        if est.telescope == "products":
            now = (pair.level[0] - pair.level[1]) * pair.xi
            found["gradient"] += now - before
            before = now
        else:
            found["gradient"] += (loss[0] - loss[1]) * pair.xi
        found["difference"] += loss[0] - loss[1]
        found["loss"] += np.where(alive, level, 0.0).sum()
        found["alive"] += alive.sum()
        if unroll.ends:
            pair.ended = pair.ended | (pair.state >= 1)
        found["unequal"] |= bool(pair.ended[0] ^ pair.ended[1]) and not pair.over
        over = pair.over or pair.clock >= pair.length or bool(pair.ended.all())
        found["done"] += over and not pair.over
        pair.over = over
    return found


def copy(pair):
    return Pair(**{name: np.copy(value) if np.ndim(value) else value for name, value in vars(pair).items()})


def simulated(est, noise, lengths):
    """Gradients and reports of ``NUMBER`` steps; noise: [steps, draws, pairs]."""
    waits = est.phase == "lockstep" and not est.unroll.ends and not isinstance(est.horizon, tuple)
    adds = isinstance(est, (PersistentES, GPES, AnalyticPES))
    pairs, centre, rows = [Pair() for _ in range(PAIRS)], Pair(), []
    for drawn, sigma in zip(noise, SIGMAS, strict=True):
        if isinstance(est, FullES):
            pairs = [Pair(clock=0) for _ in range(PAIRS)]
        if isinstance(est, TruncatedES):
            pairs = [copy(centre) for _ in range(PAIRS)]
        analytic = 0.0
        if isinstance(est, (TruncatedES, AnalyticPES)):
            if isinstance(est, AnalyticPES):
                analytic = slope_of_the_truncation(est, centre)
            report = through_a_truncation(est, centre, np.zeros(len(drawn)), sigma, lengths[0], adds)
            centre.over |= not waits and not np.isfinite(report["loss"])
        each = [through_a_truncation(est, p, drawn[:, i], sigma, lengths[i], adds) for i, p in enumerate(pairs)]
        finite = np.array([bool(np.isfinite(one["difference"] + one["loss"])) for one in each])
        kept = [one for one, is_finite in zip(each, finite, strict=True) if is_finite]
        number = max(len(kept), 1)
        if isinstance(est, AnalyticPES):
            shares = [
                one["past"] * (one["difference"] - 2 * pair.eps * analytic)
                for one, pair in zip(each, pairs, strict=True)
            ]
        else:
            shares = [one["gradient"] for one in kept]
        rows.append(
            {
                "gradient": analytic + sum(shares) / (2 * number),
                "loss": sum(one["loss"] for one in kept) / max(sum(one["alive"] for one in kept), 1),
                "num_nonfinite": PAIRS - len(kept),
                "num_done": sum(one["done"] for one in each),
                "num_unequal": sum(one["unequal"] for one in each),
                "noise_rms": np.sqrt(np.mean([(pair.xi * sigma) ** 2 for pair in pairs])),
                "difference": [one["difference"] for one in each],
            }
        )
        for pair, is_finite in zip(pairs, finite, strict=True):
            pair.over |= not waits and not is_finite
    return {name: np.array([row[name] for row in rows], float) for name in rows[0]}


def slope_of_the_truncation(est, centre):
    """d/dθ of the centre's losses in the next truncation, its state at the start held constant."""
    state, slope = (0.5 * THETA, 0.5) if centre.over else (centre.state[0], 0.0)
    total = last = 0.0
    for _ in range(est.window):
        state, slope = 0.9 * state + THETA, 0.9 * slope + 1
        last = 3 * state**2 * slope
        total += last
    return last if est.telescope else total


SHORT = {"truncation": 3, "sigma": SIGMA, "num_pairs": PAIRS}
LONG = SHORT | {"truncation": 4}
ENDS, FALLS = Walk(ends=True), Walk(ends=True, cliff=1.12)
ROWS = {
    "pes-products-done": PersistentES(ENDS, **SHORT, horizon=None, telescope="products"),
    "pes-products-border": PersistentES(ENDS, **SHORT, horizon=6, telescope="products", restart="border"),
    "pes-differences-falls": PersistentES(FALLS, **SHORT, horizon=None, telescope=True),
    "pes-products-unaligned": PersistentES(Walk(), **SHORT, horizon=5, telescope="products"),
    "pes-random-falls": PersistentES(Walk(cliff=1.9), **SHORT, horizon=9, phase="random"),
    "nres-random-falls": NoiseReuseES(Walk(cliff=1.9), **SHORT, horizon=9, phase="random"),
    "gpes-random-falls": GPES(Walk(cliff=1.9), **LONG, horizon=12, noise_steps=2, phase="random"),
    "nres-products-unaligned": NoiseReuseES(Walk(), **SHORT, horizon=7, telescope="products"),
    "gpes-apart": GPES(Walk(), **LONG, horizon=12, noise_steps=6, telescope="products"),
    "gpes-products-apart": GPES(Walk(), **LONG, horizon=12, noise_steps=6, phase="random", telescope="products"),
    "gpes-done": GPES(ENDS, **LONG, horizon=11, noise_steps=3, telescope=True),
    "gpes-border": GPES(ENDS, **LONG, horizon=None, noise_steps=2, restart="border"),
    "pes-border-waits": PersistentES(ENDS, **LONG, horizon=(2, 2), restart="border"),
    "full-es": FullES(FALLS, sigma=SIGMA, num_pairs=PAIRS, horizon=4, phase="random", telescope="products"),
    "truncated-es": TruncatedES(Walk(), **SHORT, horizon=7, telescope=True),
    "truncated-es-border": TruncatedES(Walk(), **SHORT, horizon=(6, 6)),
    "truncated-es-falls": TruncatedES(Walk(cliff=1.2), **SHORT, horizon=(30, 30)),
    "pes-analytic": AnalyticPES(Walk(), **SHORT, horizon=6),
}
# What must have happened for a row to be worth its time.
EVENTS = {
    "num_done": set(ROWS) - {"truncated-es-falls"},
    "num_unequal": {"pes-products-done", "pes-products-border", "pes-differences-falls", "gpes-done", "full-es"},
    "num_nonfinite": {"pes-differences-falls", "full-es", "truncated-es-falls"}
    | {f"{name}-random-falls" for name in ("pes", "nres", "gpes")},
}


@pytest.fixture(scope="module")
def noise():
    """At every step, place and pair; one program for all estimators."""

    def drawn(key, place):
        return draw_noise(pair_keys(key, PAIRS, Shard(jnp.arange(PAIRS), None), 2 * place), jnp.asarray(THETA))

    with jax.enable_x64(True):
        run = jax.jit(jax.vmap(jax.vmap(drawn, (None, 0)), (0, None)), compiler_options=QUICK)
        return SIGMAS[:, None, None] * np.asarray(run(jnp.stack(step_keys(NUMBER)), jnp.arange(4)))


def ran(estimator):
    """Gradients, reports and how long the episodes are that run after each step."""

    def step(state, given):
        key, sigma = given
        now = eqx.tree_at(lambda one: one.sigma, estimator, sigma) if hasattr(estimator, "sigma") else estimator
        gradient, state, info = now.step(key, jnp.asarray(THETA), state)
        held = state.center if state.pairs is None else state.pairs
        held = getattr(held, "episode", held)
        return state, (gradient, info, 0 if held is None else held.length)

    def steps(*given):
        return jax.lax.scan(step, estimator.init(jax.random.key(0), jnp.asarray(THETA)), given)[1]

    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(steps, compiler_options=QUICK)(jnp.stack(step_keys(NUMBER)), SIGMAS))


@pytest.mark.parametrize("name", ROWS)
def test_pairs_are_as_simulated(name, noise):
    estimator = ROWS[name]
    gradients, infos, lengths = ran(estimator)
    expected = simulated(estimator, noise, np.broadcast_to(lengths[0], PAIRS))
    assert_allclose(gradients, expected["gradient"], rtol=1e-9, atol=1e-12)
    for report in ("loss", "noise_rms", "difference"):
        assert_allclose(getattr(infos, report), expected[report], rtol=1e-9, atol=1e-12, err_msg=report)
    for report in ("num_nonfinite", "num_done", "num_unequal"):
        assert_array_equal(getattr(infos, report), expected[report], report)
        assert name not in EVENTS.get(report, ()) or expected[report].any(), report
    assert_array_equal(infos.status, expected["num_nonfinite"] == PAIRS)
    own = isinstance(estimator, (TruncatedES, AnalyticPES))
    assert_array_equal(infos.cost, (2 * PAIRS + own) * estimator.window)


def worker_by_hand(est, length):
    """One worker through all steps: gradient, loss, levels, episodes ended and whether it was left out, by step."""
    unroll, carried, rows = est.unroll, isinstance(est, RTRL), []
    waits = est.phase == "lockstep" and not unroll.ends and not isinstance(est.horizon, tuple)
    state = slope = level = rise = 0.0
    clock, last, over, first = 0, length, True, True
    for _ in range(NUMBER):
        gradient = loss = levels = 0.0
        done = 0
        if not carried:
            slope = rise = 0.0
        for _ in range(est.truncation):
            if over:
                state, slope, level, rise, clock, over = 0.5 * THETA, 0.5, 0.0, 0.0, 0, False
                last = length if first or isinstance(est.horizon, tuple) else est.horizon or np.inf
                first = False
            state, slope, clock = 0.9 * state + THETA, 0.9 * slope + 1, clock + 1
            beyond = state > unroll.cliff
            now, up = (np.nan, 0.0) if beyond else (state**3, 3 * state**2 * slope)
            if unroll.steep is not None and state > unroll.steep:
                up = np.nan
            loss += now - (level if est.telescope else 0.0)
            gradient += up - (rise if est.telescope else 0.0)
            level, rise, levels = now, up, levels + now
            over = clock >= last or (unroll.ends and state >= 1)
            done += over
        finite = bool(np.isfinite(loss) and np.isfinite(gradient))
        over = over or (not waits and not finite)
        rows.append((gradient, levels / est.truncation, done, finite))
    return rows


WORKERS = {
    "backprop-random-falls": TruncatedBackprop(Walk(cliff=1.5), truncation=3, horizon=9, phase="random", num_workers=3),
    "backprop-done": TruncatedBackprop(Walk(ends=True), truncation=3, horizon=None, telescope=True),
    "rtrl-done-steep": RTRL(Walk(ends=True, steep=1.01), truncation=3, horizon=None, telescope=True),
    "rtrl-steep": RTRL(Walk(steep=1.2), truncation=3, horizon=(30, 30), num_workers=2),
    "rtrl-lockstep-falls": RTRL(Walk(cliff=1.2), truncation=2, horizon=11),
}


@pytest.mark.parametrize("name", WORKERS)
def test_workers_are_as_simulated(name):
    estimator = WORKERS[name]
    gradients, infos, lengths = ran(estimator)
    each = [worker_by_hand(estimator, length) for length in lengths[0]]
    for i, rows in enumerate(zip(*each, strict=True)):
        kept = [(gradient, loss) for gradient, loss, _, finite in rows if finite]
        wanted = np.mean(kept, axis=0) if kept else (0.0, 0.0)
        assert_allclose((gradients[i], infos.loss[i]), wanted, rtol=1e-9, atol=1e-12)
        assert infos.num_done[i] == sum(done for _, _, done, _ in rows)
        assert infos.num_nonfinite[i] == len(rows) - len(kept)
        assert infos.status[i] == (not kept)
        assert infos.cost[i] == len(rows) * estimator.truncation
    assert infos.num_nonfinite.any() == (name != "backprop-done")
    assert (infos.status == 0).any()


@pytest.mark.parametrize("ends", [False, True])
def test_the_loss_of_a_whole_episode_is_that_of_a_loop(ends):
    """With and without an end before the horizon, added up or the last alone, with data of its steps and without."""

    class Fed(eqx.Module):
        def init(self, key, theta):
            return theta + jax.random.uniform(key)

        def step(self, key, theta, state, batch=0.0):
            state = 0.8 * state + theta + batch + 0.1 * jax.random.uniform(key)
            return (state, state**2, state > 0.3) if ends else (state, state**2)

    data, found = np.linspace(-0.3, 0.3, 8), {}

    @jax.jit
    def run(key, theta):
        options = [(batches, telescope) for batches in (None, data) for telescope in (False, True)]
        keys = jax.random.split(key)
        draws = jax.random.uniform(keys[0]), jax.vmap(lambda t: jax.random.uniform(jax.random.fold_in(keys[1], t)))
        losses = [full_unroll_loss(key, Fed(), theta, 8, batches, telescope) for batches, telescope in options]
        return losses, draws[0], draws[1](jnp.arange(8))

    with jax.enable_x64(True):
        losses, first, drawn = jax.tree.map(np.asarray, run(jax.random.key(0), 0.1))
    assert len(np.unique(drawn)) == 8
    for fed in (np.zeros(8), data):
        state, levels = 0.1 + first, []
        for t in range(8):
            state = 0.8 * state + 0.1 + fed[t] + 0.1 * drawn[t]
            levels.append(state**2)
            if ends and state > 0.3:
                break
        found[fed[0]] = [sum(levels), levels[-1]]
        assert not ends or fed[0] == 0 or 1 < len(levels) < 8
    assert_allclose(losses, np.ravel(list(found.values())), rtol=1e-9)


@pytest.mark.parametrize("name", ["falls", "centre"])
def test_shards_together_report_what_the_whole_does(name):
    """Three of two pairs, an axis of vmap in place of devices: every field of the report, step by step."""
    six = SHORT | {"num_pairs": 6}
    rows = {
        "falls": PersistentES(FALLS, **six, horizon=None, telescope=True),
        "centre": AnalyticPES(Walk(), **six, horizon=6),
    }
    estimator, theta, keys = rows[name], jnp.asarray(THETA), jnp.stack(step_keys(4))
    mesh: Any = jax.sharding.AbstractMesh((3,), ("pairs",))

    def steps(shard):
        def step(state, key):
            gradient, state, info = estimator.local_step(key, theta, state, None, shard)
            return state, (gradient, info)

        return jax.lax.scan(step, estimator.local_init(jax.random.key(0), theta, shard), keys)[1]

    def both():
        on_a_device = lambda _: steps(Sharded(estimator, mesh)._shard())  # noqa: E731
        parts = jax.vmap(on_a_device, axis_name="pairs")(jnp.arange(3))
        return steps(Shard(jnp.arange(6), None)), parts

    (gradient, info), (gradients, infos) = jax.tree.map(np.asarray, jax.jit(both, compiler_options=QUICK)())
    assert_allclose(gradients, np.stack([gradient] * 3), rtol=1e-4, atol=1e-6)
    assert_allclose(np.concatenate(infos.difference, axis=1), info.difference, rtol=1e-5, atol=1e-6)
    for field_name in sorted(set(info._fields) - {"difference"}):
        whole, part = getattr(info, field_name), getattr(infos, field_name)
        assert part.dtype == whole.dtype, field_name
        assert_allclose(part, np.stack([whole] * 3), rtol=1e-5, err_msg=field_name)
    assert name == "centre" or (info.num_nonfinite.any() and info.num_unequal.any())


@pytest.mark.parametrize("apart", [False, True])
def test_a_device_is_given_its_own_pairs_and_all_of_the_rest(apart):
    """Four devices that need not be there: shapes inside and outside of the part of the program that each runs."""

    class Fed(Walk):
        def step(self, key, theta, state, batch):  # pyright: ignore[reportIncompatibleMethodOverride]
            return state + batch, state**2

    estimator = PersistentES(Fed(), **(SHORT | {"num_pairs": 8}), horizon=6, batches_per_pair=apart)
    mesh: Any = jax.sharding.AbstractMesh((4,), ("pairs",))
    sharded, key, theta = Sharded(estimator, mesh), jax.random.key(0), jnp.asarray(THETA)
    batches = jnp.zeros((3, 8) if apart else (3,))
    state = jax.eval_shape(sharded.init, key, theta)
    closed = jax.make_jaxpr(sharded.step)(key, theta, state, batches)
    (own,) = (equation for equation in closed.jaxpr.eqns if equation.primitive.name == "shard_map")
    shapes = lambda values: [value.aval.shape for value in values]  # noqa: E731
    given, kept = shapes(own.params["jaxpr"].invars), shapes(own.params["jaxpr"].outvars)
    split = lambda shape: (2, *shape[1:])  # noqa: E731
    pairs = [split(leaf.shape) for leaf in jax.tree.leaves(state)]
    assert given[-len(pairs) - 3 :] == [key.shape, (), *pairs, (3, 2) if apart else (3,)]  # after constants
    gradient, later, info = jax.eval_shape(sharded.step, key, theta, state, batches)
    assert jax.tree.map(jnp.shape, later) == jax.tree.map(jnp.shape, state)
    assert (gradient.shape, info.difference.shape, info.loss.shape) == ((), (8,), ())
    assert sorted(kept) == sorted([(), *pairs, (2,), *[()] * (len(jax.tree.leaves(info)) - 1)])
