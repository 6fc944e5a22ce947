"""LoCal+SGD: schedules that decide on the host, convolutional networks, and what reads a clock."""

import math
import time
import warnings
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from laureate.lab.claim import Settings
from laureate.layers import Convolution, GroupNorm, max_pool
from laureate.papers.localized_learning.trials import MOMENTUM, accuracy_of, most_common, perceptron, rows
from laureate.training import (
    AbstractRule,
    Chain,
    Dense,
    Fixed,
    Frozen,
    Hebbian,
    HebbianCollapseWarning,
    LocalizedState,
    LocalizedTraining,
    NormRule,
    OfEpoch,
    Oja,
    Plateau,
    RandomDirection,
    Staircase,
    WeakSupervision,
    cost_table,
    fit,
    step_cost,
)

__all__ = ["convolutional", "cost", "schedules"]

RULES: dict[str, AbstractRule] = {"frozen": Frozen(), "hebb": Hebbian(), "oja": Oja(), "random": RandomDirection()}
# One object, with its rate in the state: another rate compiles nothing.
OPTIMISER = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1, momentum=MOMENTUM)


def _trainer(schedule: Any, rule: str, rising: float, local_rate: float) -> LocalizedTraining:
    supervision = WeakSupervision(rising=jnp.asarray(rising, jnp.float32))
    rate = jnp.asarray(local_rate, jnp.float32)
    return LocalizedTraining(schedule, RULES[rule], OPTIMISER, supervision=supervision, local_rate=rate)


def _fitted(
    key: Array, trainer: LocalizedTraining, blocks: Any, data: tuple[Array, Array], rate: float, scale: Settings
) -> tuple[Any, list[int]]:
    """The trained blocks and the boundaries of the epochs; the rate falls as a cosine, epoch by epoch."""

    def before(state: LocalizedState, epoch: int) -> LocalizedState:
        now = jnp.asarray(rate * 0.5 * (1 + np.cos(np.pi * epoch / scale.epochs)), jnp.float32)
        return eqx.tree_at(lambda s: s.optimiser.hyperparams["learning_rate"], state, now)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HebbianCollapseWarning)  # it is what is measured
        state = trainer.init(jax.random.fold_in(key, 1), blocks)
        options = {"batch": scale.batch, "num_epochs": scale.epochs, "before_epoch": before}
        state, history = fit(jax.random.fold_in(key, 2), trainer, state, *data, **options)
    return state.blocks, [report.boundary for report in history]


