"""Long recurrences s_{t+1} = f(s_t; θ) with a loss a step: what estimators of gradients through time are tried on.

Each offers ``init(key, theta) -> state``, ``step(key, theta, state) -> (state, loss)``, ``theta0(key)`` (where training
starts) and ``horizon`` (steps an episode; ``None``: it never ends). So does your own; ``sigma``, ``learning_rate`` and
``truncation`` are optional attributes by which it overrides what a comparison would choose.
"""

from laureate.problems.unrolls.networks import CharacterLSTM, LearnedOptimiser
from laureate.problems.unrolls.systems import Blocks, FixedEpisode, InfluenceBalancing, LinearLosses, LinearQuadratic
from laureate.problems.unrolls.tuning import RidgeCoefficient, RidgeFamily, ToySchedule

__all__ = [
    "Blocks",
    "CharacterLSTM",
    "FixedEpisode",
    "InfluenceBalancing",
    "LearnedOptimiser",
    "LinearLosses",
    "LinearQuadratic",
    "RidgeCoefficient",
    "RidgeFamily",
    "ToySchedule",
]
