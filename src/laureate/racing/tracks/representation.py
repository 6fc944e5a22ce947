"""Training on pairs of views; the features are judged by the nearest neighbours' labels, which training never saw."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view
from laureate.representation import effective_rank, knn_probe

__all__ = ["facts", "trial"]

BATCH = 64
BANK = 1000  # labelled examples among which neighbours are looked for, at most
NEIGHBOURS = 10


def facts(problem: Any) -> dict[str, Any]:
    """The outputs' length, the batch, and the cost of a few steps."""
    problem = view(problem)
    count, tests = len(problem.labels), len(problem.test_labels)
    if count < 2 * NEIGHBOURS or tests < 4:
        raise UserError(
            f"views.labels and views.test_labels must be at least {2 * NEIGHBOURS} and 4; got {count} and {tests}."
        )
    least = min(np.min(np.asarray(labels)) for labels in (problem.labels, problem.test_labels))
    if least < 0 or int(problem.dim) < 1:
        raise UserError(
            f"views.labels and views.test_labels must be integers from 0, and views.dim >= 1; got {least} and"
            f" {problem.dim}."
        )
    batch = min(BATCH, count)
    classes = 1 + int(max(np.max(np.asarray(problem.labels)), np.max(np.asarray(problem.test_labels))))
    return {"dim": int(problem.dim), "batch": batch, "classes": classes, "smallest": 2 * batch * 8}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same start, batches and judges for all entrants of a seed; tuning is judged by other test examples."""
    clock, views, settings = Clock(scale), view(problem), traced(arm)
    start_key, run_key = jax.random.split(key)
    carry = clock.run(_begin, settings, views, start_key)
    for target in clock.targets():
        carry = clock.run(_advance, settings, views, run_key, carry, jnp.asarray(target, jnp.int32))
        clock.note(int(carry[2]), **clock.run(_judge, views, carry[0].online, arm.classes, str(scale.phase), free=True))
    return clock.record()


def _begin(settings: dict, views: Any, key: Any) -> Any:
    trainer = made(settings, views=views)
    model_key, state_key = jax.random.split(key)
    state = trainer.init(state_key, views.model0(model_key))
    return state, jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32)


def _advance(settings: dict, views: Any, key: Any, carry: Any, target: Any) -> Any:
    trainer = made(settings, views=views)
    state, count, cost = carry
    arrays, rest = eqx.partition(state, eqx.is_array)

    def update(arrays, index):
        pair = views.views(jax.random.fold_in(key, index), settings["batch"])
        state, info = trainer.step(eqx.combine(arrays, rest), *pair)
        return eqx.filter(state, eqx.is_array), info.cost

    arrays, count, cost = spend(update, arrays, count, cost, target)
    return eqx.combine(arrays, rest), count, cost


def _judge(views: Any, model: Any, classes: int, phase: str) -> dict[str, Any]:
    half = len(views.test_labels) // 2
    part = slice(None, half) if phase == "tune" else slice(half, None)
    bank = min(BANK, len(views.labels))
    known, tests = views.features(model, views.images[:bank]), views.features(model, views.test_images[part])
    found = knn_probe(known, views.labels[:bank], tests, views.test_labels[part], classes, k=NEIGHBOURS)
    centred = tests - tests.mean(axis=0, keepdims=True)
    spectrum = jnp.linalg.svd(centred, compute_uv=False) ** 2
    sound = jnp.isfinite(tests).all()
    return {
        "error": jnp.where(sound, 1.0 - found.value, jnp.nan),
        "rank": jnp.where(sound, effective_rank(spectrum), jnp.nan),
    }
