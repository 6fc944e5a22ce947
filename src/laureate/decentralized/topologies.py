"""Who talks to whom: undirected, connected graphs, ready to be sent over."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from laureate._core import require

__all__ = ["Topology", "complete", "exponential", "from_graph", "hypercube", "random", "ring", "star", "torus"]


@dataclass(frozen=True)
class Topology:
    """An undirected, connected graph of ``size`` nodes 0 … size−1, as ``ring``, ``torus`` or ``from_graph`` make it.

    size: n >= 1 nodes.
    edges: pairs (i, j) of nodes, i < j, each once.
    name: for people.

    >>> triangle = Topology(3, ((0, 1), (1, 2), (0, 2)))
    >>> triangle.diameter, triangle.degrees.tolist()
    (1, [2, 2, 2])
    """

    size: int
    edges: tuple[tuple[int, int], ...]
    name: str = field(default="graph", compare=False)

    def __post_init__(self) -> None:
        require("Topology", "size", "an integer >= 1", self.size, _is_count)
        seen = set()
        for edge in self.edges:
            i, j = edge
            if not (0 <= i < j < self.size) or edge in seen:
                raise ValueError(
                    f"Topology.edges must be distinct pairs (i, j) with 0 <= i < j < {self.size}; got {edge}."
                )
            seen.add(edge)
        if len(parts := self._components()) > 1:
            shown = "; ".join(
                "{" + ", ".join(map(str, part[:6])) + (", …}" if len(part) > 6 else "}") for part in parts
            )
            raise ValueError(f"Topology.edges must connect all nodes; got {len(parts)} components: {shown}.")

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Of every node, in ascending order."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for i, j in self.edges:
            found[i].append(j)
            found[j].append(i)
        return tuple(tuple(sorted(nodes)) for nodes in found)

    @cached_property
    def degrees(self) -> np.ndarray:
        """How many neighbours every node has."""
        return np.array([len(nodes) for nodes in self.neighbours])

    @cached_property
    def diameter(self) -> int:
        """The largest distance of two nodes: so many rounds news needs to reach everyone."""
        return max(max(self.distances(i)) for i in range(self.size))

    def distances(self, start: int) -> list[int]:
        """From one node to every other, in hops; −1 where there is no way."""
        found, border = [-1] * self.size, [start]
        found[start] = 0
        while border:
            reached = []
            for i in border:
                for j in self.neighbours[i]:
                    if found[j] < 0:
                        found[j] = found[i] + 1
                        reached.append(j)
            border = reached
        return found

    @cached_property
    def laplacian(self) -> np.ndarray:
        """Degrees on the diagonal, −1 for every edge."""
        matrix = np.diag(self.degrees.astype(np.float64))
        for i, j in self.edges:
            matrix[i, j] = matrix[j, i] = -1.0
        return matrix

    @cached_property
    def senders(self) -> np.ndarray:
        """``[largest degree, n]``: who sends to node i in turn c; i itself where nobody does.

        In a turn everybody sends to one node and receives from one, which is what ``ppermute`` does in one go. The
        edges, taken in both directions, are those of a bipartite graph of senders and receivers; with loops that fill
        up the degrees it is regular, and so is a union of as many permutations (König 1916).
        """
        turns = int(self.degrees.max(initial=0))
        sends = np.full((self.size, turns), -1)  # to whom node i sends in a turn
        receives = np.full((self.size, turns), -1)
        loops = ((i, i) for i in range(self.size) for _ in range(turns - self.degrees[i]))
        for i, j in itertools.chain(self.edges, ((j, i) for i, j in self.edges), loops):
            a, b = int(np.argmax(sends[i] < 0)), int(np.argmax(receives[j] < 0))
            if receives[j, a] >= 0:
                # Turn a is free for the sender, b for the receiver: exchange a and b along the path that leaves j by a.
                # It cannot come to i, which has no a: senders are reached by the turn a they lack.
                path, receiver, turn = [], j, a
                while True:
                    sender = receives[receiver, turn]
                    if sender < 0:
                        break
                    path.append((sender, receiver, turn))
                    turn = b if turn == a else a
                    receiver = sends[sender, turn]
                    if receiver < 0:
                        break
                    path.append((sender, receiver, turn))
                    turn = b if turn == a else a
                for sender, receiver, turn in path:
                    sends[sender, turn] = receives[receiver, turn] = -1
                for sender, receiver, turn in path:
                    other = b if turn == a else a
                    sends[sender, other], receives[receiver, other] = receiver, sender
            sends[i, a], receives[j, a] = j, i
        return receives.T.copy()

    def without(self, failed: Iterable[Sequence[int]]) -> "Topology":
        """The graph after these links have failed; raises if it falls apart."""
        gone = {tuple(sorted(edge)) for edge in failed}
        if unknown := gone - set(self.edges):
            raise ValueError(f"Topology.without must be given edges of the graph; got {sorted(unknown)}.")
        return Topology(self.size, tuple(edge for edge in self.edges if edge not in gone), self.name)

    def _components(self) -> list[list[int]]:
        rest, parts = set(range(self.size)), []
        while rest:
            distances = self.distances(min(rest))
            parts.append([i for i, distance in enumerate(distances) if distance >= 0])
            rest -= set(parts[-1])
        return parts


def ring(size: int) -> Topology:
    """Every node has two neighbours; the gap of its mixing matrix shrinks as 1/n²."""
    return _shifts(size, [1], f"ring of {size}")


def exponential(size: int) -> Topology:
    """Neighbours at distances 1, 2, 4, … around a ring: log₂ n each way, and a gap of 1/log n."""
    require("exponential", "size", "an integer >= 1", size, _is_count)
    return _shifts(size, [2**k for k in range((size - 1).bit_length())], f"exponential graph of {size}")


def complete(size: int) -> Topology:
    """Every node is joined to every other."""
    require("complete", "size", "an integer >= 1", size, _is_count)
    return _shifts(size, range(1, size // 2 + 1), f"complete graph of {size}")


def star(size: int) -> Topology:
    """Node 0 talks to all others: a server."""
    require("star", "size", "an integer >= 1", size, _is_count)
    return _of(size, ((0, i) for i in range(1, size)), f"star of {size}")


def torus(rows: int, columns: int) -> Topology:
    """A grid that closes in both directions; four neighbours.

    >>> torus(3, 4).diameter
    3
    """
    require("torus", "rows", "an integer >= 1", rows, _is_count)
    require("torus", "columns", "an integer >= 1", columns, _is_count)
    place = np.arange(rows * columns).reshape(rows, columns)
    pairs = [
        (int(i), int(j)) for axis in (0, 1) for i, j in zip(place.flat, np.roll(place, -1, axis).flat, strict=True)
    ]
    return _of(rows * columns, pairs, f"torus of {rows} × {columns}")


def hypercube(dimension: int) -> Topology:
    """2^dimension nodes; neighbours differ in one bit."""
    require("hypercube", "dimension", "an integer >= 0", dimension, lambda k: isinstance(k, int) and k >= 0)
    size = 2**dimension
    return _of(size, ((i, i ^ (1 << k)) for i in range(size) for k in range(dimension)), f"{dimension}-cube")


def random(size: int, probability: float, seed: int = 0) -> Topology:
    """Erdős–Rényi: every edge with this probability, drawn anew until the graph is connected (100 times at most)."""
    require("random", "size", "an integer >= 1", size, _is_count)
    require("random", "probability", "in (0, 1]", probability, lambda p: 0 < p <= 1)
    draw = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(size), 2))
    for _ in range(100):
        kept = tuple(edge for edge, u in zip(pairs, draw.random(len(pairs)), strict=True) if u < probability)
        try:
            return Topology(size, kept, f"random graph of {size}")
        except ValueError:
            continue
    raise ValueError(
        f"random.probability must be large enough for a connected graph of {size} nodes; got {probability!r}. "
        f"Above log(n)/n = {np.log(size) / size:.2g} most are."
    )


def from_graph(graph: Any, name: str = "own graph") -> Topology:
    """Your own: a networkx graph, an adjacency matrix, or pairs of nodes numbered from 0.

    A networkx graph's nodes may be of any kind; they are numbered in the order of ``graph.nodes``. A graph in which
    some edge has no way back is refused: all methods of this package average with symmetric weights.

    >>> from_graph([(0, 1), (1, 2)]).size
    3
    """
    rule = "a networkx graph, a square adjacency matrix or pairs of nodes"
    require("from_graph", "graph", rule, graph, lambda g: type(g) is not str and hasattr(g, "__iter__"))
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        number = {node: i for i, node in enumerate(graph.nodes)}
        pairs = [(i, j) for i, j, *_ in graph.edges()]
        if callable(getattr(graph, "is_directed", None)) and graph.is_directed():
            _refuse_one_way(pairs)
        return _of(len(number), ((number[i], number[j]) for i, j in pairs), name)
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.shape[0] == graph.shape[1]:
        if graph.shape == (2, 2) and np.issubdtype(graph.dtype, np.integer):
            rule = "of zeros and ones, as two pairs of nodes are no adjacency matrix"
            remedy = "Give pairs as a list: graph.tolist()."
            require("from_graph", "graph", rule, graph.tolist(), lambda rows: np.isin(rows, (0, 1)).all(), remedy)
        _refuse_one_way([(int(i), int(j)) for i, j in np.argwhere(graph != 0)])
        return _of(len(graph), ((int(i), int(j)) for i, j in np.argwhere(graph != 0)), name)
    found = list(graph)
    for pair in found:
        whole = np.ndim(pair) == 1 and len(pair) == 2 and all(_is_node(i) for i in pair)
        rule = "pairs of node numbers, integers from 0 on"
        remedy = "Number the nodes; those of a networkx graph may have names, also as networkx.Graph(pairs)."
        require("from_graph", "graph", rule, pair, lambda _, whole=whole: whole, remedy)
    pairs = [(int(i), int(j)) for i, j in found]
    return _of(1 + max((max(pair) for pair in pairs), default=0), pairs, name)


def _refuse_one_way(pairs: Sequence[tuple[Any, Any]]) -> None:
    there = set(pairs)
    for i, j in pairs:
        if (j, i) not in there:
            raise ValueError(
                f"from_graph.graph must be symmetric; got an edge {i} → {j} in one direction only. Averaging over "
                "one-way links needs push-sum, which no method here does: let the receivers answer "
                "(graph.to_undirected())."
            )


def _is_node(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and int(number) >= 0


def _shifts(size: int, shifts: Iterable[int], name: str) -> Topology:
    require(name.partition(" ")[0], "size", "an integer >= 1", size, _is_count)
    return _of(size, ((i, (i + shift) % size) for shift in shifts for i in range(size)), name)


def _of(size: int, pairs: Iterable[tuple[int, int]], name: str) -> Topology:
    """Sorted, each once, without loops."""
    return Topology(size, tuple(sorted({(int(min(p)), int(max(p))) for p in pairs if p[0] != p[1]})), name)


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1
