"""What a person does with their runs: names, notes, and forgetting one. Within a transaction of the store."""

import json
import sqlite3
from collections.abc import Iterable, Mapping

__all__ = ["delete", "describe", "texts"]

# A run's name and note are kept among the files that belong to it.
PREFIX = "text/"


def describe(db: sqlite3.Connection, run: int, texts: Mapping[str, str | None]) -> None:
    """Keep texts with a run by their names; an empty one is taken away, None leaves it as it is."""
    for what, text in texts.items():
        if text is not None:
            db.execute("DELETE FROM artefacts WHERE run = ? AND name = ?", (run, PREFIX + what))
        if text:
            db.execute(
                "INSERT INTO artefacts (run, name, media_type, data) VALUES (?, ?, 'text/plain', ?)",
                (run, PREFIX + what, text.encode()),
            )


def texts(db: sqlite3.Connection, runs: Iterable[int]) -> dict[int, dict[str, str]]:
    """Run -> its texts by their names, where it has any."""
    rows = db.execute(
        "SELECT run, name, data FROM artefacts WHERE run IN (SELECT value FROM json_each(?)) AND name LIKE ?",
        (json.dumps(list(runs)), f"{PREFIX}%"),
    )
    found: dict[int, dict[str, str]] = {}
    for run, name, data in rows:
        found.setdefault(run, {})[name.removeprefix(PREFIX)] = data.decode("utf-8", "replace")
    return found


def delete(db: sqlite3.Connection, run: int) -> int:
    """Forget a run; how many cells went with it. Cells that another run uses stay, as that run's."""
    db.execute("DELETE FROM run_cells WHERE run = ?", (run,))
    other = "SELECT min(run_cells.run) FROM run_cells WHERE run_cells.cell = cells.id"
    db.execute(f"UPDATE cells SET run = coalesce(({other}), run) WHERE run = ?", (run,))
    db.execute("DELETE FROM observations WHERE cell IN (SELECT id FROM cells WHERE run = ?)", (run,))
    cells = db.execute("DELETE FROM cells WHERE run = ?", (run,)).rowcount
    for table in ("verdicts", "artefacts", "leases"):
        db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
    db.execute("DELETE FROM runs WHERE id = ?", (run,))
    return cells
