"""Rows of options in which every pair of values occurs, where all combinations would be too many to look at."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

TRIED = 40


def by_pairs(
    options: Mapping[str, Sequence[Any]], allowed: Callable[[dict[str, Any]], bool] = lambda row: True
) -> list[dict[str, Any]]:
    """Of rows drawn at random, again and again the one with the most new pairs, until none has any.

    allowed: rows that may be. Without it every pair of values does occur; with it every pair that some drawn row has.

    >>> rows = by_pairs({"a": (1, 2), "b": ("x", "y", "z"), "c": (None, True)})
    >>> len({(row["a"], row["b"]) for row in rows}), len(rows) < 12
    (6, True)
    """
    generator, rows, seen = np.random.default_rng(0), [], set()
    every = [(name, place) for name, values in options.items() for place in range(len(values))]
    missing = {(one, other) for one, other in combinations(every, 2) if one[0] != other[0]}
    for _ in range(1000):
        best, gain = None, set()
        for _ in range(TRIED):
            places = {name: int(generator.integers(len(values))) for name, values in options.items()}
            row = {name: options[name][place] for name, place in places.items()}
            new = {pair for pair in combinations(places.items(), 2) if pair not in seen}
            if allowed(row) and len(new) > len(gain):
                best, gain = row, new
        if best is None:
            break
        rows.append(best)
        seen |= gain
        if not missing - seen:
            break
    return rows
