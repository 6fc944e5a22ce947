"""A row for every network on graphs; ``laureate.testing`` has the checks."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from laureate.graphs import (
    GVP,
    DesignModel,
    GVPConv,
    GVPConvLayer,
    GVPNetwork,
    QualityModel,
    VectorLayerNorm,
    make_graph,
)
from laureate.testing import check_graph_network

RNG = np.random.default_rng(0)
SENDERS, RECEIVERS = np.array([1, 2, 3, 4, 0, 2, 3, 1]), np.array([0, 0, 1, 2, 3, 4, 4, 2])


def draw(rows, scalars, vectors):
    return tuple(np.asarray(RNG.normal(size=shape), np.float32) for shape in ((rows, scalars), (rows, vectors, 3)))


GRAPH = make_graph(draw(5, 3, 2), draw(8, 4, 1), SENDERS, RECEIVERS)
RESIDUES = np.array([3, 0, 19, 7, 7])
SMALL = {"node_dims": (4, 2), "edge_dims": (3, 1), "num_layers": 1}
MADE = {
    "gvp": (lambda key: GVP(key, (3, 2), (4, 3)), lambda gvp, graph: gvp(*graph.nodes)),
    "gated": (lambda key: GVP(key, (3, 2), (4, 3), gated=True), lambda gvp, graph: gvp(*graph.nodes)),
    "norm": (lambda key: VectorLayerNorm(3), lambda norm, graph: norm(*graph.nodes)),
    "conv": (lambda key: GVPConv(key, (3, 2), (4, 3), (4, 1), aggregate="sum"), None),
    "layer": (lambda key: GVPConvLayer(key, (3, 2), (4, 1)), None),
    "network": (lambda key: GVPNetwork(key, (3, 2), (4, 1), (2, 1), **SMALL), None),
    "quality": (
        lambda key: QualityModel(key, (3, 2), (4, 1), with_residues=False, **SMALL),
        # A graph's score, once a node: rows as the others have.
        lambda model, graph: (model(graph)[graph.graph_of % graph.num_graphs][:, None], graph.nodes[1][:, :0]),
    ),
    "design": (
        lambda key: DesignModel(key, (3, 2), (4, 1), **SMALL),
        lambda model, graph: (model(graph, np.resize(RESIDUES, graph.num_nodes)), graph.nodes[1][:, :0]),
    ),
}
SKIP = {"design": ("order",), "norm": ()}  # the order of nodes is the order of design
TYPES = {GVP, DesignModel, GVPConv, GVPConvLayer, GVPNetwork, QualityModel, VectorLayerNorm}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in ("conv", "quality", "gated", "layer") else [])
        for name in MADE
    ],
)
def test_graph_network(name):
    make, call = MADE[name]
    network, other = (eqx.filter_jit(make)(jax.random.key(seed)) for seed in (0, 1))
    others = [] if name == "norm" else [other]
    check_graph_network(network, GRAPH, call=call, others=others, equivariant=True, skip=SKIP.get(name, ()))


def test_a_bias_on_vectors_is_found():
    """The fault of the authors' first code."""

    class Biased(eqx.Module):
        inner: GVP

        def __call__(self, graph):
            scalars, vectors = self.inner(*graph.nodes)
            return replace(graph, nodes=(scalars, vectors + 0.1))

    network = Biased(eqx.filter_jit(GVP)(jax.random.key(0), (3, 2), (4, 3)))
    with pytest.raises(AssertionError, match=r"breaks 'equivariance'.*no bias"):
        check_graph_network(network, GRAPH, equivariant=True)
