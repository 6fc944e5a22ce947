"""What every trainer of blocks with a boundary promises."""

from collections.abc import Collection, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from laureate._core import Status
from laureate.testing._checks import Check, inexact_types, same_bits, widened, with_nan
from laureate.testing._steps import Steps, arrays

__all__ = ["check_block_trainer"]


def check_block_trainer(
    trainer: Any,
    blocks: Sequence[Any],
    batch: tuple[Any, Any],
    *,
    others: Sequence[Any] = (),
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init(key, blocks) -> state`` and ``step(state, inputs, targets) -> (state, info)``.

    trainer: an Equinox module. blocks: what it trains. batch: inputs and targets with a leading axis of examples.
    others: the same trainer with other numbers; each must compile nothing and give another network.
    unused: numbers of the trainer that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: the state keeps its shapes and the network moves; loss, cost and status are set; no retrace; every
    number of the trainer is used; the same start gives the same bits; saved and loaded it goes on as if it had not been
    stopped; inputs that are not finite are reported as DIVERGED and leave the network as it was; no key is used twice;
    float64 stays float64.
    """
    check = Check(type(trainer).__name__, skip)
    init = lambda trainer: trainer.init(jax.random.key(0), blocks)  # noqa: E731
    steps = Steps(check, trainer, init, lambda trainer, number, state, batch: trainer.step(state, *batch), batch)
    start, whole, info = steps.start, steps.whole, steps.info
    if check.wants("report"):
        remedy = "A step returns (state, info); info has loss, cost and status."
        found = {name: check.attribute(info, name, remedy) for name in ("loss", "cost", "status")}
        check.require(np.isfinite(found["loss"]), "a finite loss", found["loss"], remedy)
        check.require(found["cost"] > 0, "a cost above 0", found["cost"], remedy)
        check.require(found["status"] == Status.OK, "status OK", found["status"], "Nothing was wrong here.")
        moved = not same_bits(arrays(whole.blocks), arrays(start.blocks))
        check.require(moved, "a network that moves", "the one it began with", "Is the update applied?")
    steps.numbers(others, unused, lambda state: arrays(state.blocks))
    steps.repeated()
    if check.wants("divergence"):
        broken = with_nan(batch[0]), batch[1]
        state, ill = steps(1, batch=broken)
        check.require(int(ill.status) == Status.DIVERGED, "status DIVERGED for inputs with nan", int(ill.status), "")
        check.bits(arrays(state.blocks), arrays(start.blocks), "the network as it was", "Step only where it is finite.")
    with jax.enable_x64(True):
        if check.wants("float64"):
            wide = jax.tree.map(widened, list(blocks))
            inputs = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), batch[0])
            begun = steps.trainer.init(jax.random.key(0), wide)
            after = eqx.filter_eval_shape(steps.trainer.step, begun, inputs, batch[1])[0]
            types = inexact_types(after.blocks)
            check.require(types == {"float64"}, "float64", types, "Take the blocks' type for all numbers.")
    return check.finish()
