"""Small images as spins, -1 and +1, with patterns that stand for their classes."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.problems.datasets import small_images

__all__ = ["SpinImages"]


class SpinImages(eqx.Module):
    """Images whose pixels above ``threshold`` are +1, the others -1.

    ``spins``, ``labels`` and ``test_spins``, ``test_labels`` are rows; ``directions`` are the class means of the
    training rows, one a class, and ``patterns`` their signs.

    >>> problem = SpinImages("digits", train=500, test=200)
    >>> problem.spins.shape, problem.patterns.shape
    ((500, 64), (10, 64))
    """

    spins: Float[Array, "rows units"]
    labels: Int[Array, "rows"]
    test_spins: Float[Array, "test units"]
    test_labels: Int[Array, "test"]
    patterns: Float[Array, "patterns units"]
    directions: Float[Array, "patterns units"]

    def __init__(self, data: str = "digits", train: int = 1000, test: int = 600, threshold: float = 0.45):
        require("SpinImages", "threshold", "in [0, 1)", threshold, lambda t: 0 <= t < 1)
        images = small_images(data, train, test)
        spins = [np.where(x.reshape(len(x), -1) > threshold, 1.0, -1.0).astype(np.float32)
                 for x in (images.train_images, images.test_images)]  # fmt: skip
        means = [spins[0][images.train_labels == label].mean(0) for label in np.unique(images.train_labels)]
        self.spins, self.test_spins = map(jnp.asarray, spins)
        self.labels, self.test_labels = jnp.asarray(images.train_labels), jnp.asarray(images.test_labels)
        self.directions = jnp.asarray(np.stack(means))
        self.patterns = jnp.asarray(np.where(np.stack(means) >= 0, 1.0, -1.0).astype(np.float32))
