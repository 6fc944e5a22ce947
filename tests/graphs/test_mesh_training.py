"""Rollouts, training and bad input of mesh simulators; files and reference solvers."""

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import meshes_drawn
import numpy as np
import optax
import pytest

from laureate import graphs as g
from laureate._core import Status
from laureate.layers import pad_graph
from laureate.problems import meshes
from laureate.problems.meshes_simulations import Springs, spring_frames, transport_frames
from laureate.testing import KeyRecorder

POSITIONS = np.array([[0.0, 0], [1, 0], [0, 1], [1.1, 1], [0.5, 1.7]])
CELLS = np.array([[0, 1, 2], [2, 1, 3], [2, 3, 4]])
KINDS = np.array([3, 0, 0, 0, 0])
GRAPH = g.mesh_graph(POSITIONS, CELLS, kinds=KINDS)
RUNS = (0.9 ** np.arange(12.0))[None, :, None, None] * np.array([0.0, 1, 2, 3, 4])[:, None] * np.ones((3, 1, 1, 1))
SMALL = {"latent": 6, "num_steps": 1, "num_hidden_layers": 1}


OTHER = g.mesh_graph(POSITIONS, CELLS, kinds=[6, 0, 0, 5, 3])


def simulator_of(**settings):
    return meshes_drawn.simulator(g.FirstOrder(), GRAPH, 1, **SMALL | settings)


def taught_two_kinds():
    """Its normaliser has seen nodes of kind 0 and 3 alone."""
    shares = np.float32([0.2, 0.8, 0, 0, 0.2, 0, 0, 0, 0, 0])  # the state, then nine kinds
    return eqx.tree_at(lambda s: s.statistics.node.statistics.mean, simulator_of(ready=True), shares)


class Told(NamedTuple):
    status: jax.Array


class Found(NamedTuple):
    status: jax.Array
    world_edges: jax.Array


class Recorder(eqx.Module):
    """A trainer that learns nothing and tells what it was given."""

    noise: g.TrainingNoise = g.TrainingNoise()

    def init(self, simulator):
        return g.TrainerState((jnp.zeros((4, 2), jnp.uint32), jnp.zeros((), int)), None)

    def gather(self, key, graph, windows, state, nodes):
        jax.random.bits(key)
        keys, number = state.simulator
        return g.TrainerState((keys.at[number].set(jax.random.key_data(key)), number + 1), None)

    def step(self, key, graph, windows, state, nodes):
        jax.random.bits(key)
        return jnp.zeros(()), state, (jax.random.key_data(key), windows[:, 0, 0, 0], nodes.position[:, 0, 0])


def test_every_batch_has_a_key_of_its_own_and_every_window_its_own_mesh():
    runs = np.broadcast_to(np.arange(3.0)[:, None, None, None], (3, 4, 5, 1))  # the state is the trajectory's number
    places = (runs[:, 0, :, :1] + np.zeros((3, 5, 2))).astype("f4")
    nodes = g.MeshNodes(places, np.zeros((3, 5), "i4"), np.zeros((3, 5, 0), "f4"))
    given: Any = {"num_steps": 5, "batch": 6, "num_warmup": 4, "nodes": nodes, "trainer": Recorder()}
    with KeyRecorder() as recorder:  # windows are drawn by other keys than they are disturbed by
        record: Any = g.fit_simulator(jax.random.key(0), simulator_of(), GRAPH, runs.astype("f4"), **given)
        assert not recorder.reused()
    (early, number), told = record
    keys = np.concatenate([early, told[0]])
    assert int(number) == 4
    assert len({tuple(key) for key in keys.tolist()}) == 9
    np.testing.assert_array_equal(told[1], told[2])
    assert set(np.asarray(told[1]).ravel().tolist()) == {0.0, 1.0, 2.0}


