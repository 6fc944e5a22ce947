"""Reports recomputed, options away from their defaults, padding, ties and ends, and the laws of first weights."""

import itertools
import sys
from types import SimpleNamespace

import equinox as eqx
import jax
import meshes_drawn
import networkx
import numpy as np
import pytest

from laureate import graphs as g
from laureate.graphs.mesh_graph_net import Perceptron
from laureate.layers import batch_graphs, make_graph, pad_graph
from laureate.problems.proteins import build_backbone

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
POSITIONS = np.array([[0.0, 0], [1, 0], [0, 1], [1.1, 1], [0.5, 1.7]])
CELLS = np.array([[0, 1, 2], [2, 1, 3], [2, 3, 4]])
GRAPH = g.mesh_graph(POSITIONS, CELLS, kinds=[3, 0, 0, 0, 0])
CHAIN = build_backbone(RNG.uniform(-2.5, -1.0, 14), RNG.uniform(-1, 2.5, 14)).astype(np.float32)


# --- backbones --------------------------------------------------------------------------------------------------------


def codes(offset):
    """Eight cosines and eight sines of the distance along a chain, by the formula."""
    frequencies = np.array([10000.0 ** (-2 * k / 16) for k in range(8)])
    return np.concatenate([np.cos(offset * frequencies), np.sin(offset * frequencies)])


@pytest.mark.parametrize("asked", [1, 4, 30])
def test_the_report_and_the_edges_of_a_broken_backbone_are_those_of_a_loop(asked):
    """Two chains, one interrupted, two residues left out, numbers with a gap; and more neighbours than there are."""
    coords, chains = CHAIN.copy(), np.array(["A"] * 9 + ["B"] * 5)
    coords[4:] += np.float32([25, 0, 0])  # between 3 and 4 the chain is broken
    coords[6, 2, 1], coords[11, 0] = np.nan, np.inf
    numbers = np.array([3, 4, 5, 6, 20, 21, 22, 23, 24, 3, 4, 5, 6, 7])
    graph, report = g.featurize_backbone(coords, chains, numbers, num_neighbours=asked)
    kept = [i for i in range(14) if i not in (6, 11)]
    place = coords[kept, 1]
    apart = np.linalg.norm(place[:, None] - place[None], axis=-1)
    breaks = sum(
        chains[i] == chains[j] and (j > i + 1 or np.linalg.norm(coords[i, 1] - coords[j, 1]) > 4.2)
        for i, j in itertools.pairwise(kept)
    )
    assert breaks == 3
    assert report.residues.tolist() == kept
    assert report[1:] == (2, breaks, min(asked, 11))
    assert graph.num_nodes == 12
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    for node in range(12):
        nearest = [j for j in np.argsort(apart[node], kind="stable") if j != node][:asked]
        assert sorted(senders[receivers == node].tolist()) == sorted(nearest), "never itself, none twice"
    scalars = np.asarray(graph.edges[0])
    for row, j, i in zip(scalars, senders, receivers, strict=True):
        a, b = kept[j], kept[i]
        wanted = codes(int(numbers[a]) - int(numbers[b])) if chains[a] == chains[b] else np.zeros(16)
        np.testing.assert_allclose(row[16:], wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["u1", "i1", "u4", "u8", "i8"])
def test_places_along_a_chain_count_backwards_in_any_kind_of_integer(kind):
    """Of numbers without a sign a difference below 0 wraps, of short ones that of two that are far apart."""
    numbers = np.linspace(0, 120, 14).astype(int)
    if kind == "i1":
        numbers = numbers * 2 - 120
    wanted = g.featurize_backbone(CHAIN, numbers=numbers, num_neighbours=13)[0]
    found = g.featurize_backbone(CHAIN, numbers=numbers.astype(kind), num_neighbours=13)[0]
    np.testing.assert_array_equal(found.edges[0], wanted.edges[0])
    j, i = (int(ends[5]) for ends in (wanted.senders, wanted.receivers))
    np.testing.assert_allclose(wanted.edges[0][5, 16:], codes(numbers[j] - numbers[i]), atol=1e-5)


