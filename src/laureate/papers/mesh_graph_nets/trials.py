"""The trials of MeshGraphNets: train a simulator on trajectories, judge it by others; simple rules beside it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate._core import Status
from laureate.graphs import (
    FirstOrder,
    MeshNodes,
    MeshSimulator,
    MeshTrainer,
    SecondOrder,
    TrainingNoise,
    fit_simulator,
    free_nodes,
    make_simulator,
    rollout_with,
)
from laureate.lab.claim import Settings
from laureate.layers import Graph

__all__ = ["features", "graph_of", "noise", "reach", "spread_of", "stepper", "trained", "transitions"]

Step = Callable[[Graph, Array, Array], Array]  # (graph, two frames, the next state) -> the next state
LIMIT = 20.0  # a state so many times larger than any that was learnt from is stopped


class Report(NamedTuple):
    """What happened: ``status`` as a rollout reads it."""

    status: Array


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


def spread_of(problem: Any) -> Array:
    """The deviation of the state at free nodes from each node's own mean over time: the unit of the noise."""
    free = free_nodes(graph_of(problem, problem.positions[0]))
    squares = (problem.train - problem.train.mean(1, keepdims=True)) ** 2
    number = jnp.sum(free) * squares.size / squares.shape[2]
    return jnp.sqrt(jnp.sum(jnp.where(free[:, None], squares, 0)) / number)


def drawn(key: Array, pool: int, number: int) -> Array:
    """Which of a pool of trajectories a seed takes, in any order, none twice; all where there are no more."""
    return jax.random.permutation(key, pool)[: min(number, pool)]


def trained(key: Array, arm: Settings, problem: Any, scale: Settings, num_steps: int | None = None) -> MeshSimulator:
    """A simulator after ``scale.updates`` updates on trajectories that the seed draws out of the problem's.

    On ``scale.learn`` of them, or on the first ``arm.trajectories`` of these (0: on all).
    """
    draw_key, make_key, fit_key = jax.random.split(key, 3)
    graph = graph_of(problem, problem.positions[0])
    integrator = SecondOrder() if problem.order == 2 else FirstOrder(problem.shown)
    simulator = make_simulator(
        make_key,
        graph,
        integrator,
        problem.train.shape[-1],
        spaces=arm.spaces or problem.spaces,
        scripted=problem.scripted,
        latent=scale.latent,
        num_steps=num_steps or scale.steps,
        hidden_layers=scale.hidden,
    )
    # Fewer trajectories are the first ones again and again: the number may then be traced.
    order = drawn(draw_key, len(problem.train), scale.learn)
    number = jnp.where(jnp.asarray(arm.trajectories) > 0, arm.trajectories, len(order)).astype(int)
    chosen = order[jnp.arange(len(order)) % number]
    rate = optax.cosine_decay_schedule(scale.rate, scale.updates, alpha=0.01)
    optimiser = optax.flatten(optax.adam(rate))  # one vector of weights: a third of the programs' parts to compile
    noise = TrainingNoise(arm.noise * spread_of(problem), gamma=arm.gamma)
    nodes = jax.tree.map(lambda leaf: leaf[chosen], nodes_of(problem, problem.positions))
    simulator, _ = fit_simulator(
        fit_key,
        simulator,
        graph,
        problem.train[chosen],
        trainer=MeshTrainer(optimiser, noise),
        num_steps=scale.updates,
        batch=scale.batch,
        warmup=scale.warmup,
        nodes=nodes,
    )
    return simulator


