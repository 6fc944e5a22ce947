"""The backward tensor-train solver for parabolic equations in many dimensions."""

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from laureate import loops
from laureate._core import Status, require
from laureate.pde.als import ALS
from laureate.pde.bases import Basis
from laureate.pde.problem import (
    Control,
    ParabolicPDE,
    check_problem,
    euler_step,
    pull,
    simulate,
    spread,
    terminal_value_and_gradient,
)
from laureate.pde.salsa import SALSA
from laureate.pde.solution import Solution, ValueFunction
from laureate.pde.steps import Along, FixedPoint, SolverState, StepInfo, judge, warn_of_doubts
from laureate.pde.sweep import FitInfo, Samples, enough_samples
from laureate.pde.tensor_train import FunctionalTensorTrain, rank_caps

__all__ = ["TensorTrainSolver"]


def _as_regression(regression: ALS | SALSA | None) -> ALS | SALSA:
    return ALS() if regression is None else regression


class TensorTrainSolver(eqx.Module):
    """Solve ∂_t V + b·∇V + ½ tr(σσᵀ∇²V) + h(t, x, V, σᵀ∇V) = 0, V(T, ·) = g, backwards by tensor-train regression.

    For semilinear parabolic equations in ten to a hundred dimensions: control, finance, physics. Paths X_n of the
    forward process are simulated once; then, from n = N − 1 down to 0,

        V_n = argmin_V mean_k |V(X_n) − y|²,  V = Σ c[i] φ_{i_1} ⋯ φ_{i_d} + c_g g,  with the targets
        explicit:  y = V_{n+1}(X_{n+1}) + h(t_{n+1}, X_{n+1}, Y_{n+1}, Z_{n+1}) Δt
        implicit:  y = V_{n+1}(X_{n+1}) + h(t_n, X_n, Y_n, Z_n) Δt − Z_n·ξ_{n+1} √Δt   (a fixed point from V_{n+1}).

    At n = 0 all paths stand at x0: V(0, x0) is the mean of the targets. Reference: Richter, Sallandt and Nüsken,
    "Solving high-dimensional parabolic PDEs using the tensor train format", ICML 2021. Needs float64.

    basis: functions of one coordinate, e.g. ``Polynomials(low, high, degree)`` with the paths within (low, high).
    rank: the trains' rank (with ``SALSA`` the largest), >= 1.
    num_steps: N, time steps, >= 1.
    num_samples: paths K; at least three an unknown of a local problem.
    scheme: "implicit" is more accurate, "explicit" faster.
    use_terminal: add g to the ansatz (not where g is in the trains' span already).
    regression: ``ALS(...)`` or ``SALSA(...)``.
    num_test: independent paths that stop a regression which learns noise (0: none).
    tolerance: relative change that ends the fixed point, > 0; below the regression's own it is hardly ever met.
    max_iterations: of the fixed point, >= 1; where it stops contracting before (too few samples for the rank), the
        closest iterate is kept and the step reported as NOT_CONVERGED.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.pde import Polynomials, TensorTrainSolver
    >>> class Heat(eqx.Module):
    ...     x0: jax.Array
    ...     horizon: float = 0.5
    ...     def drift(self, t, x): return jnp.zeros_like(x)
    ...     def diffusion(self, t, x): return jnp.ones(())
    ...     def driver(self, t, x, y, z): return 0.0 * y
    ...     def terminal(self, x): return jnp.sum(x**2)
    >>> with jax.enable_x64(True):
    ...     basis = Polynomials(-4.0, 4.0, degree=2)  # holds g, which then need not be added
    ...     solver = TensorTrainSolver(basis, 2, num_steps=5, num_samples=2000, use_terminal=False, tolerance=1e-4)
    ...     round(float(solver.solve(jax.random.key(0), Heat(jnp.zeros(4))).v0), 1)  # d T = 2
    2.0
    """

    basis: Basis
    rank: int = eqx.field(static=True, default=1)
    num_steps: int = eqx.field(static=True, default=100)
    num_samples: int = eqx.field(static=True, default=2000)
    scheme: Literal["implicit", "explicit"] = eqx.field(static=True, default="implicit")
    use_terminal: bool = eqx.field(static=True, default=True)
    regression: ALS | SALSA = eqx.field(default=None, converter=_as_regression)
    num_test: int = eqx.field(static=True, default=0)
    tolerance: Array | float = eqx.field(default=1e-4)
    max_iterations: int = eqx.field(static=True, default=100)

    def __check_init__(self):
        owner = "TensorTrainSolver"
        for name, least in (("rank", 1), ("num_steps", 1), ("num_samples", 2), ("num_test", 0), ("max_iterations", 1)):
            require(owner, name, f">= {least}", getattr(self, name), lambda n, least=least: n >= least)
        rule = "'implicit' or 'explicit'"
        require(owner, "scheme", rule, self.scheme, lambda s: s in ("implicit", "explicit"))
        require(owner, "tolerance", "> 0", self.tolerance, lambda w: w > 0)

    def init(self, key: PRNGKeyArray, pde: ParabolicPDE, control: Control | None = None) -> SolverState:
        """Simulate the paths (under ``control``, if given) and start from V_N = g."""
        self._check(pde)
        train_key, test_key, noise_key = jax.random.split(key, 3)
        paths = simulate(train_key, pde, self.num_samples, self.num_steps, control)
        test = simulate(test_key, pde, self.num_test, self.num_steps, control) if self.num_test else paths[:, :0]
        start = _terminal(noise_key, self.basis, pde.x0.shape[0], self.rank)
        return SolverState(paths, test, start, jnp.asarray(self.num_steps - 1))

    def step(
        self, pde: ParabolicPDE, state: SolverState, control: Control | None = None
    ) -> tuple[SolverState, StepInfo]:
        """One step backward in time, from V_{n+1} to V_n."""
        paths, test, function, n = state
        dt = self._time_step(pde, paths)
        function, info = lax.cond(
            n > 0,
            lambda: self._fit(pde, control, *_window(paths, test, n), function, n, dt),
            lambda: self._finish(pde, control, *_window(paths, test, n), function, n, dt),
        )
        return SolverState(paths, test, function, n - 1), info

    def run(self, key: PRNGKeyArray, pde: ParabolicPDE, control: Control | None = None) -> Solution:
        """The whole solution as one traceable program, for jit and vmap; failures are reported by ``info.status``."""
        state = self.init(key, pde, control)
        dt = self._time_step(pde, state.paths)

        def body(function, n):
            function, info = self._fit(pde, control, *_window(state.paths, state.test_paths, n), function, n, dt)
            return function, (_parts(function), info)

        backwards = jnp.arange(self.num_steps - 1, 0, -1)
        function, (parts, infos) = lax.scan(body, state.function, backwards)
        window = _window(state.paths, state.test_paths, jnp.zeros((), int))
        first, info = self._finish(pde, control, *window, function, jnp.zeros((), int), dt)
        ends = _parts(first), _parts(state.function)
        join = jax.tree.map(lambda a, b, c: jnp.concatenate([a[None], b[::-1], c[None]]), ends[0], parts, ends[1])
        infos = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b[::-1]]), info, infos)
        return Solution(pde, self.basis, join[0], join[1], join[2], v0=info.value, info=infos)

    def solve(
        self,
        key: PRNGKeyArray,
        pde: ParabolicPDE,
        control: Control | None = None,
        checkpoint: str | Path | None = None,
        progress: Callable[[loops.Progress], None] | None = None,
    ) -> Solution:
        """The whole solution, step by step, with failures raised and doubts warned of.

        control: u(t, x) added to the paths' drift as σu; the equation's solution stays the same, the paths go where
            they matter. ``Solution.optimal_control`` of a first run is the natural one.
        checkpoint: a file; the same call again resumes from it. Not refused is only a file of this solver, equation,
            control and key. progress: called with a ``laureate.loops.Progress`` after every step in time.
        """
        self._check(pde)
        train_key, test_key, noise_key = jax.random.split(key, 3)
        paths = _simulate(train_key, pde, self.num_samples, self.num_steps, control)
        test = [paths[0][:0]] * len(paths)
        if self.num_test:
            test = _simulate(test_key, pde, self.num_test, self.num_steps, control)
        start = _begin(noise_key, self.basis, paths[0].shape[1], self.rank)
        dt = self._time_step(pde, paths[0])
        # The programs of a step serve any number of steps, and any value of a setting.
        any_number = loops.firm(dataclasses.replace(self, num_steps=1))

        def advance(function: ValueFunction, done: int, _: int) -> tuple[ValueFunction, Any]:
            n = self.num_steps - 1 - done
            window = _window(paths, test, n)
            function, info = _advance(any_number, pde, control, window, function, jnp.asarray(n), dt, n == 0)
            judge(n, info)
            return function, jax.tree.map(lambda leaf: leaf[None], (_parts(function), info))

        def shapes() -> Any:
            given = (any_number, pde, control, _window(paths, test, 0), start, 0, dt, True)
            function, info = eqx.filter_eval_shape(_advance, *given)
            return jax.tree.map(lambda a: jax.ShapeDtypeStruct((1, *a.shape), a.dtype), (_parts(function), info))

        settings = {"solver": self, "pde": pde, "control": control, "key": key}
        kept = None if checkpoint is None else loops.Checkpoint(checkpoint, settings)
        more = {"shapes": shapes, "progress": progress, "checkpoint": kept}
        _, rows = loops.chunks(advance, start, self.num_steps, 1, **more)
        # By NumPy: what depends on the number of steps would be compiled anew for each.
        parts, infos = jax.tree.map(lambda rows: rows[::-1], rows)
        warn_of_doubts(infos, self.basis, paths)
        join = jax.tree.map(lambda a, b: np.concatenate([a, np.asarray(b)[None]]), parts, _parts(start))
        join, infos = jax.tree.map(jnp.asarray, (join, infos))
        return Solution(pde, self.basis, join[0], join[1], join[2], v0=infos.value[0], info=infos)

    def _check(self, pde: ParabolicPDE) -> None:
        if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            raise RuntimeError(
                "TensorTrainSolver needs float64; call jax.config.update('jax_enable_x64', True) before making arrays, "
                "or work within jax.enable_x64(True)."
            )
        check_problem(pde)
        if jnp.asarray(pde.x0).dtype != jnp.float64:
            raise TypeError(f"pde.x0 must be float64; got {jnp.asarray(pde.x0).dtype}.")
        dimension, size = jnp.asarray(pde.x0).shape[0], self.basis.size
        needed = enough_samples(self.rank, size, dimension, int(self.use_terminal))
        if self.num_samples < needed:
            raise ValueError(
                f"TensorTrainSolver.num_samples must be >= {needed} for rank {self.rank} and {size} functions; "
                f"got {self.num_samples}. Raise num_samples or lower the rank."
            )
        if (cap := int(max(rank_caps(dimension, size, self.rank)))) < self.rank:
            warnings.warn(
                f"TensorTrainSolver.rank = {self.rank} is more than {dimension} coordinates with {size} functions can "
                f"use; it is capped at {cap}.",
                stacklevel=3,
            )

    def _time_step(self, pde: ParabolicPDE, paths: Array) -> Array:
        return jnp.asarray(pde.horizon, paths.dtype) / self.num_steps

    def _along(self, pde: ParabolicPDE, x: Array, after: Array, function: ValueFunction, n: Array, dt: Array) -> Along:
        t = n * dt
        count = len(x)
        points = jnp.concatenate([after, x])  # together, so that each function is compiled once
        g, slope = jax.vmap(lambda x: terminal_value_and_gradient(pde, x))(points)
        wanted = 2 * count if self.scheme == "implicit" else count
        value, gradient = jax.vmap(function.value_and_gradient)(points[:wanted], g[:wanted], slope[:wanted])
        future, present = (value[:count], gradient[:count]), (value[count:], gradient[count:])
        # σ ξ_{n+1} √Δt is what the path did beyond its drift: no noise need be stored, nor σ be invertible. Under a
        # control this holds σuΔt too, which is what the equation then asks for.
        increment = after - x - jax.vmap(lambda x: pde.drift(t, x) * dt)(x)
        return Along(t, dt, x, after, g[count:], slope[count:], increment, future, present)

    def _explicit(self, pde: ParabolicPDE, control: Control | None, p: Along) -> Array:
        """y = V_{n+1}(X_{n+1}) + h(t_{n+1}, X_{n+1}, Y_{n+1}, Z_{n+1}) Δt, less Z·u Δt for controlled paths."""

        def target(x, after, value, gradient):
            time = p.t + p.dt
            z = pull(jnp.asarray(pde.diffusion(time, after)), gradient)
            y = value + pde.driver(time, after, value, z) * p.dt
            if control is None:
                return y
            return y - gradient @ spread(jnp.asarray(pde.diffusion(p.t, x)), control(p.t, x)) * p.dt

        return jax.vmap(target)(p.x, p.after, *p.future)

    def _implicit(self, pde: ParabolicPDE, p: Along, value: Array, gradient: Array) -> Array:
        """y = V_{n+1}(X_{n+1}) + h(t_n, X_n, Y_n, Z_n) Δt − Z_n·ξ_{n+1} √Δt, the last term as ∇V_n·σξ√Δt."""

        def target(x, future, value, gradient, increment):
            z = pull(jnp.asarray(pde.diffusion(p.t, x)), gradient)
            return future + pde.driver(p.t, x, value, z) * p.dt - gradient @ increment

        return jax.vmap(target)(p.x, p.future[0], value, gradient, p.increment)

    def _fit(self, pde, control, x, after, test_x, test_after, function: ValueFunction, n, dt):
        """V_n from V_{n+1} by regression, for n > 0."""
        batches = [self._along(pde, x, after, function, n, dt)]
        if self.num_test:
            batches.append(self._along(pde, test_x, test_after, function, n, dt))
        features = [self.basis(p.x.T) for p in batches]

        def regress(start: FunctionalTensorTrain, targets: list[Array]) -> tuple[ValueFunction, FitInfo]:
            samples = [
                Samples(f, p.g[:, None] if self.use_terminal else p.g[:, None][:, :0], y)
                for f, p, y in zip(features, batches, targets, strict=True)
            ]
            train, weight, info = self.regression.fit(start, *samples)
            c = weight[0] if self.use_terminal else jnp.zeros_like(function.weight)
            return ValueFunction(train, c, jnp.zeros_like(function.offset)), info

        def evaluate(candidate: ValueFunction) -> list[tuple[Array, Array]]:
            return [jax.vmap(candidate.value_and_gradient)(p.x, p.g, p.g_gradient) for p in batches]

        zero = jnp.zeros((), jnp.int32)
        if self.scheme == "explicit":
            targets = [self._explicit(pde, control, p) for p in batches]
            new, fit = regress(function.train, targets)
            first_targets = targets[0]
            change, iterations, cost = jnp.zeros_like(function.offset), zero + 1, fit.cost
        else:

            def body(carry: FixedPoint) -> FixedPoint:
                targets = [self._implicit(pde, p, *v) for p, v in zip(batches, carry.values, strict=True)]
                candidate, fit = regress(carry.candidate.train, targets)
                values = evaluate(candidate)
                difference = jnp.mean((values[0][0] - carry.values[0][0]) ** 2)
                change = jnp.sqrt(difference / jnp.maximum(jnp.mean(values[0][0] ** 2), 1e-300))
                closer = change < carry.change  # false for NaN
                best, best_values, report, change = jax.tree.map(
                    lambda a, b: jnp.where(closer, a, b),
                    (candidate, values[0], fit, change),
                    (carry.best, carry.best_values, carry.report, carry.change),
                )
                rising = jnp.where(closer, 0, carry.rising + 1)
                counts = (rising, carry.iterations + 1, carry.cost + fit.cost)
                return FixedPoint(candidate, values, best, best_values, report, change, *counts)

            def going(carry: FixedPoint):
                return (carry.change > self.tolerance) & (carry.rising < 2) & (carry.iterations < self.max_iterations)

            # The regression must be compiled once only, so the loop starts from an empty report.
            nothing = jnp.zeros_like(function.offset)
            ranks = jnp.zeros(x.shape[1] - 1, jnp.int32)
            report = FitInfo(nothing, nothing, zero, ranks, jnp.asarray(Status.DIVERGED, jnp.int32))
            present = [p.present for p in batches]
            counts = (zero, zero, zero)
            first = FixedPoint(function, present, function, present[0], report, nothing + jnp.inf, *counts)
            last = lax.while_loop(going, body, first)
            new, fit, change, iterations, cost = last.best, last.report, last.change, last.iterations, last.cost
            first_targets = self._implicit(pde, batches[0], *last.best_values)
        return new, self._info(first_targets, fit, change, iterations, cost, batches[0])

    def _finish(self, pde, control, x, after, test_x, test_after, function: ValueFunction, n, dt):
        """V_0: all paths stand at x0, so that the mean of the targets is all there is to learn."""
        p = self._along(pde, x, after, function, n, dt)
        if self.scheme == "explicit":
            targets = self._explicit(pde, control, p)
            now, _ = function.value_and_gradient(p.x[0], p.g[0], p.g_gradient[0])
            change, iterations = jnp.zeros_like(function.offset), jnp.ones((), jnp.int32)
        else:
            value, gradient = p.present
            now = value[0]

            def body(carry):
                level, _, count = carry
                mean = jnp.mean(self._implicit(pde, p, jnp.full_like(value, level), gradient))
                return mean, jnp.abs(mean - level) / jnp.maximum(jnp.abs(mean), 1e-300), count + 1

            start = (now, jnp.ones_like(now), jnp.zeros((), jnp.int32))
            level, change, iterations = lax.while_loop(
                lambda c: (c[1] > self.tolerance) & (c[2] < self.max_iterations), body, start
            )
            targets = self._implicit(pde, p, jnp.full_like(value, level), gradient)
        nothing = jnp.zeros_like(function.offset)
        status = jnp.asarray(Status.OK)
        ranks = jnp.ones(x.shape[1] - 1, jnp.int32)
        fit = FitInfo(nothing, nothing, jnp.zeros((), jnp.int32), ranks, status)
        first = ValueFunction(function.train, function.weight, jnp.mean(targets) - now)
        return first, self._info(targets, fit, change, iterations, fit.cost, p)

    def _info(self, targets, fit: FitInfo, change, iterations, cost, p: Along) -> StepInfo:
        finite = jnp.all(jnp.isfinite(targets)) & jnp.isfinite(fit.residual) & (fit.status != Status.DIVERGED)
        slow = change > self.tolerance
        low, high = self.basis.interval
        return StepInfo(
            residual=fit.residual,
            test_residual=fit.test_residual,
            change=change,
            iterations=iterations,
            cost=cost,
            ranks=fit.ranks,
            value=jnp.mean(targets),
            standard_error=jnp.std(targets, ddof=1) / np.sqrt(len(targets)),
            outside=jnp.mean((p.x < low) | (p.x > high)),
            terminal_finite=jnp.all(jnp.isfinite(p.g)) & jnp.all(jnp.isfinite(p.g_gradient)),
            driver_finite=jnp.all(jnp.isfinite(targets)),
            status=jnp.where(~finite, Status.DIVERGED, jnp.where(slow, Status.NOT_CONVERGED, Status.OK)),
        )


