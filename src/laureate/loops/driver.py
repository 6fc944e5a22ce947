"""The loop around the compiled steps: chunks, progress, checkpoint, and Ctrl-C."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from laureate._core import Status, require
from laureate.loops.checkpoint import Checkpoint
from laureate.loops.repeat import repeat

__all__ = ["Outcome", "Progress", "chunks", "firm", "run", "scan"]

LONGEST = 1000  # steps of a chunk
SMALL = 2**22  # bytes of a chunk's results for which short runs use the long runs' program
SECONDS_A_CALL = 1.0  # what a chunk should last where somebody watches
SECONDS_BETWEEN_FILES = 10.0


class Progress(NamedTuple):
    """Where a run stands.

    done, total: steps taken, and in all. seconds, remaining: spent, and expected to remain.
    """

    done: int
    total: int
    seconds: float
    remaining: float


class Outcome(NamedTuple):
    """What a run gives.

    state: after the last step. seen: what the steps returned, one row a step. recorded: one row a record.
    status: DIVERGED where a number in the state is not finite, else OK.
    """

    state: Any
    seen: Any
    recorded: Any
    status: Array


def run(
    step: Callable[[Any, Array], tuple[Any, Any]],
    state: Any,
    num_steps: int,
    *,
    first: Array | int = 0,
    every: int = 1,
    record: Callable[[Any], Any] | None = None,
    chunk: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    settings: Any = None,
) -> Outcome:
    """Take ``num_steps`` steps, compiled in chunks; the same call again goes on from its checkpoint.

    step: ``step(state, index) -> (state, seen)``, by the absolute index alone, so that neither chunks nor stopping and
        going on change a result. Make it an ``equinox.Module``: its arrays are then arguments, and new numbers compile
        nothing; a new function object compiles anew.
    num_steps: a multiple of ``every``; a new one compiles nothing unless the results of a chunk are large (4 MiB).
    first: the absolute index of the first step. every, record: ``record(state)`` after every so many steps.
    chunk: steps between two calls of ``progress``, about; by default as many as take a second, at most 1,000.
    progress: called with a `Progress`; what it raises ends the run, with the checkpoint written.
    checkpoint: a file, written now and then, at the end, and when the run is interrupted. It may be asked to go on
        with more steps, but not with other ``settings`` (by default all but ``num_steps`` and ``chunk``).

    Within jit or vmap it is one scan, without progress and checkpoint.

    >>> import jax.numpy as jnp
    >>> outcome = run(lambda x, t: (0.5 * x, x), jnp.asarray(8.0), 4, record=lambda x: x, every=2)
    >>> float(outcome.state), outcome.seen.tolist(), outcome.recorded.tolist(), int(outcome.status)
    (0.5, [8.0, 4.0, 2.0, 1.0], [2.0, 0.5], 0)
    """
    require("run", "num_steps", "an integer >= 0", num_steps, lambda n: isinstance(n, int) and n >= 0)
    require("run", "every", "an integer >= 1", every, lambda n: isinstance(n, int) and n >= 1)
    require("run", "num_steps", f"a multiple of every = {every}", num_steps, lambda n: n % every == 0)
    require("run", "chunk", "None or an integer >= 1", chunk, lambda n: n is None or (isinstance(n, int) and n >= 1))
    blocks = num_steps // every
    watched = progress is not None or checkpoint is not None
    whole = lambda: _outcome(*_whole(step, record, state, jnp.asarray(first), blocks, every))  # noqa: E731
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((step, state, first))) and not watched:
        return whole()
    first = int(first)
    state = jax.tree.map(lambda leaf: _strong(leaf) if eqx.is_array(leaf) else leaf, state)
    size = max(1, (LONGEST if chunk is None else chunk) // every)

    def advance(state: Any, done: int, count: int) -> tuple[Any, Any]:
        begin = jnp.asarray(first + done * every, jnp.int32)
        return _advance(step, record, state, begin, jnp.asarray(count, jnp.int32), size, every)

    shapes = lambda: eqx.filter_eval_shape(advance, state, 0, 1)[1]  # noqa: E731
    if blocks < size and sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes())) > SMALL:
        size = 2 ** max(0, blocks - 1).bit_length()
    if settings is None:
        settings = {"step": step, "start": state, "first": first, "every": every, "record": record}
    kept = None if checkpoint is None else Checkpoint(checkpoint, settings)
    try:
        more = {
            "steps_per_block": every,
            "shapes": shapes,
            "progress": progress,
            "checkpoint": kept,
            "adapt": chunk is None,
        }
        state, rows = chunks(advance, state, blocks, size, **more)
    except jax.errors.TracerArrayConversionError:
        if watched:
            raise
        return whole()  # a function closes over what is traced
    return _outcome(state, jax.tree.map(jnp.asarray, rows))


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    state: Any,
    xs: Any,
    *,
    progress: Callable[[Progress], None] | None = None,
    steps_per_row: int = 1,
) -> tuple[Any, Any]:
    """``jax.lax.scan`` that says how far it is, for drivers whose steps are of one piece with what is around them.

    step, state, xs: as for ``jax.lax.scan``; ``xs`` is a tree of arrays with a leading axis.
    progress: None: one scan, for jit and vmap as well. A function: called about every second with a `Progress`; the
        steps are then compiled in chunks, and nothing may be traced. steps_per_row: that one row of ``xs`` stands for.

    >>> import jax.numpy as jnp
    >>> seen = []
    >>> add, watch = lambda s, x: (s + x, s + x), seen.append
    >>> total, sums = scan(add, jnp.asarray(0), jnp.arange(4), progress=watch, steps_per_row=10)
    >>> int(total), sums.tolist(), seen[-1].done, seen[-1].total
    (6, [0, 1, 3, 6], 40, 40)
    """
    if progress is None:
        return jax.lax.scan(step, state, xs)
    remedy = "Within jit and vmap a run is one program: call it outside, or leave progress out."
    traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((state, xs)))
    require("scan", "progress", "None where anything is traced", progress, lambda _: not traced, remedy)
    length = jax.tree.leaves(xs)[0].shape[0]

    def by_index(state: Any, index: Array) -> tuple[Any, Any]:
        return step(state, jax.tree.map(lambda leaf: leaf[index], xs))

    state = jax.tree.map(_strong, state)
    # What the step closes over becomes its leaves, so that no large array is compiled in.
    closed = eqx.filter_closure_convert(by_index, state, jnp.asarray(0, jnp.int32))
    tell = lambda p: progress(p._replace(done=p.done * steps_per_row, total=p.total * steps_per_row))  # noqa: E731
    outcome = run(closed, state, length, progress=tell)
    return outcome.state, outcome.seen


def chunks(
    advance: Callable[[Any, int, int], tuple[Any, Any]],
    state: Any,
    total: int,
    size: int,
    *,
    steps_per_block: int = 1,
    shapes: Callable[[], Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoint | None = None,
    adapt: bool = True,
) -> tuple[Any, Any]:
    """The host's side of a run, for drivers with a program of their own: ``total`` blocks, at most ``size`` at once.

    advance: ``advance(state, done, count) -> (state, rows)``: ``count`` more blocks after the first ``done``; the first
        ``count`` rows of its leaves are theirs. shapes: the form of its rows, asked for only where they are on disk; to
        be given where ``advance`` cannot be traced.
    steps_per_block: that a block stands for, in what ``progress`` gets. adapt: where somebody watches, so many blocks
        at once as take about a second.

    Returns the state and the rows of all blocks as NumPy arrays.
    """
    done, parts = 0, []
    form = (lambda: eqx.filter_eval_shape(advance, state, 0, 1)[1]) if shapes is None else shapes
    if checkpoint is not None and checkpoint.path.exists():
        done, state, rows = checkpoint.load(state, form()) or (0, state, None)
        remedy = "Ask for as many steps, or name another file."
        require(
            "Checkpoint",
            "done",
            f"<= {total * steps_per_block} steps",
            done * steps_per_block,
            lambda n: n <= total * steps_per_block,
            remedy,
        )
        parts = [jax.tree.map(np.asarray, rows)]
    began, before, written, count = time.perf_counter(), done, done, size
    last_file = began
    adapt = adapt and (progress is not None or checkpoint is not None)
    if adapt:
        count = 1  # the first call compiles; then as many blocks as take about a second
    try:
        while done < total:
            now, call = min(count, total - done), time.perf_counter()
            new, rows = advance(state, done, now)
            rows = jax.tree.map(lambda leaf, now=now: np.asarray(leaf)[:now], rows)
            state, done = new, done + now
            parts.append(rows)
            moment = time.perf_counter()
            if adapt and done - before > 1:  # without the call that compiled
                count = min(size, count * 2) if moment - call < SECONDS_A_CALL else max(1, count // 2)
            if checkpoint is not None and moment - last_file > SECONDS_BETWEEN_FILES and done < total:
                checkpoint.save(done, state, _joined(parts))
                written, last_file = done, time.perf_counter()
            if progress is not None:
                spent = moment - began
                remaining = spent / (done - before) * (total - done)
                progress(Progress(done * steps_per_block, total * steps_per_block, spent, remaining))
    finally:
        if checkpoint is not None and done > written:
            checkpoint.save(done, state, _joined(parts))
    empty = lambda leaf: np.zeros((0, *leaf.shape[1:]), leaf.dtype)  # noqa: E731
    return state, _joined(parts) if parts else jax.tree.map(empty, form())


def _joined(parts: list[Any]) -> Any:
    parts[:] = [jax.tree.map(lambda *rows: np.concatenate(rows), *parts)]
    return parts[0]


@eqx.filter_jit
def _advance(
    step: Callable, record: Callable | None, state: Any, first: Array, count: Array, size: int, every: int
) -> tuple[Any, Any]:
    return repeat(step, state, first, size, every=every, record=record, count=count)


@eqx.filter_jit
def _whole(
    step: Callable, record: Callable | None, state: Any, first: Array, length: int, every: int
) -> tuple[Any, Any]:
    return repeat(step, state, first, length, every=every, record=record)


def _strong(leaf: Array) -> Array:
    """An array of weak type (as of ``jnp.asarray(0.3)``) is compiled apart; its type is known, so it is made firm."""
    weak = getattr(leaf, "weak_type", False)
    return jax.lax.convert_element_type(leaf, leaf.dtype) if weak else jnp.asarray(leaf)


def firm(tree: Any) -> Any:
    """A tree whose numbers are arrays of a firm type.

    A Python float is compiled in, and a weak array (``jnp.asarray(0.3)``) compiled apart from a firm one: made so, a
    setting has one program, whatever its value and however it was written.

    >>> tree = firm({"rate": 0.3, "steps": 4})
    >>> tree["rate"].weak_type, tree["steps"]
    (False, 4)
    """

    def one(leaf: Any) -> Any:
        weak = isinstance(leaf, float) or (isinstance(leaf, jax.Array) and getattr(leaf, "weak_type", False))
        return jax.lax.convert_element_type(leaf, jnp.result_type(leaf)) if weak else leaf

    return jax.tree.map(one, tree)


def _outcome(state: Any, rows: Any) -> Outcome:
    seen, recorded = rows
    seen = jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]), seen)
    return Outcome(state, seen, recorded, status_of(state))


def status_of(state: Any) -> Array:
    """DIVERGED where a number of the state is not finite."""
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(eqx.filter(state, eqx.is_inexact_array))]
    fine = jnp.all(jnp.stack(finite)) if finite else jnp.asarray(True)
    return jnp.where(fine, int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32)
