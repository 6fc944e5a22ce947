"""What all readers share: text from outside made plain, facts made uniform."""

import re
import unicodedata
from collections.abc import Iterable

from laureate.catalogue.entry import Entry

__all__ = ["Found", "Malformed", "clean", "clean_authors", "split_venue", "without_tex"]

MOST_TITLE, MOST_ABSTRACT, MOST_AUTHORS = 500, 20_000, 3_000


# Control, format, private and surrogate characters, line separators.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\uf8ff"
    "\U000e0000-\U0010ffff]"
)


class Malformed(Exception):  # noqa: N818 -- it reads as a sentence where it is raised
    """A line and what is wrong there."""

    def __init__(self, line: int, what: str):
        super().__init__(what)
        self.line = line


class Found(list[Entry]):
    """The papers of a list. ``left_out``: what else stood there and is no paper, by kind, with how many."""

    def __init__(self, papers: Iterable[Entry], left_out: dict[str, int] | None = None):
        super().__init__(papers)
        self.left_out = {what: count for what, count in (left_out or {}).items() if count}


def clean(text: str, most: int = MOST_ABSTRACT) -> str:
    """One line of plain text: no control characters (a terminal would obey them), no direction marks, bounded."""
    text = unicodedata.normalize("NFC", text[: 4 * most])
    text = " ".join(_UNSEEN.sub(" ", text).split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def clean_authors(names: Iterable[str]) -> tuple[str, ...]:
    """Their names, in order, each once."""
    found = (clean(name, 200).strip(" ,;*") for name in names)
    return tuple(dict.fromkeys(name for name in found if name))[:MOST_AUTHORS]


_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307"}
_LETTER_ACCENTS = {
    "c": "\u0327",
    "v": "\u030c",
    "u": "\u0306",
    "H": "\u030b",
    "k": "\u0328",
    "r": "\u030a",
    "b": "\u0331",
    "d": "\u0323",
}
_LETTERS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å", "ae": "æ", "AE": "Æ", "oe": "œ",
    "OE": "Œ", "i": "i", "j": "j", "epsilon": "ε", "ell": "ℓ", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ",
    "lambda": "λ", "mu": "μ", "sigma": "σ", "infty": "∞", "textendash": "–", "textemdash": "—",
}  # fmt: skip


_MARKS = _ACCENTS | _LETTER_ACCENTS
_LETTER = r"[^\W\d_][\u0300-\u0331]*"
_ACCENTED = re.compile(
    rf"\\([{''.join(map(re.escape, _ACCENTS))}])\s*(?:\{{({_LETTER})\}}?|({_LETTER}))"
    rf"|\\([{''.join(_LETTER_ACCENTS)}])(?:\s*\{{({_LETTER})\}}|\s+({_LETTER}))"
)
_COMMAND = re.compile(r"\\([a-zA-Z]+)\s?(?:\{\})?")


def without_tex(text: str) -> str:
    r"""TeX taken off: ``N{\"u}sken`` is Nüsken, ``\emph{x}`` is x, ``$\epsilon$-greedy`` is ε-greedy."""
    if not re.search(r"[\\{}$~]", text):
        return text
    text = _COMMAND.sub(lambda f: _LETTERS.get(f[1], f[0]), text)
    for _ in range(2):  # one accent may stand on another: Nguy{\~{\^e}}n
        text = _ACCENTED.sub(lambda f: (f[2] or f[3] or f[5] or f[6]) + _MARKS[f[1] or f[4]], text)
    text = _COMMAND.sub(" ", text)
    text = re.sub(r"\\([&%$#_{}()\[\]])", r"\1", text)
    text = re.sub(r"[{}$\\]", "", text).replace("~", " ").replace("``", '"').replace("''", '"')
    text = re.sub(r" {2,}", " ", text)
    return unicodedata.normalize("NFC", re.sub(r"(?<=[ε∞ℓαβγδλμσ]) (?=-)", "", text))


_DECISION = re.compile(
    r"\b(oral(?:poster)?|spotlight|poster|notable|accept(?:ed)?|talk|submitted|submission|under review|decision pending"
    r"|reject(?:ed)?|withdrawn)\b",
    re.I,
)
# Where no year ends the venue's name: "Under review for TMLR".
_IN_WORDS = re.compile(
    r"((?:accept|submitt|reject)ed|under review|decision pending) (?:to|by|for|at) (?:the )?(.+)", re.IGNORECASE
)


def decision_of(text: str) -> str:
    """Oral, Spotlight, Poster or Submission, from a venue's way of putting it; empty where it does not say."""
    words = {word.lower() for word in _DECISION.findall(text)}
    if words & {"oral", "oralposter", "talk"} or re.search(r"notable.*top[- ]?5\b", text, re.I):
        return "Oral"
    if words & {"spotlight", "notable"}:
        return "Spotlight"
    if "poster" in words or words & {"accept", "accepted"}:
        return "Poster"
    return "Submission" if words else ""


def split_venue(text: str) -> tuple[str, str]:
    """``"ICLR 2021 Poster"`` -> ``("ICLR 2021", "Poster")``; ``"Submitted to ICLR 2021"`` -> ``(.., "Submission")``."""
    text = clean(text, 200)
    decision = decision_of(text)
    found = re.search(r"\b([A-Za-z][A-Za-z&*-]+(?: [A-Z][A-Za-z]+)?)[ ./']+((?:19|20)\d\d)\b", text)
    if decision and found:
        name = re.sub(r"^(?:to|at|the) ", "", found[1], flags=re.I)
        return f"{name} {found[2]}", decision
    if told := _IN_WORDS.fullmatch(text):
        by_a_journal = text.lower().startswith("accepted by")  # which has no talks and no posters
        return told[2], "" if by_a_journal else decision
    return text, decision
