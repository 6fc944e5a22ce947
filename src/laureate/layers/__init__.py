"""Layers and statistics that several areas need and Equinox lacks; all state is explicit, and a value."""

from laureate.layers.convolution import Convolution, convolve, max_pool
from laureate.layers.normalisation import BatchNorm, GroupNorm
from laureate.layers.residual import ResidualBlock, ResNet
from laureate.layers.running import RunningStatistics
from laureate.layers.spectral import SpectralInfo, SpectralNorm, SpectralState

__all__ = [
    "BatchNorm",
    "Convolution",
    "GroupNorm",
    "ResNet",
    "ResidualBlock",
    "RunningStatistics",
    "SpectralInfo",
    "SpectralNorm",
    "SpectralState",
    "convolve",
    "max_pool",
]
