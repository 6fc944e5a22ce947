"""Meshes, features, noise and integrators against what is known exactly."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import meshes_drawn
import numpy as np
import pytest

from laureate import graphs as g
from laureate.graphs.mesh_graph_net import Perceptron
from laureate.layers import batch_graphs, pad_graph
from laureate.testing import KeyRecorder

POSITIONS = np.array([[0.0, 0], [1, 0], [0, 1], [1.1, 1], [0.5, 1.7]])
CELLS = [[0, 1, 2], [2, 1, 3], [2, 3, 4]]
GRAPH = g.mesh_graph(POSITIONS, CELLS, kinds=[3, 0, 0, 0, 0])
RNG = np.random.default_rng(0)
FRAMES = (POSITIONS + 0.1 * RNG.normal(size=(2, 5, 2))).astype("f4")


def simulator_of(integrator=None, graph=GRAPH, size=2, **settings):
    settings = {"latent": 6, "num_steps": 2, "num_hidden_layers": 1, "spaces": "both"} | settings
    return meshes_drawn.simulator(integrator or g.SecondOrder(), graph, size, **settings)


# --- meshes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [CELLS, [[0, 1, 2, 3], [1, 2, 3, 4]], [[0, 1], [1, 2]]])
def test_edges_are_those_of_the_cells_each_way_once(cells):
    senders, receivers = g.edges_from_cells(cells)
    wanted = {pair for cell in cells for pair in itertools.permutations(cell, 2)}
    found = list(zip(senders.tolist(), receivers.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_barycentric_weights_sum_to_one_and_give_linear_functions():
    places = np.array([[0.3, 0.3], [0.9, 0.8], [0.5, 1.2], [0.0, 0.0]])
    nodes, weights = g.barycentric(POSITIONS, CELLS, places)
    np.testing.assert_allclose(weights.sum(1), 1)
    assert weights.min() > -1e-12  # all are within the mesh
    linear = lambda x: 2 * x[..., 0] - 3 * x[..., 1] + 0.5  # noqa: E731
    np.testing.assert_allclose((weights * linear(POSITIONS)[nodes]).sum(1), linear(places))


def test_radius_edges_are_those_of_all_pairs_without_the_meshs():
    x = RNG.uniform(size=(12, 2))
    padded = pad_graph(g.mesh_graph(x[:5], CELLS, kinds=[0] * 5), 12, 30)
    find = jax.jit(lambda x, graph: g.radius_edges(x, 0.4, 100, graph))
    edges = find(x, padded)
    mesh = set(zip(*g.edges_from_cells(CELLS), strict=True))
    wanted = {
        (i, j) for i, j in itertools.permutations(range(5), 2) if np.linalg.norm(x[i] - x[j]) < 0.4
    } - mesh  # padding has no edges
    real = np.asarray(edges.mask)
    found = list(zip(np.asarray(edges.senders)[real].tolist(), np.asarray(edges.receivers)[real].tolist(), strict=True))
    assert set(found) == wanted
    assert len(found) == len(wanted) == int(edges.found)
    assert not edges.overflow
    assert g.check_room(edges) is edges


def test_more_world_edges_than_fit_are_told(contact):
    edges = jax.jit(lambda x: g.radius_edges(x, 1.0, 5))(np.zeros((4, 1)))
    assert bool(edges.overflow)
    assert int(edges.found) == 12
    with pytest.raises(ValueError, match=r"radius_edges.max_edges must be >= 12; got 5"):
        g.check_room(edges)
    _, info, _ = contact(GRAPH, FRAMES)
    assert (int(info.status), int(info.world_edges)) == (0, 2)
    _, info, _ = contact(GRAPH, 0.1 * FRAMES)  # all are close
    assert (int(info.status), int(info.world_edges)) == (1, 20 - GRAPH.num_edges)


def test_of_several_graphs_each_is_told_whether_its_edges_fit():
    found, mask = np.array([3, 4, 5]), np.ones((3, 4), bool)
    assert g.WorldEdges(mask, mask, mask, found).overflow.tolist() == [False, False, True]


def test_one_number_that_is_not_finite_is_told_though_held_nodes_keep_theirs(contact):
    for wrong in (np.nan, np.inf):
        lost = FRAMES.copy()
        lost[1, 4, 1] = wrong
        (_, new), info, _ = contact(GRAPH, lost)
        assert np.isfinite(new[0]).all()
        assert int(info.status) == 1


# --- the network ------------------------------------------------------------------------------------------------------


def perceptron(p, row):
    """One row through layers of NumPy arrays."""
    for k, (weight, bias) in enumerate(zip(p.weights, p.biases, strict=True)):
        row = (np.maximum(row, 0) if k else row) @ weight + bias
    if p.norm is None:
        return row
    scale, offset = p.norm
    return (row - row.mean()) / np.sqrt(row.var() + 1e-5) * scale + offset


def reference(network, graph, nodes, edges, world=(), world_features=()):
    """The equations of the paper in NumPy, node by node and edge by edge; world: pairs of sender and receiver."""
    numpy = lambda tree: jax.tree.map(np.asarray, tree)  # noqa: E731

    def passed(f, v, e, ends):
        """Messages, and their sums or means at the receivers."""
        messages = [perceptron(f, np.concatenate([v[s], v[r], e[i]])) for i, (s, r) in enumerate(ends)]
        to = [[m for m, (_, r) in zip(messages, ends, strict=True) if r == node] for node in range(len(v))]
        whole = [sum(rows, np.zeros_like(v[0])) for rows in to]
        if network.aggregate == "mean":
            whole = [total / max(len(rows), 1) for total, rows in zip(whole, to, strict=True)]
        return messages, whole

    v = [perceptron(numpy(network.node_encoder), row) for row in np.asarray(nodes)]
    e = [perceptron(numpy(network.edge_encoder), row) for row in np.asarray(edges)]
    w = [perceptron(numpy(network.world_encoder), row) for row in np.asarray(world_features)]
    ends = list(zip(np.asarray(graph.senders), np.asarray(graph.receivers), strict=True))
    for k in range(network.num_steps):
        block = jax.tree.map(lambda leaf, k=k: np.asarray(leaf[k]), network.blocks)
        messages, sums = passed(block.mesh, v, e, ends)
        e = [row + message for row, message in zip(e, messages, strict=True)]
        seen = [v, sums]
        if len(world):
            messages, contact = passed(block.world, v, w, world)
            w = [row + message for row, message in zip(w, messages, strict=True)]
            seen.append(contact)
        v = [row + perceptron(block.node, np.concatenate(rows)) for row, *rows in zip(v, *seen, strict=True)]
    return np.stack([perceptron(numpy(network.decoder), row) for row in v])


@pytest.mark.parametrize(("plain", "contact"), [("sum", "mean"), pytest.param("mean", "sum", marks=pytest.mark.slow)])
def test_the_network_is_the_papers_equations_whatever_stands_beside(plain, contact):
    """Two graphs and nodes without edges in one, which do not see each other; and a graph with edges of the world:
    three lead to two nodes, and two more places of the room are empty."""
    sizes = {"latent": 5, "num_steps": 2}
    without = meshes_drawn.network(3, 2, 2, num_hidden_layers=2, aggregate=plain, **sizes)
    within = meshes_drawn.network(3, 2, 2, num_hidden_layers=1, aggregate=contact, world_size=2, **sizes)
    two = pad_graph(batch_graphs([GRAPH, GRAPH]), 13, 2 * GRAPH.num_edges)
    nodes, edges, world = (RNG.normal(size=shape) for shape in ((5, 3), (GRAPH.num_edges, 2), (5, 2)))
    many = np.concatenate([nodes, 2 * nodes, np.full((3, 3), 3.0)]), np.concatenate([edges, edges])
    pairs = [(0, 3), (4, 3), (0, 4)]
    ends = np.array([*pairs, (4, 4), (4, 4)])
    room = g.WorldEdges(ends[:, 0], ends[:, 1], np.arange(5) < 3, np.asarray(3))
    single = [rows.astype("f4") for rows in (*many, nodes, edges, world)]
    alone = meshes_drawn.drawn(lambda: Perceptron(jax.random.key(0), (3, 4)))  # one layer, normalised
    found = jax.jit(lambda *a: (without(two, *a[:2]), within(GRAPH, a[2], a[3], room, a[4]), alone(a[2])))(*single)
    close = lambda found, wanted: np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)  # noqa: E731
    for part, rows in ((found[0][:5], nodes), (found[0][5:10], 2 * nodes)):
        close(part, reference(without, GRAPH, rows, edges))
    np.testing.assert_array_equal(found[0][10], found[0][11])
    close(found[1], reference(within, GRAPH, nodes, edges, pairs, world[:3]))
    close(found[2], [perceptron(jax.tree.map(np.asarray, alone), row) for row in nodes])


def test_every_step_has_weights_of_its_own_and_the_decoder_no_norm():
    sizes = {"latent": 4, "num_steps": 2, "num_hidden_layers": 1}
    with KeyRecorder() as recorder:
        made = eqx.filter_jit(lambda key: g.MeshGraphNet(key, 1, 1, 1, **sizes))(jax.random.key(0))
        assert not recorder.reused()
    first, second = np.asarray(made.blocks.mesh.weights[0])
    assert np.abs(first - second).max() > 0.1
    for leaf in jax.tree.leaves(eqx.filter(made, eqx.is_inexact_array)):  # weights are truncated at two deviations
        assert np.abs(leaf).max() <= 2
        assert leaf.dtype == np.float32
    assert float(np.abs(made.decoder.biases[0]).max()) == 0
    assert made.decoder.norm is None
    assert all(part.norm is not None for part in (made.node_encoder, made.edge_encoder, made.blocks.mesh))


def test_what_is_k_edges_away_is_known_after_k_steps_and_not_before():
    """On a line of six nodes, of which one is moved at a time."""
    line = g.mesh_graph(np.arange(6.0)[:, None], [[i, i + 1] for i in range(5)], kinds=[0] * 6)
    nodes = np.broadcast_to(RNG.normal(size=(6, 2)).astype("f4"), (7, 6, 2)).copy()
    nodes[np.arange(6), np.arange(6)] += 1
    network = meshes_drawn.network(2, 1, 1, latent=12, num_steps=2, num_hidden_layers=1)
    found = np.asarray(jax.jit(jax.vmap(lambda x: network(line, x, jnp.ones((10, 1)))))(nodes))[..., 0]
    distance = np.abs(np.arange(6)[:, None] - np.arange(6))
    np.testing.assert_array_equal(np.abs(found[:6] - found[6]) > 1e-6, distance <= 2)


@pytest.fixture(scope="module")
def contact():
    """A step of a simulator with contact and room for four edges of it, and what the network says, normalised."""
    simulator = simulator_of(world_radius=1.6, max_world_edges=4, ready=True)
    said = lambda graph, frames: simulator.normalised(graph, simulator.features(graph, frames))  # noqa: E731
    return jax.jit(lambda graph, frames: (*simulator.step(graph, frames), said(graph, frames)))


def test_a_step_adds_what_the_network_says_scaled_back(contact):
    """The targets' mean is 0.2, their deviation 0.5; one node is held."""
    (older, new), _, said = contact(GRAPH, FRAMES)
    np.testing.assert_array_equal(older, FRAMES[1])
    wanted = 2 * np.asarray(FRAMES[1]) - np.asarray(FRAMES[0]) + 0.5 * np.asarray(said) + 0.2
    np.testing.assert_allclose(new[1:], wanted[1:], atol=1e-5)
    np.testing.assert_array_equal(new[0], FRAMES[1, 0])


