"""Trajectories on meshes from exact or reference solvers: a transported field, a plate, a chain, a cloth."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from laureate.layers import segment_sum
from laureate.problems.meshes import (
    advection_matrix,
    boundary_of,
    edges_of,
    elastic_matrix,
    grid_cells,
    mass_matrix,
    stiffness_matrix,
    stretched_grid,
)

__all__ = [
    "FRAME",
    "INFLOW",
    "NORMAL",
    "OUTFLOW",
    "WALL",
    "Simulations",
    "Springs",
    "chain",
    "cloth",
    "made_of",
    "many_frames",
    "plate",
    "spring_frames",
    "transport",
    "transport_frames",
]

NORMAL, HANDLE, INFLOW, OUTFLOW, WALL = 0, 3, 4, 5, 6  # kinds of nodes, by the numbers of MeshGraphNets' data


class Simulations(eqx.Module):
    """Trajectories to learn from and others to be judged by, on meshes that share their edges.

    positions, test_positions: [m, n, k] and [p, n, k], in mesh space, one mesh a trajectory.
    senders, receivers: [e], each edge in both directions. kinds: [n].
    train, test: [m, t, n, d] and [p, u, n, d], the state at the nodes.
    order: 1: the change is predicted; 2: the acceleration. spaces: "mesh" where the state is a field, "both" where it
        is positions. scripted: whether the next state of held nodes is known. shown: whether the state itself is seen.
    others: further sets to be judged by, with edges of their own; their ``train`` is empty.
    springs: of a chain or a cloth what its reference solver needs, one a test trajectory; None elsewhere.
    """

    positions: Float[Array, "m n k"]
    test_positions: Float[Array, "p n k"]
    senders: Int[Array, " e"]
    receivers: Int[Array, " e"]
    kinds: Int[Array, " n"]
    train: Float[Array, "m t n d"]
    test: Float[Array, "p u n d"]
    others: dict[str, "Simulations"]
    springs: Any = None
    order: int = eqx.field(static=True, default=1)
    spaces: str = eqx.field(static=True, default="mesh")
    scripted: bool = eqx.field(static=True, default=False)
    shown: bool = eqx.field(static=True, default=True)


def made_of(positions: Any, cells: np.ndarray, kinds: np.ndarray, train: Any, test: Any, **more: Any) -> Simulations:
    """A set of simulations; positions: of the trajectories to learn from, then of the others.

    cells, kinds: of the mesh that all share. train, test: states of the trajectories. more: fields of ``Simulations``.
    """
    senders, receivers = edges_of(cells)
    single = lambda rows: jnp.asarray(np.asarray(rows), jnp.float32)  # noqa: E731
    number = len(train)
    more = {"others": {}} | more
    return Simulations(
        positions=single(positions[:number]),
        test_positions=single(positions[number:]),
        senders=jnp.asarray(senders),
        receivers=jnp.asarray(receivers),
        kinds=jnp.asarray(kinds, jnp.int32),
        train=single(train),
        test=single(test),
        **more,
    )


# --- a field that is carried along and spreads ------------------------------------------------------------------------

WIND, DIFFUSION, INTERVAL = np.array([0.5, 0.15]), 0.04, 0.1


def transport_frames(
    positions: np.ndarray, cells: np.ndarray, held: np.ndarray, start: np.ndarray, values: np.ndarray, substeps: int = 4
) -> np.ndarray:
    """u' + wind · ∇u = κ Δu by P1 elements and Crank and Nicolson's rule, ``substeps`` of them a frame.

    held: [n] bool. start: [n]. values: [t, n], of which those of held nodes are taken, straight between frames.
    Returns [t, n].
    """
    mass = mass_matrix(positions, cells)
    flow = DIFFUSION * stiffness_matrix(positions, cells) + advection_matrix(positions, cells, WIND)
    dt = INTERVAL / substeps
    after, before = mass + dt / 2 * flow, mass - dt / 2 * flow
    free = ~held
    inverse = np.linalg.inv(after[np.ix_(free, free)])
    u, frames = start.copy(), [start]
    for k in range(1, len(values)):
        last = u.copy()
        for part in np.arange(1, substeps + 1) / substeps:
            new = np.where(held, (1 - part) * last + part * values[k], 0.0)
            right = before[free] @ u - after[np.ix_(free, held)] @ new[held]
            new[free] = inverse @ right
            u = new
        frames.append(u)
    return np.asarray(frames)


def _channel(side: int, shape: str) -> tuple[np.ndarray, np.ndarray]:
    """Which nodes of a grid are used, and the cells, numbered by these: the square, or one with a hole in it."""
    cells = grid_cells(side, side)
    if shape == "square":
        return np.arange(side**2), cells
    # Triangles within the middle third are taken out.
    middle, half = (side - 1) / 2, max(1.0, (side - 1) / 6)
    inside = lambda nodes: (abs(nodes // side - middle) <= half) & (abs(nodes % side - middle) <= half)  # noqa: E731
    cells = cells[~inside(cells).all(1)]
    used, numbered = np.unique(cells, return_inverse=True)
    return used, numbered.reshape(cells.shape).astype(np.int32)


def _transported(
    generator: np.random.Generator, side: int, lengths: list[int], jitter: float, stretch: float, shape: str = "square"
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, list[np.ndarray]]:
    """Meshes, cells, kinds and trajectories of the given lengths, with an inflow of two tones."""
    used, cells = _channel(side, shape)
    rows, columns = used // side, used % side
    kinds = np.full(len(used), NORMAL)
    kinds[np.isin(np.arange(len(used)), boundary_of(cells))] = WALL  # a hole's rim too
    kinds[(columns == side - 1) & (rows > 0) & (rows < side - 1)] = OUTFLOW
    kinds[(columns == 0) & (rows > 0) & (rows < side - 1)] = INFLOW
    held = (kinds == WALL) | (kinds == INFLOW)
    meshes, trajectories = [], []
    for length in lengths:
        places = stretched_grid(generator, side, jitter, stretch)[used]
        rates, phases, sizes = (
            generator.uniform(0.1, 0.5, 2),
            generator.uniform(0, 2 * np.pi, 2),
            generator.uniform(0.3, 1.0, 2),
        )
        tone = np.sin(np.arange(length)[:, None] * rates + phases) @ sizes
        values = np.where(kinds == INFLOW, tone[:, None] * np.sin(np.pi * places[:, 1]), 0.0)
        centre, width = generator.uniform(0.3, 0.7, 2), generator.uniform(0.15, 0.3)
        bump = generator.uniform(-1.5, 1.5) * np.exp(-((places - centre) ** 2).sum(1) / (2 * width**2))
        start = np.where(held, values[0], bump)
        meshes.append(places)
        trajectories.append(transport_frames(places, cells, held, start, values))
    return meshes, cells, kinds, trajectories


def transport(
    side: int = 7,
    train: int = 12,
    test: int = 6,
    frames: int = 60,
    long: int = 300,
    elsewhere: int = 4,
    jitter: float = 0.2,
    stretch: float = 0.6,
) -> Simulations:
    """A field carried through a channel from a changing inflow, each trajectory on a mesh of its own.

    others: "finer", meshes with twice as many spacings, and "hole", a channel with a square hole whose rim is held at
    0, both with ``elsewhere`` trajectories of ``frames`` frames.

    side: nodes along an edge. train, test: numbers of trajectories, of ``frames`` frames to learn from and of ``long``
        to judge by. jitter, stretch: how far nodes are displaced, and meshes stretched, at random.
    """
    generator = np.random.default_rng(0)
    meshes, cells, kinds, found = _transported(generator, side, [frames] * train + [long] * test, jitter, stretch)
    scalar = lambda many: np.stack(many)[..., None]  # noqa: E731
    others = {}
    for name, size, shape in (("finer", 2 * side - 1, "square"), ("hole", side, "hole")):
        places, own_cells, own_kinds, own = _transported(generator, size, [frames] * elsewhere, jitter, stretch, shape)
        nothing = np.zeros((0, frames, len(own_kinds), 1))
        others[name] = made_of(places, own_cells, own_kinds, nothing, scalar(own), scripted=True)
    return made_of(
        meshes, cells, kinds, scalar(found[:train]), scalar(found[train:]), order=1, scripted=True, others=others
    )


# --- a plate that is pulled -------------------------------------------------------------------------------------------


def plate(side: int = 6, train: int = 12, test: int = 6, frames: int = 30) -> Simulations:
    """An elastic plate held on the left and moved on the right, at rest in every frame: the state is positions.

    The displacement of the other nodes solves K d = 0 (plane stress, P1 elements) for that of the two sides.

    side: nodes along an edge. train, test: numbers of trajectories. frames: of each.
    """
    generator = np.random.default_rng(1)
    cells = grid_cells(side, side)
    columns = np.arange(side**2) % side
    kinds = np.where(columns == 0, WALL, np.where(columns == side - 1, HANDLE, NORMAL))
    free = np.repeat(kinds == NORMAL, 2)
    meshes, trajectories = [], []
    for _ in range(train + test):
        places = stretched_grid(generator, side, 0.2, 0.3)
        stiffness = elastic_matrix(places, cells)
        answer = -np.linalg.solve(stiffness[np.ix_(free, free)], stiffness[np.ix_(free, ~free)])
        # The right side is shifted and turned: a smooth walk in three numbers.
        tones = np.sin(
            np.arange(frames)[:, None, None] * generator.uniform(0.1, 0.4, (3, 2)) + generator.uniform(0, 6.3, (3, 2))
        )
        shift = 0.08 * tones.sum(2)
        moved = np.zeros((frames, side**2, 2))
        right = kinds == HANDLE
        moved[:, right, 0] = shift[:, :1] - shift[:, 2:] * (places[right, 1] - 0.5)
        moved[:, right, 1] = shift[:, 1:2]
        flat = moved.reshape(frames, -1)
        flat[:, free] = flat[:, ~free] @ answer.T
        meshes.append(places)
        trajectories.append(places + flat.reshape(frames, -1, 2))
    both = np.stack(trajectories)
    return made_of(meshes, cells, kinds, both[:train], both[train:], order=1, spaces="both", scripted=True, shown=False)


# --- masses and springs -----------------------------------------------------------------------------------------------

FRAME = 0.05  # the time between two frames of a cloth


class Springs(NamedTuple):
    """Masses of 1 joined by springs along edges, each edge in both directions; in a fluid at rest, with a weight.

    senders, receivers: [e] the nodes that each edge joins. rest: [e] lengths without force. fixed: [n] nodes that do
    not move. stiffness, cubic: k and c of the force k (l − l0) + c (l − l0)³. weight: [d] acceleration of all. drag:
    force −drag · v.
    """

    senders: Int[Array, " e"]
    receivers: Int[Array, " e"]
    rest: Float[Array, " e"]
    fixed: Bool[Array, " n"]
    weight: Float[Array, " d"]
    stiffness: float | Array
    cubic: float | Array
    drag: float | Array

    def acceleration(self, x: Float[Array, "n d"], v: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Of every node; 0 of those that are fixed."""
        offset = x[self.senders] - x[self.receivers]
        length = jnp.sqrt(jnp.sum(offset**2, -1) + 1e-12)
        more = length - self.rest
        force = (self.stiffness * more + self.cubic * more**3) / length
        total = segment_sum(force[:, None] * offset, self.receivers, x.shape[0]) + self.weight - self.drag * v
        return jnp.where(self.fixed[:, None], 0, total)

    def energy(self, x: Float[Array, "n d"], v: Float[Array, "n d"]) -> Float[Array, ""]:
        """Of motion, springs and weight."""
        more = jnp.sqrt(jnp.sum((x[self.senders] - x[self.receivers]) ** 2, -1) + 1e-12) - self.rest
        springs = jnp.sum(self.stiffness * more**2 / 2 + self.cubic * more**4 / 4) / 2  # each is there twice
        return springs + jnp.sum(v**2) / 2 - jnp.sum(x @ self.weight)


