"""Classes of unequal frequency: losses, corrections of trained models, and a scikit-learn wrapper.

Train with `logit_adjusted_cross_entropy` and predict with the raw logits, or train as ever and `adjust` the logits.
"""

from laureate.imbalance.estimator import LogitAdjusted
from laureate.imbalance.losses import (
    LOSSES,
    cross_entropy,
    equalised_cross_entropy,
    focal_cross_entropy,
    label_margin_cross_entropy,
    logit_adjusted_cross_entropy,
    pairwise_margin_cross_entropy,
    vector_scaling_cross_entropy,
    weighted_cross_entropy,
)
from laureate.imbalance.priors import (
    adjust,
    balanced_error,
    balanced_indices,
    class_counts,
    class_errors,
    log_prior,
    normalise_weights,
    tune_tau,
)

__all__ = [
    "LOSSES",
    "LogitAdjusted",
    "adjust",
    "balanced_error",
    "balanced_indices",
    "class_counts",
    "class_errors",
    "cross_entropy",
    "equalised_cross_entropy",
    "focal_cross_entropy",
    "label_margin_cross_entropy",
    "log_prior",
    "logit_adjusted_cross_entropy",
    "normalise_weights",
    "pairwise_margin_cross_entropy",
    "tune_tau",
    "vector_scaling_cross_entropy",
    "weighted_cross_entropy",
]
