"""Tuning by successive halving: everybody gets the same cost to tune with, whatever the size of the grid.

Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016. With n settings there are ⌈log₂ n⌉ rungs; each has the same
share of the tuning cost, divided evenly among those still in, of whom the better half go on. The seeds that tune are
never those that score.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

__all__ = ["FIRST_TUNING_SEED", "TUNING_RUNS", "TUNING_SEEDS", "Rung", "best", "rungs"]

Name = TypeVar("Name")
Rung = tuple[int, float]  # how many are in, and the share of the whole budget that each is given

TUNING_RUNS = 3.0  # a tuning seed costs at most so many runs with the whole budget
TUNING_SEEDS = 2
FIRST_TUNING_SEED = 1_000_000  # scoring seeds count from 0 and stay below


def rungs(configs: int, runs: float = TUNING_RUNS) -> list[Rung]:
    """The rungs for so many settings: sizes n, ⌈n/2⌉, … 2; shares are powers of two, so that sizes are compiled once.

    >>> rungs(1), rungs(2), rungs(3), rungs(9)
    ([], [(2, 1.0)], [(3, 0.5), (2, 0.5)], [(9, 0.0625), (5, 0.125), (3, 0.25), (2, 0.25)])
    """
    count = math.ceil(math.log2(configs)) if configs > 1 else 0
    found: list[Rung] = []
    size = configs
    for _ in range(count):
        share = min(1.0, runs / count / size)
        found.append((size, 2.0 ** math.floor(math.log2(share))))
        size = math.ceil(size / 2)
    return found


def best(scores: Mapping[Name, Sequence[float]], keep: int) -> list[Name]:
    """The better ones by their mean score (more is better), in that order; a score that is not finite is the worst.

    Who comes first in the mapping goes first among equals.

    >>> best({"a": [1.0, 2.0], "b": [3.0, float("nan")], "c": [1.5, 1.6]}, 2)
    ['c', 'a']
    """

    def rank(name: Name) -> tuple[int, float]:
        values = np.asarray(scores[name], float)
        finite = np.isfinite(values)
        return int((~finite).sum()) + (not len(values)) * 10**6, -float(values[finite].mean()) if finite.any() else 0.0

    return sorted(scores, key=rank)[:keep]
