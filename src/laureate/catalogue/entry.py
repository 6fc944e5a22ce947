"""One paper of the catalogue, and the papers that ship with the package."""

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from laureate.catalogue.words import compact, plain

__all__ = [
    "COSTS",
    "DECISIONS",
    "KINDS",
    "SHIPPED",
    "TOPICS",
    "Entry",
    "entries",
    "entry_by_id",
    "entry_of",
    "problems_of",
]

SHIPPED = Path(__file__).with_name("papers.jsonl")

TOPICS = (
    "architecture-search", "audio", "causality", "combinatorial-reasoning", "compression-efficiency",
    "fairness-privacy", "federated-distributed", "generative", "gradient-estimation", "graphs-geometry",
    "interpretability", "language", "learning-theory", "meta-continual", "optimisation", "reinforcement-learning",
    "representation", "robustness-security", "sampling-inference", "science-physics", "tabular-timeseries",
    "uncertainty", "vision",
)  # fmt: skip
KINDS = ("method", "model", "theory", "analysis", "benchmark", "system")
COSTS = ("minutes", "hours", "no")
# From the rarest honour to the commonest: where one paper is listed twice, the rarer stays.
DECISIONS = ("Oral", "Spotlight", "Poster", "Submission")


@dataclass(frozen=True)
class Entry:
    """A paper.

    id: for ever, in kebab-case; a paper that runs in Laureate has the same id there.
    name: the short name by which people know the method; empty where there is none.
    topic: of what field it is, one of ``TOPICS``; no area, which is a package of methods (``laureate.<area>``).
    problem, does, demo, asks: our own words: the reader's problem, what the method does, what would show it (empty
        where a small demonstration would not), and five ways in which people put the problem.
    cpu: what the demonstration would cost on two cores: ``minutes``, ``hours``, or ``no``.
    fit: 0 to 3, how well it would fit as a component of this package.
    terms: words that are frequent in the paper's abstract and rare elsewhere, in alphabetical order.
    symptoms: what people see when they have the problem, in plain words.
    also: abbreviations, and the field's own name of the problem.
    url: where the paper is. abstract: only of papers the user imported.
    """

    id: str
    title: str
    authors: tuple[str, ...] = ()
    venue: str = ""
    decision: str = ""
    award: str = ""
    reviewed: bool = False
    name: str = ""
    kind: str = ""
    topic: str = ""
    problem: str = ""
    does: str = ""
    cpu: str = ""
    demo: str = ""
    fit: int = 0
    asks: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    abstract: str = ""
    url: str = ""

    @property
    def year(self) -> int | None:
        """The year in the venue's name."""
        found = re.search(r"\b(19|20)\d\d\b", self.venue)
        return int(found[0]) if found else None

    def record(self) -> dict[str, Any]:
        """As a JSON object, tuples as lists."""
        values = {name: getattr(self, name) for name in _FIELDS}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def title_key(self) -> str:
        """Equal for two listings of one paper, whatever their capitals and punctuation."""
        return compact(self.title)

    def surnames(self) -> frozenset[str]:
        """The authors' last names, plain."""
        return frozenset(plain(author).split()[-1] for author in self.authors if author.split())


_FIELDS = {field.name: field for field in fields(Entry)}
_LISTS = ("authors", "asks", "terms", "symptoms", "also")


def entry_of(record: dict[str, Any]) -> Entry:
    """From a JSON object; names it does not know are left out. An older Laureate called the topic ``area``."""
    record = {"topic": record.get("area", "")} | record
    known: dict[str, Any] = {name: value for name, value in record.items() if name in _FIELDS}
    for name in _LISTS:
        known[name] = tuple(known.get(name, ()))
    return Entry(**known)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """The papers that ship with the package."""
    return tuple(_read())


def entry_by_id(paper_id: str) -> Entry:
    """The paper of that id among those that ship; ``KeyError`` where there is none."""
    with SHIPPED.open(encoding="utf-8") as lines:
        # The id stands first in a line: one record is read, not all.
        for line in lines:
            if line.startswith(f'{{"id": "{paper_id}",'):
                return entry_of(json.loads(line))
    raise KeyError(paper_id)


def _read() -> Iterator[Entry]:
    with SHIPPED.open(encoding="utf-8") as lines:
        for line in lines:
            yield entry_of(json.loads(line))


def problems_of(record: dict[str, Any]) -> list[str]:
    """What is wrong with a record of ``papers.jsonl``, in words; empty where nothing is."""
    wrong = []
    for name, field in _FIELDS.items():
        if name == "abstract":
            continue
        value = record.get(name)
        if name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
                wrong.append(f"{name} must be a list of texts; got {value!r}")
        elif (
            type(value) is not {"str": str, "bool": bool, "int": int}[str(getattr(field.type, "__name__", field.type))]
        ):
            wrong.append(f"{name} must be {field.type}; got {value!r}")
    wrong.extend(f"{name} is not a field" for name in record if name not in _FIELDS)
    if wrong:
        return wrong
    choices = {"topic": TOPICS, "kind": KINDS, "cpu": COSTS, "decision": DECISIONS, "fit": (0, 1, 2, 3)}
    wrong.extend(
        f"{name} must be one of {allowed}; got {record[name]!r}"
        for name, allowed in choices.items()
        if record[name] not in allowed
    )
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", record["id"]):
        wrong.append(f"id must be in kebab-case; got {record['id']!r}")
    if len(record["asks"]) != 5:
        wrong.append(f"asks must be five; got {len(record['asks'])}")
    wrong.extend(
        f"{name} must not be empty" for name in ("title", "authors", "venue", "problem", "does") if not record[name]
    )
    texts = [value for value in record.values() if isinstance(value, str)] + [t for n in _LISTS for t in record[n]]
    wrong.extend(
        f"{text!r} has white space or control characters to clean" for text in texts if text != " ".join(text.split())
    )
    return wrong
