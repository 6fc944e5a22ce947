"""One SQLite file that keeps what was measured: runs, cells, observations, verdicts, artefacts, environments.

Only the parent process writes, one transaction a cell, so a kill at any moment leaves a consistent file in which every
finished cell is whole. Arrays are stored in NumPy's own format, never as pickles.
"""

import datetime
import io
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from laureate.lab.errors import UserError
from laureate.lab.plan import Cell
from laureate.lab.worker import Outcome

__all__ = ["Store"]

SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE environments (id INTEGER PRIMARY KEY, data TEXT NOT NULL UNIQUE);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT, status TEXT NOT NULL, command TEXT NOT NULL,
    scale TEXT NOT NULL, seeds INTEGER NOT NULL, problem TEXT NOT NULL,
    environment INTEGER NOT NULL REFERENCES environments
);
CREATE TABLE cells (
    id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, start INTEGER NOT NULL, count INTEGER NOT NULL,
    paper TEXT NOT NULL, experiment TEXT NOT NULL, arm TEXT NOT NULL, problem TEXT NOT NULL, scale TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')), seconds REAL NOT NULL, compile_seconds REAL NOT NULL,
    error TEXT NOT NULL, finished TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs
);
CREATE INDEX cells_by_key ON cells (fingerprint, start, status);
CREATE TABLE run_cells (
    run INTEGER NOT NULL REFERENCES runs, cell INTEGER NOT NULL REFERENCES cells, cached INTEGER NOT NULL,
    PRIMARY KEY (run, cell)
) WITHOUT ROWID;
CREATE TABLE observations (
    cell INTEGER NOT NULL REFERENCES cells, metric TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (cell, metric)
);
CREATE TABLE verdicts (
    run INTEGER NOT NULL REFERENCES runs, claim TEXT NOT NULL, problem TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (run, claim)
);
CREATE INDEX verdicts_by_claim ON verdicts (claim, problem, run);
CREATE TABLE artefacts (
    run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL, media_type TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (run, name)
);
"""


class Store:
    """The results on this machine.

    Reading is done with plain dictionaries, a row each; writing by the verbs of a run's life: ``start_run``,
    ``add_cell``, ``use_cells``, ``add_verdicts``, ``end_run``.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            # Autocommit with explicit transactions: what is one unit stands in one `with self._transaction()`.
            self._db = sqlite3.connect(path, timeout=60.0, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._open_schema()
        except sqlite3.DatabaseError as error:
            raise UserError(
                f"The store {path} cannot be opened: {error}.", "Move it away, or set LAUREATE_HOME to another folder."
            ) from error

    def _open_schema(self) -> None:
        # A page is read while a run writes: only a new file is worth a lock.
        if self._db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
            return
        with self._transaction():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif version > SCHEMA_VERSION:
                raise UserError(
                    f"The store {self.path} is of a newer Laureate (schema {version}, ours is {SCHEMA_VERSION}).",
                    "Upgrade laureate, or set LAUREATE_HOME to another folder.",
                )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # -- writing -----------------------------------------------------------------------------------------------------

    def start_run(self, command: str, scale: str, seeds: int, problem: str, environment: Mapping[str, Any]) -> int:
        """A new run's number."""
        data = json.dumps(environment, sort_keys=True)
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO environments (data) VALUES (?)", (data,))
            (environment_id,) = self._db.execute("SELECT id FROM environments WHERE data = ?", (data,)).fetchone()
            cursor = self._db.execute(
                "INSERT INTO runs (started, status, command, scale, seeds, problem, environment)"
                " VALUES (?, 'running', ?, ?, ?, ?, ?)",
                (_now(), command, scale, seeds, problem, environment_id),
            )
        return int(cursor.lastrowid or 0)

    def end_run(self, run: int, status: str) -> None:
        """The run is over: ``finished``, ``failed`` (some cells did) or ``interrupted``."""
        with self._transaction():
            self._db.execute("UPDATE runs SET finished = ?, status = ? WHERE id = ?", (_now(), status, run))

    def add_cell(self, run: int, cell: Cell, outcome: Outcome) -> int:
        """Keep what became of a cell: one transaction, all or nothing."""
        with self._transaction():
            cursor = self._db.execute(
                "INSERT INTO cells (fingerprint, start, count, paper, experiment, arm, problem, scale, status, seconds,"
                " compile_seconds, error, finished, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(cell.fingerprint, cell.start, cell.count, cell.paper, cell.experiment, cell.arm, cell.problem),
                    *(cell.scale, "failed" if outcome.error else "done", outcome.seconds, outcome.compile_seconds),
                    *(outcome.error, _now(), run),
                ),
            )
            cell_id = int(cursor.lastrowid or 0)
            self._db.executemany(
                "INSERT INTO observations (cell, metric, data) VALUES (?, ?, ?)",
                [(cell_id, metric, _pack(values)) for metric, values in outcome.metrics.items()],
            )
            self._db.execute("INSERT INTO run_cells (run, cell, cached) VALUES (?, ?, 0)", (run, cell_id))
        return cell_id

    def use_cells(self, run: int, cell_ids: Iterable[int]) -> None:
        """The run takes these finished cells as they are."""
        with self._transaction():
            self._db.executemany(
                "INSERT INTO run_cells (run, cell, cached) VALUES (?, ?, 1)", [(run, cell_id) for cell_id in cell_ids]
            )

    def add_verdicts(self, run: int, problem: str, verdicts: Iterable[Mapping[str, Any]]) -> None:
        """Keep verdicts, each a JSON object with its full claim id under ``id``."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO verdicts (run, claim, problem, data) VALUES (?, ?, ?, ?)",
                [(run, verdict["id"], problem, json.dumps(verdict)) for verdict in verdicts],
            )

    def add_artefact(self, run: int, name: str, media_type: str, data: bytes) -> None:
        """Keep a file that belongs to a run."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO artefacts (run, name, media_type, data) VALUES (?, ?, ?, ?)",
                (run, name, media_type, data),
            )

    # -- reading -----------------------------------------------------------------------------------------------------

    def finished_cell(self, cell: Cell) -> int | None:
        """The id of the last finished computation of that cell, if there is one."""
        row = self._db.execute(
            "SELECT max(id) FROM cells WHERE fingerprint = ? AND start = ? AND status = 'done'", cell.key
        ).fetchone()
        return row[0]

    def observations(self, cell_id: int) -> dict[str, np.ndarray]:
        """All metrics of a cell, each with a leading axis of seeds."""
        rows = self._db.execute("SELECT metric, data FROM observations WHERE cell = ?", (cell_id,))
        return {row["metric"]: _unpack(row["data"]) for row in rows}

    def cell_seconds(self, cell_ids: Iterable[int]) -> dict[int, float]:
        """How long each of these cells took, compiling included."""
        wanted = json.dumps(list(cell_ids))
        rows = self._db.execute(
            "SELECT id, seconds + compile_seconds FROM cells WHERE id IN (SELECT value FROM json_each(?))", (wanted,)
        )
        return dict(rows.fetchall())

    def run(self, run: int) -> dict[str, Any] | None:
        """One run with its environment, or None."""
        rows = self._runs("WHERE runs.id = ?", (run,))
        return rows[0] if rows else None

    def runs(self, limit: int = 50, offset: int = 0) -> list[dict[str, Any]]:
        """The latest runs, newest first."""
        return self._runs("ORDER BY runs.id DESC LIMIT ? OFFSET ?", (limit, offset))

    def last_run(self) -> int | None:
        """The number of the newest run."""
        return self._db.execute("SELECT max(id) FROM runs").fetchone()[0]

    def run_after(self, run: int, command: str) -> int | None:
        """The number of the first run by that command after ``run``."""
        return self._db.execute("SELECT min(id) FROM runs WHERE id > ? AND command = ?", (run, command)).fetchone()[0]

    def _runs(self, clause: str, values: tuple) -> list[dict[str, Any]]:
        rows = self._db.execute(
            "SELECT runs.*, environments.data AS environment_data FROM runs"
            f" JOIN environments ON environments.id = runs.environment {clause}",
            values,
        ).fetchall()
        found = []
        for row in rows:
            record = dict(row)
            record["environment"] = json.loads(record.pop("environment_data"))
            found.append(record)
        return found

    def run_cells(self, run: int, paper: str = "") -> list[dict[str, Any]]:
        """The cells a run used (of one paper), in the order it took them."""
        rows = self._db.execute(
            "SELECT cells.*, run_cells.cached FROM run_cells JOIN cells ON cells.id = run_cells.cell"
            " WHERE run_cells.run = ? AND (? = '' OR cells.paper = ?) ORDER BY cells.id",
            (run, paper, paper),
        )
        return [dict(row) for row in rows]

    def verdicts(self, run: int) -> list[dict[str, Any]]:
        """The verdicts of one run."""
        rows = self._db.execute("SELECT data FROM verdicts WHERE run = ? ORDER BY rowid", (run,))
        return [json.loads(row["data"]) for row in rows]

    def tallies(self, runs: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
        """The verdicts of several runs, only their words."""
        rows = self._db.execute(
            "SELECT run, json_extract(data, '$.verdict') AS verdict FROM verdicts"
            " WHERE run IN (SELECT value FROM json_each(?)) AND verdict IS NOT NULL",
            (json.dumps(list(runs)),),
        )
        found: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault(row["run"], []).append({"verdict": row["verdict"]})
        return found

    def latest_verdicts(self, claims: Iterable[str] | None = None) -> dict[tuple[str, str], dict[str, Any]]:
        """The newest verdict of every (claim id, problem), or of these claims, with the run's number and start."""
        # The inner question reads the index alone, so that old verdicts cost no look at their rows.
        rows = self._db.execute(
            "SELECT v.claim, v.problem, v.data, runs.id AS run, runs.started FROM"
            " (SELECT claim, problem, max(run) AS run FROM verdicts"
            "  WHERE ?1 IS NULL OR claim IN (SELECT value FROM json_each(?1)) GROUP BY claim, problem) AS newest"
            " CROSS JOIN verdicts AS v ON v.run = newest.run AND v.claim = newest.claim"
            " JOIN runs ON runs.id = v.run",
            (None if claims is None else json.dumps(list(claims)),),
        )
        return {
            (row["claim"], row["problem"]): json.loads(row["data"]) | {"run": row["run"], "started": row["started"]}
            for row in rows
        }

    def artefact(self, run: int, name: str) -> bytes | None:
        """A file that belongs to a run."""
        row = self._db.execute("SELECT data FROM artefacts WHERE run = ? AND name = ?", (run, name)).fetchone()
        return row["data"] if row else None

    def counts(self) -> dict[str, int]:
        """How many rows of each kind there are."""
        return {
            table: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("runs", "cells", "observations", "verdicts")
        }


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _pack(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def _unpack(data: bytes) -> np.ndarray:
    return np.load(io.BytesIO(data), allow_pickle=False)
