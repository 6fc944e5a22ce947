"""The trials behind the claims of the backward tensor-train solver.

They compile by themselves (``over_seeds="loop"``): the fixed point and the sweeps are while loops, which under vmap
would run as long as the slowest seed, and some trials read a clock.
"""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.pde import ALS, DeepBackward, DeepBSDE, MonteCarlo, Polynomials, Solution, TensorTrainSolver, simulate
from laureate.problems.pdes import HJBLog

__all__ = ["against_networks", "bond", "dimension", "interacting", "trajectories", "value_at_start"]

# A diverged run counts as this error, and a better one never as more: metrics must be finite.
CAP = 10.0
# As many sweeps as the warm start needs; the fixed point of the implicit scheme repeats them. 1e-4 is the paper's.
REGRESSION = ALS(tolerance=1e-3, max_sweeps=3)


@eqx.filter_jit
def _run(solver: Any, key, pde: Any) -> Any:
    return solver.run(key, pde)


def _solver(arm, scale) -> TensorTrainSolver:
    """The solver an arm and a scale describe; an arm's own setting wins."""
    chosen = {**scale, **arm}
    return TensorTrainSolver(
        basis=Polynomials(chosen["low"], chosen["high"], chosen["degree"]),
        rank=chosen["rank"],
        num_steps=chosen["steps"],
        num_samples=chosen["paths"],
        scheme=chosen["scheme"],
        use_terminal=chosen["use_terminal"],
        regression=REGRESSION,
        tolerance=1e-4,
    )


def _relative(value, truth) -> np.ndarray:
    error = np.abs(np.asarray(value) - np.asarray(truth)) / np.abs(np.asarray(truth))
    return np.minimum(np.nan_to_num(error, nan=CAP, posinf=CAP), CAP)


def value_at_start(key, arm, problem, scale):
    """error: |V(0, x0) − exact| / |exact|. value: the estimate. unconverged: share of steps that were flagged."""
    solution = _run(_solver(arm, scale), key, problem)
    truth = problem.exact(jnp.zeros(()), problem.x0)
    return {
        "error": _relative(solution.v0, truth),
        "value": np.nan_to_num(np.asarray(solution.v0), nan=0.0, posinf=0.0, neginf=0.0),
        "unconverged": np.mean(np.asarray(solution.info.status) != 0),
    }


@eqx.filter_jit
def _along(key, solution: Solution, num_paths: int):
    """V and the exact value along fresh paths, at every grid time before T: two arrays [N, k]."""
    pde = solution.pde
    paths = simulate(key, pde, num_paths, solution.num_steps)[:-1]

    def at_time(n, x):
        t = solution.times[n]
        learned = jax.vmap(lambda x: solution.value(t, x, interpolate=True))(x)
        return learned, jax.vmap(lambda x: pde.exact(t, x))(x)  # type: ignore[attr-defined]

    return jax.lax.map(lambda inputs: at_time(*inputs), (jnp.arange(solution.num_steps), paths))


def trajectories(key, arm, problem, scale):
    """error: mean relative error along fresh paths, as the paper has it. start_error: of V(0, x0). curve: a time."""
    solution = _run(_solver(arm, scale), key, problem)
    learned, exact = _along(jax.random.fold_in(key, 1), solution, 50)
    curve = _relative(learned, exact).mean(axis=1)
    return {
        "error": curve.mean(),
        "start_error": _relative(solution.v0, problem.exact(jnp.zeros(()), problem.x0)),
        "curve": curve,
        "time": np.asarray(solution.times[:-1]),
    }


@eqx.filter_jit
def _importance(key, pde, solution: Solution, num_paths: int, num_steps: int):
    return MonteCarlo(num_paths, num_steps, "exponential").run(key, pde, control=solution.optimal_control)


def interacting(key, arm, problem, scale):
    """error of V(0, x0) against importance sampling, which is right for any control; reference_error: its own."""
    solution = _run(_solver(arm, scale), key, problem)
    reference = _importance(jax.random.fold_in(key, 1), problem, solution, scale.reference_paths, 2 * scale.steps)
    return {
        "error": _relative(solution.v0, reference.v0),
        "reference_error": _relative(reference.v0 + reference.standard_error, reference.v0),
    }


