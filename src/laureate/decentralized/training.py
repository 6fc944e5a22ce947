"""The loop most users write, compiled: all nodes in this process, or each in a process of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from laureate import loops
from laureate._core import require
from laureate.decentralized.optimiser import DecentralizedOptimiser, Info

__all__ = ["History", "TrainState", "place", "stack", "train"]

Gradient = Callable[[Array, Any, Any], Any]


class TrainState(NamedTuple):
    """All that training needs to go on, to be given back as ``train(start=...)``.

    params: of all nodes, which lead every leaf. optimiser: its state. round: how many rounds were made.
    """

    params: Any
    optimiser: Any
    round: Array


class History(NamedTuple):
    """What was recorded.

    round: at every record, the rounds done since the very start. cost: bytes sent by all nodes until then.
    info: ``Info`` of the parameters then. recorded: ``record(params)``. last: from where to go on.
    """

    round: Array
    cost: Array
    info: Info
    recorded: Any
    last: TrainState


def stack(params: Any, size: int) -> Any:
    """The same parameters on every node: a leading axis of ``size`` nodes."""
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (size, *jnp.shape(x))), params)


def place(tree: Any, mesh: Mesh) -> Any:
    """A stacked tree with every node's part on its own device only."""
    sharding = NamedSharding(mesh, Spec(mesh.axis_names[0]))

    def one(leaf):
        if isinstance(leaf, jax.Array) and leaf.sharding == sharding:
            return leaf
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(one, tree)


def train(
    key: Array,
    optimiser: DecentralizedOptimiser,
    gradient: Gradient,
    params: Any,
    num_rounds: int,
    *,
    data: Any = None,
    start: TrainState | None = None,
    record: Callable[[Any], Any] | None = None,
    every: int = 1,
    mesh: Mesh | None = None,
    progress: Callable[[loops.Progress], None] | None = None,
    checkpoint: str | Path | None = None,
) -> tuple[Any, History]:
    """Run ``num_rounds`` updates of all nodes.

    key: the whole run's. Node i's gradient in round t gets a key made from t and i alone, so that a run in parts equals
        a run in one go, and a run over processes one in a single process.
    optimiser: any of this package, over stacked trees (not ``over`` an axis: that is done here where needed).
    gradient: ``gradient(key, params, data)`` of *one* node, at its parameters on its data.
    params: stacked; ``stack`` makes them. Not looked at if ``start`` is given.
    data: a tree whose leaves have a leading axis of nodes: node i sees row i alone.
    start: the ``History.last`` of an earlier call, to go on from.
    record: a function of all nodes' parameters, computed every ``every`` rounds, which must divide ``num_rounds``.
        Over processes this gathers them all: it is for watching, and not among the bytes counted.
    mesh: None: all nodes here. A mesh of one axis with one device a node, such as ``connect()`` gives: every node lives
        on its own device, and only ``ppermute`` along the graph's edges carries anything between them.
    progress: called about every second with a ``laureate.loops.Progress``; not with a mesh.
    checkpoint: a file; the same call again, with as many rounds or more, goes on from it. Not with a mesh.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.decentralized import DPSGD, Gossip, ring
    >>> optimiser = DPSGD(Gossip(ring(4)), learning_rate=0.1)
    >>> pull = lambda key, x, target: x - target
    >>> params, history = train(jax.random.key(0), optimiser, pull, jnp.zeros(4), 20, data=jnp.arange(4.0), every=10)
    >>> history.cost.tolist(), params.shape
    ([320.0, 640.0], (4,))
    """
    require("train", "num_rounds", "an integer >= 1", num_rounds, lambda n: isinstance(n, int) and n >= 1)
    rule = f"a divisor of num_rounds ({num_rounds})"
    require("train", "every", rule, every, lambda n: isinstance(n, int) and n >= 1 and num_rounds % n == 0)
    require("train", "optimiser.gossip.axis", "None", optimiser.gossip.axis, lambda axis: axis is None)
    _check_rows(data, optimiser.gossip.size)
    if mesh is None:
        if start is None:
            start = TrainState(params, optimiser.init(params), jnp.zeros((), jnp.int32))
        step, watch = Round(key, optimiser, gradient, data), Watch(optimiser, record)
        more = {"first": start.round, "every": every, "record": watch, "progress": progress, "checkpoint": checkpoint}
        last, _, recorded, _ = loops.run(step, start, num_rounds, **more)
        return last.params, History(*recorded, last=last)
    remedy = "With a mesh, run in parts: train(start=history.last)."
    for field, value in (("progress", progress), ("checkpoint", checkpoint)):
        require("train", field, "None with a mesh", value, lambda v: v is None, remedy)
    size = optimiser.gossip.size
    remedy = f"{size} nodes need {size} devices: start as many processes, or leave mesh out."
    require("train", "mesh", f"of one axis with {size} devices", mesh.devices.shape, lambda s: s == (size,), remedy)
    if start is None:
        optimiser.check(params, stacked=True)
    placed = place((params if start is None else start, data), mesh)
    # What every node knows travels as plain numbers, for a process may only give what lies on its own device.
    known = jax.tree.map(np.asarray, eqx.filter(optimiser, eqx.is_array))
    rest = eqx.filter(optimiser, eqx.is_array, inverse=True)
    return _run_over(
        *(jax.random.key_data(key), jax.random.key_impl(key), known, rest, gradient, placed),
        *(num_rounds, record, every, mesh, start is None),
    )


