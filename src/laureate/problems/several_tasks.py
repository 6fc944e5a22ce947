"""Several losses for one network: two digits on top of each other, six questions about one digit, dialects of digits.

Each offers ``params0``, ``batch``, ``losses``, ``scores`` and ``shared`` as `laureate.multitask.Tasks` asks, and
``draw(key)``, the same problem with another split of the rows and other pairs.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.problems.classifiers import Perceptron
from laureate.problems.datasets import digits

__all__ = ["Dialects", "DigitQuestions", "OverlaidDigits"]

SIZES = {"unequal": (600, 200, 100, 50, 50), "equal": (200, 200, 200, 200, 200)}
PARTS = {"train": (0, 1000), "validation": (1000, 1300), "test": (1300, 1797)}


class OverlaidDigits(eqx.Module):
    """Two digits in one image of 10 × 10, one at each end of a diagonal, the larger pixel of both: which are they?

    A shared layer of ``hidden`` units, and a linear layer a digit. Digits of the training, validation and test parts
    are different ones. The score is the share of right answers.

    >>> problem = OverlaidDigits()
    >>> params = problem.params0(jax.random.key(0))
    >>> problem.losses(params, problem.batch(jax.random.key(1))).shape
    (2,)
    """

    images: Float[Array, "n 8 8"]
    labels: Int[Array, "n"]
    partners: Int[Array, "n"]
    hidden: int = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)

    def __init__(self, hidden: int = 32, batch_size: int = 32):
        images, labels = digits()
        self.images, self.labels = jnp.asarray(images), jnp.asarray(labels)
        self.partners = jnp.asarray(np.concatenate([np.arange(*part)[::-1] for part in PARTS.values()]))
        self.hidden, self.batch_size = hidden, batch_size

    def draw(self, key: Key[Array, ""]) -> "OverlaidDigits":
        """Other digits in each part, and other pairs."""
        order_key, pair_key = jax.random.split(key)
        order = jax.random.permutation(order_key, len(self.labels))
        noise = jax.random.uniform(pair_key, self.labels.shape)
        mates = [first + jnp.argsort(noise[first:end]) for first, end in PARTS.values()]
        changed = (self.images[order], self.labels[order], jnp.concatenate(mates))
        return eqx.tree_at(lambda p: (p.images, p.labels, p.partners), self, changed)

    def shared(self, path: str) -> bool:
        """The layer that both digits use."""
        return "trunk" in path

    def params0(self, key: Key[Array, ""]) -> dict[str, Any]:
        """Random layers."""
        first, second, third = jax.random.split(key, 3)
        heads = tuple(Perceptron(k, (self.hidden, 10)) for k in (second, third))
        return {"trunk": Perceptron(first, (100, self.hidden)), "heads": heads}

    def batch(self, key: Key[Array, ""]) -> tuple[Array, Array]:
        """Pairs of training digits, and the two labels of each."""
        return self._pairs(*jax.random.randint(key, (2, self.batch_size), *PARTS["train"]))

    def features(self, params: Any, batch: Any) -> Float[Array, "b h"]:
        """What the last shared layer says of a batch."""
        return jax.nn.relu(params["trunk"](batch[0]))

    def head_losses(self, params: Any, features: Float[Array, "b h"], batch: Any) -> Float[Array, "2"]:
        """The losses from these features."""
        logits = jnp.stack([head(features) for head in params["heads"]], axis=1)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch[1]), axis=0)

    def losses(self, params: Any, batch: Any) -> Float[Array, "2"]:
        """Mean cross-entropy of the left and of the right digit."""
        return self.head_losses(params, self.features(params, batch), batch)

    def scores(self, params: Any, part: str) -> Float[Array, "2"]:
        """Shares of right answers on the pairs of a part."""
        left = jnp.arange(*PARTS[part])
        images, labels = self._pairs(left, self.partners[left])
        features = self.features(params, (images, labels))
        guesses = jnp.stack([jnp.argmax(head(features), axis=-1) for head in params["heads"]], axis=1)
        return jnp.mean((guesses == labels).astype(jnp.float32), axis=0)

    def _pairs(self, left: Array, right: Array) -> tuple[Array, Array]:
        first = jnp.pad(self.images[left], ((0, 0), (0, 2), (0, 2)))
        second = jnp.pad(self.images[right], ((0, 0), (2, 0), (2, 0)))
        both = jnp.maximum(first, second).reshape(len(left), -1)
        return both, jnp.stack([self.labels[left], self.labels[right]], axis=1)


class DigitQuestions(eqx.Module):
    """Six questions about one digit, in the units that they come in.

    Its class and whether it is odd (cross-entropy); how much of it is ink, in percent; the height and the side of its
    centre, in pixels; and how wide it spreads, in square pixels (squared errors of what is left without the training
    mean). The score of a class is (right - commonest)/(1 - commonest), that of a number (variance - error)/(variance +
    error): 0 for who does not look, 1 for who is always right.

    >>> problem = DigitQuestions()
    >>> params = problem.params0(jax.random.key(0))
    >>> problem.scores(params, "test").shape
    (6,)
    """

    inputs: Float[Array, "n 64"]
    labels: Int[Array, "n"]
    numbers: Float[Array, "n 4"]
    hidden: int = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)

    def __init__(self, hidden: int = 32, batch_size: int = 32):
        images, labels = digits()
        mass = images / images.sum(axis=(1, 2), keepdims=True)
        along, across = np.mgrid[:8, :8]
        centre = [(mass * grid).sum(axis=(1, 2)) for grid in (along, across)]
        spread = sum((mass * grid**2).sum(axis=(1, 2)) - c**2 for grid, c in zip((along, across), centre, strict=True))
        self.inputs, self.labels = jnp.asarray(images.reshape(-1, 64)), jnp.asarray(labels)
        self.numbers = jnp.asarray(np.stack([100 * images.mean(axis=(1, 2)), *centre, spread], axis=1), jnp.float32)
        self.hidden, self.batch_size = hidden, batch_size

    def draw(self, key: Key[Array, ""]) -> "DigitQuestions":
        """Other digits in each part."""
        order = jax.random.permutation(key, len(self.labels))
        changed = (self.inputs[order], self.labels[order], self.numbers[order])
        return eqx.tree_at(lambda p: (p.inputs, p.labels, p.numbers), self, changed)

    @property
    def spreads(self) -> Float[Array, "6"]:
        """What standardised targets divide each loss by: the variance over the training rows, 1 for classes."""
        return jnp.concatenate([jnp.ones(2), jnp.var(self.numbers[slice(*PARTS["train"])], axis=0)])

    def shared(self, path: str) -> bool:
        """The layer that all questions use."""
        return "trunk" in path

    def params0(self, key: Key[Array, ""]) -> dict[str, Any]:
        """Random layers."""
        first, *others = jax.random.split(key, 4)
        heads = tuple(Perceptron(k, (self.hidden, size)) for k, size in zip(others, (10, 2, 4), strict=True))
        return {"trunk": Perceptron(first, (64, self.hidden)), "heads": heads}

    def batch(self, key: Key[Array, ""]) -> Int[Array, "b"]:
        """Training rows."""
        return jax.random.randint(key, (self.batch_size,), *PARTS["train"])

    def losses(self, params: Any, batch: Int[Array, "b"]) -> Float[Array, "6"]:
        """One number a question."""
        digit, odd, numbers = self._answers(params, batch)
        labels = self.labels[batch]
        entropies = [
            jnp.mean(optax.softmax_cross_entropy_with_integer_labels(digit, labels)),
            jnp.mean(optax.softmax_cross_entropy_with_integer_labels(odd, labels % 2)),
        ]
        return jnp.concatenate([jnp.stack(entropies), jnp.mean((numbers - self._centred(batch)) ** 2, axis=0)])

    def scores(self, params: Any, part: str) -> Float[Array, "6"]:
        """One number a question, 0 for who does not look, 1 for who is always right."""
        rows = jnp.arange(*PARTS[part])
        digit, odd, numbers = self._answers(params, rows)
        found = []
        for logits, labels, count in ((digit, self.labels[rows], 10), (odd, self.labels[rows] % 2, 2)):
            right = jnp.mean((jnp.argmax(logits, axis=-1) == labels).astype(jnp.float32))
            commonest = jnp.max(jnp.bincount(labels, length=count)) / len(rows)
            found.append((right - commonest) / (1 - commonest))
        truth = self._centred(rows)
        error, variance = jnp.mean((numbers - truth) ** 2, axis=0), jnp.var(truth, axis=0)
        return jnp.concatenate([jnp.stack(found), (variance - error) / (variance + error)])

    def _answers(self, params: Any, rows: Array) -> tuple[Array, Array, Array]:
        features = jax.nn.relu(params["trunk"](self.inputs[rows]))
        return tuple(head(features) for head in params["heads"])

    def _centred(self, rows: Array) -> Array:
        return self.numbers[rows] - jnp.mean(self.numbers[slice(*PARTS["train"])], axis=0)


class Dialects(eqx.Module):
    """Digits written in five ways, with a different number of training rows each, for one network that is all shared.

    kind: ``"unrelated"``: as they are, transposed, inverted, with pixels shuffled, and noisy; or ``"rotated"``, by
        0, 10, 20, 30 and 40 degrees. sizes: training rows of each: ``"unequal"``, 600, 200, 100, 50 and 50, or
        ``"equal"``, 200. No digit is in two dialects' training rows; the score is the share of right answers on all
        digits of the test part.

    >>> Dialects(sizes="equal").batch(jax.random.key(0))[0].shape
    (5, 16, 64)
    """

    images: Float[Array, "5 n 64"]
    labels: Int[Array, "n"]
    sizes: tuple[int, ...] = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)

    def __init__(
        self,
        kind: str = "unrelated",
        sizes: str = "unequal",
        hidden: int = 32,
        batch_size: int = 16,
    ):
        require("Dialects", "kind", "'unrelated' or 'rotated'", kind, lambda word: word in ("unrelated", "rotated"))
        require("Dialects", "sizes", f"one of {', '.join(SIZES)}", sizes, lambda word: word in SIZES)
        images, labels = digits()
        draw = np.random.default_rng(0)
        if kind == "rotated":
            each = [rotated(images, angle) for angle in (0.0, 10.0, 20.0, 30.0, 40.0)]
        else:
            shuffled = images.reshape(-1, 64)[:, draw.permutation(64)]
            noisy = np.clip(images + 0.3 * draw.normal(size=images.shape), 0, 1)
            each = [images, images.transpose(0, 2, 1), 1 - images, shuffled, noisy]
        self.images = jnp.asarray(np.stack([part.reshape(-1, 64) for part in each]), jnp.float32)
        self.labels = jnp.asarray(labels)
        self.sizes, self.hidden, self.batch_size = SIZES[sizes], hidden, batch_size

    def draw(self, key: Key[Array, ""]) -> "Dialects":
        """Other digits in each part and dialect."""
        order = jax.random.permutation(key, len(self.labels))
        return eqx.tree_at(lambda p: (p.images, p.labels), self, (self.images[:, order], self.labels[order]))

    def shared(self, path: str) -> bool:
        """Everything is."""
        del path
        return True

    def params0(self, key: Key[Array, ""]) -> Perceptron:
        """Random layers."""
        return Perceptron(key, (64, self.hidden, 10))

    def batch(self, key: Key[Array, ""]) -> tuple[Array, Array]:
        """As many rows of every dialect, from those that it has."""
        ends = np.cumsum((0, *self.sizes))
        uniform = jax.random.uniform(key, (5, self.batch_size))
        rows = jnp.asarray(ends[:-1])[:, None] + jnp.floor(uniform * jnp.asarray(self.sizes)[:, None]).astype(jnp.int32)
        return jnp.take_along_axis(self.images, rows[:, :, None], axis=1), self.labels[rows]

    def losses(self, params: Perceptron, batch: Any) -> Float[Array, "5"]:
        """Mean cross-entropy of every dialect."""
        logits = jax.vmap(params)(batch[0])
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch[1]), axis=1)

    def scores(self, params: Perceptron, part: str) -> Float[Array, "5"]:
        """Share of right answers in every dialect."""
        where = slice(*PARTS[part])
        guesses = jnp.argmax(jax.vmap(params)(self.images[:, where]), axis=-1)
        return jnp.mean((guesses == self.labels[where]).astype(jnp.float32), axis=1)


def rotated(images: np.ndarray, degrees: float) -> np.ndarray:
    """Images [n, h, w] turned about their centres, between pixels by the four around, 0 outside.

    >>> turned = rotated(np.array([[[0.0, 1.0], [0.0, 0.0]]]), 90.0)
    >>> turned.round(6).tolist()
    [[[1.0, 0.0], [0.0, 0.0]]]
    """
    height, width = images.shape[1:]
    angle = math.radians(degrees)
    middle = np.array([(height - 1) / 2, (width - 1) / 2])
    places = np.stack(np.mgrid[:height, :width], axis=-1) - middle  # pyright: ignore[reportArgumentType, reportCallIssue]
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    source = places @ turn.T + middle
    low = np.floor(source + 1e-9).astype(int)
    padded = np.pad(images, ((0, 0), (1, 2), (1, 2)))
    result = np.zeros(images.shape)
    for step in np.ndindex(2, 2):
        near = low + step
        weight = np.prod(1 - np.minimum(np.abs(source - near), 1), axis=-1)
        inside = np.clip(near + 1, 0, [height + 1, width + 1])
        result += weight * padded[:, inside[..., 0], inside[..., 1]]
    return result
