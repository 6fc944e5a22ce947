"""What every loss of two views, and every trainer on pairs of views, promises."""

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
    no_retrace,
    numbers_as_arrays,
    on_host,
    same_bits,
    stacked,
    with_nan,
)
from laureate.testing._steps import Steps, arrays

__all__ = ["check_representation_loss", "check_representation_trainer"]

BATCH, DIM = 6, 3


def check_representation_loss(
    loss: Any, *, others: Sequence[Any] = (), symmetric: bool = True, skip: Collection[str] = ()
) -> list[str]:
    """Check ``loss(z1, z2) -> number`` of two batches of outputs [batch, D].

    loss: an Equinox module or a function.
    others: the same loss with other numbers; each must differ and compile nothing.
    symmetric: whether the two views may be exchanged.
    skip: properties to leave out: those in the list that is returned.

    Properties: one finite number of the outputs' type; no retrace; the order of the examples does not matter, nor (if
    ``symmetric``) that of the views; every number changes the loss; its gradient is its slope; vmap over batches is a
    loop.
    """
    check = Check(getattr(loss, "__name__", type(loss).__name__), skip)
    loss, others = numbers_as_arrays(loss), [numbers_as_arrays(other) for other in others]
    program = Program(lambda loss, z1, z2: jax.value_and_grad(lambda z: loss(*z))((z1, z2)))
    draws = np.random.default_rng(0).normal(size=(3, 2, BATCH, DIM)).astype(np.float32)
    z1, z2 = draws[0]
    value, gradient = on_host(program(loss, z1, z2))
    if check.wants("value"):
        fits = value.shape == () and bool(np.isfinite(value))
        check.require(fits, "one finite number", f"shape {value.shape}, {value}", "Take the mean over the batch.")
    no_retrace(
        check, program, [lambda: program(loss, z2, z1), *(lambda o=o: program(o, z1, z2) for o in others)], len(others)
    )
    if others and check.wants("numbers are used"):
        for other in others:
            check.require(not same_bits(program(other, z1, z2)[0], value), "another loss", "the same", "Is it used?")
    every_number_is_used(check, loss, lambda which: program(which, z1, z2))
    if check.wants("order of examples"):
        order = np.random.default_rng(1).permutation(BATCH)
        moved = program(loss, z1[order], z2[order])[0]
        check.close(moved, value, 1e-5, "the same loss for the examples in another order", "Pair rows by their number.")
    if symmetric and check.wants("order of views"):
        check.close(
            program(loss, z2, z1)[0], value, 1e-5, "the same loss for exchanged views", "Add up both directions."
        )
    if check.wants("gradient is the slope"):
        _slope(check, loss, z1, z2, gradient, draws[1], program)
    if check.wants("vmap over batches is a loop"):
        both = draws[:2]
        together = Program(lambda loss, z: jax.vmap(loss)(z[:, 0], z[:, 1]))(loss, both)
        alone = stacked([program(loss, *pair)[0] for pair in both])
        check.close(together, alone, 1e-5, "the losses of a loop", "Do not look beyond the batch.")
    with jax.enable_x64(True):
        if check.wants("float64"):
            wide = jax.ShapeDtypeStruct((BATCH, DIM), np.float64)
            types = inexact_types(eqx.filter_eval_shape(loss, wide, wide))
            check.require(types == {"float64"}, "float64", types, "Take the outputs' type for all numbers.")
    return check.finish()


def _slope(check: Check, loss: Any, z1: Any, z2: Any, gradient: Any, direction: Any, program: Program) -> None:
    """Central differences along a random direction; single precision gives about three digits."""
    step = 1e-2
    both = np.stack([z1, z2])
    ends = [float(program(loss, *(both + np.float32(s * step) * direction))[0]) for s in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step)
    found = float(sum(np.sum(g * d) for g, d in zip(gradient, direction, strict=True)))
    size = float(sum(np.sum(np.abs(g * d)) for g, d in zip(gradient, direction, strict=True)))
    remedy = "Is a gradient stopped, or a constant taken for a function of the outputs?"
    tolerance = 0.02 * max(size, abs(slope), 1e-3)
    check.require(abs(found - slope) <= tolerance, f"{slope:.4g} by central differences", f"{found:.4g}", remedy)


def check_representation_trainer(
    trainer: Any,
    model: Any,
    views: tuple[Any, Any],
    *,
    others: Sequence[Any] = (),
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init(key, model) -> state`` and ``step(state, view1, view2) -> (state, info)``.

    trainer: an Equinox module. model: what it trains. views: two batches with a leading axis of examples.
    others: the same trainer with other numbers; each must compile nothing and give another model.
    unused: numbers of the trainer that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: the state keeps its shapes and the model moves; loss, spread, cost (examples of both views) and status
    are set; no retrace; every number of the trainer is used and no key twice; the same start gives the same bits; saved
    and loaded it goes on as if it had not been stopped; views that are not finite are reported as DIVERGED and leave
    the model as it was.
    """
    check = Check(f"{type(trainer).__name__}", skip)
    init = lambda trainer: trainer.init(jax.random.key(0), model)  # noqa: E731
    steps = Steps(check, trainer, init, lambda trainer, number, state, views: trainer.step(state, *views), views)
    start, whole, info = steps.start, steps.whole, steps.info
    if check.wants("report"):
        remedy = "A step returns (state, info); info has loss, spread, cost and status."
        found = {name: check.attribute(info, name, remedy) for name in ("loss", "spread", "cost", "status")}
        finite = np.isfinite(found["loss"]) and np.isfinite(found["spread"])
        check.require(finite, "finite loss and spread", (found["loss"], found["spread"]), remedy)
        seen = 2 * len(jax.tree.leaves(views[0])[0])
        check.require(found["cost"] == seen, f"cost {seen}, the examples of both views", found["cost"], remedy)
        check.require(found["status"] == Status.OK, "status OK", found["status"], "Nothing was wrong here.")
        moved = not same_bits(arrays(whole.online), arrays(start.online))
        check.require(moved, "a model that moves", "the one it began with", "Is the update applied?")
    steps.numbers(others, unused, lambda state: arrays(state.online))
    steps.repeated()
    if check.wants("divergence"):
        state, ill = steps(1, batch=with_nan(views))
        check.require(int(ill.status) == Status.DIVERGED, "status DIVERGED for views with nan", int(ill.status), "")
        remedy = "Take the step only where the loss is finite."
        check.bits(arrays(state.online), arrays(start.online), "the model as it was", remedy)
    return check.finish()
