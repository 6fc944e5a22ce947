"""Agents that learn from rewards, and bonuses that make them look for rewards where none has been seen yet.

`BonusPPO` is `PPO` with a bonus, such as `RND`; `Training` runs it in environments that are pure functions, whole runs
in one program, and `GymnasiumTraining` in any environment of Gymnasium. `RND.novelty` scores data without an agent.
`DreamerV2` learns a model of its world and its behaviour inside it; `DreamerTraining` runs it, and in environments of
Gymnasium `GymnasiumDreamerTraining`.
`DynamicsCycle` finds maps between two domains whose steps are not paired, so that a policy of one acts in the other;
`CorrespondenceTraining` runs it, or `CycleGAN`, so that it can be stopped.
`record` writes an episode down, to look at: `laureate.problems.drawings` draws it, `laureate.loops.save_gif` keeps it.
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
from laureate.control.bridge_dreaming import GymnasiumDreamerState, GymnasiumDreamerTraining
from laureate.control.correspondence_networks import (
    PatchEncoder,
    make_cycle_gan,
    make_dynamics_cycle,
    make_patch_encoder,
)
from laureate.control.correspondence_training import CorrespondenceTraining
from laureate.control.critics import CriticInfo, CriticState, PooledCritic
from laureate.control.cycle_gan import CycleGAN, CycleGANInfo, CycleGANState
from laureate.control.dreamer import DreamerInfo, DreamerMemory, DreamerState, DreamerV2, make_dreamer
from laureate.control.dreaming import DreamerTraining, DreamerTrainingInfo, DreamerTrainingState
from laureate.control.dynamics_cycle import DynamicsCycle, DynamicsCycleInfo, DynamicsCycleState, ForwardInfo
from laureate.control.encoded import EncodedActorCritic, make_encoded_actor_critic
from laureate.control.episodes import Episode, GymnasiumEpisode, player, record, record_gymnasium
from laureate.control.exploration import BonusPPO, BonusPPOInfo, BonusPPOState
from laureate.control.imagination import Imagined, actor_loss, critic_loss, imagine, imagined_returns
from laureate.control.laws import (
    AbstractLaw,
    DiagonalNormal,
    OneHot,
    TruncatedNormal,
    kl_balance,
    straight_through_one_hot,
)
from laureate.control.pixels import PixelDecoder, PixelEncoder, convolve_down, convolve_up, make_pixels
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
from laureate.control.replay import Replay, ReplayState
from laureate.control.returns import ReturnScale, ReturnScaleState, gae, lambda_return
from laureate.control.rnd import RND, AbstractPredictionBonus, BonusWarning, PredictionState, make_rnd
from laureate.control.rssm import RSSM, NormalisedGRU, RSSMState, make_rssm
from laureate.control.scores import aggregate_scores, top_influence
from laureate.control.training import Training, TrainingInfo, TrainingState
from laureate.control.two_domains import (
    CorrespondenceWarning,
    Simulator,
    Units,
    check_domains,
    transition_distance,
    transitions_of,
)
from laureate.control.world_model import (
    Sequences,
    WorldModel,
    WorldModelInfo,
    check_sequences,
    make_world_model,
    world_model_loss,
)

__all__ = [
    "PPO",
    "RND",
    "RSSM",
    "AbstractBonus",
    "AbstractLaw",
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
    "CorrespondenceTraining",
    "CorrespondenceWarning",
    "CountBonus",
    "CountState",
    "CriticInfo",
    "CriticState",
    "CycleGAN",
    "CycleGANInfo",
    "CycleGANState",
    "DiagonalNormal",
    "DreamerInfo",
    "DreamerMemory",
    "DreamerState",
    "DreamerTraining",
    "DreamerTrainingInfo",
    "DreamerTrainingState",
    "DreamerV2",
    "DynamicsBonus",
    "DynamicsCycle",
    "DynamicsCycleInfo",
    "DynamicsCycleState",
    "EncodedActorCritic",
    "Episode",
    "ForwardInfo",
    "Gaussian",
    "GymnasiumDreamerState",
    "GymnasiumDreamerTraining",
    "GymnasiumEnvironments",
    "GymnasiumEpisode",
    "GymnasiumTraining",
    "Imagined",
    "KernelRegression",
    "Layers",
    "LinearDynamics",
    "NormalisedGRU",
    "OneHot",
    "PPOBatch",
    "PPOInfo",
    "PPOState",
    "PatchEncoder",
    "PixelDecoder",
    "PixelEncoder",
    "PooledCritic",
    "PredictionState",
    "RSSMState",
    "Replay",
    "ReplayState",
    "ReturnScale",
    "ReturnScaleState",
    "Rollout",
    "Sequences",
    "SimHash",
    "Simulator",
    "Training",
    "TrainingInfo",
    "TrainingState",
    "Transitions",
    "TruncatedNormal",
    "Units",
    "WorldModel",
    "WorldModelInfo",
    "actor_loss",
    "aggregate_scores",
    "check_domains",
    "check_sequences",
    "convolve_down",
    "convolve_up",
    "critic_loss",
    "dynamics_alignment",
    "fit_linear_dynamics",
    "gae",
    "imagine",
    "imagined_returns",
    "kernel_regression",
    "kl_balance",
    "lambda_return",
    "law_of",
    "make_actor_critic",
    "make_autoencoder",
    "make_cycle_gan",
    "make_dreamer",
    "make_dynamics",
    "make_dynamics_cycle",
    "make_encoded_actor_critic",
    "make_patch_encoder",
    "make_perceptrons",
    "make_pixels",
    "make_rnd",
    "make_rssm",
    "make_world_model",
    "minibatches",
    "moment_alignment",
    "player",
    "record",
    "record_gymnasium",
    "straight_through_one_hot",
    "symmetries",
    "top_influence",
    "transition_distance",
    "transitions_of",
    "world_model_loss",
]