# --- rollouts ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_training_learns_and_the_rollout_follows():
    trainer = g.MeshTrainer(optax.adam(0.02), g.TrainingNoise(0.01, gamma=1.0))
    simulator, info = g.fit_simulator(
        jax.random.key(1), simulator_of(), GRAPH, jnp.asarray(RUNS, jnp.float32), trainer=trainer, num_steps=200
    )
    assert float(info.loss[-20:].mean()) < 0.1 * float(info.loss[:5].mean())
    truth = jnp.asarray(RUNS[0], jnp.float32)
    states, how = g.rollout(simulator, GRAPH, truth[:1], 11)
    error = g.relative_errors(states, truth[1:], GRAPH)[1]
    assert float(error) < 0.3
    assert (int(how.failed_at), int(how.status), int(how.cost)) == (11, 0, 11)
    np.testing.assert_array_equal(states[:, 0], 0)  # the held node


@pytest.fixture(scope="module")
def rolled():
    """Rollouts of steps that are known, by one program: a heat equation's matrix, and some that break."""
    heat = (np.eye(5) - 0.1 * meshes.stiffness_matrix(POSITIONS, CELLS)).astype("f4")
    fine = Told(np.int32(Status.OK))
    found = lambda frames: Found(fine.status, (8 * frames[-1, 0, 0]).astype(int))  # noqa: E731
    given = np.float32([1.0, np.nan, 3.0])[:, None, None] * np.ones((1, 2, 1), "f4")  # pyright: ignore[reportIndexIssue]

    @jax.jit
    def all_of(start, ones):
        return {
            "heat": g.rollout_with(lambda frames, _: ((heat @ frames[-1])[None], fine), start, 20),
            "double": g.rollout_with(lambda frames, _: (2 * frames, fine), ones, 10, limit=10.0),
            "follow": g.rollout_with(lambda _, after: (after[None], fine), ones, 3, given),
            "shrink": g.rollout_with(lambda frames, _: (frames / 2, found(frames)), ones, 3),
            "nan": g.rollout_with(lambda frames, _: (frames * jnp.nan, fine), ones, 3),
            "inf": g.rollout_with(lambda frames, _: (frames * jnp.inf, fine), ones, 3),
            "told": g.rollout_with(lambda frames, _: (frames + 1, Told(frames[-1, 0, 0] >= 3)), ones, 5),
        }

    start = np.arange(5.0, dtype="f4")[None, :, None]
    return jax.tree.map(np.asarray, (all_of(start, np.ones((1, 2, 1), "f4")), heat))


def test_a_rollout_of_the_exact_map_is_the_solver(rolled):
    """Nothing of the loop adds an error."""
    found, matrix = rolled
    wanted = [np.linalg.matrix_power(matrix.astype(float), k + 1) @ np.arange(5.0) for k in range(20)]
    np.testing.assert_allclose(found["heat"][0][..., 0], wanted, rtol=1e-5, atol=1e-6)


def test_what_diverges_is_told_and_the_last_good_state_kept(rolled):
    found, _ = rolled
    states, how = found["double"]
    assert (how.failed_at, how.status, how.cost) == (3, Status.DIVERGED, 10)
    np.testing.assert_array_equal(states[:, 0, 0], [2, 4, 8, 8, 8, 8, 8, 8, 8, 8])
    states, how = found["follow"]
    assert how.failed_at == 1
    np.testing.assert_array_equal(states[:, 0, 0], 1)  # what has failed does not come back
    assert found["shrink"][1].world_edges == 8  # the most in any step
    for name in ("nan", "inf"):
        states, how = found[name]
        assert how.failed_at == 0
        assert np.isfinite(states).all()
    states, how = found["told"]  # finite, but its step says that it failed
    assert (how.failed_at, how.status) == (2, Status.DIVERGED)
    np.testing.assert_array_equal(states[:, 0, 0], [2, 3, 3, 3, 3])


