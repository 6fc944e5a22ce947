"""What one backward step of the tensor-train solver needs and reports, and how a solution is made of it."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import Status
from laureate.pde.bases import Basis
from laureate.pde.solution import ValueFunction
from laureate.pde.sweep import FitInfo

__all__ = ["Along", "FixedPoint", "SolverState", "StepInfo", "judge", "warn_of_doubts"]


class SolverState(NamedTuple):
    """What the next backward step needs.

    paths, test_paths: of training and for testing, [steps + 1, paths, d]; the second are none where nothing is tested.
    function: V_{n+1}. n: the step that is to be done.
    """

    paths: Float[Array, "n k d"]
    test_paths: Float[Array, "n q d"]
    function: ValueFunction
    n: Int[Array, ""]


class StepInfo(NamedTuple):
    """How one backward step went.

    residual, test_residual: of the regression, relative. change: the last relative change of the fixed point.
    iterations: of the fixed point. cost: sweeps in all. ranks: in use at each bond. value: mean target (V(0, x0) at n =
    0). standard_error: of that mean. outside: share of coordinates beyond the basis' interval. terminal_finite: whether
    g and its gradient are finite on all paths. driver_finite: whether all targets are. status: NOT_CONVERGED where the
    fixed point still moved, DIVERGED where something is not finite.
    """

    residual: Float[Array, ""]
    test_residual: Float[Array, ""]
    change: Float[Array, ""]
    iterations: Int[Array, ""]
    cost: Int[Array, ""]
    ranks: Int[Array, " bonds"]
    value: Float[Array, ""]
    standard_error: Float[Array, ""]
    outside: Float[Array, ""]
    terminal_finite: Array
    driver_finite: Array
    status: Int[Array, ""]


class Along(NamedTuple):
    """One time step of all paths, with what does not depend on the function sought.

    g and its gradient at x; V_{n+1} and its gradient, future at the next points and present at x (implicit scheme).
    """

    t: Array
    dt: Array
    x: Float[Array, "k d"]
    after: Float[Array, "k d"]
    g: Float[Array, " k"]
    g_gradient: Float[Array, "k d"]
    increment: Float[Array, "k d"]
    future: tuple[Float[Array, " k"], Float[Array, "k d"]]
    present: tuple[Float[Array, " k"], Float[Array, "k d"]]


class FixedPoint(NamedTuple):
    """The implicit step on its way: the candidate and its values, the closest pair met so far, and the counts."""

    candidate: ValueFunction
    values: list[tuple[Array, Array]]
    best: ValueFunction
    best_values: tuple[Array, Array]
    report: FitInfo
    change: Array
    rising: Array
    iterations: Array
    cost: Array


def judge(n: int, info: StepInfo) -> None:
    """Raise what is broken, after each step."""
    if info.status != Status.DIVERGED:
        return
    if not info.terminal_finite:
        raise FloatingPointError(f"pde.terminal or its gradient is not finite at the paths of step n = {n}.")
    if not info.driver_finite:
        raise FloatingPointError(
            f"pde.driver, or the value function it was given, is not finite at step n = {n}. Try a lower rank, "
            "Polynomials(clip=True), more samples, or a larger ridge."
        )
    raise FloatingPointError(f"the regression broke down at step n = {n}. Try a larger ridge or a lower rank.")


def warn_of_doubts(infos: StepInfo, basis: Basis, paths: Sequence[Float[Array, "k d"]]) -> None:
    """Warn once of each doubt, after the last step; ``infos`` of all steps, stacked."""
    outside, status = np.asarray(infos.outside), np.asarray(infos.status)
    far = np.flatnonzero(outside > 0.01)
    if far.size:
        n = int(outside.argmax())
        low, high = np.quantile(np.asarray(paths[n]), [0.001, 0.999])
        warnings.warn(
            f"at {_steps(far, status)}, coordinates lie outside the basis' interval {basis.interval}, at n = {n} "
            f"{100 * float(outside[n]):.0f} % of them; ({low:.3g}, {high:.3g}) would hold all but 0.2 % there.",
            stacklevel=3,
        )
    slow = np.flatnonzero(status == Status.NOT_CONVERGED)
    if slow.size:
        n = int(slow[np.asarray(infos.change)[slow].argmax()])
        warnings.warn(
            f"the fixed point did not converge at {_steps(slow, status)}: at n = {n} its last relative change was "
            f"{float(infos.change[n]):.1e} after {int(infos.iterations[n])} iterations. A smaller time step or more "
            "samples make it contract; a larger tolerance accepts it.",
            stacklevel=3,
        )


def _steps(which: np.ndarray, every: np.ndarray) -> str:
    shown = ", ".join(map(str, which[:5])) + (", …" if which.size > 5 else "")
    return f"{which.size} of {every.size} steps (n = {shown})"
