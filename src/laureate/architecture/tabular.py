"""A small benchmark of one's own: every architecture of a space trained alone, once, so that ranks are exact."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from laureate._core import require
from laureate.architecture.space import Space
from laureate.loops import Checkpoint, Progress, chunks

__all__ = ["Table", "tabular"]

LARGEST = 100_000  # architectures that anybody would train one by one


class Table:
    """What every choice of operations is worth when trained alone.

    space: the choices. values: ``[architectures, values]`` in the order of ``space.choices()``, the higher the better;
    the mean over the last axis counts.

    >>> table = Table(Space([("none", "skip", "conv3")]), np.array([[0.1], [0.8], [0.9]]))
    >>> float(table.value((1,))), table.rank((1,)), table.best()
    (0.8, 1.0, (2,))
    """

    def __init__(self, space: Space, values: np.ndarray):
        rule = f"of shape ({space.size}, values)"
        shape = np.shape(values)
        require("Table", "values", rule, shape, lambda s: len(s) == 2 and s[0] == space.size and s[1] >= 1)
        self.space, self.values = space, np.asarray(values)
        self.means = self.values.astype(np.float64).mean(1)

    def index(self, choice: Sequence[int]) -> int:
        """The row of a choice."""
        self.space.genotype(choice)  # refuses what is none
        return int(np.ravel_multi_index(tuple(map(int, choice)), self.space.num_ops))

    def value(self, choice: Sequence[int]) -> float:
        """The mean value of a choice."""
        return self.means[self.index(choice)]

    def rank(self, choice: Sequence[int]) -> float:
        """How many choices are better, those that are equal counted half: 0 is the best, size - 1 the worst."""
        own = self.value(choice)
        return float((self.means > own).sum() + ((self.means == own).sum() - 1) / 2)

    def best(self) -> tuple[int, ...]:
        """The choice with the highest mean; the first of equals."""
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(self.means)), self.space.num_ops))


def tabular(
    space: Space,
    train_fn: Callable[[tuple[int, ...]], Any],
    *,
    num_values: int = 1,
    path: str | Path | None = None,
    settings: Any = None,
    progress: Callable[[Progress], None] | None = None,
) -> Table:
    """Train every architecture of a space alone, and keep what each is worth.

    train_fn: ``train_fn(choice) -> value``, or an array of ``num_values`` values, say one for each of a few seeds;
        ``choice`` holds the number of each edge's operation. The higher the better.
    path: a file (``.npz``, no pickle) that is written now and then: the same call again goes on from there, and a
        finished one is only read. Another space, another function or other data it closes over are refused.
    settings: what decides the values, where ``train_fn`` itself does not tell; by default its code and what it closes
        over.
    progress: called with a `Progress`.

    Edges are not dropped here: a space with ``nodes`` is tabulated with all of them.

    >>> table = tabular(Space([("skip", "conv3")] * 2), lambda choice: 0.5 + 0.1 * sum(choice))
    >>> table.best(), table.rank((0, 1))
    ((1, 1), 1.5)
    """
    remedy = "Tabulate a smaller space: fewer edges, or fewer operations."
    require("tabular", "space", f"of at most {LARGEST:,} architectures", space.size, lambda n: n <= LARGEST, remedy)
    require("tabular", "num_values", ">= 1", num_values, lambda n: n >= 1)
    choices = list(space.choices())

    def advance(state: Any, done: int, count: int) -> tuple[Any, np.ndarray]:
        return state, np.stack([_row(train_fn(choice), choice, num_values) for choice in choices[done : done + count]])

    told = {"ops": space.ops, "num_values": num_values, "train_fn": train_fn if settings is None else settings}
    kept = None if path is None else Checkpoint(path, told)
    shapes = lambda: np.zeros((0, num_values), np.float32)  # noqa: E731
    # One architecture at a time, so that whoever stops it loses one at most.
    _, values = chunks(advance, (), space.size, 1, shapes=shapes, progress=progress, checkpoint=kept, adapt=False)
    return Table(space, values)


def _row(found: Any, choice: tuple[int, ...], num_values: int) -> np.ndarray:
    row = np.atleast_1d(np.asarray(found, np.float32))  # the file's type: read again, it is the same
    require("tabular", f"train_fn({choice})", f"of shape ({num_values},)", row.shape, lambda s: s == (num_values,))
    require("tabular", f"train_fn({choice})", "finite", row, lambda r: bool(np.isfinite(r).all()))
    return row