def test_prescribed_states_reach_held_nodes_and_padding_changes_nothing():
    simulator, padded = simulator_of(ready=True), pad_graph(GRAPH, 7, 20)
    start = RUNS[0, :1].astype("f4")
    given = np.broadcast_to(np.arange(4.0, dtype="f4")[:, None, None], (4, 5, 1))

    @jax.jit
    def both(x, after):
        wide = lambda x: jnp.pad(x, ((0, 0), (0, 2), (0, 0)), constant_values=3.0)  # noqa: E731
        roll = lambda graph, x, after: g.rollout(simulator, graph, x, 4, after)[0]  # noqa: E731
        return roll(GRAPH, x, after), roll(padded, wide(x), wide(after))

    states, beside = both(start, given)
    np.testing.assert_array_equal(states[:, 0, 0], [0, 1, 2, 3])
    assert np.abs(np.diff(states[:, 1:, 0], axis=0)).min() > 1e-4  # the others are predicted
    np.testing.assert_allclose(beside[:, :5], states, rtol=1e-5, atol=1e-6)


def test_a_relative_error_of_one_is_that_of_the_mean_over_time():
    truth = (np.random.default_rng(0).normal(size=(30, 5, 2)) + np.arange(5.0)[:, None]).astype("f4")
    spoiled = np.broadcast_to(truth.mean(0), truth.shape).copy()
    spoiled[:, 0] += 100.0  # a held node counts nothing
    by_step, whole = jax.jit(lambda x, truth: g.relative_errors(x, truth, GRAPH))(spoiled, truth)
    assert float(whole) == pytest.approx(1, abs=1e-5)
    assert float(np.sqrt(np.mean(np.asarray(by_step) ** 2))) == pytest.approx(1, abs=1e-5)


def test_the_loss_is_over_free_nodes_and_normalised_targets():
    trainer = g.MeshTrainer(optax.sgd(0.0), g.TrainingNoise())
    windows = np.random.default_rng(1).normal(size=(3, 2, 5, 1)).astype("f4")
    begin = trainer.init(simulator_of(recompute=True))

    @jax.jit
    def stepped(windows):
        loss, state, _ = trainer.step(jax.random.key(0), GRAPH, windows, begin)
        # With a rate of 0 the network is as it was, so that its gradient need not be compiled.
        now = eqx.tree_at(lambda s: s.network, state.simulator, begin.simulator.network)
        answer = jax.vmap(lambda frames: now.normalised(GRAPH, now.features(GRAPH, frames)))(windows[:, :1])
        gathered = lambda windows: trainer.gather(jax.random.key(0), GRAPH, windows, begin).simulator.statistics  # noqa: E731
        slope = jax.grad(lambda windows: jnp.sum(gathered(windows).target.statistics.mean))(windows)
        return loss, now.statistics.target.statistics.mean, answer, slope

    loss, mean, answer, slope = map(np.asarray, stepped(windows))
    assert not slope.any(), "statistics are numbers, and nobody learns through them"
    changes = (windows[:, 1] - windows[:, 0])[:, 1:]
    np.testing.assert_allclose(mean, changes.mean((0, 1)), rtol=1e-4, atol=1e-6)
    wanted = (changes - changes.mean()) / changes.std()
    assert float(loss) == pytest.approx(((answer[:, 1:] - wanted) ** 2).sum(-1).mean(), rel=1e-3)


