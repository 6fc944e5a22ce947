"""Settings away from their defaults do what they say, and every key is used once."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from meshes_drawn import drawn

from laureate.graphs import (
    DesignModel,
    GVPConvLayer,
    GVPNetwork,
    QualityModel,
    batch_graphs,
    make_graph,
    pad_graph,
    quality_loss,
)
from laureate.layers import Graph
from laureate.testing import KeyRecorder

KEY = jax.random.key(0)
RNG = np.random.default_rng(2)


def draw(rows, scalars, vectors):
    return tuple(np.asarray(RNG.normal(size=shape), np.float32) for shape in ((rows, scalars), (rows, vectors, 3)))


GRAPH = make_graph(draw(4, 2, 1), draw(5, 2, 1), [1, 2, 0, 3, 3], [0, 0, 1, 1, 2])


def test_dropout_draws_anew_in_every_layer_and_place():
    dims = {"node_dims": (4, 2), "edge_dims": (2, 1), "num_layers": 2, "num_message": 1, "num_feedforward": 1}

    @eqx.filter_jit
    def found(key):
        network = GVPNetwork(KEY, (2, 1), (2, 1), (3, 1), dropout=0.5, **dims)
        return network(GRAPH, key), network(GRAPH)

    with KeyRecorder() as recorder:
        dropped, whole = found(jax.random.key(1))
        assert not recorder.reused()
    assert all(np.any(np.abs(one - two) > 1e-3) for one, two in zip(dropped, whole, strict=True))


class Passed:
    """A layer that changes nothing and writes down its name, its key, and whether it was given sources."""

    def __init__(self, name, book):
        self.name, self.book = name, book

    def __call__(self, graph, key, sources=None, use=None):
        self.book.append((self.name, key, sources is not None and use is not None))
        return graph


@pytest.mark.parametrize("model", ["network", "design"])
def test_every_layer_is_passed_once_with_or_without_keys(model):
    """Of shapes alone: nothing is compiled."""
    book, sizes = [], {"node_dims": (4, 2), "edge_dims": (2, 1), "num_layers": 3}
    residues = np.zeros(4, int)

    def called(key):
        if model == "network":
            made = GVPNetwork(KEY, (2, 1), (2, 1), (3, 1), **sizes)
            layers = tuple(Passed(f"layer {at}", book) for at in range(3))
            return eqx.tree_at(lambda one: one.layers, made, layers)(GRAPH, key)
        made = DesignModel(KEY, (2, 1), (2, 1), **sizes)
        layers = [tuple(Passed(f"{part} {at}", book) for at in range(3)) for part in ("encoder", "decoder")]
        return eqx.tree_at(lambda one: (one.encoder, one.decoder), made, layers)(GRAPH, residues, key)

    wanted = {"network": ["layer"], "design": ["encoder", "decoder"]}[model]
    names = [f"{part} {at}" for part in wanted for at in range(3)]
    eqx.filter_eval_shape(called, None)
    assert [row[0] for row in book] == names
    assert all(key is None for _, key, _ in book)
    assert [sources for *_, sources in book] == [name.startswith("decoder") for name in names]
    book.clear()
    eqx.filter_eval_shape(called, jax.random.key(1))
    assert [row[0] for row in book] == names
    assert all(key is not None for _, key, _ in book)


def test_counts_and_words_reach_the_layers():
    how = {"num_message": 2, "num_feedforward": 3, "aggregate": "sum", "dropout": 0.25, "num_hidden": 5}
    made = [
        eqx.filter_eval_shape(lambda: GVPConvLayer(KEY, (4, 2), (2, 1), **how)),
        eqx.filter_eval_shape(lambda: GVPNetwork(KEY, (2, 1), (2, 1), (3, 1), node_dims=(4, 2), **how)).layers[1],
        eqx.filter_eval_shape(lambda: QualityModel(KEY, (2, 1), (2, 1), node_dims=(4, 2), **how)).network.layers[2],
    ]
    for layer in made:
        assert len(layer.conv.message) == 2
        assert len(layer.feedforward) == 3
        assert layer.conv.aggregate == "sum"
        assert layer.dropout.rate == 0.25
        assert layer.conv.message[0].hidden_map.shape[0] == 5
        assert [gvp.activation is None for gvp in layer.conv.message] == [False, True]
        assert [gvp.out_dims for gvp in layer.feedforward] == [(16, 4), (16, 4), (4, 2)]


@pytest.mark.parametrize("kind", [np.float16, jnp.bfloat16, np.float64])
def test_half_precision_goes_through_every_layer(kind):
    """And double: of shapes and types alone. One number of another type in a layer, and all later nodes have it."""
    half = lambda leaf: leaf.astype(kind) if eqx.is_inexact_array(leaf) else leaf  # noqa: E731
    settings: dict = {"node_dims": (4, 2), "edge_dims": (2, 1), "num_layers": 1}
    models = {
        "layer": lambda: GVPConvLayer(KEY, (2, 1), (2, 1), dropout=0.5),
        "gated": lambda: GVPConvLayer(KEY, (2, 1), (2, 1), gated=True, aggregate="sum"),
        "network": lambda: GVPNetwork(KEY, (2, 1), (2, 1), (3, 1), **settings),
        "quality": lambda: QualityModel(KEY, (2, 1), (2, 1), with_residues=False, **settings),
        "design": lambda: DesignModel(KEY, (2, 1), (2, 1), **settings),
    }
    with jax.enable_x64(True):
        graph = replace(GRAPH, nodes=jax.tree.map(half, GRAPH.nodes), edges=jax.tree.map(half, GRAPH.edges))
        for name, make in models.items():
            more = (np.zeros(4, int),) if name == "design" else ()
            found = eqx.filter_eval_shape(lambda make=make, more=more: jax.tree.map(half, make())(graph, *more))
            found = found.nodes if isinstance(found, Graph) else found
            assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {np.dtype(kind)}, name


def test_the_loss_is_linear_beyond_its_delta():
    found = jax.jit(lambda predicted: quality_loss(predicted, jnp.zeros((1, 2)), delta=0.5))(np.float32([[2.0, 0.25]]))
    np.testing.assert_allclose(found, 0.5 * 1.75 + 0.25**2 / 2 + 0.5 * 1.5, rtol=1e-6)


def test_a_score_is_of_the_residues_of_its_own_graph():
    """A network that shows its scalars; two graphs and padding, whose residues count nothing."""
    nodes, edges = draw(4, 2, 1), draw(3, 2, 1)
    graphs = [make_graph(nodes, edges, [1, 2, 0], [0, 0, 1]), make_graph(nodes, edges, [1, 2, 0], [0, 0, 1])]
    graph = pad_graph(batch_graphs(graphs), 10, 8)
    residues = np.array([3, 0, 19, 3, 3, 5, 19, 3, 8, 8])
    model = drawn(lambda: QualityModel(KEY, (2, 1), (2, 1), node_dims=(22, 1), num_layers=0))
    model = eqx.tree_at(lambda one: one.network, model, lambda graph, _: graph.nodes)
    found = eqx.filter_jit(lambda model: model(graph, residues))(model)
    table, hidden, bias, last = map(np.asarray, (model.embedding, model.hidden, model.hidden_bias, model.last))
    for score, own in zip(found, (residues[:4], residues[4:8]), strict=False):
        mean = np.maximum(np.concatenate([nodes[0], table[own]], 1), 0).mean(0)
        wanted = 0.5 + np.maximum(hidden @ mean + bias, 0) @ last
        np.testing.assert_allclose(score, wanted, atol=2e-6)  # of terms near 1