def _check_rows(data: Any, size: int) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(data):
        rule = f"of trees whose leaves have a leading axis of {size} nodes"
        remedy = f"Node i sees row i alone: data.reshape({size}, -1, *data.shape[1:]) deals equal shares out in order."
        name = "data" + jax.tree_util.keystr(path)
        require("train", name, rule, jnp.shape(leaf), lambda shape: shape[:1] == (size,), remedy)


@eqx.filter_jit
def _run_over(key_data, implementation, known, rest, gradient, placed, num_rounds, record, every, mesh, begin):
    axis = mesh.axis_names[0]

    def on_node(key_data, known, placed):
        given, data = jax.tree.map(lambda leaf: leaf[0], placed)
        optimiser = eqx.combine(known, rest).over(axis)
        if begin:
            given = TrainState(given, optimiser.init(given), jnp.zeros((), jnp.int32))
        key = jax.random.wrap_key_data(key_data, impl=implementation)
        step, watch = Round(key, optimiser, gradient, data), Watch(optimiser, record)
        last, (_, recorded) = loops.repeat(step, given, given.round, num_rounds // every, every=every, record=watch)
        last = jax.tree.map(lambda leaf: leaf[None], last)
        return last.params, History(*recorded, last=last)

    seen = History(Spec(), Spec(), Spec(), Spec(), Spec(axis))  # pyright: ignore
    run = jax.shard_map(
        on_node, mesh=mesh, in_specs=(Spec(), Spec(), Spec(axis)), out_specs=(Spec(axis), seen), check_vma=False
    )
    return run(key_data, known, placed)


class Round(eqx.Module):
    """One round of all nodes, or of this node where the optimiser is over an axis, by its absolute index."""

    key: Array
    optimiser: DecentralizedOptimiser
    gradient: Gradient
    data: Any

    def __call__(self, state: TrainState, index: Array) -> tuple[TrainState, None]:
        """The next state."""
        grads = self.gradients(index, state.params)
        updates, memory = self.optimiser.update(grads, state.optimiser, state.params)
        return TrainState(optax.apply_updates(state.params, updates), memory, index + 1), None

    def gradients(self, index: Array, params: Any) -> Any:
        """Of every node at its own parameters, with a key of its own."""
        axis, size = self.optimiser.gossip.axis, self.optimiser.gossip.size
        own = jax.random.fold_in(self.key, index)
        if axis is not None:
            return self.gradient(jax.random.fold_in(own, jax.lax.axis_index(axis)), params, self.data)
        keys = jax.vmap(lambda node: jax.random.fold_in(own, node))(jnp.arange(size))
        return jax.vmap(self.gradient)(keys, params, self.data)


class Watch(eqx.Module):
    """What is kept of a state: round, bytes sent so far, ``Info``, and the user's function of all parameters."""

    optimiser: DecentralizedOptimiser
    function: Callable[[Any], Any] | None

    def __call__(self, state: TrainState) -> tuple[Array, Array, Info, Any]:
        """The four of them."""
        axis = self.optimiser.gossip.axis
        everyone = state.params if axis is None else jax.lax.all_gather(state.params, axis)
        cost = state.round.astype(float) * self.optimiser.sent(state.params)
        recorded = None if self.function is None else self.function(everyone)
        return state.round, cost, self.optimiser.over(None).inspect(everyone), recorded
