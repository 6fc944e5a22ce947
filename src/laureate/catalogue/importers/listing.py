"""Markdown listings of a venue: a heading a paper, then its authors, then its abstract::

## [Title](link)

- First Author, Second Author
- abstract@[open-review\\(Poster\\)](link): What it is about ...
"""

import itertools
import re

from laureate.catalogue.entry import Entry
from laureate.catalogue.importers._clean import (
    MOST_TITLE,
    Malformed,
    clean,
    clean_authors,
    decision_of,
    without_tex,
)

__all__ = ["read"]

_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_LINK = re.compile(r"\[((?:\\.|[^\[\]\\])*)\]\(\s*([^()\s]*)[^()]*\)")


def read(text: str) -> list[Entry]:
    """The papers of a listing. A heading that no list of authors follows is the venue's, or a chapter's."""
    papers: list[Entry] = []
    venue = ""
    lines = re.split("\r\n?|\n", text)  # splitlines() would end one at a form feed, too
    places = [number for number, line in enumerate(lines) if _HEADING.match(line)]
    for number, end in itertools.pairwise([*places, len(lines)]):
        found = _HEADING.match(lines[number])
        # Hashes may close a heading as they opened it.
        heading = found[2].rstrip().rstrip("#").rstrip() if found else ""
        items = _items(lines[number + 1 : end])
        if not items:
            if re.search(r"\b(19|20)\d\d\b", heading):
                venue = clean(_plain(heading), 120)
            elif number + 1 < end and len(found[1] if found else "") > 1 and any(lines[number + 1 : end]):
                raise Malformed(number + 1, f"no authors and no abstract under {clean(heading, 60)!r}")
            continue
        papers.append(_paper(number + 1, heading, items, venue))
    return papers


def _items(lines: list[str]) -> list[str]:
    """The items of the list under a heading, each on one line."""
    items: list[str] = []
    for line in lines:
        if found := re.match(r"^\s{0,3}[-*+]\s+(.*)$", line):
            items.append(found[1])
        elif items and line.strip():
            items[-1] += " " + line.strip()
    return items


def _paper(line: int, heading: str, items: list[str], venue: str) -> Entry:
    title = clean(without_tex(_plain(heading)), MOST_TITLE)
    if not title:
        raise Malformed(line, "a heading without a title")
    link = _LINK.match(heading)
    abstract, decision, authors = "", "", ""
    for item in items:
        match = re.match(r"^abstract\s*(?:@\s*)?(.{0,200}?)(?<!\\):\s*(.*)$", item, re.I | re.DOTALL)
        if match:
            decision, abstract = decision_of(_plain(match[1])), clean(without_tex(_plain(match[2])))
        elif not authors:
            authors = item
    url = link[2] if link else ""
    return Entry(
        id="",
        title=title,
        authors=clean_authors(_plain(authors).split(",")),
        venue=venue,
        decision=decision,
        abstract=abstract,
        url=url if re.fullmatch(r"https?://[^\s<>\"']{1,500}", url) else "",
    )


def _plain(text: str) -> str:
    """Links by their words, escapes by what they escape; everything else stays as written."""
    text = _LINK.sub(r"\1", text)
    return re.sub(r"\\+([!-/:-@\[-`{-~])", r"\1", text)
