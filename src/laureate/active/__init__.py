"""Labels that were chosen: honest estimates from them, and choices that can be undone.

`Acquisition` or `plackett_luce` pick points at random by scores and say with which probability; `lure_weights` turns
the probabilities into weights (``sample_weight``), `lure_risk` into a loss with a standard error.
"""

from laureate.active.acquisition import Acquisition, AcquisitionInfo, AcquisitionState, plackett_luce
from laureate.active.risk import (
    RISKS,
    BiasReport,
    RiskEstimate,
    WeightWarning,
    bias_report,
    importance_risk,
    lure_ratio,
    lure_risk,
    plain_risk,
    pure_risk,
)
from laureate.active.weights import (
    WEIGHTS,
    check_log,
    importance_weights,
    lure_weights,
    plain_weights,
    pure_weights,
)

__all__ = [
    "RISKS",
    "WEIGHTS",
    "Acquisition",
    "AcquisitionInfo",
    "AcquisitionState",
    "BiasReport",
    "RiskEstimate",
    "WeightWarning",
    "bias_report",
    "check_log",
    "importance_risk",
    "importance_weights",
    "lure_ratio",
    "lure_risk",
    "lure_weights",
    "plackett_luce",
    "plain_risk",
    "plain_weights",
    "pure_risk",
    "pure_weights",
]