def spring_frames(
    springs: Springs, x: Float[Array, "n d"], v: Float[Array, "n d"], num_frames: int, interval: float, substeps: int
) -> Float[Array, "t n d"]:
    """Positions every ``interval``, the first being ``x``, by ``substeps`` steps of Störmer and Verlet's rule each.

    springs: the system. v: velocities at the start. num_frames: how many positions.
    """
    dt = interval / substeps

    def one(carry: Any, _: None) -> tuple[Any, None]:
        x, v = carry
        half = v + dt / 2 * springs.acceleration(x, v)
        x = x + dt * half
        return (x, half + dt / 2 * springs.acceleration(x, half)), None

    def frame(carry: Any, _: None) -> tuple[Any, Any]:
        return jax.lax.scan(one, carry, length=substeps)[0], carry[0]

    return jax.lax.scan(frame, (x, v), length=num_frames)[1]


def many_frames(springs: Springs, x: Array, v: Array, num_frames: int, interval: float, substeps: int) -> Array:
    """`spring_frames` of many systems that differ in rest lengths [m, e] and in where they start [m, n, d].

    springs: with those lengths. x, v: positions and velocities at the start. num_frames, interval, substeps: as for
        `spring_frames`.
    """
    one = lambda rest, x, v: spring_frames(  # noqa: E731
        springs._replace(rest=rest), x, v, num_frames, interval, substeps
    )
    return jax.vmap(one)(springs.rest, x, v)


