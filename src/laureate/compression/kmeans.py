"""k-means for many short vectors and a few hundred centroids: distances by matrix products, block by block."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate._core import require

__all__ = ["Clusters", "kmeans", "nearest"]

# Points whose distances are computed at once: with 256 centroids two megabytes, about what a core's own cache holds.
BLOCK = 2048
# Points among which k-means++ chooses where to begin; of fewer, all.
SEEDING = 2**14


class Clusters(NamedTuple):
    """What ``kmeans`` found.

    centroids: c, ``[K, dimensions]``. codes: the nearest centroid of every point.
    objective: Σ_i |x_i - c(x_i)|² before every step and at the end, ``[steps + 1]``; it never rises.
    """

    centroids: Float[Array, "centroids dimensions"]
    codes: Int[Array, "points"]
    objective: Float[Array, "history"]


class Sums(NamedTuple):
    """Of the points of each centroid: their sum, their number, and their squared distances from it."""

    points: Float[Array, "centroids dimensions"]
    counts: Float[Array, "centroids"]
    errors: Float[Array, "centroids"]


def kmeans(
    key: Key[Array, ""],
    points: Float[Array, "points dimensions"],
    num_centroids: int,
    num_steps: int = 15,
    *,
    start: Float[Array, "centroids dimensions"] | None = None,
) -> Clusters:
    """Centroids that are near all points: Lloyd's iteration from k-means++.

    minimise Σ_i min_k |x_i - c_k|²:   k(i) = argmin_k |x_i - c_k|²,   c_k = mean of its points

    num_centroids: K, at most as many as there are points. num_steps: of Lloyd's iteration, >= 0.
    start: centroids to begin from, as those of an earlier call; without, k-means++ among at most 16,384 points drawn
        with replacement (Arthur, Vassilvitskii 2007). With at most as many distinct points as K, and no more points
        than that, those are the centroids.

    A centroid that has lost all its points moves next to the one with the largest error, whose place is kept: so the
    objective never rises. Memory is that of the points and of one block of distances. Under jit and vmap as well.

    >>> points = jnp.array([[0.0], [0.1], [5.0], [5.1]])
    >>> found = kmeans(jax.random.key(0), points, 2)
    >>> [round(centroid, 3) for centroid in sorted(found.centroids[:, 0].tolist())], bool(found.objective[-1] < 0.011)
    ([0.05, 5.05], True)
    """
    many = points.shape[0]
    require("kmeans", "num_centroids", f"in 1..{many}, the number of points", num_centroids, lambda k: 1 <= k <= many)
    require("kmeans", "num_steps", ">= 0", num_steps, lambda n: n >= 0)
    wanted = (num_centroids, points.shape[1])
    require("kmeans", "start", f"None or of shape {wanted}", start, lambda s: s is None or s.shape == wanted)
    points = points.astype(jnp.promote_types(points.dtype, jnp.float32))
    seed_key, split_key = jax.random.split(key)
    centroids = _plus_plus(seed_key, points, num_centroids) if start is None else start.astype(points.dtype)
    directions = jax.random.normal(split_key, wanted, points.dtype)

    def step(centroids: Array, nothing: None) -> tuple[Array, Array]:
        sums = _assign(points, centroids)[1]
        return _moved(centroids, sums, directions), jnp.sum(sums.errors)

    centroids, history = jax.lax.scan(step, centroids, length=num_steps)
    codes, sums = _assign(points, centroids)
    return Clusters(centroids, codes, jnp.append(history, jnp.sum(sums.errors)))


def nearest(points: Float[Array, "points dimensions"], centroids: Array) -> Int[Array, "points"]:
    """argmin_k |x_i - c_k|² for every point."""
    return _assign(points.astype(centroids.dtype), centroids)[0]


def _moved(centroids: Array, sums: Sums, directions: Array) -> Array:
    """Every centroid to the mean of its points; those without points beside the ones with the largest error."""
    empty = sums.counts == 0
    means = jnp.where(empty[:, None], centroids, sums.points / jnp.maximum(sums.counts, 1)[:, None])
    donors = jnp.argsort(-sums.errors)[jnp.cumsum(empty) - 1]  # the j-th empty one goes to the j-th worst
    radius = jnp.sqrt(sums.errors / jnp.maximum(sums.counts, 1))
    beside = means[donors] + 0.01 * radius[donors][:, None] * directions
    return jnp.where(empty[:, None], beside, means)


def _assign(points: Array, centroids: Array) -> tuple[Array, Sums]:
    """The nearest centroid of each point, and the sums over the points of each."""
    many, dimensions = points.shape
    num = centroids.shape[0]
    block = min(BLOCK, many)
    # |x - c|² = |x|² + 2 (½|c|² - x·c): what is in brackets is one product of [x, 1] with [-c, ½|c|²]. Both are taken
    # from the middle of the centroids, for far from 0 the difference of large numbers would lose the digits.
    middle = jnp.mean(centroids, axis=0)
    near = centroids - middle
    halves = 0.5 * jnp.sum(near**2, axis=1)
    extended = jnp.concatenate([-near, halves[:, None]], axis=1)
    numbers = jnp.arange(num, dtype=jnp.int32)[:, None]

    def add(sums: Sums, first: Array) -> tuple[Sums, Array]:
        # The last block begins earlier where points do not fill it; those that were counted before count nothing.
        start = jnp.minimum(first, many - block)
        some = jax.lax.dynamic_slice_in_dim(points, start, block) - middle
        counts = (start + jnp.arange(block) >= first).astype(points.dtype)
        half_distances = extended @ jnp.concatenate([some, jnp.ones((block, 1), some.dtype)], axis=1).T
        least = jnp.min(half_distances, axis=0)
        # XLA's own argmin takes five times as long on a CPU: it is not vectorised.
        codes = jnp.min(jnp.where(half_distances == least, numbers, num - 1), axis=0)
        errors = jnp.maximum(jnp.sum(some**2, axis=1) + 2 * least, 0)
        new = (some * counts[:, None], counts, errors * counts)
        return Sums(*(total.at[codes].add(x) for total, x in zip(sums, new, strict=True))), codes

    zero = jnp.zeros(num, points.dtype)
    starts = jnp.arange(0, many, block)
    sums, codes = jax.lax.scan(add, Sums(jnp.zeros((num, dimensions), points.dtype), zero, zero), starts)
    sums = sums._replace(points=sums.points + sums.counts[:, None] * middle)
    if overlap := len(starts) * block - many:
        codes = jnp.concatenate([codes[:-1].ravel(), codes[-1, overlap:]])
    return codes.ravel(), sums


def _plus_plus(key: Array, points: Array, num: int) -> Array:
    """k-means++: each new centroid is a point, drawn in proportion to its squared distance from those before."""
    sample_key, first_key = jax.random.split(key)
    if points.shape[0] > SEEDING:
        points = points[jax.random.randint(sample_key, (SEEDING,), 0, points.shape[0])]
    drawn = jax.random.uniform(first_key, (num,), points.dtype)

    def choose(distances: Array, share: Array) -> tuple[Array, Array]:
        cumulative = jnp.cumsum(distances)
        # The first whose sum exceeds the share: never one at distance nought, unless all are.
        which = jnp.searchsorted(cumulative, share * cumulative[-1], side="right")
        chosen = points[jnp.minimum(which, len(points) - 1)]
        return jnp.minimum(distances, jnp.sum((points - chosen) ** 2, axis=1)), chosen

    far = jnp.ones(len(points), points.dtype)

    def first(share: Array) -> tuple[Array, Array]:
        _, chosen = choose(far, share)  # all alike: uniform
        return jnp.sum((points - chosen) ** 2, axis=1), chosen

    distances, one = first(drawn[0])
    _, others = jax.lax.scan(choose, distances, drawn[1:])
    return jnp.concatenate([one[None], others])
