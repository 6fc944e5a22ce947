"""Edges between nodes that are close in the world: a fixed number of places, and how many were found."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.core import Tracer
from jaxtyping import Bool, Float, Int

from laureate._core import require
from laureate.layers import Graph

__all__ = ["WorldEdges", "check_room", "radius_edges"]


class WorldEdges(NamedTuple):
    """Edges in a room of fixed size.

    senders, receivers: [e]; where there is no edge, the last node to itself. mask: where there is one.
    found: how many there are, which may be more than the room holds: those beyond are not in it.
    """

    senders: Int[Array, " e"]
    receivers: Int[Array, " e"]
    mask: Bool[Array, " e"]
    found: Int[Array, ""]

    @property
    def overflow(self) -> Bool[Array, ""]:
        """Whether edges are missing."""
        return self.found > self.mask.shape[-1]


def radius_edges(
    positions: Float[Array, "n d"], radius: float | Array, max_edges: int, graph: Graph | None = None
) -> WorldEdges:
    """All pairs |x_i − x_j| < radius, both ways, but for those that are edges of ``graph`` already.

    For use inside jit: the shapes depend on ``max_edges`` alone. All n² pairs are looked at: for some thousand nodes.

    radius: > 0, in the unit of the positions. max_edges: the room. graph: mesh edges to leave out, and its padding.

    >>> import jax, jax.numpy as jnp
    >>> edges = jax.jit(lambda x: radius_edges(x, 1.0, max_edges=4))(jnp.array([[0.0], [0.1], [5.0]]))
    >>> int(edges.found), edges.senders[:2].tolist(), edges.receivers[:2].tolist(), bool(edges.overflow)
    (2, [0, 1], [1, 0], False)
    """
    require("radius_edges", "radius", "> 0", radius, lambda r: r > 0)
    require("radius_edges", "max_edges", ">= 1", max_edges, lambda n: n >= 1)
    count = positions.shape[0]
    squares = jnp.sum((positions[:, None] - positions[None]) ** 2, -1)
    close = (squares < jnp.asarray(radius) ** 2) & ~jnp.eye(count, dtype=bool)
    if graph is not None:
        close &= graph.node_mask[:, None] & graph.node_mask[None]
        # An edge of padding leads from a node of padding to itself and takes nothing away.
        close = close.at[graph.senders, graph.receivers].set(False)
    senders, receivers = jnp.nonzero(close, size=max_edges, fill_value=count - 1)
    found = jnp.sum(close)
    return WorldEdges(senders, receivers, jnp.arange(max_edges) < found, found)


def check_room(edges: WorldEdges) -> WorldEdges:
    """The edges, or an error that tells the room they need; within jit ask ``edges.overflow``."""
    if not isinstance(edges.found, Tracer):
        most, remedy = int(edges.found.max()), "Give at least so much room, or a smaller radius."
        require("radius_edges", "max_edges", f">= {most}", edges.mask.shape[-1], lambda n: n >= most, remedy)
    return edges
