"""The claims of DirectPred: trials that run and report what is read, and that would notice a fault."""

import jax
import numpy as np
import pytest
from trial_runner import check_metrics, problem_of, run

from laureate.claims.directpred import PAPER
from laureate.lab.claim import Settings
from laureate.lab.references import load
from laureate.problems.views import ImagePairs, SharedDirections

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
VECTORS = {"inputs": 6, "shared": 3, "dim": 4, "floor": 0.5}
TINY = {
    "modes": ({}, {"size": 2, "steps": 40}),
    "invariant-subspace": (VECTORS, {"steps": 4, "batch": 8}),
    "collapse": (VECTORS, {"steps": 4, "batch": 8}),
    "rank": (
        {"data": "digits", "pool": 2, "hidden": 8, "dim": 4},
        {"steps": 4, "batch": 8, "points": 2, "judged": 16},
    ),
}


def test_the_ids_are_the_ones_promised():
    promised = {"modes", "invariant-subspace", "collapse", "rank", "alignment", "weight-decay", "ema", "eigen-floor"}
    assert promised | {"frequency"} <= {claim.name for claim in PAPER.claims}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_scale_gives_the_settings_the_tiny_one_has(name):
    problem, settings = TINY[name]
    for scale in EXPERIMENTS[name].scales.values():
        assert set(scale.settings) == set(settings)
        assert set(scale.problem) <= set(problem)


@pytest.mark.parametrize(
    ("name", "arm"),
    [("modes", "theory"), ("invariant-subspace", "direct-copy"), ("rank", "direct-pred-freq-20")]
    + [("collapse", arm.name) for arm in EXPERIMENTS["collapse"].arms],
)
def test_trials_report_what_their_claims_read(name, arm):
    experiment, (problem, scale) = EXPERIMENTS[name], TINY[name]
    metrics = run(load(experiment.trial), experiment.arm(arm).settings, problem_of(experiment, **problem), scale)
    check_metrics(experiment, metrics)


def test_the_collapse_trial_predicts_the_rate_it_measures():
    """A wrong factor in the prediction, or a loss of one direction instead of two, would show."""
    experiment = EXPERIMENTS["collapse"]
    problem = problem_of(experiment, **experiment.scales["smoke"].problem)
    arm = experiment.arm("no-predictor").settings
    metrics = run(load(experiment.trial), arm, problem, {"steps": 300, "batch": 512}, seeds=4)
    np.testing.assert_allclose(metrics["rate_ratio"].mean(), 1.0, atol=0.04)


def test_energy_and_spectrum_of_a_known_network():
    problem = SharedDirections(inputs=4, shared=2, dim=2)
    model = jax.numpy.array([[3.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    np.testing.assert_allclose(problem.energy(model), 10 / 12)
    np.testing.assert_allclose(problem.spectrum(model), [1.0, 9.0], rtol=1e-6)


def test_views_of_one_image_are_alike_and_of_two_are_not():
    problem = ImagePairs("digits", pool=1)
    first, second = problem.views(jax.random.key(0), 1500)
    alike = np.mean(np.sum((first - second) ** 2, axis=1))
    strangers = np.mean(np.sum((first - np.roll(second, 1, axis=0)) ** 2, axis=1))
    assert alike < 0.97 * strangers  # mirrored and moved by an eighth of eight pixels, digits are hard to recognise


def test_pairs_of_ones_own_run():
    """A user's own problem, with the five things the experiment asks for and nothing else."""

    class Own:
        dim = 3

        def model0(self, key):
            return jax.random.normal(key, (3, 5))

        def views(self, key, number):
            x = jax.random.normal(key, (number, 5))
            return x, x[:, ::-1]

        def apply(self, model, batch):
            return batch @ model.T

        def outputs(self, model, key, number):
            return self.apply(model, self.views(key, number)[0])

    experiment = EXPERIMENTS["rank"]
    assert all(hasattr(Own, name) for name in experiment.accepts)
    metrics = load(experiment.trial)(
        jax.random.key(0), experiment.arm("direct-pred").settings, Own(), Settings(TINY["rank"][1])
    )
    assert np.isfinite(metrics["rank"])
