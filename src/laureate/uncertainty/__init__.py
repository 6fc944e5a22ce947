"""What a classifier's outputs may be trusted with: sets of labels, confidences and calibration that keep a promise.

Estimators in scikit-learn's manner over pure functions of arrays; what draws random numbers takes the key first.
"""

from laureate.uncertainty.binomial import clopper_pearson, hoeffding, jeffreys, wald, wilson
from laureate.uncertainty.cascade import CertificateError, SafeCascade, Shield, cascade_bounds, fixed_sequence
from laureate.uncertainty.confidence import BinCounts, BinTable, PACConfidence, bin_counts
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
    "BinCounts",
    "BinTable",
    "CertificateError",
    "CoverageLaw",
    "NaiveSets",
    "PACConfidence",
    "Ranked",
    "SafeCascade",
    "ScoreSets",
    "Shield",
    "Strata",
    "TopK",
    "bin_counts",
    "by_class",
    "by_rank",
    "by_size",
    "cascade_bounds",
    "clopper_pearson",
    "conformal_quantile",
    "coverage",
    "coverage_law",
    "fit_temperature",
    "fixed_sequence",
    "hoeffding",
    "jeffreys",
    "lac_score",
    "mean_size",
    "rank_all",
    "rank_label",
    "raps_score",
    "saps_score",
    "set_of_size",
    "top_k_score",
    "tune_raps",
    "wald",
    "wilson",
    "worst_violation",
]
