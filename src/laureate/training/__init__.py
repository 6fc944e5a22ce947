"""What is updated when: early blocks learn by a local rule, or not at all, and later ones by gradients."""

from laureate.training.blocks import Chain, Dense, Normalised, PerExample
from laureate.training.collapse import HebbianCollapseWarning, participation_ratio
from laureate.training.cost import CostRow, StepCost, cost_table, count_operations, step_cost
from laureate.training.fitting import fit, predict, train
from laureate.training.localized import Boundary, LocalizedInfo, LocalizedState, LocalizedTraining, cross_entropy
from laureate.training.rules import AbstractRule, Frozen, Hebbian, Oja, RandomDirection, Site
from laureate.training.schedules import (
    AbstractSchedule,
    EpochReport,
    Fixed,
    NormRule,
    OfEpoch,
    Plateau,
    Staircase,
    WeightReport,
)
from laureate.training.sites import LAYERS, LinearLayer, local_block, weights_of
from laureate.training.supervision import WeakSupervision

__all__ = [
    "LAYERS",
    "AbstractRule",
    "AbstractSchedule",
    "Boundary",
    "Chain",
    "CostRow",
    "Dense",
    "EpochReport",
    "Fixed",
    "Frozen",
    "Hebbian",
    "HebbianCollapseWarning",
    "LinearLayer",
    "LocalizedInfo",
    "LocalizedState",
    "LocalizedTraining",
    "NormRule",
    "Normalised",
    "OfEpoch",
    "Oja",
    "PerExample",
    "Plateau",
    "RandomDirection",
    "Site",
    "Staircase",
    "StepCost",
    "WeakSupervision",
    "WeightReport",
    "cost_table",
    "count_operations",
    "cross_entropy",
    "fit",
    "local_block",
    "participation_ratio",
    "predict",
    "step_cost",
    "train",
    "weights_of",
]
