"""Gossip against closed forms: spectra, contraction equal to Chebyshev's bound, the speed of news."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laureate.decentralized import (
    Gossip,
    Topology,
    complete,
    constant_weights,
    exponential,
    from_graph,
    hypercube,
    metropolis_weights,
    optimal_weights,
    random,
    ring,
    spectral_gap,
    star,
    torus,
)
from laureate.decentralized.mixing import spectrum_ends

GRAPHS = {
    "one": ring(1),
    "two": ring(2),
    "ring-7": ring(7),
    "ring-8": ring(8),
    "torus": torus(3, 4),
    "cube": hypercube(3),
    "exponential": exponential(12),
    "star": star(6),
    "complete": complete(5),
    "random": random(15, 0.25, seed=3),
    "path": from_graph([(0, 1), (1, 2), (2, 3)]),
}
METHODS = ("plain", "accelerated", "chebyshev")


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=GRAPHS, scope="module")
def graph(request):
    return GRAPHS[request.param]


# Of each kind one: a single node, two, an odd ring, unequal and random degrees.
KINDS = {"one", "two", "ring-7", "star", "random"}


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name not in KINDS)) for name in GRAPHS])
def compiled_graph(request):
    """Where every graph is a program of its own."""
    return GRAPHS[request.param]


def test_ring_eigenvalues_are_the_closed_form():
    n = 9
    values = np.sort(np.linalg.eigvalsh(metropolis_weights(ring(n))))
    assert_allclose(values, np.sort(1 / 3 + 2 / 3 * np.cos(2 * np.pi * np.arange(n) / n)), atol=1e-12)


@pytest.mark.parametrize(
    ("topology", "smallest"), [(star(6), 0.0), (ring(8), -1 / 3), (torus(4, 4), -3 / 5), (hypercube(3), -1 / 2)]
)
def test_smallest_eigenvalues(topology, smallest):
    assert_allclose(np.linalg.eigvalsh(metropolis_weights(topology))[0], smallest, atol=1e-12)


def test_diameters_and_degrees():
    known = {"ring-8": (4, 2), "torus": (3, 4), "cube": (3, 3), "star": (2, 5), "complete": (1, 4), "path": (3, 2)}
    for name, (diameter, degree) in known.items():
        assert (GRAPHS[name].diameter, GRAPHS[name].degrees.max()) == (diameter, degree), name
    assert exponential(16).degrees.tolist() == [7] * 16  # ±1, ±2, ±4, and 8 either way round


def test_every_graph_has_the_neighbours_of_its_definition_at_every_size():
    for n in range(1, 34):
        powers = [2**k for k in range(6) if 2**k < n]
        around = {ring: [1], exponential: powers, complete: range(1, n)}  # either way round
        for make, steps in around.items():
            for i, found in enumerate(make(n).neighbours):
                assert set(found) == {(i + way * s) % n for s in steps for way in (1, -1)} - {i}, (make, n)
        assert [set(found) for found in star(n).neighbours] == [set(range(1, n)), *[{0}] * (n - 1)]
    for rows, columns in [(1, 1), (1, 5), (2, 2), (2, 5), (3, 4), (5, 3)]:
        for i, found in enumerate(torus(rows, columns).neighbours):
            r, c = divmod(i, columns)
            near = {((r + s) % rows, c) for s in (1, -1)} | {(r, (c + s) % columns) for s in (1, -1)}
            assert set(found) == {a * columns + b for a, b in near} - {i}
    for dimension in range(5):
        for i, found in enumerate(hypercube(dimension).neighbours):
            assert list(found) == [j for j in range(2**dimension) if (i ^ j).bit_count() == 1]


def test_a_turn_is_a_permutation_and_all_turns_are_all_edges(graph):
    sent = []
    for senders in graph.senders:
        assert sorted(senders.tolist()) == list(range(graph.size))
        sent += [(int(sender), i) for i, sender in enumerate(senders) if sender != i]
    assert sorted(sent) == sorted([*graph.edges, *((j, i) for i, j in graph.edges)])
    assert len(graph.senders) == graph.degrees.max(initial=0)


@pytest.mark.parametrize("weights", ["metropolis", "constant", "optimal"])
def test_matrices_are_symmetric_stochastic_and_on_edges(graph, weights):
    make = {"metropolis": metropolis_weights, "constant": constant_weights, "optimal": optimal_weights}[weights]
    matrix = make(graph)
    assert_allclose(matrix, matrix.T, atol=1e-14)
    assert_allclose(matrix.sum(1), 1.0, atol=1e-12)
    assert (matrix[graph.laplacian + np.eye(graph.size) == 0] == 0).all()
    if weights == "constant":  # any other weight moves one end of the spectrum away from 0
        low, high = spectrum_ends(matrix)
        assert_allclose(low, -high, atol=1e-12)


def test_a_matrix_of_ones_own_is_used_to_its_last_digit():
    graph = GRAPHS["random"]
    matrix = metropolis_weights(graph)
    for given in (matrix, matrix.tolist()):
        assert_allclose(Gossip(graph, weights=given).dense(), matrix, atol=1e-15)


def test_optimal_weights_are_never_worse_and_known_where_all_edges_are_alike(graph):
    best = spectral_gap(optimal_weights(graph))
    assert best >= spectral_gap(metropolis_weights(graph)) - 1e-12
    assert best >= spectral_gap(constant_weights(graph)) - 1e-12
    if graph in (GRAPHS["ring-8"], GRAPHS["cube"], GRAPHS["complete"], GRAPHS["star"]):
        # Edge-transitive graphs: the best constant is the optimum (Boyd, Diaconis, Parrilo & Xiao 2009).
        assert_allclose(best, spectral_gap(constant_weights(graph)), atol=1e-3)


def test_optimal_weights_of_a_path_beat_every_point_of_a_grid():
    """Three edges of which two are alike by symmetry: the plane can be searched."""
    path = GRAPHS["path"]
    best = 0.0
    for outer in np.linspace(0.3, 1.0, 71):
        for inner in np.linspace(0.3, 1.0, 71):
            matrix = np.diag([1 - outer, 1 - outer - inner, 1 - outer - inner, 1 - outer])
            for i, j, w in ((0, 1, outer), (1, 2, inner), (2, 3, outer)):
                matrix[i, j] = matrix[j, i] = w
            best = max(best, spectral_gap(matrix))
    assert spectral_gap(optimal_weights(path)) >= best - 2e-3


@functools.cache
def averages(graph, rounds):
    """One program for every kappa."""
    every = lambda kappa, x: [Gossip(graph, method=m, kappa=kappa).average(x, rounds) for m in METHODS]  # noqa: E731
    return jax.jit(every)


@pytest.mark.parametrize("kappa", [1.0, 0.3])
def test_the_operator_is_the_polynomial_and_its_norm_the_contraction(compiled_graph, kappa):
    n, rounds = compiled_graph.size, 7
    methods = [Gossip(compiled_graph, method=method, kappa=kappa) for method in METHODS]
    operators = averages(compiled_graph, rounds)(kappa, np.eye(n))
    for gossip, operator in zip(methods, map(np.asarray, operators), strict=True):
        norm = np.linalg.norm(operator - np.full((n, n), 1 / n), 2)
        assert_allclose(operator.sum(0), 1.0, atol=1e-12)  # the mean is kept
        expected = float(gossip.contraction(rounds))
        if n == 1:
            continue
        low, high = np.linalg.eigvalsh(gossip.dense())[[0, -2]]
        half, middle = (high - low) / 2, (high + low) / 2
        if gossip.method == "chebyshev" and half > 1e-9:  # 1 / T_R((1 − m)/h), reached at both ends of the spectrum
            assert_allclose(expected, 1 / np.cosh(rounds * np.arccosh((1 - middle) / half)), rtol=1e-9)
        assert_allclose(norm, expected, rtol=1e-9, atol=1e-10)


def test_plain_accelerated_and_chebyshev_on_a_ring_of_32():
    """Twenty rounds; the numbers were computed once with numpy's matrices alone, Chebyshev's on [−λ, λ]."""
    factors = [float(Gossip(ring(32), method=method).contraction(20)) for method in METHODS]
    assert_allclose(factors[:2], [0.773, 0.159], atol=5e-4)
    # On [λ_n, λ_2] = [−1/3, …] instead of [−λ, λ] it is better than 0.0799.
    assert factors[2] < 0.0799


def test_chebyshev_is_the_best_polynomial():
    """No random perturbation of its coefficients with p(1) = 1 has a smaller maximum on the interval."""
    gossip = Gossip(ring(16), method="chebyshev")
    low, high = (float(end) for end in gossip.spectrum())
    grid, rounds = np.linspace(low, high, 400), 5
    nodes = np.cos((np.arange(rounds) + 0.5) * np.pi / rounds) * (high - low) / 2 + (high + low) / 2
    draw = np.random.default_rng(0)
    for _ in range(200):
        moved = nodes + draw.normal(size=rounds) * 0.02
        values = np.prod((grid[:, None] - moved) / (1 - moved), axis=1)
        assert np.abs(values).max() >= float(gossip.contraction(rounds)) * (1 - 1e-3)


def test_accelerated_gossip_expands_at_first_where_eigenvalues_are_negative_and_chebyshev_never():
    assert_allclose(float(Gossip(ring(64), method="accelerated").contraction(1)), 1.47, atol=5e-3)
    for rounds in range(1, 12):
        assert float(Gossip(ring(64), method="chebyshev").contraction(rounds)) < 1
        lazy = Gossip(ring(64), method="accelerated", kappa=0.5)
        # Liu & Morse's bound for W ⪰ 0, in the form of Ye et al. 2023
        bound = np.sqrt(14) * (1 - (1 - 1 / np.sqrt(2)) * np.sqrt(float(lazy.gap))) ** rounds
        assert float(lazy.contraction(rounds)) <= bound


def test_a_complete_graph_averages_in_one_round():
    values = jnp.asarray([1.0, 5.0, -3.0, 7.0, 0.0])
    for method in METHODS:
        assert_allclose(Gossip(complete(5), method=method).average(values, 1), 2.0, atol=1e-12)


def test_news_travels_one_edge_a_round(compiled_graph):
    """∂ x_j after r rounds / ∂ x_i before is 0 where j is more than r edges from i, and not 0 at r edges."""
    gossip = Gossip(compiled_graph, method="chebyshev")
    averaged = lambda x: [gossip.average(x, rounds) for rounds in (1, 2)]  # noqa: E731
    jacobians = jax.jit(jax.jacobian(averaged))(np.zeros(compiled_graph.size))
    for rounds, jacobian in zip((1, 2), map(np.asarray, jacobians), strict=True):
        distances = np.array([compiled_graph.distances(i) for i in range(compiled_graph.size)])
        assert (jacobian[distances > rounds] == 0).all()
        assert (np.abs(jacobian[distances == rounds]) > 1e-9).all()


def test_stacked_gathered_and_permuted_are_the_same(compiled_graph):
    draw = np.random.default_rng(1)
    tree = {
        "a": jnp.asarray(draw.normal(size=(compiled_graph.size, 3))),
        "b": jnp.asarray(draw.normal(size=(compiled_graph.size,))),
    }

    @jax.jit
    def run(tree):
        found = []
        for method in METHODS:
            gossip = Gossip(compiled_graph, method=method, kappa=0.7)
            gathered = eqx.tree_at(lambda g: g.matrix, gossip, None)
            peer = gossip.over("nodes")
            named = jax.vmap(lambda t, g=peer: g.average(t, 4), axis_name="nodes")
            found.append((gossip.average(tree, 4), gathered.average(tree, 4), named(tree)))
        return found

    for stacked, gathered, named in run(tree):
        for other in (gathered, named):
            jax.tree.map(lambda a, b: assert_allclose(a, b, atol=1e-12), stacked, other)


def test_renaming_nodes_renames_the_result():
    graph, order = GRAPHS["random"], np.random.default_rng(2).permutation(15)
    renamed = from_graph([(order[i], order[j]) for i, j in graph.edges])
    x = jnp.asarray(np.random.default_rng(3).normal(size=15))
    ours, theirs = Gossip(graph).average(x, 5), Gossip(renamed).average(jnp.zeros(15).at[order].set(x), 5)
    assert_allclose(theirs[order], ours, atol=1e-12)


def test_kappa_may_be_traced():
    x, traces = jnp.arange(8.0), []

    @jax.jit
    def run(kappa):
        traces.append(1)
        return Gossip(ring(8), kappa=kappa).average(x, 5)

    for kappa in (1.0, 0.4):
        assert_allclose(run(kappa), Gossip(ring(8), kappa=kappa).average(x, 5), atol=1e-12)
    assert len(traces) == 1


def test_topologies_are_equal_by_their_edges_and_mend_by_hand():
    assert ring(3) == complete(3)
    assert hash(ring(3)) == hash(complete(3))
    assert ring(5).without([(4, 0)]) == from_graph([(0, 1), (1, 2), (2, 3), (3, 4)])
    adjacency = np.zeros((3, 3))
    adjacency[0, 1] = adjacency[1, 0] = adjacency[1, 2] = adjacency[2, 1] = 1
    assert_array_equal(from_graph(adjacency).degrees, [1, 2, 1])
    assert isinstance(from_graph(adjacency), Topology)
