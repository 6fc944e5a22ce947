"""The vocabulary in which a discipline is declared: what a problem must offer, who enters, what is measured.

A discipline is data and loads without jax, so that ``laureate race --list`` answers at once. What computes is named,
``"module:function"``, and loaded where it runs (``laureate.racing.tracks``).
"""

import ast
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from laureate.racing.results import Metric

__all__ = ["Discipline", "Entrant", "Metric"]

Value = float | int | str | bool
Config = dict[str, Value]


@dataclass(frozen=True)
class Entrant:
    """A method or a baseline, on one line of its discipline's file.

    code: a Python expression that makes it, in the names of the area, of the problem, of the discipline's facts and of
        the settings. It is what runs and, with the settings' values put in, what is handed out to be pasted.
    grid: the one or two settings that are tuned, and the values that are tried, ascending where they are numbers.
    needs: what a problem must offer beyond the discipline's own needs; where it does not, the entrant stays out.
    natural: settings of the grid whose ends are no accident: ``{"num_flips": "low"}``, for there is nothing below 1;
        ``both`` for words, which have no order.
    """

    name: str
    code: str
    grid: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    natural: Mapping[str, Literal["low", "high", "both"]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for setting, values in self.grid.items():
            numbers = [value for value in values if not isinstance(value, str | bool)]
            if not values or (numbers and list(values) != sorted(numbers)):
                raise ValueError(f"Entrant {self.name!r}.grid[{setting!r}] must be words, or ascending numbers.")

    @property
    def configs(self) -> list[Config]:
        """Every combination of the grid; one without settings where there is none."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]

    @property
    def default(self) -> Config:
        """The middle of the grid, taken before anything is known."""
        return {setting: values[len(values) // 2] for setting, values in self.grid.items()}

    @property
    def names(self) -> frozenset[str]:
        """All names in its code."""
        return frozenset(node.id for node in ast.walk(ast.parse(self.code)) if isinstance(node, ast.Name))

    def edges(self, config: Mapping[str, Value]) -> list[str]:
        """In words, which chosen settings stand at an end of their grid beyond which nobody has looked."""
        found = []
        for setting, values in self.grid.items():
            if isinstance(config[setting], str | bool) or len(values) < 2:
                continue
            for end, word, value in (("low", "smallest", values[0]), ("high", "largest", values[-1])):
                if config[setting] == value and self.natural.get(setting) not in (end, "both"):
                    found.append(f"{setting} = {value:g} is the {word} that was tried")
        return found


@dataclass(frozen=True)
class Discipline:
    """One kind of problem and everybody who can solve it.

    title: the question. kind: what a problem is, with its article. problem: what it is called in the code.
    area: the package whose names the entrants' code uses.
    needs: what a problem must offer, name -> meaning. offers: what it may offer besides.
    metrics: the first decides unless the user says otherwise. unit: of cost.
    trial: ``"module:function"``, as of an experiment of the lab. facts: ``"module:function"`` from a problem to the
        plain values that all entrants share; it raises where the problem cannot be raced.
    script: what is pasted; ``{method}`` is an entrant's code with its settings, other names in braces its settings.
    settings: what the trial reads as ``scale.name``.
    smallest: the least cost that a run can be given. one_shot: every point of a curve is a run of its own.
    absent: public methods of the area that do not race, and why.
    """

    name: str
    title: str
    kind: str
    problem: str
    area: str
    needs: Mapping[str, str]
    metrics: tuple[Metric, ...]
    unit: str
    entrants: tuple[Entrant, ...]
    trial: str
    facts: str
    script: str
    offers: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    smallest: int = 1
    largest: int = 2_000_000_000
    one_shot: bool = False
    x64: bool = False
    absent: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def entrant(self, name: str) -> Entrant:
        """The entrant of that name."""
        return next(one for one in self.entrants if one.name == name)

    def metric(self, name: str = "") -> Metric:
        """The metric of that name, by default the first."""
        return next(one for one in self.metrics if name in ("", one.name))
