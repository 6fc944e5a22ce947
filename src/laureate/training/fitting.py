"""Epochs: batches in a new order each, compiled once per boundary."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import require
from laureate.loops import repeat
from laureate.training.localized import LocalizedInfo, LocalizedState, LocalizedTraining
from laureate.training.rules import Frozen
from laureate.training.schedules import EpochReport, Fixed, History

__all__ = ["fit", "predict", "train"]


def train(
    key: Array,
    trainer: LocalizedTraining,
    state: LocalizedState,
    inputs: Array,
    targets: Array,
    *,
    batch: int,
    num_epochs: int = 1,
    first: Array | int = 0,
) -> tuple[LocalizedState, LocalizedInfo]:
    """Whole epochs at the boundary where the state stands, in one scan, for use inside jit and vmap.

    key: of the batches; their order in an epoch depends on its absolute number alone. first: that of the first one.
    batch: examples a step; those that fill no batch wait for another epoch.

    Returns the state and a row of infos a step.

    trainer: what makes a step. inputs, targets: examples first. num_epochs: how many.
    """
    require("train", "batch", f"within 1 and {len(inputs)}, the examples", batch, lambda b: 1 <= b <= len(inputs))
    steps = len(inputs) // batch
    epochs = jnp.asarray(first) + jnp.arange(num_epochs)
    orders = jax.vmap(lambda e: jax.random.permutation(jax.random.fold_in(key, e), len(inputs)))(epochs)
    orders = orders[:, : steps * batch].reshape(num_epochs * steps, batch)

    def step(state: LocalizedState, index: Array) -> tuple[LocalizedState, LocalizedInfo]:
        rows = orders[index]
        return trainer.step(state, inputs[rows], jax.tree.map(lambda leaf: leaf[rows], targets))

    state, (infos, _) = repeat(step, state, 0, num_epochs * steps)
    return state, jax.tree.map(lambda leaf: leaf[:, 0], infos)


def fit(
    key: Array,
    trainer: LocalizedTraining,
    state: LocalizedState,
    inputs: Array,
    targets: Array,
    *,
    batch: int,
    num_epochs: int,
    history: History = (),
    before_epoch: Callable[[LocalizedState, int], LocalizedState] | None = None,
    after_epoch: Callable[[LocalizedState, EpochReport], None] | None = None,
) -> tuple[LocalizedState, History]:
    """Epoch by epoch, the boundary moved by the trainer's schedule in between; compiled once per boundary.

    history: of the epochs before, to go on where an earlier call ended: two calls are as one.
    before_epoch: called with the state and the epoch's number; the state that it returns goes on, with another learning
        rate in the optimiser's state, for example.
    after_epoch: called with the state and the epoch's report; what it raises ends the run.

    >>> import optax
    >>> from laureate.training import Dense, Frozen, LocalizedTraining, Staircase
    >>> blocks = [Dense(d) for d in jax.random.normal(jax.random.key(0), (2, 4, 4))]
    >>> trainer = LocalizedTraining(Staircase(start=1, every=1), Frozen(), optax.sgd(0.1))
    >>> state, inputs, labels = trainer.init(jax.random.key(1), blocks), jnp.eye(4), jnp.arange(4)
    >>> state, history = fit(jax.random.key(2), trainer, state, inputs, labels, batch=2, num_epochs=2)
    >>> [report.boundary for report in history]
    [0, 1]
    """
    stepping = eqx.tree_at(lambda t: t.schedule, trainer, Fixed())  # another schedule compiles nothing
    plain = eqx.tree_at(lambda t: t.rule, stepping, Frozen())  # nor does another rule where no block is local
    for _ in range(num_epochs):
        if before_epoch is not None:
            state = before_epoch(state, len(history))
        state, _ = _epoch(
            key, stepping if state.boundary.index else plain, state, inputs, targets, batch, jnp.asarray(len(history))
        )
        state, report = trainer.end_epoch(state, history)
        history = (*history, report)
        if after_epoch is not None:
            after_epoch(state, report)
    return state, history


def predict(blocks: Sequence[Any], inputs: Array) -> Array:
    """The network's outputs, with running statistics where there are any."""
    for block in blocks:
        inputs = block(inputs)
    return inputs


@eqx.filter_jit
def _epoch(
    key: Array,
    trainer: LocalizedTraining,
    state: LocalizedState,
    inputs: Array,
    targets: Array,
    batch: int,
    first: Array,
) -> tuple[LocalizedState, LocalizedInfo]:
    return train(key, trainer, state, inputs, targets, batch=batch, first=first)
