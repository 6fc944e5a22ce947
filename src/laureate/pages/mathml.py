"""From an equation in plain Unicode, as claim files write it, to MathML: typeset by the browser, with no network.

What it knows: ``x_t``, ``x_{t+1}`` and ``e^{s}``, raised signs (``σ²``, ``ξ⁽ⁱ⁾``, ``σᵀ``), primes, accents
(``ĝ``), sums with limits, roots, fractions written without blanks (``1/(2σ²N)``), function names, and words between
formulas. What it does not know it shows as it stands, so an equation is never lost.
"""

import re
import unicodedata
from html import escape

__all__ = ["mathml"]

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱⁿᵀ", "0123456789+−=()inT", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₜₙ", "0123456789+−ijtn", strict=True))
_ACCENTS = {"\u0302": "^", "\u0303": "~", "\u0304": "¯", "\u0307": "˙", "\u0308": "¨"}
_FUNCTIONS = frozenset({
    "exp", "log", "ln", "min", "max", "argmin", "argmax", "sup", "inf", "tr", "det", "softmax", "sigmoid", "sign",
    "Var", "Cov", "Re", "diag", "sin", "cos", "mean",
})  # fmt: skip
# It is raised by itself in every font, where ′ as a power is a speck in some.
_PRIME = '<mo lspace="0" rspace="0">\u02b9</mo>'
_LARGE = frozenset("Σ∑Π∏∫")
_UNDER = frozenset({*_LARGE, "argmin", "argmax", "min", "max", "sup", "inf", "mean"})
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, frozenset(")]}")
_TOKEN = re.compile(
    r"(?P<space> {2,})|(?P<blank>\s)|(?P<number>\d+(?:\.\d+)?)|(?P<word>[A-Za-z]{2,})"
    r"|(?P<letter>[^\W\d_][\u0300-\u036f]*)|(?P<sign>.)"
)


def mathml(equation: str) -> str:
    """One ``<math>`` element a line.

    >>> mathml("x_t²")
    '<math display="block"><msubsup><mi>x</mi><mi>t</mi><mn>2</mn></msubsup></math>'
    """
    lines = [line for line in equation.strip("\n").splitlines() if line.strip()]
    return "".join(f'<math display="block">{_Line(line).row()}</math>' for line in lines)


