"""The declared claims of Gibbs-With-Gradients: complete, and their trials give what they need."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.papers.gibbs_with_gradients import trials as sampling
from laureate.papers.gibbs_with_gradients import trials_learning as learning
from laureate.papers.gibbs_with_gradients.about import PAPER
from laureate.problems.energies import IsingLattice, PottsLattice
from laureate.problems.images import BinaryImages

QUICK = {"xla_backend_optimization_level": 0}
# What does not fit the half minute that smoke has for all.
LONGER = {"seconds", "learn-potts", "deep-ebm"}
EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
# As small as can be: what is tested is that every metric a claim or a picture names is there and finite.
TRAINED = {"chains": 4, "batch": 4, "updates": 3, "sampler_steps": 2, "learning_rate": 0.01}
LEARNT = dict(TRAINED, side=4, data=10, sweeps=2, l1=0.0)
STRIPES = jnp.zeros((20, 6, 6), bool).at[:, 2].set(True)
TINY = {
    "exact": (Settings(bits=3, kinds=2, thorough=False), None),
    "gap": (Settings(bits=3), None),
    "ising": (Settings(chains=2, steps=200, thin=10), IsingLattice(4, 0.1)),
    "potts": (Settings(chains=2, steps=200, thin=10), PottsLattice(3, 3, 0.3)),
    "rbm": (Settings(visible=8, hidden=3, chains=4, steps=10, reference=6, sweeps=5), None),
    "fhmm": (Settings(hidden_chains=2, length=5, chains=2, steps=50), None),
    "learn-ising": (Settings(LEARNT, sigma=0.1), None),
    "learn-potts": (Settings(LEARNT, kinds=3, coupling=0.3), None),
    "deep-ebm": (Settings(TRAINED, channels=2, temperatures=4, annealed=4), BinaryImages(STRIPES, STRIPES[:5])),
}


def test_all_promised_claims_are_declared_at_all_scales():
    names = {claim.name for claim in PAPER.claims}
    promised = "exact gap ising potts rbm fhmm learn-ising learn-potts deep-ebm near-optimal"
    assert set(promised.split()) <= names
    for experiment in PAPER.experiments:
        assert set(experiment.scales) == {"desk", "full"} | ({"smoke"} if experiment.name not in LONGER else set())


# A program each; those of one kind have one here.
SLOW = {"gap", "potts", "rbm", "learn-potts", "deep-ebm"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TINY])
def test_trial_gives_finite_metrics(name):
    experiment = EXPERIMENTS[name]
    scale, problem = TINY[name]
    module = learning if experiment.trial.split(":")[0].endswith("learning") else sampling
    trial = getattr(module, experiment.trial.split(":")[1])
    arm = experiment.arm("gwg").settings
    wanted = {claim.metric for claim in experiment.claims} | {axis for c in experiment.curves for axis in (c.x, c.y)}
    with jax.enable_x64(experiment.x64):
        block = jax.jit(jax.vmap(lambda seed: trial(jax.random.key(seed), arm, problem, scale)), compiler_options=QUICK)
        metrics = block(jnp.arange(2))
    assert wanted <= set(metrics)
    for value in metrics.values():
        assert len(value) == 2
        assert np.isfinite(np.asarray(value)).all()


def test_a_kernel_without_the_correction_is_found_out():
    with jax.enable_x64(True):
        scale = Settings(bits=3, kinds=2, thorough=False)
        trial = jax.jit(
            lambda corrected: sampling.exactness(jax.random.key(0), Settings(corrected=corrected), None, scale)
        )
        assert float(trial(1.0)["log10_error"]) < -12
        assert float(trial(0.0)["log10_error"]) > -3


@pytest.mark.slow
def test_the_clock_gives_finite_metrics_for_all_four_energies():
    experiment = EXPERIMENTS["seconds"]
    sizes = {"side": 3, "visible": 6, "hidden": 2, "hidden_chains": 2, "length": 4}
    scale = Settings(sizes, chains=2, steps=100, thin=5)
    metrics = sampling.seconds(jax.random.key(0), experiment.arm("gwg").settings, None, scale)
    assert set(metrics) == {claim.metric for claim in experiment.claims}
    assert np.isfinite([float(value) for value in metrics.values()]).all()
