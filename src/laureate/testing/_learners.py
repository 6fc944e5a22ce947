"""What everything that learns from what agents have seen promises."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import numpy as np

from laureate._core import Status
from laureate.testing._checks import Check, Program, is_float, same_bits, with_nan
from laureate.testing._steps import Steps, arrays

__all__ = ["check_learner"]


def _init(learner: Any, key: Any) -> Any:
    return learner.init()


def _step(learner: Any, key: Any, rollout: Any, state: Any) -> Any:
    return learner.step(key, rollout, state)


def check_learner(
    learner: Any,
    rollout: Any,
    *,
    init: Callable[[Any, Any], Any] = _init,
    step: Callable[[Any, Any, Any, Any], Any] = _step,
    learned: Callable[[Any], Any] = arrays,
    others: Sequence[Any] = (),
    cost: int | None = None,
    draws: bool = True,
    keeps: bool = False,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init() -> state`` and ``step(key, rollout, state) -> (state, info)`` of a reinforcement learner.

    Also of a world model, of networks that learn from unpaired transitions, and, with a rollout of None, of a whole
    training that makes its own.

    learner: an Equinox module. rollout: what it learns from, a small tree of arrays.
    init, step: ``init(learner, key)`` and ``step(learner, key, rollout, state)``, where they are called otherwise.
    learned: from a state to what is learned, its parameters; all of it unless told.
    others: the same learner with another number each; each must compile nothing and learn something else.
    cost: of a step, as its info tells it; any above 0 where None.
    draws: whether ``step`` depends on its key.
    keeps: whether a rollout that is not finite leaves the parameters as they were. Those of ``laureate.control`` take
        the step and report it: whether to go on is the caller's to decide.
    unused: numbers of the learner that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: init and steps together use no key twice; the state keeps its shapes and the parameters move; cost and
    status are set; no retrace on a further step nor for another number; every number changes what is learned; the same
    keys give the same bits, others others; saved and loaded it goes on as if it had not been stopped; a rollout that is
    not finite is reported as DIVERGED, and, where it ``keeps`` them, leaves the parameters as they were.
    """
    check = Check(type(learner).__name__, skip)
    init_key, step_key, other_key = jax.random.split(jax.random.key(0), 3)
    begin = Program(init)

    def numbered(learner, number, state, given):
        key, rollout = given
        return step(learner, jax.random.fold_in(key, number), rollout, state)

    steps = Steps(check, learner, lambda learner: begin(learner, init_key), numbered, (step_key, rollout))
    info, parameters = steps.info, lambda state: arrays(learned(state))
    if check.wants("report"):
        remedy = "A step returns (state, info); info has cost and status."
        found = {name: check.attribute(info, name, remedy) for name in ("cost", "status")}
        right = found["cost"] > 0 if cost is None else found["cost"] == cost
        check.require(right, f"a cost {'above 0' if cost is None else f'of {cost}'}", found["cost"], remedy)
        check.require(found["status"] == Status.OK, "status OK", found["status"], "Nothing was wrong here.")
        moved = not same_bits(parameters(steps.whole), parameters(steps.start))
        check.require(moved, "parameters that move", "those it began with", "Is the update applied?")
    steps.numbers(others, unused, parameters, anew=True)
    steps.repeated()
    if draws and check.wants("another key, other bits"):
        same = same_bits(parameters(steps(batch=(other_key, rollout))[0]), parameters(steps.whole))
        check.require(not same, "something else learned with another key", "the same", "Is the key used?")
    if any(is_float(leaf) for leaf in jax.tree.leaves(rollout)):
        state, info = steps(1, batch=(step_key, with_nan(rollout, ...)))
        if check.wants("divergence is reported"):
            status = np.asarray(info.status)
            check.require(status == Status.DIVERGED, "status DIVERGED for a rollout of nan", status, "")
        if keeps and check.wants("divergence leaves the parameters"):
            remedy = "Step only where the losses are finite."
            check.bits(parameters(state), parameters(steps.start), "the parameters as they were", remedy)
    return check.finish()
