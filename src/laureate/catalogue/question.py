"""From a person's words to what is searched: groups of forms with their weights, names, and what is meant as a whole.

Typing errors are corrected towards words that papers have, ordinary English never; two words that are one, and one that
is two, are found; amounts are dropped.
"""

import itertools
import math
import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from laureate.catalogue import index
from laureate.catalogue.english import COMMON, direction
from laureate.catalogue.spelling import corrections, near
from laureate.catalogue.synonyms import analyse, substitutes
from laureate.catalogue.words import STOP_WORDS, compact, raw_words, stem

__all__ = ["Group", "Vocabulary", "quoted", "sequence"]

SUBSTITUTE = 0.35
SURE = 5  # words of a question whose meaning is trusted fully; a name of one or two means itself
PREFIX = 0.7
MOST_WORDS = 64

# Amounts say nothing of the problem: 276,984 points, 3.7e18, 512x512, 95%, 200 ms; but 3d, 4-bit, wav2vec2 are words.
_QUANTITY = re.compile(
    r"(?<![\w-])[\d.,:]*\d(?:e[+-]?\d+)?(?:x\d+)*(?:%|k|m|s| ?(?:[gm]b|ms|hz|px))?(?![\w-])", re.IGNORECASE
)

# A word of the question with its substitutes, form -> share, and how much it counts.
Group = tuple[dict[str, float], float]


