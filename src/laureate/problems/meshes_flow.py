"""Flow past a cylinder in a channel: a lattice Boltzmann solver, and its velocities at the nodes of a mesh."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from laureate.problems.meshes import grid_cells
from laureate.problems.meshes_simulations import INFLOW, NORMAL, OUTFLOW, WALL, Simulations, made_of

__all__ = ["cylinder", "equilibrium", "lattice_step", "moments", "ring_mesh"]

# Directions c_i of the nine velocities, their weights w_i, and which is opposite.
C = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
W = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])
OPPOSITE = (0, 3, 4, 1, 2, 7, 8, 5, 6)

Populations = Float[Array, "9 rows columns"]


def moments(f: Populations) -> tuple[Float[Array, "rows columns"], Float[Array, "2 rows columns"]]:
    """Density ρ = Σ f_i and velocity u = Σ c_i f_i / ρ, (x, y), of every place."""
    density = jnp.sum(f, 0)
    return density, jnp.einsum("id,iyx->dyx", jnp.asarray(C, f.dtype), f) / density


def equilibrium(density: Array, u: Array) -> Populations:
    """f_i = w_i ρ (1 + 3 c·u + 9/2 (c·u)² − 3/2 u²)."""
    along = jnp.einsum("id,dyx->iyx", jnp.asarray(C, u.dtype), u)
    weights = jnp.asarray(W, u.dtype)[:, None, None]
    return weights * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * jnp.sum(u**2, 0))


def lattice_step(
    f: Populations,
    solid: Bool[Array, "rows columns"],
    tau: float | Array,
    force: Any = (0.0, 0.0),
    inflow: Float[Array, " rows"] | None = None,
) -> Populations:
    """One step of the lattice Boltzmann method with nine velocities and one relaxation time, periodic both ways.

    ::

        f_i(x + c_i, t + 1) = f_i − (f_i − f_i^eq) / τ + 3 w_i c_i·F,    ν = (τ − ½) / 3

    What would enter a solid place comes back the way it went: a wall stands half-way between two places, and mass is
    conserved. With τ = ½ + √3/4 a channel that is driven by a force has Poiseuille's parabola to rounding, in u + F/2ρ.

    solid: where there is no fluid. force: (x, y), on all fluid, lattice units.
    inflow: the velocity along x in the first column; the last column then repeats the one before. None: periodic.
    """
    density, u = moments(f)
    pushed = 3 * jnp.asarray(W[:, None] * C, f.dtype) @ jnp.asarray(force, f.dtype)
    after = f - (f - equilibrium(density, u)) / tau + pushed[:, None, None]
    streamed = jnp.stack([jnp.roll(after[i], (y, x), (0, 1)) for i, (x, y) in enumerate(C)])
    from_solid = jnp.stack([jnp.roll(solid, (y, x), (0, 1)) for x, y in C])
    new = jnp.where(from_solid, jnp.stack([after[i] for i in OPPOSITE]), streamed)  # half-way bounce-back
    new = jnp.where(solid, jnp.asarray(W, f.dtype)[:, None, None], new)
    if inflow is None:
        return new
    entering = jnp.stack([inflow, jnp.zeros_like(inflow)])[:, :, None]
    first = equilibrium(jnp.sum(new[:, :, 1:2], 0), entering)
    # Only the fluid's places: the walls above and below stay as they are.
    first = jnp.where(solid[:, :1], new[:, :, :1], first)
    return jnp.concatenate([first, new[:, :, 1:-1], new[:, :, -2:-1]], 2)


def ring_mesh(rings: int, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles and shares [n, 2], and triangles, of the nodes between a rim (share 0) and an outer border (share 1)."""
    spokes = len(angles)
    angle, share = np.meshgrid(angles, np.linspace(0, 1, rings) ** 1.3)
    cells = grid_cells(rings, spokes + 1)
    row, column = cells // (spokes + 1), cells % (spokes + 1)
    return np.stack([angle.ravel(), share.ravel()], 1), (row * spokes + column % spokes).astype(np.int32)


def _angles(spokes: int, centre: np.ndarray, size: np.ndarray) -> np.ndarray:
    """At which places that lie evenly along a rectangle's border are seen from within, counted from the left up."""
    corners = np.array([[0.0, 0.0], [1, 0], [1, 1], [0, 1], [0, 0]]) * size
    along = np.cumsum([0, size[0], size[1], size[0], size[1]])
    wanted = (np.arange(spokes) + 0.5) / spokes * along[-1]
    places = np.stack([np.interp(wanted, along, corners[:, d]) for d in range(2)], 1) - centre
    return np.arctan2(places[:, 1], places[:, 0])


def _placed(shape: np.ndarray, centre: np.ndarray, radius: float, size: np.ndarray) -> np.ndarray:
    """Nodes of a ring between a circle and the rectangle [0, size], on rays from the circle's centre."""
    turn = np.stack([np.cos(shape[:, 0]), np.sin(shape[:, 0])], 1)
    with np.errstate(divide="ignore"):
        reach = np.where(turn > 0, (size - centre) / turn, np.where(turn < 0, -centre / turn, np.inf)).min(1)
    return centre + turn * (radius + shape[:, 1:] * (reach[:, None] - radius))