def test_of_alternative_places_the_fullest_is_taken_and_of_equals_the_first_letter(tmp_path):
    pytest.importorskip("gemmi")
    path = tmp_path / "one.pdb"

    def line(atom, letter, x, occupancy):
        place = f"{x:8.3f}{0:8.3f}{0:8.3f}"
        return f"ATOM      1  {atom:<3}{letter}ALA A   1    {place}{occupancy:6.2f} 10.00           {atom[0]}"

    for order in itertools.permutations("ABC"):
        for shares in ({"A": 0.2, "B": 0.4, "C": 0.4}, {"A": 0.3, "B": 0.3, "C": 0.3}, {"A": 0.2, "B": 0.3, "C": 0.5}):
            rows = [line("CA", letter, ord(letter) - 64, shares[letter]) for letter in order]
            path.write_text("\n".join([line("N", " ", 9, 1), *rows, line("C", " ", 8, 1), "END", ""]))
            with pytest.warns(UserWarning, match="1 backbone atoms of one.pdb have alternative places"):
                read = g.read_backbone(path)
            best = min("ABC", key=lambda letter: (-shares[letter], letter))
            assert read.coords[0, :3, 0].tolist() == [9, ord(best) - 64, 8]
            assert (read.num_alternatives, read.sequence) == (1, "A")


# --- meshes -----------------------------------------------------------------------------------------------------------


def test_a_file_gives_tetrahedra_before_triangles_and_drops_a_third_axis_only_where_it_is_flat(tmp_path):
    meshio = pytest.importorskip("meshio")
    points = np.array([[9.0, 9, 9], [0, 0, 2], [1, 0, 2], [0, 1, 2], [1, 1, 2], [0.3, 0.3, 3]])
    flat, solid = np.array([[1, 2, 3], [4, 3, 2]]), np.array([[1, 2, 3, 5], [2, 4, 3, 5]])
    steep = np.array([[1, 2, 5], [3, 4, 5]])
    blocks = [
        ([("triangle", flat), ("tetra", solid)], solid, 3),
        ([("tetra", solid[:1]), ("triangle", flat), ("tetra", solid[1:])], solid, 3),
        ([("triangle", flat)], flat, 2),
        ([("triangle", flat[:1]), ("line", flat[:, :2]), ("triangle", flat[1:])], flat, 2),
        ([("triangle", steep)], steep, 3),
    ]
    for given, wanted, axes in blocks:
        meshio.write_points_cells(tmp_path / "mesh.vtk", points, given)
        positions, cells = g.read_mesh(tmp_path / "mesh.vtk")
        np.testing.assert_array_equal(positions[cells], points[wanted][..., :axes])
        assert len(positions) == len(np.unique(wanted)), "without nodes that no cell uses"


def test_a_place_outside_takes_the_cell_it_is_least_beyond_and_any_node_is_itself():
    for positions, cells in ((POSITIONS, CELLS), (np.array([[0.0], [1.0], [3.0]]), np.array([[1, 0], [1, 2]]))):
        nodes, weights = g.barycentric(positions, cells, np.concatenate([positions, 2 * positions[-1:] + 5]))
        for number in range(len(positions)):
            np.testing.assert_allclose(weights[number].sum(where=nodes[number] == number), 1)
        every = [g.barycentric(positions, cells[k : k + 1], 2 * positions[-1:] + 5)[1].min() for k in range(len(cells))]
        assert weights[-1].min() == pytest.approx(max(every))
        np.testing.assert_allclose(weights[-1] @ positions[nodes[-1]], 2 * positions[-1] + 5)  # linear beyond, too


