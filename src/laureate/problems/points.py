"""Point sets with three marked points, after the synthetic structures of Jing et al. (2021)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require

__all__ = ["PointClouds", "draw_points", "off_centre", "perimeter", "to_marked"]


class PointClouds(eqx.Module):
    """Sets of points in a ball with a least distance, three of each marked, and the nearest others of each point.

    The radius grows with the number of points, so that they are equally dense. The same on every machine.

    num_clouds, num_points: how many. num_neighbors: < num_points; edges come from these.
    stretch: how much longer than wide a cloud is; above 1 all are stretched along x and flattened along z by this
        factor, and so stand in one and the same pose. 1 for balls.
    seed: of the points.

    >>> clouds = PointClouds(5, 8, 3)
    >>> clouds.points.shape, clouds.neighbors.shape, clouds.marked.sum(1).tolist()
    ((5, 8, 3), (5, 8, 3), [3.0, 3.0, 3.0, 3.0, 3.0])
    """

    points: Float[Array, "n p 3"]
    directions: Float[Array, "n p 3"]
    marked: Float[Array, "n p"]
    neighbors: Int[Array, "n p k"]

    def __init__(self, num_clouds: int, num_points: int, num_neighbors: int, stretch: float = 1.0, seed: int = 0):
        require("PointClouds", "num_points", ">= 3", num_points, lambda n: n >= 3)
        rule = f"in 1 to {num_points - 1}"
        require("PointClouds", "num_neighbors", rule, num_neighbors, lambda k: 1 <= k < num_points)
        require("PointClouds", "stretch", "> 0", stretch, lambda s: s > 0)
        rng = np.random.default_rng(seed)
        points = draw_points(rng, num_clouds, num_points)
        points = points * np.array([stretch, 1.0, 1 / stretch])
        points -= points.mean(1, keepdims=True)
        directions = rng.normal(size=points.shape)
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        marked = np.zeros((num_clouds, num_points))
        marked[:, :3] = 1.0
        apart = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
        apart[:, np.arange(num_points), np.arange(num_points)] = np.inf
        self.points = jnp.asarray(points, jnp.float32)
        self.directions = jnp.asarray(directions, jnp.float32)
        self.marked = jnp.asarray(marked, jnp.float32)
        self.neighbors = jnp.asarray(np.argsort(apart, axis=-1)[:, :, :num_neighbors], jnp.int32)


def draw_points(generator: np.random.Generator, num_clouds: int, num_points: int, share: float = 0.15) -> np.ndarray:
    """[n, p, 3]: points in balls, no two nearer than 2; spheres of radius 1 would fill this share of the ball.

    generator: of NumPy. num_clouds, num_points: n and p. share: of the ball's volume, in (0, 1).
    """
    radius = (num_points / share) ** (1 / 3)
    points = np.full((num_clouds, num_points, 3), np.inf)
    count = np.zeros(num_clouds, int)
    while (open_ := np.flatnonzero(count < num_points)).size:
        drawn = generator.normal(size=(len(open_), 3))
        drawn *= radius * (generator.uniform(size=len(open_)) ** (1 / 3) / np.linalg.norm(drawn, axis=1))[:, None]
        nearest = np.linalg.norm(points[open_] - drawn[:, None], axis=-1).min(1)
        taken = open_[nearest >= 2.0]
        points[taken, count[taken]] = drawn[nearest >= 2.0]
        count[taken] += 1
    return points


def off_centre(points: Float[Array, "*n p 3"], marked: Float[Array, "*n p"]) -> Float[Array, "*n"]:
    """The distance of the marked points' centre from that of all."""
    return jnp.linalg.norm(_centre(points, marked) - points.mean(-2), axis=-1)


def perimeter(points: Float[Array, "*n p 3"]) -> Float[Array, "*n"]:
    """Of the triangle of the first three points, which are the marked ones."""
    corners = points[..., :3, :]
    return jnp.linalg.norm(corners - jnp.roll(corners, 1, axis=-2), axis=-1).sum(-1)


def to_marked(points: Float[Array, "*n p 3"], marked: Float[Array, "*n p"]) -> Float[Array, "*n p 3"]:
    """From each point to the marked points' centre."""
    return _centre(points, marked)[..., None, :] - points


def _centre(points: Float[Array, "*n p 3"], marked: Float[Array, "*n p"]) -> Float[Array, "*n 3"]:
    return (points * marked[..., None]).sum(-2) / marked.sum(-1, keepdims=True)
