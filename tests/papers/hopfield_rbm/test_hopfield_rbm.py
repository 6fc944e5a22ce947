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
from laureate.papers.hopfield_rbm import trials, trials_host
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


@pytest.mark.parametrize("kind", ["none", "random", "projection"])
def test_features_are_made_fitted_and_scaled_on_one_part_of_the_rows_and_judged_by_the_other(kind, monkeypatch):
    """Rows that are their number: every row is in one of the parts, and its label is its own."""
    rows, known = np.arange(30), 20
    spins, labels = rows[:, None] * np.array([1.0, -1.0]), rows % 3
    problem = Settings(spins=spins[:known], test_spins=spins[known:], labels=labels[:known], test_labels=labels[known:])
    made, weights = [], np.array([[2.0], [0.0]])

    class Regression:
        def __init__(self, max_iter):
            assert max_iter == 7

        def fit(self, inputs, told):
            self.seen = np.round(inputs[:, 0] / inputs[:, 0].std() * spins[made[-1], 0].std())
            np.testing.assert_allclose(inputs.std(), 1.0)
            np.testing.assert_array_equal(told, labels[self.seen.astype(int)])
            return self

        def score(self, inputs, told):
            asked = np.round(inputs[:, 0] * spins[made[-1], 0].std()).astype(int)
            assert sorted([*asked, *made[-1]]) == sorted([*asked, *self.seen]) == list(rows)
            np.testing.assert_array_equal(told, labels[asked])
            return 0.5

    def weights_of(asked, inputs, told, per_class, count, generator):
        assert (asked, per_class, count) == (kind, 2, 6)
        made.append(inputs[:, 0].astype(int))
        np.testing.assert_array_equal(told, labels[made[-1]])
        return None if kind == "none" else weights

    monkeypatch.setattr("sklearn.linear_model.LogisticRegression", Regression)
    monkeypatch.setattr(trials_host, "_weights", weights_of)
    found = trials_host.features(
        jax.random.key(0), Settings(features=kind), problem, Settings(per_class=2, iterations=7)
    )
    assert len(made[0]) == len(set(made[0])) == known
    rest = np.setdiff1d(rows, made[0])
    common = np.bincount(labels[made[0]]).argmax()
    assert float(found["accuracy"]) == pytest.approx(0.5 if kind != "none" else (labels[rest] == common).mean())
    assert float(found["features"]) == (kind != "none")


@pytest.mark.slow
def test_the_example_restores_a_letter():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert "restored: True" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "hopfield-rbm/features", f"{EXAMPLE}:Letters")
