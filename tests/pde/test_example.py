"""The example runs, its control is about as good as the value function allows, and the lab takes its equation."""

import jax
import numpy as np
import pytest

from example_files import EXAMPLES, loaded
from laureate.lab.claim import Settings
from laureate.papers import paper
from laureate.papers.tensor_train_pde.trials import interacting


def example():
    return loaded(EXAMPLES / "own_pde.py")


@pytest.mark.slow
def test_own_pde_is_steered_at_about_its_value():
    value, steered, idle = example().main(dimension=6, num_samples=500)
    # The saving is a large part; steering by the learned gradient costs the value and a little more (10 time steps).
    assert steered < idle
    assert abs(steered / value - 1) < 0.1


@pytest.mark.slow
def test_the_lab_takes_the_equation_in_place_of_its_own():
    experiment = next(e for e in paper("tensor-train-pde").experiments if e.name == "double-well-interacting")
    problem = example().oscillators(dimension=5)
    assert all(hasattr(problem, name) for name in experiment.accepts)
    arm, settings = experiment.arms[0].settings, Settings(experiment.scales["desk"].settings, steps=15, paths=500)
    result = jax.jit(lambda key: interacting(key, arm, problem, settings))(jax.random.key(0))
    # Fifteen time steps, 500 paths: per cents, where a wrong equation or interval would give tens of them.
    assert np.asarray(result["error"]) < 0.05
