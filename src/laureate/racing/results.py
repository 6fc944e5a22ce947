"""What a race found, as values that the page, the terminal, a notebook and the store are given alike.

Made once, in ``laureate.racing.conclusion``. It becomes JSON at the edges alone: in the store, and where programs read.
Nothing here loads NumPy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

__all__ = ["Curve", "Metric", "Pair", "RaceResult", "Row", "Standing"]


@dataclass(frozen=True)
class Metric:
    """What quality is.

    words: what the number says. better: which way is up. limits: where it cannot say more, such as an accuracy of 1;
        the advice names an entrant that stands there in every seed. log: whether entrants are compared by factors, for
        what is positive and skewed: one lucky seed would decide a mean; the table then shows geometric means.
    """

    name: str
    words: str
    better: Literal["lower", "higher"] = "lower"
    limits: tuple[float, ...] = ()
    log: bool = False

    @property
    def sign(self) -> float:
        """Times this, more is better."""
        return 1.0 if self.better == "higher" else -1.0

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Self:
        """What ``vars`` of one became."""
        return cls(**_known(cls, entries, limits=tuple(entries.get("limits", ()))))


@dataclass(frozen=True)
class Pair:
    """Two entrants: by how much the first is better than the second, in the metric's own unit; in logarithms where the
    metric is compared by factors.

    p: two-sided, before Holm. adjusted: after. same: not a single seed tells them apart.
    by, interval: the difference and its 95 % interval for people: factors where that is what is compared.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    adjusted: float
    real: bool
    same: bool = False
    by: str = ""
    interval: str = ""

    @property
    def within_noise(self) -> bool:
        """Whether nothing says that they differ: the interval of the difference has 0 in it."""
        return not self.real and not self.low > 0

    @property
    def word(self) -> str:
        """What became of the comparison."""
        if self.same:
            return "the same in every seed"
        return "real" if self.real else "within noise" if self.within_noise else "perhaps"

    def to_json(self) -> dict[str, Any]:
        """As an object; what is not finite as null."""
        return _plain(vars(self))

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Self:
        """What ``to_json`` gave."""
        unknown = {"low": -math.inf, "high": math.inf, **dict.fromkeys(("difference", "p", "adjusted"), math.nan)}
        return cls(**{**unknown, **_known(cls, entries)})


@dataclass(frozen=True)
class Standing:
    """Who is where, at one budget.

    order: best first; only those whose every seed gave a finite number. diverged: the others, with how many did not.
    mean, low, high: by entrant, over seeds. pairs: each pair once, the better one first.
    """

    order: tuple[str, ...]
    diverged: Mapping[str, int]
    mean: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]
    pairs: tuple[Pair, ...] = field(default=())
    seeds: int = 0

    def pair(self, first: str, second: str) -> Pair:
        """The comparison of two."""
        return next(one for one in self.pairs if {one.first, one.second} == {first, second})

    @property
    def tied(self) -> tuple[str, ...]:
        """Those of whom nothing says that they are worse than the first."""
        return tuple(name for name in self.order[1:] if self.pair(self.order[0], name).within_noise)

    @property
    def leaders(self) -> tuple[str, ...]:
        """The first, and everybody who is not really worse."""
        return self.order[:1] + tuple(name for name in self.order[1:] if not self.pair(self.order[0], name).real)

    def to_json(self) -> dict[str, Any]:
        """As an object; what is not finite as null."""
        record = {name: getattr(self, name) for name in ("order", "leaders", "mean", "low", "high", "diverged")}
        return _plain(record | {"pairs": [pair.to_json() for pair in self.pairs]})

    @classmethod
    def from_json(cls, entries: Mapping[str, Any], seeds: int) -> Self:
        """What ``to_json`` gave; an older Laureate kept neither intervals nor who had nothing yet."""
        return cls(
            order=tuple(entries["order"]),
            diverged=dict(entries.get("diverged", {})),
            mean={name: _number(value) for name, value in entries["mean"].items()},
            low={name: _number(value, -math.inf) for name, value in entries.get("low", {}).items()},
            high={name: _number(value, math.inf) for name, value in entries.get("high", {}).items()},
            pairs=tuple(map(Pair.from_json, entries["pairs"])),
            seeds=seeds,
        )


@dataclass(frozen=True)
class Row:
    """An entrant in the table.

    place: 1 for the first; None for who has no number in every seed. status: finished, diverged, crashed, endless or
        stayed out. leads: not really worse than the first. cost, seconds: of a run with the whole budget, compiling
        apart. at_seconds: the mean quality at the moment at which the fastest had spent its budget,
        of those who are not done at once.
    words: all that must be known to read the numbers. against: how it stands to the first, in words.
    """

    entrant: str
    status: str
    place: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    at_seconds: float | None = None
    leads: bool = False
    cost: float | None = None
    seconds: float | None = None
    compile_seconds: float | None = None
    tuning_cost: float = 0.0
    words: tuple[str, ...] = ()
    against: str = ""

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Self:
        """What ``vars`` of one became."""
        return cls(**_known(cls, entries, words=tuple(entries.get("words", ()))))


