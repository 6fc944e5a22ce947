"""Models made small: scalar and product quantisation, training that prepares for it, and files that really are small.

``quantize`` any model and ``save`` it; train with ``quant_noise`` in your loss, so that it loses little by that.
"""

from laureate.compression.arrays import QuantizedArray
from laureate.compression.files import load, save
from laureate.compression.iterative import IterativeInfo, IterativeQuantization, IterativeState
from laureate.compression.kmeans import Clusters, kmeans, nearest
from laureate.compression.noise import NoiseState, WeightState, excess, quant_noise, refresh
from laureate.compression.packing import pack, unpack
from laureate.compression.product import Codebook, ProductQuantizer
from laureate.compression.quantized import Report, Row, dequantize, expected_bytes, freeze, package, quantize
from laureate.compression.quantizer import Quantizer
from laureate.compression.scalar import Grid, ScalarQuantizer
from laureate.compression.selection import Rules, match

__all__ = [
    "Clusters",
    "Codebook",
    "Grid",
    "IterativeInfo",
    "IterativeQuantization",
    "IterativeState",
    "NoiseState",
    "ProductQuantizer",
    "QuantizedArray",
    "Quantizer",
    "Report",
    "Row",
    "Rules",
    "ScalarQuantizer",
    "WeightState",
    "dequantize",
    "excess",
    "expected_bytes",
    "freeze",
    "kmeans",
    "load",
    "match",
    "nearest",
    "pack",
    "package",
    "quant_noise",
    "quantize",
    "refresh",
    "save",
    "unpack",
]
