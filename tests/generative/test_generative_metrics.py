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


ONE, TWO = RNG.normal(size=(5, 2, 2)), RNG.normal(size=(7, 2, 2)) + 0.5
SAME = RNG.normal(size=(400, 2, 6, 1))
DRAWS, TRUTH = RNG.normal(size=(500, 8, 1)), RNG.normal(size=(500, 1))
MODES = np.array([[1.0, 1.0], [-1.0, -1.0]])
ANSWERS = np.array([[1.1, 0.9], [-1.0, -1.3], [0.1, 0.1], [-1.0, -0.9]])
ANGLES = np.linspace(0, 2 * np.pi, 8, endpoint=False) + 0.1
REAL, MADE = RNG.normal(size=(12, 2)), RNG.normal(size=(9, 2)) * 0.5


@pytest.fixture(scope="module")
def found():
    """All measures in one program."""
    given = [ONE, TWO, SAME, DRAWS, TRUTH, MODES, ANSWERS, np.stack([np.cos(ANGLES), np.sin(ANGLES)], 1), REAL, MADE]

    @jax.jit
    def measured(one, two, same, draws, truth, modes, answers, points, real, made):
        score = lambda drawn: jnp.mean(jax.vmap(g.energy_score)(drawn, truth))  # noqa: E731
        arcs = [(None, 8), (None, 16), (jnp.arange(8) < 2, 8)]
        return {
            "distance": g.energy_distance(one, two),
            "same": jax.vmap(lambda pair: g.energy_distance(pair[0], pair[1]))(same),
            "score": g.energy_score(one, two[0]),
            "scores": jnp.stack([score(draws), score(draws * 0.3), score(draws * 2), score(draws + 0.7)]),
            "modes": g.mode_report(answers, modes, 0.12),
            "arcs": jnp.stack([g.covered_arc(points, counted, bins) for counted, bins in arcs]),
            "precision and recall": g.precision_recall(real, made, num_neighbours=2),
            "diversity": g.diversity(one),
        }

    return jax.tree.map(np.asarray, measured(*(jnp.asarray(values, jnp.float32) for values in given)))


def test_energy_distance_by_hand_and_unbiased(found):
    wanted = 2 * mean_distance(ONE, TWO) - mean_distance(ONE, ONE, True) - mean_distance(TWO, TWO, True)
    np.testing.assert_allclose(found["distance"], wanted, rtol=1e-4)
    same = found["same"]
    assert abs(same.mean()) < 4 * same.std() / 20
    assert same.min() < 0


def test_energy_score_by_hand_and_least_for_the_truth(found):
    wanted = mean_distance(ONE, TWO[:1]) - 0.5 * mean_distance(ONE, ONE, True)
    np.testing.assert_allclose(found["score"], wanted, rtol=1e-4)
    right, *wrong = found["scores"]
    assert right < min(wrong)


def test_modes_by_hand(found):
    report = found["modes"]
    assert report.hit == 0.5
    assert report.shares.tolist() == [0.25, 0.25]
    assert report.nearest.tolist() == [0.5, 0.5]


def test_arcs_by_hand(found):
    assert found["arcs"].tolist() == [1.0, 0.5, 0.25]


def test_precision_and_recall_by_hand(found):
    distance = lambda a, b: np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))  # noqa: E731
    radius = lambda part: np.sort(distance(part, part), 1)[:, 2]  # noqa: E731
    precision = np.mean([(distance(one[None], REAL)[0] <= radius(REAL)).any() for one in MADE])
    recall = np.mean([(distance(one[None], MADE)[0] <= radius(MADE)).any() for one in REAL])
    np.testing.assert_allclose(found["precision and recall"], (precision, recall), rtol=1e-5)
    assert precision != recall


def test_diversity_by_hand(found):
    wanted = np.mean([np.abs(ONE[i] - ONE[j]).mean() for i in range(5) for j in range(5) if i != j])
    np.testing.assert_allclose(found["diversity"], wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: g.energy_distance(jnp.zeros((1, 2)), jnp.zeros((3, 2))), "energy_distance.first must be at least two"),
        (lambda: g.energy_score(jnp.zeros((1, 2)), jnp.zeros(2)), "energy_score.samples must be at least two"),
        (lambda: g.diversity(jnp.zeros((1, 2))), "diversity.samples must be at least two"),
        (lambda: g.mode_report(jnp.zeros((2, 1)), jnp.zeros((1, 1)), 0.0), "mode_report.tolerance must be > 0"),
        (lambda: g.precision_recall(jnp.zeros((3, 1)), jnp.zeros((9, 1))), "precision_recall.num_neighbours must be"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
