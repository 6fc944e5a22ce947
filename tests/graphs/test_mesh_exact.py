"""Meshes, features, noise and integrators against what is known exactly."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import graphs as g
from laureate.layers import batch_graphs, pad_graph

POSITIONS = np.array([[0.0, 0], [1, 0], [0, 1], [1.1, 1], [0.5, 1.7]])
CELLS = [[0, 1, 2], [2, 1, 3], [2, 3, 4]]
GRAPH = g.mesh_graph(POSITIONS, CELLS, kinds=[3, 0, 0, 0, 0])
RNG = np.random.default_rng(0)
FRAMES = jnp.asarray(POSITIONS + 0.1 * RNG.normal(size=(2, 5, 2)), jnp.float32)


def simulator_of(integrator=None, graph=GRAPH, size=2, **settings):
    settings = {"latent": 6, "num_steps": 2, "hidden_layers": 1, "spaces": "both"} | settings
    return g.make_simulator(jax.random.key(0), graph, integrator or g.SecondOrder(), size, **settings)


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
    edges = find(jnp.asarray(x), padded)
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


def test_more_world_edges_than_fit_are_told():
    edges = g.radius_edges(jnp.zeros((4, 1)), 1.0, 5)
    assert bool(edges.overflow)
    assert int(edges.found) == 12
    with pytest.raises(ValueError, match=r"radius_edges.max_edges must be >= 12; got 5"):
        g.check_room(edges)
    simulator = simulator_of(world_radius=10.0, max_world_edges=2)
    _, info = eqx.filter_jit(lambda frames: simulator.step(GRAPH, frames))(FRAMES)
    assert (int(info.status), int(info.world_edges)) == (1, 20 - GRAPH.num_edges)


# --- the network ------------------------------------------------------------------------------------------------------


def reference(network, graph, nodes, edges, world=(), world_features=()):
    """The equations of the paper in NumPy, node by node and edge by edge; world: pairs of sender and receiver."""
    numpy = lambda tree: jax.tree.map(np.asarray, tree)  # noqa: E731

    def perceptron(p, row):
        for k, (weight, bias) in enumerate(zip(p.weights, p.biases, strict=True)):
            row = (np.maximum(row, 0) if k else row) @ weight + bias
        if p.norm is None:
            return row
        scale, offset = p.norm
        return (row - row.mean()) / np.sqrt(row.var() + 1e-5) * scale + offset

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


def test_the_network_is_the_papers_equations():
    network = g.MeshGraphNet(jax.random.key(0), 3, 2, 2, latent=5, num_steps=2, hidden_layers=2)
    nodes, edges = RNG.normal(size=(5, 3)), RNG.normal(size=(GRAPH.num_edges, 2))
    found = eqx.filter_jit(network)(GRAPH, jnp.asarray(nodes, jnp.float32), jnp.asarray(edges, jnp.float32))
    np.testing.assert_allclose(found, reference(network, GRAPH, nodes, edges), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("aggregate", ["mean", pytest.param("sum", marks=pytest.mark.slow)])
def test_contact_is_the_papers_equations_and_room_that_is_not_used_says_nothing(aggregate):
    """Three edges of the world lead to two nodes; two more places of the room are empty."""
    sizes = {"world_size": 2, "latent": 5, "num_steps": 2, "hidden_layers": 1}
    network = g.MeshGraphNet(jax.random.key(0), 3, 2, 2, aggregate=aggregate, **sizes)
    nodes, edges, world = (RNG.normal(size=shape) for shape in ((5, 3), (GRAPH.num_edges, 2), (5, 2)))
    pairs = [(0, 3), (4, 3), (0, 4)]
    ends = np.array([*pairs, (4, 4), (4, 4)])
    room = g.WorldEdges(ends[:, 0], ends[:, 1], jnp.arange(5) < 3, jnp.asarray(3))
    single = [jnp.asarray(rows, jnp.float32) for rows in (nodes, edges, world)]
    found = eqx.filter_jit(lambda x, e, w: network(GRAPH, x, e, room, w))(*single)
    wanted = reference(network, GRAPH, nodes, edges, pairs, world[:3])
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)
    first, second = np.asarray(network.blocks.mesh.weights[0])  # every step has weights of its own
    assert np.abs(first - second).max() > 0.1


def test_what_is_k_edges_away_is_known_after_k_steps_and_not_before():
    """On a line of six nodes, by the Jacobian."""
    line = g.mesh_graph(np.arange(6.0)[:, None], [[i, i + 1] for i in range(5)], kinds=[0] * 6)
    nodes, edges = jnp.asarray(RNG.normal(size=(6, 2)), jnp.float32), jnp.ones((10, 1))
    network = g.MeshGraphNet(jax.random.key(1), 2, 1, 1, latent=6, num_steps=2, hidden_layers=1)
    slopes = eqx.filter_jit(lambda n, x: jax.jacobian(lambda x: n(line, x, edges))(x))(network, nodes)
    depends = np.abs(np.asarray(slopes)).max((1, 3)) > 0
    distance = np.abs(np.arange(6)[:, None] - np.arange(6))
    np.testing.assert_array_equal(depends, distance <= 2)


def test_a_node_without_edges_gets_nothing_and_graphs_in_a_batch_do_not_see_each_other():
    network = g.MeshGraphNet(jax.random.key(0), 2, 1, 1, latent=6, num_steps=2, hidden_layers=1)
    call = eqx.filter_jit(lambda graph, x, e: network(graph, x, e))
    x, e = (jnp.asarray(RNG.normal(size=shape), jnp.float32) for shape in ((5, 2), (GRAPH.num_edges, 1)))
    alone = call(GRAPH, x, e)
    both = call(batch_graphs([GRAPH, GRAPH]), jnp.concatenate([x, 2 * x]), jnp.concatenate([e, e]))
    np.testing.assert_allclose(both[:5], alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(GRAPH.to_receivers(jnp.zeros((GRAPH.num_edges, 1)) + 1)[:, 0], [2, 3, 4, 3, 2])
    padded = pad_graph(GRAPH, 7, GRAPH.num_edges)  # two nodes without any edge
    wide = call(padded, jnp.pad(x, ((0, 2), (0, 0)), constant_values=3.0), e)
    np.testing.assert_array_equal(wide[5], wide[6])
    np.testing.assert_allclose(wide[:5], alone, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def contact():
    """A simulator with contact whose normalisers know the data, and its step as one program."""
    simulator = simulator_of(world_radius=1.3, max_world_edges=12)
    trainer = g.MeshTrainer(None, g.TrainingNoise())
    windows = jnp.asarray(POSITIONS + 0.1 * RNG.normal(size=(4, 3, 5, 2)), jnp.float32)
    state = g.TrainerState(simulator, None)
    simulator = eqx.filter_jit(lambda w, s: trainer.gather(jax.random.key(0), GRAPH, w, s))(windows, state).simulator
    return eqx.filter_jit(lambda graph, frames: simulator.step(graph, frames)[0][-1])


def test_a_shift_in_the_world_or_in_mesh_space_changes_nothing_and_a_turn_does(contact):
    free = np.asarray(g.free_nodes(GRAPH))
    before = np.asarray(contact(GRAPH, FRAMES))
    shift = jnp.array([3.0, -2.0])
    np.testing.assert_allclose(contact(GRAPH, FRAMES + shift)[free] - shift, before[free], atol=2e-4)
    moved = eqx.tree_at(lambda graph: graph.nodes.position, GRAPH, GRAPH.nodes.position + 5.0)
    np.testing.assert_allclose(contact(moved, FRAMES)[free], before[free], atol=2e-4)
    turn = jnp.array([[0.0, 1.0], [-1.0, 0.0]])
    turned = contact(GRAPH, FRAMES @ turn) @ turn.T
    assert np.abs(turned[free] - before[free]).max() > 1e-3  # documented: not invariant


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
        return normaliser, normaliser.gather(100 * batches[0], mask)

    found, closed = gathered(broken)
    rows = np.concatenate([batch[:, mask].reshape(-1, 2) for batch in batches])
    np.testing.assert_allclose(found.statistics.mean, rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(found.deviation(), rows.std(0), rtol=1e-5)
    np.testing.assert_allclose(found.inverse(found.apply(batches[0])), batches[0], rtol=1e-5)
    np.testing.assert_array_equal(closed.statistics.mean, found.statistics.mean)  # after max_batches
    constant = g.Normaliser.empty(1).gather(jnp.full((4, 1), 7.0))
    assert float(constant.deviation()[0]) == pytest.approx(1e-8)
    assert float(constant.apply(jnp.array([[7.0]]))[0, 0]) == 0


@pytest.mark.parametrize("gamma", [0.0, 0.1, 1.0])
def test_targets_answer_the_noise_as_the_algebra_says(gamma):
    """First order: Δx − γn. Second order: a − (1 + γ)n; integrated, x̃_{t+1} = x_{t+1} + (1 − γ)n."""
    frames, following = jnp.asarray(RNG.normal(size=(2, 5, 1))), jnp.asarray(RNG.normal(size=(5, 1)))
    free = jnp.array([True, True, False, True, True])
    noisy, after = g.TrainingNoise(0.3, gamma).disturb(jax.random.key(2), frames, following, free)
    n = np.asarray(noisy[1] - frames[1])
    assert n[2] == 0
    assert np.all(n[np.asarray(free)] != 0)
    np.testing.assert_array_equal(noisy[0], frames[0])  # the history stays clean
    first, second = g.FirstOrder(), g.SecondOrder()
    np.testing.assert_allclose(first.target(noisy[1:], after), following - frames[1] - gamma * n, atol=1e-5)
    acceleration = following - 2 * frames[1] + frames[0]
    np.testing.assert_allclose(second.target(noisy, after), acceleration - (1 + gamma) * n, atol=1e-5)
    for integrator, seen in ((first, noisy[1:]), (second, noisy)):
        reached = integrator.advance(seen, integrator.target(seen, after))
        np.testing.assert_allclose(reached, following + (1 - gamma) * n, atol=1e-5)


def test_noise_has_the_deviation_asked_for():
    frames = jnp.zeros((1, 4000, 1))
    noisy, _ = g.TrainingNoise(0.25, 1.0).disturb(jax.random.key(0), frames, frames[0], jnp.ones(4000, bool))
    assert float(noisy.std()) == pytest.approx(0.25, rel=0.06)  # five standard errors


def test_features_are_offsets_from_receiver_to_sender():
    simulator = simulator_of()
    found = simulator.features(GRAPH, FRAMES)
    s, r = np.asarray(GRAPH.senders), np.asarray(GRAPH.receivers)
    u, x = POSITIONS[s] - POSITIONS[r], np.asarray(FRAMES[1])[s] - np.asarray(FRAMES[1])[r]
    length = lambda d: np.linalg.norm(d, axis=1, keepdims=True)  # noqa: E731
    np.testing.assert_allclose(found.edge, np.concatenate([u, length(u), x, length(x)], 1), atol=1e-5)
    kinds = np.eye(9)[np.asarray(GRAPH.nodes.kind)]
    np.testing.assert_allclose(found.node, np.concatenate([FRAMES[1] - FRAMES[0], kinds], 1), atol=1e-6)


def test_positions_that_are_not_shown_and_numbers_that_are_extra():
    extra = np.arange(5.0)[:, None]
    graph = g.mesh_graph(POSITIONS, CELLS, kinds=[3, 0, 0, 0, 0], extra=extra)
    hidden = simulator_of(g.FirstOrder(shown=False), graph)
    features = hidden.features(graph, FRAMES[1:])
    np.testing.assert_allclose(features.node, np.concatenate([np.eye(9)[[3, 0, 0, 0, 0]], extra], 1))
    shown = simulator_of(g.FirstOrder(), graph).features(graph, FRAMES[1:])
    np.testing.assert_allclose(shown.node[:, :2], FRAMES[1])
    assert hidden.statistics.node.statistics.mean.shape == (10,)


def test_scripted_motion_is_shown_at_held_nodes_alone():
    simulator = simulator_of(scripted=True)
    found = simulator.features(GRAPH, FRAMES, FRAMES[1] + 2.0).node[:, 2:4]
    np.testing.assert_allclose(found, [[2, 2], [0, 0], [0, 0], [0, 0], [0, 0]], atol=1e-6)
