"""Many chains at once, in chunks, with progress: the loop one would otherwise write oneself."""

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec
from jaxtyping import Array, Key

from laureate._core import Status, require
from laureate.sampling._kernel import Tree

__all__ = ["Progress", "Run", "run"]


class Progress(NamedTuple):
    """Where a run stands: steps done, steps in all, seconds spent and expected to remain."""

    done: int
    total: int
    seconds: float
    remaining: float


class Run(NamedTuple):
    """What a run gives.

    samples: what ``collect`` returned, chains first, then kept steps.
    state: the chains' states after the last step; pass it on as ``state`` with ``first_step`` to continue.
    acceptance_rate: mean over steps, one a chain.
    num_nan: steps whose ratio was NaN and which were therefore rejected, one count a chain.
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
    chunk: int = 1000,
    progress: Callable[[Progress], None] | None = None,
    mesh: Mesh | None = None,
) -> Run:
    """Run one chain for every entry of ``position``'s first axis.

    Keys come from the chain's number and the absolute step, so neither ``chunk`` nor stopping and continuing changes a
    sample. Only what ``collect`` returns is kept, every ``thin`` steps.

    Arguments:
        kernel: anything with BlackJAX's ``init(position)`` and ``step(key, state)``.
        position: starting positions, stacked; or pass the ``state`` of an earlier run and its number of steps as
            ``first_step``.
        num_steps: a multiple of ``thin``.
        collect: from (state, info) to what is kept.
        chunk: steps between calls of ``progress``, about.
        progress: called with a `Progress` after every chunk.
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
    require("run", "chunk", ">= 1", chunk, lambda n: n >= 1)
    if (position is None) == (state is None):
        raise ValueError("run: pass either position or state; got " + ("neither." if state is None else "both."))
    kernel = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, kernel)
    if state is None:
        state = _start(kernel, position)
    num_chains = jax.tree.leaves(state)[0].shape[0]
    if mesh is not None:
        rule = f"a multiple of the {mesh.size} devices of the mesh"
        require("run", "number of chains", rule, num_chains, lambda n: n % mesh.size == 0)
        state = _place(state, mesh)
    kept_per_chunk = max(1, chunk // thin)
    kept, done, began = num_steps // thin, 0, time.perf_counter()
    parts, rates, nans, costs = [], np.zeros(num_chains), np.zeros(num_chains, int), np.zeros(num_chains, int)
    while done < kept:
        length = min(kept_per_chunk, kept - done)
        first = jnp.asarray(first_step + done * thin, jnp.int32)
        work = (collect, state, first, length, thin)
        done_now = _advance(key, kernel, *work) if mesh is None else _advance_over(key, kernel, *work, mesh)
        state, (samples, rate, nan, cost) = done_now
        parts.append(jax.tree.map(np.asarray, samples))
        rates += np.asarray(rate)
        nans += np.asarray(nan)
        costs += np.asarray(cost)
        done += length
        if progress is not None:
            seconds = time.perf_counter() - began
            progress(Progress(done * thin, num_steps, seconds, seconds / done * (kept - done)))
    if nans.any():
        warnings.warn(f"{nans.sum()} steps had a log ratio of NaN and were rejected; is f finite?", stacklevel=2)
    samples = jax.tree.map(lambda *chunks: np.concatenate(chunks, axis=1), *parts)
    return Run(samples, state, rates / num_steps, nans, costs)


def _start(kernel: Any, position: Tree) -> Any:
    first = jax.tree.map(lambda leaf: leaf[0], position)
    kernel.init(first)  # eagerly, for its checks: under vmap values cannot be seen
    state = jax.vmap(kernel.init)(position)
    if hasattr(kernel, "layout"):
        layout = kernel.layout(first)
        for chain in range(jax.tree.leaves(position)[0].shape[0]):
            layout.check(jax.tree.map(lambda leaf, chain=chain: leaf[chain], position), kernel.category_mask)
    finite = np.isfinite(np.asarray(getattr(state, "logdensity", 0.0)))
    if not finite.all():
        raise ValueError(f"initial state has zero probability in chains {np.flatnonzero(~finite).tolist()}.")
    return state


def _place(state: Any, mesh: Mesh) -> Any:
    """Every device has its own chains only."""
    sharding = NamedSharding(mesh, Spec(mesh.axis_names[0]))

    def one(leaf):
        if isinstance(leaf, jax.Array) and leaf.sharding == sharding:
            return leaf
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(one, state)


@eqx.filter_jit
def _advance(key: Array, kernel: Any, collect: Callable, state: Any, first: Array, length: int, thin: int) -> Any:
    numbers = jnp.arange(jax.tree.leaves(state)[0].shape[0])
    return _chains(key, kernel, collect, state, first, length, thin, numbers)


def _advance_over(
    key: Array, kernel: Any, collect: Callable, state: Any, first: Array, length: int, thin: int, mesh: Mesh
) -> Any:
    # What every device knows travels as plain numbers, for a process may only give what lies on its own devices.
    known = jax.tree.map(np.asarray, (jax.random.key_data(key), eqx.filter(kernel, eqx.is_array), first))
    rest = eqx.filter(kernel, eqx.is_array, inverse=True)
    return _split(known, rest, collect, state, length, thin, mesh, jax.random.key_impl(key))


@eqx.filter_jit
def _split(
    known: Any, rest: Any, collect: Callable, state: Any, length: int, thin: int, mesh: Mesh, implementation: Any
) -> Any:
    axis = mesh.axis_names[0]

    def on_device(known, state):
        key_data, arrays, first = known
        key = jax.random.wrap_key_data(key_data, impl=implementation)
        here = jax.tree.leaves(state)[0].shape[0]
        numbers = jax.lax.axis_index(axis) * here + jnp.arange(here)
        state, kept = _chains(key, eqx.combine(arrays, rest), collect, state, first, length, thin, numbers)
        return state, jax.lax.all_gather(kept, axis, tiled=True)

    ins, outs = (Spec(), Spec(axis)), (Spec(axis), Spec())
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)(known, state)


def _chains(
    key: Array, kernel: Any, collect: Callable, state: Any, first: Array, length: int, thin: int, numbers: Array
) -> Any:
    """The chains of these numbers, all at once; a chain's keys come from its number alone."""
    chain_keys = jax.vmap(lambda chain: jax.random.fold_in(key, chain))(numbers)

    def chain(key, state):
        def one(carry, step):
            state, info = kernel.step(jax.random.fold_in(key, step), carry[0])
            bad = info.status == int(Status.DIVERGED)
            return (state, info), (jnp.mean(info.acceptance_rate), bad, info.cost)

        # The last info is carried, not stacked: it holds the proposal.
        no_info = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(kernel.step, key, state)[1]
        )

        def keep(state, number):
            steps = first + number * thin + jnp.arange(thin)
            (state, info), (rate, bad, cost) = jax.lax.scan(one, (state, no_info), steps)
            return state, (collect(state, info), jnp.sum(rate), jnp.sum(bad), jnp.sum(cost))

        state, (samples, rate, nan, cost) = jax.lax.scan(keep, state, jnp.arange(length))
        return state, (samples, jnp.sum(rate), jnp.sum(nan), jnp.sum(cost))

    return jax.vmap(chain)(chain_keys, state)
