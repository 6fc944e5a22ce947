"""Attacks of so many gradients each: how many images a classifier still tells right."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, traced, view

__all__ = ["facts", "trial"]

EPSILON = 8 / 255
MOST = 128  # images that a seed attacks


def facts(problem: Any) -> dict[str, Any]:
    """The ball, and the size of an image."""
    problem = view(problem)
    shape = np.shape(problem.images)
    if len(shape) != 4 or len(problem.labels) != shape[0] or shape[0] < 8:
        raise UserError(
            f"classifier.images must be [n >= 8, height, width, channels] with as many labels; got {list(shape)} and "
            f"{len(problem.labels)}.",
            "images[..., None] adds the channel of grey images.",
        )
    low, high = float(np.min(problem.images)), float(np.max(problem.images))
    if not (low >= 0 and high <= 1):  # nor nan
        raise UserError(f"classifier.images must lie in [0, 1]; got {low:g} to {high:g}.", "Rescale inside logits.")
    labels = np.asarray(problem.labels)
    if labels.dtype.kind not in "iu" or labels.min() < 0:
        raise UserError(f"classifier.labels must be integers from 0; got {labels.dtype} from {labels.min():g}.")
    epsilon = float(getattr(problem, "epsilon", EPSILON))
    if not 0 < epsilon <= 1:
        raise UserError(f"classifier.epsilon must be > 0 and <= 1; got {epsilon:g}.")
    return {"epsilon": epsilon, "height": shape[1], "width": shape[2], "code": {"ball": f"Linf({epsilon!r})"}}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same images for all entrants of a seed, and others when tuning."""
    clock, classifier, settings = Clock(scale), view(problem), traced(arm)
    half = len(classifier.labels) // 2
    pick, run = jax.random.split(key)
    order = np.asarray(jax.random.permutation(pick, half))[: max(1, min(MOST, half // 2))]
    rows = order if scale.phase == "tune" else half + order
    images, labels = jnp.asarray(classifier.images)[rows], jnp.asarray(classifier.labels)[rows]
    others = list(getattr(classifier, "others", ()))
    if scale.metric == "transferred" and not others:
        raise UserError("classifier.others must hold other classifiers for the metric 'transferred'.")
    for target in clock.targets():
        delta, cost = clock.run(_attack, settings, classifier, run, images, labels, target)
        judges = (classifier.logits, *others)
        right = [float(clock.run(_right, judge, images + delta, labels, free=True)) for judge in judges]
        clock.note(int(cost), accuracy=right[0], transferred=float(np.mean(right[1:])) if others else np.nan)
        if clock.pilot:
            break
    return clock.record()


def _attack(settings: dict, classifier: Any, key: Any, images: Any, labels: Any, budget: int) -> tuple[Any, Any]:
    delta, info = made(settings, classifier=classifier, budget=budget).run(key, images, labels)
    return delta, jnp.sum(info.cost)


def _right(logits: Any, images: Any, labels: Any) -> Any:
    found = logits(images)
    right = jnp.mean((jnp.argmax(found, axis=-1) == labels).astype(found.dtype))
    return jnp.where(jnp.isfinite(found).all(), right, jnp.nan)
