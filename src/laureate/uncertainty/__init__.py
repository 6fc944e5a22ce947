"""What a classifier's outputs may be trusted with: sets of labels, confidences and calibration that keep a promise.

Estimators in scikit-learn's manner over pure functions of arrays; what draws random numbers takes the key first.
"""

from laureate.uncertainty.binning import Constant, HistogramBinning, Identity, IdentityMap, StepMap
from laureate.uncertainty.binomial import clopper_pearson, hoeffding, jeffreys, wald, wilson
from laureate.uncertainty.calibration import AbstractCalibrator, AbstractScoreMap, CalibrationInfo, CalibrationWarning
from laureate.uncertainty.cascade import CertificateError, SafeCascade, Shield, cascade_bounds, fixed_sequence
from laureate.uncertainty.confidence import BinCounts, BinTable, PACConfidence, bin_counts
from laureate.uncertainty.isotonic import InterpolatedMap, Isotonic, pool_adjacent_violators
from laureate.uncertainty.logistic import Beta, LogitMap, Platt, Temperature, TemperatureMap
from laureate.uncertainty.measures import KSResult, brier, cumulative_difference, ece, ks_error, ks_test, nll
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
from laureate.uncertainty.scores import top_scores, within_scores
from laureate.uncertainty.set_metrics import (
    Strata,
    by_class,
    by_rank,
    by_size,
    coverage,
    mean_size,
    worst_violation,
)
from laureate.uncertainty.spline import NaturalSpline, SplineCalibrator

__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "SAPS",
    "AbstractCalibrator",
    "AbstractRankedSets",
    "AbstractScoreMap",
    "AbstractSets",
    "Beta",
    "BinCounts",
    "BinTable",
    "CalibrationInfo",
    "CalibrationWarning",
    "CertificateError",
    "Constant",
    "CoverageLaw",
    "HistogramBinning",
    "Identity",
    "IdentityMap",
    "InterpolatedMap",
    "Isotonic",
    "KSResult",
    "LogitMap",
    "NaiveSets",
    "NaturalSpline",
    "PACConfidence",
    "Platt",
    "Ranked",
    "SafeCascade",
    "ScoreSets",
    "Shield",
    "SplineCalibrator",
    "StepMap",
    "Strata",
    "Temperature",
    "TemperatureMap",
    "TopK",
    "bin_counts",
    "brier",
    "by_class",
    "by_rank",
    "by_size",
    "cascade_bounds",
    "clopper_pearson",
    "conformal_quantile",
    "coverage",
    "coverage_law",
    "cumulative_difference",
    "ece",
    "fit_temperature",
    "fixed_sequence",
    "hoeffding",
    "jeffreys",
    "ks_error",
    "ks_test",
    "lac_score",
    "mean_size",
    "nll",
    "pool_adjacent_violators",
    "rank_all",
    "rank_label",
    "raps_score",
    "saps_score",
    "set_of_size",
    "top_k_score",
    "top_scores",
    "tune_raps",
    "wald",
    "wilson",
    "within_scores",
    "worst_violation",
]
