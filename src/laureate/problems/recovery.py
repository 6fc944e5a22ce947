"""Sparse recovery: random dictionaries with known codes, patches and images of digits to learn dictionaries from."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require
from laureate.problems.datasets import digits

__all__ = ["DigitImages", "DigitPatches", "GaussianDictionary"]


class GaussianDictionary(eqx.Module):
    """D [rows, columns] with Gaussian entries and unit columns; codes with normal entries at random places.

    density: the share of entries that are not zero.

    >>> problem = GaussianDictionary(rows=5, columns=8, density=0.25)
    >>> problem.dictionary(jax.random.key(0)).shape, problem.sample(jax.random.key(1), 3).shape
    ((5, 8), (3, 8))
    """

    rows: int = eqx.field(static=True, default=50)
    columns: int = eqx.field(static=True, default=100)
    density: float = eqx.field(static=True, default=0.05)

    def __check_init__(self):
        require("GaussianDictionary", "rows", ">= 1", self.rows, lambda n: n >= 1)
        require("GaussianDictionary", "columns", "> rows", self.columns, lambda n: n > self.rows)
        require("GaussianDictionary", "density", "within 0 and 1", self.density, lambda p: 0 < p <= 1)

    def dictionary(self, key: Array) -> Array:
        """A new dictionary."""
        matrix = jax.random.normal(key, (self.rows, self.columns))
        return matrix / jnp.linalg.norm(matrix, axis=0)

    def sample(self, key: Array, number: int) -> Array:
        """So many codes [number, columns]."""
        where, what = jax.random.split(key)
        chosen = jax.random.uniform(where, (number, self.columns)) < self.density
        return jnp.where(chosen, jax.random.normal(what, chosen.shape), 0.0)


class DigitPatches(eqx.Module):
    """Square patches [number, side²] of scikit-learn's 8 × 8 digits, from everywhere in the images, in [0, 1].

    Patches that are almost black say nothing of strokes and are left out.
    """

    patches: Array

    def __init__(self, side: int = 6, number: int = 600):
        require("DigitPatches", "side", "within 1 and 8", side, lambda n: 1 <= n <= 8)
        images, _ = digits()
        windows = np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(1, 2))
        every = windows.reshape(-1, side * side)
        bright = every[np.linalg.norm(every, axis=1) > 0.5]
        self.patches = jnp.asarray(bright[np.linspace(0, len(bright) - 1, number).astype(int)])


class DigitImages(eqx.Module):
    """Scikit-learn's 8 × 8 digits in [0, 1]: the first ``train`` to learn from, the last ``test`` to be judged by."""

    train: Array
    test: Array

    def __init__(self, train: int = 400, test: int = 200):
        images, _ = digits()
        require("DigitImages", "train + test", f"<= {len(images)}", train + test, lambda n: n <= len(images))
        self.train, self.test = jnp.asarray(images[:train]), jnp.asarray(images[len(images) - test :])
