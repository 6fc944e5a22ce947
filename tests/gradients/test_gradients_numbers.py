"""Half precision, overflow, any kind of key, saving: numbers at the edges of what the estimators are given."""

import functools
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from laureate._core import Status, as_key
from laureate.gradients import (
    RTRL,
    AnalyticPES,
    FullES,
    NoiseReuseES,
    PersistentES,
    TruncatedBackprop,
    TruncatedES,
    pairs,
)
from laureate.gradients.noise import Shard, draw_noise, pair_keys, score_of
from laureate.gradients.workers import Report, center_key, mean_over_workers
from laureate.testing import check_keys

ES = {"num_pairs": 4, "truncation": 2, "horizon": 6, "sigma": 0.1}
WORKERS = {"truncation": 2, "horizon": 6, "num_workers": 2}


class Noisy(eqx.Module):
    """s ← 0.9 s + θ + noise, L = s²."""

    def init(self, key, theta):
        return jnp.ones((), theta.dtype)

    def step(self, key, theta, state):
        state = jnp.asarray(0.9, theta.dtype) * state + theta + jax.random.normal(key, (), theta.dtype)
        return state, state**2


@eqx.filter_jit
def first_step(estimator, theta, keys=None):
    """One program; outside jit each operation of a step would be one."""
    first, second = (jax.random.key(0), jax.random.key(1)) if keys is None else keys
    return estimator.step(second, theta, estimator.init(first, theta))


CASES = [
    PersistentES(Noisy(), **ES),
    NoiseReuseES(Noisy(), **ES, checked=True),
    AnalyticPES(Noisy(), **ES),
    FullES(Noisy(), **ES),
    TruncatedES(Noisy(), **ES),
    TruncatedBackprop(Noisy(), **WORKERS),
    RTRL(Noisy(), **WORKERS),
]
NAMES = [type(case).__name__ for case in CASES]


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_many_pairs_in_half_precision_agree_with_single_precision(dtype):
    # 2 N g is beyond float16, which ends at 65504
    estimator = PersistentES(Noisy(), num_pairs=4000, truncation=5, horizon=10, sigma=0.01)

    def gradient(dtype):
        theta = jnp.asarray(0.5, dtype)
        found, _, info = first_step(estimator, theta)
        assert found.dtype == dtype
        return float(found), int(info.status)

    half, status = gradient(dtype)
    single, _ = gradient(jnp.float32)
    assert status == Status.OK
    assert np.isfinite(half)
    assert np.sign(half) == np.sign(single)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("estimator", CASES, ids=NAMES)
def test_all_that_is_added_up_is_in_single_precision(estimator, dtype):
    """θ, its noise and what the unroll itself keeps are as short as θ; scores, slopes, levels and reports are not."""
    theta = jnp.asarray(0.5, dtype)
    run = lambda key: estimator.step(key, theta, estimator.init(key, theta))  # noqa: E731
    leaves = jax.tree_util.tree_leaves_with_path(jax.eval_shape(run, jax.random.key(0))[1:])
    short = [jax.tree_util.keystr(path) for path, leaf in leaves if leaf.dtype == dtype]
    assert all(name.endswith((".inner", ".noise", ".sensitivity")) for name in short), short
    assert len(short) < len(leaves) / 2


class OfTwo(eqx.Module):
    """s ← 0.9 s + a + sin b from a, L = s², in the longer type of the two leaves."""

    def init(self, key, theta):
        return theta["a"].astype(jnp.result_type(*theta.values()))

    def step(self, key, theta, state):
        state = jnp.asarray(0.9, state.dtype) * state + theta["a"].astype(state.dtype)
        state = state + jnp.sin(theta["b"]).astype(state.dtype)
        return state, state**2


def test_leaves_of_two_types_have_the_gradients_of_doubles(monkeypatch):
    """Given the same noise, steps with single and double leaves are those with double leaves alone, rounded."""
    fixed = dict(zip("ab", np.random.default_rng(0).normal(size=(2, 4)), strict=True))
    noise = lambda keys, theta: {name: jnp.asarray(fixed[name], leaf.dtype) for name, leaf in theta.items()}  # noqa: E731
    monkeypatch.setattr(pairs, "draw_noise", noise)
    more = ES | {"horizon": 3}
    rows = (
        NoiseReuseES(OfTwo(), **more, telescope="products"),
        AnalyticPES(OfTwo(), **ES),
        TruncatedES(OfTwo(), **more),
        RTRL(OfTwo(), **(WORKERS | {"horizon": 3})),
    )

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def gradients(theta, keys):
        def three(estimator):
            def step(state, key):
                gradient, state, info = estimator.step(key, theta, state)
                return state, (gradient, info.loss)

            return jax.lax.scan(step, estimator.init(keys[0], theta), keys)[1]

        return [three(row) for row in rows]

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 3)
        doubles, mixed = (
            jax.device_get(gradients({"a": np.asarray(0.3, kind), "b": np.asarray(0.5, np.float64)}, keys))
            for kind in (np.float64, np.float32)
        )
    for exact, found in zip(doubles, mixed, strict=True):
        assert [leaf.dtype for leaf in jax.tree.leaves(found)] == [np.float32, np.float64, np.float64]
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), found, exact)
        assert all(np.abs(leaf).max() > 0.1 for leaf in jax.tree.leaves(exact))


