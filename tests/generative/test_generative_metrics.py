"""Measures of answers against sums by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import generative as g

RNG = np.random.default_rng(1)


def mean_distance(first, second, leave_out=False):
    pairs = [
        np.sqrt(((one - two) ** 2).sum())
        for i, one in enumerate(first)
        for j, two in enumerate(second)
        if not (leave_out and i == j)
    ]
    return np.mean(pairs)


def test_energy_distance_by_hand_and_unbiased():
    one, two = RNG.normal(size=(5, 2, 2)), RNG.normal(size=(7, 2, 2)) + 0.5
    wanted = 2 * mean_distance(one, two) - mean_distance(one, one, True) - mean_distance(two, two, True)
    np.testing.assert_allclose(g.energy_distance(jnp.asarray(one), jnp.asarray(two)), wanted, rtol=1e-4)
    draws = jnp.asarray(RNG.normal(size=(400, 2, 6, 1)), jnp.float32)
    same = np.asarray(jax.jit(jax.vmap(lambda d: g.energy_distance(d[0], d[1])))(draws))
    assert abs(same.mean()) < 4 * same.std() / 20
    assert same.min() < 0


def test_energy_score_by_hand_and_least_for_the_truth():
    samples, y = RNG.normal(size=(6, 3)), RNG.normal(size=3)
    wanted = mean_distance(samples, y[None]) - 0.5 * mean_distance(samples, samples, True)
    np.testing.assert_allclose(g.energy_score(jnp.asarray(samples), jnp.asarray(y)), wanted, rtol=1e-4)
    truth = jnp.asarray(RNG.normal(size=(500, 1)), jnp.float32)
    draws = jnp.asarray(RNG.normal(size=(500, 8, 1)), jnp.float32)
    score = jax.jit(lambda d: jnp.mean(jax.vmap(g.energy_score)(d, truth)))
    assert float(score(draws)) < min(float(score(draws * 0.3)), float(score(draws * 2)), float(score(draws + 0.7)))


def test_modes_by_hand():
    modes = jnp.array([[1.0, 1.0], [-1.0, -1.0]])
    samples = jnp.array([[1.1, 0.9], [-1.0, -1.3], [0.1, 0.1], [-1.0, -0.9]])
    report = g.mode_report(samples, modes, 0.12)
    assert float(report.hit) == 0.5
    assert report.shares.tolist() == [0.25, 0.25]
    assert report.nearest.tolist() == [0.5, 0.5]


def test_arcs_by_hand():
    angles = np.linspace(0, 2 * np.pi, 8, endpoint=False) + 0.1
    points = jnp.asarray(np.stack([np.cos(angles), np.sin(angles)], 1), jnp.float32)
    assert float(g.covered_arc(points, num_bins=8)) == 1.0
    assert float(g.covered_arc(points, num_bins=16)) == 0.5
    assert float(g.covered_arc(points, jnp.arange(8) < 2, num_bins=8)) == 0.25


def test_precision_and_recall_by_hand():
    real, made = RNG.normal(size=(12, 2)), RNG.normal(size=(9, 2)) * 0.5
    distance = lambda a, b: np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))  # noqa: E731
    radius = lambda part: np.sort(distance(part, part), 1)[:, 2]  # noqa: E731
    precision = np.mean([(distance(one[None], real)[0] <= radius(real)).any() for one in made])
    recall = np.mean([(distance(one[None], made)[0] <= radius(made)).any() for one in real])
    found = g.precision_recall(jnp.asarray(real), jnp.asarray(made), neighbours=2)
    np.testing.assert_allclose(found, (precision, recall), rtol=1e-5)
    assert precision != recall


def test_diversity_by_hand():
    samples = RNG.normal(size=(5, 3))
    wanted = np.mean([np.abs(samples[i] - samples[j]).mean() for i in range(5) for j in range(5) if i != j])
    np.testing.assert_allclose(g.diversity(jnp.asarray(samples)), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: g.energy_distance(jnp.zeros((1, 2)), jnp.zeros((3, 2))), "energy_distance.first must be at least two"),
        (lambda: g.energy_score(jnp.zeros((1, 2)), jnp.zeros(2)), "energy_score.samples must be at least two"),
        (lambda: g.diversity(jnp.zeros((1, 2))), "diversity.samples must be at least two"),
        (lambda: g.mode_report(jnp.zeros((2, 1)), jnp.zeros((1, 1)), 0.0), "mode_report.tolerance must be > 0"),
        (lambda: g.precision_recall(jnp.zeros((3, 1)), jnp.zeros((9, 1))), "precision_recall.neighbours must be"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