@dataclass(frozen=True)
class Curve:
    """Quality against cost and seconds: medians over the seeds, and their 10–90 % range."""

    entrant: str
    cost: tuple[float, ...]
    seconds: tuple[float, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Self:
        """What ``vars`` of one became."""
        names = ("cost", "seconds", "middle", "low", "high")
        return cls(entries["entrant"], **{name: _numbers(entries[name]) for name in names})


@dataclass(frozen=True)
class RaceResult:
    """What a race found.

    rows: best first, then who has no number. standing: the order of those that have, and what tells each two apart.
    by_seconds: the same comparison at equal seconds, at the ``moment`` when the fastest was done.
    pareto: nobody is both faster and better than one of these. envelope: who is best at each budget on the way.
    codes: what to paste, by entrant; code: the first's. scores: by entrant, a number a seed.
    cells: how many were ``computed`` and how many were ``kept``.
    """

    discipline: str
    title: str
    problem: str
    metric: Metric
    unit: str
    budget: int
    seeds: int
    run: int
    machine: str
    rows: tuple[Row, ...]
    standing: Standing
    moment: float | None
    by_seconds: Standing | None
    pareto: tuple[str, ...]
    envelope: tuple[tuple[int, str], ...]
    curves: tuple[Curve, ...]
    advice: str
    code: str
    codes: Mapping[str, str]
    scores: Mapping[str, tuple[float, ...]]
    notes: tuple[str, ...]
    cells: Mapping[str, int]

    @property
    def best(self) -> str | None:
        """The first's name; None where nobody came in."""
        return self.standing.order[0] if self.standing.order else None

    def to_json(self) -> dict[str, Any]:
        """The object that ``laureate race --json`` prints and that the store keeps."""
        record = {
            name: getattr(self, name)
            for name in (
                *("discipline", "title", "problem", "unit", "budget", "seeds", "run", "machine", "advice", "code"),
                *("codes", "scores", "moment", "notes", "cells", "pareto", "envelope", "best"),
            )
        }
        record["metric"] = vars(self.metric)
        record["rows"] = [vars(row) for row in self.rows]
        record["curves"] = [vars(curve) for curve in self.curves]
        record["pairs"] = [pair.to_json() for pair in self.standing.pairs]
        record["leaders"] = self.standing.leaders
        record["by_seconds"] = self.by_seconds and self.by_seconds.to_json()
        return _plain(record)

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Self:
        """What ``to_json`` gave, or an older Laureate stored."""
        rows = tuple(map(Row.from_json, entries["rows"]))
        scores = {name: _numbers(values) for name, values in entries["scores"].items()}
        measured = [row for row in rows if row.entrant in scores]
        seeds = max(map(len, scores.values()), default=0)
        standing = Standing(
            order=tuple(row.entrant for row in measured if row.place is not None),
            diverged={row.entrant: _not_finite(scores[row.entrant]) for row in measured if row.place is None},
            mean={row.entrant: _number(row.mean) for row in measured},
            low={row.entrant: _number(row.low, -math.inf) for row in measured},
            high={row.entrant: _number(row.high, math.inf) for row in measured},
            pairs=tuple(map(Pair.from_json, entries["pairs"])),
            seeds=seeds,
        )
        timed = entries.get("by_seconds")
        return cls(
            **_known(
                cls,
                entries,
                metric=Metric.from_json(entries["metric"]),
                rows=rows,
                standing=standing,
                by_seconds=Standing.from_json(timed, seeds) if timed else None,
                moment=entries["moment"],
                pareto=tuple(entries["pareto"]),
                envelope=tuple((int(cost), name) for cost, name in entries["envelope"]),
                curves=tuple(map(Curve.from_json, entries["curves"])),
                scores=scores,
                notes=tuple(entries["notes"]),
            )
        )


def _known(cls: type, entries: Mapping[str, Any], **made: Any) -> dict[str, Any]:
    """The entries that are fields and say something, and what was made of others."""
    names = {one.name for one in fields(cls)}
    return {name: value for name, value in entries.items() if name in names and value is not None} | made


def _number(value: float | None, unknown: float = math.nan) -> float:
    return unknown if value is None else value


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(map(_number, values))


def _not_finite(values: tuple[float, ...]) -> int:
    return sum(not math.isfinite(value) for value in values)


def _plain(value: Any) -> Any:
    """JSON has neither tuples nor what is not finite."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
