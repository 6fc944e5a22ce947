"""OpenReview's notes as JSON: API 1 (``content.title`` is text) and API 2 (``content.title.value`` is)."""

import json
import re
from collections.abc import Iterator
from typing import Any

from laureate.catalogue.entry import Entry
from laureate.catalogue.importers._clean import (
    MOST_TITLE,
    Found,
    Malformed,
    clean,
    clean_authors,
    decision_of,
    split_venue,
)

__all__ = ["read"]


def read(text: str) -> Found:
    """The papers among the notes; reviews, comments and decisions are no papers, but a decision tells of its paper."""
    notes = list(_notes(text))
    decisions: dict[str, str] = {}
    for _, note in notes:
        if isinstance(decision := _value(_content(note), "decision"), str):
            decisions[str(note.get("forum"))] = decision
    papers = []
    for where, note in notes:
        if _is_paper(note):
            papers.append(_paper(where, note, decisions.get(str(note.get("forum") or note.get("id")), "")))
    others = len(notes) - len(papers)
    return Found(papers, {"notes that are no papers (reviews, comments, decisions)": others})


def _notes(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, note): a list, an object with ``notes``, or an object a line."""
    try:
        loaded = json.loads(text)
    except RecursionError:
        raise Malformed(1, "nested too deep to be notes") from None
    except json.JSONDecodeError as error:
        if not (error.msg == "Extra data" and text.lstrip().startswith("{")):
            raise Malformed(error.lineno, f"not JSON: {error.msg} at column {error.colno}") from None
        yield from _lines(text)
        return
    except ValueError:
        raise Malformed(1, "not JSON: a number too long to be one") from None
    if isinstance(loaded, dict):
        loaded = loaded.get("notes", [loaded] if "content" in loaded else None)
    if not isinstance(loaded, list):
        raise Malformed(1, 'a list of notes, or an object with "notes", is needed')
    cursor = _Lines(text)
    for number, note in enumerate(loaded):
        if not isinstance(note, dict):
            raise Malformed(1, f"notes[{number}] must be an object; got {str(note)[:40]!r}")
        yield cursor.of(note), note


class _Lines:
    """The line of each note in turn, by where its id stands."""

    def __init__(self, text: str):
        self._text, self._place, self._line = text, 0, 1

    def of(self, note: dict[str, Any]) -> int:
        found = self._text.find(json.dumps(note["id"]), self._place) if isinstance(note.get("id"), str) else -1
        if found >= 0:
            self._line += self._text.count("\n", self._place, found)
            self._place = found
        return self._line


def _lines(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            note = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Malformed(
                number, f"not JSON: {getattr(error, 'msg', 'nested too deep, or a number too long')}"
            ) from None
        if not isinstance(note, dict):
            raise Malformed(number, f"a note must be an object; got {line[:40]!r}")
        yield number, note


def _content(note: dict[str, Any]) -> dict[str, Any]:
    content = note.get("content")
    return content if isinstance(content, dict) else {}


def _value(content: dict[str, Any], name: str) -> Any:
    value = content.get(name)
    return value.get("value") if isinstance(value, dict) else value


def _is_paper(note: dict[str, Any]) -> bool:
    """A paper answers nobody and has a title; a review, comment or decision answers a paper."""
    if note.get("replyto") not in (None, "", note.get("id")):
        return False
    kinds = r"/-?/?(Official_Review|Official_Comment|Public_Comment|Meta_?Review|Decision|Comment|Rebuttal)\b"
    if any(re.search(kinds, name) for name in _invitations(note)):
        return False
    return "title" in _content(note)


def _invitations(note: dict[str, Any]) -> list[str]:
    """Under both of its names, whatever else may stand there."""
    listed = note.get("invitations")
    found = [note.get("invitation"), *(listed if isinstance(listed, list) else [])]
    return [name[:500] for name in found if isinstance(name, str)]


def _paper(line: int, note: dict[str, Any], decision: str) -> Entry:
    content = _content(note)
    title = _value(content, "title")
    if not isinstance(title, str) or not clean(title, MOST_TITLE):
        raise Malformed(line, f"the note {note.get('id')!r} must have a title; got {title!r}")
    authors = _value(content, "authors")
    if isinstance(authors, str):
        authors = authors.split(",")
    if authors is None:
        authors = []
    if not isinstance(authors, list) or not all(isinstance(name, str) for name in authors):
        raise Malformed(line, f"authors of {title[:60]!r} must be a list of names; got {str(authors)[:60]}")
    venue_text, venue_id = _value(content, "venue"), _value(content, "venueid")
    venue, venue_decision = split_venue(venue_text) if isinstance(venue_text, str) else ("", "")
    if not venue:
        sources = [venue_id if isinstance(venue_id, str) else "", *_invitations(note)]
        found = next((f for s in sources if (f := re.match(r"([A-Za-z]{1,40})\.?\w{0,40}/(\d{4})/", s))), None)
        venue = f"{found[1]} {found[2]}" if found else ""
    abstract = _value(content, "abstract")
    forum = note.get("forum") or note.get("id")
    good = isinstance(forum, str) and re.fullmatch(r"[\w-]{1,64}", forum)
    return Entry(
        id="",
        title=clean(title, MOST_TITLE),
        authors=clean_authors(name for name in authors if name.lower() != "anonymous"),
        venue=venue,
        decision=(decision_of(decision) if decision else "") or venue_decision,
        abstract=clean(abstract) if isinstance(abstract, str) else "",
        url=f"https://openreview.net/forum?id={forum}" if good else "",
    )