@pytest.mark.parametrize(("extra", "scripted"), [(0, False), (2, False), (0, True), (3, True)])
def test_kinds_of_nodes_that_were_not_trained_on_are_named_wherever_they_stand_among_the_features(extra, scripted):
    """What is shown at a node: two numbers of the state, two of what is scripted, nine kinds, what is extra."""
    numbers = np.ones((5, extra))
    mesh = lambda kinds: g.mesh_graph(POSITIONS, CELLS, kinds=kinds, extra=numbers)  # noqa: E731
    sizes = {"latent": 2, "num_steps": 1, "num_hidden_layers": 1, "scripted": scripted}
    simulator = meshes_drawn.simulator(g.FirstOrder(), mesh([0] * 5), 2, ready=True, **sizes)
    shares = np.zeros(9)
    shares[[0, 3, 4]] = 0.5, 0.25, 0.25
    mean = np.concatenate([np.zeros(2 + 2 * scripted), shares, np.ones(extra)]).astype("f4")
    simulator = eqx.tree_at(lambda s: s.statistics.node.statistics.mean, simulator, mean)
    given = np.ones((3, 5, 2), "f4") if scripted else None
    for kinds, told in (([0, 1, 3, 4, 8], "'OBSTACLE', 'ANOTHER'"), ([5, 5, 6, 2, 0], "'AIRFOIL', 'OUTFLOW', 'WALL'")):
        with pytest.raises(ValueError, match=rf"that were trained on; got \[{told}\]"):
            g.rollout(simulator, mesh(kinds), np.ones((1, 5, 2), "f4"), 3, given)


@pytest.fixture(scope="module")
def bounded():
    """Rollouts of what doubles, upwards and downwards, with a limit that is met exactly; by one program."""
    fine = SimpleNamespace(status=np.int32(0))
    roll = lambda start: g.rollout_with(lambda frames, _: (2 * frames, fine), start, 5, limit=8.0)  # noqa: E731
    starts = np.array([[1, 0], [-1, 0], [0, -1], [3, -1]], np.float32)[:, None, :, None]  # one frame, two nodes
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(roll))(starts))


def test_a_state_may_be_as_large_as_its_limit_and_no_larger_on_either_side(bounded):
    states, info = bounded
    np.testing.assert_array_equal(info.failed_at, [3, 3, 3, 1])
    np.testing.assert_array_equal(info.status, 1)
    np.testing.assert_array_equal(info.cost, 5)
    np.testing.assert_array_equal(states[:, -1, :, 0], [[8, 0], [-8, 0], [0, -8], [6, -2]])


def test_a_radius_is_no_part_of_what_is_close_and_a_room_may_be_filled_to_its_last_place():
    """Five nodes on a line, at 0, 1, 2.5, 2.5 and 9; what is not there lies at the last node, behind what is."""
    places = np.array([0.0, 1.0, 2.5, 2.5, 9.0], np.float32)[:, None]
    find = jax.jit(lambda radius: [g.radius_edges(places, radius, room) for room in (1, 2, 8, 12)])
    for radius, pairs in ((1.0, [(2, 3)]), (1.25, [(0, 1), (2, 3)]), (1.5, [(0, 1), (2, 3)])):
        wanted = sorted([*pairs, *(pair[::-1] for pair in pairs)])
        for edges in find(np.float32(radius)):
            room = len(edges.mask)
            assert int(edges.found) == len(wanted)
            assert bool(edges.overflow) == (len(wanted) > room)
            there = list(zip(edges.senders.tolist(), edges.receivers.tolist(), strict=True))
            assert there == (wanted + [(4, 4)] * room)[:room]
            assert edges.mask.tolist() == [place < len(wanted) for place in range(room)]
            if room >= len(wanted):
                assert g.check_room(edges) is edges


