"""The trials behind the claims of the backward tensor-train solver that read no clock."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate.pde import ALS, Basis, MonteCarlo, Polynomials, Solution, TensorTrainSolver, simulate

__all__ = ["CAP", "bond", "interacting", "relative", "solver_of", "trajectories", "value_at_start"]

# A diverged run counts as this error, and a better one never as more: metrics must be finite.
CAP = 10.0
# As many sweeps as the warm start needs; the fixed point of the implicit scheme repeats them. 1e-4 is the paper's.
REGRESSION = ALS(tolerance=1e-3, max_sweeps=3)


WITHOUT_SOLVER = ("mean-of-g", "monte-carlo")


def interval_of(problem, scale) -> tuple[float, float]:
    """Where the paths are: the problem's own ``interval``, if a user's offers one, else the scale's."""
    return getattr(problem, "interval", (scale.low, scale.high))


def solver_of(arm, problem, scale, basis: Basis | None = None) -> TensorTrainSolver:
    """The solver an arm and a scale describe; an arm's own setting wins."""
    chosen = {**scale, **arm}
    return TensorTrainSolver(
        basis=Polynomials(*interval_of(problem, scale), chosen["degree"]) if basis is None else basis,
        rank=chosen["rank"],
        num_steps=chosen["steps"],
        num_samples=chosen["paths"],
        scheme=chosen["scheme"],
        use_terminal=chosen["use_terminal"],
        regression=REGRESSION,
        tolerance=1e-4,
    )


def relative(value, truth) -> Array:
    """|value − truth| / |truth|, at most ``CAP``."""
    error = jnp.abs(value - truth) / jnp.abs(truth)
    return jnp.minimum(jnp.nan_to_num(error, nan=CAP, posinf=CAP), CAP)


def value_at_start(key, arm, problem, scale):
    """error: |V(0, x0) − exact| / |exact|. value: the estimate. unconverged: share of steps that were flagged.

    Two arms solve nothing, with as many paths: the mean of g(X_T), and Monte Carlo of −log E e^{−g} (for h = −½‖z‖²).
    """
    if arm.get("scheme") in WITHOUT_SOLVER:
        v0 = without_solver(key, arm.scheme, problem, scale)
        error = relative(v0, problem.exact(jnp.zeros(()), problem.x0))
        return {"error": error, "value": v0, "unconverged": jnp.zeros(())}
    solution = solver_of(arm, problem, scale).run(key, problem)
    return {
        "error": relative(solution.v0, problem.exact(jnp.zeros(()), problem.x0)),
        "value": jnp.nan_to_num(solution.v0, nan=0.0, posinf=0.0, neginf=0.0),
        "unconverged": jnp.mean(solution.info.status != 0),
    }


def without_solver(key, scheme: str, problem, scale) -> Array:
    """V(0, x0) by simulation alone."""
    if scheme == "monte-carlo":
        return MonteCarlo(scale.paths, scale.steps, "exponential").run(key, problem).v0
    return jnp.mean(jax.vmap(problem.terminal)(simulate(key, problem, scale.paths, scale.steps)[-1]))


def trajectories(key, arm, problem, scale):
    """error: mean relative error along fresh paths, as the paper has it. start_error: of V(0, x0). curve: a time."""
    solution = solver_of(arm, problem, scale).run(key, problem)
    paths = simulate(jax.random.fold_in(key, 1), problem, 50, solution.num_steps)[:-1]

    def at_time(n, x):
        t = solution.times[n]
        learned = jax.vmap(lambda x: solution.value(t, x, interpolate=True))(x)
        return relative(learned, jax.vmap(lambda x: problem.exact(t, x))(x))

    errors = jax.lax.map(lambda inputs: at_time(*inputs), (jnp.arange(solution.num_steps), paths))
    return {
        "error": jnp.mean(errors),
        "start_error": relative(solution.v0, problem.exact(jnp.zeros(()), problem.x0)),
        "curve": jnp.mean(errors, axis=1),
        "time": solution.times[:-1],
    }


def interacting(key, arm, problem, scale):
    """error of V(0, x0) against importance sampling, which is right for any control; reference_error: its own."""
    solution = solver_of(arm, problem, scale).run(key, problem)
    sampler = MonteCarlo(scale.reference_paths, 2 * scale.steps, "exponential")
    reference = sampler.run(jax.random.fold_in(key, 1), problem, control=solution.optimal_control)
    return {
        "error": relative(solution.v0, reference.v0),
        "reference_error": relative(reference.v0 + reference.standard_error, reference.v0),
    }


class _UpTo(Basis):
    """The first ``degree`` + 1 functions of a basis, the others zero: one compiled program for all degrees."""

    whole: Polynomials
    degree: Float[Array, ""]

    @property
    def size(self) -> int:
        return self.whole.size

    @property
    def constant(self):
        return self.whole.constant

    @property
    def interval(self) -> tuple[float, float]:
        return self.whole.interval

    def __call__(self, x):
        keep = jnp.arange(self.size, dtype=x.dtype) <= self.degree
        return self.whole(x) * keep.astype(x.dtype).reshape((1,) * x.ndim + (-1,))


def _mean_residual(key, solution: Solution, num_paths: int) -> Array:
    """Mean |PDE residual| along fresh paths, at a quarter, a half and three quarters of the way."""
    steps = solution.num_steps
    paths = simulate(key, solution.pde, num_paths, steps)
    chosen = jnp.array([steps // 4, steps // 2, (3 * steps) // 4])

    def at_time(n):
        return jnp.mean(jnp.abs(jax.vmap(lambda x: solution.residual(solution.times[n], x))(paths[n])))

    return jnp.mean(jax.lax.map(at_time, chosen))


def bond(key, arm, problem, scale):
    """residual: log10 of the mean |PDE residual| for each degree 0 … 3. error: of V(0, x0) against Feynman and Kac."""
    reference = MonteCarlo(scale.reference_paths, scale.steps).run(jax.random.fold_in(key, 1), problem)
    degrees = jnp.arange(4.0)

    def at_degree(degree) -> Any:
        basis = _UpTo(Polynomials(*interval_of(problem, scale), 3), degree)
        solution = solver_of(arm, problem, scale, basis).run(key, problem)
        return _mean_residual(jax.random.fold_in(key, 2), solution, 50), relative(solution.v0, reference.v0)

    residuals, errors = jax.lax.map(at_degree, degrees)
    residuals = jnp.clip(jnp.nan_to_num(residuals, nan=CAP, posinf=CAP), 1e-12, CAP)
    return {
        "residual": jnp.log10(residuals),
        "degree": degrees,
        "error": errors[-1],
        "errors": errors,
        "reference_error": relative(reference.v0 + reference.standard_error, reference.v0),
    }
