"""A run that is stopped at any moment loses nothing that was finished, and repeating the command completes it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("slow_run.py")
CELLS = 3 * 8


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    return tmp_path


def start(workers: int) -> subprocess.Popen:
    command = [sys.executable, str(SCRIPT), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def finished_cells(home: Path) -> int:
    try:
        with sqlite3.connect(f"file:{home / 'store.sqlite'}?mode=ro", uri=True, timeout=30) as database:
            return database.execute("SELECT count(*) FROM cells WHERE status = 'done'").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def wait_for_cells(home: Path, process: subprocess.Popen, count: int) -> None:
    while process.poll() is None and finished_cells(home) < count:
        time.sleep(0.02)


def stop(process: subprocess.Popen) -> None:
    """Kill the parent alone: its workers must notice by themselves."""
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def descendants_left(marker: str) -> list[str]:
    """Processes of the stopped run that are still there: they carry its home in their environment."""
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                left.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return left


def complete(workers: int = 1) -> dict:
    process = start(workers)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(output)


@pytest.mark.parametrize(("workers", "after"), [(1, 5), (2, 0), (2, 11)])
def test_kill_9(home, workers, after):
    process = start(workers)
    wait_for_cells(home, process, after)
    stop(process)
    kept = finished_cells(home)
    assert after <= kept < CELLS
    deadline = time.monotonic() + 20
    while (left := descendants_left(str(home))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left
    summary = complete()
    assert summary["cells"] == {"total": CELLS, "computed": CELLS - kept, "cached": kept, "failed": 0}
    assert summary["claims"][0]["verdict"] == "supported"


def test_the_verdict_does_not_depend_on_having_been_stopped(home, tmp_path, monkeypatch):
    process = start(1)
    wait_for_cells(home, process, 7)
    stop(process)
    stopped = complete()["claims"]
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path / "another"))
    straight = complete()["claims"]
    for a, b in zip(stopped, straight, strict=True):
        assert {**a, "run": 0, "seconds": 0} == {**b, "run": 0, "seconds": 0}


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_exits_130_and_leaves_a_consistent_store(home, workers):
    process = start(workers)
    wait_for_cells(home, process, 4)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    process.communicate(timeout=60)
    assert process.returncode == 130
    kept = finished_cells(home)
    assert 4 <= kept < CELLS
    with sqlite3.connect(home / "store.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT status FROM runs").fetchone() == ("interrupted",)
    assert complete()["cells"]["cached"] == kept
