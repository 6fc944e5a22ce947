"""Small networks that name an image's class, of several kinds, and the images they are trained on."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.layers import Convolution, max_pool
from laureate.problems._training import train_by_adam
from laureate.problems.datasets import small_images

__all__ = ["ConvolutionalNetwork", "ImageClasses", "Perceptron", "ResidualPerceptron", "make_network", "train_network"]


class ImageClasses(eqx.Module):
    """Images ``[n, side, side, 1]`` in [0, 1] with their classes, to train on and to attack.

    data: as for `small_images`. train, test: how many. pool: squares of pool × pool pixels are averaged.

    >>> problem = ImageClasses("digits", train=100, test=20)
    >>> problem.images.shape, problem.num_classes
    ((100, 8, 8, 1), 10)
    """

    images: Float[Array, "n h w 1"]
    labels: Int[Array, "n"]
    test_images: Float[Array, "m h w 1"]
    test_labels: Int[Array, "m"]
    num_classes: int = eqx.field(static=True)

    def __init__(self, data: str = "digits", train: int = 1200, test: int = 200, pool: int = 1):
        found = small_images(data, train, test)
        side = found.train_images.shape[1]
        require("ImageClasses", "pool", f"a divisor of {side}", pool, lambda p: p >= 1 and side % p == 0)

        def pooled(images):
            small = images.reshape(-1, side // pool, pool, side // pool, pool).mean((2, 4))
            return jnp.asarray(small[..., None], jnp.float32)

        self.images, self.test_images = pooled(found.train_images), pooled(found.test_images)
        self.labels, self.test_labels = jnp.asarray(found.train_labels), jnp.asarray(found.test_labels)
        self.num_classes = int(found.train_labels.max()) + 1


class Perceptron(eqx.Module):
    """Fully connected layers with ReLU between them; He's initialisation.

    >>> Perceptron(jax.random.key(0), (4, 8, 3))(jnp.ones((5, 2, 2, 1))).shape
    (5, 3)
    """

    weights: tuple[Float[Array, "i o"], ...]
    biases: tuple[Float[Array, "o"], ...]

    def __init__(self, key: Key[Array, ""], sizes: Sequence[int]):
        self.weights = _drawn(key, list(itertools.pairwise(sizes)))
        self.biases = tuple(jnp.zeros(size) for size in sizes[1:])

    def __call__(self, images: Float[Array, "b ..."]) -> Float[Array, "b c"]:
        """One row of logits an image."""
        values = images.reshape(len(images), -1)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = (jax.nn.relu(values) if i else values) @ weight + bias
        return values


class ResidualPerceptron(eqx.Module):
    """A layer, residual blocks z + V relu(U z + c), and a layer of logits.

    key: of the weights.
    inputs: numbers of an image.
    width: of z.
    blocks: how many.
    classes: how many logits.

    >>> network = ResidualPerceptron(jax.random.key(0), 4, 8, 2, 3)
    >>> images = jnp.ones((5, 2, 2, 1))
    >>> network(images).shape, bool((network(images) == network(images, lambda branch: branch)).all())
    ((5, 3), True)
    """

    first: Perceptron
    inner: tuple[Float[Array, "w w"], ...]
    shift: tuple[Float[Array, "w"], ...]
    outer: tuple[Float[Array, "w w"], ...]
    last: Perceptron

    def __init__(self, key: Key[Array, ""], inputs: int, width: int, blocks: int, classes: int):
        first_key, inner_key, outer_key, last_key = jax.random.split(key, 4)
        self.first, self.last = Perceptron(first_key, (inputs, width)), Perceptron(last_key, (width, classes))
        self.inner = _drawn(inner_key, [(width, width)] * blocks)
        self.outer = tuple(weight / 2 for weight in _drawn(outer_key, [(width, width)] * blocks))
        self.shift = tuple(jnp.zeros(width) for _ in range(blocks))

    def __call__(
        self, images: Float[Array, "b ..."], branch: Callable[[Array], Array] = lambda values: values
    ) -> Float[Array, "b c"]:
        """One row of logits an image; ``branch`` is applied to what every residual branch adds."""
        values = jax.nn.relu(self.first(images))
        for inner, shift, outer in zip(self.inner, self.shift, self.outer, strict=True):
            values = values + branch(jax.nn.relu(values @ inner + shift) @ outer)
        return self.last(values)


class ConvolutionalNetwork(eqx.Module):
    """Convolutions of 3 × 3 with ReLU, the image halved after each, and a layer of logits.

    key: of the weights.
    size: height and width of an image.
    channels: of each convolution.
    classes: how many logits.

    >>> ConvolutionalNetwork(jax.random.key(0), (8, 8), (4, 8), 3)(jnp.ones((5, 8, 8, 1))).shape
    (5, 3)
    """

    layers: tuple[Convolution, ...]
    shift: tuple[Float[Array, "c"], ...]
    last: Perceptron

    def __init__(self, key: Key[Array, ""], size: tuple[int, int], channels: Sequence[int], classes: int):
        height, width = (length // 2 ** len(channels) for length in size)
        *keys, last_key = jax.random.split(key, len(channels) + 1)
        shapes = [(3, 3, *pair) for pair in itertools.pairwise((1, *channels))]
        self.layers = tuple(Convolution(jax.random.normal(k, s)) for k, s in zip(keys, shapes, strict=True))
        self.shift = tuple(jnp.zeros(count) for count in channels)
        self.last = Perceptron(last_key, (height * width * channels[-1], classes))

    def __call__(self, images: Float[Array, "b h w 1"]) -> Float[Array, "b c"]:
        """One row of logits an image."""
        for layer, shift in zip(self.layers, self.shift, strict=True):
            images = max_pool(jax.nn.relu(layer(images) + shift))
        return self.last(images)


def make_network(key: Key[Array, ""], kind: str, image: Float[Array, "..."], classes: int) -> Any:
    """A network for such images, by the name of its kind.

    ==============  ===================================================
    residual        32 wide, two residual blocks
    wide            a hidden layer of 128
    narrow          a hidden layer of 32
    deep            three hidden layers of 64
    convolutional   convolutions to 8 and to 16 channels, for images [height, width, 1]
    ==============  ===================================================

    key: of the weights. image: an example, for its shape. classes: how many logits.
    """
    pixels = image.size
    kinds: dict[str, Callable[[], Any]] = {
        "residual": lambda: ResidualPerceptron(key, pixels, 32, 2, classes),
        "wide": lambda: Perceptron(key, (pixels, 128, classes)),
        "narrow": lambda: Perceptron(key, (pixels, 32, classes)),
        "deep": lambda: Perceptron(key, (pixels, 64, 64, 64, classes)),
        "convolutional": lambda: ConvolutionalNetwork(key, (image.shape[0], image.shape[1]), (8, 16), classes),
    }
    require("make_network", "kind", f"one of {', '.join(kinds)}", kind, lambda name: name in kinds)
    return kinds[kind]()


def train_network(
    key: Key[Array, ""],
    network: Any,
    images: Float[Array, "n ..."],
    labels: Int[Array, "n"],
    num_steps: int,
    batch: int = 64,
    learning_rate: float | Array = 0.003,
) -> Any:
    """Cross-entropy by Adam, its rate falling to 0 as a cosine; batches are drawn with replacement.

    key: of the batches. network: an Equinox module from images to logits. images, labels: to train on.
    num_steps, batch: of Adam, and examples each. learning_rate: the first.
    """

    def loss(network, chosen):
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(network(images[chosen]), labels[chosen]))

    return train_by_adam(key, network, loss, len(labels), num_steps, batch, learning_rate)


def _drawn(key: Key[Array, ""], shapes: list[tuple[int, int]]) -> tuple[Array, ...]:
    """Weights with variance 2/inputs, one draw dealt out: each call of the generator costs compile time."""
    sizes = [math.prod(shape) for shape in shapes]
    parts = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
    return tuple(part.reshape(shape) * math.sqrt(2 / shape[0]) for part, shape in zip(parts, shapes, strict=True))