class _Line:
    """A reader of one line."""

    def __init__(self, text: str):
        # Letters come apart from their accents; a sign that is struck through, as ≠, stays one.
        text = re.sub(
            ".\u0338", lambda struck: unicodedata.normalize("NFC", struck[0]), unicodedata.normalize("NFD", text)
        )
        self._tokens = [(found.lastgroup or "sign", found[0]) for found in _TOKEN.finditer(text)]
        self._place = 0

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._place] if self._place < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._place += 1
        return token

    def row(self, until: str = "") -> str:
        """Everything up to a closing sign, which is left to the caller."""
        parts: list[str] = []
        while self._peek()[0] != "end" and self._peek()[1] != until:
            kind, _ = self._peek()
            if kind == "space":
                self._next()
                parts.append('<mspace width="2em"/>')
            elif kind == "blank":
                self._next()
            elif self._is_prose(self._place):
                parts.append(self._words())
            else:
                parts.append(self._scripted())
        return "".join(parts)

    def _is_prose(self, place: int) -> bool:
        """A word that is neither a function's name nor carries an index or a power."""
        (kind, text), (_, after) = [*self._tokens, ("end", ""), ("end", "")][place : place + 2]
        return kind == "word" and text not in _FUNCTIONS and after not in ("_", "^", "(", *_RAISED, *_LOWERED)

    def _words(self) -> str:
        """Prose between formulas, with the blanks that are around it."""
        before = "&#160;" * (self._place > 0 and self._tokens[self._place - 1][0] == "blank")
        words = [self._next()[1]]
        while self._peek()[0] == "blank" and self._place + 1 < len(self._tokens):
            if not self._is_prose(self._place + 1):
                break
            self._next()
            words.append(self._next()[1])
        after = "&#160;" * (self._peek()[0] == "blank")
        return f"<mtext>{before}{escape(' '.join(words))}{after}</mtext>"

    def _scripted(self) -> str:
        """An atom with its indices, powers and primes, and the fraction it may be the upper part of."""
        start = self._peek()[1]
        large = start in _UNDER
        atom = self._atom()
        lower, upper = "", ""
        while True:
            _, text = self._peek()
            if text == "_":
                self._next()
                lower += self._index()
            elif text == "^":
                self._next()
                upper += self._index()
            elif text in _LOWERED:
                lower += self._shifted(_LOWERED)
            elif text in _RAISED:
                upper += self._shifted(_RAISED)
            elif text in ("'", "′"):
                self._next()
                if upper:
                    upper += _PRIME
                else:
                    atom = f"<mrow>{atom}{_PRIME}</mrow>"
            else:
                break
        if lower or upper:
            name = ("munder", "mover", "munderover") if large else ("msub", "msup", "msubsup")
            which = name[2] if lower and upper else name[0] if lower else name[1]
            scripts = "".join(_one(part) for part in (lower, upper) if part)
            atom = f"<{which}>{_one(atom)}{scripts}</{which}>"
        if start in _FUNCTIONS:
            after = next((text for kind, text in self._tokens[self._place :] if kind != "blank"), "(")
            atom += "<mo>&#8289;</mo>" if after in _OPEN else '<mo rspace="0.17em">&#8289;</mo>'  # log p, but log(p)
        if self._peek()[1] == "/" and self._place + 1 < len(self._tokens):
            after = self._tokens[self._place + 1]
            if after[0] in ("number", "letter") or after[1] == "(":
                self._next()
                return f"<mfrac>{_one(_bare(atom))}{_one(_bare(self._scripted()))}</mfrac>"
        return atom

    def _index(self) -> str:
        if self._peek()[1] == "{":
            self._next()
            inside = self.row("}")
            self._next()
            return inside
        return self._atom()

    def _shifted(self, table: dict[str, str]) -> str:
        text = ""
        while self._peek()[1] in table:
            text += table[self._next()[1]]
        return _Line(text).row()

    def _atom(self) -> str:
        kind, text = self._next()
        if kind == "number":
            return f"<mn>{text}</mn>"
        if text in _LARGE:
            sign = {"Σ": "∑", "Π": "∏"}.get(text, text)
            return f'<mo largeop="true" movablelimits="false">{sign}</mo>'
        if kind == "letter":
            return _accented(text)
        if kind == "word":
            return f"<mi>{escape(text)}</mi>" if text in _FUNCTIONS else f"<mtext>{escape(text)}</mtext>"
        if text == "√":
            return f"<msqrt>{self._root()}</msqrt>"
        if text in _OPEN:
            inside = self.row(_OPEN[text])
            close = self._next()[1]
            return f'<mrow><mo stretchy="false">{text}</mo>{inside}<mo stretchy="false">{close}</mo></mrow>'
        if text in "∇∂∞…⋯·":
            return f"<mi>{text}</mi>" if text in "∇∂∞" else f"<mo>{text}</mo>"
        if text in "½¼¾⅓":
            return f"<mn>{text}</mn>"
        if text in "|‖":  # either end of a pair; as an operator it would stretch, and stand apart
            return f'<mo stretchy="false" lspace="0" rspace="0">{text}</mo>'
        fixed = ' stretchy="false"' if text in _CLOSE else ""
        return f"<mo{fixed}>{escape(text)}</mo>"

    def _root(self) -> str:
        """What stands under a root: a group, or letters and digits up to the next sign."""
        if self._peek()[1] == "(":
            return _bare(self._atom())
        inside = ""
        while self._peek()[0] in ("letter", "number"):
            inside += self._scripted()
        return inside


def _accented(letter: str) -> str:
    base, marks = letter[0], [mark for mark in letter[1:] if mark in _ACCENTS]
    markup = f"<mi>{base}</mi>"
    for mark in marks:
        markup = f'<mover accent="true">{markup}<mo stretchy="false">{_ACCENTS[mark]}</mo></mover>'
    return markup


def _one(parts: str) -> str:
    """A single element: several are put into a row."""
    return parts if _is_single(parts) else f"<mrow>{parts}</mrow>"


def _is_single(parts: str) -> bool:
    found = re.match(r"<(\w+)", parts)
    if not found:
        return False
    name, depth = found[1], 0
    for tag in re.finditer(rf"<(/?){name}\b[^>]*?(/?)>", parts):
        depth += -1 if tag[1] else 0 if tag[2] else 1
        if depth == 0:
            return tag.end() == len(parts)
    return False


def _bare(atom: str) -> str:
    """A group without its round brackets: a fraction's bar groups already."""
    found = re.fullmatch(r'<mrow><mo stretchy="false">\(</mo>(.*)<mo stretchy="false">\)</mo></mrow>', atom)
    return found[1] if found and _is_single(atom) else atom
