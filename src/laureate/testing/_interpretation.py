"""What running statistics of several models' activations promise."""

from collections.abc import Collection, Sequence
from typing import Any

import jax
import numpy as np

from laureate._core import Status
from laureate.testing._checks import Check, Program, inexact_types, with_nan

__all__ = ["check_running_statistics"]


def check_running_statistics(
    stats: Any, activations: Sequence[Any], *, rtol: float = 1e-4, skip: Collection[str] = ()
) -> list[str]:
    """Check ``init``, ``update``, ``merge`` and ``finish`` of statistics that are taken chunk by chunk.

    stats: as `laureate.interpretation.RunningMoments`. activations: one array ``[tokens, units]`` a model, at least 12
    tokens, for which it was made. rtol: of the largest entry, for what is summed in another order.
    skip: properties to leave out: those in the list that is returned.

    Properties: a state keeps its shapes and can be saved; cost and status of an update; chunks and their order change
    nothing; states merge, in any order, to what all tokens give; a mask leaves tokens out, whatever they are; a token
    that is not finite is reported; no retrace for other numbers; double precision stays so.
    """
    check = Check(type(stats).__name__, skip)
    values = [np.asarray(x, np.float32) for x in activations]
    size = len(values[0]) // 4
    parts = [[x[start : start + size] for x in values] for start in range(0, 4 * size, size)]
    update = Program(lambda state, chunk, mask: stats.update(state, chunk, mask))
    merge, finish, every = Program(stats.merge), Program(stats.finish), np.ones(size, bool)

    def seen(chunks: Sequence[Any]) -> Any:
        state = stats.init()
        for chunk in chunks:
            state, _ = update(state, chunk, every)
        return state

    start = stats.init()
    one, info = update(start, parts[0], every)
    check.fixed_shapes(start, one)
    if check.wants("report"):
        found = {name: check.attribute(info, name, "See MomentsInfo.") for name in ("cost", "status")}
        check.require(found["cost"] == size, f"a cost of {size} tokens", found["cost"], "Count what the mask shows.")
        check.require(found["status"] == Status.OK, "status OK", found["status"], "All tokens are finite.")
    if check.wants("saved"):
        further = update(check.saved(one), parts[1], every)[0]
        check.bits(further, update(one, parts[1], every)[0], "the same from a saved state", "Keep arrays in a state.")
    whole = finish(seen(parts))
    if check.wants("order of chunks"):
        check.close(finish(seen(parts[::-1])), whole, rtol, "the same in another order", "", floor=1.0)
    if check.wants("merging"):
        remedy = "Weigh the difference of the means by n k/(n + k)."
        states = [seen([part]) for part in parts]
        left = merge(merge(merge(states[0], states[1]), states[2]), states[3])
        right = merge(states[0], merge(states[1], merge(states[2], states[3])))
        check.close(finish(left), whole, rtol, "what one pass gives", remedy, floor=1.0)
        check.close(finish(right), whole, rtol, "the same however states are merged", remedy, floor=1.0)
        alone = finish(merge(stats.init(), states[0]))
        check.close(alone, finish(states[0]), rtol, "the other where one has seen nothing", remedy, floor=1.0)
    if check.wants("mask"):
        half = np.arange(size) < size // 2
        spoilt = with_nan(parts[0], np.s_[size // 2 :])
        masked, info = update(start, spoilt, half)
        plain = Program(lambda state, chunk: stats.update(state, chunk)[0])(start, [x[: size // 2] for x in parts[0]])
        check.close(finish(masked), finish(plain), rtol, "only the tokens that are shown", "", floor=1.0)
        check.require(info.status == Status.OK, "status OK where what is masked is nan", info.status, "")
    if check.wants("divergence"):
        info = update(start, with_nan(parts[0], (0, 0)), every)[1]
        check.require(info.status == Status.DIVERGED, "status DIVERGED where a token is nan", info.status, "")
    if check.wants("no retrace"):
        before = update.traces
        update(one, [2 * x for x in parts[2]], every)
        check.require(update.traces == before, "no new trace for other numbers", update.traces - before, "")
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide = [np.asarray(x, np.float64) for x in parts[0]]
            types = inexact_types(jax.eval_shape(lambda: stats.update(stats.init(), wide)[0]))
        check.require(types == {"float64"}, "moments of float64", types, "Take the type that jax has on.")
    return check.finish()
