"""Small binary images, for energy-based models: real ones, of a data set by name."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from laureate.problems.datasets import small_images

__all__ = ["BinaryImages", "binary_images"]


class BinaryImages(eqx.Module):
    """Square binary images to learn from and to be judged by."""

    train: Bool[Array, "train side side"]
    test: Bool[Array, "test side side"]


def binary_images(data: str, train: int = 1500, test: int = 297) -> BinaryImages:
    """Images of a data set (``small_images``), white from half brightness on; those of 28 x 28 averaged to 14 x 14.

    >>> images = binary_images("digits", train=100, test=20)
    >>> images.train.shape, len(images.test)
    ((100, 8, 8), 20)
    """
    found = small_images(data, train=train, test=test)
    full = found.train_images.shape[1]
    pool = 1 if full == 8 else 2
    side = full // pool
    parts = (part.reshape(-1, side, pool, side, pool).mean((2, 4)) for part in (found.train_images, found.test_images))
    # Grey values are multiples of 1/1020: a hair below a half is still a half, that rounding has made smaller.
    return BinaryImages(*(jnp.asarray(part >= 0.5 - 1e-5) for part in parts))
