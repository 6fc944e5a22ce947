"""What a classifier's outputs may be trusted with: sets of labels, confidences and calibration that keep a promise.

Estimators in scikit-learn's manner over pure functions of arrays; what draws random numbers takes the key first.
"""

from laureate.uncertainty.other_sets import APS, LAC, SAPS, NaiveSets, ScoreSets, TopK
from laureate.uncertainty.prediction_sets import AbstractRankedSets, AbstractSets
from laureate.uncertainty.ranks import (
    CoverageLaw,
    Ranked,
    conformal_quantile,
    coverage_law,
    fit_temperature,
    lac_score,
    rank_all,
    rank_label,
    raps_score,
    saps_score,
    set_of_size,
    top_k_score,
)
from laureate.uncertainty.raps import RAPS, tune_raps
from laureate.uncertainty.set_metrics import (
    Strata,
    by_class,
    by_rank,
    by_size,
    coverage,
    mean_size,
    worst_violation,
)

__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "SAPS",
    "AbstractRankedSets",
    "AbstractSets",
    "CoverageLaw",
    "NaiveSets",
    "Ranked",
    "ScoreSets",
    "Strata",
    "TopK",
    "by_class",
    "by_rank",
    "by_size",
    "conformal_quantile",
    "coverage",
    "coverage_law",
    "fit_temperature",
    "lac_score",
    "mean_size",
    "rank_all",
    "rank_label",
    "raps_score",
    "saps_score",
    "set_of_size",
    "top_k_score",
    "tune_raps",
    "worst_violation",
]
