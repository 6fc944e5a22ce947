"""Images of a common and of a rare class, to ask how a novelty score falls with the number of examples."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require
from laureate.problems.datasets import small_images

__all__ = ["RareClass", "RareImages"]


class RareClass(NamedTuple):
    """Rows of pixels of two classes.

    common: of the common class, to learn from, [n, pixels]. rare: of the rare one, to learn from, [n, pixels]. held:
    others of the rare one, to test on, [m, pixels].
    """

    common: Float[Array, "n pixels"]
    rare: Float[Array, "n pixels"]
    held: Float[Array, "m pixels"]


class RareImages(eqx.Module):
    """Two classes of a real data set, drawn anew with every key: one to be seen often, one rarely.

    data: "digits", "mnist-5k" or "fashion-mnist". num_train, num_held: images of a class to learn from, and to be asked
    about; the rest of a class is not used. pool: side of the squares of pixels that are averaged, >= 1.

    >>> found = RareImages("digits", 20, 10).draw(jax.random.key(0))
    >>> found.common.shape, found.held.shape
    ((20, 64), (10, 64))
    """

    images: Float[Array, "classes n pixels"]
    num_train: int = eqx.field(static=True)

    def __init__(self, data: str = "digits", num_train: int = 100, num_held: int = 50, pool: int = 1):
        found = small_images(data, train=None, test=0)
        number = num_train + num_held
        least = min(np.bincount(found.train_labels))
        require("RareImages", "num_train + num_held", f"<= {least}", number, lambda n: n <= least, "Ask for fewer.")
        side = found.train_images.shape[1]
        require("RareImages", "pool", f"a divisor of {side}", pool, lambda p: p >= 1 and side % p == 0)
        rows = [found.train_images[found.train_labels == label][:number] for label in range(10)]
        blocks = np.stack(rows).reshape(10, number, side // pool, pool, side // pool, pool)
        self.images = jnp.asarray(blocks.mean((3, 5)).reshape(10, number, -1))
        self.num_train = num_train

    def draw(self, key: Array) -> RareClass:
        """Two different classes, and a new split of the rare one."""
        class_key, order_key = jax.random.split(key)
        common, rare = jax.random.permutation(class_key, self.images.shape[0])[:2]
        rows = self.images[rare][jax.random.permutation(order_key, self.images.shape[1])]
        return RareClass(self.images[common][: self.num_train], rows[: self.num_train], rows[self.num_train :])
