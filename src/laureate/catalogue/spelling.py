"""Typing errors: the nearest words of the vocabulary."""

import sqlite3
from typing import NamedTuple

__all__ = ["Correction", "corrections", "distance", "near"]


class Correction(NamedTuple):
    """A word that may have been meant."""

    word: str
    edits: int
    papers: int


def distance(first: str, second: str, most: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words; ``most + 1`` where it is more.

    >>> distance("nueral", "neural", 2), distance("fourrier", "fourier", 2), distance("cat", "tiger", 2)
    (1, 1, 3)
    """
    if abs(len(first) - len(second)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(second) + 1))
    for row, letter in enumerate(first, 1):
        now = [row]
        for column, other in enumerate(second, 1):
            cost = min(last[column] + 1, now[column - 1] + 1, last[column - 1] + (letter != other))
            if row > 1 and column > 1 and letter == second[column - 2] and first[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        if min(now) > most:
            return most + 1
        before, last = last, now
    return min(last[-1], most + 1)


def corrections(db: sqlite3.Connection, word: str, most: int = 3) -> list[Correction]:
    """What a word that no paper has may have meant, the likeliest first.

    Few errors count before frequency. Persons' names are no dictionary: they resemble too many words.
    """
    if len(word) < 5 or not word.isalpha():
        return []  # so short a word is somebody's abbreviation
    edits = 1 if len(word) < 7 else 2
    lengths = tuple(range(len(word) - edits, len(word) + edits + 1))
    marks = ", ".join("?" * len(lengths))
    first = db.execute(
        f"SELECT word, papers FROM words WHERE person = 0 AND length IN ({marks}) AND word >= ? AND word < ?",
        (*lengths, word[0], chr(ord(word[0]) + 1)),
    )
    found = _nearest(first, word, edits)
    if not found:
        # The first letter itself may be wrong: words with the same middle or the same end.
        rest = db.execute(
            f"SELECT word, papers FROM words WHERE person = 0 AND length IN ({marks})"
            " AND (substr(word, 2, 3) = ? OR substr(word, 3, 3) = ? OR substr(word, -3) = ?)",
            (*lengths, word[1:4], word[2:5], word[-3:]),
        )
        found = _nearest(rest, word, edits)
    return sorted(found, key=lambda it: (it.edits, -it.papers, it.word))[:most]


def _nearest(rows: sqlite3.Cursor, word: str, edits: int) -> list[Correction]:
    letters = set(word)
    found = []
    for text, papers in rows:
        # Each edit changes the set of letters by at most two.
        if len(letters.symmetric_difference(text)) <= 2 * edits and (apart := distance(word, text, edits)) <= edits:
            found.append(Correction(text, apart, papers))
    return found


def near(db: sqlite3.Connection, word: str, most: int = 5) -> list[str]:
    """Words of the vocabulary that begin like a word: what to offer when nothing was found."""
    for length in range(min(5, len(word)), 2, -1):
        start = word[:length]
        rows = db.execute(
            "SELECT word FROM words WHERE person = 0 AND word >= ? AND word < ? ORDER BY papers DESC, word LIMIT ?",
            (start, start + "\uffff", most),
        ).fetchall()
        if rows:
            return [row[0] for row in rows]
    return []
