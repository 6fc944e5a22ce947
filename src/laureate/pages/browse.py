"""What the catalogue's pages show, as plain values: a search with its facets, the map of the topics, an entry."""

from dataclasses import dataclass
from typing import Any

from laureate import papers
from laureate.catalogue import KINDS, TOPICS, Catalogue, Entry
from laureate.catalogue.citation import bibtex
from laureate.catalogue.entry import DECISIONS
from laureate.lab.judging.results import Result, claims_of
from laureate.lab.reference import with_reference
from laureate.lab.storing.home import store_path
from laureate.lab.storing.shown import read_shown

__all__ = ["Nearest", "Query", "entry", "listing", "nearest", "search"]

PAPERS_A_PAGE = 20
# What runs is near to a paper that does not if it scores so much of what that paper does for its own problem.
NEAR = 0.2


@dataclass(frozen=True)
class Query:
    """What a person asks of the catalogue; the page's address has the same fields."""

    q: str = ""
    topic: str = ""
    kind: str = ""
    venue: str = ""
    decision: str = ""
    runs: bool = False
    page: int = 1

    @classmethod
    def of(cls, given: dict[str, str]) -> "Query":
        """From an address; what makes no sense is left out. Older addresses call the topic ``area``."""
        page = given.get("page", "")
        return cls(
            q=given.get("q", "").strip()[:400],
            topic=_allowed(given.get("topic", given.get("area", "")), TOPICS),
            kind=_allowed(given.get("kind", ""), KINDS),
            venue=given.get("venue", "")[:80],
            decision=_allowed(given.get("decision", ""), DECISIONS),
            runs=given.get("runs") == "1",
            page=min(10_000, max(1, int(page))) if page.isdecimal() else 1,
        )

    def address(self, **changes: Any) -> dict[str, str]:
        """As the fields of an address, empty ones left out; any change but of the page begins at page 1."""
        fields = {**vars(self), **({} if "page" in changes else {"page": 1}), **changes}
        texts = {name: "1" if value is True else str(value) for name, value in fields.items() if value}
        return {name: value for name, value in texts.items() if (name, value) != ("page", "1")}

    @property
    def filters(self) -> dict[str, Any]:
        """The fields that restrict."""
        return {name: getattr(self, name) for name in ("topic", "kind", "venue", "decision", "runs")}


def _allowed(value: str, allowed: tuple[str, ...]) -> str:
    return next((name for name in allowed if name.lower() == value.lower()), "")


def listing(catalogue: Catalogue) -> dict[str, Any]:
    """What does not depend on the question: how many papers there are, by facet, and where the topics lie."""
    facets = catalogue.facets()
    return {
        "size": catalogue.size,
        "left_out": 0,
        "facets": {name: {value: count for value, count in found.items() if value} for name, found in facets.items()},
        "running": len(papers.paper_ids()),
    }


def search(catalogue: Catalogue, query: Query, as_typed: bool = False) -> dict[str, Any]:
    """The papers of one page of results, each with what runs here of it."""
    first = PAPERS_A_PAGE * (query.page - 1)
    if query.q or any(query.filters.values()):
        result = catalogue.search(query.q, limit=PAPERS_A_PAGE, offset=first, as_typed=as_typed, **query.filters)
    else:
        result = catalogue.listed(PAPERS_A_PAGE, first)
    running = papers.paper_ids()
    results = read_shown(store_path()) if any(hit.entry.id in running for hit in result.hits) else {}
    return {
        "query": query,
        "papers": [_brief(hit.entry, results, running) for hit in result.hits],
        "corrected": result.corrected,
        "ignored_phrase": result.ignored_phrase,
        "suggestions": result.suggestions,
        "total": result.total,
        "more": result.more,
        "pages": max(1, -(-result.total // PAPERS_A_PAGE)),
    }


def _brief(found: Entry, results: dict[str, Result], running: list[str]) -> dict[str, Any]:
    runs = found.id in running
    paper = papers.paper(found.id) if runs else None
    claims = claims_of(paper, with_reference(paper, results)) if paper else []
    return found.record() | {"runs": runs, "claims": claims}


@dataclass(frozen=True)
class Nearest:
    """Of what runs here, the nearest to a paper that does not; near: it is for the same kind of problem."""

    id: str
    title: str
    near: bool

    def __str__(self) -> str:
        """What is told before its name."""
        return "nearest of what runs" if self.near else "nothing that runs here is near it; the least far"


def nearest(catalogue: Catalogue, found: Entry) -> Nearest | None:
    """Asked with the paper's own problem; None where nothing runs or has a word of it."""
    question = " ".join(filter(None, (found.problem or found.title, found.does or found.abstract)))
    own, running = (catalogue.search(question, runs=runs, limit=1).hits for runs in (False, True))
    if not own or not running:
        return None
    return Nearest(running[0].entry.id, running[0].entry.title, running[0].score >= NEAR * own[0].score)


def entry(catalogue: Catalogue, paper_id: str) -> dict[str, Any] | None:
    """One paper with its neighbours."""
    found = catalogue.get(paper_id)
    if found is None:
        return None
    results, running = read_shown(store_path()), papers.paper_ids()
    return {
        "paper": _brief(found, results, running),
        "year": found.year,
        "bibtex": bibtex(found),
        "nearest": None if paper_id in running else nearest(catalogue, found),
        "related": [_brief(hit.entry, results, running) for hit in catalogue.related(paper_id, 6)],
    }
