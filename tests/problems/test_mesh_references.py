"""Solvers that learned simulators learn from, against the same laws written out, with numbers of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems import meshes, meshes_flow
from laureate.problems import meshes_simulations as simulations


def test_a_plate_has_the_energy_of_every_uniform_strain():
    """½ ε:σ with plane stress, E = 1: stretched both ways and sheared, for other contractions than the default."""
    places, cells = meshes.stretched_grid(np.random.default_rng(0), 5, 0.2, 0.4), meshes.grid_cells(5, 5)
    for poisson in (0.0, 0.3, 0.45):
        stiffness = meshes.elastic_matrix(places, cells, poisson)
        np.testing.assert_allclose(stiffness, stiffness.T, atol=1e-12)
        for slopes in np.random.default_rng(1).normal(size=(3, 2, 2)):
            moved = (places @ slopes.T).ravel()
            xx, yy, xy = slopes[0, 0], slopes[1, 1], (slopes[0, 1] + slopes[1, 0]) / 2
            trace = xx + yy
            energy = (poisson * trace**2 + (1 - poisson) * (xx**2 + yy**2 + 2 * xy**2)) / (1 - poisson**2)
            assert moved @ stiffness @ moved == pytest.approx(energy, rel=1e-9)


def test_what_is_held_goes_straight_from_frame_to_frame():
    """Crank and Nicolson's rule for all nodes at once, held ones replaced, in every substep."""
    rng = np.random.default_rng(0)
    places, cells = meshes.stretched_grid(rng, 4, 0.2, 0.4), meshes.grid_cells(4, 4)
    held = np.isin(np.arange(16), [0, 1, 2, 7, 12])
    start, values = rng.normal(size=16), rng.normal(size=(4, 16))
    values[0, held] = start[held]
    found = simulations.transport_frames(places, cells, held, start, values, substeps=3)
    mass, dt = meshes.mass_matrix(places, cells), 0.1 / 3
    flow = 0.04 * meshes.stiffness_matrix(places, cells) + meshes.advection_matrix(places, cells, np.array([0.5, 0.15]))
    u, expected = start, [start]
    for k in range(1, 4):
        for part in range(1, 4):
            line = values[k - 1] + (values[k] - values[k - 1]) * part / 3
            matrix, right = mass + dt / 2 * flow, (mass - dt / 2 * flow) @ u
            matrix[held], right[held] = np.eye(16)[held], line[held]
            u = np.linalg.solve(matrix, right)
        expected.append(u)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_the_acceleration_of_springs_is_the_slope_of_their_energy():
    """With hardening and weight; drag and held nodes besides. The energy of motion is ½ v²."""
    senders, receivers = meshes.edges_of(np.array([[0, 1, 2], [1, 3, 2]]))
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    length = np.linalg.norm(x[senders] - x[receivers], axis=1)
    rest = np.where(senders < receivers, 0.8, 0.8) * np.ones_like(length)
    law = {"weight": np.array([0.3, -1.1]), "stiffness": 2.0, "cubic": 1.5}

    def energy(x, v):
        more = [np.linalg.norm(x[i] - x[j]) - 0.8 for i, j in zip(senders, receivers, strict=True) if i < j]
        springs = sum(m**2 + 1.5 * m**4 / 4 for m in more)
        return springs + (v**2).sum() / 2 - (x @ law["weight"]).sum()

    def made(fixed, drag):
        return simulations.Springs(
            jnp.asarray(senders), jnp.asarray(receivers), jnp.asarray(rest), jnp.asarray(fixed),
            jnp.asarray(law["weight"]), 2.0, 1.5, drag,
        )  # fmt: skip

    fixed = np.array([False, True, False, False])
    with jax.enable_x64(True):
        free, held = made(np.zeros(4, bool), 0.0), made(fixed, 0.4)
        calls = jax.jit(lambda x, v: (free.energy(x, v), free.acceleration(x, v), held.acceleration(x, v)))
        total, pull, slowed = map(np.asarray, calls(x, v))
        frames = np.asarray(jax.jit(lambda x, v: simulations.spring_frames(held, x, v, 3, 0.2, 2))(x, v))
    assert total == pytest.approx(energy(x, v), rel=1e-6)
    for at in np.ndindex(4, 2):
        h = np.zeros((4, 2))
        h[at] = 1e-5
        assert pull[at] == pytest.approx(-(energy(x + h, v) - energy(x - h, v)) / 2e-5, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(slowed, np.where(fixed[:, None], 0, pull - 0.4 * v), atol=1e-6)

    def by_hand(x, v):
        offset = x[senders] - x[receivers]
        size = np.linalg.norm(offset, axis=1, keepdims=True)
        total = np.tile(law["weight"], (4, 1)) - 0.4 * v
        np.add.at(total, receivers, (2 * (size - 0.8) + 1.5 * (size - 0.8) ** 3) * offset / size)
        return np.where(fixed[:, None], 0, total)

    np.testing.assert_allclose(frames[0], x)
    for frame in frames[1:]:
        for _ in range(2):  # Störmer and Verlet's rule
            half = v + 0.05 * by_hand(x, v)
            x = x + 0.1 * half
            v = half + 0.05 * by_hand(x, half)
        np.testing.assert_allclose(frame, x, atol=1e-6)


def test_simulations_state_what_is_held_and_move_it_as_they_say():
    """A plate at rest between two sides; a chain whose held nodes stay; trajectories of the stated shapes."""
    plate = simulations.plate(side=4, train=2, test=1, frames=5)
    places, kinds = np.asarray(plate.positions, float), np.asarray(plate.kinds)
    columns = np.arange(16) % 4
    np.testing.assert_array_equal(kinds, np.where(columns == 0, 6, np.where(columns == 3, 3, 0)))
    for mesh, run in zip(places, np.asarray(plate.train, float), strict=True):
        moved = (run - mesh).reshape(5, -1)
        left, right = np.repeat(columns == 0, 2), columns == 3
        np.testing.assert_allclose(moved[:, left], 0, atol=1e-6)
        force = moved @ meshes.elastic_matrix(mesh, meshes.grid_cells(4, 4))
        np.testing.assert_allclose(force[:, np.repeat(kinds == 0, 2)], 0, atol=1e-5)
        rim = (run - mesh)[:, right]
        np.testing.assert_allclose(rim[..., 1], np.broadcast_to(rim[:, :1, 1], rim.shape[:2]), atol=1e-6)
        fits = [np.polyfit(mesh[right, 1] - 0.5, one, 1, full=True)[1] for one in rim[..., 0]]
        assert max(float(left_over[0]) for left_over in fits) < 1e-10  # a shift and a turn
        assert np.abs(rim).max() <= 0.08 * 2 * 1.5 + 1e-6
    chain = simulations.chain(nodes=6, train=1, test=2, frames=4, long=5)
    assert (chain.train.shape, chain.test.shape, chain.order) == ((1, 4, 6, 1), (2, 5, 6, 1), 2)
    np.testing.assert_array_equal(chain.kinds, [3, 0, 0, 0, 0, 3])
    for run in (*np.asarray(chain.train), *np.asarray(chain.test)):
        np.testing.assert_allclose(run[:, [0, -1], 0], np.broadcast_to([0, 5], (len(run), 2)), atol=1e-5)
        assert np.abs(np.diff(run[:, 1:-1, 0], axis=0)).min(1).max() > 1e-4


def test_an_outflow_repeats_the_column_before_it():
    """Walls and all; the inflow has the velocity that is given and the density of the column behind it."""
    rng = np.random.default_rng(0)
    f = rng.uniform(0.05, 0.15, (9, 6, 7)).astype(np.float32)
    solid = np.zeros((6, 7), bool)
    solid[[0, -1]] = True
    inflow = np.array([0, 0.02, 0.05, 0.05, 0.02, 0], np.float32)
    step = jax.jit(lambda f: meshes_flow.lattice_step(f, jnp.asarray(solid), 0.8, (0.0, 0.0), jnp.asarray(inflow)))
    new = step(f)
    density, u = map(np.asarray, jax.jit(meshes_flow.moments)(new))
    np.testing.assert_array_equal(new[:, :, -1], new[:, :, -2])
    np.testing.assert_allclose(u[0, 1:-1, 0], inflow[1:-1], atol=1e-5)
    np.testing.assert_allclose(u[1, 1:-1, 0], 0, atol=1e-5)
    np.testing.assert_allclose(density[1:-1, 0], density[1:-1, 1], rtol=1e-5)


@pytest.mark.parametrize("rows", [4, 9])
def test_what_enters_is_poiseuilles_parabola_between_the_walls(monkeypatch, rows):
    """6 U h (1 − h) at the places' heights between walls that stand half a place outside; none in what is solid."""

    def shown(f, solid, tau, inflow):
        moving = jnp.broadcast_to(inflow[:, None], solid.shape)
        return meshes_flow.equilibrium(jnp.ones_like(moving), jnp.stack([moving, jnp.full_like(moving, 0.01)]))

    monkeypatch.setattr(meshes_flow, "lattice_step", shown)
    centre, waits = np.array([3.0, rows / 2 - 0.5]), np.array([1, 2])
    flow = jax.jit(lambda speed: meshes_flow._flow(centre, 1.2, speed, 0.8, waits, (rows, 8)))
    fields = np.asarray(flow(0.06))
    height = (np.arange(rows) + 0.5) / rows
    wanted = np.zeros((2, rows + 2, 8))
    wanted[0, 1:-1], wanted[1, 1:-1] = 0.06 * 6 * (height * (1 - height))[:, None], 0.01
    y, x = np.meshgrid(np.arange(rows), np.arange(8), indexing="ij")
    wanted[:, 1:-1][:, (x - centre[0]) ** 2 + (y - centre[1]) ** 2 < 1.2**2] = 0
    np.testing.assert_allclose(fields, np.stack([wanted, wanted]), atol=1e-6)


def test_the_reynolds_number_is_of_the_largest_inflow_and_diameter(monkeypatch):
    """Re = U D / ν with ν = (τ − ½)/3, whatever is asked; nothing is run."""
    seen = []

    def flow(centre, radius, speed, tau, waits, size):
        seen.append((float(tau), waits.tolist(), float(radius), float(speed), size))
        return jnp.zeros((len(waits), 2, size[0] + 2, size[1]))

    monkeypatch.setattr(meshes_flow, "_flow", flow)
    for rows, reynolds in ((20, 100.0), (30, 40.0)):
        with jax.disable_jit():
            meshes_flow.cylinder(rows, 40, 3, 8, 1, 1, frames=3, every=7, settle=11, reynolds=reynolds)
        tau, waits, radius, speed, size = seen[-1]
        assert 0.07 * 2 * 0.13 * rows / ((tau - 0.5) / 3) == pytest.approx(reynolds)
        assert (waits, size) == ([11, 7, 7], (rows, 40))
        assert 0.09 * rows <= radius <= 0.13 * rows
        assert 0.04 <= speed <= 0.07


def test_trajectories_are_those_of_the_solver_on_the_meshes_that_are_handed_out():
    """Run again from what is stored: the first state, the held nodes, the mesh of each."""
    made = simulations.transport(side=4, train=2, test=1, frames=4, long=5, elsewhere=1)
    assert (made.train.shape, made.test.shape) == ((2, 4, 16, 1), (1, 5, 16, 1))
    sets = [(made.positions, made.train, made.kinds, 4, None), (made.test_positions, made.test, made.kinds, 4, None)]
    for name, side in (("finer", 7), ("hole", 4)):
        one = made.others[name]
        sets.append((one.test_positions, one.test, one.kinds, side, name))
    for places, runs, kinds, side, name in sets:
        used, cells = simulations._channel(side, "hole" if name == "hole" else "square")
        kinds = np.asarray(kinds)
        rows, columns = np.divmod(used, side)
        rim = np.isin(rows, (0, side - 1)) | np.isin(np.arange(len(used)), meshes.boundary_of(cells))
        expected = np.where(rim, 6, 0)
        inner = (rows > 0) & (rows < side - 1)
        expected = np.where(inner & (columns == side - 1), 5, np.where(inner & (columns == 0), 4, expected))
        np.testing.assert_array_equal(kinds, expected)
        held = np.isin(kinds, (4, 6))
        assert np.all(np.asarray(runs)[:, :, kinds == 6] == 0)
        for mesh, run in zip(np.asarray(places, float), np.asarray(runs, float)[..., 0], strict=True):
            np.testing.assert_allclose(simulations.transport_frames(mesh, cells, held, run[0], run), run, atol=2e-5)
            # At first a bump, the same in all directions: its logarithm is a − b (x − c)² − b (y − d)².
            free = run[0][~held]
            assert len(set(np.sign(free))) == 1
            terms = np.column_stack([np.ones(len(free)), mesh[~held], (mesh[~held] ** 2).sum(1)])
            fitted = np.linalg.lstsq(terms, np.log(np.abs(free)), rcond=None)[0]
            np.testing.assert_allclose(terms @ fitted, np.log(np.abs(free)), atol=1e-3)
            assert len(free) < 5 or 0.15 <= (-2 * fitted[3]) ** -0.5 <= 0.3  # so few are fitted by any
            shape = run[:, kinds == 4] / np.sin(np.pi * mesh[kinds == 4, 1])  # one tone for all of an inflow
            np.testing.assert_allclose(shape, np.broadcast_to(shape[:, :1], shape.shape), atol=1e-4)


@pytest.mark.parametrize("name", ["chain", "cloth"])
def test_springs_that_are_handed_out_make_the_trajectories_that_are_judged(name):
    """Rest lengths are the distances in each mesh; what is held stays; a chain's masses swing on their line."""
    if name == "chain":
        made = simulations.chain(nodes=5, train=1, test=2, frames=3, long=4)
        given, weight = (1.0, 1.0, 0.001, 0.3, 10), [0.0]
    else:
        made = simulations.cloth(side=3, train=1, test=2, frames=3, long=4)
        given, weight = (60.0, 0.0, 0.3, simulations.FRAME, 8), [0.0, 0.0, -1.0]
    springs, x, v = made.springs
    np.testing.assert_allclose(springs.weight, weight)
    assert (float(springs.stiffness), float(springs.cubic), float(springs.drag)) == pytest.approx(given[:3])
    places = np.asarray(made.test_positions, float)
    ends = np.asarray(made.senders), np.asarray(made.receivers)
    distances = np.linalg.norm(places[:, ends[0]] - places[:, ends[1]], axis=-1)
    np.testing.assert_allclose(springs.rest, distances, rtol=1e-5)
    held = np.asarray(made.kinds) != 0
    np.testing.assert_array_equal(springs.fixed, held)
    assert held.sum() == 2
    if name == "chain":  # three standing waves, at first and in their speeds
        waves = np.sin(np.pi * np.outer(np.arange(5), [1, 2, 3]) / 4)
        for start in (np.asarray(x)[..., 0] - np.arange(5), np.asarray(v)[..., 0]):
            left = start.T - waves @ np.linalg.lstsq(waves, start.T, rcond=None)[0]
            np.testing.assert_allclose(left, 0, atol=1e-5)
            assert np.abs(start).max() > 0.01
    assert np.all(np.asarray(v)[:, held] == 0)
    again = jax.jit(lambda s, x, v: simulations.many_frames(s, x, v, 4, *given[3:]))(springs, x, v)
    np.testing.assert_allclose(again, made.test, atol=1e-5)
    for runs in (np.asarray(made.train), np.asarray(made.test)):
        still = runs[:, :, held]
        np.testing.assert_allclose(still, np.broadcast_to(still[:, :1], still.shape), atol=1e-6)
    if name == "cloth":  # hung by two corners of the mesh, which lies in the plane of x and −z
        np.testing.assert_allclose(np.asarray(x)[:, held][..., [0, 2]], places[:, held] * [1, -1], atol=1e-6)


def test_grids_are_stretched_along_their_lines_and_jittered_inside():
    """Jitter is a share of the smallest spacing, of inner nodes alone; lines stay in order, their ends at 0 and 1."""
    for seed, (jitter, stretch) in enumerate([(0.0, 0.0), (0.25, 0.0), (0.0, 0.8), (0.3, 0.6)]):
        places = meshes.stretched_grid(np.random.default_rng(seed), 6, jitter, stretch)
        smooth = meshes.stretched_grid(np.random.default_rng(seed), 6, 0.0, stretch).reshape(6, 6, 2)
        np.testing.assert_allclose(smooth[..., 0], np.broadcast_to(smooth[:1, :, 0], (6, 6)))
        np.testing.assert_allclose(smooth[..., 1], np.broadcast_to(smooth[:, :1, 1], (6, 6)))
        lines = np.stack([smooth[0, :, 0], smooth[:, 0, 1]])
        np.testing.assert_allclose(lines[:, [0, -1]], [[0, 1], [0, 1]], atol=1e-12)
        # A slope in 1 ± a, over their mean, which is in 1 ± a as well.
        assert np.diff(lines).min() >= 0.2 * (1 - stretch) / (1 + stretch) - 1e-12
        if not stretch:
            np.testing.assert_allclose(lines, np.broadcast_to(np.linspace(0, 1, 6), (2, 6)))
        else:
            assert np.ptp(np.diff(lines)) > 0.01
        off = places.reshape(6, 6, 2) - smooth
        assert not off[[0, -1]].any()
        assert not off[:, [0, -1]].any()
        assert np.abs(off).max() <= jitter * np.diff(lines).min()
        assert np.abs(off).max() >= 0.7 * jitter * np.diff(lines).min()
    cells = meshes.grid_cells(4, 5)
    places = np.stack(np.divmod(np.arange(20), 5), 1)[:, ::-1].astype(float)
    sides = places[cells[:, 1:]] - places[cells[:, :1]]
    np.testing.assert_allclose(np.linalg.det(sides) / 2, 0.5)  # all of them turn alike
    rim = [k for k in range(20) if k % 5 in (0, 4) or k // 5 in (0, 3)]
    np.testing.assert_array_equal(meshes.boundary_of(cells), rim)
    senders, receivers = meshes.edges_of(cells)
    edges = set(zip(senders.tolist(), receivers.tolist(), strict=True))
    assert len(edges) == len(senders) == 2 * (4 * 4 + 3 * 5 + 3 * 4)
    assert {(b, a) for a, b in edges} == edges
    diagonals = {(min(e), max(e) - min(e)) for e in edges if abs(e[0] - e[1]) in (4, 6)}
    assert diagonals == {(5 * i + j + (i + j) % 2, 4 if (i + j) % 2 else 6) for i in range(3) for j in range(4)}


def test_a_hole_is_what_lies_within_the_middle_third():
    """Squares of the grid by hand; nodes that no cell has left are gone, and the others numbered in order."""
    for side, gone in ((4, {(1, 1)}), (7, {(2, 2), (2, 3), (3, 2), (3, 3)})):
        used, cells = simulations._channel(side, "hole")
        left = {(i, j) for i, j in np.ndindex(side - 1, side - 1)} - gone
        assert len(cells) == 2 * len(left)
        places = np.stack(np.divmod(used[cells], side), axis=-1)
        np.testing.assert_allclose(np.abs(np.linalg.det(places[:, 1:] - places[:, :1])), 1)
        assert {tuple(middle) for middle in np.floor(places.mean(1)).astype(int)} == left
        corners = {(i + a, j + b) for i, j in left for a in (0, 1) for b in (0, 1)}
        assert used.tolist() == sorted(i * side + j for i, j in corners)
