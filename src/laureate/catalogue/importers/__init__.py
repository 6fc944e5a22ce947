"""Readers of other venues' lists: OpenReview's notes, BibTeX, conferences' virtual sites, Markdown listings.

Every reader takes a text and gives papers, or raises :class:`Malformed` with the line and what is wrong there. What
they give is plain text: mark-up is taken off, control characters are gone, lengths are bounded.
"""

import re
from collections.abc import Callable
from pathlib import Path

from laureate.catalogue.entry import Entry
from laureate.catalogue.importers import bibtex, listing, openreview, virtual_site
from laureate.catalogue.importers._clean import Found, Malformed, clean
from laureate.lab.errors import UserError

__all__ = ["FORMS", "clean", "read_file"]

MOST_BYTES = 1 << 29
FORMS: dict[str, Callable[[str], list[Entry]]] = {
    "OpenReview notes (JSON)": openreview.read,
    "BibTeX": bibtex.read,
    "a conference's virtual site (HTML)": virtual_site.read,
    "a Markdown listing": listing.read,
}


def read_file(path: Path) -> Found:
    """The papers of a file, its form seen from its content; their ids are still empty.

    Raises:
        UserError: naming file, line and what is wrong; nothing is given then.
    """
    try:
        # By reading and not by its size: a pipe or a device has none, and may never end.
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB.", "Split it and import the parts.")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: not UTF-8 text (byte {error.start}).", "Save it as UTF-8.") from error
    try:
        papers = _reader(text)(text)
    except Malformed as error:
        raise UserError(f"{path}:{error.line}: {error}.") from error
    if not papers:
        raise UserError(f"{path}: no paper found in it.", f"It may be: {'; '.join(FORMS)}.")
    return papers if isinstance(papers, Found) else Found(papers)


def _reader(text: str) -> Callable[[str], list[Entry]]:
    start = text.lstrip()[:1]
    if start in ("{", "["):
        # A Markdown link may open a file, too.
        return listing.read if re.match(r"\s*\[[^\]\n]*\]\(", text) else openreview.read
    if re.search(r"^[ \t]*@\s*[a-zA-Z]+\s*[{(]", text[:1_000_000], re.MULTILINE) and start != "<":
        return bibtex.read
    if re.search(r"^#{1,6} ", text, re.MULTILINE) and start != "<":
        return listing.read
    if start == "<":
        return virtual_site.read
    raise Malformed(1, f"none of the forms that can be read ({'; '.join(FORMS)})")
