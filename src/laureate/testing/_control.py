"""What every exploration bonus promises."""

from collections.abc import Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate._core import Status
from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    inexact_types,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
    row,
    same_bits,
    stacked,
    widened,
    with_nan,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_exploration_bonus"]


def check_exploration_bonus(
    bonus: Any,
    transitions: Any,
    *,
    others: Sequence[Any] = (),
    learns: bool = True,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init``, ``observe``, ``reward`` and ``step`` of a bonus, see ``laureate.control.AbstractBonus``.

    bonus: an Equinox module. transitions: ``laureate.control.Transitions`` of at least four rows, float32.
    others: the same bonus with another number each; each must differ and compile nothing.
    learns: whether ``step`` changes the state; a count does not.
    unused: numbers of the bonus that rightly change nothing, by the ends of their paths.
    skip: properties to leave out: those in the list that is returned.

    Properties: a state of fixed shapes that goes on as if it had not been saved and loaded; one finite bonus >= 0 a
    row, which does not depend on the other rows; statistics and learning change it; cost and status of a step; no
    retrace; every number is used; the same key gives the same bits, and no key is used twice; vmap over keys equals a
    loop; observations that are not finite are reported; double precision stays so.
    """
    check = Check(type(bonus).__name__, skip)
    bonus, others = numbers_as_arrays(bonus), [numbers_as_arrays(other) for other in others]
    first = jax.tree.map(lambda leaf: leaf[0], transitions.following)

    def whole(bonus, key, transitions, state):
        """Observe, two steps, the bonus."""
        state = bonus.observe(transitions, state)
        before = bonus.reward(transitions, state)
        step = lambda state, key: bonus.step(key, transitions, state)  # noqa: E731
        state, infos = jax.lax.scan(step, state, jax.random.split(key))
        return state, jax.tree.map(lambda leaf: leaf[-1], infos), before, bonus.reward(transitions, state)

    program, start, key = Program(whole), bonus.init(first), jax.random.key(7)
    with KeyRecorder() as recorder:
        state, info, before, after = jax.block_until_ready(program(bonus, key, transitions, start))
        keys_used_once(check, recorder)
    check.fixed_shapes(start, state)
    number = len(transitions.following)
    if check.wants("rewards"):
        check.require(after.shape == (number,), f"a bonus a row, ({number},)", after.shape, "Rows first.")
        check.require(jnp.all((after >= 0) & jnp.isfinite(after)), "finite, >= 0", after, "")
        same = same_bits(before, after)
        check.require(same != learns, "a bonus that learning changes" if learns else "the same bonus", after, "")
    if check.wants("report"):
        found = {name: check.attribute(info, name, "See BonusInfo.") for name in ("loss", "cost", "status")}
        check.require(found["status"] == Status.OK, "status OK", found["status"], "All rows are finite.")
        wanted = number if learns else 0
        check.require(found["cost"] == wanted, f"a cost of {wanted} rows", found["cost"], "")
    if check.wants("rows do not see each other"):
        turned = jax.tree.map(lambda leaf: leaf[::-1], transitions)
        found = program(bonus, key, turned, start)[2][::-1]
        check.close(found, before, 1e-4, "the same bonus in another order", "Reward one row at a time.")
        after_all = lambda rows: bonus.reward(rows, bonus.observe(transitions, start))  # noqa: E731
        few = jax.jit(after_all)(jax.tree.map(lambda leaf: leaf[:2], transitions))
        check.close(few, before[:2], 1e-4, "the same bonus without the other rows", "Reward one row at a time.")
    if check.wants("saved and loaded"):
        onward, loaded = (program(bonus, jax.random.key(9), transitions, one) for one in (state, check.saved(state)))
        check.bits(loaded, onward, "what going on unsaved gives", "Keep what is needed in the state.")
    calls = [
        lambda: program(bonus, jax.random.key(9), transitions, check.saved(state)),
        *(lambda other=other: program(other, key, transitions, start) for other in others),
    ]
    no_retrace(check, program, calls, len(others))
    if others and check.wants("numbers are used"):
        for other in others:
            same = same_bits(program(other, key, transitions, start)[3], after)
            check.require(not same, "another bonus for another number", "the same", "Is it used?")
    every_number_is_used(check, bonus, lambda which: program(which, key, transitions, which.init(first))[3], unused)
    if check.wants("same key, same bits"):
        check.bits(program(bonus, key, transitions, start)[0], state, "the same state from the same key", "")
    if check.wants("vmap equals a loop"):
        keys = jax.random.split(jax.random.key(3), 2)
        each = stacked([program(bonus, one, transitions, start)[3] for one in keys])
        many = jax.jit(jax.vmap(lambda key: whole(bonus, key, transitions, start)[3]))(keys)
        for at in range(2):
            check.close(row(many, at), row(each, at), 1e-4, "the bonus of a loop over keys", "")
    if check.wants("divergence"):
        lost = with_nan(transitions, ...)
        status = np.asarray(program(bonus, key, lost, start)[1].status)
        check.require(status == Status.DIVERGED, "status DIVERGED where observations are nan", status, "")
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide, rows = jax.tree.map(widened, (bonus, transitions))
            types = inexact_types(jax.eval_shape(lambda: whole(wide, key, rows, wide.init(rows.following[0]))[3]))
        check.require(types == {"float64"}, "a bonus of float64", types, "Take the observations' type.")
    return check.finish()