def test_every_window_may_have_kinds_of_its_own():
    """Which nodes are predicted, disturbed and counted is told by the window's own mesh, not by the graph's.

    Two nodes and six edges of padding count nowhere, nor does the room for edges of contact that is not used.
    """
    kinds, graph, room = np.array([[3, 0, 0, 0, 0], [0, 0, 6, 6, 0]]), pad_graph(GRAPH, 7, 20), 30
    places = np.stack([graph.nodes.position] * 2)
    nodes = g.MeshNodes(places, np.pad(kinds, ((0, 0), (0, 2))), np.zeros((2, 7, 0), "f4"))
    own = np.random.default_rng(1).normal(size=(2, 2, 5, 1)).astype("f4")
    windows = np.concatenate([own, own[:, :, 4:], own[:, :, 4:]], 2)  # padding lies where a node does
    simulator = simulator_of(max_world_edges=room, world_radius=0.8)

    @eqx.filter_jit
    def seen(trainer, windows):
        begin = g.TrainerState(simulator, None)
        return trainer.gather(jax.random.key(0), graph, windows, begin, nodes).simulator.statistics

    free = kinds == 0
    changes = (own[:, 1] - own[:, 0])[free]
    quiet = seen(g.MeshTrainer(None, g.TrainingNoise(np.float32(0), np.float32(1))), windows)
    np.testing.assert_allclose(quiet.target.statistics.mean, changes.mean(0), rtol=1e-4, atol=1e-6)
    assert int(quiet.target.statistics.count) == free.sum()
    assert int(quiet.node.statistics.count) == 10
    s, r = (np.asarray(ends)[np.asarray(GRAPH.edge_mask)] for ends in (GRAPH.senders, GRAPH.receivers))
    lengths = np.linalg.norm(POSITIONS[s] - POSITIONS[r], axis=1)
    assert int(quiet.edge.statistics.count) == 2 * len(lengths)
    np.testing.assert_allclose(quiet.edge.statistics.mean[-1], lengths.mean(), rtol=1e-4)
    apart = np.abs(own[:, 0] - own[:, 0, :, 0][:, None])
    apart[:, s, r] = np.inf
    close = apart[apart + np.where(np.eye(5), np.inf, 0) < 0.8]
    assert 0 < len(close) < room
    assert int(quiet.world.statistics.count) == len(close)
    np.testing.assert_allclose(quiet.world.statistics.mean[-1], close.mean(), rtol=1e-4)
    # A state of 0 with noise: only that of free nodes is other than 0, so the mean square is their share.
    noisy = seen(g.MeshTrainer(None, g.TrainingNoise(np.float32(1e3), np.float32(1))), 0 * windows)
    both = noisy.node.statistics.mean[0], noisy.target.statistics.mean[0]
    assert float(both[0]) * 10 == pytest.approx(-float(both[1]) * free.sum(), rel=1e-4)
    # Every window has noise of its own.
    keys = jax.random.split(jax.random.key(0), 2)
    noise = np.stack([1e3 * np.asarray(jax.random.normal(key, (7, 1)))[:5, 0] for key in keys])
    assert float(both[0]) * 10 == pytest.approx(noise[free].sum(), rel=1e-3)


