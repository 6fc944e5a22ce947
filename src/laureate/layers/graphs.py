"""Graphs of static shapes: padded, with masks, many in one as a disjoint union; sums along edges."""

import logging
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Bool, Float, Int

from laureate._core import require

__all__ = ["Graph", "batch_graphs", "make_graph", "pad_graph", "pad_to_bucket", "segment_sum"]

_LOG = logging.getLogger(__name__)
_SEEN: set[Any] = set()  # shapes that `pad_to_bucket` has made in this process


class Graph(eqx.Module):
    """One graph or several disjoint ones, perhaps with padding behind; `make_graph` checks what it is made of.

    nodes, edges: trees whose leaves have a leading axis of nodes or edges (None where there is nothing to say).
    senders, receivers: the nodes an edge leads from and to.
    graph_of: which of the graphs a node is in; ``num_graphs`` for padding.
    node_mask, edge_mask: False for padding.
    num_graphs: how many graphs, without padding.
    """

    nodes: Any
    edges: Any
    senders: Int[Array, " e"]
    receivers: Int[Array, " e"]
    graph_of: Int[Array, " n"]
    node_mask: Bool[Array, " n"]
    edge_mask: Bool[Array, " e"]
    num_graphs: int = eqx.field(static=True)

    @property
    def num_nodes(self) -> int:
        """With padding."""
        return self.node_mask.shape[0]

    @property
    def num_edges(self) -> int:
        """With padding."""
        return self.edge_mask.shape[0]

    def to_receivers(self, messages: Float[Array, "e *m"]) -> Float[Array, "n *m"]:
        """Σ of the messages along the edges that lead to each node; those of padding count nothing."""
        return self._to_receivers(messages).astype(messages.dtype)

    def mean_to_receivers(self, messages: Float[Array, "e *m"]) -> Float[Array, "n *m"]:
        """The mean instead of the sum; zero for a node that no edge leads to."""
        number = self._to_receivers(self.edge_mask.astype(jnp.float32))
        return _over(self._to_receivers(messages), number).astype(jnp.result_type(messages, 1.0))

    def of_graphs(self, values: Float[Array, "n *v"]) -> Float[Array, "g *v"]:
        """Σ of the values over the nodes of each graph."""
        return self._of_graphs(values).astype(values.dtype)

    def mean_of_graphs(self, values: Float[Array, "n *v"]) -> Float[Array, "g *v"]:
        """The mean over the nodes of each graph."""
        number = self._of_graphs(self.node_mask.astype(jnp.float32))
        return _over(self._of_graphs(values), number).astype(jnp.result_type(values, 1.0))

    def _to_receivers(self, messages: Array) -> Array:
        """In float32 at least: half precision may hold a mean and not the sum."""
        return _sums(_masked(messages, self.edge_mask), self.receivers, self.num_nodes)

    def _of_graphs(self, values: Array) -> Array:
        return _sums(_masked(values, self.node_mask), self.graph_of, self.num_graphs + 1)[:-1]


def segment_sum(values: Float[Array, "e *m"], segments: Int[Array, " e"], num_segments: int) -> Float[Array, "n *m"]:
    """Σ of the rows of each segment, in float32 at least.

    By XLA's scatter: on one CPU thread it took 0.10 ms for 9,000 messages of 128 numbers and 3.5 ms for 10⁶ of 16,
    where a padded table of every node's edges took 0.22 and 16 ms (jaxlib 0.10), so there is no table here.

    values: a row an element. segments: which segment each is of. num_segments: how many segments there are.
    """
    return _sums(values, segments, num_segments).astype(values.dtype)


def make_graph(nodes: Any, edges: Any, senders: Any, receivers: Any, num_nodes: int | None = None) -> Graph:
    """One graph from arrays of any kind. ``num_nodes`` is needed only where ``nodes`` is None.

    >>> import jax.numpy as jnp
    >>> graph = make_graph(jnp.array([1.0, 2.0, 4.0]), None, senders=[0, 1, 2], receivers=[1, 2, 1])
    >>> graph.to_receivers(graph.nodes[graph.senders]).tolist()
    [0.0, 5.0, 2.0]
    """
    ends = [np.asarray(end) for end in (senders, receivers)]
    for name, end in zip(("senders", "receivers"), ends, strict=True):
        rule = "one axis of integers"
        require("Graph", name, rule, end, lambda e: e.ndim == 1 and (e.dtype.kind in "iu" or e.size == 0))
    require("Graph", "receivers", f"as many as senders ({len(ends[0])})", len(ends[1]), lambda n: n == len(ends[0]))
    sizes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(nodes)} | (
        {(num_nodes,)} if num_nodes is not None else set()
    )
    rule = "arrays with one leading axis of nodes; where there are none, num_nodes is needed"
    require("Graph", "nodes", rule, sorted(sizes), lambda s: len(s) == 1 and s != {()})
    (count,) = next(iter(sizes))
    for leaf in jax.tree.leaves(edges):
        rule = f"arrays with a leading axis of {len(ends[0])} edges"
        require("Graph", "edges", rule, np.shape(leaf), lambda shape: shape[:1] == (len(ends[0]),))
    for name, end in zip(("senders", "receivers"), ends, strict=True):
        outside = end[(end < 0) | (end >= count)]
        require("Graph", name, f"in 0 to {count - 1}", outside.tolist(), lambda bad: not bad)
    return Graph(
        jax.tree.map(jnp.asarray, nodes),
        jax.tree.map(jnp.asarray, edges),
        jnp.asarray(ends[0], jnp.int32),
        jnp.asarray(ends[1], jnp.int32),
        jnp.zeros(count, jnp.int32),
        jnp.ones(count, bool),
        jnp.ones(len(ends[0]), bool),
        1,
    )


