"""The vocabulary in which a paper's claims are declared, at best before anything is run; the ledger says when.

A claim file is data: it loads without jax, so that the board and the pages answer at once. What computes is named,
``"module:function"``, and loaded inside the worker.

The one function behind an experiment is its trial::

    def trial(key, arm, problem, scale) -> dict[str, Array]

``key`` depends on the seed and never on the arm, so arms are paired by seed. ``arm`` and ``scale`` are the settings
declared here, by attribute (``arm.sigma``); their floats arrive traced, so another value compiles nothing. The result
is one array a metric, for one seed: the lab vmaps over a block of seeds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

__all__ = ["Arm", "Claim", "Curve", "Experiment", "Film", "Guard", "Paper", "Role", "Scale", "Settings"]

Setting = float | int | str | bool
Compilation = Literal["lightest", "light", "thorough"]
Kind = Literal["better", "equal", "trend", "bound", "question"]
Role = Literal["headline", "stand-in", "extension", "check"]
ROLES: dict[str, str] = {
    "headline": "the paper's own claim, at its size",
    "stand-in": "the paper's claim at our size",
    "extension": "our own question",
    "check": "a check of our own code",
}
# "tiny" is for the tests: as small as a trial can be made. A person chooses among the others.
SCALES = ("tiny", "smoke", "desk", "full")


class Settings(Mapping[str, Any]):
    """An immutable mapping whose entries are also attributes: ``arm.sigma`` reads better beside an equation."""

    def __init__(self, entries: Mapping[str, Any] | None = None, /, **more: Any):
        object.__setattr__(self, "_entries", dict(entries or {}, **more))

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_entries"][name]
        except KeyError:
            raise AttributeError(
                f"no setting {name!r}; there are: {', '.join(self.__dict__.get('_entries', ()))}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("settings are frozen; make new ones")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Settings({self._entries})"

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._entries.items())))


@dataclass(frozen=True)
class Arm:
    """One thing that is tried: a method or a baseline with its settings.

    Put what selects the code in strings and integers (they are compiled in), what one might sweep in floats.
    """

    name: str
    settings: Settings = field(default_factory=Settings)
    label: str = ""

    def __init__(self, name: str, label: str = "", **settings: Setting):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "label", label or name)
        object.__setattr__(self, "settings", Settings(settings))


@dataclass(frozen=True)
class Scale:
    """How large an experiment is run.

    seeds: how many seeds decide the claims, unless the user asks for another number.
    block: how many seeds one cell computes together; cells are whole, aligned blocks, so that asking for more seeds
        only adds cells and never changes a bit of the finished ones.
    cost: expected seconds on two cores for the whole experiment, as measured (``full``: as computed from desk).
    problem: keyword arguments of the default problem at this scale.
    compilation: how thoroughly programs are compiled. ``"light"`` suits programs of seconds (all scales but ``full``,
        unless said), ``"lightest"`` those that are compiled for much longer than they run, ``"thorough"`` is XLA's way.
    settings: what the trial reads as ``scale.name``.
    """

    seeds: int
    block: int = 10
    cost: float = 0.0
    problem: Settings = field(default_factory=Settings)
    compilation: Compilation | None = None
    settings: Settings = field(default_factory=Settings)

    def __init__(
        self,
        seeds: int,
        block: int = 10,
        cost: float = 0.0,
        problem: Mapping[str, Setting] | None = None,
        compilation: Compilation | None = None,
        **settings: Any,
    ):
        if seeds < 1 or block < 1:
            raise ValueError(f"Scale.seeds and Scale.block must be >= 1; got {seeds} and {block}.")
        object.__setattr__(self, "seeds", seeds)
        object.__setattr__(self, "block", block)
        object.__setattr__(self, "cost", cost)
        object.__setattr__(self, "problem", Settings(problem or {}))
        object.__setattr__(self, "compilation", compilation)
        object.__setattr__(self, "settings", Settings(settings))


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper and the test, named beforehand, that decides it.

    name: the claim's id is ``paper/name``, for ever.
    kind: ``better``: the method's metric beats the baseline's by more than ``margin``, paired by seed; a negative
        margin says that it is at most so much worse.
        ``equal``: the two differ by less than ``margin`` (two one-sided tests).
        ``trend``: the slope of ``metric`` against the metric ``against`` (both vectors, one slope a seed) is above
        ``margin`` (``better="higher"``) or below ``-margin`` (``better="lower"``); with ``at_least`` or ``at_most``
        the median slope lies within these.
        ``bound``: the median over seeds of the method's metric lies within ``at_least`` and ``at_most``.
        ``question``: no verdict; the table of all arms is the answer.
    role: ``headline``: the paper says it and we measure it at its size (desk; smoke is always smaller).
        ``stand-in``: the same at a size that fits us. ``extension``: a question of ours or of a reviewer. ``check``: it
        holds by mathematics or by construction, and tests our code.
    margin: in the metric's own unit, or as a share of the baseline's mean with ``relative=True``.
    trivial: the arm that does nothing clever (predicts the mean, guesses, stays put); a method that does not beat it is
        never supported.
    source: where in the paper the sentence stands.
    reported: the paper's own number with its unit, where it gives one.
    """

    name: str
    statement: str
    metric: str
    method: str
    baseline: str = ""
    kind: Kind = "better"
    better: Literal["lower", "higher"] = "lower"
    margin: float = 0.0
    relative: bool = False
    against: str = ""
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""
    source: str = ""
    role: Role = field(kw_only=True)
    trivial: str = ""
    reported: str = ""

    def __post_init__(self) -> None:
        where = f"Claim {self.name!r}"
        if self.role not in ROLES:
            raise ValueError(f"{where}.role must be one of {', '.join(ROLES)}; got {self.role!r}.")
        if self.kind in ("better", "equal") and not self.baseline:
            raise ValueError(f"{where}.baseline must be the name of an arm for kind {self.kind!r}; got ''.")
        if self.kind == "equal" and self.margin <= 0:
            raise ValueError(f"{where}.margin must be > 0 for kind 'equal'; got {self.margin}.")
        if self.kind == "bound" and self.at_least is None and self.at_most is None:
            raise ValueError(f"{where} of kind 'bound' must set at_least or at_most; got neither.")
        if self.kind == "trend" and not self.against:
            raise ValueError(f"{where}.against must name the metric the trend is taken against; got ''.")
        if self.margin < 0 and (self.kind != "better" or self.relative):
            raise ValueError(f"{where}.margin must be >= 0 unless kind is 'better', not relative; got {self.margin}.")
        if self.trivial and self.direction is None and not self.is_question:
            raise ValueError(
                f"{where}.trivial must be '' for a trend and for a bound on both sides, of which no direction is "
                f"better; got {self.trivial!r}."
            )

    @property
    def is_question(self) -> bool:
        """Whether the table of all arms is the answer, and there is no verdict."""
        return self.kind == "question"

    @property
    def direction(self) -> Literal["lower", "higher"] | None:
        """Which numbers of the metric are better; None where there is no such side.

        That is so for a trend, whose metric is a curve, for a question, and for a bound on both sides.
        """
        if self.kind in ("better", "equal"):
            return self.better
        if self.kind == "bound" and (self.at_least is None) != (self.at_most is None):
            return "higher" if self.at_most is None else "lower"
        return None


