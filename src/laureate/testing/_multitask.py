"""What every aggregator of the gradients of several tasks promises."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.testing._checks import (
    Check,
    Program,
    describe,
    every_number_is_used,
    inexact_types,
    numbers_as_arrays,
    row,
    same_bits,
    stacked,
)

__all__ = ["check_aggregator"]

STEPS = 3


def check_aggregator(
    transformation: Any,
    params: Any,
    grads: Any,
    losses: Any,
    *,
    name: str = "aggregator",
    rtol: float = 1e-5,
    others: Sequence[Any] = (),
    make: Callable[..., Any] | None = None,
    numbers: Mapping[str, Any] | None = None,
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init(params)`` and ``update(grads, state, params, losses=losses)`` of an aggregator, ours or your own.

    transformation: an Optax transformation. params: a tree of float32. grads: the same with a leading axis of tasks.
    losses: above 0, one a task. name: in messages. rtol: of the largest entry, where the same is computed in another
    order. others: the same with another number each; each must give other updates.
    make, numbers: ``make(**numbers)`` is such a transformation, made of numbers that are traced, all in one program;
        each of them, changed on its own, must give other updates.
    skip: properties to leave out: those in the list that is returned.

    Properties: updates are like the parameters, without the axis; a state keeps its shapes, can be saved, and goes on;
    no retrace; every number is used; vmap and scan equal a loop; gradients of 0 give an update of 0; what is not finite
    is not hidden; bfloat16 and float64 stay so.
    """
    check = Check(name, skip)
    step = Program(lambda g, state, values: transformation.update(g, state, params, losses=values))
    batches = [jax.tree.map(lambda leaf, k=k: leaf * (1 + k) + 0.1 * k, grads) for k in range(STEPS)]
    faster = np.linspace(2.0, -1.0, len(losses), dtype=np.float32)  # some tasks than others
    values = [losses * (1 + 0.5 * k) ** faster for k in range(STEPS)]
    start = transformation.init(params)
    walked, states = [], [start]
    for batch, value in zip(batches, values, strict=True):
        updates, state = step(batch, states[-1], value)
        walked.append(updates)
        states.append(state)
    if check.wants("updates like the parameters"):
        remedy = "Sum over the leading axis of every leaf, and keep the leaf's type."
        check.require(describe(walked[0]) == describe(params), f"{describe(params)}", describe(walked[0]), remedy)
    check.fixed_shapes(start, states[1])
    if check.wants("saved"):
        further = step(batches[1], check.saved(states[1]), values[1])
        check.bits(further, (walked[1], states[2]), "the same from a saved state", "Keep arrays in a state.")
    if check.wants("no retrace"):
        check.require(step.traces == 1, "one trace for all steps", step.traces, "Does the state change its type?")
    if others and check.wants("every number is used"):
        for number, other in enumerate(others):
            own = Program(lambda g, state, values, other=other: other.update(g, state, params, losses=values))
            state, updates = other.init(params), []
            for batch, value in zip(batches, values, strict=True):
                update, state = own(batch, state, value)
                updates.append(update)
            same = same_bits(updates, walked)
            check.require(not same, "other updates for another number", f"the same for others[{number}]", "Is it read?")
    if make is not None and numbers:

        def walk(numbers):
            made = make(**numbers)

            def one(state, given):
                updates, state = made.update(given[0], state, params, losses=given[1])
                return state, updates

            return jax.lax.scan(one, made.init(params), (stacked(batches), stacked(values)))[1]

        every_number_is_used(check, numbers_as_arrays(dict(numbers)), Program(walk))
    if check.wants("vmap and scan are loops"):
        remedy = "No Python branch on a value, no state outside."

        def every(batches, values):
            def one(state, given):
                updates, state = transformation.update(given[0], state, params, losses=given[1])
                return state, updates

            along = jax.lax.scan(one, start, (batches, values))
            return along, jax.vmap(lambda g, v: one(start, (g, v))[1])(batches, values)

        (last, scanned), mapped = Program(every)(stacked(batches), jnp.stack(values))
        check.close((scanned, last), (stacked(walked), states[-1]), rtol, "a scan to be a loop", remedy)
        alone = step(batches[2], start, values[2])[0]
        check.close(row(mapped, 2), alone, rtol, "vmap over gradients to be a loop", remedy)
    if check.wants("gradients of zero"):
        zero = step(jax.tree.map(jnp.zeros_like, grads), start, losses)[0]
        largest = max(float(np.max(np.abs(leaf))) for leaf in jax.tree.leaves(zero))
        check.require(largest == 0, "an update of 0 where all gradients are 0", largest, "Guard 0/0.")
    if check.wants("not finite"):
        spoilt = step(jax.tree.map(lambda leaf: leaf.at[0].set(jnp.nan), grads), start, losses)[0]
        seen = any(not np.isfinite(leaf).all() for leaf in jax.tree.leaves(spoilt))
        check.require(seen, "an update that is not finite, for optax.apply_if_finite", spoilt, "Do not mask it.")
    for kind in ("bfloat16", "float64"):
        if check.wants(kind):
            types = _types(transformation, params, grads, losses, kind)
            check.require(types == {kind}, f"updates of {kind} for gradients of {kind}", types, "Cast the sum back.")
    return check.finish()


def _types(transformation: Any, params: Any, grads: Any, losses: Any, kind: str) -> set[str]:
    with jax.enable_x64(kind == "float64"):
        cast = lambda tree: jax.tree.map(lambda leaf: np.asarray(leaf, jnp.dtype(kind)), tree)  # noqa: E731
        inner, rows, values = cast(params), cast(grads), np.asarray(losses)
        update = lambda: transformation.update(rows, transformation.init(inner), inner, losses=values)[0]  # noqa: E731
        return inexact_types(jax.eval_shape(update))
