"""Who did best on one problem: what every arm reached, and how sure the first place is.

A claim asks whether the paper's method beats its rival by the paper's margin. Who brings a problem of their own asks
something else: which of these should I take? So all arms are ranked by their mean over seeds, and the best is compared
with every other, paired by seed. The best was chosen among k by the same numbers, so each of these k - 1 intervals is
of level 1 - 5 % / (k - 1): then they are right together, whichever arm is best in truth (Hsu 1981; Bonferroni's bound).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from laureate.lab.claim import Claim, Experiment, Scale
from laureate.lab.judging import statistics
from laureate.lab.judging.evidence import Arms
from laureate.lab.judging.guards import at_limit

__all__ = ["Place", "Standing", "standings"]

LEVEL = 0.95


@dataclass(frozen=True)
class Place:
    """One arm.

    mean, low, high: of the metric over seeds, with its 95 % interval; NaN where a seed is not finite.
    behind, behind_low, behind_high: by how much the best is better, paired by seed; NaN for the best itself.
    note: what is wrong with its numbers, in words.
    """

    arm: str
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    behind: float = math.nan
    behind_low: float = math.nan
    behind_high: float = math.nan
    note: str = ""

    @property
    def beaten(self) -> bool:
        """Whether the best is surely better."""
        return self.behind_low > 0

    def to_json(self) -> dict[str, Any]:
        """A dictionary for ``json``; None stands for what is not finite."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in (vars(self) | {"beaten": self.beaten}).items()
        }


@dataclass(frozen=True)
class Standing:
    """All arms of an experiment by one metric, the best first; arms without a finite mean stand last."""

    paper: str
    experiment: str
    title: str
    metric: str
    unit: str
    better: Literal["lower", "higher"]
    seeds: int
    over: str
    places: tuple[Place, ...]

    @property
    def ranked(self) -> tuple[Place, ...]:
        """The arms that have a mean."""
        return tuple(place for place in self.places if math.isfinite(place.mean))

    @property
    def best(self) -> Place | None:
        """The arm with the best mean, if any has one."""
        return self.ranked[0] if self.ranked else None

    @property
    def level_ground(self) -> bool:
        """Whether several arms have one and the same number, such as a cap that all of them reached: nobody is best."""
        means = {place.mean for place in self.ranked}
        return len(self.ranked) > 1 and len(means) == 1

    @property
    def level(self) -> float:
        """Of the intervals between the best and the others, in percent."""
        return 100 * _level(len(self.ranked))

    def to_json(self) -> dict[str, Any]:
        """A dictionary for ``json``."""
        return vars(self) | {"places": [place.to_json() for place in self.places], "level_percent": self.level}


def standings(
    paper: str, experiment: Experiment, claims: Iterable[Claim], arms: Arms, scale: Scale | None = None
) -> list[Standing]:
    """The arms by each metric, one number a seed, on which these claims of the experiment turn."""
    made = []
    for metric, better, unit in _metrics(claims):
        scalars = {arm: np.asarray(metrics[metric], np.float64) for arm, metrics in arms.items() if metric in metrics}
        scalars = {arm: values for arm, values in scalars.items() if values.ndim == 1 and values.size}
        if scalars:
            guards = [guard.at(scale) if scale else guard for guard in experiment.guards]
            limits = [guard for guard in guards if guard.kind == "limit" and guard.metric == metric]
            notes = {arm: "; ".join(filter(None, (at_limit(guard, arm, arms) for guard in limits))) for arm in scalars}
            seeds = max(map(len, scalars.values()))
            places = _places(scalars, better, notes)
            facts = (paper, experiment.name, experiment.title, metric, unit, better, seeds, experiment.over)
            made.append(Standing(*facts, places))
    return made


def _metrics(claims: Iterable[Claim]) -> list[tuple[str, Literal["lower", "higher"], str]]:
    """(metric, which side is better, unit), each metric once; a claim that says no direction gives none."""
    found: dict[str, tuple[str, Literal["lower", "higher"], str]] = {}
    # A comparison says best which side is better, that two arms are equal says it least.
    for claim in sorted(claims, key=lambda claim: ("better", "bound", "equal", "trend", "question").index(claim.kind)):
        if claim.direction is not None:
            found.setdefault(claim.metric, (claim.metric, claim.direction, claim.unit))
    return list(found.values())


def _places(scalars: dict[str, Any], better: str, notes: dict[str, str]) -> tuple[Place, ...]:
    finite = {arm: values for arm, values in scalars.items() if np.isfinite(values).all()}
    sign = 1.0 if better == "lower" else -1.0
    order = sorted(finite, key=lambda arm: sign * finite[arm].mean())
    places = []
    for arm in order:
        values = finite[arm]
        low, high = statistics.interval(values, LEVEL)
        behind: tuple[float, ...] = ()
        if arm != order[0] and values.shape == finite[order[0]].shape:
            gap = sign * (values - finite[order[0]])
            behind = (float(gap.mean()), *map(float, statistics.interval(gap, _level(len(order)))))
        places.append(Place(arm, float(values.mean()), float(low), float(high), *behind, note=notes[arm]))
    for arm, values in scalars.items():
        if arm not in finite:
            broken = int(np.sum(~np.isfinite(values)))
            places.append(Place(arm, note=f"{broken} of {len(values)} seeds not finite"))
    return tuple(places)


def _level(arms: int) -> float:
    return 1 - (1 - LEVEL) / max(1, arms - 1)
