"""V(0, x0) by each solver, a run of its own for every budget: how far from the truth."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.pde import MonteCarlo, simulate
from laureate.racing.tracks.clock import Clock, made, traced, view

__all__ = ["facts", "trial"]

STEPS = 20
PILOT_PATHS = 200
REFERENCE_PATHS = 100_000
LEAST_SAMPLES = 200


def facts(problem: Any) -> dict[str, Any]:
    """The truth, the interval of the paths, and whether Monte Carlo alone can do it."""
    problem = view(problem)
    with jax.enable_x64(True):
        pde = _double(problem)
        form, value = _monte_carlo(pde)
        truth = _truth(pde, value, form)
        paths = np.asarray(jax.jit(lambda key: simulate(key, pde, PILOT_PATHS, STEPS))(jax.random.key(0)))
    if hasattr(problem, "interval"):
        low, high = map(float, problem.interval)
    else:
        margin = 0.25 * float(paths.max() - paths.min())
        low, high = _short(float(paths.min()) - margin), _short(float(paths.max()) + margin)
    absent = {} if form else {"monte-carlo": "the driver is neither linear in y nor -|z|^2/2"}
    return {
        "steps": STEPS,
        "low": low,
        "high": high,
        "form": form or "linear",
        "truth": truth,
        # Samples enough for the dearest local problem, rank 2 and degree 3, at the first of three points.
        "smallest": 4 * STEPS * LEAST_SAMPLES,
        "absent": absent,
    }


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The paths come from the seed; a solver that needs another scheme draws its own from it."""
    clock, pde, settings = Clock(scale), _double(view(problem)), traced(arm)
    for target in clock.targets():
        value = clock.run(_solve, settings, pde, key, target)
        clock.note(target, error=abs(float(value) - arm.truth) / abs(arm.truth))
        if clock.pilot:
            break
    return clock.record()


def _solve(settings: dict, pde: Any, key: Any, budget: int) -> Any:
    return made(settings, pde=pde, budget=budget).run(key, pde).v0


def _double(pde: Any) -> Any:
    """With its numbers in double precision, which the tensor train needs."""
    if isinstance(pde.x0, jax.Array) and pde.x0.dtype == jnp.float64:
        return pde
    if jax.tree_util.all_leaves([pde]):
        raise UserError(
            "pde must be an equinox.Module (or other pytree) in single precision, so that it can be made double.",
            "Or make pde.x0 float64 under jax.enable_x64(True).",
        )
    return jax.tree.map(
        lambda x: x.astype(jnp.float64) if isinstance(x, jax.Array | np.ndarray) and x.dtype == np.float32 else x, pde
    )


def _monte_carlo(pde: Any) -> tuple[str, float | None]:
    """The form in which simulation alone gives the value, and that value."""
    for form in ("linear", "exponential"):
        solver = MonteCarlo(REFERENCE_PATHS, 4 * STEPS, form)  # finer than any entrant
        value = float(jax.jit(lambda key, solver=solver: solver.run(key, pde).v0)(jax.random.key(12345)))
        if np.isfinite(value):
            return form, value
    return "", None


def _truth(pde: Any, simulated: float | None, form: str) -> float:
    if hasattr(pde, "exact"):
        truth = float(pde.exact(jnp.zeros(()), jnp.asarray(pde.x0)))
    elif hasattr(pde, "reference"):
        truth = float(pde.reference)
    elif simulated is not None:
        truth = simulated
    else:
        raise UserError(
            "pde must offer exact(t, x), or reference = V(0, x0): nothing else tells who is right.",
            f"Monte Carlo cannot stand in, for the driver is neither linear in y nor -|z|^2/2{form}.",
        )
    if not np.isfinite(truth) or truth == 0:
        raise UserError(f"The true V(0, x0) must be finite and not 0, for errors are relative; got {truth}.")
    return truth


def _short(value: float) -> float:
    return float(f"{value:.3g}")
