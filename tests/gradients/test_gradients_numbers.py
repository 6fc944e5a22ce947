"""Half precision, overflow, any kind of key, saving: numbers at the edges of what the estimators are given."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from laureate._core import Status, as_key
from laureate.gradients import RTRL, AnalyticPES, FullES, NoiseReuseES, PersistentES, TruncatedBackprop, TruncatedES
from laureate.gradients.workers import center_key

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
