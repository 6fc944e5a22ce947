"""Options by pairs: most faults need two options away from their defaults, few need three."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

__all__ = ["pairwise"]


def pairwise(
    options: Mapping[str, Sequence[Any]], allowed: Callable[[dict[str, Any]], bool] = lambda chosen: True
) -> list[dict[str, Any]]:
    """Few combinations of options in which every pair of values occurs, of those that are ``allowed``.

    Greedy: of all combinations, again and again the one with the most pairs not yet seen. Meant for a handful of
    options with two or three values each.

    >>> rows = pairwise({"thin": [1, 2], "chunk": [1, 3], "lazy": [0.0, 0.1]})
    >>> len(rows), rows[0]
    (4, {'thin': 1, 'chunk': 1, 'lazy': 0.0})
    """
    rows = [dict(zip(options, values, strict=True)) for values in product(*options.values())]
    rows = [row for row in rows if allowed(row)]
    wanted = [{((a, repr(row[a])), (b, repr(row[b]))) for a, b in combinations(options, 2)} for row in rows]
    missing, chosen = set().union(*wanted), []
    while missing:
        best = max(range(len(rows)), key=lambda index: len(wanted[index] & missing))
        chosen.append(rows[best])
        missing -= wanted[best]
    return chosen
