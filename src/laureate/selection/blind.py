"""A control against an assessor's bias: selected variables hidden among random ones, judged blind, then scored."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from laureate._core import require

__all__ = ["BlindScore", "blind_list", "score_blind_list"]

COLUMNS = ("variable", "relevant")
YES, NO = {"yes", "y", "1", "true", "x"}, {"no", "n", "0", "false", "-"}


class BlindScore(NamedTuple):
    """How many of the selected, and of the random ones beside them, the assessor called relevant.

    selected_relevant, selected: so many relevant, of so many that were selected. random_relevant, random: the same of
    the random ones. p_value: of a difference so large by chance (hypergeometric, one-sided).
    """

    selected_relevant: int
    selected: int
    random_relevant: int
    random: int
    p_value: float


def blind_list(selected: Any, names: Sequence[str], key: Array, path: str | Path | None = None) -> list[str]:
    """The selected variables and as many random others, shuffled; with ``path``, as a CSV to be filled in.

    >>> import jax
    >>> sorted(blind_list([True, False, False], ["age", "sex", "bmi"], jax.random.key(0)))[0]
    'age'
    """
    chosen = np.asarray(selected, bool)
    require("blind_list", "names", f"one a variable, {chosen.size}", len(names), lambda n: n == chosen.size)
    require("blind_list", "names", "distinct", list(names), lambda n: len(set(n)) == len(n))
    require("blind_list", "selected", "at least one variable", int(chosen.sum()), lambda n: n > 0)
    others = np.flatnonzero(~chosen)
    require(
        "blind_list", "selected", "not all variables", int(others.size), lambda n: n > 0, "There is nothing to hide in."
    )
    first, second = jax.random.split(key)
    decoys = np.asarray(jax.random.permutation(first, others))[: int(chosen.sum())]
    listed = np.concatenate([np.flatnonzero(chosen), decoys])
    order = [str(names[int(j)]) for j in np.asarray(jax.random.permutation(second, listed))]
    if path is not None:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([name, ""] for name in order)
    return order


def score_blind_list(path: str | Path, selected: Any, names: Sequence[str]) -> BlindScore:
    """Read the list back with ``relevant`` filled in by yes or no, and compare selected with random variables."""
    chosen = dict(zip(map(str, names), np.asarray(selected, bool).tolist(), strict=True))
    with open(path, newline="", encoding="utf-8-sig") as file:  # spreadsheets write a mark before the first column
        rows = list(csv.DictReader(file))
    if not rows or set(COLUMNS) - set(rows[0]):
        raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)} and a row a variable.")
    counts, seen = {True: [0, 0], False: [0, 0]}, set()
    for row in rows:
        name, answer = row["variable"], (row["relevant"] or "").strip().lower()
        if name not in chosen:
            raise ValueError(f"{path} must list known variables; got {name!r}.")
        if answer not in YES | NO:
            raise ValueError(f"{path} must say yes or no for every variable; got {row['relevant']!r} for {name!r}.")
        if name in seen:
            raise ValueError(f"{path} must list every variable once; got {name!r} again.")
        seen.add(name)
        counts[chosen[name]][0] += answer in YES
        counts[chosen[name]][1] += 1
    (a, n), (b, m) = counts[True], counts[False]
    return BlindScore(a, n, b, m, _hypergeometric_tail(a, n, b, m))


def _hypergeometric_tail(a: int, n: int, b: int, m: int) -> float:
    """P(at least a of the a + b relevant ones fall among the n selected), all places alike (Fisher's exact test)."""
    from math import comb

    total = comb(n + m, a + b)
    return sum(comb(n, i) * comb(m, a + b - i) for i in range(a, min(n, a + b) + 1)) / total if total else 1.0