@eqx.filter_jit
def _residuals(key, solution: Solution, num_paths: int):
    """Mean |PDE residual| along fresh paths, at a quarter, a half and three quarters of the way."""
    steps = solution.num_steps
    paths = simulate(key, solution.pde, num_paths, steps)
    chosen = [steps // 4, steps // 2, (3 * steps) // 4]
    means = [
        jnp.mean(jnp.abs(jax.vmap(lambda x, n=n: solution.residual(solution.times[n], x))(paths[n]))) for n in chosen
    ]
    return jnp.mean(jnp.stack(means))


def bond(key, arm, problem, scale):
    """residual: log10 of the mean |PDE residual| for each degree 0 … 3. error: of V(0, x0) against Feynman and Kac."""
    reference = _run(MonteCarlo(scale.reference_paths, scale.steps), jax.random.fold_in(key, 1), problem)
    residuals, errors = [], []
    for degree in range(4):
        solution = _run(_solver({**arm, "degree": degree}, scale), key, problem)
        residuals.append(float(_residuals(jax.random.fold_in(key, 2), solution, 50)))
        errors.append(float(_relative(solution.v0, reference.v0)))
    logs = np.log10(np.clip(np.nan_to_num(residuals, nan=CAP, posinf=CAP), 1e-12, CAP))
    return {
        "residual": logs,
        "degree": np.arange(4.0),
        "error": np.asarray(errors[-1]),
        "errors": np.asarray(errors),
        "reference_error": _relative(reference.v0 + reference.standard_error, reference.v0),
    }


def dimension(key, arm, problem, scale):
    """log10 of the seconds of a solve after compilation, the least of three, against log10 of d."""
    seconds = []
    for d in (5, 10, 20, 50, 100):
        pde, solver = HJBLog(d), _solver(arm, scale)
        jax.block_until_ready(_run(solver, key, pde).v0)
        laps = []
        for _ in range(3):
            started = time.perf_counter()
            jax.block_until_ready(_run(solver, key, pde).v0)
            laps.append(time.perf_counter() - started)
        seconds.append(min(laps))
    return {"seconds": np.log10(seconds), "dimension": np.log10([5.0, 10.0, 20.0, 50.0, 100.0])}


_bsde_updates = eqx.filter_jit(
    lambda solver, key, pde, state: jax.lax.scan(
        lambda s, _: (solver.step(key, pde, s)[0], None), state, None, length=20
    )[0]
)
_bsde_init = eqx.filter_jit(lambda solver, key, pde: solver.init(key, pde))


def _train_bsde(key, pde, steps: int, budget: float) -> tuple[Any, float]:
    """V(0, x0) of a deep BSDE solver after ``budget`` seconds of updates, compilation not counted."""
    solver = DeepBSDE(num_steps=steps)
    state = _bsde_init(solver, key, pde)
    jax.block_until_ready(_bsde_updates(solver, key, pde, state).update)
    started = time.perf_counter()
    while time.perf_counter() - started < budget:
        state = _bsde_updates(solver, key, pde, state)
        jax.block_until_ready(state.update)
    return state.parameters[0], time.perf_counter() - started


def _train_backward(key, pde, steps: int, budget: float) -> tuple[Any, float]:
    """V(0, x0) of a backward network given as many updates a time step as fit into ``budget`` seconds."""
    per_update = _backward_pace(key, pde, steps)
    solver = DeepBackward(num_steps=steps, num_updates=max(1, int(budget / per_update / (steps + 8))))
    jax.block_until_ready(_run(solver, key, pde).v0)
    started = time.perf_counter()
    v0 = jax.block_until_ready(_run(solver, key, pde).v0)
    return v0, time.perf_counter() - started


_paces: dict[Any, float] = {}


def _backward_pace(key, pde, steps: int) -> float:
    """Seconds an update, measured once a process so that all seeds of a cell run one compiled program."""
    identity = (steps, pde.x0.shape)
    if identity not in _paces:
        pilot = DeepBackward(num_steps=steps, num_updates=2)
        jax.block_until_ready(_run(pilot, key, pde).v0)
        started = time.perf_counter()
        jax.block_until_ready(_run(pilot, key, pde).v0)
        _paces[identity] = (time.perf_counter() - started) / (2 * (steps + 8))
    return _paces[identity]


def against_networks(key, arm, problem, scale):
    """error of V(0, x0) and the seconds it took: the tensor train once, the networks for ``scale.budget`` seconds."""
    if arm.solver == "tensor-train":
        solver = _solver(arm, scale)
        jax.block_until_ready(_run(solver, key, problem).v0)
        started = time.perf_counter()
        v0 = jax.block_until_ready(_run(solver, key, problem).v0)
        seconds = time.perf_counter() - started
    else:
        train = _train_bsde if arm.solver == "deep-bsde" else _train_backward
        v0, seconds = train(key, problem, scale.steps, scale.budget)
    return {"error": _relative(v0, problem.exact(jnp.zeros(()), problem.x0)), "seconds": np.asarray(seconds)}