def batch_graphs(graphs: Sequence[Graph]) -> Graph:
    """All graphs side by side in one, without edges between them; without padding."""
    require("batch_graphs", "graphs", "one or more", len(graphs), lambda n: n >= 1)
    padded = [not (np.asarray(g.node_mask).all() and np.asarray(g.edge_mask).all()) for g in graphs]
    require("batch_graphs", "graphs", "without padding", padded, lambda p: not any(p), "Pad the batch, not its parts.")
    offsets = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    numbers = np.cumsum([0, *(graph.num_graphs for graph in graphs)])
    # By NumPy and `device_put`, as in `pad_graph`: sizes are new every time, and each would be a program.
    together = lambda *parts: jax.device_put(np.concatenate([np.asarray(part) for part in parts]))  # noqa: E731
    join = lambda get: jax.tree.map(together, *map(get, graphs))  # noqa: E731
    shift = lambda get, by: together(*(np.asarray(get(g)) + np.int32(b) for g, b in zip(graphs, by, strict=False)))  # noqa: E731
    return Graph(
        join(lambda g: g.nodes),
        join(lambda g: g.edges),
        shift(lambda g: g.senders, offsets),
        shift(lambda g: g.receivers, offsets),
        shift(lambda g: g.graph_of, numbers),
        join(lambda g: g.node_mask),
        join(lambda g: g.edge_mask),
        int(numbers[-1]),
    )


def pad_graph(graph: Graph, num_nodes: int, num_edges: int) -> Graph:
    """The graph with padding behind: nodes and edges of zeros; the edges lead from the last node to itself.

    At least one node is added where an edge is: the real nodes' sums then cannot see it. Outside jit nothing is
    compiled for it.
    """
    least = graph.num_nodes + (num_edges > graph.num_edges)
    remedy = "More room is needed: `pad_to_bucket` finds the next size."
    require("pad_graph", "num_nodes", f">= {least}", num_nodes, lambda n: n >= least, remedy)
    require("pad_graph", "num_edges", f">= {graph.num_edges}", num_edges, lambda n: n >= graph.num_edges, remedy)
    nodes, edges = num_nodes - graph.num_nodes, num_edges - graph.num_edges

    def longer(leaf: Array, more: int, value: int = 0) -> Array:
        widths = ((0, more), *((0, 0),) * (leaf.ndim - 1))
        if isinstance(leaf, Tracer):
            return jnp.pad(leaf, widths, constant_values=value)
        return jax.device_put(np.pad(np.asarray(leaf), widths, constant_values=value))

    return Graph(
        jax.tree.map(lambda leaf: longer(leaf, nodes), graph.nodes),
        jax.tree.map(lambda leaf: longer(leaf, edges), graph.edges),
        longer(graph.senders, edges, num_nodes - 1),
        longer(graph.receivers, edges, num_nodes - 1),
        longer(graph.graph_of, nodes, graph.num_graphs),
        longer(graph.node_mask, nodes, False),
        longer(graph.edge_mask, edges, False),
        graph.num_graphs,
    )


def pad_to_bucket(graph: Graph, growth: float = 1.25) -> Graph:
    """Padded to the next of a few sizes, 8 × growth^k: graphs of about the same size share one compiled program.

    growth: > 1; at most so much is wasted, and between n and m nodes there are log(m/n) / log(growth) programs.

    Shapes that this process has not had before, for which whatever is jitted compiles anew, are reported by the logger
    ``laureate.layers.graphs``: as a warning where JAX is asked to tell what it compiles (``jax.log_compiles()`` or
    ``JAX_LOG_COMPILES=1``), for information otherwise.

    >>> import jax.numpy as jnp
    >>> small = make_graph(jnp.ones(9), None, [0, 1], [1, 2])
    >>> padded = pad_to_bucket(small)
    >>> padded.num_nodes, padded.num_edges, int(padded.node_mask.sum())
    (10, 8, 9)
    """
    require("pad_to_bucket", "growth", "> 1", growth, lambda g: g > 1)
    padded = pad_graph(graph, _bucket(graph.num_nodes + 1, growth), _bucket(graph.num_edges, growth))
    leaves, structure = jax.tree.flatten(padded)  # what jit tells programs apart by
    shapes = structure, *((leaf.shape, leaf.dtype) for leaf in leaves)
    if shapes not in _SEEN:
        _SEEN.add(shapes)
        loud = jax.config.jax_log_compiles  # type: ignore[attr-defined]
        level = logging.WARNING if loud else logging.INFO
        words = "pad_to_bucket: %d nodes and %d edges are new here (%d shapes so far): jitted functions compile again."
        _LOG.log(level, words, padded.num_nodes, padded.num_edges, len(_SEEN))
    return padded


def _bucket(least: int, growth: float) -> int:
    power = max(0, math.ceil(math.log(max(least, 1) / 8) / math.log(growth)))
    sizes = (math.ceil(8 * growth**k) for k in (max(0, power - 1), power, power + 1))  # the logarithm may be off by one
    return next(size for size in sizes if size >= least)


def _sums(values: Array, segments: Array, num_segments: int) -> Array:
    return jax.ops.segment_sum(values.astype(jnp.promote_types(values.dtype, jnp.float32)), segments, num_segments)


def _masked(values: Array, mask: Bool[Array, " n"]) -> Array:
    return jnp.where(mask.reshape(-1, *(1,) * (values.ndim - 1)), values, jnp.zeros((), values.dtype))


def _over(total: Array, number: Array) -> Array:
    number = jnp.maximum(number, 1).reshape(-1, *(1,) * (total.ndim - 1))
    return total / number.astype(total.dtype)
