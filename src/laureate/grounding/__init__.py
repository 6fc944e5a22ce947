"""Grounding: which part of an image does a phrase speak of, and where should language enter a vision network?

Images and feature maps are batches, ``[b, height, width, channels]``; a phrase is a vector, ``[b, d]``. Put a
`LanguageFilter` (or `FiLM`, `Concatenation`: the same call) on any feature map of your own, a `LanguageUNet` on top of
your own backbone, or train a small `Segmenter` from nothing.
"""

from laureate.grounding.metrics import LEVELS, THRESHOLDS, MaskCounts, choose_threshold, count_masks, overlaps
from laureate.grounding.modulation import (
    AbstractModulation,
    Concatenation,
    FiLM,
    LanguageFilter,
    filter_each,
    normalise_kernels,
)
from laureate.grounding.segmentation import Segmenter, multiscale_loss, resize_nearest
from laureate.grounding.strides import double, halve
from laureate.grounding.text import PhraseEncoder, Tokens, Vocabulary
from laureate.grounding.training import FitInfo, Referred, fit, make_examples, predict, train
from laureate.grounding.unet import LanguageUNet, UNetMaps, add_locations

__all__ = [
    "LEVELS",
    "THRESHOLDS",
    "AbstractModulation",
    "Concatenation",
    "FiLM",
    "FitInfo",
    "LanguageFilter",
    "LanguageUNet",
    "MaskCounts",
    "PhraseEncoder",
    "Referred",
    "Segmenter",
    "Tokens",
    "UNetMaps",
    "Vocabulary",
    "add_locations",
    "choose_threshold",
    "count_masks",
    "double",
    "filter_each",
    "fit",
    "halve",
    "make_examples",
    "multiscale_loss",
    "normalise_kernels",
    "overlaps",
    "predict",
    "resize_nearest",
    "train",
]
