"""Messages between nodes that carry scalars and vectors, on graphs of static shapes."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Key

from laureate._core import require
from laureate.graphs.gvp import GVP, Dims, Features, VectorDropout, VectorLayerNorm, check_features
from laureate.layers import Graph

__all__ = ["GVPConv", "GVPConvLayer"]


class GVPConv(eqx.Module):
    """Messages along edges by GVPs, and their mean or sum at each node.

    ``m_{j→i} = g([h_j; e_{j→i}; h_i])`` with g of several GVPs, the last without activations (Jing et al. 2021, eq. 3;
    the receiver is in the authors' code). A node that no edge leads to gets zeros; edges of padding count nothing.

    key: for the weights.
    in_dims, out_dims, edge_dims: numbers of scalars and vectors of nodes, of what comes out, and of edges.
    num_message: GVPs of a message, >= 1.
    aggregate: "mean" or "sum".
    Further settings are those of `GVP`.

    >>> from laureate.layers import make_graph
    >>> nodes, edges = (jnp.ones((3, 4)), jnp.ones((3, 2, 3))), (jnp.ones((2, 5)), jnp.ones((2, 1, 3)))
    >>> conv = GVPConv(jax.random.key(0), (4, 2), (6, 3), (5, 1))
    >>> scalars, vectors = conv(make_graph(nodes, edges, senders=[0, 1], receivers=[1, 0]))
    >>> scalars.shape, vectors.shape, vectors[2].tolist() == jnp.zeros((3, 3)).tolist()
    ((3, 6), (3, 3, 3), True)
    """

    message: tuple[GVP, ...]
    node_dims: Dims = eqx.field(static=True)
    edge_dims: Dims = eqx.field(static=True)
    aggregate: str = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        in_dims: Dims,
        out_dims: Dims,
        edge_dims: Dims,
        *,
        num_message: int = 3,
        aggregate: str = "mean",
        **settings: Any,
    ):
        require("GVPConv", "num_message", "an integer >= 1", num_message, lambda n: isinstance(n, int) and n >= 1)
        require("GVPConv", "aggregate", "'mean' or 'sum'", aggregate, lambda a: a in ("mean", "sum"))
        self.node_dims, self.edge_dims, out = (_pair(dims) for dims in (in_dims, edge_dims, out_dims))
        whole = 2 * in_dims[0] + edge_dims[0], 2 * in_dims[1] + edge_dims[1]
        dims = (whole, *[out] * num_message)
        self.message, self.aggregate = stacked_gvps(key, dims, **settings), aggregate

    def messages(self, graph: Graph, sources: Features | None = None, use: Bool[Array, " e"] | None = None) -> Features:
        """One an edge. Where ``use`` is True an edge reads both its nodes from ``sources``, not ``graph.nodes``."""
        first, *rest = self.message
        nodes, senders, receivers = graph.nodes, graph.senders, graph.receivers
        check_features("GVPConv.nodes", nodes, self.node_dims)
        check_features("GVPConv.edges", graph.edges, self.edge_dims)
        if sources is not None:
            nodes = jax.tree.map(lambda one, two: jnp.concatenate([one, two]), nodes, sources)
            shift = jnp.where(jnp.asarray(use), graph.num_nodes, 0)
            senders, receivers = senders + shift, receivers + shift
        return _through(rest, first.of_parts([(nodes, senders), (graph.edges, None), (nodes, receivers)]))

    def of_edges(self, senders: Features, edges: Features, receivers: Features) -> Features:
        """The messages where every edge brings its own features of both ends."""
        first, *rest = self.message
        return _through(rest, first.of_parts([(senders, None), (edges, None), (receivers, None)]))

    def __call__(self, graph: Graph, sources: Features | None = None, use: Bool[Array, " e"] | None = None) -> Features:
        """What arrives at every node; ``sources`` and ``use`` as for ``messages``."""
        scalars, vectors = self.messages(graph, sources, use)
        gather = graph.mean_to_receivers if self.aggregate == "mean" else graph.to_receivers
        return gather(scalars), gather(vectors)


class GVPConvLayer(eqx.Module):
    """A message-passing layer with residuals: what arrives, then a feed-forward block at each node.

    ``h ← LN(h + Drop(conv(h)))``, ``h ← LN(h + Drop(FF(h)))`` with FF of GVPs through (4 s, 2 v) dimensions.

    key: for the weights.
    node_dims, edge_dims: numbers of scalars and vectors of nodes and of edges.
    num_message, num_feedforward: GVPs of a message and of the block, >= 1.
    aggregate: "mean" or "sum". dropout: rate, in [0, 1); dropped only where a call has a key.
    Further settings are those of `GVP`.

    >>> from laureate.layers import make_graph
    >>> nodes, edges = (jnp.ones((3, 4)), jnp.ones((3, 2, 3))), (jnp.ones((2, 5)), jnp.ones((2, 1, 3)))
    >>> layer = GVPConvLayer(jax.random.key(0), (4, 2), (5, 1))
    >>> after = layer(make_graph(nodes, edges, senders=[0, 1], receivers=[1, 0]))
    >>> after.nodes[0].shape, after.nodes[1].shape
    ((3, 4), (3, 2, 3))
    """

    conv: GVPConv
    feedforward: tuple[GVP, ...]
    norms: tuple[VectorLayerNorm, VectorLayerNorm]
    dropout: VectorDropout

    def __init__(
        self,
        key: Key[Array, ""],
        node_dims: Dims,
        edge_dims: Dims,
        *,
        num_message: int = 3,
        num_feedforward: int = 2,
        aggregate: str = "mean",
        dropout: float = 0.1,
        **settings: Any,
    ):
        rule = "an integer >= 1"
        require("GVPConvLayer", "num_feedforward", rule, num_feedforward, lambda n: isinstance(n, int) and n >= 1)
        first, second = jax.random.split(key)
        how: dict[str, Any] = {"num_message": num_message, "aggregate": aggregate, **settings}
        self.conv = GVPConv(first, node_dims, node_dims, edge_dims, **how)
        wide = 4 * node_dims[0], 2 * node_dims[1]
        dims = (_pair(node_dims), *[wide] * (num_feedforward - 1), _pair(node_dims))
        self.feedforward = stacked_gvps(second, dims, **settings)
        self.norms = VectorLayerNorm(node_dims[0]), VectorLayerNorm(node_dims[0])
        self.dropout = VectorDropout(dropout)

    def __call__(
        self,
        graph: Graph,
        key: Key[Array, ""] | None = None,
        sources: Features | None = None,
        use: Bool[Array, " e"] | None = None,
    ) -> Graph:
        """The graph with new nodes. Dropout needs a key; ``sources`` and ``use`` as for `GVPConv`."""
        keys = (None, None) if key is None else jax.random.split(key)
        nodes = self.updated(graph.nodes, self.conv(graph, sources, use), keys)
        return replace(graph, nodes=nodes)

    def updated(self, nodes: Features, arrived: Features, keys: Any = (None, None)) -> Features:
        """Nodes after what arrived at them and the feed-forward block."""
        nodes = self.norms[0](*_sum(nodes, self.dropout(keys[0], *arrived)))
        return self.norms[1](*_sum(nodes, self.dropout(keys[1], *_through(self.feedforward, nodes))))


def stacked_gvps(key: Key[Array, ""], dims: tuple[Dims, ...], **settings: Any) -> tuple[GVP, ...]:
    """GVPs through these dimensions, the last without activations (its gate, if any, stays)."""
    keys = jax.random.split(key, len(dims) - 1)
    pairs = list(itertools.pairwise(dims))
    made = [GVP(k, *pair, **settings) for k, pair in zip(keys[:-1], pairs[:-1], strict=True)]
    plain: dict[str, Any] = settings | {"activations": (None, None)}
    return (*made, GVP(keys[-1], *pairs[-1], **plain))


def _pair(dims: Dims) -> Dims:
    """Of a list, too."""
    scalars, vectors = dims
    return scalars, vectors


def _sum(one: Features, two: Features) -> Features:
    return one[0] + two[0], one[1] + two[1]


def _through(gvps: Sequence[GVP], features: Features) -> Features:
    for gvp in gvps:
        features = gvp(*features)
    return features