def cylinder(
    rows: int = 24,
    columns: int = 48,
    rings: int = 8,
    spokes: int = 24,
    train: int = 4,
    test: int = 2,
    frames: int = 20,
    every: int = 20,
    settle: int = 200,
    reynolds: float = 100.0,
) -> Simulations:
    """Velocities around a cylinder, each trajectory with a place, a radius and an inflow of its own.

    rows, columns: places of the lattice within the channel; walls stand above and below. rings, spokes: nodes of the
    mesh along a ray and around. frames: how many, ``every`` so many steps of the lattice, after ``settle`` of them.
    reynolds: of the largest inflow and diameter; the mean inflow is 0.04 to 0.07 lattice units.
    """
    generator = np.random.default_rng(4)
    number = train + test
    size = np.array([columns - 1.0, rows - 1.0])
    radii = generator.uniform(0.09, 0.13, number) * rows
    centres = size * np.stack([generator.uniform(0.22, 0.3, number), generator.uniform(0.42, 0.58, number)], 1)
    speeds = generator.uniform(0.04, 0.07, number)
    shape, cells = ring_mesh(rings, _angles(spokes, size * np.array([0.26, 0.5]), size))
    meshes = np.stack([_placed(shape, c, r, size) for c, r in zip(centres, radii, strict=True)])
    outer = shape[:, 1] == 1
    kinds = np.where(outer | (shape[:, 1] == 0), WALL, NORMAL)
    # A node of the border is of the side that it is on in every mesh; corners are walls.
    side = lambda edge: outer & np.all(np.abs(meshes[:, :, 0] - edge) < 1e-6, 0)  # noqa: E731
    kinds = np.where(side(0.0), INFLOW, np.where(side(size[0]), OUTFLOW, kinds))
    tau = 0.5 + 3 * (0.07 * 0.26 * rows) / reynolds
    waits = np.array([settle, *[every] * (frames - 1)], np.int32)
    flow = jax.jit(lambda c, r, s: _flow(c, r, s, tau, waits, (rows, columns)))
    fields = (np.asarray(flow(c, r, s)) for c, r, s in zip(centres, radii, speeds, strict=True))
    runs = np.stack([_sampled(field, mesh) for field, mesh in zip(fields, meshes, strict=True)])
    # In the unit of a middling inflow. Between two places a wall's node would see some of the fluid's motion.
    runs = np.where((kinds == WALL)[:, None], 0.0, runs / 0.055)
    return made_of(meshes / rows, cells, kinds, runs[:train], runs[train:], order=1, scripted=True)


def _flow(centre: Array, radius: Array, speed: Array, tau: float, waits: np.ndarray, size: tuple[int, int]) -> Array:
    """Velocities [t, 2, rows + 2, columns] after these numbers of steps each, a wall above and below."""
    rows, columns = size
    y, x = jnp.meshgrid(jnp.arange(-1.0, rows + 1), jnp.arange(float(columns)), indexing="ij")
    wall = (y < 0) | (y >= rows)
    solid = wall | ((x - centre[0]) ** 2 + (y - centre[1]) ** 2 < radius**2)
    height = (y[:, 0] + 0.5) / rows  # the walls stand half a place outside
    inflow = jnp.where(wall[:, 0], 0, speed * 6 * height * (1 - height))
    # A little asymmetry, so that the wake need not wait for rounding.
    u = jnp.where(solid, 0, jnp.stack([jnp.broadcast_to(inflow[:, None], x.shape), 0.05 * speed * jnp.sin(x / 5)]))

    def frame(f: Array, wait: Array) -> tuple[Array, Array]:
        f = jax.lax.fori_loop(0, wait, lambda _, f: lattice_step(f, solid, tau, inflow=inflow), f)
        return f, jnp.where(solid, 0, moments(f)[1])

    return jax.lax.scan(frame, equilibrium(jnp.ones_like(x), u), jnp.asarray(waits))[1]


def _sampled(fields: np.ndarray, mesh: np.ndarray) -> np.ndarray:
    """Fields [t, 2, rows + 2, columns] at the nodes, bilinear between places: [t, n, 2]."""
    places = mesh + np.array([0, 1])  # the first row is a wall
    low = np.clip(np.floor(places).astype(int), 0, np.array(fields.shape[:1:-1]) - 2)
    share = places - low
    at = lambda dx, dy: fields[:, :, low[:, 1] + dy, low[:, 0] + dx]  # noqa: E731
    above, below = ((1 - share[:, 0]) * at(0, dy) + share[:, 0] * at(1, dy) for dy in (1, 0))
    return np.moveaxis(share[:, 1] * above + (1 - share[:, 1]) * below, 1, 2)
