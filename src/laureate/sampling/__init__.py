"""Samplers with BlackJAX's ``init`` and ``step(key, state)``, and tests whether draws come from a density.

Discrete variables: led by Gibbs-With-Gradients. Continuous ones: Stein discrepancies, whole and sliced, and SVGD.
"""

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
from laureate.sampling.stein_bootstrap import BOUNDED, MOMENTS, SteinTest, stein_mean_test, stein_test
from laureate.sampling.stein_discrepancy import SlicedKSD, Slices, ksd, sliced_ksd
from laureate.sampling.stein_particles import ParticleInfo, ParticleState, SteinVariational, sliced_svgd, svgd
from laureate.sampling.stein_slices import MaxSlicedKSD, fit_slices, max_sliced_ksd, random_slices

__all__ = [
    "BALANCING",
    "BOUNDED",
    "MOMENTS",
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
    "MaxSlicedKSD",
    "Ordinal",
    "ParallelTempering",
    "ParticleInfo",
    "ParticleState",
    "PathAuxiliary",
    "PersistentContrastiveDivergence",
    "Progress",
    "Run",
    "SlicedKSD",
    "Slices",
    "SteinTest",
    "SteinVariational",
    "annealed_importance_sampling",
    "fit_slices",
    "hamming_distance",
    "hamming_mmd",
    "ksd",
    "max_sliced_ksd",
    "mixing",
    "random_slices",
    "run",
    "sliced_ksd",
    "sliced_svgd",
    "stein_mean_test",
    "stein_test",
    "svgd",
]
