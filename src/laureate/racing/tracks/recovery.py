"""Signals with noise on them, given back by so many layers; networks are trained before, on other signals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, traced, view
from laureate.recovery import add_noise, fit, nmse_db

__all__ = ["facts", "trial"]

SNR = 15.0
STEPS = 200


def facts(problem: Any) -> dict[str, Any]:
    """The noise."""
    problem = view(problem)
    shape, signals = np.shape(problem.dictionary), np.shape(problem.signals)
    if len(shape) != 2 or len(signals) != 2 or signals[1] != shape[0] or signals[0] < 16:
        raise UserError(
            f"recording.dictionary must be [N, M] and recording.signals [n >= 16, N]; got {list(shape)} and "
            f"{list(signals)}."
        )
    if not all(np.isfinite(np.asarray(values)).all() for values in (problem.dictionary, problem.signals)):
        raise UserError("recording.dictionary and recording.signals must be finite.")
    return {"snr": float(getattr(problem, "snr", SNR)), "learning_rate": 0.0}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same noise for all entrants of a seed; a seed scores half of the signals that are kept for it."""
    clock, recording, settings = Clock(scale), view(problem), traced(arm)
    signals = jnp.asarray(recording.signals, jnp.float32)
    count = len(signals)
    half, quarter = count // 2, count // 4
    keys = jax.random.split(key, 3)
    order = np.random.default_rng(0).permutation(count)  # which signals are whose does not depend on the seed
    chosen = np.asarray(jax.random.permutation(keys[0], quarter))[: max(1, quarter // 2)]
    first = half if scale.phase == "tune" else half + quarter
    train, test = signals[order[:half]], signals[order[first : first + quarter][chosen]]
    dictionary = jnp.asarray(recording.dictionary, jnp.float32)
    for target in clock.targets():
        solver = clock.run(_solver, settings, dictionary, train, keys[1], target)
        error = clock.run(_judge, solver, test, keys[2], arm.snr, free=True)
        clock.note(target, error=error)
        if clock.pilot:
            break
    return clock.record()


class _Recording:
    """What the code calls the problem, with its dictionary as an array of the program."""

    def __init__(self, dictionary: Any):
        self.dictionary = dictionary


def _solver(settings: dict, dictionary: Any, train: Any, key: Any, budget: int) -> Any:
    solver = made(settings, recording=_Recording(dictionary), budget=budget)
    if not solver.trainable:
        return solver
    noise, own = jax.random.split(key)
    pairs = add_noise(noise, train, settings["snr"]), train
    return fit(own, solver, pairs, optimiser=optax.adam(settings["learning_rate"]), num_steps=STEPS, loss=_loss)[0]


def _loss(solver: Any, codes: Any, target: Any) -> Any:
    return jnp.mean((solver.synthesise(codes) - target) ** 2)


def _judge(solver: Any, test: Any, key: Any, snr: float) -> Any:
    return nmse_db(solver.synthesise(solver(add_noise(key, test, snr))), test)
