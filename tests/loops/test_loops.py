"""The loop: chunks, stopping and going on change nothing; one program for every number of steps."""

import itertools
import os
import signal
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from laureate import loops
from laureate._core import Status

TRACES = []


class Walk(eqx.Module):
    """A random walk that also depends on time: any wrong index or key is seen in every later number."""

    key: jax.Array
    rate: jax.Array

    def __call__(self, state, index):
        TRACES.append(1)
        drawn = jax.random.normal(jax.random.fold_in(self.key, index), (3,))
        new = {"x": jnp.sin(state["x"] + self.rate * drawn + index), "key": jax.random.fold_in(state["key"], index)}
        return new, new["x"].sum()


def start():
    return {"x": jnp.zeros(3), "key": jax.random.key(9)}


WALK = Walk(jax.random.key(1), jnp.asarray(0.3))


def norm(state):
    return jnp.abs(state["x"]).max()


def same(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert_array_equal(a, b)


@pytest.fixture(scope="module")
def whole():
    return loops.run(WALK, start(), 24, every=2, record=norm)


def by_hand(num_steps):
    state, seen = start(), []
    step = eqx.filter_jit(WALK)
    for index in range(num_steps):
        state, told = step(state, jnp.asarray(index, jnp.int32))
        seen.append(told)
    return state, np.asarray(seen)


def test_it_is_the_loop_one_would_write(whole):
    state, seen = by_hand(24)
    np.testing.assert_allclose(whole.state["x"], state["x"], rtol=1e-6)
    np.testing.assert_allclose(whole.seen, seen, rtol=1e-5)
    assert whole.seen.shape == (24,)
    assert whole.recorded.shape == (12,)
    assert int(whole.status) == Status.OK


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
def test_chunks_change_nothing(whole, chunk):
    same(loops.run(WALK, start(), 24, every=2, record=norm, chunk=chunk), whole)


def test_parts_are_the_whole(whole):
    first = loops.run(WALK, start(), 10, every=2, record=norm)
    rest = loops.run(WALK, first.state, 14, first=10, every=2, record=norm)
    same(rest.state, whole.state)
    assert_array_equal(jnp.concatenate([first.recorded, rest.recorded]), whole.recorded)


def test_a_new_number_of_steps_a_new_rate_and_a_weak_type_compile_nothing():
    loops.run(WALK, start(), 4)
    TRACES.clear()
    for steps in (1, 5, 1000, 1700):
        loops.run(WALK, start(), steps)
    loops.run(Walk(jax.random.key(2), jnp.asarray(0.1, jnp.float32)), start(), 4)
    plain = lambda x, t: (0.5 * x, None)  # noqa: E731
    assert len(TRACES) <= 1  # a weak rate and a firm one differ once
    for begin in (jnp.asarray(1.0), jnp.asarray(1.0, jnp.float32), jnp.ones(())):
        loops.run(plain, begin, 3)


def test_within_jit_and_vmap_it_is_a_scan(whole):
    def traced(key):
        return loops.run(Walk(key, jnp.asarray(0.3)), start(), 24, every=2, record=norm).recorded

    keys = jax.random.split(jax.random.key(1), 2)
    together = jax.jit(jax.vmap(traced))(keys)
    alone = loops.run(Walk(keys[1], jnp.asarray(0.3)), start(), 24, every=2, record=norm)
    np.testing.assert_allclose(together[1], alone.recorded, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(traced)(jax.random.key(1)), whole.recorded, rtol=1e-5)


def test_a_function_that_closes_over_what_is_traced():
    def outer(rate):
        return loops.run(lambda x, t: (rate * x, None), jnp.asarray(8.0), 3).state

    assert float(jax.jit(outer)(0.5)) == 1.0
    assert jax.vmap(outer)(jnp.array([0.5, 1.0])).tolist() == [1.0, 8.0]


def test_large_results_are_kept_in_what_a_short_run_needs(monkeypatch, whole):
    monkeypatch.setattr("laureate.loops.driver.SMALL", 8)
    same(loops.run(WALK, start(), 24, every=2, record=norm), whole)


def test_no_steps_give_the_start_and_no_rows():
    outcome = loops.run(WALK, start(), 0, record=norm)
    same(outcome.state, start())
    assert outcome.seen.shape == outcome.recorded.shape == (0,)


def test_divergence_is_a_value():
    outcome = loops.run(lambda x, t: (x * 1e30, None), jnp.asarray(1.0), 3)
    assert int(outcome.status) == Status.DIVERGED
    assert int(loops.run(lambda n, t: (n + 1, None), jnp.asarray(1), 3).status) == Status.OK


def test_progress_is_told_and_may_be_in_given_chunks(whole):
    told = []
    same(loops.run(WALK, start(), 24, every=2, record=norm, progress=told.append), whole)
    assert told[-1][:2] == (24, 24)
    assert told[-1].remaining == 0.0
    assert all(a.done < b.done for a, b in itertools.pairwise(told))
    told.clear()
    loops.run(WALK, start(), 24, every=2, record=norm, chunk=10, progress=told.append)
    assert [p.done for p in told] == [10, 20, 24]


class StopError(Exception):
    pass


def stop_at(done):
    def progress(told):
        if told.done >= done:
            raise StopError

    return progress


@pytest.mark.parametrize("done", [2, 10, 24])
def test_stopped_anywhere_it_goes_on_from_its_checkpoint(tmp_path, whole, done):
    more = {"every": 2, "record": norm, "checkpoint": tmp_path / "run.npz"}
    with pytest.raises(StopError):
        loops.run(WALK, start(), 24, chunk=2, progress=stop_at(done), **more)
    told = []
    same(loops.run(WALK, start(), 24, progress=told.append, **more), whole)
    assert [p.done for p in told if p.done <= done] == []
    same(loops.run(WALK, start(), 24, **more), whole)  # once more: nothing is left to do


def test_a_finished_run_may_be_made_longer_but_not_shorter(tmp_path, whole):
    more = {"every": 2, "record": norm, "checkpoint": tmp_path / "run.npz"}
    loops.run(WALK, start(), 10, **more)
    same(loops.run(WALK, start(), 24, **more), whole)
    with pytest.raises(ValueError, match=r"Checkpoint\.done must be <= 10 steps; got 24"):
        loops.run(WALK, start(), 10, **more)


def test_control_c_leaves_a_checkpoint_that_can_be_loaded(tmp_path, whole):
    """The signal comes while compiled code runs; what was done until then is kept."""

    def interrupt(told):
        if told.done == 12:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)

    more = {"every": 2, "record": norm, "checkpoint": tmp_path / "run.npz"}
    with pytest.raises(KeyboardInterrupt):
        loops.run(WALK, start(), 24, chunk=2, progress=interrupt, **more)
    told = []
    same(loops.run(WALK, start(), 24, chunk=2, progress=told.append, **more), whole)
    assert told[0].done == 14


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"step": Walk(jax.random.key(2), jnp.asarray(0.3))}, r"step\.key was"),
        ({"step": Walk(jax.random.key(1), jnp.asarray(0.4))}, r"step\.rate was 0\.3\S* float32, is 0\.4"),
        ({"every": 4}, "every was 2, is 4"),
        ({"record": lambda state: state["x"]}, "record was"),
        ({"state": {"x": jnp.ones(3), "key": jax.random.key(9)}}, r"start\.x was"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path, change, field):
    given = {"step": WALK, "state": start(), "num_steps": 8, "every": 2, "record": norm, "checkpoint": tmp_path / "a"}
    loops.run(**given)
    with pytest.raises(ValueError, match=field):
        loops.run(**{**given, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_steps": -1}, "run.num_steps must be an integer >= 0; got -1"),
        ({"every": 0}, "run.every must be an integer >= 1; got 0"),
        ({"every": 3}, "run.num_steps must be a multiple of every = 3; got 4"),
        ({"chunk": 0}, "run.chunk must be None or an integer >= 1; got 0"),
    ],
)
def test_wrong_settings_raise(change, message):
    with pytest.raises(ValueError, match=message):
        loops.run(WALK, start(), **{"num_steps": 4, **change})
