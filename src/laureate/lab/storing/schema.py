"""The tables of the store, and how the file of an older Laureate becomes ours: backed up, then all or nothing."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from laureate.lab.errors import UserError

__all__ = ["RANK", "SEEDS", "VERSION", "prepare", "transaction"]

VERSION = 3
TABLES = """
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
    error TEXT NOT NULL, finished TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs, memory INTEGER
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
# The cells a run has set out to compute, so that another that wants them waits for them.
LEASES = """
CREATE TABLE leases (
    fingerprint TEXT NOT NULL, start INTEGER NOT NULL, run INTEGER NOT NULL REFERENCES runs,
    PRIMARY KEY (fingerprint, start)
) WITHOUT ROWID
"""
# Comparisons with peers, as `laureate bench` measured them.
BENCHMARKS = """
CREATE TABLE benchmarks (
    id INTEGER PRIMARY KEY, method TEXT NOT NULL, measured TEXT NOT NULL, data TEXT NOT NULL,
    environment INTEGER NOT NULL REFERENCES environments
)
"""
# Which of a claim's verdicts is shown: the largest scale, then the most seeds, then the newest. An attempt that was not
# run, or is not readable, stands behind all others. Questions of older stores have no number of seeds.
SEEDS = "CASE WHEN json_valid(data) THEN coalesce(json_extract(data, '$.seeds'), 0) ELSE 0 END"
RANK = """CASE WHEN NOT json_valid(data) OR json_extract(data, '$.verdict') = 'not run' THEN 0 ELSE
    CASE json_extract(data, '$.scale') WHEN 'full' THEN 4 WHEN 'desk' THEN 3 WHEN 'smoke' THEN 2 ELSE 1 END END"""
# As an index, so that a store of many runs costs no look at their old verdicts.
SHOWN = f"CREATE INDEX verdicts_by_rank ON verdicts (claim, problem, ({RANK}), ({SEEDS}), run)"
# From each version to the next. Only ever add: a run of the older Laureate may be under way and goes on writing.
STEPS = {1: (LEASES, BENCHMARKS, "ALTER TABLE cells ADD COLUMN memory INTEGER"), 2: (SHOWN,)}


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, one writer at a time; the connection commits by itself otherwise."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # A full disk may have rolled it back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables in a new file, bring an older one up to date, and refuse one of a newer Laureate."""
    # A page is read while a run writes: only a file that must be changed is worth a lock.
    if _version(db) == VERSION:
        return
    with transaction(db):
        version = _version(db)
        if version > VERSION:
            raise UserError(
                f"The store {path} is of a newer Laureate (schema {version}, ours is {VERSION}).",
                "Upgrade laureate, or set LAUREATE_HOME to another folder.",
            )
        if version == 0:
            for statement in filter(str.strip, ";".join((TABLES, LEASES, BENCHMARKS, SHOWN)).split(";")):
                db.execute(statement)
        elif version < VERSION:
            _back_up(path, version)
            for statement in (statement for step in range(version, VERSION) for statement in STEPS[step]):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")


def _version(db: sqlite3.Connection) -> int:
    return db.execute("PRAGMA user_version").fetchone()[0]


def _back_up(path: Path, version: int) -> None:
    """A whole copy beside the store, in place before anything is changed."""
    scratch = path.with_name(f"{path.stem}.schema-{version}.{os.getpid()}.new")
    try:
        # Another connection reads what is committed, while ours keeps everybody else from writing.
        with contextlib.closing(sqlite3.connect(path)) as before, contextlib.closing(sqlite3.connect(scratch)) as copy:
            before.backup(copy)
        with scratch.open("rb+") as written:
            os.fsync(written.fileno())
        scratch.replace(path.with_name(f"{path.stem}.schema-{version}.sqlite"))
    finally:
        scratch.unlink(missing_ok=True)