_many_frames = jax.jit(many_frames, static_argnums=(3, 5))


def _sprung(
    meshes: np.ndarray,
    cells: np.ndarray,
    kinds: np.ndarray,
    starts: np.ndarray,
    speeds: np.ndarray,
    train: int,
    frames: int,
    long: int,
    interval: float,
    substeps: int,
    **law: Any,
) -> Simulations:
    """Trajectories of springs whose rest lengths are those of the meshes."""
    senders, receivers = edges_of(cells)
    rest = np.linalg.norm(meshes[:, senders] - meshes[:, receivers], axis=-1)
    single = lambda rows: jnp.asarray(np.asarray(rows), jnp.float32)  # noqa: E731
    held = jnp.asarray(kinds != NORMAL)
    ends = jnp.asarray(senders), jnp.asarray(receivers)
    springs = Springs(*ends, single(rest), held, single(law["weight"]), law["stiffness"], law["cubic"], law["drag"])
    x, v = single(starts), single(np.where((kinds != NORMAL)[:, None], 0.0, speeds))
    pick = lambda part: springs._replace(rest=springs.rest[part])  # noqa: E731
    first, rest_ = slice(0, train), slice(train, None)
    learnt = _many_frames(pick(first), x[first], v[first], frames, interval, substeps)
    judged = _many_frames(pick(rest_), x[rest_], v[rest_], long, interval, substeps)
    tested = (pick(rest_), x[rest_], v[rest_])
    return made_of(meshes, cells, kinds, learnt, judged, order=2, spaces="both", springs=tested)


