"""The trials of the backward tensor-train solver that read a clock: cost against dimension, error at equal time.

They run once a seed (``over_seeds="loop"``) and compile by themselves.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.papers.tensor_train_pde.trials import WITHOUT_SOLVER, relative, solver_of, without_solver
from laureate.pde import DeepBackward, DeepBSDE
from laureate.problems.pdes import HJBLog

__all__ = ["against_networks", "dimension"]


@functools.cache
def _compiled(function: Callable) -> Callable:
    """``function`` under jit, once for all seeds."""
    return eqx.filter_jit(function)


def _value(solver: Any, key, pde: Any) -> Any:
    return solver.run(key, pde).v0


def _truth(pde: Any) -> Any:
    return pde.exact(jnp.zeros(()), pde.x0)


def _clock(call) -> tuple[Any, float]:
    """The result, waited for, and the CPU seconds it took: the wall's clock also counts other work on the machine."""
    started = time.process_time()
    result = jax.block_until_ready(call())
    return result, time.process_time() - started


def _clocks() -> tuple[float, float]:
    """CPU seconds of the process, and the wall's."""
    return time.process_time(), time.perf_counter()


def _busy(before: tuple[float, float]) -> np.ndarray:
    """How many times longer than the CPU's the wall's clock ran since ``before``: 1 on an idle machine."""
    cpu, wall = (now - then for now, then in zip(_clocks(), before, strict=True))
    return np.asarray(wall / cpu)


def dimension(key, arm, problem, scale):
    """log10 of the seconds of a solve after compilation, the least of three, against log10 of d."""
    before = _clocks()
    dimensions = [int(word) for word in scale.dimensions.split()]
    solver, solve, seconds = solver_of(arm, problem, scale), _compiled(_value), []
    for pde in map(HJBLog, dimensions):
        laps = [_clock(lambda pde=pde: solve(solver, key, pde))[1] for _ in range(4)]
        seconds.append(min(laps[1:]))  # the first lap of the first seed compiles
    return {"seconds": np.log10(seconds), "dimension": np.log10(dimensions), "wall_over_cpu": _busy(before)}


def _bsde_init(solver: DeepBSDE, key, pde: Any) -> Any:
    return solver.init(key, pde)


def _bsde_updates(solver: DeepBSDE, key, pde: Any, state: Any) -> Any:
    return jax.lax.scan(lambda s, _: (solver.step(key, pde, s)[0], None), state, None, length=20)[0]


def _train_bsde(key, pde, arm, scale) -> tuple[Any, float]:
    """V(0, x0) of a deep BSDE solver after ``scale.budget`` seconds of updates, compilation not counted."""
    solver = DeepBSDE(num_steps=scale.steps, learning_rate=arm.learning_rate)
    updates = _compiled(_bsde_updates)
    state = _compiled(_bsde_init)(solver, key, pde)
    jax.block_until_ready(updates(solver, key, pde, state).update)
    started = time.process_time()
    while time.process_time() - started < scale.budget:
        state = updates(solver, key, pde, state)
        jax.block_until_ready(state.update)
    return state.parameters[0], time.process_time() - started


def _train_backward(key, pde, arm, scale) -> tuple[Any, float]:
    """V(0, x0) of a backward network given as many updates a time step as fit into ``scale.budget`` seconds."""
    value = _compiled(_value)

    def solve(num_updates: int):
        # As an array the number is an argument of the program: the pilots and the run are one compilation.
        solver = DeepBackward(num_steps=scale.steps, num_updates=jnp.asarray(num_updates))
        return _clock(lambda: value(solver, key, pde))

    solve(1)  # of the first seed this compiles
    updates, seconds = 1, solve(1)[1]
    # Pilots grow until their seconds stand out of the clock's noise: the run is then at most five times a pilot's.
    while seconds < scale.budget / 5:
        updates *= 2
        seconds = solve(updates)[1]
    return solve(max(1, int(updates * scale.budget / seconds)))


def against_networks(key, arm, problem, scale):
    """error of V(0, x0) and the CPU seconds it took: the tensor train once, the networks for ``scale.budget`` seconds.

    A tensor train that is not done within the budget, in the better of two laps, counts as diverged.
    """
    before = _clocks()
    if arm.solver == "tensor-train":
        solver, solve = solver_of(arm, problem, scale), _compiled(_value)
        laps = [_clock(lambda: solve(solver, key, problem)) for _ in range(3)]
        v0, seconds = min(laps[1:], key=lambda lap: lap[1])  # the first lap of the first seed compiles
        v0 = v0 if seconds <= scale.budget else jnp.nan
    elif arm.solver in WITHOUT_SOLVER:
        value = _compiled(without_solver)
        laps = [_clock(lambda: value(key, arm.solver, problem, scale)) for _ in range(2)]
        v0, seconds = laps[1]  # the first lap of the first seed compiles
    else:
        train = _train_bsde if arm.solver == "deep-bsde" else _train_backward
        v0, seconds = train(key, problem, arm, scale)
    truth = _compiled(_truth)(problem)
    error = np.asarray(relative(v0, truth))
    return {"error": error, "seconds": np.asarray(seconds), "wall_over_cpu": _busy(before)}
