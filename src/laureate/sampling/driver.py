"""Many chains at once, in chunks, with progress: the loop one would otherwise write oneself."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec
from jaxtyping import Array, Key

from laureate import loops
from laureate._core import Status, require
from laureate.loops import Progress
from laureate.sampling._kernel import DiscreteKernel, Tree, warn_if_flat
from laureate.sampling.parallel_tempering import ParallelTempering

__all__ = ["Progress", "Run", "run"]


class Run(NamedTuple):
    """What a run gives.

    samples: what ``collect`` returned, chains first, then kept steps.
    state: the chains' states after the last step; pass it on as ``state`` with ``first_step`` to continue.
    acceptance_rate: mean over steps, one a chain.
    num_nan: steps that met NaN, as a log density or a ratio, and did not go there, one count a chain.
    cost: evaluations of the log density, one sum a chain.
    """

    samples: Tree
    state: Any
    acceptance_rate: np.ndarray
    num_nan: np.ndarray
    cost: np.ndarray


def _position(state: Any, info: Any) -> Tree:
    return state.position


def run(
    key: Key[Array, ""],
    kernel: Any,
    position: Tree = None,
    num_steps: int = 1000,
    *,
    state: Any = None,
    first_step: int = 0,
    thin: int = 1,
    collect: Callable[[Any, Any], Tree] = _position,
    chunk: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    mesh: Mesh | None = None,
) -> Run:
    """Run one chain for every entry of ``position``'s first axis.

    Keys come from the chain's number and the absolute step, so neither ``chunk`` nor stopping and continuing changes a
    sample. Only what ``collect`` returns is kept, every ``thin`` steps.

    kernel: anything with BlackJAX's ``init(position)`` and ``step(key, state)``. What only the first chain's ``init``
        could refuse, ``check_positions(positions)`` may refuse of all, where there is one.
    position: starting positions, stacked; or pass the ``state`` of an earlier run and its number of steps as
        ``first_step``.
    num_steps: a multiple of ``thin``.
    collect: from (state, info) to what is kept.
    chunk: steps between calls of ``progress``, about; by default as many as take a second, at most 1,000.
    progress: called with a `Progress` after every chunk.
    checkpoint: a file; the same call again, with as many steps or more, goes on from it. Not with a mesh.
    mesh: of one axis; the chains are split over its devices, also of several hosts under ``jax.distributed``. Each
        draws what it would draw without; nothing travels but what is kept, and every host gets all of that.

    >>> from laureate.sampling import Binary, GibbsWithGradients
    >>> kernel = GibbsWithGradients(lambda x: jnp.sum(x), Binary(), lazy=0.1)
    >>> result = run(jax.random.key(0), kernel, jnp.zeros((4, 6), bool), 100, thin=2)
    >>> result.samples.shape
    (4, 50, 6)
    """
    require("run", "thin", ">= 1", thin, lambda n: n >= 1)
    require("run", "num_steps", f">= 1 and a multiple of thin = {thin}", num_steps, lambda n: n >= 1 and n % thin == 0)
    require("run", "chunk", "None or >= 1", chunk, lambda n: n is None or n >= 1)
    if (position is None) == (state is None):
        raise ValueError("run: pass either position or state; got " + ("neither." if state is None else "both."))
    kernel = loops.firm(kernel)
    if state is None:
        state = _start(kernel, position)
    elif hasattr(kernel, "check_state"):  # its states hold for its own settings alone
        kernel.check_state(jax.tree.map(lambda leaf: leaf[0], state))
    num_chains = jax.tree.leaves(state)[0].shape[0]
    if mesh is None:
        step, watch = Step(key, kernel, jnp.arange(num_chains)), Collect(collect)
        more = {"first": first_step, "every": thin, "record": watch, "chunk": chunk}
        given = Chains(state, step.no_info(state))
        last, seen, samples, _ = loops.run(step, given, num_steps, progress=progress, checkpoint=checkpoint, **more)
        state = last.state
    else:
        rule = f"a multiple of the {mesh.size} devices of the mesh"
        require("run", "number of chains", rule, num_chains, lambda n: n % mesh.size == 0)
        require("run", "checkpoint", "None with a mesh", checkpoint, lambda path: path is None)
        size = max(1, (1000 if chunk is None else chunk) // thin)

        def advance(state: Any, done: int, count: int) -> Any:
            return _advance_over(key, kernel, collect, state, first_step + done * thin, count, size, thin, mesh)

        state, (seen, samples) = loops.chunks(
            advance,
            _place(state, mesh),
            num_steps // thin,
            size,
            steps_per_block=thin,
            progress=progress,
            adapt=chunk is None,
        )
        seen = jax.tree.map(lambda leaf: leaf.reshape(-1, num_chains), seen)
    rate, bad, cost = (np.asarray(leaf) for leaf in seen)
    nans = bad.sum(0)
    if nans.any():
        warnings.warn(
            f"{nans.sum()} steps met NaN, as log density or ratio, and did not go there; is f finite?", stacklevel=2
        )
    samples = jax.tree.map(lambda leaf: np.ascontiguousarray(np.moveaxis(np.asarray(leaf), 0, 1)), samples)
    return Run(samples, state, rate.mean(0, dtype=float), nans, cost.sum(0, dtype=int))


def _start(kernel: Any, position: Tree) -> Any:
    """The chains' states, as one program; what can be seen only outside of it is checked first and last."""
    first = jax.tree.map(lambda leaf: np.asarray(leaf[0]), position)
    tempered = isinstance(kernel, ParallelTempering)
    single = kernel.kernel if tempered else kernel
    if hasattr(single, "layout"):
        layout = single.layout(first)
        layout.check_all("position", position, single.category_mask)
        layout.check_masks(type(single).__name__, single.site_mask, single.category_mask)
        jax.eval_shape(kernel.init, first)  # what it asks of its own settings
    else:
        if hasattr(kernel, "check_positions"):  # of all chains
            kernel.check_positions(position)
        kernel.init(first)  # eagerly, for its checks: in a program values cannot be seen
    state = _begin(kernel, jax.tree.map(jnp.asarray, position))
    # All replicas of a chain begin at its position.
    begun = jax.tree.map(lambda leaf: leaf[:, 0], state.replicas) if tempered else state
    if isinstance(single, DiscreteKernel) and hasattr(begun, "differences"):
        _warn_if_flat(single, first, begun.differences)
    finite = np.isfinite(np.asarray(getattr(begun, "logdensity", 0.0)))
    if not finite.all():
        raise ValueError(f"initial state has zero probability in chains {np.flatnonzero(~finite).tolist()}.")
    return state


