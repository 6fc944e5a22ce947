"""The declared claims of Gibbs-With-Gradients: complete, and their trials give what they need."""

import jax
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.papers.gibbs_with_gradients import trials as sampling
from laureate.papers.gibbs_with_gradients import trials_learning as learning
from laureate.papers.gibbs_with_gradients.about import PAPER

QUICK = {"xla_backend_optimization_level": 0}
# What does not fit the half minute that smoke has for all.
LONGER = {"seconds", "learn-potts", "deep-ebm", "trained-rbm", "learn-graph"}
EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


def test_all_promised_claims_are_declared_at_all_scales():
    names = {claim.name for claim in PAPER.claims}
    promised = "exact gap ising potts rbm fhmm learn-ising learn-potts deep-ebm near-optimal trained-rbm learn-graph"
    assert set(promised.split()) <= names
    for experiment in PAPER.experiments:
        assert set(experiment.scales) == {"tiny", "desk", "full"} | (
            {"smoke"} if experiment.name not in LONGER else set()
        )


@pytest.mark.slow
def test_a_kernel_without_the_correction_is_found_out():
    with jax.enable_x64(True):
        scale = Settings(bits=3, kinds=2, thorough=False)
        trial = jax.jit(
            lambda corrected: sampling.exactness(jax.random.key(0), Settings(corrected=corrected), None, scale)
        )
        assert float(trial(1.0)["log10_error"]) < -12
        assert float(trial(0.0)["log10_error"]) > -3


def test_no_couplings_at_all_are_as_far_as_the_lattice_says():
    """Each site of a torus has four neighbours; in the zero-sum gauge a coupling c has the square c² (K − 1)/K²."""
    nobody, key = Settings(sampler="none"), jax.random.key(0)
    for name, trial, square in (
        ("learn-ising", learning.ising_or_none, lambda s: s.sigma**2),
        ("learn-potts", learning.potts_or_none, lambda s: s.coupling**2 * (s.kinds - 1) / s.kinds**2),
    ):
        scale = EXPERIMENTS[name].scales["desk"].settings
        error = 0.5 * np.log(square(scale) * 4 / (scale.side**2 - 1))
        assert float(trial(key, nobody, None, scale)["log_rmse"]) == pytest.approx(error, abs=1e-5)
