"""A small network trained on rows of unequal classes: how often it is wrong in each, on rows it has not seen."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.imbalance import class_counts, class_errors, log_prior
from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view

__all__ = ["facts", "trial"]

FEWEST = 8  # rows of a class: two tune, four train, two score
BATCH, WIDTH = 32, 32


def facts(problem: Any) -> dict[str, Any]:
    """The number of classes."""
    rows = view(problem)
    shape, labels = np.shape(rows.features), np.asarray(rows.labels)
    if len(shape) != 2 or labels.shape != shape[:1] or labels.dtype.kind not in "iu" or labels.min(initial=0) < 0:
        raise UserError(
            f"rows.features must be [rows, columns] and rows.labels an integer from 0 a row; got {list(shape)} and "
            f"{labels.dtype}{list(labels.shape)}."
        )
    counts = np.bincount(labels)
    if len(counts) < 2 or counts.min() < FEWEST:
        few = {int(label): int(counts[label]) for label in np.flatnonzero(counts < FEWEST)}
        raise UserError(
            f"rows.labels must be of two classes or more, {FEWEST} rows of each; got {len(counts)} classes, and too "
            f"few rows (class: rows) in {few}.",
            "Leave such classes out, or join them.",
        )
    if not np.isfinite(np.asarray(rows.features, float)).all():
        raise UserError("rows.features must be finite.")
    return {"classes": len(counts), "batch": BATCH, "smallest": 16 * BATCH}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same rows and first weights for all entrants of a seed."""
    clock, rows, settings = Clock(scale), view(problem), traced(arm)
    train, held = shares(np.asarray(rows.labels), key, str(scale.phase))
    features = np.asarray(rows.features, np.float32)
    middle, spread = features[train].mean(0), features[train].std(0) + 1e-6
    known, other = ((jnp.asarray((features[i] - middle) / spread), jnp.asarray(rows.labels)[i]) for i in (train, held))
    start_key, run_key = jax.random.split(key)
    carry = clock.run(_begin, settings, known[0].shape[1], start_key)
    for target in clock.targets():
        carry = clock.run(_advance, settings, known, run_key, carry, jnp.asarray(target, jnp.int32))
        found = clock.run(_judge, settings, known[1], other, carry[0][0], free=True)
        clock.note(int(carry[2]), **found)
    return clock.record()


def shares(labels: np.ndarray, key: Any, phase: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows that train and rows that judge, of every class its share: the rows that tune are the same for all seeds."""
    fixed, own = np.random.default_rng(0), np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint32))
    train, held = [], []
    for label in np.unique(labels):
        rows = fixed.permutation(np.flatnonzero(labels == label))
        tuning, rest = rows[: len(rows) // 4], own.permutation(rows[len(rows) // 4 :])
        third = len(rest) // 3
        train.append(rest[third:])
        held.append(tuning if phase == "tune" else rest[:third])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(held))


def _begin(settings: dict, columns: int, key: Any) -> Any:
    first, second = jax.random.split(key)
    classes = settings["classes"]
    params = (
        jax.random.normal(first, (columns, WIDTH)) / columns**0.5,
        jnp.zeros(WIDTH),
        jax.random.normal(second, (WIDTH, classes)) / WIDTH**0.5,
        jnp.zeros(classes),
    )
    zero = jnp.asarray(0, jnp.int32)
    return (params, optax.adam(settings["learning_rate"]).init(params)), zero, zero


def _network(params: Any, x: Any) -> Any:
    return jax.nn.relu(x @ params[0] + params[1]) @ params[2] + params[3]


def _parts(settings: dict, labels: Any) -> Any:
    """Rows to draw, the loss, and what is done to logits; the prior is that of the training rows."""
    return made(settings)(labels, log_prior(class_counts(labels, settings["classes"])))


def _advance(settings: dict, known: Any, key: Any, carry: Any, target: Any) -> Any:
    (features, labels), adam = known, optax.adam(settings["learning_rate"])
    draw, loss, _ = _parts(settings, labels)

    def update(state, index):
        params, memory = state
        rows = draw(jax.random.fold_in(key, index))
        slope = jax.grad(lambda p: jnp.mean(loss(_network(p, features[rows]), labels[rows])))(params)
        updates, memory = adam.update(slope, memory)
        return (optax.apply_updates(params, updates), memory), jnp.asarray(BATCH)

    state, count, cost = carry
    return spend(update, state, count, cost, target)


def _judge(settings: dict, labels: Any, other: Any, params: Any) -> dict[str, Any]:
    logits = _parts(settings, labels)[2](_network(params, other[0]))
    found = jnp.argmax(logits, axis=-1)
    each = class_errors(found, other[1], settings["classes"])
    told = {"error": jnp.mean(each), "worst": jnp.max(each), "plain": jnp.mean(found != other[1])}
    return {name: jnp.where(jnp.isfinite(logits).all(), value, jnp.nan) for name, value in told.items()}