def _warn_if_flat(kernel: DiscreteKernel, first: Tree, differences: Array) -> None:
    """By chain 0; elsewhere by the program that has begun all chains."""

    def elsewhere() -> Array:
        other = kernel.scattered(kernel.layout(first), first)
        chains = jax.tree.map(lambda leaf: jnp.asarray(np.repeat(leaf[None], len(differences), axis=0)), other)
        return _begin(kernel, chains).differences[0]

    warn_if_flat(np.asarray(differences)[0], elsewhere)


@eqx.filter_jit
def _begin(kernel: Any, position: Tree) -> Any:
    return jax.vmap(kernel.init)(position)


def _place(state: Any, mesh: Mesh) -> Any:
    """Every device has its own chains only."""
    sharding = NamedSharding(mesh, Spec(mesh.axis_names[0]))

    def one(leaf):
        if isinstance(leaf, jax.Array) and leaf.sharding == sharding:
            return leaf
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(one, state)


class Chains(NamedTuple):
    """The chains' states, and what their last steps said (the proposal among it: it is carried, not stacked)."""

    state: Any
    info: Any


class Step(eqx.Module):
    """One step of the chains of these numbers, all at once; a chain's keys come from its number and the step alone."""

    key: Array
    kernel: Any
    numbers: Array

    def __call__(self, chains: Chains, index: Array) -> tuple[Chains, Any]:
        """The chains after the step; acceptance rate, whether the ratio was NaN, and cost, of each."""
        state, info = self._step(chains.state, index)
        rate = jax.vmap(jnp.mean)(info.acceptance_rate)
        return Chains(state, info), (rate, info.status == int(Status.DIVERGED), info.cost)

    def no_info(self, state: Any) -> Any:
        """Zeros in the form of a step's info."""
        shapes = jax.eval_shape(self._step, state, jnp.asarray(0, jnp.int32))[1]
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def _step(self, state: Any, index: Array) -> Any:
        def one(number: Array, state: Any) -> Any:
            own = jax.random.fold_in(jax.random.fold_in(self.key, number), index)
            return self.kernel.step(own, state)

        return jax.vmap(one)(self.numbers, state)


class Collect(eqx.Module):
    """What is kept of the chains."""

    function: Callable[[Any, Any], Tree]

    def __call__(self, chains: Chains) -> Tree:
        """The user's function of each chain's state and info."""
        return jax.vmap(self.function)(chains.state, chains.info)


def _advance_over(
    key: Array, kernel: Any, collect: Callable, state: Any, first: int, count: int, size: int, thin: int, mesh: Mesh
) -> Any:
    # What every device knows travels as plain numbers, for a process may only give what lies on its own devices.
    numbers = np.int32(first), np.int32(count)
    known = jax.tree.map(np.asarray, (jax.random.key_data(key), eqx.filter(kernel, eqx.is_array), *numbers))
    rest = eqx.filter(kernel, eqx.is_array, inverse=True)
    return _split(known, rest, collect, state, size, thin, mesh, jax.random.key_impl(key))


@eqx.filter_jit
def _split(
    known: Any, rest: Any, collect: Callable, state: Any, size: int, thin: int, mesh: Mesh, implementation: Any
) -> Any:
    axis = mesh.axis_names[0]

    def on_device(known, state):
        key_data, arrays, first, count = known
        key = jax.random.wrap_key_data(key_data, impl=implementation)
        here = jax.tree.leaves(state)[0].shape[0]
        numbers = jax.lax.axis_index(axis) * here + jnp.arange(here)
        step, watch = Step(key, eqx.combine(arrays, rest), numbers), Collect(collect)
        chains = Chains(state, step.no_info(state))
        chains, (seen, kept) = loops.repeat(step, chains, first, size, every=thin, record=watch, count=count)
        return chains.state, _everyone(seen, axis, 2), _everyone(kept, axis, 1)

    ins, outs = (Spec(), Spec(axis)), (Spec(axis), Spec(), Spec())
    split = jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)
    state, seen, kept = split(known, state)
    return state, (seen, kept)


def _everyone(tree: Any, axis: str, position: int) -> Any:
    """The rows of all devices' chains, which lie along this axis of the leaves."""
    return jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, axis, axis=position, tiled=True), tree)
