"""Agents that learn from rewards, and bonuses that make them look for rewards where none has been seen yet.

`BonusPPO` is `PPO` with a bonus, such as `RND`; `Training` runs it in environments that are pure functions, whole runs
in one program, and `GymnasiumTraining` in any environment of Gymnasium. `RND.novelty` scores data without an agent.
`DynamicsCycle` finds maps between two domains whose steps are not paired, so that a policy of one acts in the other.
"""

from laureate.control.alignment import (
    Affine,
    KernelRegression,
    LinearDynamics,
    dynamics_alignment,
    fit_linear_dynamics,
    kernel_regression,
    moment_alignment,
    symmetries,
)
from laureate.control.bonuses import AbstractBonus, BonusInfo, CountBonus, CountState, SimHash, Transitions
from laureate.control.bridge import GymnasiumEnvironments, GymnasiumTraining
from laureate.control.correspondence_networks import (
    PatchEncoder,
    make_cycle_gan,
    make_dynamics_cycle,
    make_patch_encoder,
)
from laureate.control.critics import CriticInfo, CriticState, PooledCritic
from laureate.control.cycle_gan import CycleGAN, CycleGANInfo, CycleGANState
from laureate.control.dynamics_cycle import DynamicsCycle, DynamicsCycleInfo, DynamicsCycleState, ForwardInfo
from laureate.control.exploration import BonusPPO, BonusPPOInfo, BonusPPOState
from laureate.control.policies import (
    ActorCritic,
    Categorical,
    Gaussian,
    Layers,
    law_of,
    make_actor_critic,
    make_perceptrons,
)
from laureate.control.ppo import PPO, PPOBatch, PPOInfo, PPOState, Rollout, minibatches
from laureate.control.prediction_bonuses import AutoencoderBonus, DynamicsBonus, make_autoencoder, make_dynamics
from laureate.control.returns import ReturnScale, ReturnScaleState, gae, lambda_return
from laureate.control.rnd import RND, AbstractPredictionBonus, BonusWarning, PredictionState, make_rnd
from laureate.control.training import Training, TrainingInfo, TrainingState
from laureate.control.two_domains import (
    CorrespondenceWarning,
    Simulator,
    Units,
    check_domains,
    transition_distance,
    transitions_of,
)

__all__ = [
    "PPO",
    "RND",
    "AbstractBonus",
    "AbstractPredictionBonus",
    "ActorCritic",
    "Affine",
    "AutoencoderBonus",
    "BonusInfo",
    "BonusPPO",
    "BonusPPOInfo",
    "BonusPPOState",
    "BonusWarning",
    "Categorical",
    "CorrespondenceWarning",
    "CountBonus",
    "CountState",
    "CriticInfo",
    "CriticState",
    "CycleGAN",
    "CycleGANInfo",
    "CycleGANState",
    "DynamicsBonus",
    "DynamicsCycle",
    "DynamicsCycleInfo",
    "DynamicsCycleState",
    "ForwardInfo",
    "Gaussian",
    "GymnasiumEnvironments",
    "GymnasiumTraining",
    "KernelRegression",
    "Layers",
    "LinearDynamics",
    "PPOBatch",
    "PPOInfo",
    "PPOState",
    "PatchEncoder",
    "PooledCritic",
    "PredictionState",
    "ReturnScale",
    "ReturnScaleState",
    "Rollout",
    "SimHash",
    "Simulator",
    "Training",
    "TrainingInfo",
    "TrainingState",
    "Transitions",
    "Units",
    "check_domains",
    "dynamics_alignment",
    "fit_linear_dynamics",
    "gae",
    "kernel_regression",
    "lambda_return",
    "law_of",
    "make_actor_critic",
    "make_autoencoder",
    "make_cycle_gan",
    "make_dynamics",
    "make_dynamics_cycle",
    "make_patch_encoder",
    "make_perceptrons",
    "make_rnd",
    "minibatches",
    "moment_alignment",
    "symmetries",
    "transition_distance",
    "transitions_of",
]
