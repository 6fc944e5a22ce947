"""What every solver of a parabolic equation promises."""

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
    is_float,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
    same_bits,
    stacked,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_pde_solver"]


def check_pde_solver(
    solver: Any,
    pde: Any,
    *,
    others: Sequence[Any] = (),
    single: bool = True,
    rtol: float = 1e-6,
    cost: int | None = None,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``run(key, pde) -> solution`` with ``solution.v0``, the value at the start, in double precision.

    solver: an Equinox module (or any pytree). pde: a small equation, made in double precision.
    others: the same solver with other numbers; each must compile nothing.
    single: whether it must work in single precision too, as far as shapes tell.
    rtol: how far V(0, x0) under vmap may be from that of a loop.
    cost: of the whole solution, the sum over its time steps; without it, any positive number will do.
    unused: numbers of the solver that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: the value is a finite number of the equation's type; cost and status are set; the same key gives the
    same bits, another others; no retrace on a second call nor for another number; every number of the solver changes
    the solution; vmap over keys is a loop; no key is consumed twice; all arrays of a solution can be saved and loaded.
    """
    check = Check(type(solver).__name__, skip)
    with jax.enable_x64(True):
        changed = [numbers_as_arrays(other) for other in others]
        _in_double(check, numbers_as_arrays(solver), pde, changed, rtol, cost, unused)
    if single and check.wants("float32"):
        narrow = jax.tree.map(lambda leaf: _narrowed(leaf), (numbers_as_arrays(solver), pde))
        with jax.enable_x64(False):
            key = jax.random.key(0)
            value = eqx.filter_eval_shape(lambda key: narrow[0].run(key, narrow[1]).v0, key)
        remedy = "Take the type of pde.x0 for all numbers."
        check.require(inexact_types(value) == {"float32"}, "a value of float32", inexact_types(value), remedy)
    return check.finish()


def _narrowed(leaf: Any) -> Any:
    return np.asarray(leaf, np.float32) if is_float(leaf) else leaf


def _in_double(
    check: Check,
    solver: Any,
    pde: Any,
    others: Sequence[Any],
    rtol: float,
    cost: int | None,
    unused: Collection[str],
) -> None:
    arrays = lambda solution: eqx.filter(solution, eqx.is_array)  # noqa: E731
    program = Program(lambda key, solver: solver.run(key, pde))
    keys = [jax.random.key(3), jax.random.key(4)]
    with KeyRecorder() as recorder:
        first = program(keys[0], solver)
        keys_used_once(check, recorder)
    second = program(keys[1], solver)
    if check.wants("value"):
        v0 = check.attribute(first, "v0", "A solution has v0, the value at (0, x0).")
        fits = v0.shape == () and v0.dtype == np.float64 and np.isfinite(v0)
        check.require(fits, "one finite float64", f"{v0.dtype}{list(v0.shape)} {v0}", "Take pde.x0's type.")
    if check.wants("report"):
        report = getattr(first, "info", first)
        remedy = "A solution, or its info, has cost and status, one or one a time step."
        found, status = (check.attribute(report, name, remedy) for name in ("cost", "status"))
        right = np.sum(found) > 0 if cost is None else np.sum(found) == cost
        expected = "costs >= 0, some above" if cost is None else f"costs >= 0, {cost} together"
        check.require(np.all(found >= 0) and right, expected, found, remedy)
        known = {int(one) for one in status.ravel()} <= {int(Status.OK), int(Status.NOT_CONVERGED)}
        check.require(known, "status OK or NOT_CONVERGED", status, "Nothing diverges on a sound equation.")
    no_retrace(
        check,
        program,
        [lambda: program(keys[1], solver), *(lambda o=o: program(keys[0], o) for o in others)],
        len(others),
    )
    every_number_is_used(check, solver, lambda which: arrays(program(keys[0], which)), unused)
    if check.wants("same key, same bits"):
        check.bits(arrays(program(keys[0], solver)), arrays(first), "the same solution from the same key", "")
    if check.wants("another key, other bits"):
        check.require(
            not same_bits(first.v0, second.v0), "another value from another key", "the same", "Is the key used?"
        )
    if check.wants("saved and loaded"):
        check.bits(arrays(check.saved(arrays(first))), arrays(first), "what was saved", "")
    if check.wants("vmap over keys is a loop"):
        numbers, rest = eqx.partition(solver, eqx.is_array)
        every = lambda keys, numbers: jax.vmap(lambda k: eqx.combine(numbers, rest).run(k, pde).v0)(keys)  # noqa: E731
        together = Program(every)(jax.numpy.stack(keys), numbers)
        alone = stacked([first.v0, second.v0])
        check.close(together, alone, rtol, "the values of a loop", "Does a loop end for all when it ends for one?")
