"""A full disk: told in one line with the remedy, nothing half written, and on it goes once there is space."""

import errno
import os
import sqlite3
import subprocess

import harness
import pytest
from toy_laureate import CELLS, Drawn, paper

import toys
from laureate.lab.errors import UserError
from laureate.lab.running import run as run_module
from laureate.lab.running.run import run_claims
from laureate.lab.storing import home as home_module
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.pages.report import _write


@pytest.fixture
def drawn(monkeypatch):
    monkeypatch.setattr(run_module, "make_executor", lambda *_: Drawn(0.0))


def run(store):
    return run_claims(store, toys.selections(paper()), scale="smoke")


def test_full_in_the_middle_of_a_run(home, drawn):
    """SQLite itself says that there is no room for another page, as it does on a full disk."""
    store = Store(store_path())
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 12}")
    with pytest.raises(UserError) as told:
        run(store)
    assert str(told.value) == (
        f"The store {store.path} is not written: the disk is full. Free some space (or set LAUREATE_HOME to another"
        " disk), then repeat the command: what was finished is kept."
    )
    before = harness.kept(home)
    assert 0 < len(before) < 2 * CELLS, "it was full in the middle"
    assert len(before) % 2 == 0, "a cell has both of its metrics or is not there"
    harness.assert_sound(home)
    store._db.execute("PRAGMA max_page_count = 1000000")
    done = run(store)
    assert done.cells == {"total": CELLS, "computed": CELLS - len(before) // 2, "cached": len(before) // 2, "failed": 0}
    assert before.items() <= harness.kept(home).items()
    store.close()


@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_BUSY", "SQLITE_READONLY_DBMOVED"])
def test_a_failed_commit_leaves_a_store_that_goes_on(home, monkeypatch, name):
    """The last moment at which a disk can refuse: when all was written and only the end is missing."""
    store = Store(store_path())

    class Refusing:
        """The connection, but a commit fails once."""

        def __init__(self, db):
            self._db, self._refused = db, False

        def execute(self, text, *values):
            if text == "COMMIT" and not self._refused:
                self._refused = True
                error = sqlite3.OperationalError("refused")
                error.sqlite_errorname = name
                raise error
            return self._db.execute(text, *values)

        def __getattr__(self, attribute):
            return getattr(self._db, attribute)

    monkeypatch.setattr(store, "_db", Refusing(store._db))
    with pytest.raises(UserError, match=r"The store .* (full|refuses|held|may not)"):
        store.start_run("laureate run toy", "smoke", 8, "default", {})
    assert store.counts()["runs"] == 0
    run = store.start_run("laureate run toy", "smoke", 8, "default", {})
    assert store.living_runs() == [run]
    store.end_run(run, "finished")
    store.close()


def test_a_page_that_cannot_be_written_leaves_no_scratch_and_the_old_page(tmp_path, monkeypatch):
    page = tmp_path / "run-1.html"
    _write(page, "the old page")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        _write(page, "the new page")
    assert [file.name for file in tmp_path.iterdir()] == ["run-1.html"]
    assert page.read_text() == "the old page"


def test_compiled_programs_that_were_cut_off_are_removed(home):
    import zlib

    cache = home_module.compilation_cache()
    cache.mkdir(parents=True)
    whole = zlib.compress(os.urandom(5000))
    for name, data in {"whole": whole, "cut": whole[:3000], "empty": b"", "zstd": b"\x28\xb5\x2f\xfdx"}.items():
        (cache / f"jit_block-{name}-cache").write_bytes(data)
    home_module.mend_compilation_cache()
    assert {file.name for file in cache.iterdir()} == {"jit_block-whole-cache", "jit_block-zstd-cache"}


# No file may grow beyond 150 kB (293 blocks of 512 bytes): SQLite's log of a run of the toy does. By a shell, as this
# process has threads of jax's and must not fork.
LIMITED = ("sh", "-c", 'ulimit -f 293; exec "$@"', "sh")


def test_a_disk_that_refuses_is_one_line_and_no_traceback(home):
    environment = os.environ | {"TOY_EXECUTOR": "numpy"}
    command = [*LIMITED, *harness.RUN_TOY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Free some space" in done.stderr
    before = harness.kept(home)
    assert harness.complete(home)["cells"]["failed"] == 0
    assert before.items() <= harness.kept(home).items()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with room for 400 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)], capture_output=True
        ).returncode
    ):
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("room_kb", range(0, 240, 20))
def test_a_disk_that_is_really_full(small_disk, tmp_path, room_kb):
    """At twelve sizes of what is left, so that it fills up at other moments."""
    home = small_disk / "home"
    home.mkdir()
    free = os.statvfs(home).f_bavail * os.statvfs(home).f_frsize
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * max(0, free - room_kb * 1000))
    process = harness.start(home)
    _, errors = process.communicate(timeout=harness.PATIENCE)
    assert process.returncode == 2, errors
    assert errors.count("\n") == 1, errors
    assert "full" in errors or "No space left" in errors or "refuses" in errors, errors
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    before = harness.kept(home)
    told = harness.complete(home)
    assert told["cells"]["failed"] == 0
    assert before.items() <= harness.kept(home).items()
    harness.assert_sound(home)
    assert harness.verdicts(told) == harness.verdicts(harness.complete(tmp_path / "straight"))
