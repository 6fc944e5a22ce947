"""The declarations hold together, and every trial returns finite metrics of the shapes its claims need."""

import importlib
import sys

import equinox as eqx
import jax
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.papers import paper

PAPER = paper("tensor-train-pde")
EXPECTED = {
    "hjb-100",
    "allen-cahn-100",
    "rank",
    "double-well-50",
    "double-well-20",
    "cir-100",
    "dimension",
    "against-networks",
    "terminal-in-basis",
    "implicit-explicit",
}


# What does not fit the half minute that smoke has for all, and as small as can be tried here.
LONGER = {
    "terminal": Settings(steps=10, paths=500),
    "dimension": Settings(steps=3, paths=200, dimensions="5 20"),
    "networks": Settings(steps=5, paths=200, budget=0.1),
    "double-well-separable": Settings(steps=10, paths=500),
    "double-well-interacting": Settings(steps=15, paths=500),
}


def test_every_claim_of_the_issue_is_declared():
    assert {claim.name for claim in PAPER.claims} >= EXPECTED
    for experiment in PAPER.experiments:
        assert set(experiment.scales) == {"desk", "full"} | ({"smoke"} if experiment.name not in LONGER else set())
        assert experiment.x64
        assert min(scale.seeds for scale in experiment.scales.values()) >= 10  # 2^-10 survives Holm's correction


def test_declarations_are_data():
    code = "import sys, laureate.papers.tensor_train_pde.about; sys.exit('jax' in sys.modules)"
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def load(reference):
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda e: e.name)
def test_each_trial_runs_when_small(experiment):
    scale = experiment.scales["desk" if experiment.name in LONGER else "smoke"]
    size = {"dimension": 5} if experiment.name in LONGER else scale.problem
    with jax.enable_x64(True):
        problem = load(experiment.problem)(**size) if experiment.problem else None
        for arm in experiment.arms:
            settings = Settings(scale.settings, **LONGER.get(experiment.name, {}))
            trial = load(experiment.trial)
            if experiment.over_seeds == "vmap":
                trial = eqx.filter_jit(trial)
            result = trial(jax.random.key(0), arm.settings, problem, settings)
            for claim in experiment.claims:
                assert np.all(np.isfinite(np.asarray(result[claim.metric])))
                if claim.kind == "trend":
                    assert np.shape(result[claim.metric]) == np.shape(result[claim.against])


def test_a_diverged_run_counts_as_the_cap():
    from laureate.papers.tensor_train_pde.trials import CAP, relative

    assert relative(np.nan, 2.0) == relative(np.inf, 2.0) == CAP
    assert relative(1.0, 2.0) == 0.5


@pytest.mark.slow
def test_the_example_runs():
    with jax.enable_x64(True):
        exec(compile(PAPER.example, "example", "exec"), {})