@dataclass(frozen=True)
class Guard:
    """What must hold of the numbers of a claim's method and baseline before it may be called supported.

    kind: ``limit``: ``metric`` is clipped, floored or capped at ``low`` or ``high``; no seed may lie there.
        ``grid``: ``metric`` is the value that a tuned arm chose, in the unit of its grid; fewer than half of the seeds
        may have chosen the lowest or the highest. ``effective``: ``metric`` is a number of effective samples, and must
        be at least ``low`` in every seed.
    grid: the scale's setting that lists the values tried (``"rates"``), for a grid that differs between scales;
        otherwise ``low`` and ``high`` are its ends.
    arms: the arms it speaks of; empty: all that report the metric.
    claims: the claims it guards; empty: a limit guards the claims that are decided by its metric, the others all claims
        of the experiment.
    """

    kind: Literal["limit", "grid", "effective"]
    metric: str
    low: float | None = None
    high: float | None = None
    grid: str = ""
    arms: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"Guard of {self.metric!r}"
        if self.grid and (self.kind != "grid" or (self.low, self.high) != (None, None)):
            raise ValueError(f"{where} names the grid {self.grid!r}: it must be of kind 'grid' without low and high.")
        if not self.grid and self.low is None and self.high is None:
            raise ValueError(f"{where} must set low or high; got neither.")
        if self.kind == "effective" and (self.low is None or self.high is not None):
            raise ValueError(f"{where} of kind 'effective' must set low alone.")

    def at(self, scale: Scale) -> "Guard":
        """The same with the ends of its grid at this scale."""
        if not self.grid:
            return self
        tried = scale.settings[self.grid]
        return replace(self, grid="", low=min(tried), high=max(tried))


