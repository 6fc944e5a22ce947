"""Networks on graphs: geometric vector perceptrons, whose outputs turn with their input, and protein backbones.

Graphs are `Graph`, of static shapes: `make_graph` checks, `batch_graphs` joins, `pad_to_bucket` pads to one of a few
sizes, so that a new size seldom compiles.
"""

from laureate.graphs.backbone import BackboneReport, backbone_features, featurize_backbone
from laureate.graphs.backbone_files import AMINO_ACIDS, BackboneResult, read_backbone
from laureate.graphs.convert import from_jraph, from_networkx, to_jraph, to_networkx, to_numpy
from laureate.graphs.gvp import GVP, VectorDropout, VectorLayerNorm, rotate
from laureate.graphs.gvp_layers import GVPConv, GVPConvLayer
from laureate.graphs.gvp_models import DesignModel, GVPNetwork, QualityModel, quality_loss
from laureate.layers import Graph, batch_graphs, make_graph, pad_graph, pad_to_bucket, segment_sum

__all__ = [
    "AMINO_ACIDS",
    "GVP",
    "BackboneReport",
    "BackboneResult",
    "DesignModel",
    "GVPConv",
    "GVPConvLayer",
    "GVPNetwork",
    "Graph",
    "QualityModel",
    "VectorDropout",
    "VectorLayerNorm",
    "backbone_features",
    "batch_graphs",
    "featurize_backbone",
    "from_jraph",
    "from_networkx",
    "make_graph",
    "pad_graph",
    "pad_to_bucket",
    "quality_loss",
    "read_backbone",
    "rotate",
    "segment_sum",
    "to_jraph",
    "to_networkx",
    "to_numpy",
]