def test_a_gradient_that_overflows_is_never_ok():
    class Steep(eqx.Module):
        """L = 30000 sin(50 θ): within float16, and its slope is not."""

        def init(self, key, theta):
            return jnp.zeros(())

        def step(self, key, theta, state):
            return state, jnp.asarray(30000, theta.dtype) * jnp.sin(50 * theta)

    theta, estimator = jnp.asarray(0.0, jnp.float16), PersistentES(Steep(), **(ES | {"sigma": 0.01}))
    gradient, _, info = first_step(estimator, theta)
    assert int(info.status) == Status.DIVERGED
    assert float(gradient) == 0.0


def test_a_cost_beyond_32_bits_is_a_float():
    estimator = PersistentES(Noisy(), num_pairs=2**15, truncation=2**15, horizon=2**16, sigma=0.1)
    theta = jnp.asarray(0.5)

    def run(key):
        return estimator.step(key, theta, estimator.init(key, theta))[2].cost

    assert jnp.issubdtype(jax.eval_shape(run, jax.random.key(0)).dtype, jnp.floating)
    centred = TruncatedES(Noisy(), num_pairs=2**15, truncation=2**15, horizon=2**16, sigma=0.1)
    jax.eval_shape(lambda key: centred.step(key, theta, centred.init(key, theta)), jax.random.key(0))


class Dice(eqx.Module):
    """What is drawn in a step is its state, and L that times θ: a pair's difference is its noise times the sum."""

    def init(self, key, theta):
        return jnp.zeros((), theta.dtype)

    def step(self, key, theta, state):
        drawn = jax.random.uniform(key, (), theta.dtype)
        return drawn, drawn * theta


def test_no_two_pairs_or_workers_draw_the_same_numbers(monkeypatch):
    """In any of three truncations of two steps, of episodes of four: given equal noise, equal numbers would show."""
    monkeypatch.setattr(pairs, "draw_noise", lambda keys, theta: jnp.ones((len(keys), *theta.shape), theta.dtype))
    short = {"truncation": 2, "horizon": 4}
    rows = [kind(Dice(), **(ES | short)) for kind in (PersistentES, TruncatedES, AnalyticPES)]
    rows += [kind(Dice(), **short, num_workers=4) for kind in (TruncatedBackprop, RTRL)]

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def drawn(keys):
        theta = jnp.asarray(0.5)

        def three(estimator):
            def step(state, key):
                _, state, info = estimator.step(key, theta, state)
                workers = hasattr(estimator, "episode_of")
                return state, estimator.episode_of(state.center).inner if workers else info.difference

            return jax.lax.scan(step, estimator.init(keys[0], theta), keys)[1]

        return [three(row) for row in rows]

    for row, found in zip(rows, drawn(jax.random.split(jax.random.key(0), 3)), strict=True):
        assert len(np.unique(found)) == 3 * 4, type(row).__name__


@pytest.mark.parametrize("make", [lambda n: jax.random.key(n, impl="rbg"), jax.random.PRNGKey], ids=["rbg", "legacy"])
@pytest.mark.parametrize("kind", [pytest.param(PersistentES, marks=pytest.mark.slow), TruncatedES])
def test_both_signs_share_their_randomness_with_every_kind_of_key(kind, make):
    class Log(eqx.Module):
        def init(self, key, theta):
            return jax.random.uniform(key)

        def step(self, key, theta, state):
            drawn = jax.random.uniform(key)
            return drawn, drawn + 0.0 * theta

    estimator, theta = kind(Log(), **ES), jnp.asarray(0.5)
    _, _, info = first_step(estimator, theta, (make(0), make(1)))
    assert_array_equal(info.difference, jnp.zeros(ES["num_pairs"]))


def test_keys_of_every_generator_become_those_of_threefry():
    """Those of "rbg" give equal keys different numbers under ``vmap``: the two signs would not share them."""
    kinds = "threefry2x32", "rbg", "unsafe_rbg"
    found = [jax.eval_shape(as_key, jax.random.key(0, impl=kind)).dtype for kind in kinds]
    assert [str(dtype) for dtype in found] == ["key<fry>"] * 3


def test_every_word_of_a_longer_key_counts():
    """Five keys of four words that differ in one of them each are five keys of threefry's."""
    words = np.eye(5, 4, dtype=np.uint32)
    found = jax.jit(jax.vmap(lambda key: jax.random.key_data(as_key(key))))(words)
    assert len(np.unique(found, axis=0)) == 5


@pytest.mark.slow
@pytest.mark.parametrize("estimator", CASES, ids=NAMES)
def test_a_saved_state_goes_on_as_if_nothing_had_happened(estimator, tmp_path):
    theta, step = jnp.asarray(0.5), eqx.filter_jit(estimator.step)
    state = jax.jit(lambda key: estimator.init(key, theta))(jax.random.key(0))
    _, state, _ = step(jax.random.key(1), theta, state)
    eqx.tree_serialise_leaves(tmp_path / "state.eqx", state)
    loaded = eqx.tree_deserialise_leaves(tmp_path / "state.eqx", jax.tree.map(jnp.zeros_like, state))
    gradient, _, _ = step(jax.random.key(2), theta, state)
    again, _, _ = step(jax.random.key(2), theta, loaded)
    assert_array_equal(gradient, again)


