"""The search index: shipped with the papers that ship, else under ``LAUREATE_HOME``; new when papers or code change.

One SQLite file: for every form of a word, the papers that have it and how much each is about it; the vocabulary, which
corrects typing errors; the names methods go by. It is written beside its place and renamed into it, so a reader never
sees half of one, two builders do not disturb each other, and a kill leaves the old one.

Plain lists of (paper, weight) instead of FTS5: the weights know the field, each question with its substitutes is scored
exactly, and a search takes a sixth of the time (FTS5 for candidates and a second pass: 26 ms of CPU; this: 4 ms).
"""

import collections
import contextlib
import hashlib
import json
import os
import re
import sqlite3
import sys
import time
from array import array
from collections.abc import Container, Iterable
from pathlib import Path

from laureate import __version__
from laureate.catalogue import library
from laureate.catalogue.english import SHIPPED_WORDS, direction, packed, shipped_words
from laureate.catalogue.entry import SHIPPED, Entry
from laureate.catalogue.synonyms import analysed
from laureate.catalogue.words import STOP_WORDS, compact, raw_words
from laureate.lab.storing.home import home

__all__ = [
    "READY",
    "build",
    "fingerprint",
    "index_path",
    "known_words",
    "opened",
    "phrases",
    "profile",
    "telling_words",
    "write",
]