def test_what_padding_holds_is_no_divergence_and_reaches_nobody():
    """Two nodes of padding that are not numbers, beside a mesh with just enough room for contact."""
    sizes = {"latent": 3, "num_steps": 2, "num_hidden_layers": 1, "spaces": "both"}
    simulator = meshes_drawn.simulator(
        g.FirstOrder(), GRAPH, 2, ready=True, world_radius=1.6, max_world_edges=2, aggregate="mean", **sizes
    )
    step = jax.jit(lambda frames: simulator.step(pad_graph(GRAPH, 7, 20), frames))
    frames = np.zeros((1, 7, 2), np.float32)
    frames[0, :5] = POSITIONS
    plain, told = step(frames)
    frames[0, 5:] = [[np.nan, 1.0], [np.inf, -np.inf]]
    found, info = step(frames)
    assert (int(told.status), int(info.status)) == (0, 0)
    assert int(told.world_edges) == int(info.world_edges) == 2, "the room is full"
    np.testing.assert_array_equal(found[0, :5], plain[0, :5])
    roll = jax.jit(lambda frames: g.rollout(simulator, pad_graph(GRAPH, 7, 20), frames, 2, limit=1e3))
    states, how = roll(frames)
    assert (int(how.status), int(how.failed_at)) == (0, 2)
    np.testing.assert_allclose(states[0, :5], plain[0, :5], rtol=1e-5)
    frames[0, 4, 0] = np.nan
    assert int(step(frames)[1].status) == 1
    assert int(roll(frames)[1].failed_at) == 0


def test_errors_are_relative_to_how_far_each_free_node_moves_from_its_own_mean():
    """Of every step and of all, by the formula; held nodes and padding, which may hold anything, count nothing."""
    truth, found = RNG.normal(size=(2, 6, 7, 2)).astype("f4")
    graph = pad_graph(g.mesh_graph(POSITIONS, CELLS, kinds=[3, 0, 5, 0, 6]), 7, 20)
    found[:, [0, 4]], found[:, 5:] = 1e6, np.nan
    by_step, whole = jax.jit(lambda x, y: g.relative_errors(x, y, graph))(found, truth)
    free = [1, 2, 3]
    squares = ((found - truth)[:, free] ** 2).sum((1, 2))
    spread = ((truth - truth.mean(0))[:, free] ** 2).sum()
    np.testing.assert_allclose(by_step, np.sqrt(squares / (spread / 6)), rtol=1e-5)
    assert float(whole) == pytest.approx(np.sqrt(squares.sum() / spread), rel=1e-5)


def test_noise_is_drawn_for_every_number_and_a_normaliser_counts_its_batches_until_it_is_closed():
    frames, free = np.zeros((2, 40, 3), "f4"), np.arange(40) % 4 > 0

    @jax.jit
    def found(frames):
        noisy, following = g.TrainingNoise(0.5, 0.25).disturb(KEY, frames, frames[0], free)
        normaliser, told = g.Normaliser.empty(3, max_batches=2), []
        for _ in range(4):
            told.append((normaliser.num_batches, normaliser.is_ready))
            normaliser = normaliser.gather(noisy[1])
        return noisy, following, told

    (before, now), following, told = jax.tree.map(np.asarray, found(frames))
    assert not before.any()
    assert not now[~free].any()
    assert len(np.unique(now[free])) == now[free].size == 90
    np.testing.assert_allclose(following, 0.75 * now, rtol=1e-6)
    np.testing.assert_allclose(now[free].std(0), 0.5, rtol=5 / np.sqrt(2 * 30))  # five standard errors, in each axis
    assert [(int(number), bool(ready)) for number, ready in told] == [(0, False), (1, True), (2, True), (2, True)]


def test_errors_name_the_setting_that_is_wrong():
    sizes = {"node_size": 1, "edge_size": 1, "outputs": 1, "latent": 2, "num_steps": 1, "num_hidden_layers": 1}
    for name in sizes:
        for wrong in (0, 1.5):
            with pytest.raises(ValueError, match=rf"^MeshGraphNet\.{name} must be an integer >= 1; got {wrong}"):
                g.MeshGraphNet(KEY, **sizes | {name: wrong})


# --- from and to others -----------------------------------------------------------------------------------------------


