"""Several losses, one network: Optax transformations that make one gradient of the gradients of T tasks.

``optax.chain(imtl_g(), optax.adam(1e-3))`` takes ``jax.jacrev(losses)(params)``, whose leaves begin with an axis of
tasks, and removes it. `imtl_g`, `mgda`, `pcgrad`, `gradvac`, `unit_sum` and `uniform` look at gradients; `imtl_l`,
`uncertainty`, `gradnorm` and `inverse_loss` ask for ``losses=`` besides, `imtl` for both.
"""

from laureate.multitask.aggregator import AggregatorState, Weighting, aggregator
from laureate.multitask.baselines import MinimumNormInfo, mgda, mgda_weights, uniform, unit_sum
from laureate.multitask.geometry import TaskGeometry, task_geometry, task_gram
from laureate.multitask.gradient_vaccine import GradVacState, gradvac, pcgrad, vaccine, visiting_order
from laureate.multitask.impartial import (
    ImpartialInfo,
    ImpartialState,
    LossScaleState,
    imtl,
    imtl_g,
    imtl_l,
    imtl_weights,
)
from laureate.multitask.loss_weights import GradNormState, InverseLossState, gradnorm, inverse_loss, uncertainty
from laureate.multitask.training import Tasks, TrainingHistory, train
from laureate.multitask.tuning import TunedResult, select, tune

__all__ = [
    "AggregatorState",
    "GradNormState",
    "GradVacState",
    "ImpartialInfo",
    "ImpartialState",
    "InverseLossState",
    "LossScaleState",
    "MinimumNormInfo",
    "TaskGeometry",
    "Tasks",
    "TrainingHistory",
    "TunedResult",
    "Weighting",
    "aggregator",
    "gradnorm",
    "gradvac",
    "imtl",
    "imtl_g",
    "imtl_l",
    "imtl_weights",
    "inverse_loss",
    "mgda",
    "mgda_weights",
    "pcgrad",
    "select",
    "task_geometry",
    "task_gram",
    "train",
    "tune",
    "uncertainty",
    "uniform",
    "unit_sum",
    "vaccine",
    "visiting_order",
]
