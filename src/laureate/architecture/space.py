"""What may be chosen: the candidate operations of every edge, and what was chosen of them."""

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from laureate._core import require

__all__ = ["Genotype", "Space"]


class Genotype(NamedTuple):
    """One discrete architecture: hashable, and the same again after a round trip through JSON.

    ops: the name of each edge's operation.
    kept: whether each edge is part of the network; all of them where there is no topology to choose.

    >>> found = Genotype(("conv3", "skip"), (True, True))
    >>> Genotype.from_json(found.to_json()) == found
    True
    """

    ops: tuple[str, ...]
    kept: tuple[bool, ...]

    def to_json(self) -> str:
        """As text."""
        return json.dumps({"ops": self.ops, "kept": self.kept})

    @classmethod
    def from_json(cls, text: str) -> "Genotype":
        """From text that ``to_json`` wrote."""
        told = json.loads(text)
        return cls(tuple(told["ops"]), tuple(map(bool, told["kept"])))


def _as_tuple(given: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if given is None else tuple(given)


class Space(eqx.Module):
    """The discrete networks that a supernet holds: one operation an edge, and at most ``keep`` edges into a node.

    ops: the names of each edge's candidate operations; edges may differ in number and kind.
    nodes: the node that each edge leads into, a number; None where all edges stay (as in NAS-Bench-201).
    cells: the cell type of each edge, such as "normal" and "reduce"; types are decided side by side. None: one type.
    keep: how many inputs a node keeps where ``nodes`` are given, >= 1; DARTS has 2.

    >>> space = Space((("none", "skip"), ("skip", "conv3", "avg3")))
    >>> space.num_edges, space.num_ops, space.size
    (2, (2, 3), 6)
    """

    ops: tuple[tuple[str, ...], ...] = eqx.field(static=True, converter=lambda ops: tuple(map(tuple, ops)))
    nodes: tuple[int, ...] | None = eqx.field(default=None, static=True, kw_only=True, converter=_as_tuple)
    cells: tuple[str, ...] | None = eqx.field(default=None, static=True, kw_only=True, converter=_as_tuple)
    keep: int = eqx.field(default=2, static=True, kw_only=True)

    def __check_init__(self):
        require("Space", "ops", "a list of names for each edge", self.ops, lambda ops: len(ops) > 0)
        for edge, names in enumerate(self.ops):
            remedy = "Leave out an edge that has nothing to choose from."
            require("Space", f"ops[{edge}]", "at least one operation", names, lambda n: len(n) > 0, remedy)
            require("Space", f"ops[{edge}]", "distinct names", names, lambda n: len(set(n)) == len(n))
        for field in ("nodes", "cells"):
            given = getattr(self, field)
            rule = f"None or one entry for each of {self.num_edges} edges"
            require("Space", field, rule, given, lambda g: g is None or len(g) == self.num_edges)
        require("Space", "keep", "an integer >= 1", self.keep, lambda k: isinstance(k, int) and k >= 1)

    @classmethod
    def of(cls, supernet: Any) -> "Space":
        """The space of a user's supernet: its ``ops``, and its ``nodes``, ``cells`` and ``keep`` where it has them."""
        require("Space.of", "supernet", "an object with ops", supernet, lambda net: hasattr(net, "ops"))
        more = {name: getattr(supernet, name) for name in ("nodes", "cells", "keep") if hasattr(supernet, name)}
        return cls(supernet.ops, **more)

    @property
    def num_edges(self) -> int:
        """How many edges there are."""
        return len(self.ops)

    @property
    def num_ops(self) -> tuple[int, ...]:
        """How many operations each edge may have."""
        return tuple(map(len, self.ops))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of alpha and of weights: edges, and the largest number of operations."""
        return self.num_edges, max(self.num_ops)

    @property
    def valid(self) -> np.ndarray:
        """Which entries of such an array stand for an operation, bool."""
        return np.arange(self.shape[1]) < np.asarray(self.num_ops)[:, None]

    @property
    def size(self) -> int:
        """How many choices of operations there are."""
        return math.prod(self.num_ops)

    @property
    def crowded(self) -> tuple[tuple[int, ...], ...]:
        """The edges into each node that has more inputs than it keeps."""
        if self.nodes is None:
            return ()
        cells = self.cells or ("",) * self.num_edges
        into: dict[tuple[str, int], list[int]] = {}
        for edge, place in enumerate(zip(cells, self.nodes, strict=True)):
            into.setdefault(place, []).append(edge)
        return tuple(tuple(edges) for edges in into.values() if len(edges) > self.keep)

    def choices(self) -> Iterator[tuple[int, ...]]:
        """Every choice of operations, by their numbers; the last edge varies fastest."""
        return itertools.product(*map(range, self.num_ops))

    def genotype(self, choice: Sequence[int], kept: Sequence[bool] | None = None) -> Genotype:
        """The architecture with these operations, by their numbers."""
        require("Space.genotype", "choice", f"{self.num_edges} numbers", choice, lambda c: len(c) == self.num_edges)
        for edge, number in enumerate(choice):
            most = self.num_ops[edge]
            remedy = "Decide every edge first." if number < 0 else ""
            require(
                "Space.genotype",
                f"choice[{edge}]",
                f"in 0..{most - 1}",
                number,
                lambda n, most=most: 0 <= n < most,
                remedy,
            )
        named = tuple(names[int(number)] for names, number in zip(self.ops, choice, strict=True))
        return Genotype(named, tuple(map(bool, [True] * self.num_edges if kept is None else kept)))
