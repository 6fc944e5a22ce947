"""How good prediction sets are: coverage, size, and where the misses lie. NumPy or JAX arrays, as in `ranks`."""

from typing import Any, NamedTuple

from laureate.uncertainty.ranks import namespace

__all__ = ["SIZE_STRATA", "Strata", "by_class", "by_rank", "by_size", "coverage", "mean_size", "worst_violation"]

# The first sizes of the paper's strata: 0–1, 2–3, 4–6, 7–10, 11–100, 101 and more.
SIZE_STRATA = (0, 2, 4, 7, 11, 101)


class Strata(NamedTuple):
    """The coverage of groups of examples, [groups] each.

    coverage: the share of sets that hold their label, 0 where a group is empty. count: examples in the group.
    """

    coverage: Any
    count: Any


def coverage(sets: Any, y: Any) -> Any:
    """The share of rows whose set ``[n, K]`` of bool holds the label ``y [n]``.

    >>> import numpy as np
    >>> float(coverage(np.array([[True, False], [False, True]]), np.array([0, 0])))
    0.5
    """
    xp = namespace(sets, y)
    return xp.mean(xp.take_along_axis(sets, xp.asarray(y)[:, None], axis=1))


def mean_size(sets: Any) -> Any:
    """The mean number of labels in a set."""
    return namespace(sets).mean(namespace(sets).sum(sets, axis=1))


def by_size(size: Any, covered: Any, firsts: tuple[int, ...] = SIZE_STRATA) -> Strata:
    """Coverage by the size of the set; ``firsts`` are the smallest sizes of the strata.

    >>> import numpy as np
    >>> by_size(np.array([1, 1, 2, 5]), np.array([True, False, True, True])).coverage.tolist()[:3]
    [0.5, 1.0, 1.0]
    """
    return _by(size, covered, firsts)


def by_rank(rank: Any, covered: Any, firsts: tuple[int, ...] = (1, 2, 4, 7, 11, 101)) -> Strata:
    """Coverage by how far down its list the model has the true label: easy inputs first.

    rank: of the true labels, from 1. covered: whether each set holds its own. firsts: the lowest rank of each stratum.
    """
    return _by(rank, covered, firsts)


def by_class(y: Any, covered: Any, num_classes: int) -> Strata:
    """Coverage by the true class.

    y: true classes. covered: whether each set holds its own. num_classes: how many strata.
    """
    return _by(y, covered, tuple(range(num_classes)))


def worst_violation(
    size: Any, covered: Any, alpha: Any, firsts: tuple[int, ...] = SIZE_STRATA, min_count: int = 20
) -> Any:
    """The largest |coverage − (1 − α)| over strata of the set's size (the paper's SSCV); 0 is perfect.

    min_count: strata with fewer examples are left out. A method whose sets have all one size has one stratum, and its
        value says nothing: read `by_rank` beside it.

    size, covered: of each set, and whether it holds its label. alpha: α. firsts: the smallest size of each stratum.
    """
    xp = namespace(size, covered, alpha)
    strata = by_size(size, covered, firsts)
    return xp.max(xp.where(strata.count >= min_count, xp.abs(strata.coverage - (1 - alpha)), 0.0))


def _by(values: Any, covered: Any, firsts: tuple[int, ...]) -> Strata:
    xp = namespace(values, covered)
    stratum = xp.searchsorted(xp.asarray(firsts), xp.asarray(values), side="right") - 1
    inside = stratum[:, None] == xp.arange(len(firsts))
    count = xp.sum(inside, axis=0)
    return Strata(xp.sum(inside & xp.asarray(covered, bool)[:, None], axis=0) / xp.maximum(count, 1), count)
