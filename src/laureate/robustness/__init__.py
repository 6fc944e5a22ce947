"""Robustness: how easily a network is fooled, by attacks that one may run on one's own, and why attacks transfer.

For those who defend: to measure the accuracy that is left under attack, to see whether a defence holds against
perturbations made for another network, and to look for units that only work together. Attack networks that are yours
or that you were asked to test.

Images are batches, ``[b, ...]``, in a range that the ball names; networks are functions from such a batch to logits.
Attacks are nested: ``TI(InteractionReduced(MI(PGD(logits, Linf(8 / 255))), grid_players((28, 28), 7)))``.
"""

from laureate.robustness.attack import FGSM, MI, PGD, AbstractAttack, AttackInfo, AttackState
from laureate.robustness.balls import L2, AbstractBall, Linf
from laureate.robustness.driver import check_network, generate
from laureate.robustness.evaluation import (
    PairedResult,
    TransferReport,
    compare_transfer,
    fooled,
    leave_one_out,
    partial_rank_correlation,
    rank_correlation,
    transfer,
)
from laureate.robustness.interactions import (
    InteractionResult,
    estimate_by_subsets,
    estimate_interaction,
    exact_interactions,
    interaction_sums,
    mean_interaction,
    mean_of_pairs,
    shapley_values,
    tabulate,
)
from laureate.robustness.objectives import cross_entropy, margin
from laureate.robustness.players import PerturbationGame, Players, grid_players, perturbation_game, players_from
from laureate.robustness.reduced import InteractionReduced
from laureate.robustness.transformed import DI, SGM, TI, VR, decay_gradient

__all__ = [
    "DI",
    "FGSM",
    "L2",
    "MI",
    "PGD",
    "SGM",
    "TI",
    "VR",
    "AbstractAttack",
    "AbstractBall",
    "AttackInfo",
    "AttackState",
    "InteractionReduced",
    "InteractionResult",
    "Linf",
    "PairedResult",
    "PerturbationGame",
    "Players",
    "TransferReport",
    "check_network",
    "compare_transfer",
    "cross_entropy",
    "decay_gradient",
    "estimate_by_subsets",
    "estimate_interaction",
    "exact_interactions",
    "fooled",
    "generate",
    "grid_players",
    "interaction_sums",
    "leave_one_out",
    "margin",
    "mean_interaction",
    "mean_of_pairs",
    "partial_rank_correlation",
    "perturbation_game",
    "players_from",
    "rank_correlation",
    "shapley_values",
    "tabulate",
    "transfer",
]
