"""Stores that are older, newer or damaged, and clocks that jump."""

import contextlib
import datetime
import random
import sqlite3
from pathlib import Path

import harness
import numpy as np
import pytest
from toy_laureate import CELLS, Drawn, paper

import toys
from laureate.lab.errors import UserError
from laureate.lab.records import run_observations
from laureate.lab.running import run as run_module
from laureate.lab.running.run import run_claims
from laureate.lab.storing import schema
from laureate.lab.storing import store as store_module
from laureate.lab.storing.arrays import pack
from laureate.lab.storing.home import store_path
from laureate.lab.storing.salvage import repair
from laureate.lab.storing.store import Store

OLD = Path(__file__).with_name("schema_1.sql")


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    monkeypatch.setattr(run_module, "make_executor", lambda *_: Drawn(0.0))


def measure(**options):
    with contextlib.closing(Store(store_path())) as store:
        return run_claims(store, toys.selections(paper()), scale="smoke", **options)


# -- older and newer ---------------------------------------------------------------------------------------------------


@pytest.fixture
def old(home):
    with sqlite3.connect(store_path()) as db:
        db.executescript(OLD.read_text())
        db.execute("INSERT INTO observations VALUES (1, 'loss', ?)", (pack(np.array([1.0, 2.0])),))
    db.close()
    return store_path()


def shape(path: Path) -> dict[str, list]:
    with sqlite3.connect(path) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {table: db.execute(f"PRAGMA table_info({table})").fetchall() for table in tables}


def test_an_older_store_is_backed_up_and_then_brought_up_to_date(old, tmp_path):
    before = old.read_bytes()
    store = Store(old)
    assert store._db.execute("PRAGMA user_version").fetchone()[0] == schema.VERSION
    assert store.run(1)["command"] == "laureate run toy"
    np.testing.assert_array_equal(store.observations(1)["loss"], [1.0, 2.0])
    assert store.shown()["toy/better", "default"].to_json()["verdict"] == "supported"
    store.close()
    backup = old.with_name("store.schema-1.sqlite")
    with sqlite3.connect(backup) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert list(db.iterdump()) == list(_from_bytes(before, tmp_path).iterdump())
    Store(tmp_path / "new.sqlite").close()
    assert shape(old) == shape(tmp_path / "new.sqlite"), "brought up to date is the same as made today"
    assert measure().cells["computed"] == CELLS
    assert sorted(file.name for file in old.parent.glob("*.new")) == []


def _from_bytes(data: bytes, folder: Path) -> sqlite3.Connection:
    (folder / "copy.sqlite").write_bytes(data)
    return sqlite3.connect(folder / "copy.sqlite")


def test_without_room_for_the_backup_nothing_is_changed(old, monkeypatch):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(schema, "_back_up", full)
    with pytest.raises((UserError, sqlite3.OperationalError), match="full"):
        Store(old)
    with sqlite3.connect(old) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'leases'").fetchone()
    monkeypatch.undo()


def test_a_newer_store_is_refused_and_not_touched(home):
    Store(store_path()).close()
    with sqlite3.connect(store_path()) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = store_path().read_bytes()
    with pytest.raises(UserError, match=r"newer Laureate \(schema 99, ours is \d+\). Upgrade laureate"):
        Store(store_path())
    assert store_path().read_bytes() == before


# -- damaged -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def measured(home):
    """A store with two runs, its file alone (no log beside it), and what it held."""
    told = measure()
    measure(fresh=True)
    with sqlite3.connect(store_path()) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    return told


def damage(path: Path, draw: random.Random) -> str:
    """Something that happens to files: a lost sector, a cut end, zeros, a flipped bit."""
    data = bytearray(path.read_bytes())
    kind = draw.choice(["noise", "zeros", "cut", "bit", "header", "page"])
    place = draw.randrange(len(data))
    if kind == "noise":
        data[place : place + 512] = draw.randbytes(512)
    elif kind == "zeros":
        data[place : place + 4096] = bytes(4096)
    elif kind == "page":
        start = 4096 * draw.randrange(1, len(data) // 4096)
        data[start : start + 4096] = draw.randbytes(4096)
    elif kind == "cut":
        del data[place:]
    elif kind == "bit":
        data[place] ^= 1 << draw.randrange(8)
    else:
        data[:100] = draw.randbytes(100)
    path.write_bytes(data)
    return kind


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 300), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_what_is_readable_is_saved_and_the_rest_is_computed_again(measured, home, seeds):
    whole = store_path().read_bytes()
    truth = harness.verdicts(measured.to_json())
    truth_numbers = set(numbers_of(home).values())
    saved_cells = []
    for seed in seeds:
        for file in home.glob("store*"):
            file.unlink()
        store_path().write_bytes(whole)
        kind = damage(store_path(), random.Random(seed))
        complaint = complaint_of(measure)
        assert "\n" not in complaint, kind
        assert complaint == "" or "doctor --repair" in complaint, kind
        before = store_path().read_bytes()
        done = repair(store_path())
        if done.kept_as is not None:
            assert done.kept_as.read_bytes() == before, "the damaged file is kept as it was"
            saved_cells.append(done.rows["cells"])
        harness.assert_sound(home)
        again = measure()
        assert again.cells["failed"] == 0, kind
        assert harness.verdicts(again.to_json()) == truth, (seed, kind)
        assert set(numbers_of(home).values()) <= truth_numbers, "no number was made up"
    assert any(saved_cells), "something was saved from at least one"


