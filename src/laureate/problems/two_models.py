"""A fast classifier of handwritten digits and a slow one, on images that neither was trained on."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.problems.datasets import small_images
from laureate.problems.scores import linear_classifier, whole_labels

__all__ = ["AnswerTable", "Answers", "FastAndSlow"]


class Answers(NamedTuple):
    """What two models say of images.

    logits: the fast model's, [n, classes]. labels: the right ones, [n]. fast, slow: whether each model is right, [n].
    """

    logits: Float[Array, "n 10"]
    labels: Int[Array, " n"]
    fast: Array
    slow: Array


class FastAndSlow(eqx.Module):
    """Fast: a linear classifier of coarse images. Slow: kernel ridge regression on whole ones.

    Every key trains both anew, on the same ``train`` images; the pool is all others.

    data: "digits" (coarse: 4 × 4) or "mnist-5k" (slow at 14 × 14, coarse 7 × 7). train: images. steps: of Adam.

    >>> answers = FastAndSlow("digits", train=50, steps=5).pool(jax.random.key(0))
    >>> answers.logits.shape, answers.slow.shape
    ((1747, 10), (1747,))
    """

    images: Float[Array, "n pixels"]
    coarse: Float[Array, "n few"]
    labels: Int[Array, " n"]
    train: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __init__(self, data: str = "digits", train: int = 500, steps: int = 200):
        found = small_images(data)
        images = _halved(found.train_images) if found.train_images.shape[1] == 28 else found.train_images
        require("FastAndSlow", "train", f"in [10, {len(images)})", train, lambda t: 10 <= t < len(images))
        flat = lambda a: jnp.asarray(a.reshape(len(a), -1) - a.mean())  # noqa: E731
        self.images, self.coarse = flat(images), flat(_halved(images))
        self.labels = jnp.asarray(found.train_labels)
        self.train, self.steps = train, steps

    def pool(self, key: Array) -> Answers:
        """What the models of this key say to all images that they were not trained on."""
        return _answers(self, key)


class AnswerTable(eqx.Module):
    """One's own models: logits ``[n, K]`` of the fast one, labels ``[n]``, and whether the slow one is right ``[n]``.

    Every key has the same pool.
    """

    logits: Float[Array, "n K"]
    labels: Int[Array, " n"]
    slow: Array

    def __init__(self, logits: Any, labels: Any, slow: Any):
        self.logits, self.slow = jnp.asarray(logits, jnp.float32), jnp.asarray(slow, bool)
        shape = (self.logits.shape[:1],) * 2
        require("AnswerTable", "logits", "[n, K]", self.logits.ndim, lambda d: d == 2)
        shapes = (np.shape(labels), self.slow.shape)
        require("AnswerTable", "labels", "one for each row, and slow as well", shapes, lambda s: s == shape)
        self.labels = whole_labels("AnswerTable", self.logits, labels)

    def pool(self, key: Array) -> Answers:
        """All rows."""
        del key
        return Answers(self.logits, self.labels, self.logits.argmax(axis=1) == self.labels, self.slow)


def _halved(images: np.ndarray) -> np.ndarray:
    side = images.shape[1] // 2
    return images[:, : 2 * side, : 2 * side].reshape(-1, side, 2, side, 2).mean((2, 4))


@eqx.filter_jit
def _answers(problem: FastAndSlow, key: Array) -> Answers:
    order = jax.random.permutation(key, len(problem.labels))
    known, others = order[: problem.train], order[problem.train :]
    labels = problem.labels[known]
    weights, biases = linear_classifier(problem.coarse[known], labels, problem.steps)
    logits = problem.coarse[others] @ weights + biases

    squared = jnp.sum(problem.images**2, axis=1)
    distance = squared[:, None] + squared[known] - 2 * problem.images @ problem.images[known].T
    kernel = jnp.exp(-distance / jnp.mean(distance) * 4)
    targets = jax.nn.one_hot(labels, 10) - 0.1
    coefficients = jnp.linalg.solve(kernel[known] + 1e-2 * jnp.eye(problem.train), targets)
    answer = jnp.argmax(kernel[others] @ coefficients, axis=1)
    truth = problem.labels[others]
    return Answers(logits, truth, jnp.argmax(logits, axis=1) == truth, answer == truth)
