"""What every trainer of blocks with a boundary promises."""

from collections.abc import Collection, Sequence
from typing import Any

import equinox as eqx
import jax
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
    same_bits,
    widened,
    with_nan,
)
from laureate.testing._keys import KeyRecorder

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
    trainer, others = numbers_as_arrays(trainer), [numbers_as_arrays(other) for other in others]
    program = Program(lambda trainer, state, inputs, targets: trainer.step(state, inputs, targets))
    arrays = lambda tree: eqx.filter(tree, eqx.is_array)  # noqa: E731
    with KeyRecorder() as recorder:
        start = trainer.init(jax.random.key(0), blocks)

    def walk(number, state=start, which=trainer, batch=batch):
        info: Any = None
        for _ in range(number):
            state, info = program(which, state, *batch)
        return state, info

    with recorder:
        whole, info = walk(4)
        keys_used_once(check, recorder)  # now: the program goes on noting its keys
    check.fixed_shapes(arrays(start), arrays(whole))
    if check.wants("report"):
        remedy = "A step returns (state, info); info has loss, cost and status."
        found = {name: check.attribute(info, name, remedy) for name in ("loss", "cost", "status")}
        check.require(np.isfinite(found["loss"]), "a finite loss", found["loss"], remedy)
        check.require(found["cost"] > 0, "a cost above 0", found["cost"], remedy)
        check.require(found["status"] == Status.OK, "status OK", found["status"], "Nothing was wrong here.")
        moved = not same_bits(arrays(whole.blocks), arrays(start.blocks))
        check.require(moved, "a network that moves", "the one it began with", "Is the update applied?")
    calls = [lambda: walk(1, whole), *(lambda o=o: walk(1, which=o) for o in others)]
    no_retrace(check, program, calls, len(others))
    if others and check.wants("numbers are used"):
        one = arrays(walk(2)[0].blocks)
        for other in others:
            same = same_bits(arrays(walk(2, which=other)[0].blocks), one)
            check.require(not same, "another network for another number", "the same", "Is it used?")
    every_number_is_used(check, trainer, lambda which: arrays(walk(4, which=which)[0]), unused)
    if check.wants("same start, same bits"):
        check.bits(
            arrays(walk(4)[0]), arrays(whole), "the same states from the same start", "Draw by the step's number."
        )
    if check.wants("saved and loaded"):
        middle = check.saved(arrays(walk(2)[0]))
        rest = eqx.combine(middle, eqx.filter(start, eqx.is_array, inverse=True))
        check.bits(arrays(walk(2, rest)[0]), arrays(whole), "the steps of one go", "Keep what is needed in the state.")
    if check.wants("divergence"):
        broken = with_nan(batch[0]), batch[1]
        state, ill = walk(1, batch=broken)
        check.require(int(ill.status) == Status.DIVERGED, "status DIVERGED for inputs with nan", int(ill.status), "")
        check.bits(arrays(state.blocks), arrays(start.blocks), "the network as it was", "Step only where it is finite.")
    with jax.enable_x64(True):
        if check.wants("float64"):
            wide = jax.tree.map(widened, list(blocks))
            inputs = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), batch[0])
            begun = trainer.init(jax.random.key(0), wide)
            after = eqx.filter_eval_shape(trainer.step, begun, inputs, batch[1])[0]
            types = inexact_types(after.blocks)
            check.require(types == {"float64"}, "float64", types, "Take the blocks' type for all numbers.")
    return check.finish()
