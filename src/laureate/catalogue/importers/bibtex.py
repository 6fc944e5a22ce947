"""BibTeX: entries in braces or parentheses, ``@string`` names, ``#`` joins, TeX accents."""

import re

from laureate.catalogue.entry import Entry
from laureate.catalogue.importers._clean import (
    MOST_TITLE,
    Found,
    Malformed,
    clean,
    clean_authors,
    decision_of,
    without_tex,
)

__all__ = ["fields_of", "read"]

# Names joined to names double their length a line: forty lines would fill any memory.
MOST_VALUE = 1 << 20
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def read(text: str) -> Found:
    """The papers of a bibliography; entries without a title are left out, and counted."""
    papers = [_paper(fields) for fields in fields_of(text)]
    titled = [paper for paper in papers if paper.title]
    return Found(titled, {"entries without a title": len(papers) - len(titled)})


def fields_of(text: str) -> list[dict[str, str]]:
    """The fields of all entries, names in lower case; the entry's own type and key as ``"@type"`` and ``"@key"``."""
    reader = _Reader(text)
    found = []
    while reader.to_entry():
        fields = reader.entry()
        if fields:
            found.append(fields)
    return found


class _Reader:
    def __init__(self, text: str):
        self.text, self.place = text, 0
        self._counted = (0, 1)
        self.strings = {month: month.capitalize() for month in _MONTHS}

    def line(self, place: int | None = None) -> int:
        """The line of a place; counted on from the last one asked for, since entries come in order."""
        place = self.place if place is None else place
        start, line = self._counted if self._counted[0] <= place else (0, 1)
        self._counted = place, line + self.text.count("\n", start, place)
        return self._counted[1]

    def to_entry(self) -> bool:
        """To the next ``@type{``; what stands between entries is comment."""
        found = re.compile(r"@\s*([a-zA-Z]+)\s*([{(])").search(self.text, self.place)
        if found is None:
            return False
        self.start, self.place = found.start(), found.end()
        self.type, self.closer = found[1].lower(), "}" if found[2] == "{" else ")"
        return True

    def entry(self) -> dict[str, str] | None:
        if self.type in ("comment", "preamble"):
            # The opening brace was read; a comment ends where it closes.
            self.place -= 1
            self._braced() if self.closer == "}" else self._to(")")
            return None
        fields = {"@type": self.type, "@line": str(self.line(self.start))}
        if self.type != "string":
            fields["@key"] = self._match(r"[^,\s{}()=\"]*").strip()
            if self._next() == self.closer:
                self.place += 1
                return fields
            self._expect(",")
        while self._next() != self.closer:
            name = self._match(r"[^\s=,{}()\"#%]+").lower()
            if not name:
                raise self._wrong("a field's name")
            self._expect("=")
            value = self._value()
            if self.type == "string":
                self.strings[name] = value
            fields[name] = value
            if self._next() == ",":
                self.place += 1
            elif self._next() != self.closer:
                raise self._wrong(f"a comma or {self.closer!r} after {name}")
        self.place += 1
        return None if self.type == "string" else fields

    def _value(self) -> str:
        parts = []
        while True:
            start = self._next()
            if start == "{":
                parts.append(self._braced())
            elif start == '"':
                parts.append(self._quoted())
            else:
                word = self._match(r"[^\s,#{}()\"=]+")
                if not word:
                    raise self._wrong("a value")
                parts.append(self.strings.get(word.lower(), word))
            if sum(map(len, parts)) > MOST_VALUE:
                raise Malformed(self.line(), "a value of more than a megabyte, by names that stand for one another")
            if self._next() != "#":
                return "".join(parts)
            self.place += 1

    def _braced(self) -> str:
        start, depth = self.place, 0
        for found in re.compile(r"\\.|[{}]", re.DOTALL).finditer(self.text, self.place):
            depth += {"{": 1, "}": -1}.get(found[0], 0)
            if depth == 0:
                self.place = found.end()
                return self.text[start + 1 : found.start()]
        raise Malformed(
            self.line(start), f"the brace opened in the entry of line {self.line(self.start)} is never closed"
        )

    def _quoted(self) -> str:
        start, depth = self.place, 0
        for found in re.compile(r"\\.|[{}\"]", re.DOTALL).finditer(self.text, self.place + 1):
            depth += {"{": 1, "}": -1}.get(found[0], 0)
            if found[0] == '"' and depth <= 0:
                self.place = found.end()
                return self.text[start + 1 : found.start()]
        raise Malformed(self.line(start), "the quotation mark is never closed")

    def _to(self, mark: str) -> None:
        found = self.text.find(mark, self.place)
        if found < 0:
            raise Malformed(self.line(self.start), f"{mark!r} is missing")
        self.place = found + 1

    def _match(self, pattern: str) -> str:
        self._next()
        found = re.compile(pattern).match(self.text, self.place)
        if found is None:
            return ""
        self.place = found.end()
        return found[0]

    def _next(self) -> str:
        found = re.compile(r"\s*").match(self.text, self.place)
        self.place = found.end() if found else self.place
        if self.place >= len(self.text):
            raise Malformed(self.line(self.start), f"the @{self.type} entry is never closed")
        return self.text[self.place]

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise self._wrong(repr(mark))
        self.place += 1

    def _wrong(self, wanted: str) -> Malformed:
        return Malformed(
            self.line(), f"{wanted} expected; got {self.text[self.place : self.place + 20].split(chr(10))[0]!r}"
        )


