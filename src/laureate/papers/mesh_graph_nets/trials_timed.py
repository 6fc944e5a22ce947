"""The trial that reads a clock: a learned rollout beside solvers of the same problem. It runs once a seed."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate.graphs import relative_errors, rollout
from laureate.lab.claim import Settings
from laureate.papers.mesh_graph_nets.trials import trained, training
from laureate.papers.mesh_graph_nets.trials_rules import graph_of
from laureate.problems.meshes_simulations import FRAME, Springs, many_frames

__all__ = ["choose", "runtime"]

LONG_ENOUGH = 0.02  # seconds of a lap, below which a clock's noise counts


@eqx.filter_jit
def _trained(key: Array, arm: Mapping[str, Any], problem: Any, scale: Settings) -> Any:
    simulator, info = trained(key, Settings(arm), problem, scale)
    return simulator, training(info)


@eqx.filter_jit
def _rollouts(simulator: Any, problem: Any) -> Array:
    """From the first two frames of all test trajectories."""
    number = problem.test.shape[1] - 2
    one = lambda p, truth: rollout(simulator, graph_of(problem, p), truth[:2], number)[0]  # noqa: E731
    return jax.vmap(one)(problem.test_positions, problem.test)


@eqx.filter_jit
def _solved(springs: Springs, x: Array, v: Array, number: int, substeps: float) -> Array:
    """From the state at the first frame; without that and the second, as the network's.

    substeps: steps a frame; 0.5 is one step every other frame, and what lies between is straight.
    """
    if substeps >= 1:
        return many_frames(springs, x, v, number + 2, FRAME, int(substeps))[:, 2:]
    every = round(1 / substeps)
    coarse = many_frames(springs, x, v, -(-(number + 2) // every) + 1, every * FRAME, 1)
    shares = jnp.arange(every)[:, None, None] / every
    fine = coarse[:, :-1, None] * (1 - shares) + coarse[:, 1:, None] * shares
    return fine.reshape(len(x), -1, *x.shape[1:])[:, 2 : number + 2]


@eqx.filter_jit
def _error(states: Array, problem: Any) -> Array:
    one = lambda p, s, truth: relative_errors(s, truth[2:], graph_of(problem, p))[0]  # noqa: E731
    return jnp.sqrt(jnp.mean(jax.vmap(one)(problem.test_positions, states, problem.test) ** 2))


def choose(errors: Mapping[float, float], bound: float) -> float:
    """The fewest steps a frame whose error is not above the bound; the most where none is."""
    return min((s for s, error in errors.items() if error <= bound), default=max(errors))


def _laps(calls: Mapping[str, Callable[[], Any]], laps: int) -> dict[str, float]:
    """CPU seconds of a call, the median of laps that are taken in turn; each lap repeats a call until it stands out."""
    repeats = {}
    for name, call in calls.items():
        jax.block_until_ready(call())  # compiles
        started = time.process_time()
        jax.block_until_ready(call())
        repeats[name] = 1 + int(LONG_ENOUGH / max(time.process_time() - started, 1e-5))
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(laps):
        for name, call in calls.items():
            started = time.process_time()
            for _ in range(repeats[name]):
                jax.block_until_ready(call())
            seconds[name].append((time.process_time() - started) / repeats[name])
    return {name: float(np.median(found)) for name, found in seconds.items()}


def runtime(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Any]:
    """log10 of the CPU time of the tuned solver, and of the reference, over that of the network's rollout."""
    simulator, report = _trained(key, {name: arm[name] for name in arm}, problem, scale)
    states = _rollouts(simulator, problem)
    error = float(_error(states, problem))
    springs, x, v = problem.springs
    number = states.shape[1]
    solve = lambda substeps: _solved(springs, x, v, number, float(substeps))  # noqa: E731
    errors = {s: float(jnp.nan_to_num(_error(solve(s), problem), nan=jnp.inf)) for s in scale.substeps}
    tuned = choose(errors, error)
    calls = {
        "network": lambda: _rollouts(simulator, problem),
        "tuned": lambda: solve(tuned),
        "reference": lambda: solve(max(scale.substeps)),
    }
    seconds = _laps(calls, scale.laps)
    return {
        "log_faster_than_tuned": np.log10(seconds["tuned"] / seconds["network"]),
        "log_faster_than_reference": np.log10(seconds["reference"] / seconds["network"]),
        "log_error": np.log10(min(error, 1e6)) if np.isfinite(error) else 6.0,
        "log_error_of_one_substep": np.log10(min(errors[1], 1e6)),
        "tuned_substeps": float(tuned),
        "milliseconds": 1000 * seconds["network"],
        **{name: float(value) for name, value in report.items()},
    }
