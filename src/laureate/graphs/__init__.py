"""Networks on graphs: geometric vector perceptrons, whose outputs turn with their input, and simulators on meshes.

Graphs are `Graph`, of static shapes: `make_graph` checks, `batch_graphs` joins, `pad_to_bucket` pads to one of a few
sizes, so that a new size seldom compiles, and tells when one does. A backbone becomes one by `featurize_backbone`, a
mesh by `mesh_graph`.
"""

from laureate.graphs.backbone import BackboneReport, backbone_features, featurize_backbone
from laureate.graphs.backbone_files import AMINO_ACIDS, BackboneResult, read_backbone
from laureate.graphs.convert import from_jraph, from_networkx, to_jraph, to_networkx, to_numpy
from laureate.graphs.gvp import GVP, VectorDropout, VectorLayerNorm, rotate
from laureate.graphs.gvp_layers import GVPConv, GVPConvLayer
from laureate.graphs.gvp_models import DesignModel, GVPNetwork, QualityModel, quality_loss
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
from laureate.layers import Graph, batch_graphs, make_graph, pad_graph, pad_to_bucket, segment_sum

__all__ = [
    "AMINO_ACIDS",
    "GVP",
    "AbstractIntegrator",
    "BackboneReport",
    "BackboneResult",
    "DesignModel",
    "FirstOrder",
    "GVPConv",
    "GVPConvLayer",
    "GVPNetwork",
    "Graph",
    "MeshFeatures",
    "MeshGraphNet",
    "MeshNodes",
    "MeshSimulator",
    "MeshStatistics",
    "MeshTrainer",
    "NodeKind",
    "Normaliser",
    "Perceptron",
    "QualityModel",
    "RolloutInfo",
    "SecondOrder",
    "SimulatorInfo",
    "TrainerInfo",
    "TrainerState",
    "TrainingNoise",
    "VectorDropout",
    "VectorLayerNorm",
    "WorldEdges",
    "backbone_features",
    "barycentric",
    "batch_graphs",
    "check_room",
    "edges_from_cells",
    "featurize_backbone",
    "fit_simulator",
    "free_nodes",
    "from_jraph",
    "from_networkx",
    "make_graph",
    "make_simulator",
    "mesh_graph",
    "pad_graph",
    "pad_to_bucket",
    "quality_loss",
    "radius_edges",
    "read_backbone",
    "read_mesh",
    "relative_errors",
    "rollout",
    "rollout_with",
    "rotate",
    "segment_sum",
    "to_jraph",
    "to_networkx",
    "to_numpy",
    "windows_of",
]
