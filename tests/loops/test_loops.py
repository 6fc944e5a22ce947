"""The loop: chunks, stopping and going on change nothing; one program for every number of steps."""

import itertools
import os
import signal
import time
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from laureate import loops
from laureate._core import Status
from laureate.loops import driver

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


def test_a_short_run_has_room_of_its_own_only_where_a_long_ones_is_large(monkeypatch):
    """By bytes, to the last: 1,000 rows of two int16 and a float32 are 8,000."""
    advance, rooms = driver._advance, []
    monkeypatch.setattr(driver, "_advance", lambda *given: (rooms.append(given[5]), advance(*given))[1])
    step = lambda x, t: (x, (x, jnp.zeros(2, jnp.int16)))  # noqa: E731
    for most, room in ((8000, 1000), (7999, 4)):
        monkeypatch.setattr(driver, "SMALL", most)
        loops.run(step, jnp.zeros(()), 3)
        assert rooms[-1] == room


def test_the_index_is_of_one_type_however_steps_are_repeated():
    """In double precision too, where whole numbers are of 64 bits: what is drawn by the index is then the same."""
    with jax.enable_x64(True):
        for count in (None, 2):
            repeated = lambda count=count: loops.repeat(lambda x, t: (x, t), jnp.zeros(()), 3, 2, every=2, count=count)  # noqa: E731
            seen = jax.eval_shape(repeated)[1][0]
            assert (seen.dtype, seen.shape) == (np.int32, (2, 2))


def test_a_first_step_that_is_traced_and_nobody_to_tell_within_jit():
    add = lambda x, t: (x + t, t)  # noqa: E731
    outcome = jax.jit(lambda first: loops.run(add, jnp.asarray(1), 3, first=first))(5)
    assert (int(outcome.state), outcome.seen.tolist()) == (19, [5, 6, 7])
    told = []
    with pytest.raises(jax.errors.TracerArrayConversionError):  # and not in silence
        jax.jit(lambda x: loops.run(add, x, 3, progress=told.append).state)(1)
    assert told == []


def test_no_steps_give_the_start_and_no_rows():
    outcome = loops.run(WALK, start(), 0, record=norm)
    same(outcome.state, start())
    assert outcome.seen.shape == outcome.recorded.shape == (0,)
    rows = lambda x, t: (x, (x[0], x[0] > 0, t, x.astype(jnp.bfloat16)))  # noqa: E731
    none, two = (loops.run(rows, jnp.zeros((2, 3)), steps, every=2, record=lambda x: x) for steps in (0, 2))
    for one, other in zip(jax.tree.leaves(none[1:3]), jax.tree.leaves(two[1:3]), strict=True):
        assert (one.shape, one.dtype) == ((0, *other.shape[1:]), other.dtype), "the form of a run that has steps"
    _, empty = loops.chunks(None, None, 0, 1, shapes=lambda: jax.ShapeDtypeStruct((1, 2), np.int8))  # pyright: ignore[reportArgumentType]
    assert (empty.shape, empty.dtype) == ((0, 2), np.int8)


def test_rows_without_numbers_keep_their_shape():
    """Else the run is lost after its last step."""
    outcome = loops.run(lambda x, t: (x, (jnp.zeros((0, 3)), jnp.zeros((2, 0)), t)), jnp.zeros(()), 4, every=2)
    assert [leaf.shape for leaf in outcome.seen] == [(4, 0, 3), (4, 2, 0), (4,)]


def test_divergence_is_a_value():
    outcome = loops.run(lambda x, t: (x * 1e30, None), jnp.asarray(1.0), 3)
    assert int(outcome.status) == Status.DIVERGED
    assert int(loops.run(lambda n, t: (n + 1, None), jnp.asarray(1), 3).status) == Status.OK
    for bad in (np.nan, np.inf):  # one number of one leaf
        state = {"a": jnp.zeros(2), "b": jnp.asarray([1.0, bad]), "n": jnp.arange(2), "name": "walk"}
        assert int(driver.status_of(state)) == Status.DIVERGED


def test_progress_is_told_and_may_be_in_given_chunks(whole):
    told = []
    same(loops.run(WALK, start(), 24, every=2, record=norm, progress=told.append), whole)
    assert told[-1][:2] == (24, 24)
    assert told[-1].remaining == 0.0
    assert all(a.done < b.done for a, b in itertools.pairwise(told))
    told.clear()
    loops.run(WALK, start(), 24, every=2, record=norm, chunk=10, progress=told.append)
    assert [p.done for p in told] == [10, 20, 24]


def by_our_clock(monkeypatch, first_call):
    """A host's side whose calls last what we say: a program to compile, then 0.3, 5.5 and 0.01 seconds a block."""
    now, calls = [100.0], []
    monkeypatch.setattr(driver, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))

    def advance(state, done, count):
        assert 0 <= done < 100
        now[0] += (0.3 if done < 14 else 5.5 if done < 20 else 0.01) * count + (0 if calls else first_call)
        calls.append((done, count))
        return state + count, np.arange(done, done + 8, dtype=np.int32)  # rows behind the first `count` are nobody's

    return advance, calls, now


class Noted(loops.Checkpoint):
    """Remembers when it was written."""

    def save(self, done, state, rows):
        self.times = [*getattr(self, "times", []), done]
        super().save(done, state, rows)


def test_chunks_last_about_a_second_files_come_every_ten_and_what_remains_is_foretold(monkeypatch, tmp_path):
    """Chunks double below a second and halve above it, down to one block; what remains is told by the pace so far."""
    advance, calls, now = by_our_clock(monkeypatch, first_call=2.0)
    told, file = [], Noted(tmp_path / "a.npz", None)
    more = {"steps_per_block": 5, "shapes": lambda: jax.ShapeDtypeStruct((8,), np.int32), "checkpoint": file}
    spent = lambda p: told.append((p, now[0] - 100))  # noqa: E731
    state, rows = loops.chunks(advance, jnp.asarray(0), 50, 8, progress=spent, **more)
    counts = [1, 1, 2, 4, 2, 4, 2, 1, 1, 1, 1, 1, 2, 4, 8, 8, 7]
    assert calls == list(zip(np.cumsum([0, *counts[:-1]]).tolist(), counts, strict=True))
    assert_array_equal(rows, np.arange(50))
    assert int(state) == 50
    assert file.times == [16, 18, 20, 50]
    for (progress, seconds), done in zip(told, np.cumsum(counts), strict=True):
        expected = (5 * done, 250, seconds, seconds / done * (50 - done))
        np.testing.assert_allclose(progress, expected, rtol=1e-9)
    # Gone on with, it foretells by what this call has done, and may not be asked for less.
    told.clear()
    now[0] = 100.0
    state, rows = loops.chunks(advance, jnp.asarray(0), 60, 8, progress=spent, **more)
    assert_array_equal(rows, np.arange(60))
    assert [tuple(p)[:2] for p, _ in told] == [(255, 300), (260, 300), (270, 300), (290, 300), (300, 300)]
    np.testing.assert_allclose(told[0][0][2:], (0.01, 0.09), rtol=1e-6)
    with pytest.raises(ValueError, match=r"Checkpoint\.done must be <= 295 steps; got 300"):
        loops.chunks(advance, jnp.asarray(0), 59, 8, **more)


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
