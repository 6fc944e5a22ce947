"""What is known of a claim, from evidence to page: one typed value, made once, where the evidence is weighed.

A result carries all that a line of the board and a picture need, so that nothing after it weighs evidence or reads an
observation. It becomes JSON at the edges alone: in the store, and where programs read. Nothing here loads NumPy.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from laureate.lab.cell import DEFAULT_PROBLEM
from laureate.lab.claim import ROLES, Claim, Experiment, Paper
from laureate.lab.judging.looks import price

__all__ = [
    "WORDS",
    "Answer",
    "ClaimId",
    "ClaimResult",
    "Measured",
    "QuestionResult",
    "Result",
    "Verdict",
    "Word",
    "by_role",
    "claims_of",
    "not_run",
    "results_of",
    "tally",
]

Word = Literal["supported", "refuted", "inconclusive", "not run"]
WORDS: tuple[Word, ...] = ("supported", "refuted", "inconclusive", "not run")


@dataclass(frozen=True, order=True)
class ClaimId:
    """``paper/name``: a claim's name for ever."""

    paper: str
    name: str

    def __str__(self) -> str:
        return f"{self.paper}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> "ClaimId":
        """From ``paper/name``."""
        paper, _, name = text.partition("/")
        return cls(paper, name)


@dataclass(frozen=True)
class Measured:
    """The numbers behind one claim, as a picture and a line of the board show them.

    effects: one a seed; their mean is the reported effect.
    worst: the seed that speaks most against the claim.
    method_mean, baseline_mean, trivial_mean: of the metric over seeds; NaN where there is no such arm, or a curve.
    axis: what ``effects`` are, in words.
    lines: (value, words) where the verdict turns. holds: the interval of means where the claim is right.
    """

    effects: tuple[float, ...]
    worst: int = 0
    method_mean: float = math.nan
    baseline_mean: float = math.nan
    trivial_mean: float = math.nan
    axis: str = ""
    lines: tuple[tuple[float, str], ...] = ()
    holds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def worst_effect(self) -> float:
        """The effect of the worst seed."""
        return self.effects[self.worst] if self.effects else math.nan

    def to_json(self) -> dict[str, Any]:
        """For ``json``; None stands for what is not finite."""
        entries = {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return entries | {"worst_effect": _plain(self.worst_effect)}

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> "Measured":
        """What ``to_json`` gave."""
        known = _known(cls, entries)
        known["effects"] = tuple(math.nan if value is None else value for value in entries.get("effects", ()))
        known["lines"] = tuple((value, words) for value, words in entries.get("lines", ()) if value is not None)
        low, high = entries.get("holds") or (None, None)
        known["holds"] = (-math.inf if low is None else low, math.inf if high is None else high)
        return cls(**known)


@dataclass(frozen=True, kw_only=True)
class Basis:
    """On what something is said of a claim.

    seeds: how many were judged; 0 where none were.
    reason: why the verdict is what it is, or why there is none.
    """

    seeds: int = 0
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Result(Basis):
    """What a verdict and an answer share: which claim, as it was declared, and under which circumstances.

    over: what the intervals are over, ``"seeds"`` or ``"data sets"``.
    declared_seeds: how many the scale declares; 0 where that is not known.
    run: the run that found it; None where none did. started: when that run began.
    reference: it was not measured here but ships with the package (``laureate.lab.reference``).
    versions: with which libraries a reference was measured; empty for what was measured here, whose run knows.
    """

    id: ClaimId
    experiment: str
    statement: str
    kind: str
    role: str = "stand-in"
    metric: str = ""
    unit: str = ""
    source: str = ""
    data: tuple[str, ...] = ()
    over: str = "seeds"
    problem: str = DEFAULT_PROBLEM
    scale: str = ""
    declared_seeds: int = 0
    machine: str = ""
    run: int | None = None
    started: str = ""
    seconds: float = 0.0
    reference: bool = False
    versions: str = ""

    @property
    def paper(self) -> str:
        """The paper's id."""
        return self.id.paper

    @property
    def name(self) -> str:
        """The claim's name within its paper."""
        return self.id.name

    @property
    def more_seeds(self) -> bool:
        """Whether more seeds were asked for than were declared: after a look at the first ones, perhaps."""
        return 0 < self.declared_seeds < self.seeds

    @property
    def on_own_problem(self) -> bool:
        """Whether it is about a problem of the user's and not about the paper's."""
        return self.problem != DEFAULT_PROBLEM

    def to_json(self) -> dict[str, Any]:
        """A dictionary for ``json``; None stands for what is not finite."""
        entries = {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        del entries["id"]
        return {"id": str(self.id), "paper": self.paper} | entries

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> "ClaimResult | QuestionResult":
        """What ``to_json`` gave, or an older Laureate stored."""
        return (ClaimResult if "verdict" in entries else QuestionResult)._of(entries)

    @classmethod
    def _of(cls, entries: Mapping[str, Any]) -> Self:
        id = ClaimId.parse(entries["id"])
        found: dict[str, Any] = {"experiment": "", "statement": "", "kind": "", **_known(cls, entries)}
        return cls(**found | {"id": id, "data": tuple(entries.get("data", ()))})

    def declared(self, experiment: Experiment, claim: Claim) -> Self:
        """With what today's declaration says in words: role, source, unit, data. No number and no verdict changes."""
        scale = experiment.scales.get(self.scale)
        return dataclasses.replace(
            self,
            role=claim.role,
            source=claim.source,
            unit=claim.unit,
            data=_data(experiment, self.scale),
            over=experiment.over,
            declared_seeds=self.declared_seeds or (scale.seeds if scale else 0),
        )


@dataclass(frozen=True, kw_only=True)
class Verdict(Basis):
    """What a run says about one claim; ``not run`` where none does.

    effect, low, high: the mean over seeds, or for bounds their median (``centre``), and its 95 % interval. For
        ``better``, ``equal`` and a trend with a direction it is signed so that positive means the paper is right; with
        bounds it is the metric (or slope) itself.
    p: of the claim's own direction, after the price of its looks and Holm over the ``family`` claims of the paper;
        ``p_raw``: before both. A refuted claim has a large p; its reason names the p of the opposite.
    effect_size: the effect in standard deviations over seeds (with bounds: how far the mean is inside the nearer one).
    improvement: the share of seeds with a positive effect, ties half (with bounds: of seeds inside them).
    test: what was tested, in words.
    guard: what kept it from being supported, or would have, whatever the test says; in words, empty if nothing did.
    looks: with which other numbers of seeds the claim was judged in this store before, at this scale, in that order.
    """

    verdict: Word = "not run"
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_raw: float = math.nan
    effect_size: float = math.nan
    improvement: float = math.nan
    family: int = 1
    test: str = ""
    guard: str = ""
    centre: Literal["mean", "median"] = "mean"
    looks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in WORDS:
            raise ValueError(f"{type(self).__name__}.verdict must be one of {WORDS}; got {self.verdict!r}.")


@dataclass(frozen=True, kw_only=True)
class ClaimResult(Verdict, Result):
    """A claim with its verdict, or ``not run`` with the reason.

    measured: the numbers behind it; None where there are none, or an older Laureate did not keep them.
    remeasured: how many other effects were found before with as many seeds at this scale: by other code, or by a clock.
    busy: where the trial reads a clock: how many times longer the wall's clock ran than the CPU's, in the worst seed;
        1 on an idle machine. NaN where it does not say.
    """

    method: str = ""
    baseline: str = ""
    trivial: str = ""
    reported: str = ""
    remeasured: int = 0
    busy: float = math.nan
    measured: Measured | None = None

    @property
    def price(self) -> int:
        """How many times its p-value counts, for it was looked at before."""
        return price(1 + len(self.looks))

    @property
    def has_effect(self) -> bool:
        """Whether there is a number to show."""
        return math.isfinite(self.effect)

    @property
    def weak_rival(self) -> bool:
        """Whether the baseline is, in the mean, no better than the trivial arm: who beats it has not beaten much."""
        if self.kind != "better" or not self.effect or self.measured is None or self.trivial in ("", self.baseline):
            return False
        method, baseline, trivial = (getattr(self.measured, f"{arm}_mean") for arm in ("method", "baseline", "trivial"))
        lower = (self.effect > 0) == (baseline > method)  # is better: the effect is positive where the method is
        return baseline >= trivial if lower else baseline <= trivial

    def to_json(self) -> dict[str, Any]:
        """A dictionary for ``json``; None stands for what is not finite."""
        return super().to_json() | {"measured": self.measured.to_json() if self.measured else None}

    @classmethod
    def _of(cls, entries: Mapping[str, Any]) -> Self:
        measured = entries.get("measured")
        found = super()._of({name: value for name, value in entries.items() if name != "measured"})
        return dataclasses.replace(
            found,
            looks=tuple(entries.get("looks", ())),
            measured=Measured.from_json(measured) if measured else None,
        )

    def declared(self, experiment: Experiment, claim: Claim) -> Self:
        """With what today's declaration says in words."""
        return dataclasses.replace(super().declared(experiment, claim), reported=claim.reported)


@dataclass(frozen=True)
class Answer:
    """One arm's row of the table that answers a question; a vector metric gives tuples, an entry a component.

    mean, low, high: None where there is no number. reason: why there is none.
    """

    arm: str
    mean: Any = None
    low: Any = None
    high: Any = None
    seeds: int = 0
    reason: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it is one number, and not a curve or nothing."""
        return isinstance(self.mean, int | float)


@dataclass(frozen=True, kw_only=True)
class QuestionResult(Result):
    """The table that answers a question; empty where it was not run, with the reason."""

    answers: tuple[Answer, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A dictionary for ``json``, a row an arm."""
        table = {row.arm: {f: _plain(getattr(row, f)) for f in _ANSWER if f != "arm"} for row in self.answers}
        return super().to_json() | {"answers": table}

    @classmethod
    def _of(cls, entries: Mapping[str, Any]) -> Self:
        table = entries.get("answers") or {}
        found = super()._of({name: value for name, value in entries.items() if name != "answers"})
        answers = tuple(Answer(arm=arm, **{f: row[f] for f in _ANSWER if f in row}) for arm, row in table.items())
        seeds = found.seeds or max((row.seeds for row in answers), default=0)
        return dataclasses.replace(found, answers=answers, seeds=seeds)


_ANSWER = tuple(field.name for field in dataclasses.fields(Answer))


def not_run(
    paper: Paper, experiment: Experiment, claim: Claim, reason: str = "", **circumstances: Any
) -> ClaimResult | QuestionResult:
    """The result of a claim or a question of which there are no observations, and why."""
    made = QuestionResult if claim.is_question else ClaimResult
    entries: dict[str, Any] = {name: getattr(claim, name) for name in _known(made, vars(claim))}
    entries |= {"id": ClaimId(paper.id, claim.name), "experiment": experiment.name, "reason": reason}
    data = _data(experiment, circumstances.get("scale", ""))
    entries |= {"data": data, "over": experiment.over}
    return made(**entries | circumstances)


def claims_of(paper: Paper, found: Mapping[str, Result]) -> list[ClaimResult]:
    """Every claim of a paper in declared order, with its result by id or as not run; questions are left out."""
    return [result for result in results_of(paper, found) if isinstance(result, ClaimResult)]


def results_of(paper: Paper, found: Mapping[str, Result]) -> list[Result]:
    """Every claim and question of a paper in declared order, with its result by id or as not run."""
    results = []
    for experiment in paper.experiments:
        for claim in experiment.claims:
            result = found.get(f"{paper.id}/{claim.name}")
            results.append(result.declared(experiment, claim) if result else not_run(paper, experiment, claim))
    return results


def by_role(results: Iterable[ClaimResult]) -> dict[str, list[ClaimResult]]:
    """Headlines first, then stand-ins, extensions and checks; roles that no claim has are left out."""
    results = list(results)
    found = {role: [result for result in results if result.role == role] for role in ROLES}
    return {role: mine for role, mine in found.items() if mine}


def tally(results: Iterable[ClaimResult]) -> dict[str, int]:
    """How many have each verdict; words that none has are left out."""
    words = [result.verdict for result in results]
    return {word: words.count(word) for word in WORDS if word in words}


def _data(experiment: Experiment, scale: str) -> tuple[str, ...]:
    """The data sets at a scale, or the one that ships with the problem; where none was run yet, those of desk."""
    scale = scale or "desk"
    chosen = experiment.scales.get(scale)
    shipped = chosen.problem.get("data") if chosen else None
    return experiment.data_at(scale) or ((shipped,) if shipped else ())


def _known(cls: type, entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are fields; None is a field's default again."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in entries.items() if name in names and value is not None}


def _plain(value: Any) -> Any:
    """For json: tuples as lists, None where a number is not finite."""
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
