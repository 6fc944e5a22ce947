"""Search: from a person's words for a problem to papers, the likeliest first.

A saturating sum over what was asked, rare words counting most:

    score(d) = Σ_g idf(g) t_g(d) / (k + t_g(d)),   t_g(d) = Σ_{v in g} w(v) profile_d(v)

where a group g is a word of the question with its substitutes v (``w = 1`` for the word itself, less for the others),
and ``profile_d`` counts a form's occurrences weighted by field and length (:mod:`laureate.catalogue.index`): BM25F with
query expansion. In a very large catalogue the common words of a question are only counted for the papers that its
rarer words bring up, so that the time is bounded. A paper's own name and whole titles count extra. What runs here and
what won an award break ties.
"""

import bisect
import contextlib
import json
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laureate.catalogue import index
from laureate.catalogue.english import DIMENSIONS, cosine
from laureate.catalogue.entry import Entry, entry_of
from laureate.catalogue.question import Group, Vocabulary, quoted, sequence
from laureate.catalogue.words import raw_words

__all__ = ["Catalogue", "Hit", "Result"]

SATURATION = 1.2
RUNNING = 0.03  # of the best score
# How much likeness of meaning counts beside words in common, for so many of the papers that these bring up; the mean
# over a paper's nearest phrases.
MEANING, MEANT, NEAREST = 0.9, 60, 3
# So many (paper, form) pairs are read whole, the rarest words first; what is commoner is looked up for the candidates.
POSTINGS = 25_000
CANDIDATES = 300
FILTERS = ("topic", "kind", "venue", "decision")


@dataclass(frozen=True)
class Hit:
    """A paper that was found, with its score: comparable within one search only."""

    entry: Entry
    score: float


@dataclass(frozen=True)
class Result:
    """What a search gave.

    corrected: (as typed, as searched) for every word that no paper has.
    ignored_phrase: words in quotation marks stand so in no paper; they were searched without the marks.
    suggestions: where nothing was found, words to try.
    total: how many papers there are to page through; a search brings up at most ``CANDIDATES``.
    more: it brought up as many, so that others may have these words too.
    """

    hits: list[Hit]
    corrected: list[tuple[str, str]]
    ignored_phrase: bool = False
    suggestions: tuple[str, ...] = ()
    total: int = 0
    more: bool = False