def stepper(key: Array, arm: Settings, problem: Any, scale: Settings) -> Step:
    """What takes the state one step on: a trained network, or a rule that needs no training.

    "simple": now · x_t + before · x_{t−1} + mean · (the mean of what was learnt from; on other meshes one number).
    "nearest": the change that followed the most similar state of all; "patch": of the most similar neighbourhood,
    node by node; "linear": least squares of the change on the numbers of a node's neighbourhood.
    These rules know all trajectories of the pool, a network those that its seed has drawn. "reference": the truth.
    """
    if arm.model == "reference":
        return lambda graph, frames, following: following
    if arm.model == "network":
        simulator = trained(key, arm, problem, scale)
        return lambda graph, frames, following: simulator.step(
            graph, frames[-simulator.integrator.num_frames :], following
        )[0][-1]
    if arm.model == "simple":
        own = problem.train.mean((0, 1))

        def simple(graph: Graph, frames: Array, following: Array) -> Array:
            mean = own if graph.num_nodes == len(own) else own.mean(0)
            return arm.now * frames[-1] + arm.before * frames[-2] + arm.mean * mean

        return simple
    change = (problem.train[:, 1:] - problem.train[:, :-1]).reshape(-1, *problem.train.shape[2:])
    if arm.model == "nearest":
        states = problem.train[:, :-1].reshape(len(change), -1)
        return lambda graph, frames, following: frames[-1] + change[_closest(frames[-1].reshape(1, -1), states)[0]]
    graphs = jax.vmap(lambda p: graph_of(problem, p))(problem.positions)
    seen = _curved if arm.model == "linear" else _patch
    patches = jax.vmap(lambda g, run: jax.vmap(lambda state: seen(g, state))(run))(graphs, problem.train[:, :-1])
    patches = patches.reshape(-1, patches.shape[-1])
    size = jnp.std(patches, 0) + 1e-8
    free = jnp.tile(free_nodes(graph_of(problem, problem.positions[0])), len(change))
    flat = change.reshape(-1, change.shape[-1])
    if arm.model == "linear":
        # (AᵀA / n + 1e-6) w = Aᵀ y / n over the free nodes: the little that is added is for single precision.
        rows = jnp.where(free[:, None], patches / size, 0)
        moments = rows.T @ rows / jnp.sum(free) + 1e-6 * jnp.eye(rows.shape[1])
        weights = jnp.linalg.solve(moments, rows.T @ flat / jnp.sum(free))
        return lambda graph, frames, following: frames[-1] + _curved(graph, frames[-1]) / size @ weights
    # Nodes whose change is given count for nothing: they are put out of reach.
    known = jnp.where(free[:, None], patches / size, 1e6)
    return lambda graph, frames, following: frames[-1] + flat[_closest(_patch(graph, frames[-1]) / size, known)]


def _closest(rows: Array, known: Array) -> Array:
    """The place of the nearest of the known rows, by |a − b|² = |a|² − 2ab + |b|²."""
    return jnp.argmin(jnp.sum(known**2, 1)[None] - 2 * rows @ known.T, axis=1)


def _patch(graph: Graph, state: Array) -> Array:
    """A node's state, how much more its neighbours have, and in which direction: [n, d (1 + 1 + k)]."""
    offset = graph.nodes.position[graph.senders] - graph.nodes.position[graph.receivers]
    more = state[graph.senders] - state[graph.receivers]
    slope = more[:, :, None] * (offset / jnp.sum(offset**2, -1, keepdims=True))[:, None]
    sums = graph.to_receivers(jnp.concatenate([more, slope.reshape(len(more), -1)], -1))
    return jnp.concatenate([state, sums], -1)


def _curved(graph: Graph, state: Array) -> Array:
    """A neighbourhood's numbers, Σ (x_j − x_i) / |u_ij|², which is about a Laplacian, and 1."""
    offset = graph.nodes.position[graph.senders] - graph.nodes.position[graph.receivers]
    more = (state[graph.senders] - state[graph.receivers]) / jnp.sum(offset**2, -1, keepdims=True)
    return jnp.concatenate([_patch(graph, state), graph.to_receivers(more), jnp.ones((len(state), 1))], -1)


class Judged(NamedTuple):
    """Errors of test trajectories: of single steps [p], of rollouts step by step [p, t], and where they stopped [p].

    watched: [p, t], the last component at the free node that moves most: what a picture shows of a rollout.
    """

    one_step: Array
    by_step: Array
    failed_at: Array
    watched: Array


