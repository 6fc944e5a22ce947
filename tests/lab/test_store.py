import sqlite3

import numpy as np
import pytest

import toys
from laureate.lab.errors import UserError
from laureate.lab.running.plan import plan
from laureate.lab.running.worker import Outcome
from laureate.lab.storing.store import Store


@pytest.fixture
def cell():
    return plan(toys.selections(toys.paper()), "smoke")[0]


def start(store: Store) -> int:
    return store.start_run("laureate run toy", "smoke", 10, "default", {"machine": "a cpu"})


def test_a_cell_comes_back_as_it_was(store, cell):
    metrics = {"loss": np.arange(5.0), "curve": np.ones((5, 3), np.float32), "flag": np.arange(5) > 2}
    run = start(store)
    cell_id = store.add_cell(run, cell, Outcome(metrics, 1.5, 0.5))
    again = Store(store.path)
    assert again.finished_cell(cell) == cell_id
    found = again.observations(cell_id)
    assert found.keys() == metrics.keys()
    for name, values in metrics.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)
    assert again.cell_seconds([cell_id]) == {cell_id: 2.0}
    assert (again.run(run) or {})["environment"] == {"machine": "a cpu"}
    again.close()


def test_a_failed_cell_is_kept_with_its_traceback_and_is_not_finished(store, cell):
    run = start(store)
    store.add_cell(run, cell, Outcome(error="Traceback: no"))
    assert store.finished_cell(cell) is None
    (row,) = store.run_cells(run)
    assert (row["status"], row["error"]) == ("failed", "Traceback: no")


def test_a_cell_that_cannot_be_written_leaves_nothing_behind(store, cell):
    run = start(store)
    with pytest.raises(ValueError, match="allow_pickle"):
        store.add_cell(run, cell, Outcome({"good": np.ones(5), "bad": np.array([object()])}))
    assert store.counts() == {"runs": 1, "cells": 0, "observations": 0, "verdicts": 0}


def test_the_latest_verdict_counts_by_claim_and_problem(store):
    for verdict, problem in [("refuted", "default"), ("supported", "default"), ("inconclusive", "mine.py:bowl")]:
        run = start(store)
        store.add_verdicts(run, problem, [{"id": "toy/better", "verdict": verdict}])
    latest = store.latest_verdicts()
    assert {key: record["verdict"] for key, record in latest.items()} == {
        ("toy/better", "default"): "supported",
        ("toy/better", "mine.py:bowl"): "inconclusive",
    }


def test_artefacts(store):
    run = start(store)
    store.add_artefact(run, "page.html", "text/html", b"<p>")
    assert store.artefact(run, "page.html") == b"<p>"
    assert store.artefact(run, "other") is None


def test_a_store_of_the_future_is_refused_politely(store, home):
    store.close()
    with sqlite3.connect(home / "store.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match=r"newer Laureate .*Upgrade laureate"):
        Store(home / "store.sqlite")


def test_a_file_that_is_no_store_says_so(tmp_path):
    path = tmp_path / "store.sqlite"
    path.write_bytes(b"this is not a database, it is a sentence" * 100)
    with pytest.raises(UserError, match=r"is damaged.*laureate doctor --repair"):
        Store(path)


def test_two_writers_wait_for_each_other(store, cell):
    other = Store(store.path)
    runs = [start(store), start(other)]
    for i in range(20):
        (store, other)[i % 2].add_cell(runs[i % 2], cell, Outcome({"loss": np.ones(5)}))
    assert store.counts()["cells"] == 20
    other.close()


def test_numbers_that_are_not_those_that_were_written_are_not_given(store):
    first, second = plan(toys.selections(toys.paper()), "smoke")[:2]
    run = start(store)
    ids = [store.add_cell(run, cell, Outcome({"loss": np.arange(5.0) + i})) for i, cell in enumerate((first, second))]
    (data,) = store._db.execute("SELECT data FROM observations WHERE cell = ?", (ids[0],)).fetchone()
    other = store._db.execute("SELECT data FROM observations WHERE cell = ?", (ids[1],)).fetchone()[0]
    flipped = bytearray(data)
    flipped[-20] ^= 1
    for wrong in (bytes(flipped), other, data[:50], b""):
        store._db.execute("UPDATE observations SET data = ? WHERE cell = ?", (wrong, ids[0]))
        with pytest.raises(UserError, match=r"is damaged: the numbers of cell 1 cannot be read. `laureate doctor"):
            store.observations(ids[0])
        assert store.unreadable() == 1
    store._db.execute("UPDATE observations SET data = ? WHERE cell = ?", (data, ids[0]))
    np.testing.assert_array_equal(store.observations(ids[0])["loss"], np.arange(5.0))
