"""The declarations hold together, and every trial returns finite metrics of the shapes its claims need."""

import sys

import jax
import numpy as np
import pytest

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


# What does not fit the half minute that smoke has for all.
LONGER = {"terminal", "dimension", "degrees", "networks", "double-well-separable", "double-well-interacting"}


def test_every_claim_of_the_issue_is_declared():
    assert {claim.name for claim in PAPER.claims} >= EXPECTED
    for experiment in PAPER.experiments:
        assert set(experiment.scales) == {"tiny", "desk", "full"} | (
            {"smoke"} if experiment.name not in LONGER else set()
        )
        assert experiment.x64
        seeds = [scale.seeds for name, scale in experiment.scales.items() if name != "tiny"]
        assert min(seeds) >= 10  # 2^-10 survives Holm's correction


def test_declarations_are_data():
    code = "import sys, laureate.papers.tensor_train_pde.about; sys.exit('jax' in sys.modules)"
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_diverged_run_counts_as_the_cap():
    from laureate.papers.tensor_train_pde.trials import CAP, relative

    assert relative(np.nan, 2.0) == relative(np.inf, 2.0) == CAP
    assert relative(1.0, 2.0) == 0.5


@pytest.mark.slow
def test_the_example_runs():
    with jax.enable_x64(True):
        exec(compile(PAPER.example, "example", "exec"), {})