def test_a_shift_in_the_world_or_in_mesh_space_changes_nothing_and_a_turn_does(contact):
    free = np.arange(5) > 0
    after = lambda graph, frames: np.asarray(contact(graph, frames)[0][-1])[free]  # noqa: E731
    before, frames = after(GRAPH, FRAMES), np.asarray(FRAMES)
    shift = np.array([3.0, -2.0], np.float32)
    np.testing.assert_allclose(after(GRAPH, frames + shift) - shift, before, atol=2e-4)
    moved = eqx.tree_at(lambda graph: graph.nodes.position, GRAPH, np.asarray(GRAPH.nodes.position) + 5)
    np.testing.assert_allclose(after(moved, frames), before, atol=2e-4)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]], np.float32)
    assert np.abs(after(GRAPH, frames @ turn) @ turn.T - before).max() > 1e-2  # documented: not invariant


# --- normalisers, noise, integrators ----------------------------------------------------------------------------------


def test_a_normaliser_knows_the_mean_and_deviation_of_all_rows_but_padding():
    batches = [RNG.normal(3.0, 2.0, size=(2, 7, 2)).astype(np.float32) for _ in range(3)]
    mask = np.arange(7) < 5
    broken = [np.where(mask[:, None], batch, np.nan) for batch in batches]

    @jax.jit
    def gathered(batches):
        normaliser = g.Normaliser.empty(2, max_batches=3)
        for batch in batches:
            normaliser = normaliser.gather(batch, mask)
        constant = g.Normaliser.empty(1).gather(jnp.full((4, 1), 7.0))
        told = normaliser.deviation(), normaliser.inverse(normaliser.apply(whole))
        still = constant.deviation(), constant.apply(jnp.full((1, 1), 7.0))
        return normaliser, normaliser.gather(100 * batches[0], mask), told, still

    whole = batches[0]
    found, closed, (deviation, back), still = gathered(broken)
    rows = np.concatenate([batch[:, mask].reshape(-1, 2) for batch in batches])
    np.testing.assert_allclose(found.statistics.mean, rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(deviation, rows.std(0), rtol=1e-5)
    np.testing.assert_allclose(back, batches[0], rtol=1e-5)
    np.testing.assert_array_equal(closed.statistics.mean, found.statistics.mean)  # after max_batches
    assert float(still[0][0]) == pytest.approx(1e-8)
    assert float(still[1][0, 0]) == 0


@pytest.fixture(scope="module")
def disturbed():
    """One program for any γ: noisy frames, what follows, targets of both orders, and what becomes of these."""

    @jax.jit
    def answer(gamma, frames, following, free):
        noisy, after = g.TrainingNoise(0.3, gamma).disturb(jax.random.key(2), frames, following, free)
        targets, reached = [], []
        for integrator in (g.FirstOrder(), g.SecondOrder()):
            seen = noisy[-integrator.num_frames :]
            targets.append(integrator.target(seen, after))
            reached.append(integrator.advance(seen, targets[-1]))
        return noisy, targets, reached

    return answer


@pytest.mark.parametrize("gamma", [0.0, 0.1, 1.0])
def test_targets_answer_the_noise_as_the_algebra_says(gamma, disturbed):
    """First order: Δx − γn. Second order: a − (1 + γ)n; integrated, x̃_{t+1} = x_{t+1} + (1 − γ)n."""
    frames, following = RNG.normal(size=(2, 900, 1)).astype("f4"), RNG.normal(size=(900, 1)).astype("f4")
    free = np.arange(900) != 2
    noisy, (first, second), reached = jax.tree.map(np.asarray, disturbed(gamma, frames, following, free))
    n = noisy[1] - frames[1]
    assert n[2] == 0
    assert np.all(n[free] != 0)
    assert n.std() == pytest.approx(0.3, rel=0.12)  # five standard errors
    np.testing.assert_array_equal(noisy[0], frames[0])  # the history stays clean
    np.testing.assert_allclose(first, following - frames[1] - gamma * n, atol=1e-5)
    acceleration = following - 2 * frames[1] + frames[0]
    np.testing.assert_allclose(second, acceleration - (1 + gamma) * n, atol=1e-5)
    for one in reached:
        np.testing.assert_allclose(one, following + (1 - gamma) * n, atol=1e-5)


@pytest.fixture(scope="module")
def features():
    """Those of four simulators by one program."""
    with_extra = g.mesh_graph(POSITIONS, CELLS, kinds=[3, 0, 0, 0, 0], extra=np.arange(5.0)[:, None])
    usual, scripted = simulator_of(), simulator_of(scripted=True)
    hidden = simulator_of(g.FirstOrder(shown=False), with_extra)
    shown = simulator_of(g.FirstOrder(), with_extra, spaces="world")
    assert hidden.statistics.node.statistics.mean.shape == (10,)

    @jax.jit
    def all_of(frames):
        return {
            "usual": usual.features(GRAPH, frames),
            "scripted": scripted.features(GRAPH, frames, frames[1] + 2.0),
            "hidden": hidden.features(with_extra, frames[1:]),
            "shown": shown.features(with_extra, frames[1:]),
        }

    return jax.tree.map(np.asarray, all_of(FRAMES))


def test_features_are_offsets_from_receiver_to_sender(features):
    s, r = np.asarray(GRAPH.senders), np.asarray(GRAPH.receivers)
    u, x = POSITIONS[s] - POSITIONS[r], np.asarray(FRAMES[1])[s] - np.asarray(FRAMES[1])[r]
    length = lambda d: np.linalg.norm(d, axis=1, keepdims=True)  # noqa: E731
    wanted = np.concatenate([u, length(u), x, length(x)], 1)
    np.testing.assert_allclose(features["usual"].edge, wanted, atol=1e-5)
    np.testing.assert_allclose(features["shown"].edge, wanted[:, 3:], atol=1e-5)
    kinds = np.eye(9)[np.asarray(GRAPH.nodes.kind)]
    np.testing.assert_allclose(features["usual"].node, np.concatenate([FRAMES[1] - FRAMES[0], kinds], 1), atol=1e-6)


def test_positions_that_are_not_shown_and_numbers_that_are_extra(features):
    wanted = np.concatenate([np.eye(9)[[3, 0, 0, 0, 0]], np.arange(5.0)[:, None]], 1)
    np.testing.assert_allclose(features["hidden"].node, wanted)
    np.testing.assert_allclose(features["shown"].node, np.concatenate([FRAMES[1], wanted], 1))


def test_scripted_motion_is_shown_at_held_nodes_alone(features):
    wanted = [[2, 2], [0, 0], [0, 0], [0, 0], [0, 0]]
    np.testing.assert_allclose(features["scripted"].node[:, 2:4], wanted, atol=1e-6)
