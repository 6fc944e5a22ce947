import datetime
import json
import re
import shutil
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import toys
from laureate.lab.cell import Outcome
from laureate.lab.errors import UserError
from laureate.lab.judging.results import Answer, ClaimId, ClaimResult
from laureate.lab.running.plan import plan
from laureate.lab.storing.shown import QUESTION, read_shown
from laureate.lab.storing.store import Store
from store_copy import copied


@pytest.fixture
def cell():
    return plan(toys.selections(toys.paper()), "smoke")[0]


def test_a_store_of_version_0_1_is_read_and_its_cells_count_where_the_fingerprint_matches(cell, tmp_path):
    """What ``laureate run pes/unbiased --scale smoke`` of commit 6cabc4c left, at schema 2."""
    path = tmp_path / "store.sqlite"
    shutil.copy(Path(__file__).parent / "data" / "store_0_1.sqlite", path)
    store = Store(path)
    kept = store.run_cells(1)
    assert [row["arm"] for row in kept] == ["truncated-es", "pes"]
    for row in kept:
        assert store.finished_cell(replace(cell, fingerprint=row["fingerprint"], start=0)) == row["id"]
        bias = store.observations(row["id"])["squared_bias"]
        assert bias.shape == (10,)
        assert np.isfinite(bias).all()
    assert store.finished_cell(cell) is None
    store.close()


def test_scripts_read_a_copy_and_leave_the_file_as_it_is(tmp_path):
    path = tmp_path / "store.sqlite"
    shutil.copy(Path(__file__).parent / "data" / "store_0_1.sqlite", path)
    before = path.read_bytes()
    with copied(path) as store:  # of schema 2: opened for writing it would be brought up to date
        assert store.last_run() == 1
        store.add_artefact(1, "page.html", "text/html", b"<p>")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["store.sqlite"]
    with pytest.raises(sqlite3.OperationalError, match="unable to open"), copied(tmp_path / "none.sqlite"):
        pass


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


def keep(store: Store, verdict: str, scale: str = "smoke", seeds: int = 10, problem: str = "default") -> int:
    run = start(store)
    result = ClaimResult(
        id=ClaimId("toy", "better"), experiment="toy", statement="s", kind="better", verdict=verdict, scale=scale,
        seeds=seeds, problem=problem, run=run,
    )  # fmt: skip
    store.add_results(run, [result])
    return run


def shown(store: Store) -> tuple[str, int | None]:
    """What is shown of the claim, by the store and by the reader that loads no NumPy."""
    (result,) = [found for (_, problem), found in store.shown().items() if problem == "default"]
    (read,) = read_shown(store.path).values()
    assert read.to_json() == result.to_json()
    return result.to_json()["verdict"], result.run


def test_the_newest_result_is_shown_by_claim_and_problem(store):
    for verdict, problem in [("refuted", "default"), ("supported", "default"), ("inconclusive", "mine.py:bowl")]:
        keep(store, verdict, problem=problem)
    assert {key: result.to_json()["verdict"] for key, result in store.shown().items()} == {
        ("toy/better", "default"): "supported",
        ("toy/better", "mine.py:bowl"): "inconclusive",
    }


def test_the_largest_scale_is_shown_then_the_most_seeds_then_the_newest(store):
    desk = keep(store, "supported", "desk")
    keep(store, "refuted", "smoke", seeds=100)
    assert shown(store) == ("supported", desk), "a smoke run replaces no desk verdict, however many its seeds"
    more = keep(store, "inconclusive", "desk", seeds=20)
    keep(store, "refuted", "desk", seeds=10)
    assert shown(store) == ("inconclusive", more)
    newest = keep(store, "refuted", "desk", seeds=20)
    assert shown(store) == ("refuted", newest)
    keep(store, "not run", "full", seeds=0)
    assert shown(store) == ("refuted", newest), "an attempt that failed hides no verdict"
    full = keep(store, "supported", "full", seeds=5)
    assert shown(store) == ("supported", full)
    assert [result.scale for result in store.history("toy/better", "default", 3)] == ["full", "full", "desk"]