def test_windows_lie_within_a_trajectory_and_reach_both_ends():
    runs = np.arange(4 * 10.0).reshape(4, 10, 1, 1).astype("f4")
    windows, which = jax.jit(lambda key: g.windows_of(key, jnp.asarray(runs), 3, 400))(jax.random.key(0))
    rows = np.asarray(windows)[:, :, 0, 0]
    np.testing.assert_array_equal(np.diff(rows, axis=1), 1)
    np.testing.assert_array_equal(rows[:, 0] // 10, np.asarray(which))
    assert set(rows[:, 0] % 10) == set(range(8))


# --- reference solvers ------------------------------------------------------------------------------------------------


def test_finite_elements_hold_what_is_known_of_them():
    rng = np.random.default_rng(0)
    places, cells = meshes.stretched_grid(rng, 6, 0.2, 0.5), meshes.grid_cells(6, 6)
    stiffness, mass = meshes.stiffness_matrix(places, cells), meshes.mass_matrix(places, cells)
    np.testing.assert_allclose(stiffness.sum(1), 0, atol=1e-12)
    assert mass.sum() == pytest.approx(1)
    inner = np.setdiff1d(np.arange(36), meshes.boundary_of(cells))
    assert len(inner) == 16
    linear = 3 * places[:, 0] - places[:, 1] + 2
    np.testing.assert_allclose((stiffness @ linear)[inner], 0, atol=1e-12)
    wind = np.array([0.5, 0.2])
    advection = meshes.advection_matrix(places, cells, wind)
    np.testing.assert_allclose(advection @ linear, (3 * 0.5 - 0.2) * mass.sum(1), atol=1e-12)
    elastic = meshes.elastic_matrix(places, cells)
    rigid = np.stack([1 - places[:, 1], 2 + places[:, 0]], 1).ravel()  # a shift and a small turn
    np.testing.assert_allclose(elastic @ rigid, 0, atol=1e-12)
    stretch = np.stack([places[:, 0], np.zeros(36)], 1).ravel()  # ε_xx = 1: energy ½ E / (1 − ν²)
    assert stretch @ elastic @ stretch == pytest.approx(1 / (1 - 0.3**2))


def test_an_eigenmode_of_heat_decays_by_crank_and_nicolsons_factor(monkeypatch):
    """K v = λ M v: each of the four substeps multiplies by (1 − κλ dt/2) / (1 + κλ dt/2); λ is 2π² up to O(h²)."""
    from laureate.problems import meshes_simulations as simulations

    monkeypatch.setattr(simulations, "WIND", np.zeros(2))
    excess = []
    for side in (8, 15):  # half the spacing
        line = np.linspace(0, 1, side)
        places = np.stack([a.ravel() for a in np.meshgrid(line, line)], 1)
        cells = meshes.grid_cells(side, side)
        held = np.isin(np.arange(side**2), meshes.boundary_of(cells))
        inner = np.ix_(~held, ~held)
        stiffness, mass = meshes.stiffness_matrix(places, cells)[inner], meshes.mass_matrix(places, cells)[inner]
        values, vectors = map(np.real, np.linalg.eig(np.linalg.solve(mass, stiffness)))
        lowest = int(np.argmin(values))
        value, start = values[lowest], np.zeros(side**2)
        start[~held] = vectors[:, lowest]
        found = transport_frames(places, cells, held, start, np.zeros((4, side**2)))
        half = simulations.DIFFUSION * value * simulations.INTERVAL / 8
        factor = ((1 - half) / (1 + half)) ** 4
        np.testing.assert_allclose(found, factor ** np.arange(4)[:, None] * start, atol=1e-10)
        excess.append(value / (2 * np.pi**2) - 1)
    assert excess[1] > 0  # finite elements are too stiff
    assert excess[0] / excess[1] == pytest.approx(4, rel=0.1)


def test_springs_keep_their_energy_and_feel_no_rigid_motion():
    ends = np.array([[0, 1], [1, 0], [1, 2], [2, 1]], np.int32)
    still = np.zeros(3, bool), np.zeros(2, np.float32)
    springs = Springs(ends[:, 0], ends[:, 1], np.ones(4, np.float32), *still, 3.0, 1.0, 0.0)
    x = np.array([[0.0, 0], [1, 0], [1, 1]], np.float32)
    v = np.array([[0.3, 0], [0, -0.2], [0.1, 0.2]], np.float32)
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]], np.float32)

    @jax.jit
    def found(x, v):
        frames = spring_frames(springs, x, v, 201, 0.05, 10)
        speed = (frames[2:] - frames[:-2]) / 0.1
        return springs.acceleration(x @ turn + 2.0, 0 * x), jax.vmap(springs.energy)(frames[1:-1], speed)

    rigid, energies = found(x, v)
    np.testing.assert_allclose(rigid, 0, atol=1e-6)
    np.testing.assert_allclose(energies, np.broadcast_to(energies[0], energies.shape), rtol=0.02)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": [[0, 1, 7]]}, r"cells must be node numbers in 0 to 4; got \[7\]"),
        ({"cells": [[0, 1, -1]]}, r"cells must be node numbers in 0 to 4; got \[-1\]"),
        ({"cells": [[0.0, 1, 2]]}, r"cells must be integers"),
        ({"cells": [[0, 1, 2, 3, 4]]}, r"split into triangles"),
        ({"cells": [[0, 1, 3, 2]]}, r"k <= 3; got \(1, 4\). Quadrilaterals are to be split into triangles"),
        ({"cells": CELLS[:2]}, r"every node is in one; got \[4\]"),
        ({"cells": [*CELLS.tolist(), [0, 1, 1]]}, r"cells must be of positive volume; got \[3\]"),
        (
            {"positions": np.where(np.arange(5)[:, None] == 2, np.nan, POSITIONS)},
            r"positions must be finite; got \[2\]",
        ),
        ({"positions": POSITIONS[[0, 1, 2, 3, 0]]}, r"positions must be distinct; got \[0\]"),
        ({"positions": POSITIONS[:, 0]}, r"positions must be numbers \[n, d\]"),
        ({"kinds": [0, 0, 0, 0, 9]}, r"kinds must be 5 integers in 0 to 8"),
        ({"kinds": [0.0, 0, 0, 0, 1]}, r"kinds must be 5 integers"),
        ({"extra": np.ones(5)}, r"extra must be finite numbers \[5, k\]"),
    ],
)
def test_a_bad_mesh_is_refused(change, message):
    given = {"positions": POSITIONS, "cells": CELLS, "kinds": KINDS} | change
    with pytest.raises(ValueError, match=message):
        g.mesh_graph(**given)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_cell_has_no_volume_where_only_rounding_gives_it_one(kind):
    """Corners on a line or in a plane, turned, moved and of any size: none passes, and thin cells pass as they are."""
    rng = np.random.default_rng(0)
    for dim, corners in ((2, 3), (3, 3), (3, 4)):
        for size in (1e-3, 1.0, 1e3):
            sides = rng.normal(size=(100, 1, dim, corners - 2)) @ rng.normal(size=(100, corners, corners - 2, 1))
            for positions in (size * (sides[..., 0] + rng.normal(size=(100, 1, dim)))).astype(kind):
                with pytest.raises(ValueError, match=r"cells must be of positive volume; got \[0\]"):
                    g.mesh_graph(positions, [range(corners)], kinds=[0] * corners)
            thin = np.eye(corners, dim, -1) * [size] * [*[1] * (corners - 2), 1e-5, 1][:dim]
            assert g.mesh_graph(thin.astype(kind), [range(corners)], kinds=[0] * corners).num_nodes == corners