class Vocabulary:
    """What an index knows of words. db: the index. size: how many papers it has."""

    def __init__(self, db: sqlite3.Connection, size: int):
        self._db, self._size = db, size

    def groups(self, text: str, as_typed: bool) -> tuple[list[tuple[str, str]], list[Group]]:
        """What was corrected, (as typed, as searched), and the groups that count."""
        text = _QUANTITY.sub(" ", text)
        words = [part for word in raw_words(text)[:MOST_WORDS] for part in word.split("'")[0].split("-") if part]
        corrected: list[tuple[str, str]] = []
        others: dict[str, dict[str, float]] = {}
        query = " ".join(raw_words(text)[:MOST_WORDS])
        # What is a word already is searched as it is, so that the answer stays when nothing more is typed.
        if as_typed and words and not text.endswith(" ") and not self._known(stem(words[-1]), words[-1]):
            others[stem(words[-1])] = self._completions(words[-1])
        for word in dict.fromkeys(words):
            form = stem(word)
            if word in STOP_WORDS or form in substitutes() or self._known(form, word) or others.get(form):
                continue
            if self._is_english(word):
                continue  # an ordinary word is no typing error, though no paper has it
            if pair := self._split(word):
                corrected.append((word, " ".join(pair)))
                query = re.sub(rf"\b{word}\b", " ".join(pair), query)
            elif found := corrections(self._db, word):
                best = found[0]
                corrected.append((word, best.word))
                query = re.sub(rf"\b{word}\b", best.word, query)
                others[stem(best.word)] = {
                    stem(other.word): 0.7 if other.edits == best.edits else 0.4 for other in found[1:]
                }
        table = substitutes()
        asked = list(dict.fromkeys([*analyse(query), *self._joined(words)]))
        groups = []
        for form in asked:
            group = dict.fromkeys((word for word in table.get(form, ()) if word not in asked), SUBSTITUTE)
            groups.append(others.get(form, {}) | group | {form: 1.0})
        rarity = self.rarities({form for group in groups for form in group})
        weighted = [(group, max(rarity[form] * share for form, share in group.items())) for group in groups]
        return corrected, [(group, weight) for group, weight in weighted if weight > 0]

    def _known(self, form: str, word: str) -> bool:
        return bool(
            self._one("SELECT 1 FROM forms WHERE form = ?", form)
            or self._one("SELECT 1 FROM names WHERE name = ? LIMIT 1", compact(word))
        )

    def _is_english(self, word: str) -> bool:
        rank = self._one("SELECT rank FROM english WHERE word = ?", word)
        return rank is not None and int(rank) < COMMON

    def direction(self, text: str) -> list[float]:
        """What the question means as a whole (english.py); shorter than 1 where few words say it."""
        words = index.telling_words(text)
        marks = ", ".join("?" * len(asked := sorted(set(words))))
        rows = self._db.execute(f"SELECT word, rank, vector FROM english WHERE word IN ({marks})", asked)
        known = {word: (rank, vector) for word, rank, vector in rows}
        present = [word for word in words if word in known]
        sureness = min(1.0, len(present) / SURE)
        return [sureness * a for a in direction(known[word] for word in present)]

    def _split(self, word: str) -> tuple[str, str] | None:
        """``labelnoise`` as label noise, where both are words of the vocabulary."""
        for cut in range(4, len(word) - 3):
            pair = word[:cut], word[cut:]
            if all(
                self._one("SELECT 1 FROM words WHERE length = ? AND word = ? AND person = 0", len(w), w) for w in pair
            ):
                return pair
        return None

    def _joined(self, words: list[str]) -> list[str]:
        """``drop out`` as dropout, where that is a word of the vocabulary."""
        together = [
            first + second
            for first, second in itertools.pairwise(words)
            if not (first in STOP_WORDS and second in STOP_WORDS)
        ]
        known = (
            word for word in together if self._one("SELECT 1 FROM words WHERE length = ? AND word = ?", len(word), word)
        )
        return [stem(word) for word in known]

    def _completions(self, start: str) -> dict[str, float]:
        if len(start) < 2:
            return {}
        rows = self._db.execute(
            "SELECT word FROM words WHERE word > ? AND word < ? ORDER BY person, papers DESC LIMIT 8",
            (start, start + "\uffff"),
        )
        return {stem(word): PREFIX for (word,) in rows}

    def rarities(self, forms: Iterable[str]) -> dict[str, float]:
        """idf; 0 for a form that no paper has."""
        forms = list(forms)
        counts: dict[str, int] = dict(self.rows("form, papers", forms))
        return {
            form: math.log1p((self._size - n + 0.5) / (n + 0.5)) if (n := counts.get(form, 0)) else 0.0
            for form in forms
        }

    def named(self, text: str) -> dict[int, float]:
        """Papers called by their name: number -> how surely."""
        words = re.findall(r"[^\s,;?!]+", text)[:MOST_WORDS]
        whole = compact(text)
        found: dict[int, float] = {}
        for length in range(1, 6):
            for start in range(len(words) - length + 1):
                part = words[start : start + length]
                name = compact("".join(part))
                if len(name) < 2 or (length == 1 and name in STOP_WORDS and name != whole):
                    continue
                for (number,) in self._db.execute("SELECT number FROM names WHERE name = ? LIMIT 50", (name,)):
                    sure = self._sureness(name, part, whole)
                    found[number] = max(found.get(number, 0.0), sure)
        if len(whole) > 12:
            for (number,) in self._db.execute("SELECT number FROM names WHERE name = ? LIMIT 50", (whole,)):
                found[number] = 3.0
        return found

    def _sureness(self, name: str, part: list[str], whole: str) -> float:
        """1 where a name is surely meant, less where it is also an ordinary word."""
        text = "".join(part)
        written_as_name = any(letter.isupper() for letter in text[1:]) or any(letter.isdigit() for letter in text)
        papers = int(self._one("SELECT papers FROM forms WHERE form = ?", stem(name)) or 0) if len(part) == 1 else 0
        if name == whole:
            return 2.0 if written_as_name or papers <= 6 else 0.6
        if len(part) > 1:
            return 0.8
        return 1.0 if written_as_name else 0.3 if papers <= 2 else 0.0

    def suggestions(self, text: str) -> tuple[str, ...]:
        """Words to try where nothing was found; none of those that were."""
        tried = raw_words(text)[:8]
        found = [word for typed in tried if typed not in STOP_WORDS for word in near(self._db, typed, 3)]
        return tuple(word for word in dict.fromkeys(found) if word not in tried)[:6]

    def rows(self, columns: str, forms: Iterable[str]) -> Iterator[tuple]:
        """These columns of the forms that papers have."""
        asked = sorted(forms)
        for start in range(0, len(asked), 500):
            part = asked[start : start + 500]
            yield from self._db.execute(
                f"SELECT {columns} FROM forms WHERE form IN ({', '.join('?' * len(part))})", part
            )

    def _one(self, question: str, *values: Any) -> Any:
        row = self._db.execute(question, values).fetchone()
        return row[0] if row else None


def quoted(question: str) -> tuple[str, list[list[str]]]:
    """The question without quotation marks, and what stood between them."""
    quoted = re.findall(r'["“”„]([^"“”„]+)["“”„]', question)
    phrases = [forms for text in quoted if (forms := sequence(text))]
    return re.sub(r'["“”„]', " ", question), phrases


def sequence(text: str) -> list[str]:
    """The forms of a text, one after another."""
    return [stem(part) for word in raw_words(text) for part in re.split(r"[-']", word) if part]
