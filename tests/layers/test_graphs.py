"""Padded graphs: sums against NumPy's, padding and batching change nothing, numbering does not matter."""

import dataclasses
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laureate.layers import Graph, batch_graphs, make_graph, pad_graph, pad_to_bucket, segment_sum

RNG = np.random.default_rng(0)


def drawn(num_nodes=5, num_edges=9, seed=0) -> Graph:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, num_nodes, (2, num_edges))
    return make_graph({"x": rng.normal(size=(num_nodes, 3))}, rng.normal(size=num_edges), *ends)


def without_an_edge(graph: Graph) -> Graph:
    """One that does not count, between nodes that do."""
    return dataclasses.replace(graph, edge_mask=np.arange(graph.num_edges) != 1)


@jax.jit
def passed(graph):
    """One round of messages: x_j e_ij summed, for every node, and the graphs' means of it."""
    messages = graph.nodes["x"][graph.senders] * graph.edges[:, None]
    received = graph.to_receivers(messages)
    return received, graph.mean_to_receivers(messages), graph.of_graphs(received), graph.mean_of_graphs(received)


def by_hand(graph):
    x, e = np.asarray(graph.nodes["x"], float), np.asarray(graph.edges, float)
    received, number = np.zeros_like(x), np.zeros(len(x))
    for sender, receiver, weight in zip(graph.senders, graph.receivers, e, strict=True):
        received[receiver] += weight * x[sender]
        number[receiver] += 1
    return received, received / np.maximum(number, 1)[:, None], received.sum(0)[None], received.mean(0)[None]


def test_sums_and_means_are_those_of_a_loop():
    for seed in range(3):
        graph = drawn(seed=seed)
        for found, right in zip(passed(graph), by_hand(graph), strict=True):
            assert_allclose(found, right, atol=1e-5)


def test_padding_changes_nothing_and_what_stands_in_it_is_not_seen():
    graph = drawn()
    padded = pad_graph(graph, 9, 14)
    spoil = lambda mask, leaf: jnp.where(mask.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, jnp.nan)  # noqa: E731
    spoiled = Graph(
        {"x": spoil(padded.node_mask, padded.nodes["x"])},
        spoil(padded.edge_mask, padded.edges),
        *(padded.senders, padded.receivers, padded.graph_of, padded.node_mask, padded.edge_mask, 1),
    )
    for other in (padded, spoiled):
        for found, right in zip(passed(other), passed(graph), strict=True):
            assert_array_equal(found[: len(right)], right)


def test_a_batch_is_its_graphs_side_by_side():
    graphs = [drawn(5, 9, 1), drawn(3, 2, 2), drawn(4, 0, 3)]
    together = pad_to_bucket(batch_graphs([batch_graphs(graphs[:2]), graphs[2]]))
    received, mean, totals, means = passed(together)
    start = 0
    for number, graph in enumerate(graphs):
        alone = passed(graph)
        rows = slice(start, start + graph.num_nodes)
        assert_array_equal(received[rows], alone[0])
        assert_array_equal(mean[rows], alone[1])
        assert_allclose(totals[number], alone[2][0], atol=1e-6)
        assert_allclose(means[number], alone[3][0], atol=1e-6)
        start += graph.num_nodes
    assert totals.shape == (3, 3)


def test_batches_of_batches_are_the_batch_of_all_however_they_are_grouped():
    a, b, c, d = drawn(5, 9, 1), drawn(3, 2, 2), drawn(4, 0, 3), drawn(5, 9, 4)
    flat = batch_graphs([a, b, c, d])
    assert flat.num_graphs == 4
    assert_array_equal(flat.graph_of, np.repeat(np.arange(4), (5, 3, 4, 5)))
    grouped = [[[a, b], c, d], [a, [b, c, d]], [[a, b], [c, d]], [[a, [b, c]], d]]
    joined = lambda part: batch_graphs([joined(p) for p in part]) if isinstance(part, list) else part  # noqa: E731
    for whole in map(joined, grouped):
        assert whole.num_graphs == 4
        jax.tree.map(assert_array_equal, whole, flat)


