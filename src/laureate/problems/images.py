"""Small binary images, for energy-based models: real ones, of what this machine has."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from laureate.problems.datasets import small_images

__all__ = ["BinaryImages", "clothes_or_digits"]


class BinaryImages(eqx.Module):
    """Square binary images to learn from and to be judged by."""

    train: Bool[Array, "train side side"]
    test: Bool[Array, "test side side"]


def clothes_or_digits(train: int = 1500, test: int = 297) -> BinaryImages:
    """Fashion-MNIST at 14 x 14 where it is installed, else scikit-learn's 8 x 8 digits; white from half brightness on.

    The first ``train`` and ``test`` images of Fashion-MNIST's two parts. Of the 1,797 digits the last ``test`` are for
    testing, and at most ``train`` of those before for training.

    >>> images = clothes_or_digits(train=100, test=20)
    >>> len(images.train), len(images.test), images.train.shape[1] in (8, 14)
    (100, 20, True)
    """
    data = small_images(train=train, test=test)
    side = 14 if data.name == "Fashion-MNIST" else 8
    pool = data.train_images.shape[1] // side
    parts = (part.reshape(-1, side, pool, side, pool).mean((2, 4)) for part in (data.train_images, data.test_images))
    # Grey values are multiples of 1/1020: a hair below a half is still a half, that rounding has made smaller.
    return BinaryImages(*(jnp.asarray(part >= 0.5 - 1e-5) for part in parts))
