"""Citations: BibTeX and CSL-JSON."""

import collections
import re
from collections.abc import Iterable, Iterator
from typing import Any

from laureate.catalogue.entry import Entry
from laureate.catalogue.words import plain

__all__ = ["bibliography", "bibtex", "csl"]

_PROCEEDINGS = {
    "ICLR": "International Conference on Learning Representations",
    "ICML": "International Conference on Machine Learning",
    "NeurIPS": "Advances in Neural Information Processing Systems",
}
_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "%": r"\%",
        "&": r"\&",
        "#": r"\#",
        "$": r"\$",
        "_": r"\_",
        "~": r"\~{}",
        "^": r"\^{}",
    }
)
# BibTeX takes an address as it is, and counts the braces in it.
_IN_ADDRESS = str.maketrans({"\\": "%5C", "{": "%7B", "}": "%7D"})

# What would be read as two names, or as a family and a given name: institutions are called so.
_WHOLE = re.compile(r",|\band\b", re.IGNORECASE)


def _names(author: str) -> tuple[str, str]:
    """(family, given); a particle such as "De" or "van" belongs to the family."""
    words = author.split()
    start = len(words) - 1
    while start > 1 and words[start - 1].lower() in (
        "de",
        "den",
        "der",
        "di",
        "du",
        "la",
        "le",
        "van",
        "von",
        "el",
        "al",
        "ter",
    ):
        start -= 1
    return " ".join(words[start:]), " ".join(words[:start])


def _author(name: str) -> str:
    """As BibTeX reads it back."""
    if _WHOLE.search(name):
        return f"{{{name.translate(_TEX)}}}"
    return ", ".join(filter(None, _names(name))).translate(_TEX)


def _key(entry: Entry) -> str:
    family = _names(entry.authors[0])[0] if entry.authors else "anonymous"
    author_and_year = re.sub(r"[^a-z0-9]", "", plain(family)) + str(entry.year or "")
    return author_and_year + re.sub(r"[^a-z0-9]", "", plain(entry.name or entry.title.split(" ")[0]))[:20]


def _venue(entry: Entry) -> str:
    """Where it appeared; empty where no more than the year is known."""
    short = re.sub(r"\s*\b(19|20)\d\d\b\s*", " ", entry.venue).strip()
    return _PROCEEDINGS.get(short, short)


def _is_submission(entry: Entry) -> bool:
    return entry.decision == "Submission" or "submission" in entry.venue.lower()


def bibliography(entries: Iterable[Entry]) -> Iterator[str]:
    """``bibtex`` of each, no two under one key: TeX would stop at the second."""
    times: collections.Counter[str] = collections.Counter()
    for entry in entries:
        key = _key(entry)
        times[key] += 1
        yield bibtex(entry, f"{key}-{times[key]}" if times[key] > 1 else key)


def bibtex(entry: Entry, key: str = "") -> str:
    """An entry for a bibliography; signs that TeX would obey are escaped, capitals are kept by double braces."""
    fields = {"title": "{" + entry.title.translate(_TEX) + "}"}
    if entry.authors:
        fields["author"] = " and ".join(map(_author, entry.authors))
    if _is_submission(entry):
        to = re.sub(r"\s*\bsubmission\b", "", entry.venue if _venue(entry) else "", flags=re.IGNORECASE)
        kind, fields["note"] = "misc", (f"Submitted to {to}" if to else "Submission").translate(_TEX)
    else:
        kind = "inproceedings" if (venue := _venue(entry)) else "misc"
        if venue:
            fields["booktitle"] = venue.translate(_TEX)
    if entry.year:
        fields["year"] = str(entry.year)
    if entry.url:
        fields["url"] = entry.url.translate(_IN_ADDRESS)
    width = max(map(len, fields))
    lines = ",\n".join(f"  {name:<{width}} = {{{value}}}" for name, value in fields.items())
    return f"@{kind}{{{key or _key(entry)},\n{lines}\n}}"


def _person(name: str) -> dict[str, str]:
    if _WHOLE.search(name):
        return {"literal": name}
    family, given = _names(name)
    return {"family": family} | ({"given": given} if given else {})


def csl(entry: Entry) -> dict[str, Any]:
    """The same for programs that read CSL-JSON (Zotero, Pandoc)."""
    venue = _venue(entry)
    published = "paper-conference" if venue else "article"
    kind = "manuscript" if _is_submission(entry) else published
    item: dict[str, Any] = {"id": entry.id, "type": kind, "title": entry.title}
    item["author"] = list(map(_person, entry.authors))
    if entry.year:
        item["issued"] = {"date-parts": [[entry.year]]}
    if venue and not _is_submission(entry):
        item |= {"container-title": venue, "event-title": entry.venue}
    if entry.url:
        item["URL"] = entry.url
    return item
