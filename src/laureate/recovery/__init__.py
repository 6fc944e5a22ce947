"""Sparse recovery with a known operator: ALISTA, the networks and classical solvers around it, and its certificate."""

from typing import TYPE_CHECKING, Any

from laureate.recovery.alista import ALISTA
from laureate.recovery.certificate import Certificate, certified_schedule, max_sparsity
from laureate.recovery.convolutional import (
    ConvALISTA,
    ConvDictionary,
    ConvLISTA,
    ConvWeight,
    analytic_conv_weight,
    circular_conv_weight,
)
from laureate.recovery.dictionary import AbstractDictionary, Dense, Operator, as_dictionary, dense_matrix
from laureate.recovery.hyper_lista import HyperLISTA
from laureate.recovery.ista import FISTA, ISTA
from laureate.recovery.learning import learn_dictionary, learn_filters
from laureate.recovery.lista import LISTA, LISTACP, TiLISTA
from laureate.recovery.robust import UnrolledCoherence, fit_encoder, perturb
from laureate.recovery.shrinkage import SupportSchedule, select_and_shrink, soft_threshold
from laureate.recovery.solver import AbstractSolver, RecoveryInfo, add_noise, nmse_db
from laureate.recovery.training import BernoulliGaussian, fit, squared_error
from laureate.recovery.weights import OperatorWeight, Weight, analytic_weight, coherence, coherence_loss

if TYPE_CHECKING:
    from laureate.recovery.estimator import SparseCoder

__all__ = [
    "ALISTA",
    "FISTA",
    "ISTA",
    "LISTA",
    "LISTACP",
    "AbstractDictionary",
    "AbstractSolver",
    "BernoulliGaussian",
    "Certificate",
    "ConvALISTA",
    "ConvDictionary",
    "ConvLISTA",
    "ConvWeight",
    "Dense",
    "HyperLISTA",
    "Operator",
    "OperatorWeight",
    "RecoveryInfo",
    "SparseCoder",
    "SupportSchedule",
    "TiLISTA",
    "UnrolledCoherence",
    "Weight",
    "add_noise",
    "analytic_conv_weight",
    "analytic_weight",
    "as_dictionary",
    "certified_schedule",
    "circular_conv_weight",
    "coherence",
    "coherence_loss",
    "dense_matrix",
    "fit",
    "fit_encoder",
    "learn_dictionary",
    "learn_filters",
    "max_sparsity",
    "nmse_db",
    "perturb",
    "select_and_shrink",
    "soft_threshold",
    "squared_error",
]


def __getattr__(name: str) -> Any:
    if name == "SparseCoder":  # scikit-learn takes a second to import, which the solvers do not need
        from laureate.recovery.estimator import SparseCoder

        return SparseCoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
