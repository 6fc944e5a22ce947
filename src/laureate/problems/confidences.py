"""Confidences to be calibrated: networks trained on few real images, and scores with known truth."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.problems.datasets import small_images

__all__ = ["TRUTHS", "TrainedNetworks", "known_truth", "scores_of_rank"]


class TrainedNetworks(eqx.Module):
    """A network of one hidden layer, trained anew for every key on few images until it is too sure of itself.

    data: as for ``small_images``; images of 28 × 28 are halved. train: rows to learn from, drawn anew; all others are
    held out. noise: share of all labels, held-out ones too, that are replaced by a random class.
    width, steps, batch, learning_rate: of the hidden layer and of Adam.

    >>> network = TrainedNetworks("digits", train=100, steps=10)
    >>> probabilities, labels = network.predictions(jax.random.key(0))
    >>> probabilities.shape, labels.shape
    ((1697, 10), (1697,))
    """

    inputs: Float[Array, "rows pixels"]
    labels: Int[Array, "rows"]
    noise: Float[Array, ""]
    train: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    learning_rate: float = eqx.field(static=True)

    def __init__(
        self,
        data: str = "digits",
        train: int = 400,
        noise: float = 0.0,
        width: int = 128,
        steps: int = 400,
        batch: int = 100,
        learning_rate: float = 1e-3,
    ):
        found = small_images(data)
        images = jnp.asarray(found.train_images)
        if images.shape[1] == 28:
            images = images.reshape(-1, 14, 2, 14, 2).mean((2, 4))
        self.inputs, self.labels = images.reshape(len(images), -1), jnp.asarray(found.train_labels)
        require("TrainedNetworks", "train", f"from 1 to {len(images) - 1}", train, lambda n: 1 <= n < len(images))
        require("TrainedNetworks", "noise", "within [0, 1]", noise, lambda share: 0 <= share <= 1)
        self.noise, self.train, self.width, self.steps = jnp.asarray(noise), train, width, steps
        self.batch, self.learning_rate = min(batch, train), learning_rate

    def predictions(self, key: Array) -> tuple[Float[Array, "held classes"], Int[Array, "held"]]:
        """The probabilities that a network gives to the images it has not seen, and their labels."""
        shuffle, wrong, chosen, first, run = jax.random.split(key, 5)
        classes = 10
        order = jax.random.permutation(shuffle, len(self.labels))
        noisy = jax.random.uniform(wrong, self.labels.shape) < self.noise
        labels = jnp.where(noisy, jax.random.randint(chosen, self.labels.shape, 0, classes), self.labels)
        inputs, labels = self.inputs[order], labels[order]
        mine, targets = inputs[: self.train], labels[: self.train]
        parts, static = eqx.partition(
            eqx.nn.MLP(inputs.shape[1], classes, self.width, 1, key=first), eqx.is_inexact_array
        )
        optimiser = optax.adam(self.learning_rate)

        def loss(parts, rows):
            logits = jax.vmap(eqx.combine(parts, static))(mine[rows])
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets[rows]).mean()

        def step(carry, key):
            parts, state = carry
            rows = jax.random.randint(key, (self.batch,), 0, self.train)
            updates, state = optimiser.update(jax.grad(loss)(parts, rows), state)
            return (optax.apply_updates(parts, updates), state), None

        (parts, _), _ = jax.lax.scan(step, (parts, optimiser.init(parts)), jax.random.split(run, self.steps))
        trained: Any = eqx.combine(parts, static)
        return jax.nn.softmax(jax.vmap(trained)(inputs[self.train :])), labels[self.train :]


# Three truths: P(hit | score).
TRUTHS = ("calibrated", "slope", "plateau")


def known_truth(which: Int[Array, ""], score: Float[Array, "..."]) -> Float[Array, "..."]:
    """P(hit | score) of the truth of that number in `TRUTHS`.

    calibrated: the score itself. slope: σ(½ logit s), too sure. plateau: two steps, which no sigmoid of the logit has.

    >>> [round(float(known_truth(k, jnp.array(0.9))), 3) for k in range(3)]
    [0.9, 0.75, 0.711]
    """
    truths = (
        score,
        jax.nn.sigmoid(0.5 * jax.scipy.special.logit(score)),
        0.2 + 0.5 * jax.nn.sigmoid(20 * (score - 0.6)) + 0.25 * jax.nn.sigmoid(60 * (score - 0.95)),
    )
    return jnp.stack(truths)[which]


def scores_of_rank(rank: Float[Array, "..."]) -> Float[Array, "..."]:
    """The quantiles of Beta(4, 1), a law like that of a good classifier's confidence: mean 0.8, most of it above.

    >>> print(f"{scores_of_rank(jnp.array(0.5)):.3f}")
    0.841
    """
    return rank**0.25