def test_graphs_with_and_without_edges_go_to_jraph_and_back(monkeypatch):
    """In every order; also the last and the first may have none, and padding stands behind."""
    monkeypatch.setitem(sys.modules, "jraph", SimpleNamespace(GraphsTuple=lambda **fields: SimpleNamespace(**fields)))
    make = lambda nodes, ends: make_graph(  # noqa: E731
        np.arange(float(nodes)), np.arange(float(len(ends))), *np.array(ends, int).reshape(-1, 2).T
    )
    parts = make(3, [(0, 1), (1, 2), (2, 2)]), make(1, []), make(2, [(1, 0)])
    for order in itertools.permutations(parts):
        whole = batch_graphs(list(order))
        for graph in (whole, pad_graph(whole, 9, 7)):
            found = g.to_jraph(graph)
            assert found.n_node.tolist() == [part.num_nodes for part in order]
            assert found.n_edge.tolist() == [part.num_edges for part in order]
            again = g.from_jraph(found)
            for name in ("nodes", "edges", "senders", "receivers", "graph_of"):
                np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))


def test_networkx_keeps_directions_loops_parallel_edges_and_whose_graph_a_node_is_in():
    for kind in (networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph):
        made = kind()
        made.add_nodes_from("cab", weight=1.0)
        for number, (a, b) in enumerate([("a", "b"), ("c", "c"), ("a", "b"), ("b", "c")]):
            made.add_edge(a, b, length=float(number))
        wanted = []
        for a, b, data in made.edges(data=True):
            ends = ["cab".index(a), "cab".index(b)]
            ways = [ends] if made.is_directed() or a == b else [ends, ends[::-1]]
            wanted += [(*way, data["length"]) for way in ways]
        graph = g.from_networkx(made, ["weight"], ["length"])
        found = list(zip(graph.senders.tolist(), graph.receivers.tolist(), graph.edges.tolist(), strict=True))
        assert sorted(found) == sorted(wanted)
        assert found == sorted(found, key=lambda row: row[:2])
        twice = g.to_networkx(batch_graphs([graph, graph]))
        assert [which for _, which in twice.nodes(data="graph")] == [0, 0, 0, 1, 1, 1]
        assert sorted((a, b, float(data["0"])) for a, b, data in twice.edges(data=True)) == sorted(
            [*wanted, *((a + 3, b + 3, length) for a, b, length in wanted)]
        )


# --- first weights ----------------------------------------------------------------------------------------------------


def spread(weights, square):
    """Whether the mean square is that of the law, up to five standard errors of a bounded law's."""
    weights = np.asarray(weights, float).ravel()
    assert np.mean(weights**2) == pytest.approx(square, rel=5 / np.sqrt(len(weights)))
    assert abs(weights.mean()) < 5 * np.sqrt(square / len(weights))


def test_first_weights_are_as_wide_as_the_number_of_inputs_says():
    """A GVP's are uniform in ±1/√inputs, a perceptron's normal, cut at two deviations, a score's uniform."""

    @jax.jit
    def made(key):
        one, two, three = jax.random.split(key, 3)
        gvp = g.GVP(one, (20, 6), (30, 9), num_hidden=25, gated=True)
        quality = g.QualityModel(three, (20, 1), (4, 1), node_dims=(24, 1), num_layers=0, with_residues=True)
        return gvp, Perceptron(two, (10, 40, 30)), (quality.hidden, quality.last, quality.embedding)

    gvp, perceptron, (hidden, last, embedding) = made(KEY)
    inputs = {"hidden_map": 6, "output_map": 25, "scalar_map": 45, "norm_map": 45, "bias": 45}
    inputs |= {"gate_map": 30, "gate_bias": 30}
    for name, number in inputs.items():
        weights = np.asarray(getattr(gvp, name))
        assert np.abs(weights).max() <= 1 / np.sqrt(number), name
        spread(weights, 1 / (3 * number))
    cut = 1 - 2 * 2 * np.exp(-2) / np.sqrt(2 * np.pi) / 0.9544997  # the variance of a normal number within ±2
    for weights, number in zip(perceptron.weights, (10, 40), strict=True):
        spread(weights, cut / number)
    assert not any(np.any(bias) for bias in perceptron.biases)
    spread(hidden, 1 / (3 * 24))
    spread(last, 1 / (3 * 48))
    spread(embedding, 1.0)
    assert np.abs(np.asarray(embedding)).max() > 2