def judged(
    step: Step, problem: Any, limit: Array, horizon: int, length: int | None = None, which: Any = slice(None)
) -> Judged:
    """``horizon`` single steps from true frames, and rollouts of ``length`` steps (None: all) from two frames.

    Errors of rollouts are relative to the spread of the whole test trajectory, whatever the length; a single step's to
    the size of what is predicted, the change or the acceleration. which: of the test trajectories.
    """

    def one(positions: Array, truth: Array) -> tuple[Array, ...]:
        graph = graph_of(problem, positions)
        free = free_nodes(graph)[:, None]
        held = lambda new, following: jnp.where(free, new, following)  # noqa: E731
        older, old, next_ = (truth[k : horizon + k] for k in range(3))
        # A few at a time: the most similar of all neighbourhoods takes a gigabyte for a hundred.
        one_step = lambda given: held(step(graph, given[0], given[1]), given[1])  # noqa: E731
        new = jax.lax.map(one_step, (jnp.stack([older, old], 1), next_), batch_size=2)
        wanted = jnp.where(free, next_ - 2 * old + older if problem.order == 2 else next_ - old, 0)
        single = jnp.sqrt(jnp.sum((new - next_) ** 2) / jnp.sum(wanted**2))

        def forward(frames: Array, after: Array) -> tuple[Array, Report]:
            new = held(step(graph, frames, after), after)
            return jnp.stack([frames[-1], new]), Report(jnp.asarray(Status.OK))

        after = truth[2:]
        steps = length or len(after)
        states, info = rollout_with(forward, truth[:2], steps, after[:steps], limit)
        squares = jnp.sum(jnp.where(free, (states - after[:steps]) ** 2, 0), (1, 2))
        typical = jnp.sum(jnp.where(free, (after - after.mean(0)) ** 2, 0)) / len(after)
        node = jnp.argmax(jnp.where(free[:, 0], jnp.std(truth[..., -1], 0), 0))
        return single, jnp.sqrt(squares / typical), info.failed_at, states[:, node, -1]

    return Judged(*jax.vmap(one)(problem.test_positions[which], problem.test[which]))


def judged_by_draw(
    key: Array, arm: Settings, step: Step, problem: Any, limit: Array, scale: Settings, length: int | None = None
) -> Judged:
    """By ``scale.judge`` test trajectories that the seed draws; the first of all is for the picture and never drawn.

    A rule without training is the same in every seed: it is judged by all of them once, and the seed takes its own.
    """
    horizon = min(scale.horizon, problem.test.shape[1] - 2)
    later = min(1, len(problem.test) - 1)  # 0 where there is no other than the first
    which = jnp.append(later + drawn(key, len(problem.test) - later, scale.judge), 0)
    if arm.model == "network":
        found = judged(step, problem, limit, horizon, length, which)
    else:
        found = Judged(*(leaf[which] for leaf in judged(step, problem, limit, horizon, length)))
    return Judged(*(leaf[:-1] for leaf in found[:-1]), found.watched[-1])  # pyright: ignore[reportCallIssue]


def _limit(problem: Any) -> Array:
    return LIMIT * jnp.max(jnp.abs(problem.train))


def _log_root(errors: Array) -> Array:
    """log10 of the root mean square, over steps and trajectories."""
    return jnp.log10(jnp.sqrt(jnp.mean(errors**2)))


def _stopped(found: Judged) -> Array:
    return jnp.mean((found.failed_at < found.by_step.shape[1]).astype(float))


def _watched(arm: Settings, found: Judged, horizon: int) -> dict[str, Array]:
    """A rollout as a picture: one node of one trajectory, the same in all seeds; rules would only fill it."""
    if arm.model not in ("network", "reference"):
        return {}
    return {"watched": found.watched[:horizon], "watched_step": jnp.arange(float(len(found.watched[:horizon])))}