class Catalogue:
    """All papers, searchable; open it once and ask it often.

    >>> with Catalogue() as catalogue:  # doctest: +SKIP
    ...     catalogue.search("labels are wrong").hits[0].entry.title
    """

    def __init__(self, db: sqlite3.Connection | None = None, running: Iterable[str] = ()):
        """``db``: an index, by default the user's. ``running``: ids of papers that run here."""
        self._db = db if db is not None else index.opened()
        # SQLite's own lower() knows the letters of English alone.
        self._db.create_function("lowered", 1, str.lower, deterministic=True)
        self._running = frozenset(running)
        self.size = int(self._one("SELECT value FROM meta WHERE name = 'papers'") or 0)
        self._words = Vocabulary(self._db, self.size)

    def __enter__(self) -> "Catalogue":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the index back."""
        self._db.close()

    def __iter__(self) -> Iterator[Entry]:
        for (data,) in self._db.execute("SELECT data FROM papers ORDER BY number"):
            yield entry_of(json.loads(data))

    def get(self, paper_id: str) -> Entry | None:
        """The paper of that id."""
        data = self._one("SELECT data FROM papers WHERE id = ?", paper_id)
        return entry_of(json.loads(data)) if data else None

    def ids(self) -> list[str]:
        """All ids."""
        return [row[0] for row in self._db.execute("SELECT id FROM papers ORDER BY number")]

    def facets(self) -> dict[str, dict[str, int]]:
        """How many papers each topic, kind, venue and decision has, the fullest first."""
        return {
            name: dict(self._db.execute(f"SELECT {name}, count(*) FROM papers GROUP BY 1 ORDER BY 2 DESC, 1"))
            for name in FILTERS
        }

    def search(
        self,
        question: str,
        *,
        topic: str = "",
        kind: str = "",
        venue: str = "",
        decision: str = "",
        runs: bool = False,
        limit: int = 10,
        offset: int = 0,
        as_typed: bool = False,
    ) -> Result:
        """Papers for a question, the likeliest first; for filters alone their papers, what won and fits first.

        topic, kind: exactly; venue: a part of its name; decision: exactly; all without regard to capitals.
        runs: only papers that run here.
        as_typed: the last word may be unfinished (search while typing).
        """
        where, values = self._where(topic, kind, venue, decision, runs)
        text, phrases = quoted(question)
        corrected, groups = self._words.groups(text, as_typed)
        names = self._words.named(text)
        if not groups and not names:
            if not raw_words(text) and where:
                return self._listed(where, values, limit, offset)
            return Result([], corrected, suggestions=self._words.suggestions(text))
        ranked = self._ranked(groups, names, self._allowed(where, values), self._words.direction(text))
        if not ranked:
            return Result([], corrected, suggestions=self._words.suggestions(text))
        more = len(ranked) == CANDIDATES
        if phrases:
            exact = [hit for hit in self._hits(ranked) if all(_contains(hit.entry, phrase) for phrase in phrases)]
            if exact:
                return Result(exact[offset : offset + limit], corrected, total=len(exact), more=more)
        hits = list(self._hits(ranked[offset : offset + limit]))
        return Result(hits, corrected, ignored_phrase=bool(phrases), total=len(ranked), more=more)

    def listed(self, limit: int = 10, offset: int = 0) -> Result:
        """All papers, what won and fits first."""
        return self._listed("", [], limit, offset)

    def related(self, paper_id: str, limit: int = 5) -> list[Hit]:
        """Papers that are about nearly the same."""
        row = self._db.execute("SELECT data FROM papers WHERE id = ?", (paper_id,)).fetchone()
        if row is None:
            return []
        profile = index.profile(entry_of(json.loads(row[0])))
        rarity = self._words.rarities(profile)
        telling = sorted(profile, key=lambda form: -rarity[form] * profile[form] / (SATURATION + profile[form]))[:25]
        numbers = self._ranked([({form: 1.0}, rarity[form]) for form in telling], {}, None)
        return [hit for hit in self._hits(numbers[: limit + 1]) if hit.entry.id != paper_id][:limit]

    def _ranked(
        self,
        groups: list[Group],
        names: Mapping[int, float],
        allowed: set[int] | None,
        meaning: Sequence[float] = (),
    ) -> list[tuple[int, float]]:
        """(number, score) of the papers, the best first; at most ``CANDIDATES``."""
        counts: dict[str, int] = dict(self._words.rows("form, papers", {form for group, _ in groups for form in group}))
        now, later = _planned(groups, counts)
        scores: dict[int, float] = {}
        postings = self._postings({form for group, _ in now for form in group})
        for group, weight in now:
            for number, amount in _amounts(group, postings).items():
                scores[number] = scores.get(number, 0.0) + weight * amount / (SATURATION + amount)
        most = sum(weight for _, weight in groups) or 1.0
        for number, sure in names.items():
            scores[number] = scores.get(number, 0.0) + most * sure
        if allowed is not None:
            scores = {number: score for number, score in scores.items() if number in allowed}
        first = sorted(scores, key=scores.__getitem__, reverse=True)[:CANDIDATES]
        best = [(number, scores[number]) for number in first]
        if later:
            postings = self._postings({form for group, _ in later for form in group})
            best = [(number, score + _amount_later(number, later, postings)) for number, score in best]
            best.sort(key=lambda pair: -pair[1])
        if meaning and best:
            best = self._by_meaning(best, meaning)
        return sorted(self._with_priors(best), key=lambda pair: (-pair[1], pair[0]))

    def _postings(self, forms: Iterable[str]) -> dict[str, tuple[array, array]]:
        found = {}
        for form, numbers, weights in self._words.rows("form, numbers, weights", forms):
            found[form] = array("I"), array("H")
            found[form][0].frombytes(numbers)
            found[form][1].frombytes(weights)
        return found

    def _by_meaning(self, scored: list[tuple[int, float]], meaning: Sequence[float]) -> list[tuple[int, float]]:
        """The first of the papers with what their phrases mean: score + share of the best score × mean cosine.

        The best first again.
        """
        first, rest = scored[:MEANT], scored[MEANT:]
        marks = ", ".join("?" * len(first))
        rows = self._db.execute(
            f"SELECT number, vectors FROM phrases WHERE number IN ({marks})", [number for number, _ in first]
        )
        vectors = dict(rows)
        most = max(score for _, score in first)

        def likeness(number: int) -> float:
            packed = memoryview(vectors[number])
            near = (cosine(meaning, packed[i : i + DIMENSIONS]) for i in range(0, len(packed), DIMENSIONS))
            nearest = sorted(near, reverse=True)[:NEAREST]
            return sum(nearest) / max(1, len(nearest))

        meant = [(number, score + MEANING * most * likeness(number)) for number, score in first]
        return sorted(meant + rest, key=lambda pair: -pair[1])

    def _with_priors(self, scored: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
        """What runs here a little before its like; what won an award or fits, before its equals."""
        most = scored[0][1] if scored else 0.0
        for number, score in scored[:50]:
            paper_id, award, fit = self._db.execute(
                "SELECT id, award, fit FROM papers WHERE number = ?", (number,)
            ).fetchone()
            yield number, score + RUNNING * most * (paper_id in self._running) + 0.006 * bool(award) + 0.001 * fit
        yield from scored[50:]

    def _hits(self, scored: Iterable[tuple[int, float]]) -> Iterator[Hit]:
        for number, score in scored:
            data = str(self._one("SELECT data FROM papers WHERE number = ?", number))
            yield Hit(entry_of(json.loads(data)), round(score, 4))

    def _allowed(self, where: str, values: list[str]) -> set[int] | None:
        if not where:
            return None
        return {row[0] for row in self._db.execute(f"SELECT number FROM papers WHERE 1 {where}", values)}

    def _where(self, topic: str, kind: str, venue: str, decision: str, runs: bool) -> tuple[str, list[str]]:
        parts, values = [], []
        for name, value in (("topic", topic), ("kind", kind), ("decision", decision)):
            if value:
                parts.append(f"AND papers.{name} = ? COLLATE NOCASE")
                values.append(value)
        if venue:
            parts.append("AND instr(lowered(papers.venue), ?)")
            values.append(venue.lower())
        if runs:
            parts.append(f"AND papers.id IN ({', '.join('?' * len(self._running))})")
            values.extend(sorted(self._running))
        return " ".join(parts), values

    def _listed(self, where: str, values: list[str], limit: int, offset: int) -> Result:
        """Filters without words: their papers, what won and fits first."""
        rows = self._db.execute(
            f"SELECT number FROM papers WHERE 1 {where} ORDER BY award = '', fit DESC, number LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )
        hits = list(self._hits([(number, 0.0) for (number,) in rows.fetchall()]))
        return Result(hits, [], total=int(self._one(f"SELECT count(*) FROM papers WHERE 1 {where}", *values)))

    def _one(self, question: str, *values: Any) -> Any:
        row = self._db.execute(question, values).fetchone()
        return row[0] if row else None


def _planned(groups: list[Group], counts: Mapping[str, int]) -> tuple[list[Group], list[Group]]:
    """Groups to read whole, and groups to look up for the candidates.

    A group whose word is rare is read whole, with its substitutes as far as the bound allows, rare ones first; the
    rarest always is.
    """
    now: list[Group] = []
    later: list[Group] = []
    read = 0
    for group, weight in sorted(groups, key=lambda pair: -pair[1]):
        kept: dict[str, float] = {}
        cost = 0
        for form in sorted(group, key=lambda form: (group[form] < 1, counts.get(form, 0), form)):
            size = counts.get(form, 0)
            if size and ((not now and not kept) or read + cost + size <= POSTINGS):
                kept[form] = group[form]
                cost += size
        if any(share == 1 for share in kept.values()) or (
            kept and not any(group[f] == 1 for f in group if f in counts)
        ):
            now.append((kept, weight))
            read += cost
        elif counted := {form: share for form, share in group.items() if share == 1 and form in counts}:
            later.append((counted, weight))
    return now, later


def _amounts(group: dict[str, float], postings: Mapping[str, tuple[array, array]]) -> dict[int, float]:
    """Paper -> how much it is about a group."""
    amounts: dict[int, float] = {}
    for form, share in group.items():
        if form in postings:
            one, pairs = share / 1000, zip(*postings[form], strict=True)
            if not amounts:
                amounts = {number: one * weight for number, weight in pairs}
                continue
            for number, weight in pairs:
                amounts[number] = amounts.get(number, 0.0) + one * weight
    return amounts


def _amount_later(number: int, groups: list[Group], postings: Mapping[str, tuple[array, array]]) -> float:
    """What the groups add to one paper's score, looked up."""
    score = 0.0
    for group, weight in groups:
        amount = 0.0
        for form, share in group.items():
            if form in postings:
                numbers, weights = postings[form]
                place = bisect.bisect_left(numbers, number)
                if place < len(numbers) and numbers[place] == number:
                    amount += share * weights[place] / 1000
        score += weight * amount / (SATURATION + amount)
    return score


def _contains(entry: Entry, phrase: list[str]) -> bool:
    texts = (
        entry.name,
        entry.title,
        entry.problem,
        entry.does,
        entry.demo,
        entry.abstract,
        *entry.asks,
        *entry.symptoms,
        *entry.also,
        *entry.authors,
    )
    length = len(phrase)
    for text in texts:
        forms = sequence(text)
        with contextlib.suppress(ValueError):
            place = -1
            while True:
                place = forms.index(phrase[0], place + 1)
                if forms[place : place + length] == phrase:
                    return True
    return False
