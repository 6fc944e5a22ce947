"""An answer of second order in the time step, with an interval that covers the time step's error too."""

import dataclasses
import time
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from laureate import loops
from laureate._core import require
from laureate.pde.problem import Control, ParabolicPDE, euler_move, num_noises
from laureate.pde.solution import Interval, Solution, gains
from laureate.pde.solver import TensorTrainSolver

__all__ = ["Extrapolation", "extrapolate"]


class Extrapolation(NamedTuple):
    """V(0, x0) from two step counts.

    estimate: 2 V_2N − V_N, free of the first order in Δt.
    interval: around it; covers the sampling error and the time step's.
    time_error: V_N − V_2N, which is about what the finer solution is still off by.
    coarse, fine: the solutions with N and 2N steps.
    """

    estimate: Float[Array, ""]
    interval: Interval
    time_error: Float[Array, ""]
    coarse: Solution
    fine: Solution


def extrapolate(
    key: PRNGKeyArray,
    solver: TensorTrainSolver,
    pde: ParabolicPDE,
    control: Control | None = None,
    *,
    num_paths: int = 1000,
    level: float = 0.95,
    progress: Callable[[loops.Progress], None] | None = None,
) -> Extrapolation:
    """Richardson's extrapolation: solve with N and with 2N steps, and remove the error's first order in Δt.

    With V_N = V + a Δt + b Δt² + …, the Euler scheme's error,

        2 V_2N − V_N = V − b Δt²/2 + …,      V_N − V_2N = a Δt/2 + 3b Δt²/4 + ….

    V_N and V_2N are means over the same fresh Brownian paths, as in ``Solution.interval``, so that their difference is
    hardly noisy. The interval reaches to both sides as far as the paths' standard error asks for, and |V_N − V_2N|
    more: that covers what the time step has left where its error is in the range that the expansion describes (the
    second order less than two fifths of the first). It does not cover what the trains cannot represent or have not
    learned: neither rank, nor basis, nor the regression's samples. Compare two of those.

    solver: its ``num_steps`` is N. control: of both solutions, see ``TensorTrainSolver.solve``.
    num_paths: fresh paths, >= 2. level: of the interval, in (0, 1).
    progress: called with a ``laureate.loops.Progress`` after every of the 3N steps in time.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.pde import Polynomials, TensorTrainSolver
    >>> class Decay(eqx.Module):  # V = x² e^{-2T}
    ...     x0: jax.Array
    ...     horizon: float = 0.5
    ...     def drift(self, t, x): return -x
    ...     def diffusion(self, t, x): return jnp.zeros(())
    ...     def driver(self, t, x, y, z): return 0.0 * y
    ...     def terminal(self, x): return jnp.sum(x**2)
    >>> with jax.enable_x64(True):
    ...     solver = TensorTrainSolver(Polynomials(-2.0, 2.0, degree=2), num_steps=5, num_samples=50)
    ...     found = extrapolate(jax.random.key(0), solver, Decay(jnp.ones(1)), num_paths=10)
    ...     off = [float(abs(v - jnp.exp(-1.0))) for v in (found.coarse.v0, found.fine.v0, found.estimate)]
    ...     [round(v, 3) for v in off], bool(found.interval.low < jnp.exp(-1.0) < found.interval.high)
    ([0.019, 0.009, 0.0], True)
    """
    require("extrapolate", "level", "in (0, 1)", level, lambda p: 0 < p < 1)
    require("extrapolate", "num_paths", ">= 2", num_paths, lambda k: k >= 2)
    steps = solver.num_steps
    coarse_key, fine_key, path_key = jax.random.split(key, 3)
    twice = dataclasses.replace(solver, num_steps=2 * steps)
    begun = time.monotonic()
    first, second = (None if progress is None else _part(progress, 3 * steps, done, begun) for done in (0, steps))
    coarse = solver.solve(coarse_key, pde, control, progress=first)
    fine = twice.solve(fine_key, pde, control, progress=second)
    low, high = _together(path_key, coarse, fine, num_paths)
    means = 2 * high - low
    estimate, error = jnp.mean(means), jnp.std(means, ddof=1) / np.sqrt(num_paths)
    time_error = jnp.mean(low - high)
    half = NormalDist().inv_cdf(0.5 + level / 2) * error + jnp.abs(time_error)
    interval = Interval(estimate, estimate - half, estimate + half, error)
    return Extrapolation(estimate, interval, time_error, coarse, fine)


def _part(
    progress: Callable[[loops.Progress], None], total: int, before: int, begun: float
) -> Callable[[loops.Progress], None]:
    """Of the whole: the seconds are those since it began, and a step is expected to take what those of this part do."""

    def report(p: loops.Progress) -> None:
        done = before + p.done
        progress(loops.Progress(done, total, time.monotonic() - begun, p.seconds / p.done * (total - done)))

    return report


@eqx.filter_jit
def _together(
    key: PRNGKeyArray, coarse: Solution, fine: Solution, num_paths: int
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """What every path gives with N and with 2N steps; a coarse step's noise is that of its two fine ones, over √2."""
    pde, steps = coarse.pde, coarse.num_steps
    x0 = jnp.asarray(pde.x0)
    dt = jnp.asarray(pde.horizon, x0.dtype) / steps

    def body(carry, n):
        (x, total), (y, total_fine) = carry
        noise = jax.random.normal(jax.random.fold_in(key, n), (2, num_paths, num_noises(pde)), x0.dtype)
        after = euler_move(pde, n * dt, dt, x, (noise[0] + noise[1]) / np.sqrt(2))
        total = total + gains(coarse, n, dt, x, after)

        def half(carry, given):
            y, total_fine = carry
            m, xi = given
            after = euler_move(pde, m * dt / 2, dt / 2, y, xi)
            return (after, total_fine + gains(fine, m, dt / 2, y, after)), None

        (y, total_fine), _ = jax.lax.scan(half, (y, total_fine), (2 * n + jnp.arange(2), noise))
        return ((after, total), (y, total_fine)), None

    start = jnp.broadcast_to(x0, (num_paths, x0.shape[0])), jnp.zeros(num_paths, x0.dtype)
    ends, _ = jax.lax.scan(body, (start, start), jnp.arange(steps))
    (low, high) = (total + jax.vmap(pde.terminal)(x) for x, total in ends)
    return low, high
