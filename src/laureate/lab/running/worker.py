"""The only place of the lab where jax runs: one cell in, its observations out.

Everything is imported inside functions, so that planning and reading never load jax.
"""

import gc
import json
import time
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from laureate.lab.cell import Cell, Outcome
from laureate.lab.claim import Compilation, Settings
from laureate.lab.errors import UserError
from laureate.lab.running.memory import forget_peak, peak
from laureate.lab.running.references import is_file, load

__all__ = ["attempt", "compiler_options", "compute", "prepare"]

# A program of minutes is compiled for as long as it runs. "light", XLA takes a third of the time to compile it and the
# program a tenth more to run (benchmarks/lab.py). "lightest", a fifth is saved again, but loops may run thrice as long:
# for programs that hardly run at all. "thorough" is XLA's own way, for the largest.
LIGHT = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,  # a worker has one thread, so parts are only overhead
}
COMPILATIONS: dict[Compilation, dict[str, Any]] = {
    "lightest": LIGHT | {"xla_backend_optimization_level": 0},
    "light": LIGHT,
    "thorough": {},
}


def prepare(compilation_cache: str) -> None:
    """Once in every process that computes: share compiled programs with all others and with later runs."""
    import equinox  # noqa: F401  (loaded here, so that its seconds are not counted as the first cell's)
    import jax

    # Tracing makes objects by the million and hardly a cycle: looking for those is a tenth of a small cell's time.
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    jax.config.update("jax_compilation_cache_dir", compilation_cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def compute(cell: Cell) -> Outcome:
    """Run the trial of one cell for its block of seeds. A failure is an outcome, not an exception."""
    import jax

    started = time.perf_counter()
    forget_peak()
    try:
        # The other layout of threefry compiles four times faster on a CPU, and runs a little faster; what it cannot do,
        # drawing one array over several devices, no trial does.
        with jax.enable_x64(cell.x64), jax.threefry_partitionable(False):
            problem = _problem(cell)
            trial = load(cell.trial)
            run = _vmapped if cell.over_seeds == "vmap" else _looped
            metrics, compile_seconds = run(cell, trial, problem)
        return Outcome(metrics, time.perf_counter() - started - compile_seconds, compile_seconds, memory=peak())
    except UserError as error:
        return Outcome(error=str(error), seconds=time.perf_counter() - started)
    except (Exception, SystemExit) as error:  # a user's file may call exit()
        summary = f"{type(error).__name__}: {error}".splitlines()[0]
        return Outcome(error=f"{summary}\n\n{traceback.format_exc()}", seconds=time.perf_counter() - started)


def attempt(cell: Cell) -> tuple[Any, BaseException | None]:
    """Make the problem of a cell and trace its trial once, computing nothing: the problem, and what went wrong.

    A trial that is called once a seed reads a clock or starts processes: of it only the problem is made.
    """
    import jax

    # The file may have been changed since: what was made or compiled of it is old.
    _make_problem.cache_clear()
    _programs.clear()
    made = None
    try:
        with jax.enable_x64(cell.x64), jax.threefry_partitionable(False):
            made = _made(cell)
            whole = all(getattr(made, name, ...) is not ... for name in cell.accepts)
            if whole and cell.over_seeds == "vmap":
                block, arguments = _block(cell, load(cell.trial), made)
                jax.eval_shape(block, *arguments)
    except (Exception, SystemExit) as error:  # a user's file may call exit()
        return made, error
    return made, None


def _problem(cell: Cell) -> Any:
    if not cell.problem_reference:
        return None
    problem = _made(cell)
    if missing := [name for name in cell.accepts if not hasattr(problem, name)]:
        what = cell.problem_reference.rpartition("/")[2] if is_file(cell.problem_reference) else cell.problem_reference
        raise UserError(
            f"{what} lacks {', '.join(missing)}.",
            f"{cell.paper}/{cell.experiment} needs a problem with: {', '.join(cell.accepts)}.",
        )
    return problem


def _made(cell: Cell) -> Any:
    return _make_problem(cell.problem_reference, json.dumps(dict(cell.problem_settings)), cell.accepts, cell.x64)


@cache
def _make_problem(reference: str, settings: str, accepts: tuple[str, ...], x64: bool) -> Any:
    """A problem may read a data set: once a process is enough, for each precision in which its arrays may be."""
    made = load(reference)
    is_problem = bool(accepts) and not isinstance(made, type) and all(hasattr(made, name) for name in accepts)
    # A class or a function makes the problem; anything that already offers what is needed is one.
    return made(**json.loads(settings)) if callable(made) and not is_problem else made


@cache
def compiler_options(compilation: Compilation) -> dict[str, Any]:
    """The options of ``COMPILATIONS`` that this XLA knows: they come and go between its versions."""
    import jax

    def known(option: dict[str, Any]) -> bool:
        try:
            jax.jit(lambda: 0).lower().compile(compiler_options=option)
        except Exception:  # XLA's errors have no common type of their own
            return False
        return True

    return {name: value for name, value in COMPILATIONS[compilation].items() if known({name: value})}


_programs: dict[str, Callable] = {}


def _block(cell: Cell, trial: Callable, problem: Any) -> tuple[Callable, tuple]:
    """The trial over a block of seeds, and its arguments: the seeds, floats and the problem's arrays."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    arrays, frozen_problem = eqx.partition(problem, eqx.is_array)
    arm_floats, arm_static = _split(cell.arm_settings)
    scale_floats, scale_static = _split(cell.scale_settings)

    def block(seeds, arrays, arm_floats, scale_floats):
        arm, scale = Settings(arm_static, **arm_floats), Settings(scale_static, **scale_floats)
        problem = eqx.combine(arrays, frozen_problem)
        return jax.vmap(lambda seed: _checked(cell, trial(jax.random.key(seed), arm, problem, scale)))(seeds)

    return block, (jnp.arange(cell.start, cell.start + cell.count, dtype=jnp.uint32), arrays, arm_floats, scale_floats)


def _vmapped(cell: Cell, trial: Callable, problem: Any) -> tuple[dict[str, np.ndarray], float]:
    """One compiled program for the whole block of seeds."""
    import jax

    block, arguments = _block(cell, trial, problem)
    started = time.perf_counter()
    if cell.program not in _programs:
        options = compiler_options(cell.compilation)
        _programs[cell.program] = jax.jit(block).lower(*arguments).compile(compiler_options=options)
    compile_seconds = time.perf_counter() - started
    result = _programs[cell.program](*arguments)
    return {name: np.asarray(values) for name, values in result.items()}, compile_seconds


def _looped(cell: Cell, trial: Callable, problem: Any) -> tuple[dict[str, np.ndarray], float]:
    """One call a seed, for trials that read a clock or start processes; they compile by themselves."""
    import jax

    arm, scale = Settings(cell.arm_settings), Settings(cell.scale_settings)
    rows = [
        _checked(cell, trial(jax.random.key(seed), arm, problem, scale))
        for seed in range(cell.start, cell.start + cell.count)
    ]
    return {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}, 0.0


def _checked(cell: Cell, result: Any) -> dict[str, Any]:
    if not isinstance(result, dict) or not result:
        raise TypeError(f"{cell.trial} must return a dict of arrays, one a metric; got {type(result).__name__}.")
    return result


def _split(settings: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """Floats, which are traced so that another value compiles nothing, and the rest, which is compiled in."""
    floats = {name: value for name, value in settings.items() if isinstance(value, float)}
    return floats, {name: value for name, value in settings.items() if name not in floats}
