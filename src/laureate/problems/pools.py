"""Pools of points of which some are labelled: a model's losses with scores to choose by, points on a line, digits."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.problems.datasets import digits

__all__ = ["DigitsPool", "LabelledPool", "LinePool", "NoisyDigits", "Pool", "nats_and_entropy"]


class Pool(eqx.Module):
    """A model of your own on a pool: its loss at every point, and a score >= 0 by which points are chosen.

    losses: ``[N]``, known here so that estimates can be judged. scores: ``[N]``, known without labels; a guess of the
        loss, for instance the entropy of the prediction.

    >>> losses, scores = Pool([0.1, 2.0, 0.3], [0.2, 1.0, 0.4]).draw(jax.random.key(0))
    >>> round(float(losses.mean()), 3), scores.shape
    (0.8, (3,))
    """

    losses: Float[Array, "N"]
    scores: Float[Array, "N"]

    def __init__(self, losses: Any, scores: Any):
        known, guessed = np.asarray(losses, np.float64), np.asarray(scores, np.float64)
        require("Pool", "losses", "a vector of finite numbers", known, lambda x: x.ndim == 1 and np.isfinite(x).all())
        require("Pool", "scores", f"of shape {known.shape}", guessed.shape, lambda s: s == known.shape)
        rule = "finite and >= 0, some above 0"
        require("Pool", "scores", rule, guessed, lambda x: np.isfinite(x).all() and (x >= 0).all() and x.max() > 0)
        self.losses, self.scores = jnp.asarray(known, jnp.float32), jnp.asarray(guessed, jnp.float32)

    def draw(self, key: Key[Array, ""]) -> tuple[Float[Array, "N"], Float[Array, "N"]]:
        """Losses and scores, the same for every key."""
        del key
        return self.losses, self.scores


class DigitsPool(eqx.Module):
    """Digits, split anew for every key: softmax regression learns from some rows, others are the pool.

    Losses are its negative log-likelihoods, scores the entropies of its predictions.

    >>> losses, scores = DigitsPool(num_pool=300).draw(jax.random.key(0))
    >>> losses.shape, bool((losses > 0).all()), bool((scores > 0).all())
    ((300,), True, True)
    """

    inputs: Float[Array, "n d"]
    labels: Int[Array, "n"]
    num_train: int = eqx.field(static=True)
    num_pool: int = eqx.field(static=True)

    def __init__(self, num_train: int = 150, num_pool: int = 1500):
        images, labels = digits()
        left = len(labels) - num_train
        require("DigitsPool", "num_train", ">= 10", num_train, lambda n: n >= 10)
        require("DigitsPool", "num_pool", f"in 1..{left}", num_pool, lambda n: 1 <= n <= left)
        self.inputs, self.labels = jnp.asarray(images.reshape(len(images), -1)), jnp.asarray(labels)
        self.num_train, self.num_pool = num_train, num_pool

    def draw(self, key: Key[Array, ""]) -> tuple[Float[Array, "N"], Float[Array, "N"]]:
        """Losses and scores of one split."""
        order = jax.random.permutation(key, len(self.labels))
        known, pool = order[: self.num_train], order[self.num_train : self.num_train + self.num_pool]
        x, y = self.inputs[known], self.labels[known]

        def cost(model):
            fit = optax.softmax_cross_entropy_with_integer_labels(x @ model[0] + model[1], y).mean()
            return fit + jnp.sum(model[0] ** 2) / (2 * self.num_train)  # as scikit-learn's C = 1

        optimiser = optax.adam(0.1)

        def step(carry, _):
            model, state = carry
            updates, state = optimiser.update(jax.grad(cost)(model), state)
            return (optax.apply_updates(model, updates), state), None

        start = (jnp.zeros((x.shape[1], 10)), jnp.zeros(10))
        (model, _), _ = jax.lax.scan(step, (start, optimiser.init(start)), length=200)
        return nats_and_entropy(self.inputs[pool] @ model[0] + model[1], self.labels[pool])  # pyright: ignore


class LinePool(eqx.Module):
    """Points in one dimension that no line fits, a few of them far from the others.

    y = max(0, x) (|x|^1.5 + sin(20 x)/4). With a gap of 0.5, most points lie uniformly in [0, 0.5] and [1, 1.5] and
    ``num_rare`` in [-1.2, -0.8]; without, in [0, 1] and [-1, -0.5].

    >>> x, y = LinePool().draw(jax.random.key(0))
    >>> x.shape, int((x < 0).sum())
    ((101,), 5)
    """

    num_common: int = eqx.field(static=True, default=96)
    num_rare: int = eqx.field(static=True, default=5)
    gap: float = eqx.field(converter=jnp.asarray, default=0.5)  # pyright: ignore

    def draw(self, key: Key[Array, ""]) -> tuple[Float[Array, "N"], Float[Array, "N"]]:
        """Inputs and targets of one pool."""
        place = jax.random.uniform(key, (self.num_common + self.num_rare,))
        rare = jnp.arange(len(place)) >= self.num_common
        far = jnp.where(self.gap > 0, -1.2 + 0.4 * place, -1 + 0.5 * place)
        x = jnp.where(rare, far, place + jnp.where(place > 0.5, self.gap, 0.0))
        return x, jnp.maximum(0, x) * (jnp.abs(x) ** 1.5 + jnp.sin(20 * x) / 4)


class LabelledPool(NamedTuple):
    """A pool and test rows of one law, labels of both partly wrong.

    inputs, labels: of the pool. test_inputs, test_labels: of the test rows. test_truth: the right labels of these.
    """

    inputs: Array
    labels: Array
    test_inputs: Array
    test_labels: Array
    test_truth: Array


class NoisyDigits(eqx.Module):
    """Digits with rare classes and wrong labels: class c is ``decay``^c times as frequent, ``noise`` of labels random.

    >>> pool = NoisyDigits(num_pool=100, num_test=50).draw(jax.random.key(0))
    >>> pool.inputs.shape, pool.test_labels.shape
    ((100, 64), (50,))
    """

    inputs: Float[Array, "n d"]
    labels: Int[Array, "n"]
    num_pool: int = eqx.field(static=True)
    num_test: int = eqx.field(static=True)
    decay: float
    noise: float

    def __init__(self, num_pool: int = 420, num_test: int = 400, decay: float = 0.8, noise: float = 0.1):
        images, labels = digits()
        total = num_pool + num_test
        require("NoisyDigits", "num_pool", f"so that with num_test at most {len(labels)}", total, len(labels).__ge__)
        self.inputs, self.labels = jnp.asarray(images.reshape(len(images), -1)), jnp.asarray(labels)
        self.num_pool, self.num_test, self.decay, self.noise = num_pool, num_test, decay, noise

    def draw(self, key: Key[Array, ""]) -> LabelledPool:
        """One pool, and as many test rows of the same law; no row is in both."""
        row_key, wrong_key, label_key, order_key = jax.random.split(key, 4)
        count = self.num_pool + self.num_test
        # Rows without replacement, each in proportion to its class.
        noise = jax.random.gumbel(row_key, self.labels.shape)
        rows = jax.lax.top_k(self.labels * jnp.log(self.decay) + noise, count)[1]
        rows = jax.random.permutation(order_key, rows)  # the first ones are the more frequent classes'
        truth = self.labels[rows]
        wrong = jax.random.uniform(wrong_key, (count,)) < self.noise
        labels = jnp.where(wrong, jax.random.randint(label_key, (count,), 0, 10), truth)
        inputs, n = self.inputs[rows], self.num_pool
        return LabelledPool(inputs[:n], labels[:n], inputs[n:], labels[n:], truth[n:])


def nats_and_entropy(logits: Float[Array, "n c"], labels: Int[Array, "n"]) -> tuple[Array, Array]:
    """-log p(label) and the entropy of p, a row each, in nats.

    >>> [round(float(x[0]), 3) for x in nats_and_entropy(jnp.zeros((1, 2)), jnp.array([1]))]
    [0.693, 0.693]
    """
    log_p = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log_p, labels[:, None], 1)[:, 0], -jnp.sum(jnp.exp(log_p) * log_p, axis=1)
