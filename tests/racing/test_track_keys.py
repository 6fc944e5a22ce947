"""No track uses a key twice: planted entrants and problems draw from every key that they are given."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import loops
from laureate.compression import ScalarQuantizer
from laureate.control import BonusPPOInfo, BonusPPOState, Training
from laureate.graphs import FirstOrder
from laureate.lab.claim import Settings
from laureate.multitask import uniform
from laureate.racing.tracks import (
    active,
    calibration,
    categorical_gradients,
    compression,
    exploration,
    generative,
    gradients,
    multitask,
    pde,
    prediction_sets,
    recovery,
    sampling,
    simulators,
)
from laureate.testing import KeyRecorder


class Info(NamedTuple):
    cost: jax.Array


def told(cost=1):
    return Info(jnp.asarray(cost))


class Chain(NamedTuple):
    """Of a sampler."""

    position: jax.Array
    logdensity: jax.Array


class Entrant(eqx.Module):
    """A sampler, an estimator of gradients, a way to choose labels and a generative model in one."""

    def init(self, *given):
        key = given[0] if len(given) == 2 else None
        if key is not None:  # an estimator's; a sampler is given a position, a choice the number of rows
            jax.random.gumbel(key)
        return Chain(jnp.zeros(2), jnp.zeros(()))

    def step(self, key, given, state=None):
        drawn = jax.random.normal(key, (2,))
        if state is None:
            return Chain(drawn, drawn[0]), told()
        return (
            jnp.argmax(drawn) if jnp.ndim(given) else 0.0 * given,
            state,
            SimpleNamespace(q=drawn[0] ** 2, cost=told().cost),
        )

    def train(self, key, x, y, state, *, num_steps, batch):
        jax.random.normal(jax.random.fold_in(key, state.position[0].astype(int)))
        return state._replace(position=state.position + 1), told(jnp.ones(num_steps, int))

    def sample(self, key, state, x, num_samples):
        return jax.random.normal(key, (num_samples, *x.shape))


class Problem(eqx.Module):
    """An energy, an unroll and several tasks in one."""

    horizon: int = 2

    def start(self, key):
        return jax.random.normal(key, (2,))

    def theta0(self, key):
        return jax.random.normal(key)

    def init(self, key, theta):
        return jax.random.normal(key)

    def step(self, key, theta, state):
        state = state + jax.random.normal(key)
        return state, state**2

    def params0(self, key):
        return jax.random.normal(key)

    def batch(self, key):
        return jax.random.normal(key, (2,))

    def losses(self, params, batch):
        return (params - batch) ** 2

    def scores(self, params, part):
        return jnp.stack([params, -params])


class World(eqx.Module):
    """An environment that draws, of episodes of one step."""

    action_space: Any = loops.Discrete(2)
    observation_space: Any = loops.Box((1,))

    def reset(self, key):
        return jax.random.normal(key, (1,)), jnp.zeros(1)

    def step(self, key, state, action):
        state = state + jax.random.normal(key, (1,))
        return state, loops.Timestep(state, state[0], state[0] > 0, jnp.asarray(False))


class Player(eqx.Module):
    """A learner that draws where it acts and where it learns."""

    bonus: bool = True
    num_minibatches: int = 1

    def init(self, observation, num_environments):
        return BonusPPOState(jnp.zeros(()), None, None)  # pyright: ignore[reportArgumentType]

    def act(self, key, observation, state):
        drawn = jax.random.normal(key, observation.shape[:1])
        return (drawn > 0).astype(int), drawn

    def observe(self, rollout, state):
        return state

    def step(self, key, rollout, state):
        value = jax.random.normal(key)
        return state, BonusPPOInfo(value, value, value, value, None, jnp.asarray(rollout.reward.size), jnp.asarray(0))  # pyright: ignore[reportArgumentType]


def player(key, other):
    """Made anew in every program, from the same two keys: noted by names that nothing else has."""
    jax.random.laplace(key)
    jax.random.cauchy(other)
    return Player()


class Trainer:
    """Of simulators."""

    def init(self, simulator):
        return simulator

    def gather(self, key, graph, windows, state):
        jax.random.normal(key)
        return state

    def step(self, key, graph, windows, state):
        jax.random.normal(key)
        return 0.0, state, told(4)


class Simulator(eqx.Module):
    """And a state of its training."""

    count: Any = eqx.field(default_factory=lambda: jnp.zeros(()))
    integrator: Any = eqx.field(static=True, default=FirstOrder())

    @property
    def simulator(self):
        return self


def simulator(key, graph):
    jax.random.laplace(key)
    return Simulator(), Trainer()


class Constant(eqx.Module):
    """Fitted to nothing."""

    def fit(self, p, y):
        return self

    def transform(self, asked):
        return asked


class Solver(eqx.Module):
    """Gives back what it sees."""

    trainable: bool = True

    def __call__(self, signals):
        return signals

    def synthesise(self, codes):
        return codes


class Model(eqx.Module):
    """A trained model, and examples that it is judged by."""

    model: Any = eqx.field(default_factory=lambda: jnp.ones((8, 8)))
    inputs: Any = eqx.field(default_factory=lambda: np.ones((16, 8), np.float32))
    labels: Any = eqx.field(default_factory=lambda: np.arange(16) % 8)
    size: int = 99

    def apply(self, model, inputs):
        return inputs @ model


def small(model, quantizer, key):
    return model + jax.random.normal(key)


class Relaxed(eqx.Module):
    """A loss of categorical variables."""

    inputs: Any = eqx.field(default_factory=lambda: np.ones((16, 2), np.float32))
    targets: Any = eqx.field(default_factory=lambda: np.arange(16.0, dtype=np.float32))

    def theta0(self, key):
        return jax.random.normal(key, (2,))

    def logits(self, params, inputs):
        return inputs * params

    def loss(self, params, z, inputs, targets):
        return targets + jnp.sum(z, axis=-1)


def relaxed(key, function, logits):
    return function(jax.nn.softmax(logits + jax.random.normal(key, logits.shape)))


class Sets:
    """Of labels."""

    def fit(self, key, scores, labels):
        jax.random.gumbel(key)

    def predict_size(self, key, scores):
        jax.random.uniform(key)
        return np.ones(len(scores), int)


class Value(eqx.Module):
    """Of a PDE, at its start."""

    x0: Any = eqx.field(default_factory=lambda: jnp.zeros(2, jnp.float32))


class Paths:
    """A solver that draws."""

    def run(self, key, pde):
        return SimpleNamespace(v0=jax.random.normal(key))


MOTION = {
    "positions": np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    "cells": [[0, 1, 2]],
    "states": np.random.default_rng(0).normal(size=(8, 4, 3, 1)),
}
ROWS = np.tile(np.array([[0.75, 0.25]], np.float32), (60, 1))
SCORES = np.random.default_rng(0).normal(size=(200, 3))
PAIRS = {"x": np.arange(32.0)[:, None], "y": np.arange(32.0)[:, None]}
# Track, entrant, problem, cost, further settings and scales.
TRACKS: dict[str, Any] = {
    "active": (active, (Entrant(), lambda *given: SimpleNamespace(value=0.0, standard_error=0.0)),
               {"losses": ROWS[:, 0], "scores": ROWS[:, 1]}, 4, {}, {"sessions": 2}),
    "calibration": (calibration, Constant(), {"probabilities": ROWS, "labels": np.arange(60) % 2}, 20, {}, {}),
    "categorical-gradients": (categorical_gradients, relaxed, Relaxed(), 8, {"learning_rate": 0.1},
                              {"batch": 4, "draws": 2}),
    "compression": (compression, ScalarQuantizer(4), Model(), 99, {}, {}),
    "exploration": (exploration, player, World(), exploration.ACTORS * exploration.ROLLOUT + 8, {},
                    {"judges": 2, "longest": 2}),
    "generative": (generative, Entrant(), PAIRS, 4, {"batch": 2}, {}),
    "gradients": (gradients, Entrant(), Problem(), 4, {"learning_rate": 0.1}, {"episodes": 2}),
    "multitask": (multitask, uniform(), Problem(), 8, {"learning_rate": 0.1, "num_tasks": 2}, {}),
    "pde": (pde, Paths(), Value(), 4, {"truth": 1.0}, {}),
    "prediction-sets": (prediction_sets, Sets(), {"scores": SCORES, "labels": np.arange(200) % 3}, 40, {"alpha": 0.1},
                        {}),
    "recovery": (recovery, Solver(), {"signals": ROWS, "dictionary": np.eye(2)}, 4,
                 {"snr": 10.0, "learning_rate": 0.1}, {}),
    "sampling": (sampling, Entrant(), Problem(), 64, {}, {"slots": 8}),
    "sampling-pilot": (sampling, Entrant(), Problem(), 64, {}, {"slots": 6, "pilot": 1e-9}),
    "simulators": (simulators, simulator, MOTION, 16, {}, {"batch": 2, "warmup": 2}),
}  # fmt: skip
# Judges that draw nothing and take seconds to compile, k-means and training that draw once, rollouts of two steps.
INSTEAD: dict[Any, Any] = {
    (sampling, "_judge"): lambda *given: {name: jnp.zeros(()) for name in ("ess", "rhat", "logdensity")},
    (simulators, "_judge"): lambda *given: {name: jnp.zeros(()) for name in ("error", "step")},
    (compression, "_small"): small,
    (recovery, "fit"): lambda key, solver, *given, **more: (solver, jax.random.laplace(key)),
    (exploration, "Training"): lambda environment, learner, *sizes: Training(environment, learner, 2, 2),
}
# Of what is made anew in every program only the form is used; what compiles is fitted once more.
AGAIN = {"exploration": ["cauchy", "laplace"], "simulators": ["fold_in and laplace"], "prediction-sets": ["gumbel"]}


@pytest.mark.parametrize("name", TRACKS)
def test_no_key_is_used_twice(name, monkeypatch):
    track, planted, problem, cost, settings, scale = TRACKS[name]
    arm = Settings({"code": "planted", "area": "", "swept": "", "planted": planted, **settings})
    scale = Settings({"cost": cost, "points": 1, "seconds": 100.0, "phase": "score"} | scale)
    for (module, function), instead in INSTEAD.items():
        monkeypatch.setattr(module, function, instead)
    with jax.enable_x64(track is pde), KeyRecorder() as recorder:
        track.trial(jax.random.key(3), arm, problem, scale)
    assert recorder.uses
    found = [one.partition(",")[0] for one in recorder.reused()]
    assert found == AGAIN.get(name, [])
