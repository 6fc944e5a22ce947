"""Random graphs and the trained machine: what the comparison of samplers rests on."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from laureate.papers.gibbs_with_gradients.trials_samplers import _samples
from laureate.problems.datasets import digits
from laureate.problems.energies import random_graph_couplings, random_rbm
from laureate.problems.energies.trained_rbm import trained_rbm


def test_random_graphs_have_their_degree_and_weights():
    found = np.asarray(jax.vmap(lambda k: random_graph_couplings(k, 60, 4.0))(jax.random.split(jax.random.key(0), 20)))
    assert (found == found.transpose(0, 2, 1)).all()
    assert (np.diagonal(found, axis1=1, axis2=2) == 0).all()
    edges = found[found != 0]
    assert abs((found != 0).sum(-1).mean() - 4.0 * 59 / 60) < 0.3
    assert abs(edges.std() - 0.5) < 0.03  # N(0, 1/degree)


def test_samples_of_a_graph_have_its_correlations():
    """Two sites joined by J: f = 2 J s₁s₂, so E s₁s₂ = tanh(2 J)."""
    couplings = jnp.zeros((3, 3)).at[0, 1].set(0.3).at[1, 0].set(0.3)
    rows = np.asarray(_samples(jax.random.key(0), couplings, 20_000, 20))
    spins = 2.0 * rows - 1
    error = 4 / np.sqrt(len(rows))
    assert abs((spins[:, 0] * spins[:, 1]).mean() - np.tanh(0.6)) < error
    assert abs((spins[:, 0] * spins[:, 2]).mean()) < error


def test_a_random_machine_has_the_weights_of_the_authors_code():
    machine = random_rbm(jax.random.key(0), visible=200, hidden=50)
    assert abs(float(jnp.var(machine.weights)) - 0.05) < 0.003
    assert abs(float(jnp.std(machine.visible_bias)) - 1.0) < 0.2


def test_it_is_trained_on_as_many_whole_images_as_there_are(monkeypatch):
    """The digits are 1,797, of which one is for testing: more cannot be had, and no image is cut in two."""
    module = sys.modules[trained_rbm.__module__]
    monkeypatch.setattr(module, "_trained", lambda images, *rest: np.asarray(images))
    for train in (100, 1796, 2000, 2 * 1796):
        found = trained_rbm("digits", train=train)
        np.testing.assert_array_equal(found, digits()[0].reshape(1797, 64)[: min(train, 1796)] >= 0.5)


def test_training_brings_the_machine_nearer_to_its_images():
    """Its samples have the images' pixel means, and pixels that go together, as independent pixels have not."""
    problem = trained_rbm("digits", hidden=10, updates=200, reference=400, sweeps=30, train=1000)
    again = trained_rbm("digits", hidden=10, updates=200, reference=400, sweeps=30, train=1000)
    assert (problem.reference == again.reference).all(), "the same on every machine"
    off = np.abs(np.asarray(problem.reference).mean(0) - np.asarray(problem.mean))
    assert off.mean() < 0.05
    drawn = jax.vmap(problem.start)(jax.random.split(jax.random.key(1), 2000))
    assert np.abs(np.asarray(drawn).mean(0) - np.asarray(problem.mean)).max() < 0.05
    assert float(jnp.std(problem.machine.weights)) > 1.2 * 64**-0.5 / 3**0.5, "training moved them"