def test_a_mesh_of_which_nothing_is_held_is_warned_of():
    with pytest.warns(UserWarning, match="no node is held fixed"):
        g.mesh_graph(POSITIONS, CELLS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: g.TrainingNoise(-1.0), r"TrainingNoise.sigma must be >= 0; got -1.0"),
        (lambda: g.TrainingNoise(0.1, gamma=1.5), r"TrainingNoise.gamma must be in \[0, 1\]; got 1.5"),
        (lambda: simulator_of(num_steps=0), r"MeshGraphNet.num_steps must be an integer >= 1; got 0"),
        (lambda: simulator_of(aggregate="max"), r"aggregate must be 'sum' or 'mean'; got 'max'"),
        (lambda: simulator_of(spaces="moon"), r"spaces must be 'mesh', 'world' or 'both'; got 'moon'"),
        (lambda: simulator_of(max_world_edges=4), r"world_radius must be > 0 where max_world_edges > 0"),
        (
            lambda: replace(simulator_of(), max_world_edges=8),
            r"MeshSimulator.world_radius must be > 0 where max_world_edges > 0; got 0.0",
        ),
        (lambda: replace(simulator_of(), max_world_edges=-1), r"MeshSimulator.max_world_edges must be >= 0; got -1"),
        (lambda: g.radius_edges(np.zeros((3, 1)), -1.0, 4), r"radius_edges.radius must be > 0; got -1.0"),
        (lambda: g.barycentric(POSITIONS, CELLS, np.zeros((2, 3))), r"places must be \[m, 2\]"),
        (lambda: g.rollout(simulator_of(), GRAPH, np.ones((1, 5, 1)), 3), r"simulator must be trained"),
        (lambda: g.rollout(simulator_of(), GRAPH, np.ones((2, 5, 1)), 3), r"frames must be \[1, 5, d\]"),
        (lambda: g.rollout(simulator_of(scripted=True), GRAPH, np.ones((1, 5, 1)), 3), r"got \['HANDLE'\]"),
        (
            lambda: g.rollout(simulator_of(), GRAPH, np.ones((1, 5, 1)), 3, np.ones((2, 5, 1))),
            r"prescribed must be \[3, 5, 1\]",
        ),
        (
            lambda: g.rollout(taught_two_kinds(), OTHER, np.ones((1, 5, 1)), 3),
            r"kinds of nodes that were trained on; got \['OUTFLOW', 'WALL'\]",
        ),
        (lambda: pad_graph(GRAPH, 8, 4), r"num_edges must be >= 14; got 4"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (RUNS[:, :1], r"with t >= 2; got \(3, 1, 5, 1\)"),
        (RUNS[:, :, :4], r"trajectories must be \[m, t, 5, d\]"),
        (np.where(np.arange(12)[:, None, None] == 7, np.nan, RUNS), r"finite; got \[\[0, 7\], \[1, 7\], \[2, 7\]\]"),
    ],
)
def test_bad_trajectories_are_refused(runs, message):
    with pytest.raises(ValueError, match=message):
        g.fit_simulator(
            jax.random.key(0), simulator_of(), GRAPH, runs, trainer=g.MeshTrainer(optax.sgd(1.0)), num_steps=1
        )