def complaint_of(action) -> str:
    try:
        action()
    except UserError as told:
        return str(told)
    return ""


def numbers_of(home: Path) -> dict[tuple, bytes]:
    with sqlite3.connect(home / "store.sqlite") as db:
        rows = db.execute("SELECT cell, metric, data FROM observations JOIN cells ON cells.id = cell").fetchall()
    return {row[:2]: row[2] for row in rows}


def test_one_lost_page_of_numbers_costs_few_cells(measured, home):
    """The page of numbers in the middle of the file: the cells around it go, the others stay."""
    data = bytearray(store_path().read_bytes())
    with sqlite3.connect(store_path()) as db:
        (blob,) = db.execute("SELECT data FROM observations WHERE rowid = 30").fetchone()
    db.close()
    page = data.index(blob) // 4096
    data[4096 * page : 4096 * (page + 1)] = bytes(4096)
    store_path().write_bytes(data)
    done = repair(store_path())
    assert done.rows["runs"] == 2
    assert 2 * CELLS - 8 <= done.rows["cells"] < 2 * CELLS
    assert done.lost_cells == 2 * CELLS - done.rows["cells"]
    store = Store(store_path())
    arms = run_observations(store, 2)["toy", "toy"]
    assert len(arms["ours"]["loss"])
    store.close()
    assert harness.verdicts(measure().to_json()) == harness.verdicts(measured.to_json())


def test_a_deleted_run_is_no_loss(measured):
    """Numbers of rows have gaps then, at the beginning and in the middle, but no cell around them has lost any."""
    measure(fresh=True)
    measure(fresh=True)
    with contextlib.closing(Store(store_path())) as store:
        assert store.delete_run(1) == store.delete_run(3) == CELLS
        (blob,), *_ = store._db.execute("SELECT data FROM observations WHERE cell = ?", (2 * CELLS,))
    with sqlite3.connect(store_path()) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    whole = store_path().read_bytes()
    store_path().write_bytes(bytes(100) + whole[100:])
    done = repair(store_path())
    assert (done.rows["cells"], done.lost_cells) == (2 * CELLS, 0)
    assert measure().cells["computed"] == 0
    # And what is really lost, the last page of numbers before a gap, is all that is.
    place = 4096 * (whole.index(blob) // 4096)
    store_path().write_bytes(whole[:place] + bytes(4096) + whole[place + 4096 :])
    done = repair(store_path())
    assert 2 * CELLS - 8 <= done.rows["cells"] < 2 * CELLS
    assert done.lost_cells == 2 * CELLS - done.rows["cells"]


def test_a_lost_header_costs_nothing(measured):
    data = bytearray(store_path().read_bytes())
    data[:100] = bytes(100)
    store_path().write_bytes(data)
    with pytest.raises(UserError, match=r"is damaged: file is not a database. `laureate doctor --repair` saves"):
        Store(store_path())
    assert repair(store_path()).rows["cells"] == 2 * CELLS
    assert measure().cells["computed"] == 0


def test_a_file_that_never_was_a_store_gives_an_empty_one(home):
    store_path().write_bytes(b"this is not a database, it is a sentence" * 500)
    done = repair(store_path())
    assert done.rows["runs"] == 0
    assert done.kept_as.read_bytes().startswith(b"this is not")
    assert measure().cells["computed"] == CELLS


def test_a_whole_store_is_left_alone_and_a_living_run_is_not_disturbed(measured):
    before = store_path().read_bytes()
    assert repair(store_path()).kept_as is None
    store = Store(store_path())
    run = store.start_run("x", "smoke", 8, "default", {})
    with pytest.raises(UserError, match=r"A run is writing to the store. Stop it first"):
        repair(store_path())
    store.end_run(run, "finished")
    store.close()
    assert len(before)


# -- clocks ------------------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_backwards(home, monkeypatch):
    """The newest run is the newest, and none ends before it began or took less than no time."""
    clock = {"now": datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)}

    def backwards():
        clock["now"] -= datetime.timedelta(hours=7)
        return clock["now"].isoformat(timespec="seconds")

    monkeypatch.setattr(store_module, "_now", backwards)
    monkeypatch.setattr("time.time", lambda: clock["now"].timestamp())
    first, second = measure(), measure(fresh=True)
    assert second.run == first.run + 1
    store = Store(store_path())
    assert [row["id"] for row in store.runs()] == [second.run, first.run]
    for row in store.runs():
        assert (row["finished"] or "") >= row["started"]
    assert store.shown()["toy/better", "default"].run == second.run
    assert all(cell["seconds"] >= 0 for cell in store.run_cells(second.run))
    assert measure().cells["cached"] == CELLS
    store.close()


def test_cells_on_a_lost_page_are_counted_as_lost(measured):
    """Of the cells themselves: what the index still lists and nobody can read is lost too."""
    with sqlite3.connect(store_path()) as db:
        db.execute("UPDATE cells SET error = 'marked by this test' WHERE id = ?", (CELLS,))
    db.close()
    data = bytearray(store_path().read_bytes())
    page = data.index(b"marked by this test") // 4096
    data[4096 * page : 4096 * (page + 1)] = bytes(4096)
    store_path().write_bytes(data)
    done = repair(store_path())
    assert done.rows["cells"] < 2 * CELLS
    assert done.lost_cells == 2 * CELLS - done.rows["cells"]
