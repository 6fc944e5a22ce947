"""Associative memory: Hopfield networks, the Boltzmann machines that equal them, and what that is good for.

A *Hopfield network* here is the classical one, with binary units s in {-1, +1} and pairwise couplings; layers that are
called "modern Hopfield networks" are another, continuous model.

Patterns and data are rows, as in scikit-learn: ``[patterns, units]``.
"""

from typing import TYPE_CHECKING, Any

from laureate.memory.annealing import AnnealedPartition, annealed_log_partition
from laureate.memory.contrastive import ContrastiveDivergence, ContrastiveInfo, ContrastiveState, train
from laureate.memory.enumeration import all_spins, log_likelihood, log_partition
from laureate.memory.gibbs import LayerGibbs, LowRankSpinGibbs, SpinGibbs, SpinInfo, SpinState
from laureate.memory.hopfield import HopfieldNetwork, store
from laureate.memory.initial import class_patterns, hebbian_weights, principal_weights, random_weights
from laureate.memory.machine import BoltzmannMachine, to_boltzmann_machine, to_hopfield
from laureate.memory.recall import RecallInfo, recall
from laureate.memory.reverse import ReverseInfo, reverse_patterns

if TYPE_CHECKING:
    from laureate.memory.estimator import HopfieldFeatures

__all__ = [
    "AnnealedPartition",
    "BoltzmannMachine",
    "ContrastiveDivergence",
    "ContrastiveInfo",
    "ContrastiveState",
    "HopfieldFeatures",
    "HopfieldNetwork",
    "LayerGibbs",
    "LowRankSpinGibbs",
    "RecallInfo",
    "ReverseInfo",
    "SpinGibbs",
    "SpinInfo",
    "SpinState",
    "all_spins",
    "annealed_log_partition",
    "class_patterns",
    "hebbian_weights",
    "log_likelihood",
    "log_partition",
    "principal_weights",
    "random_weights",
    "recall",
    "reverse_patterns",
    "store",
    "to_boltzmann_machine",
    "to_hopfield",
    "train",
]


def __getattr__(name: str) -> Any:
    """scikit-learn takes seconds to load, which only its wrapper needs."""
    if name == "HopfieldFeatures":
        from laureate.memory.estimator import HopfieldFeatures

        return HopfieldFeatures
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
