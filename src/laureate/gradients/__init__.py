"""Gradients of long unrolled computations: one signature, eight estimators."""

from laureate.gradients.analytic_pes import AnalyticPES
from laureate.gradients.full_es import FullES
from laureate.gradients.gpes import GPES
from laureate.gradients.noise_reuse_es import NoiseReuseES
from laureate.gradients.persistent_es import PersistentES
from laureate.gradients.reports import EstimatorState, Info
from laureate.gradients.rtrl import RTRL
from laureate.gradients.sharding import Sharded
from laureate.gradients.training import History, TrainState, train
from laureate.gradients.truncated_backprop import TruncatedBackprop
from laureate.gradients.truncated_es import TruncatedES
from laureate.gradients.unroll import Unroll, full_unroll_loss

__all__ = [
    "GPES",
    "RTRL",
    "AnalyticPES",
    "EstimatorState",
    "FullES",
    "History",
    "Info",
    "NoiseReuseES",
    "PersistentES",
    "Sharded",
    "TrainState",
    "TruncatedBackprop",
    "TruncatedES",
    "Unroll",
    "full_unroll_loss",
    "train",
]
