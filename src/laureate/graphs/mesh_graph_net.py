"""Encode, process, decode: message passing on a mesh and, where there are any, along edges of contact."""

import itertools
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from laureate._core import require
from laureate.graphs.radius import WorldEdges
from laureate.layers import Graph, segment_sum

__all__ = ["MeshGraphNet", "Perceptron"]

EPSILON = 1e-5


class Perceptron(eqx.Module):
    """Layers with ReLU between them, and layer normalisation behind the last where wanted; one for all rows.

    ::

        h ← relu(h W + b), ..., y = LayerNorm(h W + b)

    key: draws the weights (truncated normal numbers of deviation 1 / √inputs). sizes: inputs, hidden sizes, outputs.
    normalised: whether layer normalisation follows.

    >>> import jax, jax.numpy as jnp
    >>> Perceptron(jax.random.key(0), (3, 8, 2))(jnp.ones((5, 3))).shape
    (5, 2)
    """

    weights: tuple[Float[Array, "a b"], ...]
    biases: tuple[Float[Array, " b"], ...]
    norm: tuple[Float[Array, " b"], Float[Array, " b"]] | None

    def __init__(self, key: Array, sizes: tuple[int, ...], normalised: bool = True, dtype: Any = jnp.float32):
        pairs = list(itertools.pairwise(sizes))
        # One call of the generator for all weights: each is a tenth of a second to compile.
        ends = list(itertools.accumulate(a * b for a, b in pairs))
        drawn = jax.random.truncated_normal(key, -2.0, 2.0, (ends[-1],), dtype)
        self.weights = tuple(
            drawn[end - a * b : end].reshape(a, b) / a**0.5 for (a, b), end in zip(pairs, ends, strict=True)
        )
        self.biases = tuple(jnp.zeros(b, dtype) for _, b in pairs)
        self.norm = (jnp.ones(sizes[-1], dtype), jnp.zeros(sizes[-1], dtype)) if normalised else None

    def __call__(self, rows: Float[Array, "*n a"]) -> Float[Array, "*n b"]:
        """Every row by itself."""
        return self.beyond_first(rows @ self.weights[0] + self.biases[0])

    def beyond_first(self, hidden: Float[Array, "*n h"]) -> Float[Array, "*n b"]:
        """What follows the first layer's product, for those who compute that in parts."""
        weights, biases = list(self.weights[1:]), list(self.biases[1:])
        if self.norm is not None and weights:
            # The mean over the outputs is linear in them: it is taken off the last weights once, not off every row.
            weights[-1] = weights[-1] - jnp.mean(weights[-1], 1, keepdims=True)
            biases[-1] = biases[-1] - jnp.mean(biases[-1])
        for weight, bias in zip(weights, biases, strict=True):
            hidden = jax.nn.relu(hidden) @ weight + bias
        if self.norm is None:
            return hidden
        hidden = hidden if weights else hidden - jnp.mean(hidden, -1, keepdims=True)
        scale, offset = self.norm
        return hidden * jax.lax.rsqrt(jnp.mean(hidden**2, -1, keepdims=True) + EPSILON) * scale + offset


class _Block(eqx.Module):
    """The weights of one message-passing step."""

    mesh: Perceptron
    world: Perceptron | None
    node: Perceptron


def _messages(perceptron: Perceptron, v: Array, e: Array, senders: Array, receivers: Array) -> Array:
    """m_ij = f([v_sender, v_receiver, e_ij]); the first layer's product is made a node before it is taken to edges."""
    first, width = perceptron.weights[0], v.shape[-1]
    sent, received = v @ first[:width], v @ first[width : 2 * width]
    return perceptron.beyond_first(sent[senders] + received[receivers] + e @ first[2 * width :] + perceptron.biases[0])