def test_messages_may_be_numbers_vectors_or_tables():
    """Of three graphs, one of them without edges; a node or a graph that nothing leads to divides by one."""
    graph = batch_graphs([drawn(5, 9, 1), drawn(4, 0, 2), drawn(3, 4, 3)])
    shapes = ((), (3,), (2, 3))

    @jax.jit
    def every(graph, by_edge, by_node):
        of_edges = [(graph.to_receivers(m), graph.mean_to_receivers(m)) for m in by_edge]
        return of_edges, [(graph.of_graphs(v), graph.mean_of_graphs(v)) for v in by_node]

    by_edge, by_node = ([RNG.normal(size=(n, *shape)) for shape in shapes] for n in (13, 12))
    found = every(graph, *jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (by_edge, by_node)))
    places = (np.asarray(graph.receivers), 12), (np.repeat(np.arange(3), (5, 4, 3)), 3)
    for results, values, (place, number) in zip(found, (by_edge, by_node), places, strict=True):
        for (total, mean), value in zip(results, values, strict=True):
            expected = np.zeros((number, *value.shape[1:]))
            np.add.at(expected, place, value)
            count = np.maximum(np.bincount(place, minlength=number), 1).reshape(-1, *(1,) * (value.ndim - 1))
            assert_allclose(total, expected, atol=1e-5)
            assert_allclose(mean, expected / count, atol=1e-5)


def test_the_order_of_nodes_and_edges_does_not_matter():
    graph = drawn()
    nodes, edges = RNG.permutation(5), RNG.permutation(9)
    place = np.argsort(nodes)  # where each old node went
    other = make_graph(
        {"x": graph.nodes["x"][nodes]}, graph.edges[edges], place[graph.senders[edges]], place[graph.receivers[edges]]
    )
    assert_allclose(passed(other)[0], passed(graph)[0][nodes], atol=1e-6)
    assert_allclose(passed(other)[2], passed(graph)[2], atol=1e-5)


def test_the_gradient_by_finite_differences():
    with jax.enable_x64(True):
        graph = pad_to_bucket(drawn())
        x, toward = np.asarray(graph.nodes["x"]), RNG.normal(size=graph.nodes["x"].shape)

        def loss(x):
            return jnp.sum(jnp.sin(graph.to_receivers(x[graph.senders] * graph.edges[:, None])))

        step = 1e-6
        both = jax.jit(jax.value_and_grad(loss))
        expected = (both(x + step * toward)[0] - both(x - step * toward)[0]) / (2 * step)
        assert_allclose(np.vdot(both(x)[1], toward), expected, rtol=1e-6)


@pytest.mark.parametrize("half", [jnp.float16, jnp.bfloat16])
def test_half_precision_is_summed_in_float32(half):
    found = segment_sum(jnp.ones(4096, half), jnp.zeros(4096, jnp.int32), 1)
    assert (float(found[0]), found.dtype) == (4096.0, half)  # adding one by one stops at 2,048, or at 256


@pytest.mark.parametrize("half", [jnp.float16, jnp.bfloat16])
def test_means_of_half_precision_need_no_sum_that_it_holds(half):
    """A thousand values of a hundred: their sum is beyond float16, and their number is none of bfloat16."""
    many = make_graph(np.full(1003, 100.0), np.full(1003, 100.0), np.zeros(1003, int), np.zeros(1003, int))

    @jax.jit
    def means(values):
        return many.mean_to_receivers(values)[0], many.mean_of_graphs(values)[0]

    for found in means(jnp.full(1003, 100, half)):
        assert (float(found), found.dtype) == (100.0, half)


