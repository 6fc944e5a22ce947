"""Small binary images, for energy-based models: real ones, of what this machine has."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from laureate.problems.datasets import DatasetError, digits, fashion_mnist

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
    try:
        data = fashion_mnist()
    except DatasetError:
        images = digits()[0] >= 0.5
        return BinaryImages(jnp.asarray(images[:-test][:train]), jnp.asarray(images[-test:]))
    parts = (data.train_images[:train], data.test_images[:test])
    # Means of two by two pixels.
    small = (part.reshape(-1, 14, 2, 14, 2).mean((2, 4)) >= 127.5 for part in parts)
    return BinaryImages(*map(jnp.asarray, small))
