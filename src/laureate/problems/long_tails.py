"""Classes of unequal frequency: long-tailed digits, and rows of one's own."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.problems.datasets import digits

__all__ = ["LongTailedDigits", "RareRows", "Split"]


class Split(NamedTuple):
    """Rows to train on, and rows to test on that have every class.

    inputs, labels: to train on, [n, d] and [n]. test_inputs, test_labels: to test on, [m, d] and [m].
    """

    inputs: Float[Array, "n d"]
    labels: Int[Array, "n"]
    test_inputs: Float[Array, "m d"]
    test_labels: Int[Array, "m"]


class LongTailedDigits(eqx.Module):
    """Digits of which the r-th class has head · ratio^(-r/9) rows for training; which class is r-th depends on the key.

    The test rows are ``test`` of every class. No row is in both.

    >>> split = LongTailedDigits(head=40, ratio=10).draw(jax.random.key(0))
    >>> sorted(np.bincount(split.labels).tolist()), split.test_inputs.shape
    ([4, 5, 7, 9, 11, 14, 19, 24, 31, 40], (800, 64))
    """

    rows: Float[Array, "10 k d"]
    counts: tuple[int, ...] = eqx.field(static=True)
    test: int = eqx.field(static=True)
    num_classes: int = eqx.field(static=True)

    def __init__(self, head: int = 90, ratio: float = 30.0, test: int = 80):
        images, labels = digits()
        smallest = int(np.bincount(labels).min())
        require("LongTailedDigits", "head", f"so that with test at most {smallest}", head + test, smallest.__ge__)
        require("LongTailedDigits", "ratio", f"in 1..{head}", ratio, lambda r: 1 <= r <= head)
        each = [images[labels == c][:smallest].reshape(smallest, -1) for c in range(10)]
        self.rows = jnp.asarray(np.stack(each))
        self.counts = tuple(round(head * ratio ** (-r / 9)) for r in range(10))
        self.test, self.num_classes = test, 10

    def draw(self, key: Key[Array, ""]) -> Split:
        """One split and one order of the classes."""
        order_key, row_key = jax.random.split(key)
        classes = jax.random.permutation(order_key, 10)  # the r-th most frequent class
        keys = jax.random.split(row_key, 10)
        rows = jax.vmap(jax.random.permutation)(keys, self.rows)  # within each class
        inputs = jnp.concatenate([rows[classes[r], :count] for r, count in enumerate(self.counts)])
        labels = jnp.repeat(classes, jnp.asarray(self.counts), total_repeat_length=sum(self.counts))
        held = rows[:, rows.shape[1] - self.test :]
        return Split(inputs, labels, held.reshape(-1, held.shape[-1]), jnp.repeat(jnp.arange(10), self.test))


class RareRows(eqx.Module):
    """Rows of your own, to train on and to test on; inputs are scaled by the training rows, labels are 0..C-1.

    >>> RareRows([[0.0], [2.0], [4.0]], [0, 0, 1], [[2.0], [4.0]], [0, 1]).num_classes
    2
    """

    split: Split
    num_classes: int = eqx.field(static=True)

    def __init__(self, inputs: Any, labels: Any, test_inputs: Any, test_labels: Any):
        x, held = np.asarray(inputs, np.float64), np.asarray(test_inputs, np.float64)
        y, held_y = np.asarray(labels), np.asarray(test_labels)
        rule = "a matrix [n, d] of one row at least"
        require("RareRows", "inputs", rule, x.shape, lambda s: len(s) == 2 and s[0] > 0)
        rule = f"a matrix [m, {x.shape[1]}] of one row at least"
        fits = lambda s: len(s) == 2 and s[0] > 0 and s[1] == x.shape[1]  # noqa: E731  (one column would be repeated)
        require("RareRows", "test_inputs", rule, held.shape, fits)
        for name, rows in (("inputs", x), ("test_inputs", held)):
            fine = bool(np.isfinite(rows).all())
            require("RareRows", name, "finite", fine, lambda ok: ok, "Impute or leave out rows.")
        require("RareRows", "labels", f"whole numbers of shape {x.shape[:1]}", y.shape, x.shape[:1].__eq__)
        require("RareRows", "test_labels", f"of shape {held.shape[:1]}", held_y.shape, held.shape[:1].__eq__)
        for name, classes in (("labels", y), ("test_labels", held_y)):
            wrong = classes[~((classes >= 0) & (classes % 1 == 0))].tolist()
            require("RareRows", name, "whole numbers from 0 on", wrong, lambda w: not w)
        count = int(max(y.max(), held_y.max())) + 1
        for name, classes in (("labels", y), ("test_labels", held_y)):
            absent = sorted(set(range(count)) - set(classes.tolist()))
            require("RareRows", name, f"with every class of 0..{count - 1}; absent are", absent, lambda a: not a)
        mean, deviation = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1)
        scaled = [jnp.asarray((rows - mean) / deviation, jnp.float32) for rows in (x, held)]
        self.split = Split(scaled[0], jnp.asarray(y, jnp.int32), scaled[1], jnp.asarray(held_y, jnp.int32))
        self.num_classes = count

    def draw(self, key: Key[Array, ""]) -> Split:
        """The same rows for every key."""
        del key
        return self.split
