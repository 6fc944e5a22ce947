"""A damaged store: what can still be read of it becomes a new one, and the damaged file is kept beside it.

SQLite reads a table page by page and stops at the first bad one. Here what lies behind it is read too: from the other
end, and row by row in between. A cell counts as finished only if all of its numbers were found; else it is left out,
and computed again when it is next asked for.
"""

import contextlib
import itertools
import json
import math
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laureate.lab.errors import UserError
from laureate.lab.storing.alive import lives
from laureate.lab.storing.arrays import label_of, readable
from laureate.lab.storing.database import is_json
from laureate.lab.storing.schema import transaction
from laureate.lab.storing.store import Store

__all__ = ["Salvaged", "repair"]

LOST_ENVIRONMENT = {
    "commit": "",
    "versions": {},
    "machine": "unknown (lost in a damaged store)",
    "memory_gib": None,
    "system": "",
    "executable": "",
}
# The beginning of the file: SQLite's own header, which says nothing about what the file holds.
HEADER_BYTES = 100
# By which lost rows are told from deleted ones.
INDEXES = {"cells": "cells_by_key", "observations": "sqlite_autoindex_observations_1"}
TABLES: tuple[str, ...] = ("environments", "runs", "cells", "observations", "verdicts", "artefacts", "benchmarks")


@dataclass(frozen=True)
class Salvaged:
    """How many rows of each table were saved, and where the damaged file is kept (None: it was whole)."""

    rows: dict[str, int]
    lost_cells: int
    kept_as: Path | None


def repair(path: Path) -> Salvaged:
    """Put a whole store in the place of a damaged one."""
    if any(lives(sign) for sign in path.with_name("running").glob("*")):
        raise UserError("A run is writing to the store.", "Stop it first, or wait for it.")
    if not path.exists():
        raise UserError(f"There is no store {path}.", "The next run makes one.")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="repair-") as folder:
        # Reading a store may write to it: copies are read, and the damaged one stays as it is.
        trial, damaged, new = (Path(folder) / f"{name}.sqlite" for name in ("trial", "damaged", "new"))
        _copy(path, trial)
        if _whole(trial):
            return Salvaged({}, 0, None)
        _copy(path, damaged)
        Store(new).close()
        _restore_header(damaged, new)
        with contextlib.closing(_open(damaged)) as source, contextlib.closing(_open(new)) as target:
            with transaction(target):
                rows, lost = _move(source, target)
            target.execute("PRAGMA journal_mode = DELETE")
        if not _whole(new):
            raise UserError(f"The store {path} cannot be repaired.", "Move it away: the next run makes a new one.")
        with new.open("rb+") as written:
            os.fsync(written.fileno())
        kept_as = _free_name(path)
        for suffix in ("", "-wal", "-shm"):
            if (part := Path(f"{path}{suffix}")).exists():
                part.rename(f"{kept_as}{suffix}")
        new.replace(path)
    return Salvaged(rows, lost, kept_as)


def _copy(path: Path, to: Path) -> None:
    for suffix in ("", "-wal"):
        if (part := Path(f"{path}{suffix}")).exists():
            shutil.copyfile(part, f"{to}{suffix}")


