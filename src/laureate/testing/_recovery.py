"""What every solver of a sparse recovery promises."""

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
    row,
    same_bits,
    widened,
    with_nan,
)

__all__ = ["check_recovery_solver"]


def check_recovery_solver(
    solver: Any,
    signals: Any,
    *,
    others: Sequence[Any] = (),
    rtol: float = 1e-4,
    cost: int | None = None,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``solve(b) -> (codes, info)`` and ``solver(b) -> codes`` for a batch of signals b, one a row.

    solver: an Equinox module with ``synthesise(codes) -> signals`` as well.
    signals: at least three, finite, float32.
    others: the same solver with other numbers; each must differ and compile nothing.
    rtol: how far the codes of one signal alone may be from those in a batch.
    cost: what ``info.cost`` must be; without it, any positive number will do.
    unused: numbers of the solver that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: finite codes, a row a signal; cost and status set, and the residual as recomputed; no retrace on a
    second call nor with another number; every number of the solver is used; saved and loaded it solves alike; the same
    signals give the same bits; a signal's code does not depend on the others, nor on their order; a signal that is not
    finite is reported and leaves the others alone; double precision stays so.
    """
    check = Check(type(solver).__name__, skip)
    solver, others = numbers_as_arrays(solver), [numbers_as_arrays(other) for other in others]
    program = Program(lambda solver, b: (*solver.solve(b), solver(b)))
    b = np.asarray(signals, np.float32)
    codes, info, called = on_host(program(solver, b))
    if check.wants("codes"):
        check.require(len(codes) == len(b), f"{len(b)} rows of codes", codes.shape, "Signals are rows.")
        check.require(np.isfinite(codes).all() and np.any(codes != 0), "finite codes, not all zero", codes, "")
        check.bits(called, codes, "solver(b) and solve(b) to give the same codes", "")
    if check.wants("report"):
        remedy = "solve returns (codes, info); info has cost, residual and status, the last two one a signal."
        found = {name: check.attribute(info, name, remedy) for name in ("cost", "residual", "status")}
        right = np.all(found["cost"] > 0 if cost is None else found["cost"] == cost)
        check.require(right, "a cost above 0" if cost is None else f"a cost of {cost}", found["cost"], remedy)
        check.require(np.all(found["status"] == Status.OK), "status OK", found["status"], "All signals are finite.")
        apart = (np.asarray(solver.synthesise(codes)) - b).reshape(len(b), -1)
        check.close(found["residual"], np.linalg.norm(apart, axis=1), 1e-3, "the residual ‖D x − b‖", remedy)
    calls = [lambda: program(solver, b[::-1]), *(lambda other=other: program(other, b) for other in others)]
    no_retrace(check, program, calls, len(others))
    if others and check.wants("numbers are used"):
        for other in others:
            check.require(not same_bits(program(other, b)[0], codes), "other codes", "the same", "Is the number used?")
    every_number_is_used(check, solver, lambda which: program(which, b), unused)
    if check.wants("saved and loaded"):
        arrays, rest = eqx.partition(solver, eqx.is_array)
        loaded = eqx.combine(check.saved(arrays), rest)
        check.bits(program(loaded, b)[0], codes, "the same codes of a loaded solver", "Keep arrays in the solver.")
    if check.wants("same signals, same bits"):
        check.bits(program(solver, b)[0], codes, "the same codes from the same signals", "")
    if check.wants("signals do not see each other"):
        remedy = "Reduce over a signal's own axes alone."
        check.close(
            on_host(program(solver, b[::-1])[0])[::-1], codes, rtol, "the codes in the order of the signals", remedy
        )
        strangers = np.concatenate([b[:1], 3.0 * b[1:] + 1.0])
        check.close(
            row(program(solver, strangers)[0], 0), codes[0], rtol, "the code it has among other signals", remedy
        )
    if check.wants("divergence"):
        broken, info, _ = on_host(program(solver, with_nan(b)))
        status = np.broadcast_to(np.asarray(info.status), (len(b),))
        expected = [int(Status.DIVERGED)] + [int(Status.OK)] * (len(b) - 1)
        check.require(status.tolist() == expected, f"status {expected} where one signal is nan", status.tolist(), "")
        check.close(broken[1:], codes[1:], rtol, "the other signals' codes as before", "")
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide = jax.tree.map(widened, solver)
            types = inexact_types(eqx.filter_eval_shape(wide, np.asarray(b, np.float64)))
        check.require(types == {"float64"}, "codes of float64", types, "Take the signals' type for all numbers.")
    return check.finish()
