"""The claims of Hopfield = RBM: the ids promised, trials that measure what they say, a problem of one's own."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import run_with_problem
from laureate.lab.claim import Settings
from laureate.papers.hopfield_rbm import trials
from laureate.papers.hopfield_rbm.about import PAPER
from laureate.papers.hopfield_rbm.experiments_training import NOTHING

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_patterns.py"


def test_the_ids_are_the_ones_promised():
    promised = {"exact", "sampling", "init-faster", "init-better", "against-pca", "capacity", "speed", "features"}
    assert promised | {"reverse", "diagonal"} <= {claim.name for claim in PAPER.claims}


def test_patterns_of_the_trials_are_independent_and_correlated():
    patterns = np.asarray(
        jax.vmap(lambda key: trials.correlated(key, 4, 12, 0.3))(jax.random.split(jax.random.key(0), 50))
    )
    assert all(np.linalg.matrix_rank(p) == 4 for p in patterns)
    overlap = np.einsum("npi,nqi->npq", patterns, patterns)[:, 0, 1].mean() / 12
    assert overlap > 0.1


def test_where_success_falls_to_a_half():
    x = jnp.array([0.1, 0.2, 0.4])
    for y, wanted in (([1.0, 0.8, 0.2], 0.3), ([0.4, 0.1, 0.0], 0.1), ([1.0, 1.0, 0.9], 0.4), ([1.0, 0.5, 0.0], 0.2)):
        assert float(trials._crossing(x, jnp.array(y))) == pytest.approx(wanted)


def test_independent_pixels_by_hand():
    spins, test = jnp.array([[1.0, -1], [1, 1], [1, -1]]), jnp.array([[1.0, -1]])
    assert float(trials._independent(spins, test)) == pytest.approx(np.log(4 / 5) + np.log(3 / 5))


def test_each_arm_begins_where_its_name_says():
    patterns = trials.correlated(jax.random.key(0), 3, 9, 0.3)
    arm = lambda **chosen: Settings(NOTHING | chosen)  # noqa: E731
    projection = trials.initial(jax.random.key(1), arm(projection=1.0), patterns, patterns)
    np.testing.assert_allclose(projection.T @ projection, np.eye(3), atol=1e-5)
    np.testing.assert_allclose(projection @ (projection.T @ patterns.T), patterns.T, atol=1e-5)
    hebbian = trials.initial(jax.random.key(1), arm(hebbian=1.0), patterns, patterns)
    np.testing.assert_allclose(hebbian, patterns.T / 3, atol=1e-6)
    noise = [trials.initial(jax.random.key(1), arm(noise=size), patterns, patterns) for size in (0.1, 0.01)]
    np.testing.assert_allclose(noise[0], 10 * noise[1], rtol=1e-5)


@pytest.mark.slow
def test_the_example_restores_a_letter():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert "restored: True" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "hopfield-rbm/features", f"{EXAMPLE}:Letters")
