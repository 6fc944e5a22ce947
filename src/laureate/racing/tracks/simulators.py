"""Simulators trained on recordings of a mesh, then left alone: how far from what really followed."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate._core import Status
from laureate.graphs import SimulatorInfo, free_nodes, mesh_graph, relative_errors, rollout_with, windows_of
from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view

__all__ = ["facts", "trial"]

FEWEST = 8  # recordings
GAMMA = {1: 1.0, 2: 0.1}  # the authors' share of the noise that the target corrects


def facts(problem: Any) -> dict[str, Any]:
    """What a simulator is made of, and how much the nodes move in a step."""
    motion = view(problem)
    shape, order = np.shape(motion.states), int(getattr(motion, "order", 1))
    nodes = len(np.asarray(motion.positions))
    if len(shape) != 4 or shape[0] < FEWEST or shape[1] < 4 or shape[2] != nodes:
        raise UserError(
            f"motion.states must be [recordings >= {FEWEST}, frames >= 4, {nodes} nodes, numbers]; got {list(shape)}."
        )
    if order not in (1, 2):
        raise UserError(f"motion.order must be 1 or 2; got {order}.")
    states = np.asarray(motion.states, float)
    if not np.isfinite(states).all():
        raise UserError("motion.states must be finite.", "Leave out recordings that are not.")
    try:
        graph = _graph(motion)
    except ValueError as error:
        raise UserError(f"motion: {error}") from None
    free = np.asarray(free_nodes(graph))
    if not free.any():
        raise UserError("motion.kinds must leave nodes to foretell: NORMAL or OUTFLOW; got none.")
    change = float(np.diff(states, n=order, axis=1)[:, :, free].std())
    if change == 0:
        raise UserError("motion.states must change; got nodes that all stand still.")
    return {
        "size": shape[3],
        "gamma": GAMMA[order],
        "change": float(f"{change:.3g}"),
        "spaces": "mesh" if order == 1 else "both",
        "scripted": bool(np.diff(states, axis=1)[:, :, ~free].any()),
        "smallest": 512,
        "code": {"integrator": "FirstOrder()" if order == 1 else "SecondOrder()"},
    }


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same batches and noise for all entrants of a seed; who is not trained has the same quality at any cost."""
    clock, motion, settings = Clock(scale), view(problem), traced(arm)
    graph, states = _graph(motion), jnp.asarray(motion.states, jnp.float32)
    order = np.random.default_rng(0).permutation(len(states))  # which recordings are whose is no matter of seeds
    half, quarter = len(order) // 2, len(order) // 4
    first = half if scale.phase == "tune" else half + quarter
    train, judged = states[order[:half]], states[order[first : first + quarter]]
    begin_key, run_key = jax.random.split(key)
    sizes = int(scale.batch), int(scale.warmup)
    carry = clock.run(_begin, settings, graph, train, begin_key, *sizes)
    for target in clock.targets():
        trained = carry[0] is not None
        if trained:
            carry = clock.run(_advance, settings, graph, train, run_key, carry, jnp.asarray(target, jnp.int32), *sizes)
        found = {"error": 0.0, "step": 0.0}
        if not clock.pilot:
            found = clock.run(_judge, settings, graph, judged, carry[0], free=True)
        clock.note(int(carry[2]) if trained else target, **found)
        if clock.pilot and not trained:
            break
    return clock.record()


def _graph(motion: Any) -> Any:
    kinds = getattr(motion, "kinds", np.zeros(len(np.asarray(motion.positions)), np.int32))
    return mesh_graph(motion.positions, motion.cells, kinds)


def _begin(settings: dict, graph: Any, train: Any, key: Any, batch: int, warmup: int) -> Any:
    """Normalisers see a few batches before training, which costs what they hold."""
    make_key, draw_key, disturb_key = jax.random.split(key, 3)
    simulator, trainer = made(settings)(make_key, graph)
    zero = jnp.asarray(0, jnp.int32)
    if trainer is None:
        return None, zero, zero
    state = trainer.init(simulator)
    windows, _ = windows_of(draw_key, train, simulator.integrator.num_frames + 1, batch * warmup)
    return trainer.gather(disturb_key, graph, windows, state), zero, jnp.asarray(batch * warmup, jnp.int32)


def _advance(settings: dict, graph: Any, train: Any, key: Any, carry: Any, target: Any, batch: int, warmup: int) -> Any:
    _, trainer = made(settings)(key, graph)
    state, count, cost = carry
    arrays, rest = eqx.partition(state, eqx.is_array)
    length = state.simulator.integrator.num_frames + 1

    def update(arrays, index):
        draw, disturb = jax.random.split(jax.random.fold_in(key, index))
        windows, _ = windows_of(draw, train, length, batch)
        _, state, info = trainer.step(disturb, graph, windows, eqx.combine(arrays, rest))
        return eqx.filter(state, eqx.is_array), info.cost

    arrays, count, cost = spend(update, arrays, count, cost, target)
    return eqx.combine(arrays, rest), count, cost


def _judge(settings: dict, graph: Any, judged: Any, state: Any) -> dict[str, Any]:
    free = free_nodes(graph)[:, None]
    if state is None:
        law, _ = made(settings)(jax.random.key(0), graph)
        fine = SimulatorInfo(jnp.asarray(1), jnp.asarray(int(Status.OK)), jnp.asarray(0))

        def by_law(frames, following):
            return jnp.stack([frames[-1], jnp.where(free, law(frames), following)]), fine

        step, looked_at = by_law, 2
    else:
        step, looked_at = functools.partial(state.simulator.step, graph), state.simulator.integrator.num_frames

    def one(states):
        found, info = rollout_with(step, states[2 - looked_at : 2], len(states) - 2, states[2:])
        steps, whole = relative_errors(found, states[2:], graph)
        return jnp.where(info.status == Status.OK, jnp.stack([whole, steps[0]]), jnp.nan)

    error, step_error = jnp.mean(jax.vmap(one)(judged), axis=0)
    return {"error": error, "step": step_error}