def test_every_word_of_a_key_and_every_bit_of_a_number_count():
    words = np.arange(4, dtype=np.uint32)
    bits = [np.asarray(jax.random.key_data(as_key(jnp.asarray(words + extra)))) for extra in np.eye(4, dtype=np.uint32)]
    assert len({one.tobytes() for one in bits}) == 4
    # 2 · window · pairs: the same in the lower bits, and beyond what a number that is folded in holds.
    rooms = [SimpleNamespace(window=1, num_pairs=number) for number in (3, 2**30 + 3, 2**31 + 3)]
    keys = [np.asarray(jax.random.key_data(center_key(room, jax.random.key(0)))) for room in rooms]
    assert len({one.tobytes() for one in keys}) == 3


def test_leaves_of_any_types_have_noise_of_their_own():
    """Of 4,000 pairs: no two numbers are correlated, whichever types their leaves have; each is standard normal."""
    types = ("float16", "bfloat16", "float32", "float64")

    @jax.jit
    def drawn(key):
        theta = {f"{place}-{kind}": jnp.zeros(2, kind) for place in "ab" for kind in types}
        return draw_noise(pair_keys(key, 4000, Shard(jnp.arange(4000), None), 0), theta)

    with jax.enable_x64(True):
        noise = jax.tree.map(np.asarray, drawn(jax.random.key(0)))
    assert {name: str(leaf.dtype) for name, leaf in noise.items()} == {name: name[2:] for name in noise}
    numbers = np.concatenate([leaf.astype(np.float64) for leaf in noise.values()], axis=1)
    assert np.abs(np.cov(numbers.T) - np.eye(16)).max() < 5 * np.sqrt(2 / 4000)  # the larger error: of a variance


def test_leaves_of_two_types_have_keys_of_their_own():
    theta = {"a": jnp.zeros(2, jnp.float16), "b": jnp.zeros(2), "c": jnp.zeros((2, 1))}
    check_keys(lambda key: draw_noise(pair_keys(key, 3, Shard(jnp.arange(3), None), 0), theta), name="draw_noise")


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_scores_are_divided_in_single_precision(kind):
    """ε/σ² of deviations whose square half precision does not hold, or but roughly."""
    sigmas = np.array([3e-4, 0.01, 1.0, 700.0]).astype(kind)
    noise = (np.random.default_rng(0).normal(size=(5, 4)) * sigmas.astype(float)).astype(kind)
    found = score_of({"a": jnp.asarray(noise)}, {"a": jnp.asarray(sigmas)[None]})["a"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, noise.astype(float) / sigmas.astype(float) ** 2, rtol=1e-6)


@pytest.mark.parametrize(("kind", "large"), [("float16", 6e4), ("float32", 3e38)])
def test_the_mean_over_workers_is_that_of_numpy_and_what_overflows_is_not_ok(kind, large):
    """Four workers: all finite, one or all of them not; a mean that fits its type is given though its sum would not."""
    rng = np.random.default_rng(0)
    run = jax.jit(lambda gradients, report: mean_over_workers(gradients, report, 12))
    for bad, size in ((0, 1.0), (1, 1.0), (4, 1.0), (0, large)):
        gradients = {"a": rng.normal(size=4), "b": rng.uniform(0.5, 1.0, size=(4, 2)) * size}
        gradients = {name: leaf.astype(kind) for name, leaf in gradients.items()}
        (loss, level), alive = rng.normal(size=(2, 4)).astype(np.float32), np.array([3, 2, 3, 1], np.int32)
        loss[:bad:2], gradients["b"][1:bad:2, 0] = np.nan, np.inf
        fine = np.isfinite(loss) & np.isfinite(gradients["a"]) & np.isfinite(gradients["b"]).all(1)
        report = Report(loss, level, alive, np.array([1, 0, 2, 0], np.int32))
        found, info, finite = run(gradients, report)
        assert_array_equal(finite, fine)
        wide = {name: leaf[fine].astype(np.float64) for name, leaf in gradients.items()}
        fits = fine.any() and (kind == "float16" or size == 1.0)  # sums are in single precision
        assert int(info.status) == (Status.OK if fits else Status.DIVERGED)
        for name, leaf in found.items():
            wanted = wide[name].mean(0) if fits else np.zeros(gradients[name].shape[1:])
            assert leaf.dtype == kind
            np.testing.assert_allclose(np.asarray(leaf, np.float64), wanted, rtol=2e-3 if kind == "float16" else 1e-5)
        np.testing.assert_allclose(info.loss, level[fine].sum() / max(alive[fine].sum(), 1), rtol=1e-5, atol=1e-7)
        assert (int(info.num_nonfinite), int(info.num_done), int(info.cost)) == (4 - fine.sum(), 3, 12)