def transitions(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Errors of one step, of ``scale.horizon`` steps, of the end of long rollouts, and on other meshes."""
    train_key, *test_keys = jax.random.split(key, 2 + len(problem.others))
    step, limit, horizon = stepper(train_key, arm, problem, scale), _limit(problem), scale.horizon
    goes_far = arm.model in ("network", "simple", "linear")
    # Those that look all training data through are not asked for long rollouts.
    found = judged_by_draw(test_keys[0], arm, step, problem, limit, scale, None if goes_far else horizon)
    if arm.model == "reference":
        return _watched(arm, found, horizon)
    metrics = {
        "log_one_step": _log_root(found.one_step),
        "log_rollout": _log_root(found.by_step[:, :horizon]),
        "stopped": _stopped(found),
        **_watched(arm, found, horizon),
        "error_by_step": jax.vmap(_log_root, 1)(found.by_step)[:: scale.every],
        "step": jnp.arange(found.by_step.shape[1])[:: scale.every].astype(float),
    }
    if goes_far:
        late = _log_root(found.by_step[:, -(found.by_step.shape[1] // 4) :])
        metrics |= {"log_long": late, "log_growth": late - _log_root(found.by_step[:, horizon // 2 : horizon])}
        for test_key, (name, other) in zip(test_keys[1:], problem.others.items(), strict=True):
            there = judged_by_draw(test_key, arm, step, other, limit, scale)
            error = _log_root(there.by_step[:, :horizon])
            metrics |= {
                f"log_{name}": error,
                f"log_{name}_one_step": _log_root(there.one_step),
                f"log_{name}_growth": error - metrics["log_rollout"],
                f"stopped_{name}": _stopped(there),
            }
    return metrics


def features(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Errors of one step and of rollouts, and one rollout to look at."""
    train_key, test_key = jax.random.split(key)
    step = stepper(train_key, arm, problem, scale)
    found = judged_by_draw(test_key, arm, step, problem, _limit(problem), scale)
    if arm.model == "reference":
        return _watched(arm, found, scale.horizon)
    return {
        "log_one_step": _log_root(found.one_step),
        "log_rollout": _log_root(found.by_step[:, : scale.horizon]),
        "stopped": _stopped(found),
        **_watched(arm, found, scale.horizon),
    }


def reach(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The one-step error for several numbers of message-passing steps, all trained alike from the same key."""
    train_key, test_key = jax.random.split(key)
    counts = [int(word) for word in scale.counts.split()]
    errors, rollouts = [], []
    for count in counts:
        if arm.model == "network":
            simulator = trained(train_key, arm, problem, scale, num_steps=count)
            step = lambda graph, frames, after, s=simulator: s.step(graph, frames[-1:], after)[0][-1]  # noqa: E731
        else:
            step = stepper(train_key, arm, problem, scale)
        found = judged_by_draw(test_key, arm, step, problem, _limit(problem), scale)
        errors.append(_log_root(found.one_step))
        rollouts.append(_log_root(found.by_step))
    return {
        "log_one_step": jnp.stack(errors),
        "log_most_steps": errors[-1],
        "log_rollout": jnp.stack(rollouts),
        "log2_steps": jnp.log2(jnp.asarray(counts, float)),
        "rollout_gained": rollouts[0] - rollouts[-1],
    }


def noise(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Which rollouts fail (an error above 1 in some step), when, and how large the median error is."""
    train_key, test_key = jax.random.split(key)
    step = stepper(train_key, arm, problem, scale)
    found = judged_by_draw(test_key, arm, step, problem, _limit(problem), scale)
    within = found.by_step[:, : scale.horizon]
    lost = jnp.cumsum(found.by_step > 1, 1) > 0  # from the first such step on
    errors = jnp.sqrt(jnp.mean(within**2, 1))
    return {
        "failed": jnp.mean(jnp.any(within > 1, 1).astype(float)),
        "failed_at_end": jnp.mean(lost[:, -1].astype(float)),
        "log_median_error": jnp.log10(jnp.median(errors)),
        "log_worst_error": jnp.log10(jnp.max(errors)),
        "log_one_step": _log_root(found.one_step),
        "stopped": _stopped(found),
        "surviving": 1 - jnp.mean(lost.astype(float), 0)[:: scale.every],
        "step": jnp.arange(lost.shape[1])[:: scale.every].astype(float),
    }