def _open(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    # Text that is no longer UTF-8 must not hide the rest of its row.
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    return db


def _whole(path: Path) -> bool:
    try:
        with contextlib.closing(Store(path)) as store:
            return not store.complaint(thorough=True) and not store.unreadable()
    except UserError:
        return False


def _restore_header(damaged: Path, new: Path) -> None:
    """Where the header alone is gone, that of a new store serves; a size of nought makes SQLite look at the file's."""
    header = new.read_bytes()[:HEADER_BYTES]
    with damaged.open("rb+") as file:
        if file.read(16) != header[:16]:
            file.seek(0)
            file.write(header[:24] + b"\0" * 8 + header[32:])


def _free_name(path: Path) -> Path:
    number = 1
    while (name := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
        number += 1
    return name


def _move(source: sqlite3.Connection, target: sqlite3.Connection) -> tuple[dict[str, int], int]:
    """Every row that is sound and whose belongings are there too."""
    found = {table: _rows(source, table, _fitting(target, table)) for table in TABLES}
    environments = {row["id"]: row for row in found["environments"].rows if is_json(row["data"])}
    runs = {row["id"]: row for row in found["runs"].rows}
    cells = {row["id"]: row for row in found["cells"].rows}
    doubtful = _doubtful(found["observations"], cells)
    numbers: dict[int, list[dict[str, Any]]] = {}
    for row in found["observations"].rows:
        numbers.setdefault(row["cell"], []).append(row)
    whole = {
        number: row
        for number, row in cells.items()
        if row["status"] == "failed" or (row["status"] == "done" and number not in doubtful and number in numbers)
    }
    target.execute("PRAGMA foreign_keys = OFF")
    known = {row["run"] for row in whole.values()} | {row["run"] for row in found["verdicts"].rows}
    for number in known - runs.keys():
        runs[number] = _lost_run(number)
    benchmarks = [row for row in found["benchmarks"].rows if is_json(row["data"])]
    for row in (*runs.values(), *benchmarks):
        if row["environment"] not in environments:
            environments.setdefault(0, {"id": 0, "data": json.dumps(LOST_ENVIRONMENT)})
            row["environment"] = 0
    saved = {
        "environments": _insert(target, "environments", environments.values()),
        "runs": _insert(target, "runs", runs.values()),
        "cells": _insert(target, "cells", whole.values()),
        "observations": _insert(target, "observations", [row for number in whole for row in numbers.get(number, ())]),
        "run_cells": _insert(target, "run_cells", _run_cells(source, runs, whole)),
        "verdicts": _insert(target, "verdicts", [r for r in found["verdicts"].rows if is_json(r["data"])]),
        "benchmarks": _insert(target, "benchmarks", benchmarks),
        "artefacts": _insert(target, "artefacts", [r for r in found["artefacts"].rows if r["run"] in runs]),
    }
    return saved, found["cells"].missing + len(cells) - len(whole)


@dataclass(frozen=True)
class _Found:
    """The rows of a table in order, each with its number in the table, and how many between them were not readable.

    A run that was deleted leaves numbers without a row, too. An index, which lies on other pages, tells them from those
    that were lost. listed: the numbers that it has; None where it cannot be trusted, and then every number had a row.
    """

    numbers: list[int]
    rows: list[dict[str, Any]]
    listed: set[int] | None
    complete_end: bool

    @property
    def missing(self) -> int:
        if self.listed is not None:
            return len(self.listed) - len(self.numbers)
        return (self.numbers[-1] - len(self.numbers)) if self.numbers else 0

    def between(self, before: float, after: float) -> bool:
        """Whether there were rows between these two."""
        if after == before + 1 or self.listed is None:
            return after != before + 1
        return after == math.inf or any(before < number < after for number in self.listed)


def _fitting(db: sqlite3.Connection, table: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a row has what the table's columns must hold: a damaged page may give anything."""
    kinds = {"INTEGER": int, "REAL": int | float, "TEXT": str, "BLOB": bytes}
    columns = [(name, kinds[kind], bool(must)) for _, name, kind, must, *_ in db.execute(f"PRAGMA table_info({table})")]

    def fits(row: dict[str, Any]) -> bool:
        return all(
            isinstance(row.get(name), kind) or (row.get(name) is None and not must) for name, kind, must in columns
        )

    return fits


def _rows(db: sqlite3.Connection, table: str, fits: Callable[[dict[str, Any]], bool]) -> _Found:
    """Forwards to the first bad page, backwards to the last, and one by one between them."""
    ahead = dict(_until_error(db, f"SELECT rowid AS _number, * FROM {table} ORDER BY rowid"))
    back = dict(_until_error(db, f"SELECT rowid AS _number, * FROM {table} ORDER BY rowid DESC"))
    found = ahead | back
    if ahead and back:
        for number in range(max(ahead) + 1, min(back)):
            found.update(_until_error(db, f"SELECT rowid AS _number, * FROM {table} WHERE rowid = {number}"))
    numbers = sorted(number for number, row in found.items() if number > 0 and fits(row))
    # The last row of a file that was cut off may be read as zeros.
    whole_end = bool(back) and next(iter(back)) in numbers
    return _Found(numbers, [found[number] for number in numbers], _listed(db, table, numbers), whole_end)


def _listed(db: sqlite3.Connection, table: str, numbers: list[int]) -> set[int] | None:
    """The numbers that the index of a table has, if it can be read and has at least those that were found."""
    listed = set()
    with contextlib.suppress(sqlite3.DatabaseError, KeyError):
        listed = {row[0] for row in db.execute(f"SELECT rowid FROM {table} INDEXED BY {INDEXES[table]}")}
    return listed if listed and listed.issuperset(numbers) else None


def _until_error(db: sqlite3.Connection, question: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with contextlib.suppress(sqlite3.DatabaseError, OverflowError):
        cursor = db.execute(question)
        names = [column[0] for column in cursor.description]
        for values in cursor:
            row = dict(zip(names, values, strict=True))
            yield row.pop("_number", 0), row


def _doubtful(observations: _Found, cells: dict[int, dict[str, Any]]) -> set[int]:
    """Cells that may have lost a number, or gained one that is not theirs.

    A cell's rows lie together. So where rows are missing, or one is not what was written under its name, it was theirs
    who stand before and after it.
    """
    sound, doubtful = [], set()
    for number, row in zip(observations.numbers, observations.rows, strict=True):
        cell = cells.get(row["cell"])
        if cell and readable(row["data"], label_of(cell["fingerprint"], cell["start"], row["metric"])):
            sound.append((number, row["cell"]))
        else:
            doubtful.add(row["cell"])
    end = observations.numbers[-1] + 1 if observations.numbers and observations.complete_end else math.inf
    for (before, first), (after, second) in itertools.pairwise([(0, -1), *sound, (end, -1)]):
        if observations.between(before, after):
            doubtful |= {first, second}
    return doubtful


def _lost_run(number: int) -> dict[str, Any]:
    row = {"id": number, "started": "", "finished": None, "status": "interrupted", "command": "(lost)"}
    return row | {"scale": "", "seeds": 0, "problem": "default", "environment": 0}


def _run_cells(source: sqlite3.Connection, runs: Iterable[int], cells: dict[int, Any]) -> list[dict[str, Any]]:
    """Which run used which cell; a run always used those that it computed."""
    found = {(row["run"], number): {"run": row["run"], "cell": number, "cached": 0} for number, row in cells.items()}
    for run in runs:
        for _, row in _until_error(source, f"SELECT run, cell, cached FROM run_cells WHERE run = {run}"):
            if row["cell"] in cells and row["cached"] in (0, 1):
                found[row["run"], row["cell"]] = row
    return list(found.values())


def _insert(db: sqlite3.Connection, table: str, rows: Iterable[dict[str, Any]]) -> int:
    saved = 0
    for row in rows:
        # A row whose fields were damaged may break a rule of its table: it is lost, the others are not.
        with contextlib.suppress(sqlite3.IntegrityError):
            names = ", ".join(row)
            db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
            saved += 1
    return saved
