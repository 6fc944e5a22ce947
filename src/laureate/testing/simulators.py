"""What every learned simulator on a graph promises."""

from collections.abc import Collection, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from laureate._core import Status
from laureate.layers import pad_graph
from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    inexact_types,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_mesh_trainer", "check_simulator"]


def check_simulator(
    simulator: Any, graph: Any, frames: Any, *, unused: Collection[str] = (), skip: Collection[str] = ()
) -> list[str]:
    """Check ``step(graph, frames, following) -> (frames, info)`` of a simulator.

    simulator: an Equinox module whose step is for any graph. graph: small, without padding, with free and held nodes.
    frames: [h, n, d], float32.
    unused: numbers of the simulator that rightly change nothing, by the ends of their paths.
    skip: properties to leave out: those in the list that is returned.

    Properties: frames are moved on by one; held nodes take what is prescribed, and what is prescribed of free ones is
    not read; cost and status; no retrace on a second call; every number moves the nodes; the order of nodes and edges
    does not matter; padding changes nothing; a state that is not finite is reported; double precision stays so.
    """
    check = Check(type(simulator).__name__, skip)
    simulator = numbers_as_arrays(simulator)
    frames = np.asarray(frames, np.float32)  # by NumPy, here and below: outside jit every shape would be a program
    program = Program(lambda simulator, graph, frames, after: simulator.step(graph, frames, after))
    following = frames[-1] + np.float32(0.5)
    new, info = program(simulator, graph, frames, following)
    free = np.asarray([kind in (0, 5) for kind in np.asarray(graph.nodes.kind)])
    if check.wants("frames"):
        check.require(new.shape == frames.shape, f"{frames.shape}", new.shape, "")
        check.bits(np.asarray(new)[:-1], frames[1:], "the older frames moved up", "Drop the oldest, append the new.")
        held = np.asarray(new[-1])[~free]
        check.bits(held, np.asarray(following)[~free], "held nodes as prescribed", "Write them over the prediction.")
    if check.wants("free nodes are predicted from the past alone"):
        other = np.where(free[:, None], following + np.float32(7), following)
        again = program(simulator, graph, frames, other)[0]
        check.bits(again, new, "the same whatever is prescribed at free nodes", "The future leaks.")
    if check.wants("report"):
        found = {name: check.attribute(info, name, "See SimulatorInfo.") for name in ("cost", "status")}
        check.require(found["status"] == Status.OK, "status OK", found["status"], "")
        check.require(found["cost"] == 1, "a cost of 1", found["cost"], "")
    no_retrace(check, program, [lambda: program(simulator, graph, np.float32(0.9) * frames, following)], 0)
    every_number_is_used(check, simulator, lambda which: program(which, graph, frames, following)[0], unused)
    if check.wants("order"):
        turn = np.random.default_rng(0).permutation(graph.num_nodes)
        place = np.argsort(turn).astype(np.int32)  # the node that was i is now place[i]
        edges = np.random.default_rng(1).permutation(graph.num_edges)
        moved = eqx.tree_at(
            lambda g: (g.nodes, g.senders, g.receivers),
            graph,
            (
                jax.tree.map(lambda leaf: np.asarray(leaf)[turn], graph.nodes),
                place[np.asarray(graph.senders)][edges],
                place[np.asarray(graph.receivers)][edges],
            ),
        )
        turned = program(simulator, moved, frames[:, turn], following[turn])[0]
        check.close(np.asarray(turned)[:, place], new, 1e-4, "the same nodes in another order", "Use no node's number.")
    if check.wants("padding"):
        more = graph.num_nodes + 3, graph.num_edges + 5
        wide = np.pad(frames, ((0, 0), (0, 3), (0, 0)))
        padded = program(simulator, pad_graph(graph, *more), wide, np.pad(following, ((0, 3), (0, 0))))[0]
        check.close(
            np.asarray(padded)[:, : graph.num_nodes], new, 1e-5, "the same numbers beside padding", "Mask sums."
        )
    if check.wants("divergence"):
        lost = frames.copy()
        lost[-1, int(np.argmax(free))] = np.nan
        broken = program(simulator, graph, lost, following)[1]
        check.require(broken.status == Status.DIVERGED, "status DIVERGED for a state of nan", broken.status, "")
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide = lambda leaf: np.asarray(leaf, np.float64) if eqx.is_inexact_array(leaf) else leaf  # noqa: E731
            arguments = jax.tree.map(wide, (simulator, graph, frames, following))
            types = inexact_types(eqx.filter_eval_shape(lambda s, g, f, x: s.step(g, f, x)[0], *arguments))
        check.require(types == {"float64"}, "a state of float64", types, "Take the state's type.")
    return check.finish()


