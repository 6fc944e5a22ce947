"""Two small networks unrolled in time: an LSTM that reads text, and a learned optimiser that trains on digits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from laureate._core import require
from laureate.problems.datasets import descriptions, digits

__all__ = ["CharacterLSTM", "LearnedOptimiser"]

Parameters = Float[Array, " parameters"]  # one flat vector: a perturbation is then one draw, and quick to compile
Shapes = dict[str, tuple[int, ...]]


class CharacterLSTM(eqx.Module):
    """A character LSTM reading one sequence, a character a step: L_t = −log p(next character), θ all its weights.

    The text is scikit-learn's own prose (``laureate.problems.datasets.descriptions``) in lower case. One problem is one
    sequence of it, the same in every episode; ``sample`` gives another.

    horizon: T, characters read, >= 1. hidden: units and embedding size, >= 1.

    >>> problem = CharacterLSTM(horizon=10)
    >>> problem.num_characters, sum(leaf.size for leaf in jax.tree.leaves(problem.theta0(jax.random.key(0))))
    (67, 957)
    """

    text: Int[Array, " characters"]
    sequence: Int[Array, " length"]
    num_characters: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, horizon: int = 1000, hidden: int = 5):
        require("CharacterLSTM", "horizon", ">= 1", horizon, lambda t: t >= 1)
        require("CharacterLSTM", "hidden", ">= 1", hidden, lambda h: h >= 1)
        alphabet, text = np.unique(list(descriptions().lower()), return_inverse=True)
        self.text = jnp.asarray(text, jnp.int32)
        self.sequence = self.text[np.arange(horizon + 1) % len(text)]
        self.num_characters = len(alphabet)
        self.horizon = horizon
        self.hidden = hidden

    def sample(
        self, key: PRNGKeyArray, stride: float | Array = 1.0, randomness: float | Array = 0.0
    ) -> "CharacterLSTM":
        """The same with another sequence.

        It starts at a random place and moves ``stride`` >= 0 characters a step: with 0 it repeats one for ever. The
        share ``randomness`` in [0, 1] of the characters is replaced by uniformly drawn ones.
        """
        draws = jax.random.uniform(key, (3, self.horizon + 1))
        offsets = jnp.floor(stride * jnp.arange(self.horizon + 1, dtype=jnp.float32)).astype(jnp.int32)
        real = self.text[(_integer(draws[0, 0], len(self.text)) + offsets) % len(self.text)]
        drawn = _integer(draws[1], self.num_characters)
        return eqx.tree_at(lambda p: p.sequence, self, jnp.where(draws[2] < randomness, drawn, real))

    def theta0(self, key: PRNGKeyArray) -> Parameters:
        """All entries uniform around 0: embedding within ±0.1, matrices with variance 1 / inputs; biases zero."""
        reach = float(np.sqrt(3 / self.hidden))
        scale = {"embedding": 0.1, "input": reach, "recurrent": reach, "decoder": reach}
        return _scaled_draw(key, self._shapes(), scale)

    def _shapes(self) -> Shapes:
        h, c = self.hidden, self.num_characters
        gates = {"input": (h, 4 * h), "recurrent": (h, 4 * h), "bias": (4 * h,)}
        return {"embedding": (c, h), **gates, "decoder": (h, c), "decoder_bias": (c,)}

    def init(self, key: PRNGKeyArray, theta: Parameters) -> tuple[Array, Array, Array]:
        """Hidden state and cell zero, and the number of characters read."""
        del key, theta
        zeros = jnp.zeros(self.hidden)
        return zeros, zeros, jnp.zeros((), jnp.int32)

    def step(
        self, key: PRNGKeyArray, theta: Parameters, state: tuple[Array, Array, Array]
    ) -> tuple[tuple[Array, Array, Array], Float[Array, ""]]:
        """Read character t, predict character t + 1."""
        del key
        hidden, cell, t = state
        weights = _parts(theta, self._shapes())
        embedded = weights["embedding"][self.sequence[t]]
        gates = embedded @ weights["input"] + hidden @ weights["recurrent"] + weights["bias"]
        forget, write, output, new = jnp.split(gates, 4)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(write) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(output) * jnp.tanh(cell)
        scores = jax.nn.log_softmax(hidden @ weights["decoder"] + weights["decoder_bias"])
        return (hidden, cell, t + 1), -scores[self.sequence[t + 1]]


class LearnedOptimiser(eqx.Module):
    """A learned optimiser trains a small classifier of scikit-learn's digits; θ is the optimiser.

    For each weight w of the classifier a small network, the same for all weights, sees four features (its gradient and
    its momentum over their root mean square, the weight, and how far the training is) and gives a direction d and a
    log-size m: w ← w − 0.003 e^m (a + d), where a is Adam's direction. At θ_0 it is nearly Adam with a small rate.
    L_t is the training loss of batch t before the update.

    horizon: T, training steps, >= 1. truncation: after how many of them a comparison updates θ. hidden: units of the
    classifier, 0 for a linear one. units: hidden units of the optimiser. pool: images are averaged over pool × pool
    pixels (1, 2 or 4). batch: images a step.

    >>> problem = LearnedOptimiser(horizon=5, pool=2)
    >>> theta = problem.theta0(jax.random.key(0))
    >>> state, loss = problem.step(jax.random.key(1), theta, problem.init(jax.random.key(2), theta))
    >>> bool(1.5 < loss < 3.5), sum(leaf.size for leaf in jax.tree.leaves(theta))
    (True, 58)
    """

    images: Float[Array, "n pixels"]
    labels: Int[Array, " n"]
    horizon: int = eqx.field(static=True)
    truncation: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    units: int = eqx.field(static=True)

    def __init__(
        self, horizon: int = 1000, truncation: int = 10, hidden: int = 8, pool: int = 1, batch: int = 32, units: int = 8
    ):
        require("LearnedOptimiser", "horizon", ">= 1", horizon, lambda t: t >= 1)
        require("LearnedOptimiser", "hidden", ">= 0", hidden, lambda h: h >= 0)
        require("LearnedOptimiser", "pool", "1, 2 or 4", pool, lambda p: p in (1, 2, 4))
        images, labels = digits()
        side = 8 // pool
        images = images.reshape(-1, side, pool, side, pool).mean((2, 4)).reshape(len(labels), side * side)
        self.images = jnp.asarray((images - images.mean()) / images.std(), jnp.float32)
        self.labels = jnp.asarray(labels)
        self.horizon = horizon
        self.truncation = truncation
        self.hidden = hidden
        self.batch = batch
        self.units = units

    def theta0(self, key: PRNGKeyArray) -> Parameters:
        """A random first layer with variance 1 / inputs and a small last one."""
        return _scaled_draw(key, self._shapes(), {"first": float(np.sqrt(3 / 4)), "last": 0.01})

    def _shapes(self) -> Shapes:
        return {"first": (4, self.units), "first_bias": (self.units,), "last": (self.units, 2), "last_bias": (2,)}

    def _classifier(self) -> Shapes:
        pixels, hidden = self.images.shape[1], self.hidden
        first: Shapes = {"first": (pixels, hidden), "first_bias": (hidden,)} if hidden else {}
        return {**first, "last": (hidden or pixels, 10), "last_bias": (10,)}

    def init(self, key: PRNGKeyArray, theta: Parameters) -> tuple[Array, Array, Array, Array]:
        """The classifier's weights in one vector, momentum and mean square of the gradient, and the steps done."""
        del theta
        shapes = self._classifier()
        scale = {name: float(np.sqrt(3 / shape[0])) for name, shape in shapes.items() if len(shape) == 2}
        weights = _scaled_draw(key, shapes, scale)
        zeros = jnp.zeros_like(weights)
        return weights, zeros, zeros, jnp.zeros((), jnp.int32)

    def step(
        self, key: PRNGKeyArray, theta: Parameters, state: tuple[Array, Array, Array, Array]
    ) -> tuple[tuple[Array, Array, Array, Array], Float[Array, ""]]:
        """One batch, one update by the learned optimiser."""
        weights, momentum, square, t = state
        chosen = _integer(jax.random.uniform(key, (self.batch,)), len(self.labels))
        loss, gradient = jax.value_and_grad(self.training_loss)(weights, self.images[chosen], self.labels[chosen])
        momentum = 0.9 * momentum + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        count = (t + 1).astype(weights.dtype)
        root = jnp.sqrt(square / (1 - 0.99**count)) + 1e-6
        adam = momentum / (1 - 0.9**count) / root
        progress = jnp.full_like(weights, count / self.horizon)
        features = jnp.stack([gradient / root, adam, weights, progress], axis=1)
        mlp = _parts(theta, self._shapes())
        inner = jnp.tanh(jnp.clip(features, -5.0, 5.0) @ mlp["first"] + mlp["first_bias"][None, :])
        direction, size = jnp.split(inner @ mlp["last"] + mlp["last_bias"][None, :], 2, axis=1)
        weights = weights - 0.003 * jnp.exp(size[:, 0]) * (adam + direction[:, 0])
        return (weights, momentum, square, t + 1), loss

    def training_loss(
        self, weights: Float[Array, " w"], images: Float[Array, "b pixels"], labels: Int[Array, " b"]
    ) -> Float[Array, ""]:
        """Mean cross-entropy of the classifier on these images."""
        layers = _parts(weights, self._classifier())
        units = jnp.tanh(images @ layers["first"] + layers["first_bias"][None, :]) if self.hidden else images
        scores = jax.nn.log_softmax(units @ layers["last"] + layers["last_bias"][None, :], axis=1)
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


def _scaled_draw(key: PRNGKeyArray, shapes: Shapes, scale: dict[str, float]) -> Parameters:
    """One flat vector, each part uniform within ± its scale; zero where it has none."""
    widths = [np.full(np.prod(shape), scale.get(name, 0.0), np.float32) for name, shape in shapes.items()]
    width = jnp.asarray(np.concatenate(widths))
    return width * jax.random.uniform(key, width.shape, minval=-1.0, maxval=1.0)


def _parts(vector: Parameters, shapes: Shapes) -> dict[str, Array]:
    """The named arrays that one flat vector holds."""
    ends = np.cumsum([np.prod(shape) for shape in shapes.values()])
    pieces = jnp.split(vector, ends[:-1])
    return {name: piece.reshape(shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}


def _integer(draw: Float[Array, "..."], high: int) -> Int[Array, "..."]:
    """A uniform draw in [0, 1) as one of 0 .. high − 1."""
    return jnp.minimum(jnp.floor(draw * high).astype(jnp.int32), high - 1)
