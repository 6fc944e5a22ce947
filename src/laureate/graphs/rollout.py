"""Many steps of a simulator as one program; what diverges is reported, not hidden."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Float

from laureate._core import Status, require
from laureate.graphs.mesh import NodeKind
from laureate.graphs.mesh_simulator import MeshSimulator, free_nodes
from laureate.layers import Graph

__all__ = ["RolloutInfo", "relative_errors", "rollout", "rollout_with"]


class RolloutInfo(NamedTuple):
    """How a rollout went.

    cost: steps taken. status: DIVERGED where a state was not finite, beyond the limit, or lacked world edges.
    failed_at: the first such step, counted from 0; as many as were asked for where there is none.
    world_edges: the largest number found in a step.
    """

    cost: Array
    status: Array
    failed_at: Array
    world_edges: Array


def rollout_with(
    step: Callable[..., tuple[Any, Any]],
    frames: Float[Array, "h n d"],
    num_steps: int,
    prescribed: Float[Array, "t n d"] | None = None,
    limit: float | Array = jnp.inf,
) -> tuple[Float[Array, "t n d"], RolloutInfo]:
    """`rollout` of any step: ``step(frames, following) -> (frames, info)`` with ``info.status``.

    From the first step on that fails, the last good state is repeated: a mean over a trajectory stays a number, and
    ``failed_at`` tells which part of it is no prediction.

    num_steps, prescribed, limit: as for `rollout`.
    """
    largest = jnp.asarray(limit, frames.dtype)

    def one(carry: Any, following: Any) -> tuple[Any, Any]:
        frames, alive, world = carry
        new, info = step(frames, following)
        fine = (info.status == Status.OK) & jnp.all(jnp.isfinite(new[-1])) & jnp.all(jnp.abs(new[-1]) <= largest)
        alive = alive & fine
        frames = jnp.where(alive, new, frames)
        world = jnp.maximum(world, getattr(info, "world_edges", jnp.asarray(0)))
        return (frames, alive, world), (frames[-1], alive)

    begin = frames, jnp.asarray(True), jnp.asarray(0)
    (_, alive, world), (states, lived) = jax.lax.scan(one, begin, prescribed, length=num_steps)
    status = jnp.where(alive, Status.OK, Status.DIVERGED)
    return states, RolloutInfo(jnp.asarray(num_steps), status, jnp.sum(lived), world)


def rollout(
    simulator: MeshSimulator,
    graph: Graph,
    frames: Float[Array, "h n d"],
    num_steps: int,
    prescribed: Float[Array, "t n d"] | None = None,
    limit: float | Array = jnp.inf,
) -> tuple[Float[Array, "t n d"], RolloutInfo]:
    """The states that follow the frames, by one compiled loop; works inside jit, vmap and grad.

    frames: the last one or two states, as the integrator asks. num_steps: how many states to make.
    prescribed: [num_steps, n, d]; of it the entries of held nodes are taken: an inflow, a scripted obstacle. None: held
        nodes stay as they are.
    limit: a state with a larger entry counts as diverged.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.graphs import FirstOrder, make_simulator, mesh_graph
    >>> graph = mesh_graph([[0.0, 0], [1, 0], [0, 1]], [[0, 1, 2]], kinds=[0, 0, 6])
    >>> simulator = make_simulator(jax.random.key(0), graph, FirstOrder(), 1, latent=8, num_steps=1)
    >>> states, info = jax.jit(lambda s: rollout(s, graph, jnp.ones((1, 3, 1)), 5))(simulator)
    >>> states.shape, int(info.failed_at)
    ((5, 3, 1), 5)
    """
    require("rollout", "num_steps", "an integer >= 1", num_steps, lambda n: isinstance(n, int) and n >= 1)
    shape = simulator.integrator.num_frames, graph.num_nodes
    require("rollout", "frames", f"[{shape[0]}, {shape[1]}, d]", np.shape(frames), lambda s: s[:-1] == shape)
    if prescribed is not None:
        wanted = num_steps, *frames.shape[1:]
        require("rollout", "prescribed", f"{list(wanted)}", np.shape(prescribed), lambda s: s == wanted)
    elif simulator.scripted:
        remedy = "Give the next states of these kinds of nodes, for every step."
        require("rollout", "prescribed", "given", _held_kinds(graph), lambda _: False, remedy)
    remedy = "Train it first: nothing was gathered for its normalisers."
    ready = simulator.statistics.target.is_ready
    require("rollout", "simulator", "trained", ready, bool, remedy)
    if unseen := _unseen_kinds(simulator, graph):
        remedy = "Train on meshes that have these kinds of nodes too: normalised, they are numbers without bound."
        require("rollout", "graph", "of kinds of nodes that were trained on", unseen, lambda _: False, remedy)
    there = graph.node_mask[:, None]  # what padding holds is no divergence
    frames = jnp.where(there, frames, 0)
    prescribed = None if prescribed is None else jnp.where(there, prescribed, 0)
    return rollout_with(lambda f, x: simulator.step(graph, f, x), frames, num_steps, prescribed, limit)


def relative_errors(
    states: Float[Array, "t n d"], truth: Float[Array, "t n d"], graph: Graph
) -> tuple[Float[Array, " t"], Float[Array, ""]]:
    """√(Σ|x − x*|² / Σ|x* − mean|²) over the free nodes: of every step, and of all.

    The mean is over time and each node's own, so that 1 is the error of who knows where things are and not how they
    move. Of every step it is relative to the same typical spread.

    states, truth: predicted and true, of every step. graph: says which nodes are free.
    """
    free = free_nodes(graph)[None, :, None]
    squares = jnp.sum(jnp.where(free, (states - truth) ** 2, 0), (1, 2))
    spread = jnp.sum(jnp.where(free, (truth - jnp.mean(truth, 0)) ** 2, 0))
    return jnp.sqrt(squares * states.shape[0] / spread), jnp.sqrt(jnp.sum(squares) / spread)


def _held_kinds(graph: Graph) -> Any:
    held = graph.node_mask & ~free_nodes(graph)
    if isinstance(held, Tracer):
        return "none"
    kinds = np.unique(np.asarray(graph.nodes.kind)[np.asarray(held)])
    return [NodeKind(kind).name for kind in kinds.tolist()]


def _unseen_kinds(simulator: MeshSimulator, graph: Graph) -> list[str]:
    """Kinds of nodes of which the normalisers have seen none, by name; none where that is not known yet (in jit)."""
    mean, kinds = simulator.statistics.node.statistics.mean, graph.nodes.kind
    if any(isinstance(array, Tracer) for array in (mean, kinds, graph.node_mask)):
        return []
    begin = mean.shape[-1] - graph.nodes.extra.shape[-1] - len(NodeKind)  # kinds stand before what is extra
    shares = np.asarray(mean)[begin : begin + len(NodeKind)]
    present = np.unique(np.asarray(kinds)[np.asarray(graph.node_mask)])
    return [NodeKind(kind).name for kind in present.tolist() if shares[kind] == 0]
