"""Clopper and Pearson's intervals of many bins beside SciPy's, which computes one at a time."""

from typing import Any

import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.uncertainty import clopper_pearson

__all__ = ["COMPARISONS", "counts", "our_side", "their_side"]

INTERVALS, DELTA = 10_000, 0.01


def counts(intervals: int = INTERVALS) -> tuple[Any, Any]:
    """Successes and trials."""
    generator = np.random.default_rng(0)
    n = generator.integers(1, 500, size=intervals)
    return generator.binomial(n, 0.9), n


def our_side(intervals: int = INTERVALS) -> Side:
    """All at once."""
    k, n = counts(intervals)
    return Side(lambda: clopper_pearson(k, n, DELTA), INTERVALS / intervals)


def their_side(intervals: int = 200) -> Side:
    """One after another."""
    import scipy.stats as statistics

    k, n = counts(intervals)

    def run():
        found = [
            statistics.binomtest(int(a), int(b)).proportion_ci(1 - DELTA, "exact") for a, b in zip(k, n, strict=True)
        ]
        return np.array(found).T

    return Side(run, INTERVALS / intervals)


COMPARISONS = (
    Comparison(
        work=f"{INTERVALS} Clopper-Pearson intervals of up to 500 trials",
        peer="SciPy",
        package="scipy",
        ours=our_side,
        theirs=their_side,
    ),
)
