"""A run that is stopped at any moment loses nothing that was finished, and repeating the command completes it."""

import contextlib
import os
import random
import signal
import sqlite3
import sys
import time

import harness
import pytest
from toy_laureate import CELLS

PES = (sys.executable, "-m", "laureate", "run", "pes", "--scale", "smoke", "--quiet", "--json")


def killed_at(home, moment, draw, **options) -> bool:
    """Start a run and kill its parent, or one of its workers, at that moment; whether it finished all the same."""
    process = harness.start(home, **options)
    time.sleep(moment)
    workers = harness.workers_of(home)
    if workers and draw.random() < 0.5:
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(workers), signal.SIGKILL)
        process.communicate(timeout=harness.PATIENCE)
        assert process.returncode == 0, "a worker that dies does not take the run with it"
    elif process.poll() is None:
        harness.kill(process)
    else:
        process.communicate()
    harness.assert_nobody_left(home)
    return process.returncode == 0


def torture(tmp_path, kills, seconds, reference, **options):
    """Kill again and again in one home until a run comes through, then begin anew in another."""
    draw = random.Random(20)
    number, done = 0, True
    before: dict = {}
    home = tmp_path
    for _ in range(kills):
        if done:
            number, before = number + 1, {}
        home = tmp_path / f"home-{number}"
        done = killed_at(home, draw.uniform(0.0, seconds), draw, **options)
        after = harness.kept(home)
        assert before.items() <= after.items(), "what was finished is there, bit for bit"
        before = after
        if after:
            harness.assert_sound(home)
    told = harness.complete(home, **options)
    assert told["cells"]["failed"] == 0
    assert harness.verdicts(told) == reference
    assert not list((home / "running").iterdir()), "no lock is left"
    return number


def timed(home, **options) -> tuple[float, dict]:
    start = time.monotonic()
    told = harness.complete(home, **options)
    return time.monotonic() - start, told


@pytest.mark.slow
def test_kill_9_at_a_few_random_moments(tmp_path):
    seconds, told = timed(tmp_path / "straight")
    torture(tmp_path, 5, seconds, harness.verdicts(told))


@pytest.mark.slow
def test_kill_9_at_fifty_random_moments_of_parent_or_worker(tmp_path):
    options = {"workers": 2, "executor": "jax"}
    seconds, told = timed(tmp_path / "straight", **options)
    torture(tmp_path, 50, seconds, harness.verdicts(told), **options)


@pytest.mark.slow
def test_kill_9_of_a_real_paper(tmp_path):
    options = {"command": PES, "workers": 2}
    seconds, told = timed(tmp_path / "straight", **options)
    torture(tmp_path, 5, seconds, harness.verdicts(told), **options)


def test_workers_leave_with_a_killed_parent_and_the_next_run_goes_on(home):
    """With jax and real workers, once: in the middle of the computing."""
    process = harness.start(home, workers=2, executor="jax", held=True)
    wait_for_cells(home, process, 3)
    before = harness.kept(home)
    harness.kill(process)
    harness.assert_nobody_left(home)
    assert CELLS > len(harness.kept(home)) >= len(before) >= 3
    with sqlite3.connect(home / "store.sqlite") as db:
        assert db.execute("SELECT status FROM runs").fetchone() == ("running",), "nobody could write it down"
    told = harness.complete(home, workers=1, executor="jax")
    assert told["cells"]["cached"] >= len(before)
    assert told["claims"][0]["verdict"] == "supported"
    with sqlite3.connect(home / "store.sqlite") as db:
        assert db.execute("SELECT status FROM runs").fetchall() == [("interrupted",), ("finished",)]
        assert db.execute("SELECT count(*) FROM leases").fetchone() == (0,)


@pytest.mark.parametrize("executor", ["numpy", pytest.param("jax", marks=pytest.mark.slow)])
def test_ctrl_c_exits_130_and_leaves_a_consistent_store(home, executor):
    process = harness.start(home, workers=2, executor=executor, held=True)
    wait_for_cells(home, process, 4)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    _, errors = process.communicate(timeout=harness.PATIENCE)
    assert process.returncode == 130
    assert errors.strip() == "laureate: stopped; what was finished is kept. Repeat the command to go on."
    count = len(harness.kept(home))
    assert 4 <= count < CELLS
    harness.assert_sound(home)
    with sqlite3.connect(home / "store.sqlite") as db:
        assert db.execute("SELECT status FROM runs").fetchone() == ("interrupted",)
    before = harness.kept(home)
    harness.complete(home, executor=executor)
    assert before.items() <= harness.kept(home).items()


def wait_for_cells(home, process, count):
    """Until so many numbers are kept."""
    while process.poll() is None and len(harness.kept(home)) < count:
        time.sleep(0.02)
