"""The trials of MeshGraphNets: train a simulator on trajectories, judge it by others."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate._core import Status
from laureate.graphs import (
    FirstOrder,
    MeshSimulator,
    MeshTrainer,
    SecondOrder,
    TrainerInfo,
    TrainingNoise,
    fit_simulator,
    free_nodes,
    make_simulator,
    rollout_with,
)
from laureate.lab.claim import Settings
from laureate.papers.mesh_graph_nets.trials_rules import Step, graph_of, nodes_of, rule

__all__ = ["features", "noise", "reach", "spread_of", "stepper", "trained", "training", "transitions"]

LIMIT = 20.0  # a state so many times larger than any that was learnt from is stopped


class Report(NamedTuple):
    """What happened: ``status`` as a rollout reads it."""

    status: Array


def spread_of(problem: Any) -> Array:
    """The deviation of the state at free nodes from each node's own mean over time: the unit of the noise."""
    free = free_nodes(graph_of(problem, problem.positions[0]))
    squares = (problem.train - problem.train.mean(1, keepdims=True)) ** 2
    number = jnp.sum(free) * squares.size / squares.shape[2]
    return jnp.sqrt(jnp.sum(jnp.where(free[:, None], squares, 0)) / number)


def drawn(key: Array, pool: int, number: int) -> Array:
    """Which of a pool of trajectories a seed takes, in any order, none twice; all where there are no more."""
    return jax.random.permutation(key, pool)[: min(number, pool)]


def trained(
    key: Array, arm: Settings, problem: Any, scale: Settings, num_steps: int | None = None
) -> tuple[MeshSimulator, TrainerInfo]:
    """A simulator after ``scale.updates`` updates on trajectories that the seed draws, and the updates' infos.

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
        num_hidden_layers=scale.hidden,
    )
    # Fewer trajectories are the first ones again and again: the number may then be traced.
    order = drawn(draw_key, len(problem.train), scale.learn)
    number = jnp.where(jnp.asarray(arm.trajectories) > 0, arm.trajectories, len(order)).astype(int)
    chosen = order[jnp.arange(len(order)) % number]
    rate = optax.cosine_decay_schedule(scale.rate, scale.updates, alpha=0.01)
    optimiser = optax.flatten(optax.adam(rate))  # one vector of weights: a third of the programs' parts to compile
    noise = TrainingNoise(arm.noise * spread_of(problem), gamma=arm.gamma)
    nodes = jax.tree.map(lambda leaf: leaf[chosen], nodes_of(problem, problem.positions))
    return fit_simulator(
        fit_key,
        simulator,
        graph,
        problem.train[chosen],
        trainer=MeshTrainer(optimiser, noise),
        num_steps=scale.updates,
        batch=scale.batch,
        num_warmup=scale.warmup,
        nodes=nodes,
    )


def training(info: TrainerInfo) -> dict[str, Array]:
    """How the training went: updates that were not made because something was not finite, and the loss at the end.

    The loss is the mean over the last tenth of the updates, as log10; who has learnt nothing has the number of the
    state's components.
    """
    last = info.loss[-max(1, info.loss.shape[0] // 10) :]
    return {"refused": jnp.sum(info.status != Status.OK).astype(float), "log_train_loss": jnp.log10(jnp.mean(last))}


def stepper(
    key: Array, arm: Settings, problem: Any, scale: Settings, num_steps: int | None = None
) -> tuple[Step, dict[str, Array]]:
    """What takes the state one step on, a trained network or a rule; and of a network how its training went."""
    if arm.model != "network":
        return rule(arm, problem, scale), {"refused": jnp.zeros(())}  # of no updates
    simulator, info = trained(key, arm, problem, scale, num_steps)
    return stepping(simulator), training(info)


def stepping(simulator: MeshSimulator) -> Step:
    """By a network."""
    number = simulator.integrator.num_frames
    return lambda graph, frames, following: simulator.step(graph, frames[-number:], following)[0][-1]


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
    (step, report), limit, horizon = stepper(train_key, arm, problem, scale), _limit(problem), scale.horizon
    goes_far = arm.model in ("network", "simple", "linear")
    # Those that look all training data through are not asked for long rollouts.
    found = judged_by_draw(test_keys[0], arm, step, problem, limit, scale, None if goes_far else horizon)
    if arm.model == "reference":
        return _watched(arm, found, horizon)
    metrics = {
        "log_one_step": _log_root(found.one_step),
        "log_rollout": _log_root(found.by_step[:, :horizon]),
        "stopped": _stopped(found),
        **report,
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
    step, report = stepper(train_key, arm, problem, scale)
    found = judged_by_draw(test_key, arm, step, problem, _limit(problem), scale)
    if arm.model == "reference":
        return _watched(arm, found, scale.horizon)
    return {
        "log_one_step": _log_root(found.one_step),
        "log_rollout": _log_root(found.by_step[:, : scale.horizon]),
        "stopped": _stopped(found),
        **report,
        **_watched(arm, found, scale.horizon),
    }


def reach(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The one-step error for several numbers of message-passing steps, all trained alike from the same key."""
    train_key, test_key = jax.random.split(key)
    counts = [int(word) for word in scale.counts.split()]
    errors, rollouts, reports = [], [], []
    for count in counts:
        step, report = stepper(train_key, arm, problem, scale, count)
        reports.append(report)
        found = judged_by_draw(test_key, arm, step, problem, _limit(problem), scale)
        errors.append(_log_root(found.one_step))
        rollouts.append(_log_root(found.by_step))
    return {
        "log_one_step": jnp.stack(errors),
        "log_most_steps": errors[-1],
        "log_rollout": jnp.stack(rollouts),
        "log2_steps": jnp.log2(jnp.asarray(counts, float)),
        "rollout_gained": rollouts[0] - rollouts[-1],
        **jax.tree.map(lambda *parts: jnp.max(jnp.stack(parts)), *reports),  # the worst of them
    }


def noise(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Which rollouts fail (an error above 1 in some step), when, and how large the median error is."""
    train_key, test_key = jax.random.split(key)
    step, report = stepper(train_key, arm, problem, scale)
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
        **report,
        "surviving": 1 - jnp.mean(lost.astype(float), 0)[:: scale.every],
        "step": jnp.arange(lost.shape[1])[:: scale.every].astype(float),
    }
