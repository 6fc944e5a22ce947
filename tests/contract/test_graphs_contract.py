"""A row for every network, simulator and trainer on graphs; ``laureate.testing`` has the checks."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import meshes_drawn
import numpy as np
import optax
import pytest
from row_types import of_rows

from laureate.graphs import (
    GVP,
    DesignModel,
    FirstOrder,
    GVPConv,
    GVPConvLayer,
    GVPNetwork,
    MeshTrainer,
    QualityModel,
    SecondOrder,
    TrainingNoise,
    VectorLayerNorm,
    make_graph,
    make_simulator,
    mesh_graph,
)
from laureate.testing import check_graph_network, check_mesh_trainer, check_simulator

RNG = np.random.default_rng(0)
SENDERS, RECEIVERS = np.array([1, 2, 3, 4, 0, 2, 3, 1]), np.array([0, 0, 1, 2, 3, 4, 4, 2])


def draw(rows, scalars, vectors):
    return tuple(np.asarray(RNG.normal(size=shape), np.float32) for shape in ((rows, scalars), (rows, vectors, 3)))


KEY = jax.random.key(0)
GRAPH = make_graph(draw(5, 3, 2), draw(8, 4, 1), SENDERS, RECEIVERS)
RESIDUES = np.array([3, 0, 19, 7, 7])
SMALL = {"node_dims": (4, 2), "edge_dims": (3, 1), "num_layers": 1, "num_message": 2, "num_feedforward": 1}
MADE = {
    "gvp": (partial(GVP, KEY, (3, 2), (4, 3)), lambda gvp, graph: gvp(*graph.nodes)),
    "gated": (partial(GVP, KEY, (3, 2), (4, 3), gated=True), lambda gvp, graph: gvp(*graph.nodes)),
    "norm": (partial(VectorLayerNorm, 3), lambda norm, graph: norm(*graph.nodes)),
    "conv": (partial(GVPConv, KEY, (3, 2), (4, 3), (4, 1), aggregate="sum"), None),
    "layer": (partial(GVPConvLayer, KEY, (3, 2), (4, 1)), None),
    "network": (partial(GVPNetwork, KEY, (3, 2), (4, 1), (2, 1), **SMALL), None),
    "quality": (
        partial(QualityModel, KEY, (3, 2), (4, 1), with_residues=False, **SMALL),
        # A graph's score, once a node: rows as the others have.
        lambda model, graph: (model(graph)[graph.graph_of % graph.num_graphs][:, None], graph.nodes[1][:, :0]),
    ),
    "design": (
        partial(DesignModel, KEY, (3, 2), (4, 1), **SMALL),
        lambda model, graph: (model(graph, np.resize(RESIDUES, graph.num_nodes)), graph.nodes[1][:, :0]),
    ),
}
SKIP = {"design": ("order",), "norm": ()}  # the order of nodes is the order of design


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name == "gated" else []) for name in MADE],
)
def test_graph_network(name):
    make, call = MADE[name]
    network, other = (meshes_drawn.drawn(make, seed) for seed in (0, 1))
    others = [] if name == "norm" else [other]
    more = {"skip": SKIP.get(name, ()), "unused": (".dropout.rate",)}  # without a key nothing is dropped
    check_graph_network(network, GRAPH, call=call, others=others, equivariant=True, **more)


def test_a_bias_on_vectors_is_found():
    """The fault of the authors' first code."""

    class Biased(eqx.Module):
        inner: GVP

        def __call__(self, graph):
            scalars, vectors = self.inner(*graph.nodes)
            return replace(graph, nodes=(scalars, vectors + 0.1))

    network = Biased(meshes_drawn.drawn(lambda: GVP(jax.random.key(0), (3, 2), (4, 3))))
    with pytest.raises(AssertionError, match=r"breaks 'equivariance'.*no bias"):
        check_graph_network(network, GRAPH, equivariant=True)


POSITIONS = np.array([[0.0, 0], [1, 0], [0, 1], [1.1, 1], [0.5, 1.7]])
MESH = mesh_graph(POSITIONS, [[0, 1, 2], [2, 1, 3], [2, 3, 4]], kinds=[3, 0, 0, 5, 0])
FIRST = {"latent": 6, "num_steps": 2, "num_hidden_layers": 1, "scripted": True}
SECOND = FIRST | {"spaces": "both", "world_radius": 1.6, "max_world_edges": 12}


SIMULATORS = {
    "first": (FirstOrder(), FIRST, RNG.normal(size=(1, 5, 2))),
    "second": (SecondOrder(), SECOND, POSITIONS + 0.1 * RNG.normal(size=(2, 5, 2))),
}
OPTIMISER = optax.adam(0.01)
TRAINERS = [
    MeshTrainer(OPTIMISER, TrainingNoise(np.float32(sigma), np.float32(gamma)))
    for sigma, gamma in ((0.1, 0.1), (0.2, 0.1), (0.1, 1.0))
]
SIMULATOR: type = make_simulator.__annotations__["return"]
TYPES = of_rows("test_graph_network", MADE, lambda row: row[0].func) | {"test_trainer": {type(TRAINERS[0])}}
TYPES |= of_rows("test_simulator", SIMULATORS, lambda row: SIMULATOR)


@pytest.mark.parametrize("name", SIMULATORS)
def test_simulator(name):
    integrator, settings, frames = SIMULATORS[name]
    simulator = meshes_drawn.simulator(integrator, MESH, 2, ready=True, **settings)
    assert type(simulator) is SIMULATOR
    # Without edges of contact there is nothing that a radius could reach.
    check_simulator(simulator, MESH, frames, unused=() if simulator.max_world_edges else (".world_radius",))


def test_trainer():
    windows = RNG.normal(size=(3, 2, 5, 2))
    simulator = meshes_drawn.simulator(FirstOrder(), MESH, 2, **FIRST)
    check_mesh_trainer(TRAINERS[0], simulator, MESH, windows, others=TRAINERS[1:])
