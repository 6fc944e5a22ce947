"""Graphs with a geometry: learned simulators on meshes.

Graphs are `laureate.layers.Graph`: padded, with masks, many in one. A mesh becomes one by `mesh_graph`.
"""

from laureate.graphs.integrators import AbstractIntegrator, FirstOrder, SecondOrder
from laureate.graphs.mesh import MeshNodes, NodeKind, barycentric, edges_from_cells, mesh_graph, read_mesh
from laureate.graphs.mesh_graph_net import MeshGraphNet, Perceptron
from laureate.graphs.mesh_simulator import (
    MeshFeatures,
    MeshSimulator,
    MeshStatistics,
    SimulatorInfo,
    free_nodes,
    make_simulator,
)
from laureate.graphs.mesh_training import MeshTrainer, TrainerInfo, TrainerState, fit_simulator, windows_of
from laureate.graphs.noise import TrainingNoise
from laureate.graphs.normalisers import Normaliser
from laureate.graphs.radius import WorldEdges, check_room, radius_edges
from laureate.graphs.rollout import RolloutInfo, relative_errors, rollout, rollout_with

__all__ = [
    "AbstractIntegrator",
    "FirstOrder",
    "MeshFeatures",
    "MeshGraphNet",
    "MeshNodes",
    "MeshSimulator",
    "MeshStatistics",
    "MeshTrainer",
    "NodeKind",
    "Normaliser",
    "Perceptron",
    "RolloutInfo",
    "SecondOrder",
    "SimulatorInfo",
    "TrainerInfo",
    "TrainerState",
    "TrainingNoise",
    "WorldEdges",
    "barycentric",
    "check_room",
    "edges_from_cells",
    "fit_simulator",
    "free_nodes",
    "make_simulator",
    "mesh_graph",
    "radius_edges",
    "read_mesh",
    "relative_errors",
    "rollout",
    "rollout_with",
    "windows_of",
]
