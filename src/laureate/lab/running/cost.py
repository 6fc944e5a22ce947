"""Cost on paper: what a run would take, from cells that were measured here, before anybody pays for it."""

import heapq
import itertools
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from laureate.lab.cell import Cell
from laureate.lab.claim import SCALES
from laureate.lab.running.plan import Selection, plan, scale_of
from laureate.lab.storing.rows import MeasuredCell
from laureate.lab.storing.store import Store

__all__ = ["Estimate", "estimate", "makespan"]

# A declaration's cost is in seconds on so many cores (``Scale.cost``).
DECLARED_CORES = 2
# (paper, experiment, scale) -> arm -> its blocks.
Measured = dict[tuple[str, str, str], dict[str, list[MeasuredCell]]]


@dataclass(frozen=True)
class Estimate:
    """One experiment at one scale.

    seconds: of each cell, on one core. kept: cells that the store already has. left: the seconds of those it lacks.
    memory: bytes that a worker holds at most; None where no cell was measured. At another scale it is a lower bound.
    basis: ``measured`` (all arms, at this scale), ``extrapolated`` (measured at ``basis_scale``, times the ratio of the
        declared costs) or ``declared`` (the declaration's own guess, never measured here).
    """

    id: str
    scale: str
    seconds: tuple[float, ...]
    kept: int
    memory: int | None
    basis: str
    basis_scale: str
    left: tuple[float, ...] = ()

    @property
    def core_hours(self) -> float:
        """All cells, one after the other."""
        return sum(self.seconds) / 3600

    def to_json(self) -> dict[str, Any]:
        """The object that ``laureate plan --json`` prints for it."""
        gib = None if self.memory is None else round(self.memory / 2**30, 3)
        entries: dict[str, Any] = {"id": self.id, "scale": self.scale, "cells": len(self.seconds), "kept": self.kept}
        entries |= {"left_core_hours": sum(self.left) / 3600}
        entries |= {"core_hours": self.core_hours, "longest_cell_hours": max(self.seconds) / 3600, "memory_gib": gib}
        return entries | {"basis": self.basis, "basis_scale": self.basis_scale}


def estimate(store: Store, selections: Iterable[Selection], scale: str) -> list[Estimate]:
    """An estimate for every selected experiment that has the scale."""
    measured: Measured = {}
    for row in store.measured_cells():
        at = measured.setdefault((row["paper"], row["experiment"], row["scale"]), {})
        at.setdefault(row["arm"], []).append(row)
    return [
        _estimate(store, selection, scale, measured) for selection in selections if scale in selection.experiment.scales
    ]


def _estimate(store: Store, selection: Selection, scale: str, measured: Measured) -> Estimate:
    experiment = selection.experiment
    cells = plan([selection], scale)
    there = [store.finished_cell(cell) is not None for cell in cells]
    kept = sum(there)
    declared = scale_of(experiment, scale).cost
    # At this scale if it can be; else from the largest, whose cells resemble those of a large scale most.
    larger_first = [name for name in reversed(SCALES) if name in experiment.scales and name != scale]
    for basis in (scale, *larger_first):
        arms = measured.get((selection.paper.id, experiment.name, basis), {})
        ratio = 1.0 if basis == scale else _ratio(declared, scale_of(experiment, basis).cost)
        if not arms or ratio is None or set(selection.arms()) - set(arms):
            continue
        rows = [row for arm in selection.arms() for row in arms[arm]]
        seconds = _seconds(cells, arms, ratio, scale_of(experiment, basis).seeds, scale_of(experiment, scale).seeds)
        memory = max((row["memory"] for row in rows if row["memory"]), default=None)
        word = "measured" if basis == scale else "extrapolated"
        left = tuple(itertools.compress(seconds, map(operator.not_, there)))
        return Estimate(f"{selection.paper.id}/{experiment.name}", scale, seconds, kept, memory, word, basis, left)
    # What is declared is the cost of the whole experiment, of which this may be a part.
    each = declared * DECLARED_CORES / len(plan([replace(selection, claims=experiment.claims)], scale))
    seconds = (each,) * len(cells)
    left = (each,) * (len(cells) - kept)
    return Estimate(f"{selection.paper.id}/{experiment.name}", scale, seconds, kept, None, "declared", scale, left)


def _ratio(declared: float, other: float) -> float | None:
    """How many times the whole experiment costs at the one scale what it costs at the other, as declared."""
    return declared / other if declared > 0 and other > 0 else None


def _seconds(
    cells: list[Cell], arms: dict[str, list[MeasuredCell]], ratio: float, seeds_measured: int, seeds: int
) -> tuple[float, ...]:
    """Each cell: what a seed of its arm took, times the ratio that is not due to there being more seeds."""
    a_seed = {
        arm: sum(row["seconds"] for row in rows) / sum(row["count"] for row in rows) for arm, rows in arms.items()
    }
    per_seed = ratio * seeds_measured / seeds
    return tuple(a_seed[cell.arm] * cell.count * per_seed for cell in cells)


def makespan(seconds: Iterable[float], workers: int) -> float:
    """How long so many workers take for these cells, the longest first to whoever is free.

    >>> makespan([3.0, 2.0, 2.0], 2)
    4.0
    """
    free = [0.0] * workers
    for duration in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + duration)
    return max(free)
