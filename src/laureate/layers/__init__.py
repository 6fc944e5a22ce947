"""Layers and statistics that several areas need and Equinox lacks; all state is explicit, and a value."""

from laureate.layers.convolution import Convolution, convolve, max_pool
from laureate.layers.graphs import Graph, batch_graphs, make_graph, pad_graph, pad_to_bucket, segment_sum
from laureate.layers.normalisation import BatchNorm, GroupNorm
from laureate.layers.residual import ResidualBlock, ResNet
from laureate.layers.running import RunningStatistics
from laureate.layers.spectral import SpectralInfo, SpectralNorm, SpectralState

__all__ = [
    "BatchNorm",
    "Convolution",
    "Graph",
    "GroupNorm",
    "ResNet",
    "ResidualBlock",
    "RunningStatistics",
    "SpectralInfo",
    "SpectralNorm",
    "SpectralState",
    "batch_graphs",
    "convolve",
    "make_graph",
    "max_pool",
    "pad_graph",
    "pad_to_bucket",
    "segment_sum",
]
