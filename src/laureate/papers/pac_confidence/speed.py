"""Clopper and Pearson's intervals of many bins beside those of statsmodels."""

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


def their_side(intervals: int = INTERVALS) -> Side:
    """The same by statsmodels."""
    from statsmodels.stats.proportion import proportion_confint  # pyright: ignore[reportMissingImports]  (a peer)

    k, n = counts(intervals)
    return Side(lambda: proportion_confint(k, n, DELTA, method="beta"), INTERVALS / intervals)


COMPARISONS = (
    Comparison(
        work=f"{INTERVALS} Clopper-Pearson intervals of up to 500 trials",
        peer="statsmodels",
        package="statsmodels",
        ours=our_side,
        theirs=their_side,
    ),
)
