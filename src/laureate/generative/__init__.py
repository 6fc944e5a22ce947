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
``Adversarial``                a GAN: any generator, discriminator, loss, regularisers and Optax optimiser
``VariationalBottleneck``      a discriminator that may learn only so many nats about an example
``GradientPenalty``            R1, R2, or that of WGAN-GP
``InstanceNoise``              noise on what the discriminator sees
``make_biggan``                a class-conditional GAN for images: BigGAN's networks, loss and optimiser, at any width
``SpectrallyNormalised``       any network, its weights divided by their largest singular values
``OrthogonalPenalty``          columns of a generator's weights at right angles
``truncated_normal``           latents for the truncation trick; ``truncation_curve`` measures what it gives and takes
``ConditionalBatchNorm``       parts of generators and discriminators, with statistics that are values; also
                               ``ProjectionHead``, ``SelfAttention``, ``split_latents``, ``WholeBatch``
``AdversarialImitation``       GAIL, and with a bottleneck VAIL, in finite environments
``AdversarialIRL``             AIRL, and with a bottleneck VAIRL
=============================  ========================================================================================

Models of y given x have the same calls: ``fit(key, x, y)`` hands back a ``FittedConditional`` with ``sample(key, x,
num_samples)``, and cGML has ``infer(key, x, y)`` for the latents of known pairs. Inside one's own loop: ``init``,
``step``, ``draw``.
Networks are functions of one example. ``energy_distance``, ``energy_score``, ``mode_report``, ``covered_arc``,
``diversity``, ``frechet_distance`` and ``precision_recall`` measure answers without a pre-trained network.
"""

from laureate.generative.adversarial import ConditionalGAN
from laureate.generative.baselines import CVAE, BestOfK, MixtureDensity, Regression
from laureate.generative.biggan import (
    BigGANDiscriminator,
    BigGANGenerator,
    biggan_settings,
    images_and_labels,
    make_biggan,
)
from laureate.generative.biggan_parts import (
    Affine,
    ConditionalBatchNorm,
    ProjectionHead,
    SelfAttention,
    split_latents,
)
from laureate.generative.bottleneck import (
    AdaptiveBudget,
    BottleneckCollapsedWarning,
    BottleneckState,
    GaussianEncoder,
    VariationalBottleneck,
    divergence,
    make_encoder,
)
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
from laureate.generative.imitation import (
    AdversarialImitation,
    AdversarialIRL,
    ImitationInfo,
    ImitationState,
    ShapedDiscriminator,
    ShapedEncoder,
)
from laureate.generative.judge import Judge, JudgeInfo, JudgeState
from laureate.generative.latent_flow import (
    InferredLatents,
    InnerDivergenceError,
    LatentFlowInfo,
    LatentFlowRegressor,
)
from laureate.generative.latents import AbstractLatent, Box, Sphere
from laureate.generative.losses import LOSSES, AdversarialLoss, imitation_reward
from laureate.generative.metrics import (
    ModeReport,
    copy_share,
    covered_arc,
    diversity,
    energy_distance,
    energy_score,
    frechet_distance,
    mode_report,
    precision_recall,
)
from laureate.generative.networks import Perceptron, perceptrons
from laureate.generative.orthogonal import OrthogonalPenalty, orthogonal
from laureate.generative.presets import KINDS, make_model
from laureate.generative.regularisers import AbstractRegulariser, GradientPenalty, InstanceNoise
from laureate.generative.stateful import (
    AbstractNetwork,
    EachExample,
    NormalisedState,
    SpectrallyNormalised,
    SpectralReport,
    WholeBatch,
    top_singular_values,
)
from laureate.generative.tabular import FiniteEnvironment, visits
from laureate.generative.trainer import Adversarial, AdversarialInfo, AdversarialState, FittedAdversarial
from laureate.generative.truncation import (
    StandingStatistics,
    TruncationCurve,
    truncated_normal,
    truncated_variance,
    truncation_curve,
)

__all__ = [
    "CVAE",
    "KINDS",
    "LOSSES",
    "AbstractConditional",
    "AbstractLatent",
    "AbstractNetwork",
    "AbstractOneLoss",
    "AbstractOneNetwork",
    "AbstractRegulariser",
    "AdaptiveBudget",
    "Adversarial",
    "AdversarialIRL",
    "AdversarialImitation",
    "AdversarialInfo",
    "AdversarialLoss",
    "AdversarialState",
    "Affine",
    "BestOfK",
    "BigGANDiscriminator",
    "BigGANGenerator",
    "BottleneckCollapsedWarning",
    "BottleneckState",
    "Box",
    "ConditionalBatchNorm",
    "ConditionalDiffusion",
    "ConditionalGAN",
    "ConditionalInfo",
    "ConditionalState",
    "EachExample",
    "FiniteEnvironment",
    "FittedAdversarial",
    "FittedConditional",
    "GaussianEncoder",
    "GradientPenalty",
    "Hooks",
    "ImitationInfo",
    "ImitationState",
    "InferredLatents",
    "InnerDivergenceError",
    "InstanceNoise",
    "Judge",
    "JudgeInfo",
    "JudgeState",
    "LatentFlowInfo",
    "LatentFlowRegressor",
    "MixtureDensity",
    "ModeReport",
    "NormalisedState",
    "OrthogonalPenalty",
    "Perceptron",
    "ProjectionHead",
    "Regression",
    "ScaleWarning",
    "SelfAttention",
    "ShapedDiscriminator",
    "ShapedEncoder",
    "SpectralReport",
    "SpectrallyNormalised",
    "Sphere",
    "StandingStatistics",
    "TruncationCurve",
    "VariationalBottleneck",
    "WholeBatch",
    "absolute_error",
    "biggan_settings",
    "copy_share",
    "covered_arc",
    "divergence",
    "diversity",
    "energy_distance",
    "energy_score",
    "frechet_distance",
    "images_and_labels",
    "imitation_reward",
    "make_biggan",
    "make_encoder",
    "make_model",
    "mode_report",
    "orthogonal",
    "perceptrons",
    "precision_recall",
    "split_latents",
    "squared_error",
    "top_singular_values",
    "truncated_normal",
    "truncated_variance",
    "truncation_curve",
    "visits",
]
