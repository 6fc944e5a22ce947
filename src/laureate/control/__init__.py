"""Agents that learn from rewards, and bonuses that make them look for rewards where none has been seen yet.

`BonusPPO` is `PPO` with a bonus, such as `RND`; `Training` runs it in environments that are pure functions, whole runs
in one program, and `GymnasiumTraining` in any environment of Gymnasium. `RND.novelty` scores data without an agent.
"""

from laureate.control.bonuses import AbstractBonus, BonusInfo, CountBonus, CountState, SimHash, Transitions
from laureate.control.bridge import GymnasiumEnvironments, GymnasiumTraining
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

__all__ = [
    "PPO",
    "RND",
    "AbstractBonus",
    "AbstractPredictionBonus",
    "ActorCritic",
    "AutoencoderBonus",
    "BonusInfo",
    "BonusPPO",
    "BonusPPOInfo",
    "BonusPPOState",
    "BonusWarning",
    "Categorical",
    "CountBonus",
    "CountState",
    "DynamicsBonus",
    "Gaussian",
    "GymnasiumEnvironments",
    "GymnasiumTraining",
    "Layers",
    "PPOBatch",
    "PPOInfo",
    "PPOState",
    "PredictionState",
    "ReturnScale",
    "ReturnScaleState",
    "Rollout",
    "SimHash",
    "Training",
    "TrainingInfo",
    "TrainingState",
    "Transitions",
    "gae",
    "lambda_return",
    "law_of",
    "make_actor_critic",
    "make_autoencoder",
    "make_dynamics",
    "make_perceptrons",
    "make_rnd",
    "minibatches",
]
