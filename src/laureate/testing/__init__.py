"""Checks of a method against what is promised of all methods of its kind, as scikit-learn's check_estimator.

Each function takes one method, of this library or your own, compiles about two small programs and returns the names of
the properties it has checked; a broken one raises a ``ContractError`` that says which, what was expected, what was
found and what to do. ``skip`` leaves properties out by name.
"""

from laureate.testing._architecture import check_architecture_selection
from laureate.testing._calibration import check_calibrator
from laureate.testing._checks import ContractError
from laureate.testing._compression import check_quantizer
from laureate.testing._confidence import check_confidence_intervals
from laureate.testing._control import check_exploration_bonus
from laureate.testing._decentralized import check_decentralized_optimiser
from laureate.testing._errors import check_standard_error
from laureate.testing._functions import check_function
from laureate.testing._generative import check_adversarial, check_conditional_model
from laureate.testing._gradients import check_gradient_estimator
from laureate.testing._graphs import check_graph_network
from laureate.testing._grounding import check_modulation
from laureate.testing._interpretation import check_running_statistics
from laureate.testing._keys import KeyRecorder
from laureate.testing._learners import check_learner
from laureate.testing._multitask import check_aggregator
from laureate.testing._options import check_settings, pairwise
from laureate.testing._pde import check_pde_solver
from laureate.testing._random import check_keys, check_random_function
from laureate.testing._recovery import check_recovery_solver
from laureate.testing._representation import check_representation_loss, check_representation_trainer
from laureate.testing._resuming import check_resumable
from laureate.testing._robustness import check_attack
from laureate.testing._sampling import check_sampler
from laureate.testing._selection import check_knockoff_sampler
from laureate.testing._sets import check_prediction_sets
from laureate.testing._training import check_block_trainer
from laureate.testing.simulators import check_mesh_trainer, check_simulator

__all__ = [
    "ContractError",
    "KeyRecorder",
    "check_adversarial",
    "check_aggregator",
    "check_architecture_selection",
    "check_attack",
    "check_block_trainer",
    "check_calibrator",
    "check_conditional_model",
    "check_confidence_intervals",
    "check_decentralized_optimiser",
    "check_exploration_bonus",
    "check_function",
    "check_gradient_estimator",
    "check_graph_network",
    "check_keys",
    "check_knockoff_sampler",
    "check_learner",
    "check_mesh_trainer",
    "check_modulation",
    "check_pde_solver",
    "check_prediction_sets",
    "check_quantizer",
    "check_random_function",
    "check_recovery_solver",
    "check_representation_loss",
    "check_representation_trainer",
    "check_resumable",
    "check_running_statistics",
    "check_sampler",
    "check_settings",
    "check_simulator",
    "check_standard_error",
    "pairwise",
]
