"""What the fault tests share: runs in processes of their own, what their stores hold, and who is still alive."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

# What has not ended by then never will, however slow the machine; what is held is held for longer (TOY_HELD).
PATIENCE = 1200.0
TOY = (sys.executable, str(Path(__file__).with_name("toy_laureate.py")))
RUN_TOY = (*TOY, "run", "toy", "--scale", "smoke", "--quiet", "--json")


def start(
    home: Path, command=RUN_TOY, workers: int = 1, executor: str = "numpy", held: bool = False
) -> subprocess.Popen:
    """``held``: cells of seeds from 3 on never end, so that a busy machine cannot be too late to stop the run."""
    environment = os.environ | {"LAUREATE_HOME": str(home), "TOY_EXECUTOR": executor}
    environment |= {"TOY_HELD": "3"} if held else {}
    return subprocess.Popen(
        [*command, "--workers", str(workers)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def complete(home: Path, **options) -> dict:
    """Run to the end; what ``--json`` told."""
    process = start(home, **options)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    return json.loads(output)


def verdicts(told: dict) -> list[dict]:
    """All that must not differ between two runs of the same cells."""
    return [{**claim, "run": 0, "seconds": 0} for claim in (*told["claims"], *told["questions"])]


def kept(home: Path) -> dict[tuple, bytes]:
    """Every number of every finished cell, as the bytes in the store; each cell must be there once.

    Opened for writing: who was killed while it made the file leaves a journal that has to be played back first.
    """
    if not (home / "store.sqlite").exists():
        return {}
    with sqlite3.connect(f"file:{home / 'store.sqlite'}?mode=rw", uri=True, timeout=30) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'observations'").fetchone():
            return {}
        rows = db.execute(
            "SELECT fingerprint, start, metric, data FROM cells JOIN observations ON cell = cells.id"
            " WHERE status = 'done'"
        ).fetchall()
    found = {tuple(row[:3]): row[3] for row in rows}
    assert len(found) == len(rows), "a cell was computed twice"
    return found


def assert_sound(home: Path) -> None:
    with sqlite3.connect(home / "store.sqlite") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def family(home: Path) -> dict[int, str]:
    """Processes of runs in this home, by number: they carry it in their environment."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"LAUREATE_HOME={home}\0".encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    found.pop(os.getpid(), None)
    return found


def workers_of(home: Path) -> list[int]:
    return [pid for pid, command in family(home).items() if "spawn_main" in command]


def kill(process: subprocess.Popen) -> None:
    """Kill the parent alone: its workers must notice by themselves."""
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def assert_nobody_left(home: Path) -> None:
    """They leave by themselves, at once or when a busy machine lets them."""
    deadline = time.monotonic() + PATIENCE
    while (left := family(home)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left
