"""Images with labels, split into rows to learn from, to choose settings by, and to report."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.problems.datasets import small_images

__all__ = ["ImageClasses", "image_classes"]


class ImageClasses(eqx.Module):
    """Images ``[n, side, side, 1]`` of mean 0 and deviation 1 over the training rows, and their labels.

    inputs, labels: to train on.
    validation_inputs, validation_labels: to choose by.
    test_inputs, test_labels: to judge by.
    """

    inputs: Float[Array, "n h w c"]
    labels: Int[Array, " n"]
    validation_inputs: Float[Array, "m h w c"]
    validation_labels: Int[Array, " m"]
    test_inputs: Float[Array, "k h w c"]
    test_labels: Int[Array, " k"]


def image_classes(data: str, train: int, validation: int, test: int) -> ImageClasses:
    """Of a data set by name (``small_images``); those of 28 x 28 averaged to 14 x 14.

    train, validation, test: rows. Rows for training and validation are the data set's first ones in one random order.

    >>> images = image_classes("digits", train=100, validation=20, test=30)
    >>> images.inputs.shape, images.validation_labels.shape, len(images.test_labels)
    ((100, 8, 8, 1), (20,), 30)
    """
    found = small_images(data, train=train + validation, test=test)
    rule = f"so that {data} has {train} + {validation} rows beside those for testing"
    require("image_classes", "train", rule, len(found.train_labels), lambda n: n == train + validation)
    rule = f"at most {len(found.test_labels)}, of {data}"
    require("image_classes", "test", rule, test, lambda n: n <= len(found.test_labels))
    order = np.random.default_rng(0).permutation(train + validation)
    known, labels = _smaller(found.train_images)[order], found.train_labels[order]
    mean, deviation = known[:train].mean(), known[:train].std()
    scaled = lambda images: jnp.asarray((images - mean) / deviation)[..., None]  # noqa: E731
    return ImageClasses(
        scaled(known[:train]),
        jnp.asarray(labels[:train]),
        scaled(known[train:]),
        jnp.asarray(labels[train:]),
        scaled(_smaller(found.test_images)),
        jnp.asarray(found.test_labels),
    )


def _smaller(images: np.ndarray) -> np.ndarray:
    count, side, _ = images.shape
    return images if side < 28 else images.reshape(count, side // 2, 2, side // 2, 2).mean((2, 4))