# How much one occurrence counts by where it stands, tuned on half of tests/catalogue/queries.jsonl.
WEIGHTS = {
    "name": 1.5, "title": 1.0, "authors": 0.5, "problem": 1.5, "does": 1.0, "demo": 0.8, "topic": 0.3, "ask": 1.0,
    "symptom": 0.7, "also": 0.8, "terms": 0.35, "abstract": 0.25, "only abstract": 1.0,
}  # fmt: skip
# The length, in words, at which an occurrence counts for its full weight: about the average of the field.
LENGTHS = {
    "name": 3, "title": 10, "authors": 10, "problem": 11, "does": 24, "demo": 12, "topic": 3, "ask": 7, "symptom": 9,
    "also": 10, "terms": 30, "abstract": 110, "only abstract": 110,
}  # fmt: skip
LENGTH_SHARE = 0.4
# Made when the package is built or installed (hatch_build.py), so that not even the first search has to wait.
READY = Path(__file__).with_name("index.sqlite")
SOURCES = ("words.py", "synonyms.py", "index.py", "english.py", "entry.py", "library.py")  # all that it imports
LONGEST_PHRASE = 60  # words of a text that are compared by their meaning

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE papers (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, topic TEXT NOT NULL, kind TEXT NOT NULL, venue TEXT NOT NULL,
    decision TEXT NOT NULL, award TEXT NOT NULL, fit INTEGER NOT NULL, data TEXT NOT NULL
);
-- Listings and counts without words read these alone and never the long `data`.
CREATE INDEX papers_in_order ON papers (award = '', fit DESC, number);
CREATE INDEX papers_by_facet ON papers (topic, kind, venue, decision);
-- numbers: papers in ascending order, 32 bits each; weights: 16 bits each, in thousandths.
CREATE TABLE forms (form TEXT PRIMARY KEY, papers INTEGER NOT NULL, numbers BLOB NOT NULL, weights BLOB NOT NULL);
CREATE TABLE words (
    length INTEGER NOT NULL, word TEXT NOT NULL, papers INTEGER NOT NULL, person INTEGER NOT NULL,
    PRIMARY KEY (length, word)
) WITHOUT ROWID;
-- For the last word of a question that is still being typed.
CREATE INDEX words_by_word ON words (word, person, papers);
-- What words mean (english.py), and the directions of a paper's phrases, one after another.
CREATE TABLE english (word TEXT PRIMARY KEY, rank INTEGER NOT NULL, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE phrases (number INTEGER PRIMARY KEY, vectors BLOB NOT NULL);
CREATE TABLE names (name TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (name, number)) WITHOUT ROWID;
"""


def index_path() -> Path:
    """Where the index lies; safe to delete."""
    return home() / "cache" / "catalogue.sqlite"


def fingerprint(revision: str | None = None) -> str:
    """Another text whenever papers or the code that reads them change. ``revision``: else of the library."""
    revision = library.revision() if revision is None else revision
    digest = hashlib.blake2b(f"{__version__} {sys.byteorder} {revision}".encode(), digest_size=16)
    for path in (SHIPPED, SHIPPED_WORDS, *(Path(__file__).with_name(name) for name in SOURCES)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def opened() -> sqlite3.Connection:
    """The index: the one that ships, the user's own where papers were imported, or a new one.

    A new one is built where neither is there or of today; in memory where nothing can be written.
    """
    wanted, path = fingerprint(), index_path()
    for known in (READY, path):
        if (db := _current(known, wanted)) is not None:
            return db
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        write(path, library.all_entries(), wanted)
        if (db := _current(path, wanted)) is not None:
            return db
    except (OSError, sqlite3.OperationalError):
        pass
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    build(db, library.all_entries(), wanted)
    return db


def write(path: Path, papers: Iterable[Entry], mark: str) -> None:
    """An index as a file, put in place whole."""
    beside = path.with_name(f"{path.name}.{os.getpid()}-{time.time_ns()}.new")
    try:
        with contextlib.closing(sqlite3.connect(beside, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA synchronous = OFF")
            build(db, papers, mark)
        with beside.open("rb+") as written:
            os.fsync(written.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _current(path: Path, wanted: str) -> sqlite3.Connection | None:
    if not path.exists():
        return None
    try:
        place = f"{path.absolute().as_uri()}?mode=ro"
        db = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError:
        return None  # a folder in its place, or of somebody else
    try:
        row = db.execute("SELECT value FROM meta WHERE name = 'fingerprint'").fetchone()
        if row and row[0] == wanted:
            return db
    except sqlite3.DatabaseError:
        pass
    db.close()
    return None


def _sweep(path: Path) -> None:
    """Remove what builders that were killed left behind."""
    for left in path.parent.glob(f"{path.name}.*.new"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > 600:
                left.unlink()


def build(db: sqlite3.Connection, papers: Iterable[Entry], mark: str) -> None:
    """Fill an empty database."""
    # Large pages: a common form's papers are one long value.
    db.execute("PRAGMA page_size = 16384")
    db.executescript(SCHEMA)
    db.execute("BEGIN")
    postings: dict[str, tuple[array, array]] = {}
    words: collections.Counter[str] = collections.Counter()
    people: collections.Counter[str] = collections.Counter()
    english = {word: (rank, vector) for word, rank, vector in shipped_words()}
    db.executemany("INSERT INTO english VALUES (?, ?, ?)", sorted((word, *row) for word, row in english.items()))
    count = 0
    for count, entry in enumerate(papers, 1):
        data = json.dumps(entry.record(), ensure_ascii=False)
        row = (entry.id, entry.topic, entry.kind, entry.venue, entry.decision, entry.award, entry.fit, data)
        db.execute("INSERT INTO papers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (count, *row))
        db.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", ((name, count) for name in _names(entry)))
        vectors = [packed(direction(english[word] for word in known_words(text, english))) for text in phrases(entry)]
        db.execute("INSERT INTO phrases VALUES (?, ?)", (count, b"".join(vectors)))
        text_words: set[str] = set()
        for form, weight in profile(entry, text_words).items():
            numbers, weights = postings.setdefault(form, (array("I"), array("H")))
            numbers.append(count)
            weights.append(min(65535, round(1000 * weight)))
        words.update(text_words)
        people.update({word for author in entry.authors for word in raw_words(author)})
    rows = (
        (form, len(numbers), numbers.tobytes(), weights.tobytes())
        for form, (numbers, weights) in sorted(postings.items())
    )
    db.executemany("INSERT INTO forms VALUES (?, ?, ?, ?)", rows)
    words, people = _in_parts(words), _in_parts(people)
    db.executemany(
        "INSERT INTO words VALUES (?, ?, ?, ?)",
        sorted((len(word), word, words[word] or people[word], int(word not in words)) for word in {*words, *people}),
    )
    db.execute("INSERT INTO meta VALUES ('papers', ?)", (str(count),))
    db.execute("INSERT INTO meta VALUES ('fingerprint', ?)", (mark,))
    db.execute("COMMIT")


def _fields(entry: Entry) -> Iterable[tuple[str, str]]:
    yield "name", f"{entry.name} {_opened(entry.name)}"
    yield "title", entry.title
    yield "authors", " ".join(entry.authors)
    yield "problem", entry.problem
    yield "does", entry.does
    yield "demo", entry.demo
    yield "topic", f"{entry.topic} {entry.kind} {entry.award}"
    for ask in entry.asks:
        yield "ask", ask
    for symptom in entry.symptoms:
        yield "symptom", symptom
    yield "also", " ".join(entry.also)
    yield "terms", " ".join(entry.terms)
    # An imported paper has no words of ours; its abstract has to say everything.
    yield "abstract" if entry.asks else "only abstract", entry.abstract


def phrases(entry: Entry) -> list[str]:
    """The texts of a paper that a question may resemble as a whole, each by itself."""
    texts = (f"{entry.title} {entry.name}", entry.problem, entry.does, *entry.asks, *entry.symptoms)
    return [text for text in (*texts, " ".join(entry.also), entry.abstract) if text.strip()]


def telling_words(text: str) -> list[str]:
    """The words of a text that say something, hyphens opened."""
    parts = (part for word in raw_words(text)[:LONGEST_PHRASE] for part in re.split("[-']", word))
    return [part for part in parts if part not in STOP_WORDS]


def known_words(text: str, known: Container[str]) -> list[str]:
    """Those that are among ``known``."""
    return [word for word in telling_words(text) if word in known]


def _opened(name: str) -> str:
    """``FastSpeech 2`` is also Fast Speech; ``DreamerV2`` is also Dreamer."""
    parts = re.findall(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}", name)
    return " ".join(part for part in parts if len(part) > 3) if len(parts) > 1 or re.search(r"\d", name) else ""


def profile(entry: Entry, text_words: set[str] | None = None) -> dict[str, float]:
    """Form -> how much the paper is about it. ``text_words`` collects those of its text, persons' names left out."""
    found: dict[str, float] = {}
    for field, text in _fields(entry):
        if not text.strip():
            continue
        words = raw_words(text)
        forms = analysed(words)
        one = WEIGHTS[field] / (1 - LENGTH_SHARE + LENGTH_SHARE * len(forms) / LENGTHS[field])
        for form in forms:
            found[form] = found.get(form, 0.0) + one
        if text_words is not None and field != "authors":
            text_words.update(words)
    return found


def _names(entry: Entry) -> set[str]:
    """All names the paper goes by, without blanks and signs."""
    short, colon, _ = entry.title.partition(":")
    texts = [entry.id, entry.title, *re.split(r"[/(),]", entry.name), entry.name]
    if colon and len(short.split()) <= 4:
        texts.append(short)
    return {name for text in texts if len(name := compact(text)) > 1}


def _in_parts(counts: collections.Counter[str]) -> collections.Counter[str]:
    """The words that a typing error may have meant, hyphens opened."""
    found: collections.Counter[str] = collections.Counter()
    for word, count in counts.items():
        for part in word.replace("'", "-").split("-"):
            if len(part) > 2 and part.isalpha():
                found[part] += count
    return found
