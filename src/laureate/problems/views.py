"""What self-supervision is tried on: pairs of views, of Gaussian vectors with a known answer and of small real images.

A problem offers ``dim`` (length of a network's output), ``model0(key)``, ``views(key, n)``, ``apply(model, batch)`` and
``outputs(model, key, n)``, fresh outputs to judge a representation by; or, to judge it by labels, what
``LabelledPairs`` has.
"""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from laureate._core import require
from laureate.layers import ResNet
from laureate.problems.datasets import IMAGE_SETS, small_images

__all__ = ["ConvolutionalNetwork", "ImageNetwork", "ImagePairs", "LabelledPairs", "SharedDirections"]


class SharedDirections(eqx.Module):
    """Gaussian vectors of which a view keeps ``shared`` entries and jostles the others; the network is linear.

    A representation is right if it keeps all shared directions and nothing else: both can be read off its weights.

    inputs: entries of a vector. shared: how many a view leaves alone (up to ``floor``). dim: D.
    strength: standard deviation of what a view adds to the others. floor: of what it adds to the shared ones.

    >>> problem = SharedDirections(inputs=5, shared=2, dim=3)
    >>> first, second = problem.views(jax.random.key(0), 4)
    >>> bool((first[:, :2] == second[:, :2]).all()), bool((first[:, 2:] == second[:, 2:]).any())
    (True, False)
    """

    inputs: int = eqx.field(static=True, default=40)
    shared: int = eqx.field(static=True, default=8)
    dim: int = eqx.field(static=True, default=16)
    strength: float = eqx.field(static=True, default=1.5)
    floor: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        rule = f"in 1..inputs ({self.inputs})"
        require("SharedDirections", "shared", rule, self.shared, lambda s: 1 <= s <= self.inputs)

    def model0(self, key: Array) -> Float[Array, "d n"]:
        """W, Gaussian with variance 1/inputs."""
        return jax.random.normal(key, (self.dim, self.inputs)) * self.inputs**-0.5

    def apply(self, model: Float[Array, "d n"], batch: Float[Array, "b n"]) -> Float[Array, "b d"]:
        """W x, row by row."""
        return batch @ model.T

    def views(self, key: Array, number: int) -> tuple[Array, Array]:
        """Two views of ``number`` fresh vectors."""
        drawn = jax.random.normal(key, (3, number, self.inputs))
        scale = jnp.where(jnp.arange(self.inputs) < self.shared, self.floor, self.strength)
        return drawn[0] + scale[None, :] * drawn[1], drawn[0] + scale[None, :] * drawn[2]

    def outputs(self, model: Float[Array, "d n"], key: Array, number: int) -> Float[Array, "b d"]:
        """The network's outputs of fresh views."""
        return self.apply(model, self.views(key, number)[0])

    def energy(self, model: Float[Array, "d n"]) -> Float[Array, ""]:
        """Which share of ‖W‖² acts on the shared directions."""
        return jnp.sum(model[:, : self.shared] ** 2) / jnp.maximum(jnp.sum(model**2), 1e-30)

    def spectrum(self, model: Float[Array, "d n"]) -> Float[Array, " s"]:
        """Eigenvalues of WᵀW within the shared directions."""
        part = model[:, : self.shared]
        return jnp.maximum(jnp.linalg.eigvalsh(part.T @ part), 0.0)


class ImageNetwork(eqx.Module):
    """Two hidden layers of ReLU, and a projector: batch-normalised, ReLU, linear. Normalised over the batch at hand.

    The representation proper is ``features``; the projector is thrown away after training.
    """

    layers: tuple[Array, ...]

    def features(self, images: Float[Array, "b p"]) -> Float[Array, "b h"]:
        """The second hidden layer."""
        return jax.nn.relu(jax.nn.relu(images @ self.layers[0]) @ self.layers[1])

    def __call__(self, images: Float[Array, "b p"]) -> Float[Array, "b d"]:
        """The projector's output."""
        return project(self.features(images), self.layers[2], self.layers[3])