def schedules(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Accuracy and work with a schedule; validation rows choose the rate."""
    data = rows(problem)
    if arm.schedule == "majority":
        accuracy = most_common(problem, scale.classes)
        return {"accuracy": accuracy, "work": jnp.zeros(()), "mean_boundary": jnp.zeros(())}
    blocks = perceptron(jax.random.fold_in(key, 0), data.train[0].shape[1], scale.hidden, scale.layers, scale.classes)
    most = scale.layers - 1
    named = {
        "none": lambda: Fixed(0),
        "static": lambda: Staircase(scale.start, scale.every, max_boundary=most),
        "norm": lambda: NormRule(arm.fraction, scale.window, start=scale.start, max_boundary=most),
        "plateau": lambda: Plateau(arm.fraction, scale.window, start=scale.start, max_boundary=most),
    }

    def tried(schedule: Any, rate: float) -> tuple[float, float, list[int]]:
        trainer = _trainer(schedule, "hebb", -1.0, scale.local_rate)
        after, boundaries = _fitted(key, trainer, blocks, data.train, rate, scale)
        return float(accuracy_of(after, *data.validation)), float(accuracy_of(after, *data.test)), boundaries

    def with_rate(rate: float) -> tuple[float, float, list[int]]:
        if arm.schedule != "random":
            return tried(named[arm.schedule](), rate)
        like = tried(named["norm"](), rate)[2]
        return tried(OfEpoch(_random_path(key, like, most).__getitem__), rate)

    runs = [with_rate(rate) for rate in scale.rates]
    best = int(np.argmax([validation for validation, _, _ in runs]))
    shares = _shares(data.train[0].shape[1], scale.hidden, scale.layers, scale.classes, scale.batch)
    boundaries = runs[best][2]
    return {
        "accuracy": jnp.asarray(runs[best][1]),
        "rate": jnp.asarray(scale.rates[best]),
        "work": jnp.asarray(np.mean([shares[boundary] for boundary in boundaries])),
        "mean_boundary": jnp.asarray(np.mean(boundaries)),
    }


@lru_cache
def _shares(inputs: int, hidden: int, layers: int, classes: int, batch: int) -> tuple[float, ...]:
    """Operations of a step at every boundary, as shares of full backpropagation."""
    blocks = perceptron(jax.random.key(0), inputs, hidden, layers, classes)
    shapes = jax.ShapeDtypeStruct((batch, inputs), jnp.float32), jax.ShapeDtypeStruct((batch,), jnp.int32)
    return tuple(row.localized for row in cost_table(_trainer(Fixed(), "hebb", -1.0, 0.0), blocks, *shapes))


def _random_path(key: Array, like: list[int], most: int) -> list[int]:
    """Boundaries that never fall, at random, with the mean of others as nearly as a thousand draws give it."""
    generator = np.random.default_rng(int(jax.random.bits(jax.random.fold_in(key, 3))))
    paths = np.sort(generator.integers(0, most + 1, size=(1000, len(like))), axis=1)
    nearest = paths[np.argmin(np.abs(paths.mean(1) - np.mean(like)))]
    return [int(boundary) for boundary in (*nearest, nearest[-1])]  # one more: after the last epoch


def network(key: Array, channels: int, classes: int, side: int) -> list[Any]:
    """Four convolutions, two of them with pooling, a dense layer and a head."""
    wide, small = 2 * channels, side // 2 // 2
    shapes = [(3, 3, 1, channels), (3, 3, channels, channels), (3, 3, channels, wide), (3, 3, wide, wide)]
    shapes += [(64, small * small * wide), (classes, 64)]
    sizes = [math.prod(shape) for shape in shapes]
    parts = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
    drawn = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    after = [(), (max_pool,), (), (max_pool,)]
    convolutions = [
        Chain((Convolution(d), GroupNorm(d.shape[-1]), jax.nn.relu, *more))
        for d, more in zip(drawn[:4], after, strict=True)
    ]
    return [*convolutions, Chain((_flat, Dense(drawn[4]), jax.nn.relu)), Dense(drawn[5])]


def _flat(images: Array) -> Array:
    return images.reshape(len(images), -1)


def convolutional(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Test accuracy of a convolutional network; rates are those that another seed's validation rows chose."""
    if arm.rule == "majority":
        return {"accuracy": most_common(problem, scale.classes)}
    rate, local_rate = _chosen(problem, arm, scale)
    accuracy = _trained(key, problem, arm, scale, rate, local_rate)[1]
    return {"accuracy": jnp.asarray(accuracy), "rate": jnp.asarray(rate), "local_rate": jnp.asarray(local_rate)}


TUNING_SEED = 10_000
_CHOSEN: dict[tuple[int, str, str], tuple[Any, tuple[float, float]]] = {}  # with its problem, so that no id comes again


def _chosen(problem: Any, arm: Settings, scale: Settings) -> tuple[float, float]:
    """The rates with the best validation accuracy of a seed that does not count; of equals the largest local rate."""
    asked = id(problem), repr(arm), repr(scale)
    if asked not in _CHOSEN:
        local = arm.rule != "frozen" and arm.schedule != "none"
        pairs = [(r, own) for own in (scale.local_rates[::-1] if local else scale.local_rates[:1]) for r in scale.rates]
        key = jax.random.key(TUNING_SEED)
        _CHOSEN[asked] = problem, max(pairs, key=lambda pair: _trained(key, problem, arm, scale, *pair)[0])
    return _CHOSEN[asked][1]


def _trained(
    key: Array, problem: Any, arm: Settings, scale: Settings, rate: float, local_rate: float
) -> tuple[float, float]:
    blocks = network(jax.random.fold_in(key, 0), scale.channels, scale.classes, problem.inputs.shape[1])
    stairs = Staircase(scale.start, scale.every, shift=2, max_boundary=4)  # two convolutions at a time
    trainer = _trainer(Fixed(0) if arm.schedule == "none" else stairs, arm.rule, arm.rising, local_rate)
    after, _ = _fitted(key, trainer, blocks, (problem.inputs, problem.labels), rate, scale)
    validation = accuracy_of(after, problem.validation_inputs, problem.validation_labels)
    return float(validation), float(accuracy_of(after, problem.test_inputs, problem.test_labels))


def cost(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """CPU time of a step: full backpropagation, Hebb's rule and frozen blocks below half depth, in turn."""
    half = scale.layers // 2
    blocks = perceptron(key, scale.width, scale.width, scale.layers - 1, scale.width)
    inputs = jax.random.normal(jax.random.fold_in(key, 1), (scale.batch, scale.width))
    labels = jnp.arange(scale.batch) % scale.width
    settings = {
        "full": (Frozen(), 0),
        "local": (Hebbian(), half),
        "frozen": (Frozen(), half),
        "last": (Hebbian(), scale.layers - 1),
    }
    steps, states, said = {}, {}, {}
    for name, (rule, boundary) in settings.items():
        trainer = LocalizedTraining(Fixed(boundary), rule, optax.sgd(1e-3))
        states[name] = trainer.init(key, blocks)
        steps[name] = eqx.filter_jit(trainer.step)
        said[name] = step_cost(trainer, blocks, inputs, labels, boundary, elementwise=False).total
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(scale.rounds + 1):
        for name, step in steps.items():
            started = time.process_time()
            states[name], _ = jax.block_until_ready(step(states[name], inputs, labels))
            if turn:  # the first compiles
                seconds[name].append(time.process_time() - started)
    median = {name: float(np.median(spent)) for name, spent in seconds.items()}
    share, model = ({name: found[name] / found["full"] for name in found} for found in (median, said))
    errors = [share[name] / model[name] - 1 for name in ("local", "frozen", "last")]
    return {
        "local_share": jnp.asarray(share["local"]),
        "frozen_share": jnp.asarray(share["frozen"]),
        "local_minus_frozen": jnp.asarray(share["local"] - share["frozen"]),
        "local_operations": jnp.asarray(model["local"]),
        "frozen_operations": jnp.asarray(model["frozen"]),
        "fastest": jnp.asarray(1 / model["last"]),
        "model_error": jnp.asarray(np.max(np.abs(errors))),
    }
