"""How good are drawn answers? Measures that need no pre-trained network."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from laureate._core import require

__all__ = [
    "ModeReport",
    "copy_share",
    "covered_arc",
    "diversity",
    "energy_distance",
    "energy_score",
    "frechet_distance",
    "mode_report",
    "precision_recall",
]


class ModeReport(NamedTuple):
    """Which of the known answers were given.

    hit: share of the answers within the tolerance of one. shares: of all answers, those that hit each one, [modes].
    nearest: the share of the answers that are nearest to each one, near or not, [modes].
    """

    hit: Array
    shares: Float[Array, " modes"]
    nearest: Float[Array, " modes"]


def _flat(samples: Array) -> Array:
    return samples.reshape(len(samples), -1)


def _distances(first: Array, second: Array) -> Array:
    """Euclidean distances [n, m] of rows, over every axis but the first."""
    apart = _flat(first)[:, None] - _flat(second)[None]
    return jnp.sqrt(jnp.sum(apart**2, axis=-1))


def energy_distance(first: Array, second: Array) -> Array:
    """How far two samples' laws are apart, in their unit: 2 E‖X − Y‖ − E‖X − X'‖ − E‖Y − Y'‖ (Székely & Rizzo 2013).

    Pairs of a sample with itself are left out, so that the estimate is unbiased, and may be a little below 0 where the
    laws are the same.

    first, second: [n, ...] and [m, ...], at least two each.

    >>> points = jnp.array([[0.0], [1.0]])
    >>> float(energy_distance(points, points + 3.0))
    4.0
    """
    for name, values in (("first", first), ("second", second)):
        require("energy_distance", name, "at least two rows", len(values), lambda n: n >= 2)
    n, m = len(first), len(second)
    across = jnp.mean(_distances(first, second))
    within = [jnp.sum(_distances(part, part)) / (size * (size - 1)) for part, size in ((first, n), (second, m))]
    return 2 * across - within[0] - within[1]


def energy_score(samples: Array, y: Array) -> Array:
    """How well samples predict the observed y: E‖X − y‖ − ½ E‖X − X'‖, lower is better (Gneiting & Raftery 2007).

    Its mean over pairs is least for the true conditional law, and half the energy distance to it above that. So models
    can be compared where one answer for each x is known.

    samples: [n, ...] for one x, at least two. y: [...].

    >>> float(energy_score(jnp.array([[0.0], [2.0]]), jnp.array([1.0])))
    0.0
    """
    require("energy_score", "samples", "at least two", len(samples), lambda n: n >= 2)
    n = len(samples)
    return jnp.mean(_distances(samples, y[None])) - 0.5 * jnp.sum(_distances(samples, samples)) / (n * (n - 1))


def mode_report(samples: Array, modes: Array, tolerance: float | Array) -> ModeReport:
    """Which of the known answers ``modes`` [modes, ...] the samples [n, ...] for one x hit, by mean absolute error.

    >>> report = mode_report(jnp.array([[1.0], [-1.0], [-1.1], [0.0]]), jnp.array([[1.0], [-1.0]]), 0.2)
    >>> float(report.hit), report.shares.tolist()
    (0.75, [0.25, 0.5])
    """
    require("mode_report", "tolerance", "> 0", tolerance, lambda t: t > 0)
    apart = jnp.mean(jnp.abs(_flat(samples)[:, None] - _flat(modes)[None]), axis=-1)
    nearest = jnp.argmin(apart, axis=1)[:, None] == jnp.arange(len(modes))[None]
    hits = nearest & (apart <= tolerance)
    return ModeReport(jnp.mean(jnp.any(hits, axis=1)), jnp.mean(hits, axis=0), jnp.mean(nearest, axis=0))


def covered_arc(points: Float[Array, "n 2"], counted: Bool[Array, " n"] | None = None, num_bins: int = 64) -> Array:
    """The share of equal arcs of a circle around 0 in which at least one of the points that count lies.

    >>> float(covered_arc(jnp.array([[1.0, 0.1], [-1.0, 0.1], [-1.0, 0.2]]), num_bins=4))
    0.5
    """
    angles = jnp.arctan2(points[:, 1], points[:, 0]) / (2 * jnp.pi) % 1.0
    bins = jnp.clip(jnp.floor(angles * num_bins), 0, num_bins - 1)
    there = bins.astype(int)[:, None] == jnp.arange(num_bins)[None]
    return jnp.mean(jnp.any(there if counted is None else there & counted[:, None], axis=0))


def diversity(samples: Array) -> Array:
    """The mean absolute difference of two samples [n, ...] for one x; 0 where all are the same.

    >>> float(diversity(jnp.array([[0.0], [1.0], [1.0]])))
    0.6666666865348816
    """
    require("diversity", "samples", "at least two", len(samples), lambda n: n >= 2)
    n = len(samples)
    apart = jnp.mean(jnp.abs(_flat(samples)[:, None] - _flat(samples)[None]), axis=-1)
    return jnp.sum(apart) / (n * (n - 1))


def precision_recall(real: Array, made: Array, num_neighbours: int = 3) -> tuple[Array, Array]:
    """Shares of made examples near real ones, and of real ones near made ones (Kynkäänniemi et al. 2019).

    Near is within the distance of a neighbour's own k-th neighbour, in the space given: pixels, or your own features.

    real, made: [n, ...] and [m, ...]. num_neighbours: k, below n and m.

    >>> points = jnp.arange(6.0)[:, None]
    >>> precision, recall = precision_recall(points, jnp.zeros((6, 1)) + points[:3].repeat(2, 0), num_neighbours=2)
    >>> float(precision), round(float(recall), 2)
    (1.0, 0.67)
    """
    rule = "at least 1 and below the number of examples of each kind"
    require("precision_recall", "num_neighbours", rule, num_neighbours, lambda k: 1 <= k < min(len(real), len(made)))
    radius = lambda part: jnp.sort(_distances(part, part), axis=1)[:, num_neighbours]  # noqa: E731  (the 0th is itself)
    across = _distances(made, real)
    precision = jnp.mean(jnp.any(across <= radius(real)[None], axis=1))
    recall = jnp.mean(jnp.any(across <= radius(made)[:, None], axis=0))
    return precision, recall


def frechet_distance(first: Array, second: Array) -> Array:
    """‖m₁ − m₂‖² + tr(C₁ + C₂ − 2 (C₁ C₂)^½): the distance of two normal laws fitted to rows of features.

    The features are yours: pixels, or a classifier's. Not the FID, whose features are those of one certain network.

    first, second: [n, ...] and [m, ...], at least two rows each.

    >>> points = jnp.array([[0.0], [2.0]])
    >>> round(float(frechet_distance(points, 3 * points)), 4)
    12.0
    """
    for name, values in (("first", first), ("second", second)):
        require("frechet_distance", name, "at least two rows", len(values), lambda n: n >= 2)
    means, roots = [], []
    for part in (_flat(first), _flat(second)):
        means.append(jnp.mean(part, axis=0))
        root = (part - means[-1]) / jnp.sqrt(len(part) - 1)
        # Only RᵀR counts: of many rows the triangle of their QR decomposition says as much.
        roots.append(jnp.linalg.qr(root, mode="r") if len(part) > part.shape[1] else root)
    # With C_i = R_iᵀ R_i, tr (C₁ C₂)^½ is the sum of the singular values of R₁ R₂ᵀ.
    shared = jnp.sum(jnp.linalg.svd(roots[0] @ roots[1].T, compute_uv=False))
    return jnp.sum((means[0] - means[1]) ** 2) + sum(jnp.sum(root**2) for root in roots) - 2 * shared


def copy_share(made: Array, train: Array, held_out: Array) -> Array:
    """The share of made examples that lie nearer to a training example than to any held-out one; 0.5 for no copies.

    Half is what fresh examples would give where both are as many: give as many. Nearness is Euclidean, in the space
    given: pixels, or your own features.

    made: [n, ...]. train, held_out: [m, ...], as many rows each.

    >>> real = jnp.arange(4.0)[:, None]
    >>> float(copy_share(real[:2] + 0.1, real[:2], real[2:]))
    1.0
    """
    sizes = len(train), len(held_out)
    require("copy_share", "held_out", "of as many rows as train", sizes, lambda both: both[0] == both[1] > 0)
    nearest = [jnp.min(_distances(made, part), axis=1) for part in (train, held_out)]
    return jnp.mean((nearest[0] < nearest[1]) + 0.5 * (nearest[0] == nearest[1]))