def test_noise_that_hides_the_target_and_units_that_differ_are_warned_of(monkeypatch):
    from laureate.graphs import mesh_training

    monkeypatch.setattr(mesh_training, "_fit", lambda *given: given)
    fit = lambda runs, noise: g.fit_simulator(  # noqa: E731
        jax.random.key(0), simulator_of(), GRAPH, runs, trainer=g.MeshTrainer(optax.sgd(1.0), noise), num_steps=1
    )
    with pytest.warns(UserWarning, match=r"noise of 5 is larger than the deviation"):
        fit(RUNS, g.TrainingNoise(5.0))
    with pytest.warns(UserWarning, match=r"differ in size by 1e\+08. Are the units the same"):
        fit(np.concatenate([RUNS, 1e8 * RUNS], -1), g.TrainingNoise())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(np.concatenate([RUNS, 1e5 * RUNS], -1), g.TrainingNoise())


def test_a_mesh_file_is_read(tmp_path):
    meshio = pytest.importorskip("meshio")
    flat = np.concatenate([POSITIONS, np.zeros((5, 1))], 1)
    extra = np.concatenate([flat, [[9.0, 9, 0]]])  # a node that no cell uses
    meshio.write_points_cells(tmp_path / "mesh.vtk", extra, [("line", CELLS[:, :2]), ("triangle", CELLS)])
    positions, cells = g.read_mesh(tmp_path / "mesh.vtk")
    np.testing.assert_allclose(positions, POSITIONS)
    np.testing.assert_array_equal(cells, CELLS)
    meshio.write_points_cells(tmp_path / "lines.vtk", flat, [("line", CELLS[:, :2])])
    with pytest.raises(ValueError, match=r"triangles or tetrahedra; got \['line'\]"):
        g.read_mesh(tmp_path / "lines.vtk")


@pytest.mark.slow
def test_without_meshio_one_is_told_what_to_install(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(ImportError, match=r"pip install 'laureate\[meshes\]'"):
        g.read_mesh(tmp_path / "mesh.vtk")
