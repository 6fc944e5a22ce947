"""A store that version 0.1 filled is read, and its cells count where the code still is what it was."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from laureate.lab.running import predecessors
from laureate.lab.running.definitions import program
from laureate.lab.running.fingerprint import SETTINGS
from laureate.lab.running.plan import plan, select
from laureate.lab.storing.store import Store
from laureate.papers import all_papers, paper

# What `laureate run pes/unbiased --scale smoke` of commit 6cabc4c left.
STORE = Path(__file__).parent / "data" / "store_0_1.sqlite"
TABLE = json.loads(predecessors.TABLE.read_text("utf-8"))
EXPERIMENT = paper("pes").experiments[0]
UNBIASED = {
    "trial": "laureate.claims.trials.pes:unbiased",
    "problem": "laureate.problems.unrolls:LinearQuadratic",
    "sources": "bb71ca7eb77a48da156e4bd38c66332b93738a8e43b12f99683cd4f194871070",
}


@pytest.fixture
def then(monkeypatch):
    """The libraries of that store, and a row for the code as it is now, changed or not."""
    with contextlib.closing(sqlite3.connect(STORE)) as db:
        (data,) = db.execute("SELECT data FROM environments").fetchone()
    installed = json.loads(data)["versions"]
    installed["python"] = installed["python"].rpartition(".")[0]
    row = UNBIASED | {"definitions": program((EXPERIMENT.trial, EXPERIMENT.problem, SETTINGS)).hash}
    table = TABLE | {"experiments": {"pes/unbiased": row}}
    monkeypatch.setattr(predecessors, "_table", lambda: table)
    monkeypatch.setattr(
        predecessors,
        "installed_versions",
        lambda names: {n: installed[n] for n in ("python", *names) if n in installed},
    )
    return installed, row


@pytest.fixture
def store(tmp_path):
    shutil.copy(STORE, tmp_path / "store.sqlite")
    opened = Store(tmp_path / "store.sqlite")
    yield opened
    opened.close()


def cells(seeds: int | None = None):
    return plan(select(["pes/unbiased", "pes/unbiased-truncated"], ["pes"], paper), "smoke", seeds)


def test_its_cells_count(then, store):
    found = [store.finished_cell(cell) for cell in cells()]
    assert len(found) == len(EXPERIMENT.arms)
    for cell_id in found:
        metrics = store.observations(cell_id)
        assert metrics["squared_bias"].shape == (10,)
        assert np.isfinite(metrics["squared_bias"]).all()
    assert [store.finished_cell(cell) is None for cell in cells(seeds=20)] == [False, True, False, True]


def test_not_where_the_code_or_a_library_is_another(then, store):
    installed, row = then
    row["definitions"] = "another"
    assert not any(cell.predecessor for cell in cells())
    row["definitions"] = program((EXPERIMENT.trial, EXPERIMENT.problem, SETTINGS)).hash
    installed["jax"] = "99.0"
    assert all(cell.predecessor for cell in cells())
    assert all(store.finished_cell(cell) is None for cell in cells())


def test_what_was_computed_since_comes_first(then, store):
    cell = cells()[0]
    old = store.finished_cell(cell)
    with contextlib.closing(sqlite3.connect(store.path)) as db, db:
        columns = (
            "start, count, paper, experiment, arm, problem, scale, status, seconds, compile_seconds, error, finished"
        )
        db.execute(
            f"INSERT INTO cells (fingerprint, run, {columns}) SELECT ?, run, {columns} FROM cells WHERE id = ?",
            (cell.fingerprint, old),
        )
    assert (store.finished_cell(cell) or 0) > (old or 0)


def test_the_table_speaks_of_experiments_that_there_are():
    known = {f"{each.id}/{experiment.name}" for each in all_papers() for experiment in each.experiments}
    assert set(TABLE["experiments"]) <= known
    assert all(row.keys() == UNBIASED.keys() | {"definitions"} for row in TABLE["experiments"].values())
