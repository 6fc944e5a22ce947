"""Probabilities that can be believed: calibration errors, maps that recalibrate scores, all with one call."""

from laureate.uncertainty.binning import Constant, HistogramBinning, Identity, IdentityMap, StepMap
from laureate.uncertainty.calibration import AbstractCalibrator, AbstractScoreMap, CalibrationInfo, CalibrationWarning
from laureate.uncertainty.isotonic import InterpolatedMap, Isotonic, pool_adjacent_violators
from laureate.uncertainty.logistic import Beta, LogitMap, Platt, Temperature, TemperatureMap
from laureate.uncertainty.measures import KSResult, brier, cumulative_difference, ece, ks_error, ks_test, nll
from laureate.uncertainty.scores import top_scores, within_scores
from laureate.uncertainty.spline import NaturalSpline, SplineCalibrator

__all__ = [
    "AbstractCalibrator",
    "AbstractScoreMap",
    "Beta",
    "CalibrationInfo",
    "CalibrationWarning",
    "Constant",
    "HistogramBinning",
    "Identity",
    "IdentityMap",
    "InterpolatedMap",
    "Isotonic",
    "KSResult",
    "LogitMap",
    "NaturalSpline",
    "Platt",
    "SplineCalibrator",
    "StepMap",
    "Temperature",
    "TemperatureMap",
    "brier",
    "cumulative_difference",
    "ece",
    "ks_error",
    "ks_test",
    "nll",
    "pool_adjacent_violators",
    "top_scores",
    "within_scores",
]