def test_a_bucket_has_room_and_few_programs_do_each_of_which_is_told(caplog, monkeypatch):
    monkeypatch.setattr("laureate.layers.graphs._SEEN", set())
    caplog.set_level(logging.INFO, "laureate")
    told = lambda: [record for record in caplog.records if record.name == "laureate.layers.graphs"]  # noqa: E731
    sizes = set()
    traces = []

    @jax.jit
    def total(graph):
        traces.append(1)
        return graph.to_receivers(graph.edges).sum()

    for edges in (17, 18, 20, 21, 25, 26, 30, 31, 39):
        padded = pad_to_bucket(make_graph(np.zeros(20), np.ones(edges), [0] * edges, [1] * edges))
        assert padded.num_nodes > 20
        assert edges <= padded.num_edges <= 1.25 * edges + 1
        assert float(total(padded)) == edges
        sizes.add((padded.num_nodes, padded.num_edges))
        assert len(told()) == len(traces)
        words = f"{padded.num_nodes} nodes and {padded.num_edges} edges are new here ({len(sizes)} shapes so far)"
        assert words in told()[-1].getMessage()
    assert len(sizes) == len(traces) <= 5
    assert {record.levelno for record in told()} == {logging.INFO}
    # Features of another type make another program; and where JAX tells what it compiles, so do we.
    small = [make_graph(np.zeros(n, int), np.ones(39), [0] * 39, [1] * 39) for n in (22, 21)]
    caplog.clear()
    with jax.log_compiles():
        padded = [pad_to_bucket(graph) for graph in (*small, batch_graphs(small))]
    assert [(record.name, record.levelno) for record in caplog.records] == [
        ("laureate.layers.graphs", logging.WARNING)
    ] * 2  # 22 and 21 nodes are one shape, and neither joining nor padding compiles anything itself
    assert padded[0].num_nodes == padded[1].num_nodes
    for ends in (padded[2].senders, padded[2].receivers):  # padding leads from the last node to itself
        assert set(np.asarray(ends)[78:].tolist()) == {padded[2].num_nodes - 1}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_graph(jnp.zeros(3), None, [0, 3], [1, 1]), r"Graph\.senders must be in 0 to 2; got \[3\]"),
        (lambda: make_graph(jnp.zeros(3), None, [0], [-1]), r"Graph\.receivers must be in 0 to 2; got \[-1\]"),
        (
            lambda: make_graph(jnp.zeros(3), None, [0, 1], [1]),
            r"Graph\.receivers must be as many as senders \(2\); got 1",
        ),
        (lambda: make_graph(jnp.zeros(3), None, [0.0], [1]), r"Graph\.senders must be one axis of integers"),
        (lambda: make_graph(None, None, [0], [1]), r"Graph\.nodes must be arrays with one leading axis"),
        (lambda: make_graph((jnp.zeros(3), jnp.zeros(2)), None, [0], [1]), r"Graph\.nodes must be arrays"),
        (
            lambda: make_graph(jnp.zeros(3), jnp.zeros(2), [0], [1]),
            r"Graph\.edges must be arrays with a leading axis of 1",
        ),
        (lambda: pad_graph(drawn(), 4, 9), r"pad_graph\.num_nodes must be >= 5; got 4"),
        (lambda: pad_graph(drawn(), 5, 10), r"pad_graph\.num_nodes must be >= 6; got 5"),
        (lambda: pad_graph(drawn(), 6, 8), r"pad_graph\.num_edges must be >= 9; got 8"),
        (lambda: pad_to_bucket(drawn(), 1.0), r"pad_to_bucket\.growth must be > 1; got 1\.0"),
        (lambda: batch_graphs([]), r"batch_graphs\.graphs must be one or more; got 0"),
        (lambda: batch_graphs([pad_to_bucket(drawn())]), r"batch_graphs\.graphs must be without padding"),
        (lambda: batch_graphs([drawn(), without_an_edge(drawn())]), r"must be without padding; got \[False, True\]"),
    ],
)
def test_wrong_graphs_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_nodes_without_features_and_without_edges():
    graph = pad_to_bucket(make_graph(None, None, [], [], num_nodes=3))
    assert_array_equal(graph.to_receivers(jnp.ones(graph.num_edges)), 0.0)
    assert graph.of_graphs(jnp.ones(graph.num_nodes)).tolist() == [3.0]