def _paper(fields: dict[str, str]) -> Entry:
    text = {name: clean(without_tex(value)) for name, value in fields.items() if not name.startswith("@")}
    names = (_in_order(name) for name in _apart(" ".join(fields.get("author", "").split()), " and "))
    book = text.get("booktitle") or text.get("journal") or text.get("series") or ""
    venue = _short_venue(book, text.get("year", ""))
    # Keywords are what a paper is about: only one that is nothing else says how it was presented.
    marks = [word.strip() for word in re.split("[,;]", text.get("keywords", "")) if _PRESENTED.fullmatch(word.strip())]
    note = " ".join([text.get("note", ""), text.get("howpublished", ""), *marks])
    url = fields.get("url", "").strip()
    if not url and (doi := text.get("doi")):
        url = f"https://doi.org/{doi.removeprefix('https://doi.org/')}"
    return Entry(
        id="",
        title=clean(text.get("title", ""), MOST_TITLE),
        authors=clean_authors(name for name in names if name != "others"),
        venue=venue,
        decision=decision_of(note) if _PRESENTED.search(note) else "",
        award=clean(text.get("award", ""), 100),
        abstract=text.get("abstract", ""),
        url=url if re.fullmatch(r"https?://[^\s<>\"']{1,500}", url) else "",
    )


def _apart(text: str, between: str) -> list[str]:
    """What stands between separators that no braces hold: ``{Barnes and Noble} and A. Author`` are two names."""
    parts, start, depth = [], 0, 0
    for found in re.finditer(rf"\\.|[{{}}]|({between})", text, re.IGNORECASE):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if found[1] and depth <= 0:
            parts.append(text[start : found.start()])
            start = found.end()
    return [*parts, text[start:]]


def _in_order(name: str) -> str:
    """``Family, Given`` and ``Family, Jr., Given`` as ``Given Family Jr.``, without TeX."""
    family, *more = (clean(without_tex(part)) for part in _apart(name, ","))
    return " ".join(filter(None, (*more[-1:], family, *more[:-1])))


_KNOWN = (
    ("International Conference on Learning Representations", "ICLR"),
    ("International Conference on Machine Learning", "ICML"),
    ("Neural Information Processing Systems", "NeurIPS"),
    ("Artificial Intelligence and Statistics", "AISTATS"),
    ("Uncertainty in Artificial Intelligence", "UAI"),
    ("Conference on Learning Theory", "COLT"),
    ("Computer Vision and Pattern Recognition", "CVPR"),
    ("Association for Computational Linguistics", "ACL"),
    ("Journal of Machine Learning Research", "JMLR"),
    ("Transactions on Machine Learning Research", "TMLR"),
)


_PRESENTED = re.compile(r"\b(oral(poster)?|spotlight|poster)\b", re.IGNORECASE)


def _short_venue(book: str, year: str) -> str:
    """A series by its short name, another book by its own; the year of its field, or else of the book's name."""
    short = next((short for long, short in _KNOWN if long.lower() in book.lower()), clean(book, 120))
    found = re.search(r"(?<!\d)\d{4}(?!\d)", year) or re.search(r"(?<!\d)(?:19|20)\d\d(?!\d)", book)
    return f"{short} {found[0]}".strip() if found and found[0] not in short else short
