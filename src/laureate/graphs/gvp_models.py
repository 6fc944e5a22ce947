"""Networks of GVP layers: for any graph, for the quality of a structure, and for the design of a sequence."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import require
from laureate.graphs.gvp import GVP, Dims, Features, VectorLayerNorm, check_features
from laureate.graphs.gvp_layers import GVPConvLayer
from laureate.layers import Graph

__all__ = ["DesignModel", "GVPNetwork", "QualityModel", "quality_loss"]

PLAIN = (None, None)
RESIDUES = 20


class GVPNetwork(eqx.Module):
    """Scalars and vectors for every node of any graph: nodes and edges embedded, GVP layers, one GVP to read out.

    ``h = GVP(LN(x))``, `GVPConvLayer` after `GVPConvLayer`, ``out = GVP(LN(h))``. What comes out turns with what goes
    in: forces, displacements, or scalars that no pose changes.

    key: for the weights.
    node_in, edge_in, out_dims: numbers of scalars and vectors of the graph's nodes and edges, and of what comes out.
    node_dims, edge_dims: those inside.
    num_layers: >= 0.
    dropout: rate, in [0, 1).
    num_message, num_feedforward: GVPs of a message, and of what follows it at a node, >= 1.
    aggregate: of messages, "mean" or "sum".
    settings: of `GVP`.

    >>> from laureate.layers import make_graph
    >>> nodes, edges = (jnp.ones((3, 2)), jnp.ones((3, 1, 3))), (jnp.ones((2, 5)), jnp.ones((2, 1, 3)))
    >>> graph = make_graph(nodes, edges, senders=[0, 1], receivers=[1, 0])
    >>> network = GVPNetwork(jax.random.key(0), (2, 1), (5, 1), (0, 1), node_dims=(4, 2), edge_dims=(4, 1))
    >>> network(graph)[1].shape
    (3, 1, 3)
    """

    embed_nodes: tuple[VectorLayerNorm, GVP]
    embed_edges: tuple[VectorLayerNorm, GVP]
    layers: tuple[GVPConvLayer, ...]
    readout: tuple[VectorLayerNorm, GVP]

    def __init__(
        self,
        key: Key[Array, ""],
        node_in: Dims,
        edge_in: Dims,
        out_dims: Dims,
        *,
        node_dims: Dims = (100, 16),
        edge_dims: Dims = (32, 1),
        num_layers: int = 3,
        dropout: float = 0.1,
        num_message: int = 3,
        num_feedforward: int = 2,
        aggregate: str = "mean",
        **settings: Any,
    ):
        require("GVPNetwork", "num_layers", "an integer >= 0", num_layers, lambda n: isinstance(n, int) and n >= 0)
        keys = jax.random.split(key, num_layers + 3)
        plain: dict[str, Any] = settings | {"activations": PLAIN}
        self.embed_nodes = VectorLayerNorm(node_in[0]), GVP(keys[0], node_in, node_dims, **plain)
        self.embed_edges = VectorLayerNorm(edge_in[0]), GVP(keys[1], edge_in, edge_dims, **plain)
        of_layers: dict[str, Any] = {
            "dropout": dropout,
            "num_message": num_message,
            "num_feedforward": num_feedforward,
            "aggregate": aggregate,
            **settings,
        }
        self.layers = tuple(GVPConvLayer(k, node_dims, edge_dims, **of_layers) for k in keys[3:])
        self.readout = VectorLayerNorm(node_dims[0]), GVP(keys[2], node_dims, out_dims, **plain)

    def __call__(self, graph: Graph, key: Key[Array, ""] | None = None) -> Features:
        """Of every node; dropout needs a key."""
        check_features("GVPNetwork.nodes", graph.nodes, self.embed_nodes[1].in_dims)
        check_features("GVPNetwork.edges", graph.edges, self.embed_edges[1].in_dims)
        graph = replace(
            graph,
            nodes=_after(self.embed_nodes, graph.nodes),
            edges=_after(self.embed_edges, graph.edges),
        )
        return _after(self.readout, _layered(self.layers, graph, key).nodes)


class QualityModel(eqx.Module):
    """How good a model of a structure is, from the structure alone: one number for each graph.

    ``score = 0.5 + w · relu(W mean_i relu(out_i) + b)`` with ``out`` of a `GVPNetwork` (Jing et al. 2021, section 4).

    key: for the weights.
    node_in, edge_in: as for `GVPNetwork`; those of `featurize_backbone` unless named.
    with_residues: whether a call is given the residues (0 to 19), which are embedded beside the nodes' scalars.
    Further settings are those of `GVPNetwork`.

    >>> from laureate.graphs import featurize_backbone
    >>> coords = np.random.default_rng(0).normal(size=(9, 4, 3)) + 3 * np.arange(9)[:, None, None]
    >>> graph, _ = featurize_backbone(coords, num_neighbours=3)
    >>> QualityModel(jax.random.key(0), node_dims=(8, 2))(graph, jnp.zeros(9, int)).shape
    (1,)
    """

    network: GVPNetwork
    embedding: Float[Array, "20 20"] | None
    hidden: Float[Array, "w s"]
    hidden_bias: Float[Array, " w"]
    last: Float[Array, " w"]

    def __init__(
        self,
        key: Key[Array, ""],
        node_in: Dims = (6, 3),
        edge_in: Dims = (32, 1),
        *,
        node_dims: Dims = (100, 16),
        with_residues: bool = True,
        **settings: Any,
    ):
        keys = jax.random.split(key, 4)
        whole = node_in[0] + RESIDUES * with_residues, node_in[1]
        width = node_dims[0]
        self.network = GVPNetwork(keys[0], whole, edge_in, (width, 0), node_dims=node_dims, **settings)
        self.embedding = jax.random.normal(keys[1], (RESIDUES, RESIDUES)) if with_residues else None
        self.hidden = jax.random.uniform(keys[2], (2 * width, width), minval=-1) / np.sqrt(width)
        self.hidden_bias = jnp.zeros(2 * width)
        self.last = jax.random.uniform(keys[3], (2 * width,), minval=-1) / np.sqrt(2 * width)

    def __call__(
        self, graph: Graph, residues: Int[Array, " n"] | None = None, key: Key[Array, ""] | None = None
    ) -> Float[Array, " g"]:
        """A score a graph; the mean is over the nodes that are no padding."""
        scalars, vectors = graph.nodes
        if self.embedding is not None:
            found = _checked_residues("QualityModel", residues, graph)
            scalars = jnp.concatenate([scalars, self.embedding[found].astype(scalars.dtype)], -1)
        out, _ = self.network(replace(graph, nodes=(scalars, vectors)), key)
        mean = graph.mean_of_graphs(jax.nn.relu(out))
        return 0.5 + jax.nn.relu(mean @ self.hidden.T + self.hidden_bias) @ self.last


class DesignModel(eqx.Module):
    """Amino acids for a backbone, one after the other: logits given the residues before, and samples.

    ``p(a | x) = Π_i p(a_i | x, a_1 … a_{i−1})``. An encoder sees the structure alone. In the decoder an edge j → i
    carries the residue of j where j < i; where j >= i both its ends are the encoder's, so that nothing of a_j, j >= i,
    reaches i (Jing et al. 2021, section 3).

    key: for the weights.
    node_in, edge_in: those of `featurize_backbone` unless named.
    node_dims, edge_dims: numbers of scalars and vectors inside.
    num_layers: of the encoder and of the decoder, >= 1. dropout: rate, in [0, 1).
    num_message, num_feedforward: as for `GVPConvLayer`. Further settings are those of `GVP`.

    >>> from laureate.graphs import featurize_backbone
    >>> coords = np.random.default_rng(0).normal(size=(9, 4, 3)) + 3 * np.arange(9)[:, None, None]
    >>> graph, _ = featurize_backbone(coords, num_neighbours=3)
    >>> model = DesignModel(jax.random.key(0), node_dims=(8, 2), num_layers=1)
    >>> model(graph, jnp.zeros(9, int)).shape
    (9, 20)
    """

    embed_nodes: tuple[GVP, VectorLayerNorm]
    embed_edges: tuple[GVP, VectorLayerNorm]
    encoder: tuple[GVPConvLayer, ...]
    embedding: Float[Array, "20 20"]
    decoder: tuple[GVPConvLayer, ...]
    readout: GVP

    def __init__(
        self,
        key: Key[Array, ""],
        node_in: Dims = (6, 3),
        edge_in: Dims = (32, 1),
        *,
        node_dims: Dims = (100, 16),
        edge_dims: Dims = (32, 1),
        num_layers: int = 3,
        dropout: float = 0.1,
        num_message: int = 3,
        num_feedforward: int = 2,
        **settings: Any,
    ):
        require("DesignModel", "num_layers", "an integer >= 1", num_layers, lambda n: isinstance(n, int) and n >= 1)
        keys = jax.random.split(key, 2 * num_layers + 4)
        plain: dict[str, Any] = settings | {"activations": PLAIN}
        self.embed_nodes = GVP(keys[0], node_in, node_dims, **plain), VectorLayerNorm(node_dims[0])
        self.embed_edges = GVP(keys[1], edge_in, edge_dims, **plain), VectorLayerNorm(edge_dims[0])
        how: dict[str, Any] = {
            "dropout": dropout,
            "num_message": num_message,
            "num_feedforward": num_feedforward,
            **settings,
        }
        known = edge_dims[0] + RESIDUES, edge_dims[1]
        self.encoder = tuple(GVPConvLayer(k, node_dims, edge_dims, **how) for k in keys[4 : 4 + num_layers])
        self.decoder = tuple(GVPConvLayer(k, node_dims, known, **how) for k in keys[4 + num_layers :])
        self.embedding = jax.random.normal(keys[2], (RESIDUES, RESIDUES))
        self.readout = GVP(keys[3], node_dims, (RESIDUES, 0), **plain)

    def encode(self, graph: Graph, key: Key[Array, ""] | None = None) -> Graph:
        """The graph with what the encoder makes of nodes and edges; no residue is known to it."""
        check_features("DesignModel.nodes", graph.nodes, self.embed_nodes[0].in_dims)
        check_features("DesignModel.edges", graph.edges, self.embed_edges[0].in_dims)
        nodes, edges = (
            norm(*gvp(*features))
            for (gvp, norm), features in ((self.embed_nodes, graph.nodes), (self.embed_edges, graph.edges))
        )
        return _layered(self.encoder, replace(graph, nodes=nodes, edges=edges), key)

    def __call__(
        self, graph: Graph, residues: Int[Array, " n"], key: Key[Array, ""] | None = None
    ) -> Float[Array, "n 20"]:
        """Logits of every residue given those before it (the lower node numbers)."""
        found = _checked_residues("DesignModel", residues, graph)
        keys = (None, None) if key is None else jax.random.split(key)
        encoded = self.encode(graph, keys[0])
        later = graph.senders >= graph.receivers
        said = jnp.where(later[:, None], 0.0, self.embedding[found[graph.senders]])
        edges = jnp.concatenate([encoded.edges[0], said.astype(encoded.edges[0].dtype)], -1), encoded.edges[1]
        decoded = _layered(self.decoder, replace(encoded, edges=edges), keys[1], encoded.nodes, later)
        return self.readout(*decoded.nodes)[0]

    def sample(
        self,
        key: Key[Array, ""],
        graph: Graph,
        num_samples: int = 1,
        temperature: float | Array = 0.1,
        num_incoming: int | None = None,
    ) -> tuple[Int[Array, "m n"], Float[Array, "m n"]]:
        """Residues, and their log-probabilities given those before (at temperature 1, whatever they were drawn at).

        num_samples: >= 1. temperature: > 0; the logits are divided by it.
        num_incoming: the largest number of edges that lead to a node; needed only inside jit. Where it is too small
            the log-probabilities are nan.

        Each residue costs the messages of its own edges, for what the layers made of earlier nodes is kept.
        """
        require("DesignModel", "num_samples", "an integer >= 1", num_samples, lambda n: n >= 1)
        require("DesignModel", "temperature", "> 0", temperature, lambda t: t > 0)
        edges_to, there = _incoming(graph, num_incoming)
        encoded = self.encode(graph)
        one = lambda key: self._sample_one(key, encoded, edges_to, there, temperature)  # noqa: E731
        residues, told = jax.vmap(one)(jax.random.split(key, num_samples))
        return residues, jnp.where(there.sum() == graph.edge_mask.sum(), told, jnp.nan)

    def _sample_one(self, key, encoded, edges_to, there, temperature):
        noise = jax.random.gumbel(key, (encoded.num_nodes, RESIDUES))
        first = encoded.nodes

        def step(carry, index):
            residues, kept = carry  # kept[l]: all nodes before decoder layer l
            chosen, mask = edges_to[index], there[index]
            senders = encoded.senders[chosen]
            earlier = senders < index
            said = jnp.where(earlier[:, None], self.embedding[residues[senders]], 0.0)
            edge_scalars, edge_vectors = (part[chosen] for part in encoded.edges)
            edges = jnp.concatenate([edge_scalars, said], -1), edge_vectors
            here = jax.tree.map(lambda part: part[index], first)
            after = []
            for layer, nodes in zip(self.decoder, kept, strict=True):
                ends = [(_choose(earlier, nodes, first, senders)), _spread(earlier, here, first, index)]
                messages = layer.conv.of_edges(ends[0], edges, ends[1])
                arrived = jax.tree.map(lambda m, mask=mask: _masked_mean(m, mask), messages)
                after.append(here)
                here = layer.updated(here, arrived)
            kept = tuple(
                jax.tree.map(lambda all_nodes, own: all_nodes.at[index].set(own), nodes, own)
                for nodes, own in zip(kept, after, strict=True)
            )
            logits = self.readout(*here)[0]
            drawn = jnp.argmax(logits / temperature + noise[index])
            return (residues.at[index].set(drawn), kept), jax.nn.log_softmax(logits)[drawn]

        start = jnp.zeros(encoded.num_nodes, int), (first,) * len(self.decoder)
        (residues, _), log_probability = jax.lax.scan(step, start, jnp.arange(encoded.num_nodes))
        return residues, log_probability


def quality_loss(predicted: Float[Array, "*b 2"], actual: Float[Array, "*b 2"], delta: float = 1.0) -> Float[Array, ""]:
    """The authors' loss for two models of the same target: Huber's of both scores and of their difference, the mean.

    predicted, actual: the scores of both. delta: where Huber's loss turns from squares to absolute values.

    >>> round(float(quality_loss(jnp.array([[0.5, 0.7]]), jnp.array([[0.5, 0.5]]))), 4)
    0.04
    """
    error = predicted - actual
    whole = jnp.concatenate([error, error[..., :1] - error[..., 1:]], -1)
    size = jnp.abs(whole)
    huber = jnp.where(size <= delta, whole**2 / 2, delta * (size - delta / 2))
    return jnp.mean(jnp.sum(huber, -1))


def _after(parts: tuple[VectorLayerNorm, GVP], features: Features) -> Features:
    norm, gvp = parts
    return gvp(*norm(*features))


def _layered(layers, graph: Graph, key, sources: Features | None = None, use: Array | None = None) -> Graph:
    keys = [None] * len(layers) if key is None else jax.random.split(key, max(len(layers), 1))
    for layer, own in zip(layers, keys, strict=False):
        graph = layer(graph, own, sources, use)
    return graph


def _checked_residues(owner: str, residues: Any, graph: Graph) -> Int[Array, " n"]:
    rule = f"an integer in 0 to {RESIDUES - 1} for each of {graph.num_nodes} nodes"
    shape = None if residues is None else np.shape(residues)
    require(owner, "residues", rule, shape, lambda s: s == (graph.num_nodes,))
    if not isinstance(residues, Tracer):
        found = np.asarray(residues)
        outside = found if found.dtype.kind not in "iu" else found[(found < 0) | (found >= RESIDUES)]
        remedy = "Leave out residues without a letter (-1), or say which they resemble."
        require(owner, "residues", rule, outside[:5].tolist(), lambda bad: not bad, remedy)
    return jnp.asarray(residues)


def _incoming(graph: Graph, number: int | None) -> tuple[Int[Array, "n k"], Bool[Array, "n k"]]:
    """For every node the edges that lead to it, and which of them are there."""
    require("DesignModel", "graph", "a graph with edges", graph.num_edges, lambda n: n >= 1)
    if not isinstance(graph.receivers, Tracer):
        most = np.bincount(np.asarray(graph.receivers)[np.asarray(graph.edge_mask)], minlength=1).max()
        number = int(most) if number is None else number
        require("DesignModel", "num_incoming", f">= {most}, the largest in-degree", number, lambda n: n >= most)
    require("DesignModel", "num_incoming", "given inside jit", number, lambda n: n is not None)
    ends = jnp.where(graph.edge_mask, graph.receivers, graph.num_nodes)
    order = jnp.argsort(ends)
    starts = jnp.searchsorted(ends[order], jnp.arange(graph.num_nodes))
    places = starts[:, None] + jnp.arange(max(number or 0, 1))
    found = order[jnp.minimum(places, graph.num_edges - 1)]
    return found, (places < graph.num_edges) & (ends[found] == jnp.arange(graph.num_nodes)[:, None])


def _choose(earlier, nodes: Features, first: Features, senders) -> Features:
    """The kept features of earlier senders, the encoder's of the others."""
    return jax.tree.map(
        lambda kept, own: jnp.where(earlier.reshape(-1, *(1,) * (own.ndim - 1)), kept[senders], own[senders]),
        nodes,
        first,
    )


def _spread(earlier, here: Features, first: Features, index) -> Features:
    """The receiver, once an edge: as the layer has it where the sender is earlier, the encoder's elsewhere."""
    return jax.tree.map(
        lambda own, all_first: jnp.where(earlier.reshape(-1, *(1,) * own.ndim), own[None], all_first[index][None]),
        here,
        first,
    )


def _masked_mean(messages: Array, mask: Bool[Array, " k"]) -> Array:
    rows = jnp.where(mask.reshape(-1, *(1,) * (messages.ndim - 1)), messages, 0.0)
    return rows.sum(0) / jnp.maximum(mask.sum(), 1)