def chain(nodes: int = 16, train: int = 2, test: int = 8, frames: int = 100, long: int = 400) -> Simulations:
    """Masses on a line between two that are held, with hardening springs and no friction to speak of.

    nodes: how many masses. train, test: numbers of trajectories, of ``frames`` frames to learn from and of ``long`` to
        judge by.
    """
    generator = np.random.default_rng(2)
    cells = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], 1).astype(np.int32)
    kinds = np.where(np.isin(np.arange(nodes), [0, nodes - 1]), HANDLE, NORMAL)
    number = train + test
    meshes = np.broadcast_to(np.arange(nodes, dtype=float)[None, :, None], (number, nodes, 1))
    # Three standing waves, of which the lowest is the largest.
    waves = np.sin(np.pi * np.outer([1, 2, 3], np.arange(nodes)) / (nodes - 1))
    sizes = generator.normal(size=(2, number, 3)) * np.array([0.8, 0.4, 0.2])
    starts = meshes + (sizes[0] @ waves)[..., None]
    speeds = 0.2 * (sizes[1] @ waves)[..., None]
    law = {"weight": [0.0], "stiffness": 1.0, "cubic": 1.0, "drag": 0.001}
    return _sprung(meshes, cells, kinds, starts, speeds, train, frames, long, 0.3, 10, **law)


def cloth(side: int = 5, train: int = 12, test: int = 6, frames: int = 60, long: int = 60) -> Simulations:
    """A cloth that hangs by two corners and swings; every trajectory has a mesh, so rest lengths, of its own.

    side: nodes along an edge. train, test: numbers of trajectories, of ``frames`` frames to learn from and of ``long``
        to judge by.
    """
    generator = np.random.default_rng(3)
    cells = grid_cells(side, side)
    kinds = np.full(side**2, NORMAL)
    kinds[[0, side - 1]] = HANDLE
    number = train + test
    meshes = np.stack([stretched_grid(generator, side, 0.3, 0.6) for _ in range(number)])
    flat = np.concatenate([meshes, np.zeros((number, side**2, 1))], -1)
    # Hung in the plane of x and z, a little out of it, with a push.
    starts = flat[..., [0, 2, 1]] * np.array([1.0, 1.0, -1.0])
    wave = np.sin(np.pi * meshes * generator.uniform(0.5, 1.5, (number, 1, 2))).prod(-1)
    starts[..., 1] += 0.1 * generator.normal(size=(number, 1)) * wave * (kinds == NORMAL)
    speeds = 0.3 * generator.normal(size=(number, 1, 3)) + 0.1 * generator.normal(size=(number, 1, 1)) * wave[..., None]
    law = {"weight": [0.0, 0.0, -1.0], "stiffness": 60.0, "cubic": 0.0, "drag": 0.3}
    return _sprung(meshes, cells, kinds, starts, speeds, train, frames, long, FRAME, 8, **law)
