"""The lattice Boltzmann solver and the meshes around a cylinder against what is known exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems import meshes_flow as flow

ROWS, TAU, FORCE = 9, 0.5 + 3**0.5 / 4, 1e-4


@pytest.fixture(scope="module")
def channel():
    """Two periodic channels at once: driven by a force, from rest; with a block in it, from any populations."""
    walls = np.zeros((ROWS + 2, 4), bool)
    walls[[0, -1]] = True
    blocked = walls.copy()
    blocked[4:6, 1:3] = True
    rng = np.random.default_rng(0)
    start = np.stack([flow.W[:, None, None] * np.ones(walls.shape), rng.uniform(0.05, 0.15, (9, *walls.shape))])

    with jax.enable_x64(True):
        solid, force = jnp.asarray(np.stack([walls, blocked])), jnp.asarray([FORCE, 0.0])
        step = jax.vmap(lambda f, solid, size: flow.lattice_step(f, solid, TAU, (size, 0.0)))
        run = jax.jit(lambda f: jax.lax.fori_loop(0, 3000, lambda _, f: step(f, solid, force), f))
        end = np.asarray(run(start))
    return start, end, blocked


def test_a_driven_channel_has_poiseuilles_parabola(channel):
    _, (end, _), _ = channel
    density = end.sum(0)[1:-1]
    found = np.einsum("id,iyx->dyx", flow.C, end)[:, 1:-1] / density + np.array([FORCE / 2, 0])[:, None, None] / density
    y, viscosity = np.arange(ROWS) + 0.5, (TAU - 0.5) / 3
    wanted = FORCE / (2 * viscosity) * y * (ROWS - y)
    np.testing.assert_allclose(found[0], np.broadcast_to(wanted[:, None], (ROWS, 4)), rtol=1e-7)
    np.testing.assert_allclose(found[1], 0, atol=1e-15)


def test_what_bounces_back_is_not_lost(channel):
    start, end, blocked = channel
    fluid = ~blocked
    assert end[1][:, fluid].sum() == pytest.approx(start[1][:, fluid].sum(), rel=1e-12)
    assert np.all(end[1][:, fluid] > 0)


def test_meshes_fit_between_the_cylinder_and_the_channel():
    size, centre, radius = np.array([39.0, 19.0]), np.array([10.0, 9.0]), 2.5
    shape, cells = flow.ring_mesh(4, flow._angles(20, centre, size))
    places = flow._placed(shape, centre, radius, size)
    sides = places[cells[:, 1:]] - places[cells[:, :1]]
    areas = np.abs(np.linalg.det(sides)) / 2
    assert areas.min() > 0
    outer, inner = (places[shape[:, 1] == share] for share in (1, 0))
    area = lambda ring: abs(np.sum(ring[:, 0] * np.roll(ring[:, 1], -1) - np.roll(ring[:, 0], -1) * ring[:, 1])) / 2  # noqa: E731
    assert areas.sum() == pytest.approx(area(outer) - area(inner))  # cells cover what is between, once
    np.testing.assert_allclose(np.linalg.norm(inner - centre, axis=1), radius)
    on_border = np.min(np.concatenate([np.abs(outer), np.abs(outer - size)], 1), axis=1)
    np.testing.assert_allclose(on_border, 0, atol=1e-9)


def test_velocities_are_carried_to_the_nodes_and_held_where_they_are_known():
    made = flow.cylinder(rows=10, columns=20, rings=4, spokes=20, train=2, test=1, frames=3, every=30, settle=60)
    kinds, runs, places = np.asarray(made.kinds), np.asarray(made.train), np.asarray(made.positions)
    assert np.all(runs[:, :, kinds == 6] == 0)
    inflow = runs[:, :, kinds == 4]
    np.testing.assert_allclose(inflow, np.broadcast_to(inflow[:, :1], inflow.shape), atol=1e-6)
    np.testing.assert_allclose(inflow[..., 1], 0, atol=1e-6)
    # The parabola of the inflow, straight between places: the mean is two thirds of the middle.
    height = (10 * places[:, kinds == 4, 1] + 0.5) / 10
    sizes = inflow[:, 0, :, 0] / (6 * height * (1 - height))
    assert np.ptp(sizes, axis=1).max() < 0.05 * sizes.mean()
    assert np.all((sizes * 0.055 > 0.038) & (sizes * 0.055 < 0.071))
    assert np.abs(np.diff(runs[:, :, kinds == 0], axis=1)).max() > 1e-3  # the flow develops
    # Linear fields are carried exactly.
    y, x = np.meshgrid(np.arange(-1.0, 11), np.arange(20.0), indexing="ij")
    carried = flow._sampled(np.stack([2 * x + y, x - y])[None], 10 * places[0])[0]
    np.testing.assert_allclose(carried[:, 0], 20 * places[0, :, 0] + 10 * places[0, :, 1], atol=1e-4)
    np.testing.assert_allclose(carried[:, 1], 10 * places[0, :, 0] - 10 * places[0, :, 1], atol=1e-4)
