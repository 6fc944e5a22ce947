"""Where the boundary lies in the next epoch. Blocks before it are local, it and those behind it learn by gradients.

A schedule is any ``schedule(history, num_blocks) -> int`` of the epochs so far (`EpochReport`, none before the first).
The paper's abstracts name a static and a dynamic version; their formulas are our reading.
"""

import abc
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import numpy as np

from laureate._core import require

__all__ = ["AbstractSchedule", "EpochReport", "Fixed", "NormRule", "OfEpoch", "Plateau", "Staircase", "WeightReport"]


class WeightReport(NamedTuple):
    """A local weight after an epoch.

    block: its number. path: within the block. norm: ‖W‖. growth: of the norm within the epoch, as a factor.
    participation: how many directions W uses (`participation_ratio`). kept: that as a share of what it was when the
        block became local, or was last warned of.
    """

    block: int
    path: str
    norm: float
    growth: float
    participation: float
    kept: float


class EpochReport(NamedTuple):
    """An epoch that is over.

    epoch: its number, from 0. boundary: in it. next_boundary: in the next. loss: mean over its steps that were finite,
        NaN where none was.
    update_norm: the mean over the same of ‖ΔW_T‖, T the transition block (the first that learns by gradients).
    reset: entries of the optimiser's state that were dropped or begun anew since their block changed its mode, by path.
    weights: of the local blocks, after the epoch. note: what a user should know of this epoch, or empty.
    """

    epoch: int
    boundary: int
    next_boundary: int
    loss: float
    update_norm: float
    reset: tuple[str, ...] = ()
    weights: tuple[WeightReport, ...] = ()
    note: str = ""


History = tuple[EpochReport, ...]


def _count(owner: str, field: str, value: int, least: int) -> None:
    require(owner, field, f"an integer >= {least}", value, lambda n: type(n) is int and n >= least)


class AbstractSchedule(eqx.Module):
    """From the epochs so far to the next boundary."""

    @abc.abstractmethod
    def __call__(self, history: History, num_blocks: int) -> int:
        """A Python integer, 0 to ``num_blocks`` − 1."""


class Fixed(AbstractSchedule):
    """The boundary stays where it is: at 0 for plain backpropagation, further up from the first epoch on otherwise.

    boundary: number of local blocks, >= 0.

    >>> Fixed()((), 5)
    0
    """

    boundary: int = 0

    def __check_init__(self):
        _count("Fixed", "boundary", self.boundary, 0)

    def __call__(self, history: History, num_blocks: int) -> int:
        """The boundary."""
        return self.boundary


class Staircase(AbstractSchedule):
    """Static: plain training first, then ``shift`` more local blocks every so many epochs.

    In epoch e the boundary is::

        T(e) = shift (1 + ⌊(e − start) / every⌋) for e >= start, else 0; at most ``most``

    start: the first epoch with local blocks, >= 0. every: epochs between two moves, >= 1. shift: blocks a move, >= 1.
    max_boundary: the last boundary; by default all blocks but the last become local.

    >>> [Staircase(start=2, every=2).at(epoch, 4) for epoch in range(9)]
    [0, 0, 1, 1, 2, 2, 3, 3, 3]
    """

    start: int = 5
    every: int = 5
    shift: int = 1
    max_boundary: int | None = None

    def __check_init__(self):
        for field, least in (("start", 0), ("every", 1), ("shift", 1)):
            _count("Staircase", field, getattr(self, field), least)
        if self.max_boundary is not None:
            _count("Staircase", "max_boundary", self.max_boundary, 0)

    def at(self, epoch: int, num_blocks: int) -> int:
        """The boundary in an epoch."""
        stairs = 0 if epoch < self.start else 1 + (epoch - self.start) // self.every
        return min(self.shift * stairs, _last(self.max_boundary, num_blocks))

    def __call__(self, history: History, num_blocks: int) -> int:
        """The boundary in the epoch that follows the history."""
        return self.at(len(history), num_blocks)


