"""What generators are tried on: clusters on a ring in a plane of a larger space, and images, real or one's own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.problems.datasets import digits, small_images

__all__ = ["DigitImages", "ImagesByClass", "PlanarRing"]


class PlanarRing(eqx.Module):
    """Eight clusters on a ring of radius 2 in a plane of R^dim: samples that leave the plane are seen at once.

    dim: of the space, >= 2. spread: standard deviation of a cluster within the plane.

    >>> ring = PlanarRing(dim=4)
    >>> ring.draw(jax.random.key(0), 5).shape, ring.modes.shape
    ((5, 4), (8, 4))
    """

    dim: int = eqx.field(static=True, default=16)
    spread: float | Array = 0.1

    def __check_init__(self):
        require("PlanarRing", "dim", ">= 2", self.dim, lambda d: d >= 2)
        require("PlanarRing", "spread", ">= 0", self.spread, lambda s: s >= 0)

    @property
    def plane(self) -> Float[Array, "2 dim"]:
        """Two unit vectors at right angles, none along an axis where there is room."""
        waves = np.cos(np.pi * (np.arange(self.dim) + 0.5)[None] * np.arange(2)[:, None] / self.dim)
        return jnp.asarray(waves / np.linalg.norm(waves, axis=1, keepdims=True), jnp.float32)

    @property
    def modes(self) -> Float[Array, "8 dim"]:
        """The middles of the clusters."""
        angles = jnp.arange(8) * (2 * jnp.pi / 8)
        return 2 * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1) @ self.plane

    def draw(self, key: Array, number: int) -> Float[Array, "number dim"]:
        """Points, every cluster as often."""
        which_key, noise_key = jax.random.split(key)
        which = jnp.minimum((jax.random.uniform(which_key, (number,)) * 8).astype(int), 7)
        return self.modes[which] + self.spread * jax.random.normal(noise_key, (number, 2)) @ self.plane


class DigitImages(eqx.Module):
    """Scikit-learn's 8 × 8 digits in [−1, 1]: rows to learn from, to choose settings by, and those that count.

    The first ``train`` rows, the next ``validation``, and the last ``test``, which other writers wrote.

    train: rows to learn from.
    validation: rows to choose settings by.
    test: rows to be judged by, which nothing else sees.

    >>> images = DigitImages(train=50, validation=20, test=10)
    >>> images.train.shape, images.test.shape
    ((50, 8, 8), (10, 8, 8))
    """

    train: Float[Array, "n *shape"]
    validation: Float[Array, "m *shape"]
    test: Float[Array, "k *shape"]

    def __init__(self, train: int = 1000, validation: int = 256, test: int = 256):
        images, _ = digits()
        total = train + validation + test
        rule = f"such that train + validation + test is at most {len(images)}"
        require("DigitImages", "train", rule, total, lambda n: n <= len(images))
        rows = jnp.asarray(2 * images - 1, jnp.float32)
        self.train, self.validation = rows[:train], rows[train : train + validation]
        self.test = rows[len(rows) - test :]


class ImagesByClass(eqx.Module):
    """Labelled images [n, side, side, 1] in [−1, 1]: rows to learn from, to choose settings by, and those that count.

    data: "digits" (8 × 8), "mnist-5k" or "fashion-mnist" (28 × 28, framed and averaged to 16 × 16).
    train, validation, test: rows; the last are the data set's last, of digits by other writers, or its own second
        part. Those before are shuffled, so that rows to learn from and to choose by come from the same writers.

    >>> images = ImagesByClass(train=50, validation=20, test=10)
    >>> images.train.shape, images.test_labels.shape, images.num_classes
    ((50, 8, 8, 1), (10,), 10)
    """

    train: Float[Array, "n h w c"]
    train_labels: Int[Array, " n"]
    validation: Float[Array, "m h w c"]
    validation_labels: Int[Array, " m"]
    test: Float[Array, "k h w c"]
    test_labels: Int[Array, " k"]
    num_classes: int = eqx.field(static=True)

    def __init__(self, data: str = "digits", train: int = 1000, validation: int = 256, test: int = 256):
        found = small_images(data, train=train + validation, test=test)
        rule = f"such that {data} has {train} + {validation} rows beside those for testing"
        require("ImagesByClass", "train", rule, len(found.train_labels), lambda n: n == train + validation)

        def scaled(images: np.ndarray) -> Array:
            if images.shape[1] == 28:
                wide = np.pad(images, ((0, 0), (2, 2), (2, 2)))
                images = wide.reshape(-1, 16, 2, 16, 2).mean((2, 4))
            return jnp.asarray(2 * images - 1, jnp.float32)[..., None]

        order = np.random.default_rng(0).permutation(train + validation)
        known, labels = scaled(found.train_images[order]), jnp.asarray(found.train_labels[order])
        self.train, self.validation = known[:train], known[train:]
        self.train_labels, self.validation_labels = labels[:train], labels[train:]
        self.test, self.test_labels = scaled(found.test_images), jnp.asarray(found.test_labels)
        self.num_classes = 10
