"""A network with its normalisers and its integrator: what takes a mesh and a state one step on."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from laureate._core import Status, require
from laureate.graphs.integrators import AbstractIntegrator
from laureate.graphs.mesh import NodeKind
from laureate.graphs.mesh_graph_net import MeshGraphNet
from laureate.graphs.normalisers import Normaliser
from laureate.graphs.radius import WorldEdges, radius_edges
from laureate.layers import Graph

__all__ = ["MeshFeatures", "MeshSimulator", "MeshStatistics", "SimulatorInfo", "free_nodes", "make_simulator"]

Spaces = Literal["mesh", "world", "both"]
PREDICTED = (NodeKind.NORMAL, NodeKind.OUTFLOW)


class MeshStatistics(NamedTuple):
    """The normalisers of what goes in and of what comes out.

    node, edge, world: of the parts of `MeshFeatures`; ``world`` is None where there are no world edges. target: of what
    is predicted.
    """

    node: Normaliser
    edge: Normaliser
    world: Normaliser | None
    target: Normaliser


class MeshFeatures(NamedTuple):
    """What a network is shown, before it is normalised.

    node: [n, f], what the integrator shows of the frames, the change of held nodes where it is scripted, the kind
    one-hot, further numbers. edge: [e, g], the vector along each edge of the mesh and its length, in mesh space, world
    space or both. world: [w, h], the same along world edges. world_edges: between which nodes these are. The last two
    are None where there are none.
    """

    node: Float[Array, "n f"]
    edge: Float[Array, "e g"]
    world: Float[Array, "w h"] | None
    world_edges: WorldEdges | None


class SimulatorInfo(NamedTuple):
    """How a step went.

    cost: network evaluations, 1. status: DIVERGED where the new state is not finite or world edges did not fit.
    world_edges: how many were found; more than the room means that some were left out.
    """

    cost: Array
    status: Array
    world_edges: Array


def free_nodes(graph: Graph) -> Bool[Array, " n"]:
    """The nodes that are predicted: NORMAL and OUTFLOW, without padding. All others are held or prescribed."""
    kinds = graph.nodes.kind
    return graph.node_mask & jnp.any(kinds[:, None] == jnp.asarray(PREDICTED), axis=1)


class MeshSimulator(eqx.Module):
    """A learned simulator: takes the state at the nodes of a mesh one time step on. `make_simulator` makes one.

    ::

        p = inverse(network(apply(features))),   x_{t+1} = integrator.advance(x_t, x_{t−1}, p) at free nodes

    Held nodes keep their state, or take the one that is prescribed. Features: at a node what the integrator shows, the
    next motion of prescribed nodes (``scripted``), the kind as nine zeros and ones, and ``extra``; at an edge offset
    and distance from receiver to sender, u_ij in mesh space and x_ij in the world.

    network: a `MeshGraphNet`, or any module with its call.
    integrator: `FirstOrder` or `SecondOrder`.
    statistics: the normalisers.
    world_radius: contact within this distance (0: none), in the unit of the state.
    spaces: which offsets edges have: "mesh" (a field on a mesh at rest), "world" or "both" (the state is positions).
    max_world_edges: room for edges of contact.
    scripted: whether the next state of held nodes is known and shown.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> from laureate.graphs import FirstOrder, make_simulator, mesh_graph
    >>> graph = mesh_graph([[0.0, 0], [1, 0], [0, 1]], [[0, 1, 2]], kinds=[0, 0, 6])
    >>> simulator = make_simulator(jax.random.key(0), graph, FirstOrder(), state_size=1, latent=8, num_steps=1)
    >>> after, info = eqx.filter_jit(simulator.step)(graph, jnp.ones((1, 3, 1)))
    >>> after.shape, float(after[-1, 2, 0]), int(info.status)
    ((1, 3, 1), 1.0, 0)
    """

    network: Any
    integrator: AbstractIntegrator
    statistics: MeshStatistics
    world_radius: float | Array = 0.0
    spaces: Spaces = eqx.field(static=True, default="mesh")
    max_world_edges: int = eqx.field(static=True, default=0)
    scripted: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        require("MeshSimulator", "spaces", "'mesh', 'world' or 'both'", self.spaces, lambda s: s in _SPACES)
        require("MeshSimulator", "max_world_edges", ">= 0", self.max_world_edges, lambda n: n >= 0)
        if self.max_world_edges:
            rule = "> 0 where max_world_edges > 0"
            require("MeshSimulator", "world_radius", rule, self.world_radius, lambda r: r > 0)

    def features(
        self, graph: Graph, frames: Float[Array, "h n d"], following: Float[Array, "n d"] | None = None
    ) -> MeshFeatures:
        """Of the frames, and of the ``following`` state at held nodes where it is scripted."""
        nodes, state = graph.nodes, frames[-1]
        free = free_nodes(graph)
        parts = [self.integrator.dynamic(frames)]
        if self.scripted:
            rule = "given, for the next state of held nodes is shown to this simulator"
            require("MeshSimulator", "following", rule, following is not None, lambda given: given)
            parts.append(jnp.where(free[:, None], 0, jnp.asarray(following) - state))
        parts += [(nodes.kind[:, None] == jnp.arange(len(NodeKind))).astype(state.dtype), nodes.extra]
        node = jnp.concatenate([part.astype(state.dtype) for part in parts], -1)
        node = jnp.where(graph.node_mask[:, None], node, 0)
        places = {"mesh": [nodes.position], "world": [state], "both": [nodes.position, state]}[self.spaces]
        edge = jnp.concatenate([_offsets(p.astype(state.dtype), graph.senders, graph.receivers) for p in places], -1)
        if self.max_world_edges == 0:
            return MeshFeatures(node, edge, None, None)
        world = radius_edges(state, self.world_radius, self.max_world_edges, graph)
        return MeshFeatures(node, edge, _offsets(state, world.senders, world.receivers), world)

    def normalised(self, graph: Graph, features: MeshFeatures) -> Float[Array, "n d"]:
        """The network's answer, still normalised as the target is in training."""
        s = self.statistics
        world = None if s.world is None or features.world is None else s.world.apply(features.world)
        return self.network(
            graph, s.node.apply(features.node), s.edge.apply(features.edge), features.world_edges, world
        )

    def step(
        self, graph: Graph, frames: Float[Array, "h n d"], following: Float[Array, "n d"] | None = None
    ) -> tuple[Float[Array, "h n d"], SimulatorInfo]:
        """The frames one step on. ``following`` has the next state of held nodes; of free ones it is not read."""
        features = self.features(graph, frames, following)
        predicted = self.statistics.target.inverse(self.normalised(graph, features))
        held = frames[-1] if following is None else following
        new = jnp.where(free_nodes(graph)[:, None], self.integrator.advance(frames, predicted), held)
        world = features.world_edges
        found = jnp.asarray(0) if world is None else world.found
        fine = jnp.all(jnp.isfinite(jnp.where(graph.node_mask[:, None], new, 0))) & (found <= self.max_world_edges)
        status = jnp.where(fine, Status.OK, Status.DIVERGED)
        return jnp.concatenate([frames[1:], new[None]]), SimulatorInfo(jnp.asarray(1), status, found)


