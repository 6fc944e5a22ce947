"""The HTML of the conferences' virtual sites (icml.cc, iclr.cc, neurips.cc share one form).

A card a paper: ``div.displaycards`` with ``a.small-title`` (its link says oral, poster or spotlight),
``div.author-str`` (names parted by middle dots) and ``div.abstract-display``. On a page of awards the cell before the
card names the award.
"""

import re
from html.parser import HTMLParser

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

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_AWARD = re.compile(r"\b(award|outstanding|honou?rable|best paper|runner[- ]?up|test of time)\b", re.I)
# MathJax writes each formula three times; the source in TeX is the one that reads as text.
_MATH = re.compile(r"MathJax|MJX|mjx")


def read(text: str) -> list[Entry]:
    """The papers of the page, a card each; a paper that has two cards comes twice."""
    page = _Page()
    page.feed(_without_declarations(text))
    page.close()
    if page.card is not None:
        raise Malformed(page.card["line"], f"the card of {page.card['title'][:60]!r} is cut off")
    return [_paper(card, _venue(text)) for card in page.cards]


def _without_declarations(text: str) -> str:
    """Comments, ``<!...>`` and ``<?...>`` taken out, their line breaks kept.

    Python's parser takes time by the square of their number where they never close, and some it does not survive.
    """
    kept, place, closers = [], 0, {"<!--": "-->", "<!": ">", "<?": ">"}
    never: set[str] = set()
    for found in re.finditer(r"<!--|<!|<\?", text):
        if found.start() < place:
            continue
        kept.append(text[place : found.start()])
        place, closer = found.end(), closers[found[0]]
        end = -1 if closer in never else text.find(closer, place)
        if end < 0:
            never.add(closer)  # nor will it for any that opens later
            continue
        kept.append("\n" * text.count("\n", place, end))
        place = end + len(closer)
    return "".join((*kept, text[place:]))


def _venue(text: str) -> str:
    found = re.search(r"(icml|iclr|neurips|nips)\.(?:cc|org)/virtual/(\d{4})", text, re.I)
    if found:
        return f"{ {'icml': 'ICML', 'iclr': 'ICLR'}.get(found[1].lower(), 'NeurIPS') } {found[2]}"
    year = re.search(r'href="/virtual/(\d{4})/', text)
    name = re.search(r"\b(ICML|ICLR|NeurIPS)\b", text)
    return f"{name[1] if name else ''} {year[1] if year else ''}".strip()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.cards: list[dict] = []
        self.card: dict | None = None
        self.award = ""
        # Open elements as (tag, what their text is for).
        self._open: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            if tag == "br":
                self.handle_data(" ")
            return
        attributes = {name: value or "" for name, value in attrs}
        names = attributes.get("class", "").split()
        use = self._open[-1][1] if self._open else ""
        if tag in ("script", "style"):
            use = "title-or-abstract" if attributes.get("type", "").startswith("math/tex") else "skip"
        elif _MATH.search(attributes.get("class", "")):
            use = "skip"
        elif "displaycards" in names:
            self.card = {"title": "", "authors": "", "abstract": "", "link": "", "line": self.getpos()[0]}
            self.card["depth"] = len(self._open)
            use = "card"
        elif self.card is not None and tag == "a" and "small-title" in names:
            self.card["link"], use = attributes.get("href", ""), "title"
        elif self.card is not None and "author-str" in names and "higher" not in names:
            use = "authors"
        elif self.card is not None and "abstract-display" in names:
            use = "abstract"
        elif tag == "tr":
            self.award, use = "", "row"
        if len(self._open) > 10_000:
            raise Malformed(self.getpos()[0], "elements nested too deep")
        self._open.append((tag, use))

    def handle_endtag(self, tag: str) -> None:
        places = [place for place, (name, _) in enumerate(self._open[-200:]) if name == tag]
        if not places:
            return
        cut = max(0, len(self._open) - 200) + places[-1]
        del self._open[cut:]
        if self.card is not None and cut <= self.card["depth"]:
            self._finish(self.card)
            self.card = None

    def handle_data(self, data: str) -> None:
        use = self._open[-1][1] if self._open else ""
        if self.card is None:
            if use == "row" and _AWARD.search(data):
                self.award = clean(data, 100)
            return
        if use == "title-or-abstract":
            use = next((u for _, u in reversed(self._open) if u in ("title", "abstract")), "")
        if use in ("title", "authors", "abstract"):
            self.card[use] += data

    def _finish(self, card: dict) -> None:
        if not clean(without_tex(card["title"]), MOST_TITLE):
            raise Malformed(card["line"], "a card without a title")
        self.cards.append(card | {"award": self.award})


def _paper(card: dict, venue: str) -> Entry:
    link = card["link"]
    site = {"ICML": "icml.cc", "ICLR": "iclr.cc", "NeurIPS": "neurips.cc"}.get(venue.split(" ")[0], "")
    safe = bool(site) and re.fullmatch(r"/virtual/\d{4}/[a-z-]+/\d+", link) is not None
    return Entry(
        id="",
        title=clean(without_tex(card["title"]), MOST_TITLE),
        authors=clean_authors(re.split(r"[·⋅]", card["authors"])),
        venue=venue,
        decision=decision_of(link.replace("/", " ")),
        award=card["award"],
        abstract=clean(without_tex(card["abstract"])).rstrip("… "),
        url=f"https://{site}{link}" if safe else "",
    )
