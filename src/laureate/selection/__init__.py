"""Choosing variables with a bounded share of false discoveries: knockoffs, statistics, filters, a validity test."""

from laureate.selection.blind import BlindScore, blind_list, score_blind_list
from laureate.selection.columns import CopulaKnockoffs, discrete_columns
from laureate.selection.filters import (
    Selection,
    e_values,
    knockoff_filter,
    knockoff_threshold,
    select_by_e_values,
    unattainable,
)
from laureate.selection.gan import FittedKnockoffGAN, KnockoffGAN, RefinedKnockoffs, mine_networks, mine_values
from laureate.selection.gaussian import GaussianKnockoffs, SecondOrderKnockoffs, solve_s
from laureate.selection.losses import critic_loss, information, swap_loss
from laureate.selection.mixture import GaussianMixtureKnockoffs, MixtureKnockoffs
from laureate.selection.selector import KnockoffSelector
from laureate.selection.statistics import (
    LassoDifference,
    LassoEntry,
    RandomForestDifference,
    RidgeDifference,
    check_antisymmetry,
)
from laureate.selection.tables import swap
from laureate.selection.validity import (
    InvalidKnockoffsError,
    InvalidKnockoffWarning,
    ValidityReport,
    validity_report,
)

__all__ = [
    "BlindScore",
    "CopulaKnockoffs",
    "FittedKnockoffGAN",
    "GaussianKnockoffs",
    "GaussianMixtureKnockoffs",
    "InvalidKnockoffWarning",
    "InvalidKnockoffsError",
    "KnockoffGAN",
    "KnockoffSelector",
    "LassoDifference",
    "LassoEntry",
    "MixtureKnockoffs",
    "RandomForestDifference",
    "RefinedKnockoffs",
    "RidgeDifference",
    "SecondOrderKnockoffs",
    "Selection",
    "ValidityReport",
    "blind_list",
    "check_antisymmetry",
    "critic_loss",
    "discrete_columns",
    "e_values",
    "information",
    "knockoff_filter",
    "knockoff_threshold",
    "mine_networks",
    "mine_values",
    "score_blind_list",
    "select_by_e_values",
    "solve_s",
    "swap",
    "swap_loss",
    "unattainable",
    "validity_report",
]
