"""The user's own catalogue: imported papers, in one file under ``LAUREATE_HOME``, joined with those that ship.

A listing of a paper that is already there adds what is missing (an abstract, a link, a rarer decision, an award) and
never replaces our own words. One import is one transaction: all of a command's files, or nothing.
"""

import contextlib
import dataclasses
import json
import re
import sqlite3
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from laureate.catalogue.entry import DECISIONS, Entry, entries, entry_by_id, entry_of
from laureate.catalogue.words import plain
from laureate.lab.storing.database import readable_errors
from laureate.lab.storing.home import home

__all__ = ["Imported", "add", "all_entries", "by_id", "library_path", "merge", "revision"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS papers (
    id TEXT PRIMARY KEY, title_key TEXT NOT NULL, data TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS papers_by_title ON papers (title_key);
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclasses.dataclass(frozen=True)
class Imported:
    """What an import did: new papers, papers that gained something, papers that were there already."""

    new: int
    enriched: int
    known: int


def library_path() -> Path:
    """The file of imported papers."""
    return home() / "library.sqlite"


@contextlib.contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    with (
        readable_errors(path, "Your library", "Move it away and import again."),
        contextlib.closing(sqlite3.connect(path, timeout=60.0, isolation_level=None)) as db,
    ):
        db.executescript(SCHEMA)
        yield db


def revision() -> str:
    """Another text after every import; empty where nothing was imported."""
    path = library_path()
    if not path.exists():
        return ""
    with _open(path) as db:
        row = db.execute("SELECT value FROM meta WHERE name = 'revision'").fetchone()
    return row[0] if row else ""


def _imported(db: sqlite3.Connection) -> Iterator[Entry]:
    for (data,) in db.execute("SELECT data FROM papers ORDER BY id"):
        yield entry_of(json.loads(data))


def all_entries() -> Iterator[Entry]:
    """Every paper: those that ship (with what imports added), then the user's own."""
    path = library_path()
    if not path.exists():
        yield from entries()
        return
    with _open(path) as db:
        own = {entry.id: entry for entry in _imported(db)}
    for entry in entries():
        yield merge(entry, own.pop(entry.id)) if entry.id in own else entry
    yield from own.values()


def by_id(paper_id: str) -> Entry | None:
    """One paper, with what imports added; None where there is none of that id."""
    try:
        shipped = entry_by_id(paper_id)
    except KeyError:
        shipped = None
    path, own = library_path(), None
    if path.exists():
        with _open(path) as db:
            row = db.execute("SELECT data FROM papers WHERE id = ?", (paper_id,)).fetchone()
        own = entry_of(json.loads(row[0])) if row else None
    return merge(shipped, own) if shipped and own else shipped or own


def add(papers: Iterable[Entry], venue: str = "") -> Imported:
    """Put papers into the library, all or none; one without an id, or with one that is taken, gets a new one.

    venue: for those whose list does not say.
    """
    shipped: dict[str, list[Entry]] = {}
    for entry in entries():
        shipped.setdefault(entry.title_key(), []).append(entry)
    taken = {entry.id for entry in entries()}
    new, enriched, known = set(), set(), set()
    with _open(library_path()) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            for paper in papers:
                paper = paper if paper.venue or not venue else dataclasses.replace(paper, venue=venue)
                key = paper.title_key() or paper.title
                rows = db.execute("SELECT data FROM papers WHERE title_key = ?", (key,)).fetchall()
                there = [entry_of(json.loads(row[0])) for row in rows]
                before = next((entry for entry in there if _same(entry, paper)), None)
                before = before or next((entry for entry in shipped.get(key, ()) if _same(entry, paper)), None)
                if before is None:
                    paper = dataclasses.replace(
                        paper, id=_free_id(db, paper, taken), name=paper.name or _name(paper.title)
                    )
                    new.add(paper.id)
                else:
                    merged = merge(before, paper)
                    if merged == before:
                        known.add(before.id)
                        continue
                    enriched.add(before.id)
                    paper = merged
                data = json.dumps(paper.record(), ensure_ascii=False)
                db.execute("INSERT OR REPLACE INTO papers VALUES (?, ?, ?)", (paper.id, key, data))
            if new or enriched:
                db.execute("INSERT OR REPLACE INTO meta VALUES ('revision', ?)", (uuid.uuid4().hex,))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    enriched -= new
    return Imported(len(new), len(enriched), len(known - new - enriched))


def merge(first: Entry, second: Entry) -> Entry:
    """Two listings of one paper: the first's words, filled from the second; the rarer decision, any award."""
    decision = min((d for d in (first.decision, second.decision) if d), key=_rarity, default="")
    fuller = second.authors if len(second.authors) > len(first.authors) else first.authors
    filled = {
        name: getattr(first, name) or getattr(second, name)
        for name in (
            "venue",
            "award",
            "name",
            "abstract",
            "url",
            "kind",
            "topic",
            "problem",
            "does",
            "demo",
            "asks",
            "terms",
        )
    }
    if len(second.abstract) > len(first.abstract):
        filled["abstract"] = second.abstract
    return dataclasses.replace(first, decision=decision, authors=fuller, **filled)


def _rarity(decision: str) -> int:
    return DECISIONS.index(decision) if decision in DECISIONS else len(DECISIONS)


def _same(first: Entry, second: Entry) -> bool:
    """One paper, given equal titles: at least one author in common, where both lists name authors."""
    return not first.authors or not second.authors or bool(first.surnames() & second.surnames())


def _name(title: str) -> str:
    """``"DICE: Diversity in ..."`` is known as DICE."""
    short, colon, _ = title.partition(":")
    return short.strip() if colon and len(short.split()) <= 3 and any(map(str.isupper, short)) else ""


def _free_id(db: sqlite3.Connection, paper: Entry, taken: set[str]) -> str:
    words = re.findall(r"[a-z0-9]+", plain(_name(paper.title) or paper.title))
    base = "-".join(words[:6])[:80].strip("-") or "paper"
    if paper.year:
        base += f"-{paper.year}"
    base = paper.id or base
    number, found = 1, base
    while found in taken or db.execute("SELECT 1 FROM papers WHERE id = ?", (found,)).fetchone():
        number += 1
        found = f"{base}-{number}"
    return found