def test_looks_are_the_numbers_of_seeds_before_in_their_order(store):
    """Of this claim, problem and scale; an attempt that failed was no look, first or later."""
    for seeds in (0, 14, 10, 0, 14, 20):
        keep(store, "inconclusive" if seeds else "not run", seeds=seeds)
    keep(store, "supported", "desk", seeds=30)
    keep(store, "supported", seeds=40, problem="mine.py:bowl")
    expected = {14: (), 10: (14,), 20: (14, 10), 50: (14, 10, 20), 30: (14, 10, 20)}
    assert {seeds: store.earlier_looks("toy/better", "default", "smoke", seeds) for seeds in expected} == expected
    assert store.earlier_looks("toy/better", "default", "desk", 40) == (30,)
    assert store.earlier_looks("toy/worse", "default", "smoke", 50) == ()


def test_what_is_shown_is_found_by_the_index_alone(store):
    keep(store, "supported")
    steps = [row[3] for row in store._db.execute(f"EXPLAIN QUERY PLAN {QUESTION}", (None,))]
    assert any("USING INDEX verdicts_by_rank (claim=? AND problem=?)" in step for step in steps), steps
    assert not any("TEMP B-TREE FOR ORDER BY" in step for step in steps), steps


def test_results_that_an_older_laureate_stored_are_read(store):
    run = start(store)
    old = {"id": "toy/better", "paper": "toy", "experiment": "toy", "statement": "s", "kind": "better", "seeds": 10}
    old |= {"verdict": "supported", "effect": 2.0, "low": None, "high": 2.5, "scale": "smoke", "problem": "default"}
    table = {"ours": {"mean": [1.0, None], "low": None, "high": None, "seeds": 10, "reason": "1 of 10 not finite"}}
    asked = {"id": "toy/all", "paper": "toy", "experiment": "toy", "kind": "question", "answers": table}
    for record in (old, asked):
        store._db.execute(
            "INSERT INTO verdicts (run, claim, problem, data) VALUES (?, ?, 'default', ?)",
            (run, record["id"], json.dumps(record)),
        )
    claim, question = store.results(run)
    assert (claim.verdict, claim.effect, claim.high, claim.measured) == ("supported", 2.0, 2.5, None)
    assert claim.role == "stand-in"
    assert question.answers == (Answer("ours", [1.0, None], None, None, 10, "1 of 10 not finite"),)
    assert store.shown()["toy/better", "default"].to_json() == claim.to_json() | {"started": store.run(run)["started"]}


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


@pytest.mark.parametrize("zone", ["NPT-5:45", "NST3:30", "UTC0"])
def test_every_moment_is_kept_in_utc_wherever_the_machine_stands(cell, tmp_path, monkeypatch, zone):
    """So that texts sort by time also when clocks change: all that looks like a moment, in every table."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        store = Store(tmp_path / "store.sqlite")
        run = store.start_run("laureate run toy", "smoke", 10, "default", {})
        store.add_cell(run, cell, Outcome({"loss": np.zeros(5)}))
        store.add_benchmark({"id": "toy"}, {})  # type: ignore[typeddict-item]
        store.end_run(run, "finished")
        store.close()
        after = datetime.datetime.now(datetime.UTC)
    finally:
        monkeypatch.undo()
        time.tzset()
    with sqlite3.connect(tmp_path / "store.sqlite") as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        values = [value for table in tables for row in db.execute(f"SELECT * FROM {table}") for value in row]
    moments = [value for value in values if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value)]
    assert len(moments) == 4  # a run's two, a cell's, a benchmark's
    for moment in map(datetime.datetime.fromisoformat, moments):
        assert moment.utcoffset() == datetime.timedelta(0)
        assert before <= moment <= after
