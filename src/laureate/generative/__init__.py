"""Generative models: answers to inputs that have several or a continuum of right ones.

=============================  ========================================================================================
``LatentFlowRegressor``        cGML: a latent found by descent on your cost, a flow that learns to find it without y
``Regression``                 one answer for every x: the average of the right ones
``CVAE``                       a conditional variational auto-encoder
``ConditionalGAN``             a small conditional GAN, with or without a regression cost
``MixtureDensity``             a mixture of normal laws that depends on x
``BestOfK``                    K answers, of which the nearest learns
``ConditionalDiffusion``       denoising in 20 steps
``make_model``                 any of them for given data, with perceptrons of one width
=============================  ========================================================================================

All have the same calls: ``fit(key, x, y)`` hands back a ``FittedConditional`` with ``sample(key, x, num_samples)``, and
cGML's has ``infer(key, x, y)`` for the latents of known pairs. Inside one's own loop: ``init``, ``step``, ``draw``.
Networks are functions of one example. ``energy_distance``, ``energy_score``, ``mode_report``, ``covered_arc``,
``diversity`` and ``precision_recall`` measure answers without a pre-trained network.
"""

from laureate.generative.adversarial import ConditionalGAN
from laureate.generative.baselines import CVAE, BestOfK, MixtureDensity, Regression
from laureate.generative.conditional import (
    AbstractConditional,
    AbstractOneLoss,
    AbstractOneNetwork,
    ConditionalInfo,
    ConditionalState,
    FittedConditional,
    Hooks,
    ScaleWarning,
    absolute_error,
    squared_error,
)
from laureate.generative.diffusion import ConditionalDiffusion
from laureate.generative.latent_flow import (
    InferredLatents,
    InnerDivergenceError,
    LatentFlowInfo,
    LatentFlowRegressor,
)
from laureate.generative.latents import AbstractLatent, Box, Sphere
from laureate.generative.metrics import (
    ModeReport,
    covered_arc,
    diversity,
    energy_distance,
    energy_score,
    mode_report,
    precision_recall,
)
from laureate.generative.networks import Perceptron, perceptrons
from laureate.generative.presets import KINDS, make_model

__all__ = [
    "CVAE",
    "KINDS",
    "AbstractConditional",
    "AbstractLatent",
    "AbstractOneLoss",
    "AbstractOneNetwork",
    "BestOfK",
    "Box",
    "ConditionalDiffusion",
    "ConditionalGAN",
    "ConditionalInfo",
    "ConditionalState",
    "FittedConditional",
    "Hooks",
    "InferredLatents",
    "InnerDivergenceError",
    "LatentFlowInfo",
    "LatentFlowRegressor",
    "MixtureDensity",
    "ModeReport",
    "Perceptron",
    "Regression",
    "ScaleWarning",
    "Sphere",
    "absolute_error",
    "covered_arc",
    "diversity",
    "energy_distance",
    "energy_score",
    "make_model",
    "mode_report",
    "perceptrons",
    "precision_recall",
    "squared_error",
]
