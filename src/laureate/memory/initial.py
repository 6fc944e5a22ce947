"""Weights to begin training with: from stored patterns, from the data's directions, or from noise."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.memory.hopfield import check_spins, library_of

__all__ = ["class_patterns", "hebbian_weights", "principal_weights", "random_weights"]


def hebbian_weights(patterns: Any) -> Float[Array, "units patterns"]:
    """ξᵀ/√N: the weights of Hebb's rule.

    >>> hebbian_weights([[1, -1, 1, 1]]).ravel().tolist()
    [0.5, -0.5, 0.5, 0.5]
    """
    spins = check_spins("hebbian_weights", "patterns", patterns)
    return jnp.asarray(spins.T / math.sqrt(spins.shape[1]))


def principal_weights(data: Any, num_hidden: int) -> Float[Array, "units hidden"]:
    """The data's leading principal directions, orthonormal.

    Of the second moments and not of the covariance: a machine without biases is symmetric, p(s) = p(-s), and sees no
    mean.
    """
    xp = library_of(data)
    rows = check_spins("principal_weights", "data", data)
    largest = min(rows.shape)
    require("principal_weights", "num_hidden", f"in 1..{largest}", num_hidden, lambda p: 1 <= p <= largest)
    _, vectors = xp.linalg.eigh(rows.T @ rows / len(rows))
    return jnp.asarray(vectors[:, ::-1][:, :num_hidden])


def random_weights(key: Key[Array, ""], num_units: int, num_hidden: int, size: float) -> Float[Array, "units hidden"]:
    """Normal numbers with standard deviation ``size``.

    key: of the draw. num_units, num_hidden: the shape.
    """
    require("random_weights", "size", "> 0", size, lambda s: s > 0)
    return size * jax.random.normal(key, (num_units, num_hidden))


def class_patterns(data: Any, labels: Any, per_class: int = 1) -> np.ndarray:
    """Patterns that stand for labelled data: the signs of cluster means, ``per_class`` clusters in each class.

    Ward's clustering within a class (all of it where ``per_class`` is 1); a mean of nought counts as +1. Copies, and
    negatives, which a Hopfield network cannot tell from their originals, are left out.

    >>> class_patterns([[1, 1, -1], [1, -1, -1], [1, 1, 1]], [0, 0, 1]).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, 1.0]]
    """
    spins, labels = check_spins("class_patterns", "data", data), np.asarray(labels)
    require("class_patterns", "labels", f"of shape ({len(spins)},)", labels.shape, lambda s: s == (len(spins),))
    require("class_patterns", "per_class", ">= 1", per_class, lambda k: k >= 1)
    found: list[np.ndarray] = []
    for label in np.unique(labels):
        rows = spins[labels == label]
        for members in _clusters(rows, min(per_class, len(rows))):
            pattern = np.where(members.mean(0) >= 0, 1.0, -1.0)
            if not any(abs(pattern @ other) == len(pattern) for other in found):
                found.append(pattern)
    return np.stack(found)


def _clusters(rows: np.ndarray, count: int) -> list[np.ndarray]:
    if count == 1:
        return [rows]
    from scipy.cluster.hierarchy import fcluster, ward

    which = fcluster(ward(rows), count, "maxclust")
    return [rows[which == number] for number in np.unique(which)]