class OfEpoch(AbstractSchedule):
    """Static: a function of the epoch's number that you give.

    function: ``function(epoch) -> int``.

    >>> OfEpoch([0, 0, 2].__getitem__)((), 4)
    0
    """

    function: Callable[[int], int]

    def __call__(self, history: History, num_blocks: int) -> int:
        """The function's value."""
        return self.function(len(history))


class NormRule(AbstractSchedule):
    """Dynamic: the boundary moves on once the transition block hardly changes any more.

    At the end of an epoch::

        T ← T + shift if ‖ΔW_T‖ of this epoch < fraction · mean of those of the last ``window`` epochs before it

    Only epochs with the same transition block are compared, so that every block is looked at for two epochs at least.

    fraction: > 0. window: epochs, >= 1. shift: blocks a move, >= 1. start: epochs before the first move, >= 0.
    max_boundary: as for ``Staircase``.

    >>> steady, calm = EpochReport(0, 0, 0, 1.0, 2.0), EpochReport(1, 0, 0, 1.0, 1.0)
    >>> NormRule(fraction=0.9)((steady,), 4), NormRule(fraction=0.9)((steady, calm), 4)
    (0, 1)
    """

    fraction: float = 0.9
    window: int = 3
    shift: int = 1
    start: int = 0
    max_boundary: int | None = None

    def __check_init__(self):
        require("NormRule", "fraction", "> 0", self.fraction, lambda f: f > 0)
        for field, least in (("window", 1), ("shift", 1), ("start", 0)):
            _count("NormRule", field, getattr(self, field), least)
        if self.max_boundary is not None:
            _count("NormRule", "max_boundary", self.max_boundary, 0)

    def __call__(self, history: History, num_blocks: int) -> int:
        """The same boundary, or one further on."""
        if not history:
            return 0
        now = history[-1]
        before = [report.update_norm for report in history[:-1][-self.window :] if report.boundary == now.boundary]
        calm = bool(before) and now.update_norm < self.fraction * float(np.mean(before))
        return _moved(self, now.boundary, calm and len(history) >= self.start, num_blocks)


class Plateau(AbstractSchedule):
    """Dynamic: the boundary moves on once the training loss hardly falls any more.

    At the end of an epoch::

        T ← T + shift if loss of this epoch > m − tolerance · |m|,   m the mean of the last ``window`` epochs before it

    tolerance: the relative fall below which it moves, >= 0. window, shift, start, max_boundary: as for ``NormRule``.

    >>> falling = tuple(EpochReport(e, 0, 0, loss, 1.0) for e, loss in enumerate((1.0, 0.5, 0.49)))
    >>> Plateau(0.05, window=1)(falling[:2], 4), Plateau(0.05, window=1)(falling, 4)
    (0, 1)
    """

    tolerance: float = 0.05
    window: int = 3
    shift: int = 1
    start: int = 0
    max_boundary: int | None = None

    def __check_init__(self):
        require("Plateau", "tolerance", ">= 0", self.tolerance, lambda t: t >= 0)
        for field, least in (("window", 1), ("shift", 1), ("start", 0)):
            _count("Plateau", field, getattr(self, field), least)
        if self.max_boundary is not None:
            _count("Plateau", "max_boundary", self.max_boundary, 0)

    def __call__(self, history: History, num_blocks: int) -> int:
        """The same boundary, or one further on."""
        if not history:
            return 0
        now = history[-1]
        before = [report.loss for report in history[:-1][-self.window :] if report.boundary == now.boundary]
        mean = float(np.mean(before)) if before else math.nan
        flat = now.loss > (1 - math.copysign(self.tolerance, mean)) * mean
        return _moved(self, now.boundary, flat and len(history) >= self.start, num_blocks)


def _last(max_boundary: int | None, num_blocks: int) -> int:
    return num_blocks - 1 if max_boundary is None else min(max_boundary, num_blocks - 1)


def _moved(schedule: NormRule | Plateau, boundary: int, moves: bool, num_blocks: int) -> int:
    """Never back, and never beyond the last."""
    return max(boundary, min(boundary + schedule.shift * moves, _last(schedule.max_boundary, num_blocks)))
