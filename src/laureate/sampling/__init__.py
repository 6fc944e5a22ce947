"""Samplers for discrete variables, led by Gibbs-With-Gradients, with BlackJAX's ``init`` and ``step(key, state)``."""

from laureate.sampling.annealing import AnnealedImportance, annealed_importance_sampling
from laureate.sampling.balancing import BALANCING
from laureate.sampling.block_gibbs import BlockGibbs
from laureate.sampling.contrastive_divergence import PersistentContrastiveDivergence
from laureate.sampling.diagnostics import hamming_distance, hamming_mmd, mixing
from laureate.sampling.discrete_langevin import DiscreteLangevin
from laureate.sampling.domain import Binary, Categorical, Ordinal
from laureate.sampling.driver import Progress, Run, run
from laureate.sampling.gibbs import Gibbs
from laureate.sampling.gibbs_with_gradients import GibbsWithGradients
from laureate.sampling.hamming_ball import HammingBall
from laureate.sampling.incremental import IncrementalGibbsWithGradients, LocalEnergy
from laureate.sampling.locally_informed import LocallyInformed
from laureate.sampling.parallel_tempering import ParallelTempering
from laureate.sampling.path_auxiliary import PathAuxiliary

__all__ = [
    "BALANCING",
    "AnnealedImportance",
    "Binary",
    "BlockGibbs",
    "Categorical",
    "DiscreteLangevin",
    "Gibbs",
    "GibbsWithGradients",
    "HammingBall",
    "IncrementalGibbsWithGradients",
    "LocalEnergy",
    "LocallyInformed",
    "Ordinal",
    "ParallelTempering",
    "PathAuxiliary",
    "PersistentContrastiveDivergence",
    "Progress",
    "Run",
    "annealed_importance_sampling",
    "hamming_distance",
    "hamming_mmd",
    "mixing",
    "run",
]
