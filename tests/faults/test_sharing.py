"""Several at once on one store: nobody is turned away, and nothing is computed twice."""

import json
import sqlite3
import threading
import time

import harness
import pytest
from toy_laureate import CELLS, Drawn, paper

import toys
from laureate.lab.running import run as run_module
from laureate.lab.running.plan import plan
from laureate.lab.running.run import run_claims
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store


@pytest.mark.parametrize("executor", ["numpy", pytest.param("jax", marks=pytest.mark.slow)])
def test_three_runs_at_once(home, executor):
    """On a store that is not there yet, so that they also meet while they make it."""
    processes = [harness.start(home, workers=2, executor=executor) for _ in range(3)]
    said = [process.communicate(timeout=harness.PATIENCE) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert not any("locked" in errors for _, errors in said)
    told = [json.loads(output) for output, _ in said]
    assert sum(one["cells"]["computed"] for one in told) == CELLS
    assert [one["cells"]["total"] for one in told] == [CELLS] * 3
    assert harness.verdicts(told[0]) == harness.verdicts(told[1]) == harness.verdicts(told[2])
    harness.kept(home)  # each cell once
    with sqlite3.connect(home / "store.sqlite") as db:
        assert db.execute("SELECT count(*) FROM cells").fetchone() == (CELLS,)
        assert db.execute("SELECT count(*) FROM leases").fetchone() == (0,)
    assert not list((home / "running").iterdir())


def test_many_that_make_the_same_new_store(home):
    wrong = []

    def use():
        try:
            store = Store(store_path())
            run = store.start_run("laureate run toy", "smoke", 8, "default", {})
            store.end_run(run, "finished")
            store.close()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=use) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    store = Store(store_path())
    assert [row["status"] for row in store.runs()] == ["finished"] * 12
    store.close()


class Notes:
    """A progress that remembers what it was told."""

    def __init__(self):
        self.said = []

    def start(self, to_compute, cached, workers):
        self.said.append(("start", len(to_compute), cached))

    def finished(self, cell, outcome):
        self.said.append(("finished", cell.key))

    def waiting(self, cells):
        self.said.append(("waiting", len(cells)))

    def stop(self):
        self.said.append(("stop",))


def wait_for(condition):
    """For a while: a test that is wrong must end, too."""
    end = time.monotonic() + harness.PATIENCE
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.01)


def test_what_another_run_has_under_way_is_waited_for_and_taken_over_when_it_dies(home, monkeypatch):
    monkeypatch.setattr(run_module, "make_executor", lambda *_: Drawn(0.0))
    monkeypatch.setattr(run_module, "WAIT_SECONDS", 0.01)
    other = Store(store_path())
    cells = plan(toys.selections(paper()), "smoke")
    run = other.start_run("laureate run toy", "smoke", 8, "default", {"machine": "m"})
    mine, finished = other.take(run, cells[:10])
    assert (len(mine), finished) == (10, {})
    assert other.take(run, cells[:10]) == (mine, {}), "asking again changes nothing"
    ours = Store(store_path())
    (outcomes,) = [list(Drawn(0.0).outcomes(cells[:1]))]
    notes = Notes()

    def other_goes_on():
        wait_for(lambda: ("waiting", 10) in notes.said)
        other_here = Store(store_path())
        other_here.add_cell(run, *outcomes[0])
        wait_for(lambda: len([told for told in notes.said if told[0] == "finished"]) >= CELLS - 9)
        other._living.pop(run).end()  # as the system does when a process dies
        other_here.close()

    thread = threading.Thread(target=other_goes_on)
    thread.start()
    summary = run_claims(ours, toys.selections(paper()), scale="smoke", progress=notes)
    thread.join()
    assert summary.cells == {"total": CELLS, "computed": CELLS - 1, "cached": 1, "failed": 0}
    assert len({told[1] for told in notes.said if told[0] == "finished"}) == CELLS
    assert [row["status"] for row in ours.runs()] == ["finished", "interrupted"]
    harness.kept(home)
    ours.close()
    other.close()


def test_a_run_whose_process_died_is_interrupted_by_the_next(home):
    store = Store(store_path())
    cells = plan(toys.selections(paper()), "smoke")
    dead = store.start_run("x", "smoke", 8, "default", {})
    store.take(dead, cells)
    assert store.living_runs() == [dead]
    store._living.pop(dead).end()  # as the system does when a process dies
    assert (store.living_runs(), store.run(dead)["status"]) == ([], "interrupted")
    run = store.start_run("x", "smoke", 8, "default", {})
    assert len(store.take(run, cells)[0]) == CELLS
    rows = store._db.execute("SELECT id, status FROM runs").fetchall()
    assert [tuple(row) for row in rows] == [(dead, "interrupted"), (run, "running")]
    store.end_run(run, "finished")
    store.close()


def test_a_cell_that_failed_elsewhere_is_tried_here(home, monkeypatch):
    from laureate.lab.cell import Outcome

    monkeypatch.setattr(run_module, "make_executor", lambda *_: Drawn(0.0))
    other, ours = Store(store_path()), Store(store_path())
    cells = plan(toys.selections(paper()), "smoke")
    run = other.start_run("laureate run toy", "smoke", 8, "default", {"machine": "m"})
    other.take(run, cells)
    other.add_cell(run, cells[0], Outcome(error="no"))
    mine, _ = ours.take(ours.start_run("x", "smoke", 8, "default", {}), cells)
    assert [cell.key for cell in mine] == [cells[0].key]
    other.end_run(run, "failed")
    ours.close()
    other.close()


def test_fresh_waits_for_nobody(home, monkeypatch):
    monkeypatch.setattr(run_module, "make_executor", lambda *_: Drawn(0.0))
    other, ours = Store(store_path()), Store(store_path())
    other.take(other.start_run("x", "smoke", 8, "default", {}), plan(toys.selections(paper()), "smoke"))
    assert run_claims(ours, toys.selections(paper()), scale="smoke", fresh=True).cells["computed"] == CELLS
    ours.close()
    other.close()
