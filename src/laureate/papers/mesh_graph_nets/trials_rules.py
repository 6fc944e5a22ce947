"""The rules that stand beside a learned simulator, told what it is told; and the graph of a problem's mesh."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from laureate.graphs import MeshNodes, free_nodes
from laureate.lab.claim import Settings
from laureate.layers import Graph

__all__ = ["Step", "graph_of", "nodes_of", "rule"]

Step = Callable[[Graph, Array, Array], Array]  # (graph, two frames, the next state) -> the next state


def nodes_of(problem: Any, positions: Array) -> MeshNodes:
    """The nodes of many meshes, [m, ...]."""
    number, count = positions.shape[:2]
    kinds = jnp.broadcast_to(problem.kinds, (number, count))
    return MeshNodes(positions, kinds, jnp.zeros((number, count, 0), positions.dtype))


def graph_of(problem: Any, positions: Array) -> Graph:
    """The graph of one mesh of a problem; made of traced arrays too, for the problem's arrays are arguments."""
    nodes, edges = len(problem.kinds), len(problem.senders)
    own = MeshNodes(positions, problem.kinds, jnp.zeros((nodes, 0), positions.dtype))
    masks = jnp.ones(nodes, bool), jnp.ones(edges, bool)
    return Graph(own, None, problem.senders, problem.receivers, jnp.zeros(nodes, jnp.int32), *masks, 1)


def rule(arm: Settings, problem: Any, scale: Settings) -> Step:
    """What needs no training. All but "simple" are told the next motion of held nodes, as a network is.

    "simple": now · x_t + before · x_{t−1} + mean · (the mean of what was learnt from; on other meshes one number).
    "nearest": the change that followed the most similar state of all; "patch": of the most similar neighbourhood,
    node by node; "linear": least squares of the change on the numbers of a node's neighbourhood, up to ``arm.reach``
    edges away (0: as far as a network sees); "extrapolated": 2 x_t − x_{t−1}, and least squares of what that misses on
    how held nodes move otherwise. These rules know all trajectories of the pool, a network those that its seed has
    drawn. "reference": the truth.
    """
    if arm.model == "reference":
        return lambda graph, frames, following: following
    if arm.model == "simple":
        own = problem.train.mean((0, 1))

        def simple(graph: Graph, frames: Array, following: Array) -> Array:
            mean = own if graph.num_nodes == len(own) else own.mean(0)
            return arm.now * frames[-1] + arm.before * frames[-2] + arm.mean * mean

        return simple
    if arm.model in ("linear", "extrapolated"):
        return _regressed(problem, arm.model, arm.reach or scale.steps)
    change = (problem.train[:, 1:] - problem.train[:, :-1]).reshape(-1, *problem.train.shape[2:])
    seen = _patch if arm.model == "patch" else lambda graph, values: values
    told = lambda graph, state, following: seen(graph, _told(graph, state, following))  # noqa: E731
    rows = _of_all(problem, told, problem.train[:, :-1], problem.train[:, 1:])
    rows = rows.reshape(len(change), -1) if arm.model == "nearest" else rows.reshape(-1, rows.shape[-1])
    size = jnp.std(rows, 0) + 1e-8
    if arm.model == "nearest":
        row = lambda graph, *given: told(graph, *given).reshape(1, -1) / size  # noqa: E731
        return lambda graph, frames, after: frames[-1] + change[_closest(row(graph, frames[-1], after), rows / size)[0]]
    # Nodes whose change is given count for nothing: they are put out of reach.
    free = jnp.tile(free_nodes(graph_of(problem, problem.positions[0])), len(change))
    known, flat = jnp.where(free[:, None], rows / size, 1e6), change.reshape(-1, change.shape[-1])
    return lambda graph, frames, after: frames[-1] + flat[_closest(told(graph, frames[-1], after) / size, known)]


def _regressed(problem: Any, model: str, reach: int) -> Step:
    """Least squares of the change, or of what linear extrapolation misses, on the numbers of a neighbourhood."""

    def base(frames: Array) -> Array:
        return frames[-1] if model == "linear" else 2 * frames[-1] - frames[-2]

    def numbers(graph: Graph, frames: Array, following: Array) -> Array:
        told = _told(graph, base(frames), following)
        return _curved(graph, told if model == "linear" else told[:, told.shape[1] // 2 :], reach)

    older, old, next_ = (problem.train[:, k : problem.train.shape[1] - 2 + k] for k in range(3))
    frames = jnp.stack([older, old], 2)
    rows = _of_all(problem, numbers, frames, next_)
    missed = next_ - jax.vmap(jax.vmap(base))(frames)
    free = free_nodes(graph_of(problem, problem.positions[0]))
    rows, missed = (jnp.where(free[:, None], part, 0).reshape(-1, part.shape[-1]) for part in (rows, missed))
    size = jnp.sqrt(jnp.mean(rows**2, 0)) + 1e-8
    rows = rows / size
    moments = rows.T @ rows / len(rows) + 1e-6 * jnp.eye(rows.shape[1])
    weights = jnp.linalg.solve(moments, rows.T @ missed / len(rows))
    return lambda graph, frames, after: base(frames) + numbers(graph, frames, after) / size @ weights


def _of_all(problem: Any, function: Callable[..., Array], *runs: Array) -> Array:
    """The function of (graph, ...) of every frame of every training trajectory, on its own mesh."""
    graphs = jax.vmap(lambda p: graph_of(problem, p))(problem.positions)
    return jax.vmap(lambda graph, *run: jax.vmap(lambda *given: function(graph, *given))(*run))(graphs, *runs)


def _told(graph: Graph, state: Array, following: Array) -> Array:
    """The state, and the next motion of held nodes; of free nodes nobody is told what follows: [n, 2 d]."""
    return jnp.concatenate([state, jnp.where(free_nodes(graph)[:, None], 0, following - state)], -1)


def _closest(rows: Array, known: Array) -> Array:
    """The place of the nearest of the known rows, by |a − b|² = |a|² − 2ab + |b|²."""
    return jnp.argmin(jnp.sum(known**2, 1)[None] - 2 * rows @ known.T, axis=1)


def _patch(graph: Graph, state: Array) -> Array:
    """A node's numbers, how much more its neighbours have, and in which direction: [n, d (1 + 1 + k)]."""
    offset = graph.nodes.position[graph.senders] - graph.nodes.position[graph.receivers]
    more = state[graph.senders] - state[graph.receivers]
    slope = more[:, :, None] * (offset / jnp.sum(offset**2, -1, keepdims=True))[:, None]
    sums = graph.to_receivers(jnp.concatenate([more, slope.reshape(len(more), -1)], -1))
    return jnp.concatenate([state, sums], -1)


def _curved(graph: Graph, values: Array, reach: int) -> Array:
    """A neighbourhood's numbers, Σ (x_j − x_i) / |u_ij|², which is about a Laplacian, of it again and again, and 1."""
    offset = graph.nodes.position[graph.senders] - graph.nodes.position[graph.receivers]
    squares = jnp.sum(offset**2, -1, keepdims=True)
    parts = [_patch(graph, values), jnp.ones((len(values), 1))]
    for _ in range(reach):
        values = graph.to_receivers((values[graph.senders] - values[graph.receivers]) / squares)
        parts.append(values)
    return jnp.concatenate(parts, -1)
