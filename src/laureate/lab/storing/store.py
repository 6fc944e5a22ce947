"""One SQLite file that keeps what was measured: runs, cells, observations, verdicts, artefacts, environments.

Only the parent process writes, one transaction a cell, so a kill at any moment leaves a consistent file in which every
finished cell is whole. Arrays are stored in NumPy's own format, never as pickles.
"""

import datetime
import itertools
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from laureate.lab.cell import Cell, Outcome
from laureate.lab.errors import UserError
from laureate.lab.judging.results import Result
from laureate.lab.storing import housekeeping
from laureate.lab.storing.alive import Alive, lives
from laureate.lab.storing.arrays import label_of, pack, readable, unpack
from laureate.lab.storing.database import is_json, readable_errors
from laureate.lab.storing.rows import BenchmarkRow, CellRow, MeasuredCell, RunRow, StoredBenchmark
from laureate.lab.storing.schema import prepare, transaction
from laureate.lab.storing.shown import shown

__all__ = ["REPAIR", "Store"]

REPAIR = "`laureate doctor --repair` saves what is readable and keeps the damaged file beside it."
# How long a writer waits for another one.
PATIENCE_SECONDS = 60.0


class Store:
    """The results on this machine.

    Reading gives typed results and, of runs and cells, typed rows (``rows``); writing is done by the verbs of a run's
    life: ``start_run``, ``add_cell``, ``use_cells``, ``add_results``, ``end_run``.
    """

    def __init__(self, path: Path):
        self.path = path
        self._living: dict[int, Alive] = {}
        with self._readable_errors():
            # Autocommit with explicit transactions: what is one unit stands in one `with self._transaction()`.
            self._db = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None)
            try:
                self._db.row_factory = sqlite3.Row
                _write_ahead(self._db)
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("PRAGMA foreign_keys = ON")
                prepare(self._db, path)
            except BaseException:
                self._db.close()
                raise

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        with readable_errors(self.path, "The store", REPAIR):
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._readable_errors(), transaction(self._db):
            yield

    def _rows(self, question: str, values: tuple | Mapping[str, Any] = ()) -> list[sqlite3.Row]:
        with self._readable_errors():
            return self._db.execute(question, values).fetchall()

    def _value(self, question: str, values: tuple = ()) -> Any:
        """The first field of the first row; None where there is no row."""
        rows = self._rows(question, values)
        return rows[0][0] if rows else None

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # -- writing -----------------------------------------------------------------------------------------------------

    def start_run(self, command: str, scale: str, seeds: int, problem: str, environment: Mapping[str, Any]) -> int:
        """A new run's number. It counts as running for as long as this process lives and does not end it."""
        alive: Alive | None = None
        try:
            with self._transaction():
                self._release_dead_runs()
                environment_id = self._environment_id(environment)
                cursor = self._db.execute(
                    "INSERT INTO runs (started, status, command, scale, seeds, problem, environment)"
                    " VALUES (?, 'running', ?, ?, ?, ?, ?)",
                    (_now(), command, scale, seeds, problem, environment_id),
                )
                run = int(cursor.lastrowid or 0)
                # Before anybody else can see the run.
                alive = self._living[run] = Alive(self._sign(run))
        except BaseException:
            if alive is not None:
                alive.end()
            raise
        return run

    def _environment_id(self, environment: Mapping[str, Any]) -> int:
        data = json.dumps(environment, sort_keys=True)
        self._db.execute("INSERT OR IGNORE INTO environments (data) VALUES (?)", (data,))
        return self._db.execute("SELECT id FROM environments WHERE data = ?", (data,)).fetchone()[0]

    def end_run(self, run: int, status: str) -> None:
        """The run is over: ``finished``, ``failed`` (some cells did) or ``interrupted``."""
        try:
            with self._transaction():
                # A clock that was set back in between must not make it end before it began.
                self._db.execute(
                    "UPDATE runs SET finished = max(?, started), status = ? WHERE id = ?", (_now(), status, run)
                )
                self._db.execute("DELETE FROM leases WHERE run = ?", (run,))
        finally:
            if run in self._living:
                self._living.pop(run).end()

    def _sign(self, run: int) -> Path:
        """The file that the process behind a run holds locked."""
        return self.path.with_name("running") / str(run)

    def _release_dead_runs(self) -> None:
        """Runs whose process was killed are interrupted, and their cells are free again."""
        for (run,) in self._db.execute("SELECT id FROM runs WHERE status = 'running'").fetchall():
            if not lives(self._sign(run)):
                self._db.execute("UPDATE runs SET status = 'interrupted' WHERE id = ?", (run,))
                self._db.execute("DELETE FROM leases WHERE run = ?", (run,))
                self._sign(run).unlink(missing_ok=True)

    def take(self, run: int, cells: Iterable[Cell]) -> tuple[list[Cell], dict[tuple[str, int], int]]:
        """The cells that are now this run's to compute, and those that are finished already, by key.

        The rest is under way in another run, which lives: ask again later.
        """
        mine: list[Cell] = []
        finished: dict[tuple[str, int], int] = {}
        with self._transaction():
            self._release_dead_runs()
            for cell in cells:
                if (cell_id := self.finished_cell(cell)) is not None:
                    finished[cell.key] = cell_id
                    continue
                self._db.execute(
                    "INSERT OR IGNORE INTO leases (fingerprint, start, run) VALUES (?, ?, ?)", (*cell.key, run)
                )
                holder = self._value("SELECT run FROM leases WHERE fingerprint = ? AND start = ?", cell.key)
                if holder == run:
                    mine.append(cell)
        return mine, finished

    def add_cell(self, run: int, cell: Cell, outcome: Outcome) -> int:
        """Keep what became of a cell: one transaction, all or nothing."""
        with self._transaction():
            cursor = self._db.execute(
                "INSERT INTO cells (fingerprint, start, count, paper, experiment, arm, problem, scale, status, seconds,"
                " compile_seconds, error, finished, run, memory) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(cell.fingerprint, cell.start, cell.count, cell.paper, cell.experiment, cell.arm, cell.problem),
                    *(cell.scale, "failed" if outcome.error else "done", outcome.seconds, outcome.compile_seconds),
                    *(outcome.error, _now(), run, outcome.memory),
                ),
            )
            cell_id = int(cursor.lastrowid or 0)
            self._db.executemany(
                "INSERT INTO observations (cell, metric, data) VALUES (?, ?, ?)",
                [
                    (cell_id, metric, pack(values, label_of(*cell.key, metric)))
                    for metric, values in outcome.metrics.items()
                ],
            )
            self._db.execute("INSERT INTO run_cells (run, cell, cached) VALUES (?, ?, 0)", (run, cell_id))
            self._db.execute("DELETE FROM leases WHERE fingerprint = ? AND start = ? AND run = ?", (*cell.key, run))
        return cell_id

    def use_cells(self, run: int, cell_ids: Iterable[int]) -> None:
        """The run takes these finished cells as they are."""
        with self._transaction():
            self._db.executemany(
                "INSERT INTO run_cells (run, cell, cached) VALUES (?, ?, 1)", [(run, cell_id) for cell_id in cell_ids]
            )

    def add_results(self, run: int, results: Iterable[Result]) -> None:
        """Keep the results of a run."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO verdicts (run, claim, problem, data) VALUES (?, ?, ?, ?)",
                [(run, str(result.id), result.problem, json.dumps(result.to_json())) for result in results],
            )

    def add_artefact(self, run: int, name: str, media_type: str, data: bytes) -> None:
        """Keep a file that belongs to a run."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO artefacts (run, name, media_type, data) VALUES (?, ?, ?, ?)",
                (run, name, media_type, data),
            )

    def describe(self, run: int, name: str | None = None, note: str | None = None) -> None:
        """Give a run a name or a note; an empty one takes it away."""
        with self._transaction():
            housekeeping.describe(self._db, run, {"name": name, "note": note})

    def delete_run(self, run: int) -> int:
        """Forget a run with its verdicts, and the cells that no other run uses; how many cells those were."""
        with self._transaction():
            return housekeeping.delete(self._db, run)

    def add_benchmark(self, row: BenchmarkRow, environment: Mapping[str, Any]) -> None:
        """Keep one comparison with a peer."""
        with self._transaction():
            self._db.execute(
                "INSERT INTO benchmarks (method, measured, data, environment) VALUES (?, ?, ?, ?)",
                (row["id"], _now(), json.dumps(row), self._environment_id(environment)),
            )

    # -- reading -----------------------------------------------------------------------------------------------------

    def finished_cell(self, cell: Cell) -> int | None:
        """The id of the last finished computation of that cell, if there is one."""
        question = "SELECT max(id) FROM cells WHERE fingerprint = ? AND start = ? AND status = 'done'"
        return self._value(question, cell.key)

    def observations(self, cell_id: int) -> dict[str, np.ndarray]:
        """All metrics of a cell, each with a leading axis of seeds."""
        rows = self._rows(
            "SELECT fingerprint, start, metric, data FROM observations JOIN cells ON cells.id = cell WHERE cell = ?",
            (cell_id,),
        )
        if not rows or not all(readable(row["data"], label_of(*row[:3])) for row in rows):
            raise self.damaged(f"the numbers of cell {cell_id}")
        return {row["metric"]: unpack(row["data"], label_of(*row[:3])) for row in rows}

    def joined(self, cell_ids: Iterable[int], seeds: int | None = None) -> dict[str, np.ndarray]:
        """The blocks of one arm, given in the order of their seeds, as one array a metric, cut to so many seeds."""
        blocks = [self.observations(cell_id) for cell_id in cell_ids]
        if len({frozenset(block) for block in blocks}) > 1:
            raise self.damaged("a metric of some seeds")
        return {metric: np.concatenate([block[metric] for block in blocks])[:seeds] for metric in blocks[0]}

    def cell_seconds(self, cell_ids: Iterable[int]) -> dict[int, float]:
        """How long each of these cells took, compiling included."""
        wanted = json.dumps(list(cell_ids))
        rows = self._rows(
            "SELECT id, seconds + compile_seconds FROM cells WHERE id IN (SELECT value FROM json_each(?))", (wanted,)
        )
        return {row[0]: row[1] for row in rows}

    def run(self, run: int) -> RunRow | None:
        """One run with its environment, or None."""
        rows = self._runs("WHERE runs.id = ?", (run,))
        return rows[0] if rows else None

    def runs(self, limit: int = 50, offset: int = 0) -> list[RunRow]:
        """The latest runs, newest first."""
        return self._runs("ORDER BY runs.id DESC LIMIT ? OFFSET ?", (limit, offset))

    def last_run(self) -> int | None:
        """The number of the newest run."""
        return self._value("SELECT max(id) FROM runs")

    def run_after(self, run: int, command: str) -> int | None:
        """The number of the first run by that command after ``run``."""
        return self._value("SELECT min(id) FROM runs WHERE id > ? AND command = ?", (run, command))

    def runs_of(self, cell_ids: Iterable[int], scale: str) -> list[int]:
        """The finished runs of a scale that used just these cells, newest first."""
        wanted = json.dumps(sorted(set(cell_ids)))
        rows = self._rows(
            "SELECT run, count(*) AS used, sum(cell IN (SELECT value FROM json_each(?1))) AS wanted"
            " FROM run_cells JOIN runs ON runs.id = run WHERE runs.status = 'finished' AND runs.scale = ?2"
            " GROUP BY run HAVING used = wanted AND used = json_array_length(?1) ORDER BY run DESC",
            (wanted, scale),
        )
        return [row["run"] for row in rows]

    def _runs(self, clause: str, values: tuple) -> list[RunRow]:
        rows = self._rows(
            "SELECT runs.*, environments.data AS environment_data FROM runs"
            f" JOIN environments ON environments.id = runs.environment {clause}",
            values,
        )
        found = []
        with self._readable_errors():
            texts = housekeeping.texts(self._db, [row["id"] for row in rows])
        for row in rows:
            record: dict[str, Any] = dict(row) | {"name": "", "note": ""} | texts.get(row["id"], {})
            record["environment"] = self._loads(record.pop("environment_data"))
            if record["status"] == "running" and not lives(self._sign(record["id"])):
                record["status"] = "interrupted"
            found.append(cast(RunRow, record))
        return found

    def run_cells(self, run: int, paper: str = "") -> list[CellRow]:
        """The cells a run used (of one paper), in the order it took them."""
        rows = self._rows(
            "SELECT cells.*, run_cells.cached FROM run_cells JOIN cells ON cells.id = run_cells.cell"
            " WHERE run_cells.run = ? AND (? = '' OR cells.paper = ?) ORDER BY cells.id",
            (run, paper, paper),
        )
        return [cast(CellRow, dict(row)) for row in rows]

    def cells_ahead(self, run: int) -> int:
        """How many cells a run has set out to compute and not finished."""
        return self._value("SELECT count(*) FROM leases WHERE run = ?", (run,))

    def results(self, run: int) -> list[Result]:
        """The results of one run, in the order in which they were declared."""
        rows = self._rows("SELECT claim, data FROM verdicts WHERE run = ? ORDER BY rowid", (run,))
        return [self._result(row["claim"], row["data"], run=run) for row in rows]

    def _result(self, claim: str, data: str, **facts: Any) -> Result:
        return Result.from_json(self._loads(data) | {"id": claim} | facts)

    def words(self, runs: Iterable[int]) -> dict[int, list[str]]:
        """The verdicts of several runs, only their words."""
        rows = self._rows(
            "SELECT run, json_extract(data, '$.verdict') AS verdict FROM verdicts"
            " WHERE run IN (SELECT value FROM json_each(?)) AND verdict IS NOT NULL",
            (json.dumps(list(runs)),),
        )
        found: dict[int, list[str]] = {}
        for row in rows:
            found.setdefault(row["run"], []).append(row["verdict"])
        return found

    def shown(self, claims: Iterable[str] | None = None) -> dict[tuple[str, str], Result]:
        """What is shown of every (claim id, problem), or of these claims: see ``laureate.lab.storing.shown``."""
        with self._readable_errors():
            try:
                return shown(self._db, claims)
            except ValueError as error:
                raise self.damaged("a record") from error

    def history(self, claim: str, problem: str, limit: int = 10) -> list[Result]:
        """The newest results of one claim, whatever their scale, newest first."""
        rows = self._rows(
            "SELECT claim, data, run, started FROM verdicts JOIN runs ON runs.id = run"
            " WHERE claim = ? AND verdicts.problem = ? ORDER BY run DESC LIMIT ?",
            (claim, problem, limit),
        )
        return [self._result(row["claim"], row["data"], run=row["run"], started=row["started"]) for row in rows]

    def earlier_looks(self, claim: str, problem: str, scale: str, seeds: int) -> tuple[int, ...]:
        """The other numbers of seeds with which a claim was judged before it was first judged with so many, in order.

        To repeat a run is no new look. A result from an attempt that failed is none either.
        """
        rows = self._rows(
            "SELECT json_extract(data, '$.seeds') AS seeds FROM verdicts WHERE claim = ? AND problem = ?"
            " AND json_extract(data, '$.scale') = ? AND seeds > 0 GROUP BY seeds ORDER BY min(run)",
            (claim, problem, scale),
        )
        return tuple(itertools.takewhile(lambda judged: judged != seeds, (row["seeds"] for row in rows)))

    def other_effects(self, result: Result, scale: str) -> int:
        """How many other effects stand here for the same claim, problem, scale and number of seeds."""
        rows = self._rows(
            "SELECT DISTINCT json_extract(data, '$.effect') AS effect FROM verdicts WHERE claim = ? AND problem = ?"
            " AND json_extract(data, '$.scale') = ? AND json_extract(data, '$.seeds') = ? AND effect IS NOT NULL",
            (str(result.id), result.problem, scale, result.seeds),
        )
        return sum(row["effect"] != getattr(result, "effect", None) for row in rows)

    def measured_cells(self) -> list[MeasuredCell]:
        """What the newest computation of every block of the default problems took, whatever its code was."""
        rows = self._rows(
            "SELECT paper, experiment, arm, scale, count, seconds + compile_seconds AS seconds, memory, max(id)"
            " FROM cells WHERE status = 'done' AND problem = 'default' GROUP BY paper, experiment, arm, scale, start"
        )
        return [cast(MeasuredCell, dict(row)) for row in rows]

    def benchmarks(self, method: str = "") -> list[StoredBenchmark]:
        """All comparisons with peers (of one method), oldest first, with when and on what they were measured."""
        rows = self._rows(
            "SELECT benchmarks.data, measured, environments.data AS environment FROM benchmarks"
            " JOIN environments ON environments.id = benchmarks.environment WHERE ?1 = '' OR method = ?1"
            " ORDER BY benchmarks.id",
            (method,),
        )
        return [
            self._loads(row["data"]) | {"measured": row["measured"], "environment": self._loads(row["environment"])}
            for row in rows
        ]

    def artefact(self, run: int, name: str) -> bytes | None:
        """A file that belongs to a run."""
        return self._value("SELECT data FROM artefacts WHERE run = ? AND name = ?", (run, name))

    def counts(self) -> dict[str, int]:
        """How many rows of each kind there are."""
        return {
            table: self._value(f"SELECT count(*) FROM {table}")
            for table in ("runs", "cells", "observations", "verdicts")
        }

    def living_runs(self) -> list[int]:
        """The runs whose process is at work now."""
        rows = self._rows("SELECT id FROM runs WHERE status = 'running'")
        return [row["id"] for row in rows if lives(self._sign(row["id"]))]

    def complaint(self, thorough: bool = False) -> str:
        """What is wrong with the file; empty where it is whole. ``thorough``: compare the indices with their tables."""
        found = self._value("PRAGMA integrity_check(1)" if thorough else "PRAGMA quick_check(1)")
        if found != "ok":
            return str(found)
        tables = ("environments", "verdicts", "benchmarks")
        broken = sum(not is_json(data) for table in tables for (data,) in self._rows(f"SELECT data FROM {table}"))
        return f"{broken} of its records cannot be read" if broken else ""

    def unreadable(self) -> int:
        """How many finished cells have numbers that are not what was written, or none at all."""
        rows = self._rows(
            "SELECT cells.id, fingerprint, start, metric, data FROM cells LEFT JOIN observations ON cell = cells.id"
            " WHERE status = 'done'"
        )
        return len({row["id"] for row in rows if not readable(row["data"], label_of(*row[1:4]))})

    def _loads(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self.damaged("a record") from error

    def damaged(self, what: str) -> UserError:
        """The error for what is not as it was written."""
        return UserError(f"The store {self.path} is damaged: {what} cannot be read.", REPAIR)


def _write_ahead(db: sqlite3.Connection) -> None:
    """Readers and a writer at once. Two that make a new file together meet here, and SQLite does not wait by itself."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