class MeshGraphNet(eqx.Module):
    """A network from features of nodes and edges to numbers at the nodes, for meshes of any size and shape.

    With perceptrons f that are others in each of the steps (Pfaff et al. 2021, section 3.2)::

        m_ij = f_M([v_j, v_i, e_ij]),   e_ij ← e_ij + m_ij
        v_i ← v_i + f_V([v_i, Σ_j m_ij of the mesh, Σ_j m_ij of the world])

    after v and e are encoded by a perceptron each; one more decodes v. After k steps a node knows of nodes k edges
    away. Sums are over the edges that lead to a node; a node that none leads to gets 0. It is not invariant to
    rotations; to translations it is, where no feature is an absolute position.

    key: draws the weights. node_size, edge_size, world_size: how many features nodes, mesh edges and world edges
        have (``world_size=0``: there are no world edges). outputs: numbers a node.
    latent: width of all layers (the authors: 128). num_steps: of message passing, >= 1 (the authors: 15).
    num_hidden_layers: of each perceptron (the authors: 2). aggregate: "sum" (the authors) or "mean". dtype: of weights.
    recompute: whether a gradient computes what is inside a step again instead of keeping it: the same numbers with a
        fraction of the memory, for a third more products.

    Time and memory grow with the edges: about latent² (num_hidden_layers + 1) products a step for each.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> from laureate.graphs import mesh_graph
    >>> graph = mesh_graph([[0.0, 0], [1, 0], [0, 1]], [[0, 1, 2]], kinds=[0, 0, 3])
    >>> network = MeshGraphNet(jax.random.key(0), 10, 3, 1, latent=8, num_steps=1)
    >>> eqx.filter_jit(network)(graph, jnp.ones((3, 10)), jnp.ones((6, 3))).shape
    (3, 1)
    """

    node_encoder: Perceptron
    edge_encoder: Perceptron
    world_encoder: Perceptron | None
    blocks: _Block
    decoder: Perceptron
    aggregate: Literal["sum", "mean"] = eqx.field(static=True)
    num_steps: int = eqx.field(static=True)
    recompute: bool = eqx.field(static=True)

    def __init__(
        self,
        key: Array,
        node_size: int,
        edge_size: int,
        outputs: int,
        *,
        world_size: int = 0,
        latent: int = 128,
        num_steps: int = 15,
        num_hidden_layers: int = 2,
        aggregate: Literal["sum", "mean"] = "sum",
        recompute: bool = False,
        dtype: Any = jnp.float32,
    ):
        sizes = {"node_size": node_size, "edge_size": edge_size, "outputs": outputs, "latent": latent}
        for name, size in {**sizes, "num_steps": num_steps, "num_hidden_layers": num_hidden_layers}.items():
            require("MeshGraphNet", name, "an integer >= 1", size, lambda n: isinstance(n, int) and n >= 1)
        require("MeshGraphNet", "world_size", "an integer >= 0", world_size, lambda n: isinstance(n, int) and n >= 0)
        require("MeshGraphNet", "aggregate", "'sum' or 'mean'", aggregate, lambda a: a in ("sum", "mean"))
        self.aggregate, self.num_steps, self.recompute = aggregate, num_steps, recompute
        hidden = (latent,) * num_hidden_layers
        make = lambda key, size: Perceptron(key, (size, *hidden, latent), dtype=dtype)  # noqa: E731
        encode, edge, world, decode, process = jax.random.split(key, 5)
        self.node_encoder, self.edge_encoder = make(encode, node_size), make(edge, edge_size)
        self.world_encoder = make(world, world_size) if world_size else None
        self.decoder = Perceptron(decode, (latent, *hidden, outputs), normalised=False, dtype=dtype)

        def block(key: Array) -> _Block:
            mesh, world, node = jax.random.split(key, 3)
            others = make(world, 3 * latent) if world_size else None
            return _Block(make(mesh, 3 * latent), others, make(node, (3 if world_size else 2) * latent))

        self.blocks = eqx.filter_vmap(block)(jax.random.split(process, num_steps))

    def __call__(
        self,
        graph: Graph,
        nodes: Float[Array, "n f"],
        edges: Float[Array, "e g"],
        world: WorldEdges | None = None,
        world_features: Float[Array, "w h"] | None = None,
    ) -> Float[Array, "n o"]:
        """The decoded numbers of every node; what padding says counts nowhere."""
        rule = "given, with features, exactly where world_size > 0"
        has_world = self.world_encoder is not None
        given = world is not None and world_features is not None
        require("MeshGraphNet", "world", rule, given, lambda given: given == has_world)
        v, e = self.node_encoder(nodes), self.edge_encoder(edges)
        w = None if self.world_encoder is None or world_features is None else self.world_encoder(world_features)
        mesh = graph.to_receivers if self.aggregate == "sum" else graph.mean_to_receivers

        def step(carry, block):
            v, e, w = carry
            messages = _messages(block.mesh, v, e, graph.senders, graph.receivers)
            seen = [v, mesh(messages)]
            if w is not None and world is not None:
                contact = _messages(block.world, v, w, world.senders, world.receivers)
                seen.append(_to_receivers(contact, world, graph.num_nodes, self.aggregate))
                w = w + contact
            return (v + block.node(jnp.concatenate(seen, -1)), e + messages, w), None

        one = jax.checkpoint(step, prevent_cse=False) if self.recompute else step
        (v, _, _), _ = jax.lax.scan(one, (v, e, w), self.blocks)
        return self.decoder(v)


def _to_receivers(messages: Array, edges: WorldEdges, num_nodes: int, aggregate: str) -> Array:
    """Σ or mean over the edges that are there."""
    total = segment_sum(jnp.where(edges.mask[:, None], messages, 0), edges.receivers, num_nodes)
    if aggregate == "sum":
        return total
    number = segment_sum(edges.mask.astype(total.dtype), edges.receivers, num_nodes)
    return total / jnp.maximum(number, 1)[:, None]