@dataclass(frozen=True)
class Curve:
    """A picture of an experiment: the metric ``y`` against ``x``, both vectors, a line an arm with its band."""

    y: str
    x: str
    title: str
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Experiment:
    """What is tried, on what, how large, and which claims it decides.

    trial: ``"module:function"`` with the signature at the top of this module.
    problem: ``"module:name"`` of the default problem: a class or function, called with ``Scale.problem``.
    accepts: what a user's own problem must offer (attribute names); empty where only the default makes sense.
    over_seeds: ``"vmap"`` compiles one program for a block of seeds; ``"loop"`` calls the trial once a seed, for
        trials that read a clock or start processes.
    x64: compute in double precision.
    data: the data sets it reads, by name (``laureate._data``), the same on every machine; where one is missing the
        experiment is not run, and says how to install it. A mapping by scale where they differ between scales.
    over: what the intervals are over: ``"seeds"``, or ``"data sets"`` where the trial draws a new one for every seed;
        to divide a set that has a name anew is not that.
    guards: what must hold before a claim may be called supported.
    """

    name: str
    title: str
    trial: str
    arms: tuple[Arm, ...]
    scales: Mapping[str, Scale]
    claims: tuple[Claim, ...]
    problem: str = ""
    accepts: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = ()
    over_seeds: Literal["vmap", "loop"] = "vmap"
    x64: bool = False
    data: tuple[str, ...] | Mapping[str, tuple[str, ...]] = ()
    over: Literal["seeds", "data sets"] = "seeds"
    guards: tuple[Guard, ...] = ()

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        for guard in self.guards:
            if unknown := set(guard.arms) - set(names):
                raise ValueError(f"Guard of {guard.metric!r} names the arms {sorted(unknown)}; there are {names}.")
            if unknown := set(guard.claims) - {claim.name for claim in self.claims}:
                raise ValueError(f"Guard of {guard.metric!r} names the claims {sorted(unknown)}, which are not there.")
            if lacking := [name for name, scale in self.scales.items() if guard.grid not in ("", *scale.settings)]:
                raise ValueError(f"Guard.grid must be a setting of every scale; {lacking} lack {guard.grid!r}.")
        if len(set(names)) != len(names):
            raise ValueError(f"Experiment {self.name!r}.arms must have distinct names; got {names}.")
        for claim in self.claims:
            for arm in filter(None, (claim.method, claim.baseline, claim.trivial)):
                if arm not in names:
                    raise ValueError(
                        f"Claim {claim.name!r} names the arm {arm!r}; experiment {self.name!r} has {names}."
                    )
        named = self.data.values() if isinstance(self.data, Mapping) else self.data
        if self.over == "data sets" and any(named):
            raise ValueError(
                f"Experiment {self.name!r}.over must be 'seeds': a set that has a name, {self.data}, is the same for "
                "every seed, however it is divided; got 'data sets'."
            )
        if isinstance(self.data, Mapping) and (unnamed := set(self.scales) ^ set(self.data)):
            raise ValueError(f"Experiment {self.name!r}.data must name the sets of every scale; got {sorted(unnamed)}.")
        if unknown := set(self.scales) - set(SCALES):
            raise ValueError(f"Experiment {self.name!r}.scales must be among {SCALES}; got {sorted(unknown)}.")

    def data_at(self, scale: str) -> tuple[str, ...]:
        """The data sets it reads at a scale."""
        return self.data.get(scale, ()) if isinstance(self.data, Mapping) else self.data

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)

    def arms_of(self, claim: Claim) -> tuple[str, ...]:
        """The names of the arms that a claim needs, in declared order; a question is about all of them."""
        named = (claim.method, claim.baseline, claim.trivial)
        return tuple(arm.name for arm in self.arms if claim.is_question or arm.name in named)


@dataclass(frozen=True)
class Film:
    """What some arms of an experiment do, to look at side by side; recorded by ``scripts/films.py``, not measured.

    recorder: ``"module:function"``, ``recorder(key, arm, problem, scale) -> (scene, words)`` with the arguments of a
        trial: a ``laureate.loops.Scene`` of one seed, and what came of it.
    experiment: by name, whose arms, problem and scale ``desk`` it takes.
    arms: those that are shown, in this order.
    seconds: that a frame stays.
    said: what one sees, and how it was made.
    """

    name: str
    title: str
    recorder: str
    experiment: str
    arms: tuple[str, ...]
    said: str
    seconds: float = 0.1


@dataclass(frozen=True)
class Paper:
    """A celebrated paper: what a person wants to know before, and the experiments that re-measure its claims.

    id: as in the catalogue, which has the facts of the paper (title, authors, venue, award, address): they are filled
        in by ``laureate.papers`` and never written a second time.
    area: the package in which its methods live, ``laureate.<area>``.
    problem: the reader's problem, in the reader's words.
    idea: how the paper solves it, in a few sentences.
    equation: the heart of it, in plain Unicode, a line each.
    example: the code a user would write, about five lines; it runs as a test.
    meaning: what the verdicts mean for the reader, in a hundred words at most; written after they are known.
    films: what its page shows moving.
    """

    id: str
    area: str
    problem: str
    idea: str
    equation: str
    example: str
    experiments: tuple[Experiment, ...] = field(default=())
    meaning: str = ""
    title: str = ""
    authors: tuple[str, ...] = ()
    venue: str = ""
    year: int | None = None
    award: str = ""
    url: str = ""
    films: tuple[Film, ...] = ()

    def __post_init__(self) -> None:
        names = [claim.name for claim in self.claims]
        if len(set(names)) != len(names):
            raise ValueError(f"Paper {self.id!r} must have distinct claim names; got {names}.")
        arms = {(experiment.name, arm.name) for experiment in self.experiments for arm in experiment.arms}
        for film in self.films:
            if unknown := [arm for arm in film.arms if (film.experiment, arm) not in arms]:
                raise ValueError(f"Film {film.name!r} names the arms {unknown}, which {film.experiment!r} has not.")

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims of the paper, in the order of its experiments."""
        return tuple(claim for experiment in self.experiments for claim in experiment.claims)
