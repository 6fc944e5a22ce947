"""Architecture search: from a supernet, in which every edge mixes candidate operations, to one network.

*weights* are what the supernet multiplies its operations by, ``[edges, ops]``; *alpha* are the logits they come from. A
supernet may be in any framework: a selection asks for a score of given weights and for nothing else.
"""

from laureate.architecture.loop import Decision, SelectionResult, TieWarning, select
from laureate.architecture.noise import NoiseReport, choice_noise
from laureate.architecture.pareto import ParetoPoint, hypervolume, pareto
from laureate.architecture.rules import MagnitudeSelection, PerturbationSelection, RandomSelection
from laureate.architecture.selection import AbstractSelection, SelectionInfo, SelectionState
from laureate.architecture.space import Genotype, Space
from laureate.architecture.supernet import (
    ResolutionWarning,
    Supernet,
    SupernetScore,
    check_supernet,
    cross_entropy,
    score_weights,
)
from laureate.architecture.tabular import Table, tabular
from laureate.architecture.training import (
    SupernetTraining,
    SupernetTrainingInfo,
    SupernetTrainingState,
    train_supernet,
)
from laureate.architecture.weights import effective_weights, optimal_mixture, without_edges, without_operations

__all__ = [
    "AbstractSelection",
    "Decision",
    "Genotype",
    "MagnitudeSelection",
    "NoiseReport",
    "ParetoPoint",
    "PerturbationSelection",
    "RandomSelection",
    "ResolutionWarning",
    "SelectionInfo",
    "SelectionResult",
    "SelectionState",
    "Space",
    "Supernet",
    "SupernetScore",
    "SupernetTraining",
    "SupernetTrainingInfo",
    "SupernetTrainingState",
    "Table",
    "TieWarning",
    "check_supernet",
    "choice_noise",
    "cross_entropy",
    "effective_weights",
    "hypervolume",
    "optimal_mixture",
    "pareto",
    "score_weights",
    "select",
    "tabular",
    "train_supernet",
    "without_edges",
    "without_operations",
]
