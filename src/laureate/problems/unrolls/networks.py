"""Two small networks unrolled in time: an LSTM that reads text, and a learned optimiser that trains on digits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from laureate._core import require
from laureate.problems.datasets import descriptions, digits

__all__ = ["CharacterLSTM", "LearnedOptimiser"]

Parameters = dict[str, Float[Array, "..."]]


class CharacterLSTM(eqx.Module):
    """A character LSTM reading one sequence, a character a step: L_t = −log p(next character), θ all its weights.

    The text is scikit-learn's own prose (``laureate.problems.datasets.descriptions``) in lower case, read from a random
    place. ``stride`` and ``randomness`` make the paper's other sequences of it: with stride 0 one character repeats for
    ever, with randomness 1 all are drawn uniformly.

    horizon: T, characters read, >= 1. hidden: units and embedding size, >= 1.
    stride: characters moved forward a step, >= 0. randomness: share of characters drawn at random, in [0, 1].

    >>> problem = CharacterLSTM(horizon=10)
    >>> problem.num_characters, sum(leaf.size for leaf in jax.tree.leaves(problem.theta0(jax.random.key(0))))
    (67, 957)
    """

    text: Int[Array, " characters"]
    stride: Float[Array, ""]
    randomness: Float[Array, ""]
    num_characters: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, horizon: int = 1000, hidden: int = 5, stride: float = 1.0, randomness: float = 0.0):
        require("CharacterLSTM", "horizon", ">= 1", horizon, lambda t: t >= 1)
        require("CharacterLSTM", "hidden", ">= 1", hidden, lambda h: h >= 1)
        require("CharacterLSTM", "stride", ">= 0", stride, lambda s: s >= 0)
        require("CharacterLSTM", "randomness", "in [0, 1]", randomness, lambda r: 0 <= r <= 1)
        alphabet, text = np.unique(list(descriptions().lower()), return_inverse=True)
        self.text = jnp.asarray(text, jnp.int32)
        self.stride = jnp.asarray(stride, jnp.float32)
        self.randomness = jnp.asarray(randomness, jnp.float32)
        self.num_characters = len(alphabet)
        self.horizon = horizon
        self.hidden = hidden

    def theta0(self, key: PRNGKeyArray) -> Parameters:
        """Embedding uniform in ±0.1, matrices normal with variance 1 / inputs, biases zero."""
        keys = jax.random.split(key, 4)
        h, c = self.hidden, self.num_characters
        return {
            "embedding": jax.random.uniform(keys[0], (c, h), minval=-0.1, maxval=0.1),
            "input": jax.random.normal(keys[1], (h, 4 * h)) / np.sqrt(h),
            "recurrent": jax.random.normal(keys[2], (h, 4 * h)) / np.sqrt(h),
            "bias": jnp.zeros(4 * h),
            "decoder": jax.random.normal(keys[3], (h, c)) / np.sqrt(h),
            "decoder_bias": jnp.zeros(c),
        }

    def init(self, key: PRNGKeyArray, theta: Parameters) -> tuple[Array, ...]:
        """Hidden state and cell zero; where in the text the episode starts, its first character, the steps done."""
        del theta
        zeros, t = jnp.zeros(self.hidden), jnp.zeros((), jnp.int32)
        start_key, character_key = jax.random.split(key)
        start = jax.random.randint(start_key, (), 0, len(self.text))
        return zeros, zeros, start, self._character(character_key, start, t), t

    def step(
        self, key: PRNGKeyArray, theta: Parameters, state: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], Float[Array, ""]]:
        """Read character t, predict character t + 1."""
        hidden, cell, start, character, t = state
        gates = theta["embedding"][character] @ theta["input"] + hidden @ theta["recurrent"] + theta["bias"]
        forget, write, output, new = jnp.split(gates, 4)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(write) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(output) * jnp.tanh(cell)
        scores = jax.nn.log_softmax(hidden @ theta["decoder"] + theta["decoder_bias"])
        following = self._character(key, start, t + 1)
        return (hidden, cell, start, following, t + 1), -scores[following]

    def _character(self, key: PRNGKeyArray, start: Int[Array, ""], t: Int[Array, ""]) -> Int[Array, ""]:
        mask_key, random_key = jax.random.split(key)
        offset = jnp.floor(self.stride * t.astype(self.stride.dtype)).astype(jnp.int32)
        real = self.text[(start + offset) % len(self.text)]
        drawn = jax.random.randint(random_key, (), 0, self.num_characters)
        return jnp.where(jax.random.uniform(mask_key) < self.randomness, drawn, real)


class LearnedOptimiser(eqx.Module):
    """A learned optimiser trains a small classifier of scikit-learn's digits; θ is the optimiser.

    For each weight w of the classifier a small network, the same for all weights, sees six features (its gradient and
    two momenta over their root mean square, the weight, and how far the training is) and gives a direction d and a
    log-size m: w ← w − 0.003 e^m (a + d), where a is Adam's direction. At θ_0 it is nearly Adam with a small rate.
    L_t is the training loss of batch t before the update.

    horizon: T, training steps, >= 1. hidden: units of the classifier. pool: images are averaged over pool × pool pixels
    (1, 2 or 4). batch: images a step. units: hidden units of the optimiser.

    >>> problem = LearnedOptimiser(horizon=5, pool=2)
    >>> theta = problem.theta0(jax.random.key(0))
    >>> state, loss = problem.step(jax.random.key(1), theta, problem.init(jax.random.key(2), theta))
    >>> bool(1.5 < loss < 3.5), sum(leaf.size for leaf in jax.tree.leaves(theta))
    (True, 74)
    """

    images: Float[Array, "n pixels"]
    labels: Int[Array, " n"]
    horizon: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    units: int = eqx.field(static=True)

    def __init__(self, horizon: int = 1000, hidden: int = 8, pool: int = 1, batch: int = 32, units: int = 8):
        require("LearnedOptimiser", "horizon", ">= 1", horizon, lambda t: t >= 1)
        require("LearnedOptimiser", "pool", "1, 2 or 4", pool, lambda p: p in (1, 2, 4))
        images, labels = digits()
        side = 8 // pool
        images = images.reshape(-1, side, pool, side, pool).mean((2, 4)).reshape(len(labels), side * side)
        self.images = jnp.asarray((images - images.mean()) / images.std(), jnp.float32)
        self.labels = jnp.asarray(labels)
        self.horizon = horizon
        self.hidden = hidden
        self.batch = batch
        self.units = units

    def theta0(self, key: PRNGKeyArray) -> Parameters:
        """A random first layer and a small last one."""
        first, last = jax.random.split(key)
        return {
            "first": jax.random.normal(first, (6, self.units)) / np.sqrt(6),
            "first_bias": jnp.zeros(self.units),
            "last": 0.01 * jax.random.normal(last, (self.units, 2)),
            "last_bias": jnp.zeros(2),
        }

    def init(self, key: PRNGKeyArray, theta: Parameters) -> tuple[Array, Array, Array, Array, Array]:
        """The classifier's weights in one vector, two momenta, the mean square of the gradient, and the step."""
        del theta
        first, last = jax.random.split(key)
        pixels = self.images.shape[1]
        parts = [
            jax.random.normal(first, (pixels * self.hidden,)) / np.sqrt(pixels),
            jnp.zeros(self.hidden),
            jax.random.normal(last, (self.hidden * 10,)) / np.sqrt(self.hidden),
            jnp.zeros(10),
        ]
        weights = jnp.concatenate(parts)
        zeros = jnp.zeros_like(weights)
        return weights, zeros, zeros, zeros, jnp.zeros((), jnp.int32)

    def step(
        self, key: PRNGKeyArray, theta: Parameters, state: tuple[Array, Array, Array, Array, Array]
    ) -> tuple[tuple[Array, Array, Array, Array, Array], Float[Array, ""]]:
        """One batch, one update by the learned optimiser."""
        weights, fast, slow, square, t = state
        chosen = jax.random.randint(key, (self.batch,), 0, len(self.labels))
        loss, gradient = jax.value_and_grad(self.training_loss)(weights, self.images[chosen], self.labels[chosen])
        fast = 0.9 * fast + 0.1 * gradient
        slow = 0.99 * slow + 0.01 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        count = (t + 1).astype(weights.dtype)
        root = jnp.sqrt(square / (1 - 0.99**count)) + 1e-6
        adam = fast / (1 - 0.9**count) / root
        progress = jnp.full_like(weights, count / self.horizon)
        small = slow / (1 - 0.99**count) / root
        features = jnp.stack([gradient / root, adam, small, weights, progress, progress**2], axis=1)
        inner = jnp.tanh(jnp.clip(features, -5.0, 5.0) @ theta["first"] + theta["first_bias"][None, :])
        direction, size = jnp.split(inner @ theta["last"] + theta["last_bias"][None, :], 2, axis=1)
        weights = weights - 0.003 * jnp.exp(size[:, 0]) * (adam + direction[:, 0])
        return (weights, fast, slow, square, t + 1), loss

    def training_loss(
        self, weights: Float[Array, " w"], images: Float[Array, "b pixels"], labels: Int[Array, " b"]
    ) -> Float[Array, ""]:
        """Mean cross-entropy of the classifier on these images."""
        pixels, hidden = self.images.shape[1], self.hidden
        first, bias, last, offset = jnp.split(weights, np.cumsum([pixels * hidden, hidden, hidden * 10]))
        units = jnp.tanh(images @ first.reshape(pixels, hidden) + bias[None, :])
        scores = jax.nn.log_softmax(units @ last.reshape(hidden, 10) + offset[None, :], axis=1)
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))
