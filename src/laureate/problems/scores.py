"""Logits of a classifier with the true labels: simulated, of several digits at once, or one's own."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.problems.datasets import small_images

__all__ = ["DigitNumbers", "NoisyScores", "ScoreTable", "linear_classifier", "numbers_of_one_to_three"]


class NoisyScores(eqx.Module):
    """A model whose logits are the true ones with noise, on inputs that are easy and hard: z = s g, s uniform.

    num_classes: K. noise: σ, of the model's logits; 0: the model knows the true probabilities.
    easiest, hardest: the largest and smallest s; the labels are drawn from softmax(z).

    >>> logits, y = NoisyScores(20).sample(jax.random.key(0), 5)
    >>> logits.shape, y.shape
    ((5, 20), (5,))
    """

    num_classes: int = eqx.field(static=True, default=300)
    noise: float = 0.0
    easiest: float = 16.0
    hardest: float = 2.0

    def sample(self, key: Array, num_rows: int) -> tuple[Float[Array, "n K"], Int[Array, " n"]]:
        """Independent rows: what the model says, and the truth."""
        scale_key, logit_key, label_key, noise_key = jax.random.split(key, 4)
        shape = (num_rows, self.num_classes)
        s = jax.random.uniform(scale_key, (num_rows, 1), minval=self.hardest, maxval=self.easiest)
        z = s * jax.random.normal(logit_key, shape)
        y = jax.random.categorical(label_key, z)
        return z + self.noise * jax.random.normal(noise_key, shape), y


class DigitNumbers(eqx.Module):
    """Numbers of several handwritten digits, read by a linear classifier of single digits: 10^digits classes.

    Every key trains a classifier anew, on ``train`` images; numbers are drawn from all other images, at each of
    their places every image once before one comes again.

    data: "digits" or "mnist-5k" (at 14 × 14). digits: how many in a number. train, steps: images and steps of Adam.

    >>> logits, y = DigitNumbers("digits", digits=2, train=50, steps=5).sample(jax.random.key(0), 7)
    >>> logits.shape, bool((y < 100).all())
    ((7, 100), True)
    """

    images: Float[Array, "n pixels"]
    labels: Int[Array, " n"]
    digits: int = eqx.field(static=True)
    train: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __init__(self, data: str = "digits", digits: int = 2, train: int = 300, steps: int = 200):
        found = small_images(data)
        side = found.train_images.shape[1]
        half = found.train_images.reshape(-1, side // 2, 2, side // 2, 2).mean((2, 4))
        images = half if side == 28 else found.train_images
        self.images = jnp.asarray(images.reshape(len(images), -1) - images.mean())
        self.labels = jnp.asarray(found.train_labels)
        rule = f"in [10, {len(images)})"
        require("DigitNumbers", "train", rule, train, lambda t: 10 <= t < len(images))
        require("DigitNumbers", "digits", "in [1, 3]", digits, lambda d: 1 <= d <= 3)
        self.digits, self.train, self.steps = digits, train, steps

    def sample(self, key: Array, num_rows: int) -> tuple[Float[Array, "n K"], Int[Array, " n"]]:
        """Numbers as the classifier of this key reads them, and as they are."""
        return _read(self, key, num_rows)


def linear_classifier(images: Float[Array, "n pixels"], labels: Int[Array, " n"], steps: int) -> Any:
    """Weights and biases of a linear classifier of ten classes, after steps of Adam at 0.05 with all images."""
    optimiser = optax.adam(0.05)

    def loss(params):
        logits = images @ params[0] + params[1]
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))

    def step(carry, _):
        params, state = carry
        updates, state = optimiser.update(jax.grad(loss)(params), state)
        return (optax.apply_updates(params, updates), state), None

    start = (jnp.zeros((images.shape[1], 10)), jnp.zeros(10))
    return jax.lax.scan(step, (start, optimiser.init(start)), None, length=steps)[0][0]


@eqx.filter_jit
def _read(problem: DigitNumbers, key: Array, num_rows: int) -> tuple[Array, Array]:
    order_key, draw_key = jax.random.split(key)
    order = jax.random.permutation(order_key, len(problem.labels))
    known, others = order[: problem.train], order[problem.train :]
    images, labels = problem.images[known], problem.labels[known]

    weights, biases = linear_classifier(images, labels, problem.steps)
    passes = -(-num_rows // len(others))
    keys = jax.random.split(draw_key, (problem.digits, passes))
    draws = [jnp.concatenate([jax.random.permutation(k, others) for k in row])[:num_rows] for row in keys]
    chosen = jnp.stack(draws, axis=1)
    log_p = jax.nn.log_softmax(problem.images[chosen] @ weights + biases)  # [n, digits, 10]
    logits, y = log_p[:, 0], problem.labels[chosen[:, 0]]
    for place in range(1, problem.digits):
        logits = (logits[:, :, None] + log_p[:, place, None, :]).reshape(num_rows, -1)
        y = 10 * y + problem.labels[chosen[:, place]]
    return logits, y


class ScoreTable(eqx.Module):
    """One's own classifier: logits ``[n, K]`` of rows that it was not trained on, and their labels ``[n]``.

    >>> table = ScoreTable(jnp.eye(3)[jnp.array([0, 1, 2, 0])], [0, 1, 2, 1])
    >>> table.sample(jax.random.key(0), 2)[0].shape
    (2, 3)
    """

    logits: Float[Array, "n K"]
    labels: Int[Array, " n"]

    def __init__(self, logits: Any, labels: Any):
        self.logits = jnp.asarray(logits, jnp.float32)
        require("ScoreTable", "logits", "[n, K]", self.logits.shape, lambda s: len(s) == 2 and s[1] >= 2)
        shape = np.shape(labels)
        require("ScoreTable", "labels", "one for each row", shape, lambda s: s == self.logits.shape[:1])
        self.labels = whole_labels("ScoreTable", self.logits, labels)

    def sample(self, key: Array, num_rows: int) -> tuple[Float[Array, "n K"], Int[Array, " n"]]:
        """Different rows in random order; all of them where more are asked for."""
        chosen = jax.random.permutation(key, len(self.labels))[:num_rows]
        return self.logits[chosen], self.labels[chosen]


def whole_labels(owner: str, logits: Float[Array, "n K"], labels: Any) -> Int[Array, " n"]:
    """Labels of a table of one's own; what is no class of its logits is refused, and logits that are no numbers."""
    found, classes = np.asarray(labels), logits.shape[1]
    missing = int(np.isnan(logits).any(axis=1).sum())
    require(owner, "logits", "without nan", f"{missing} rows with some", lambda _: not missing, "Leave them out.")
    wrong = found[~((found >= 0) & (found < classes) & (found % 1 == 0))][:3].tolist()
    require(owner, "labels", f"whole numbers from 0 to {classes - 1}, for {classes} logits", wrong, lambda w: not w)
    return jnp.asarray(found, jnp.int32)


def numbers_of_one_to_three(data: str = "digits", train: int = 300, steps: int = 200) -> tuple[DigitNumbers, ...]:
    """`DigitNumbers` of one, two and three digits: 10, 100 and 1,000 classes by the same classifier.

    data: the set's name. train: images that the classifier is trained on. steps: of its training.
    """
    return tuple(DigitNumbers(data, digits, train, steps) for digits in (1, 2, 3))
