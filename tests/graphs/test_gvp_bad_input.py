"""Wrong input is refused by its name, with the rule, the value and a remedy; nothing is compiled for it."""

import jax
import numpy as np
import pytest

from laureate import graphs as g
from laureate.problems.points import PointClouds
from laureate.problems.proteins import Backbones, build_backbone, secondary_structure

KEY = jax.random.key(0)
NODES = np.ones((3, 4), np.float32), np.ones((3, 2, 3), np.float32)
EDGES = np.ones((2, 5), np.float32), np.ones((2, 1, 3), np.float32)
GRAPH = g.make_graph(NODES, EDGES, [0, 1], [1, 0])
COORDS = np.cumsum(np.ones((6, 4, 3)), axis=0)


def gvp():
    return jax.eval_shape(lambda: g.GVP(KEY, (4, 2), (3, 1)))


def called(make, *arguments):
    """Shapes alone: the rules are about them."""
    return jax.eval_shape(lambda: make()(*arguments))


REFUSED = {
    "axes of vectors": (
        lambda: called(lambda: g.GVP(KEY, (4, 2), (3, 1)), NODES[0], NODES[1].swapaxes(1, 2)),
        r"GVP.features must be a pair of arrays: scalars \[..., s\] and vectors \[..., v, 3\].*swap the last two axes",
    ),
    "numbers of features": (
        lambda: called(lambda: g.GVP(KEY, (4, 2), (3, 1)), NODES[0][:, :3], NODES[1]),
        r"GVP.features must be of 4 scalars and 2 vectors; got \(3, 2\)",
    ),
    "no vectors": (
        lambda: called(lambda: g.VectorLayerNorm(4), NODES[0], NODES[0][:2]),
        r"VectorLayerNorm.features.*shape is \[..., 0, 3\]",
    ),
    "dims": (lambda: g.GVP(KEY, 4, (3, 1)), r"GVP.in_dims must be two integers >= 0: scalars, vectors; got 4"),
    "negative dims": (lambda: g.GVP(KEY, (4, 1), (3, -1)), r"GVP.out_dims must be two integers"),
    "hidden": (lambda: g.GVP(KEY, (4, 1), (3, 1), num_hidden=0), r"GVP.num_hidden must be an integer >= 1; got 0"),
    "hidden without a map": (
        lambda: g.GVP(KEY, (4, 1), (3, 1), num_hidden=4, map_vectors=False),
        r"GVP.num_hidden must be None without a map of vectors; got 4",
    ),
    "dropout": (lambda: g.VectorDropout(1.0), r"VectorDropout.rate must be in \[0, 1\); got 1.0"),
    "messages": (lambda: g.GVPConv(KEY, (1, 1), (1, 1), (1, 1), num_message=0), r"GVPConv.num_message must be"),
    "aggregate": (
        lambda: g.GVPConv(KEY, (1, 1), (1, 1), (1, 1), aggregate="max"),
        r"GVPConv.aggregate must be 'mean' or 'sum'; got 'max'",
    ),
    "edges of another width": (
        lambda: called(lambda: g.GVPConvLayer(KEY, (4, 2), (3, 1)), GRAPH),
        r"GVPConv.edges.features must be of 3 scalars and 1 vectors; got \(5, 1\)",
    ),
    "nodes of another width": (
        lambda: called(lambda: g.GVPNetwork(KEY, (6, 3), (5, 1), (1, 0), node_dims=(2, 1), num_layers=0), GRAPH),
        r"GVPNetwork.nodes.features must be of 6 scalars and 3 vectors; got \(4, 2\)",
    ),
    "layers": (lambda: g.GVPNetwork(KEY, (1, 1), (1, 1), (1, 1), num_layers=-1), r"GVPNetwork.num_layers must be"),
    "layers of design": (lambda: g.DesignModel(KEY, num_layers=0), r"DesignModel.num_layers must be an integer >= 1"),
    "block": (lambda: g.GVPConvLayer(KEY, (1, 1), (1, 1), num_feedforward=0), r"GVPConvLayer.num_feedforward must be"),
    "sender out of range": (
        lambda: g.make_graph(NODES, EDGES, [0, 3], [1, 0]),
        r"Graph.senders must be in 0 to 2; got \[3\]",
    ),
    "more edges than the padding holds": (
        lambda: g.pad_graph(GRAPH, 8, 1),
        r"pad_graph.num_edges must be >= 2; got 1. More room is needed",
    ),
    "residues": (
        lambda: called(lambda: lambda graph: g.QualityModel(KEY, (4, 2), (5, 1))(graph), GRAPH),
        r"QualityModel.residues must be an integer in 0 to 19 for each of 3 nodes; got None",
    ),
    "unknown residue": (
        lambda: called(lambda: lambda graph: g.DesignModel(KEY, (4, 2), (5, 1))(graph, np.array([0, -1, 3])), GRAPH),
        r"DesignModel.residues must be .*; got \[-1\]",
    ),
    "rotation": (lambda: g.rotate(NODES, np.eye(2)), r"rotate.matrix must be \[3, 3\]; got \(2, 2\)"),
    "CA alone": (
        lambda: g.featurize_backbone(COORDS[:, 1]),
        r"featurize_backbone.coords must be \[length, 4, 3\] or \[length, 3, 3\]; got \(6, 3\). Atoms in the order N",
    ),
    "one residue": (
        lambda: g.featurize_backbone(COORDS[:1]),
        r"featurize_backbone.coords must be of two or more whole residues; got 1",
    ),
    "all nan": (
        lambda: g.featurize_backbone(COORDS * np.nan),
        r"of two or more whole residues; got 0. 6 of 6 have an N, CA or C that is not finite",
    ),
    "words": (lambda: g.featurize_backbone(COORDS.astype(str)), r"featurize_backbone.coords must be \[length"),
    "neighbours": (
        lambda: g.featurize_backbone(COORDS, num_neighbours=0),
        r"featurize_backbone.num_neighbours must be an integer >= 1; got 0",
    ),
    "chains": (lambda: g.featurize_backbone(COORDS, chains=["A"]), r"featurize_backbone.chains must be one a residue"),
    "numbers": (
        lambda: g.featurize_backbone(COORDS, numbers=np.ones(6)),
        r"featurize_backbone.numbers must be integers; got",
    ),
    "angles": (lambda: build_backbone(np.ones(4), np.ones(3)), r"build_backbone.psi must be of phi's shape"),
    "atoms of states": (lambda: secondary_structure(COORDS[:, :3]), r"secondary_structure.coords must be"),
    "data": (lambda: Backbones("cath"), r"Backbones.data must be 'protein-chains' or 'made'; got 'cath'"),
    "points": (lambda: PointClouds(2, 2, 1), r"PointClouds.num_points must be >= 3"),
    "neighbours of points": (lambda: PointClouds(2, 5, 5), r"PointClouds.num_neighbors must be in 1 to 4; got 5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_coordinates_may_be_integers_but_not_traced():
    graph, _ = g.featurize_backbone(4 * np.cumsum(np.ones((6, 4, 3), int), axis=0), num_neighbours=2)
    assert graph.nodes[0].dtype == np.float32
    with pytest.raises(ValueError, match="Not inside jit"):
        jax.eval_shape(lambda x: g.featurize_backbone(x)[0], np.ones((4, 4, 3)))