def check_mesh_trainer(
    trainer: Any,
    simulator: Any,
    graph: Any,
    windows: Any,
    *,
    others: Sequence[Any] = (),
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init``, ``gather`` and ``step`` of a trainer of simulators.

    windows: [b, h, n, d] of transitions, float32. others: the same trainer with other numbers; they compile nothing.
    unused: numbers of the trainer that rightly change nothing, by the ends of their paths.
    skip: properties to leave out: those in the list that is returned.

    Properties: a state keeps its shapes and goes on after it was saved; the same key gives the same bits, and gathering
    and a step use none twice; no retrace; every number is used; cost and status; what is not finite is reported and not
    learnt from.
    """
    check = Check(type(trainer).__name__, skip)
    trainer, others = numbers_as_arrays(trainer), [numbers_as_arrays(other) for other in others]
    windows, key = np.asarray(windows, np.float32), jax.random.key(5)
    program = Program(lambda trainer, key, windows, state: trainer.step(key, graph, windows, state))
    gather = eqx.filter_jit(lambda windows, state: trainer.gather(jax.random.key(4), graph, windows, state))
    with KeyRecorder() as recorder:
        begin = jax.block_until_ready(gather(windows, trainer.init(simulator)))
        loss, state, info = jax.block_until_ready(program(trainer, key, windows, begin))
        keys_used_once(check, recorder)
    check.fixed_shapes(begin, state)
    if check.wants("report"):
        found = {name: check.attribute(info, name, "See TrainerInfo.") for name in ("loss", "cost", "status")}
        check.require(found["cost"] == len(windows), f"a cost of {len(windows)}", found["cost"], "")
        check.require(found["status"] == Status.OK, "status OK", found["status"], "")
        check.require(np.isfinite(loss), "a finite loss", loss, "")
    calls = [lambda: program(trainer, jax.random.key(6), windows, state)]
    calls += [lambda other=other: program(other, key, windows, begin) for other in others]
    no_retrace(check, program, calls, len(others))
    if others and check.wants("numbers are used"):
        for other in others:
            again = program(other, key, windows, begin)[0]
            check.require(float(again) != float(loss), "another loss", "the same", "")
    every_number_is_used(check, trainer, lambda which: program(which, key, windows, begin)[0], unused)
    if check.wants("same key, same bits"):
        arrays = lambda tree: eqx.filter(tree, eqx.is_array)  # noqa: E731
        check.bits(arrays(program(trainer, key, windows, begin)[1]), arrays(state), "the same state", "")
        saved = program(trainer, key, windows, check.saved(begin))[1]
        check.bits(arrays(saved), arrays(state), "the same state from a saved one", "")
    if check.wants("divergence"):
        lost = windows.copy()
        lost[0, -1] = np.nan
        _, kept, info = program(trainer, key, lost, begin)
        check.require(info.status == Status.DIVERGED, "status DIVERGED for a window of nan", info.status, "")
        arrays = lambda tree: eqx.filter(tree, eqx.is_array)  # noqa: E731
        check.bits(arrays(kept), arrays(begin), "the state as it was", "Take no step that is not finite.")
    return check.finish()