def _window(paths: Any, test: Any, n: Array | int) -> tuple[Array, Array, Array, Array]:
    return paths[n], paths[n + 1], test[n], test[n + 1]


def _parts(function: ValueFunction) -> tuple[Array, Array, Array]:
    return function.train.cores, function.weight, function.offset


def _terminal(key: PRNGKeyArray, basis: Basis, dimension: int, rank: int) -> ValueFunction:
    """V_N = g, with a train to start from."""
    train = FunctionalTensorTrain.start(key, dimension, basis, rank)
    one, zero = jnp.ones((), train.cores.dtype), jnp.zeros((), train.cores.dtype)
    return ValueFunction(train, one, zero)


_begin, _euler_step = eqx.filter_jit(_terminal), eqx.filter_jit(euler_step)


def _simulate(key: PRNGKeyArray, pde: Any, num_paths: int, num_steps: int, control: Control | None) -> list[Array]:
    """``simulate``, one call a step, so that its program serves any number of them and every scheme."""
    x0 = jnp.asarray(pde.x0)
    dt = jnp.asarray(pde.horizon, x0.dtype) / num_steps
    paths = [jnp.broadcast_to(x0, (num_paths, x0.shape[0]))]
    for n in range(num_steps):
        paths.append(_euler_step(jax.random.fold_in(key, n), pde, n * dt, dt, paths[-1], control))
        if not np.isfinite(np.asarray(paths[-1])).all():
            raise FloatingPointError("pde.drift or pde.diffusion gave a value that is not finite along the paths.")
    return paths


@eqx.filter_jit
def _advance(
    solver: TensorTrainSolver, pde: Any, control: Any, window: Any, function: ValueFunction, n: Any, dt: Any, last: bool
):
    work = solver._finish if last else solver._fit
    x, after, test_x, test_after = window
    return work(pde, control, x, after, test_x, test_after, function, n, dt)