class ImagePairs(eqx.Module):
    """Views of real images, moved, mirrored, brightened and made noisy, for a network of two hidden layers.

    data: "digits", "mnist-5k" or "fashion-mnist" (``small_images``).
    pool: images are averaged over pool × pool pixels. hidden, dim: units of the layers, and of the output.

    >>> problem = ImagePairs("digits", pool=1, hidden=8, dim=4)
    >>> first, second = problem.views(jax.random.key(0), 6)
    >>> first.shape, problem.outputs(problem.model0(jax.random.key(1)), jax.random.key(2), 6).shape
    ((6, 64), (6, 4))
    """

    images: Float[Array, "n side side"]
    labels: Int[Array, " n"]
    hidden: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __init__(self, data: str, pool: int = 2, hidden: int = 128, dim: int = 32):
        require("ImagePairs", "data", f"one of {', '.join(IMAGE_SETS)}", data, lambda d: d in IMAGE_SETS)
        images, labels = small_images(data)[:2]
        side = images.shape[1]
        require("ImagePairs", "pool", f"a divisor of {side}", pool, lambda p: p >= 1 and side % p == 0)
        images = images.reshape(-1, side // pool, pool, side // pool, pool).mean((2, 4))
        self.images = jnp.asarray((images - images.mean()) / images.std(), jnp.float32)
        self.labels = jnp.asarray(labels)
        self.hidden = hidden
        self.dim = dim

    def model0(self, key: Array) -> ImageNetwork:
        """He's initialisation: normal with variance 2/inputs."""
        pixels = self.images.shape[1] * self.images.shape[2]
        sizes = [pixels, self.hidden, self.hidden, self.hidden, self.dim]
        shapes = list(pairwise(sizes))
        # one draw, dealt out: each call of the generator costs a tenth of a second to compile
        drawn = jax.random.normal(key, (sum(m * n for m, n in shapes),))
        parts = jnp.split(drawn, np.cumsum([m * n for m, n in shapes])[:-1])
        return ImageNetwork(tuple(x.reshape(m, n) * np.sqrt(2 / m) for x, (m, n) in zip(parts, shapes, strict=True)))

    def apply(self, model: ImageNetwork, batch: Float[Array, "b p"]) -> Float[Array, "b d"]:
        """The projector's output of a batch."""
        return model(batch)

    def views(self, key: Array, number: int) -> tuple[Array, Array]:
        """Two views of ``number`` random images, flattened."""
        first, second = pairs_of(key, self.images, number)
        return first.reshape(number, -1), second.reshape(number, -1)

    def outputs(self, model: ImageNetwork, key: Array, number: int) -> Float[Array, "b d"]:
        """The projector's outputs of fresh views."""
        return model(self.views(key, number)[0])


class ConvolutionalNetwork(eqx.Module):
    """A small residual or plain convolutional network, and the projector of ``ImageNetwork``.

    The representation proper is ``features``, of one image whatever its neighbours in the batch.
    """

    encoder: ResNet
    projector: tuple[Float[Array, "f h"], Float[Array, "h d"]]

    def features(self, images: Float[Array, "b s s"]) -> Float[Array, "b f"]:
        """What the projector reads."""
        return self.encoder(images[..., None])

    def __call__(self, images: Float[Array, "b s s"]) -> Float[Array, "b d"]:
        """The projector's output."""
        return project(self.features(images), *self.projector)


class LabelledPairs(eqx.Module):
    """Views of real images for a convolutional network, and labels to judge its features by.

    data: as for ``ImagePairs``. side: images are averaged down to about so many pixels a side, where they are larger.
    channels, blocks: of ``ResNet``. hidden, dim: units of the projector's two layers.
    train, test: how many images to learn from, without labels, and to be tested on.

    >>> problem = LabelledPairs("digits", side=8, channels=(4, 8), blocks=0, hidden=8, dim=4, train=200, test=50)
    >>> first, second = problem.views(jax.random.key(0), 6)
    >>> model = problem.model0(jax.random.key(1))
    >>> problem.apply(model, first).shape, problem.features(model, problem.test_images).shape
    ((6, 4), (50, 8))
    >>> sorted(problem.labels[problem.few(jax.random.key(2), 2)].tolist())  # two of each class
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9]
    """

    images: Float[Array, "n s s"]
    labels: Int[Array, " n"]
    test_images: Float[Array, "m s s"]
    test_labels: Int[Array, " m"]
    channels: tuple[int, ...] = eqx.field(static=True)
    blocks: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    classes: int = eqx.field(static=True)
    least: int = eqx.field(static=True)

    def __init__(
        self,
        data: str,
        side: int = 14,
        channels: Sequence[int] = (16, 32, 64),
        blocks: int = 0,
        hidden: int = 64,
        dim: int = 32,
        train: int = 12_000,
        test: int = 2000,
    ):
        require("LabelledPairs", "side", ">= 4", side, lambda s: s >= 4)
        found = small_images(data, train, test)
        full = found.train_images.shape[1]
        pool = max(1, full // side)
        rule = f"at least {full}, or {full} over one of its divisors"
        require("LabelledPairs", "side", rule, side, lambda s: s >= full or full % s == 0)
        parts = [
            part.reshape(-1, full // pool, pool, full // pool, pool).mean((2, 4))
            for part in (found.train_images, found.test_images)
        ]
        mean, deviation = parts[0].mean(), parts[0].std()
        self.images, self.test_images = (jnp.asarray((part - mean) / deviation, jnp.float32) for part in parts)
        self.labels, self.test_labels = jnp.asarray(found.train_labels), jnp.asarray(found.test_labels)
        self.channels, self.blocks, self.hidden, self.dim = tuple(channels), blocks, hidden, dim
        counts = np.bincount(found.train_labels)
        self.classes, self.least = len(counts), int(counts.min())

    def model0(self, key: Array) -> ConvolutionalNetwork:
        """He's initialisation: normal with variance 2/inputs."""
        width = self.channels[-1]
        drawn = jax.random.normal(jax.random.fold_in(key, 1), (width + self.dim, self.hidden))
        projector = drawn[:width] * np.sqrt(2 / width), drawn[width:].T * np.sqrt(2 / self.hidden)
        return ConvolutionalNetwork(ResNet(key, channels=self.channels, num_blocks=self.blocks), projector)

    def apply(self, model: ConvolutionalNetwork, batch: Float[Array, "b s s"]) -> Float[Array, "b d"]:
        """The projector's output of a batch."""
        return model(batch)

    def features(self, model: ConvolutionalNetwork, images: Float[Array, "b s s"]) -> Float[Array, "b f"]:
        """The representation, projector taken off."""
        return model.features(images)

    def views(self, key: Array, number: int) -> tuple[Array, Array]:
        """Two views of ``number`` random training images."""
        return pairs_of(key, self.images, number)

    def augmented(self, key: Array, images: Float[Array, "b s s"]) -> Float[Array, "b s s"]:
        """One random view of each of these images."""
        drawn = jax.random.uniform(key, (images.shape[0], 5))
        return jostled(drawn, jax.random.normal(jax.random.fold_in(key, 1), images.shape), images)

    def few(self, key: Array, per_class: int) -> Int[Array, " k"]:
        """Which training images are labelled: ``per_class`` random ones of each, or as many as the rarest class has."""
        score = jax.random.uniform(key, self.labels.shape)
        own = self.labels[None, :] == jnp.arange(self.classes)[:, None]
        return jax.lax.top_k(jnp.where(own, score[None, :], -1.0), min(per_class, self.least))[1].ravel()


def project(features: Float[Array, "b f"], first: Float[Array, "f h"], last: Float[Array, "h d"]) -> Array:
    """The projector: linear, normalised over the batch at hand, ReLU, linear."""
    hidden = features @ first
    centred = hidden - hidden.mean(axis=0, keepdims=True)
    hidden = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=0, keepdims=True) + 1e-5)
    return jax.nn.relu(hidden) @ last


def pairs_of(key: Array, images: Float[Array, "n s s"], number: int) -> tuple[Array, Array]:
    """Two views of ``number`` random images among these."""
    side = images.shape[1]
    drawn = jax.random.uniform(key, (number, 11))  # one for the choice, five for each view
    noise = jax.random.normal(jax.random.fold_in(key, 1), (2, number, side, side))
    chosen = images[(drawn[:, 0] * images.shape[0]).astype(jnp.int32)]
    return jostled(drawn[:, 1:6], noise[0], chosen), jostled(drawn[:, 6:], noise[1], chosen)


def jostled(
    drawn: Float[Array, "b 5"], noise: Float[Array, "b s s"], images: Float[Array, "b s s"]
) -> Float[Array, "b s s"]:
    """Moved by up to an eighth of the side, mirrored or not, contrast and brightness ± 40 %, noise of 0.1."""
    side = images.shape[1]
    margin = max(1, side // 8)
    padded = jnp.pad(images, ((0, 0), (margin, margin), (margin, margin)), mode="edge")
    corner = (drawn[:, :2] * (2 * margin + 1)).astype(jnp.int32)
    moved = jax.vmap(lambda image, at: jax.lax.dynamic_slice(image, (at[0], at[1]), (side, side)))(padded, corner)
    mirrored = jnp.where((drawn[:, 2] < 0.5)[:, None, None], moved[:, :, ::-1], moved)
    factor, shift = (0.8 * drawn[:, i, None, None] - 0.4 for i in (3, 4))
    return (1 + factor) * mirrored + shift + 0.1 * noise