def make_simulator(
    key: Array,
    graph: Graph,
    integrator: AbstractIntegrator,
    state_size: int,
    *,
    spaces: Spaces = "mesh",
    world_radius: float | Array = 0.0,
    max_world_edges: int = 0,
    scripted: bool = False,
    latent: int = 128,
    num_steps: int = 15,
    num_hidden_layers: int = 2,
    aggregate: Literal["sum", "mean"] = "sum",
    recompute: bool = False,
    dtype: Any = jnp.float32,
) -> MeshSimulator:
    """A `MeshSimulator` with new weights and empty normalisers, its sizes taken from a graph like those it is for.

    state_size: numbers a node in the state. The other arguments are those of `MeshSimulator` and `MeshGraphNet`.
    """
    require("make_simulator", "spaces", "'mesh', 'world' or 'both'", spaces, lambda s: s in _SPACES)
    mesh, world = graph.nodes.position.shape[1] + 1, state_size + 1
    node = integrator.dynamic(jnp.zeros((integrator.num_frames, 1, state_size))).shape[1]
    node += state_size * scripted + len(NodeKind) + graph.nodes.extra.shape[1]
    edge = {"mesh": mesh, "world": world, "both": mesh + world}[spaces]
    contact = world if max_world_edges else 0
    network = MeshGraphNet(
        key,
        node,
        edge,
        state_size,
        world_size=contact,
        latent=latent,
        num_steps=num_steps,
        num_hidden_layers=num_hidden_layers,
        aggregate=aggregate,
        recompute=recompute,
        dtype=dtype,
    )
    empty = lambda size: Normaliser.empty(size, dtype)  # noqa: E731
    statistics = MeshStatistics(empty(node), empty(edge), empty(contact) if contact else None, empty(state_size))
    return MeshSimulator(network, integrator, statistics, world_radius, spaces, max_world_edges, scripted)


_SPACES = ("mesh", "world", "both")


def _offsets(places: Array, senders: Array, receivers: Array) -> Array:
    """[x_sender − x_receiver, |x_sender − x_receiver|]."""
    offset = places[senders] - places[receivers]
    squares = jnp.sum(offset**2, -1, keepdims=True)
    # The gradient of a root at 0 is infinite: an edge of padding leads from a node to itself.
    length = jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)
    return jnp.concatenate([offset, length], -1)
