"""Probes and explained variance against closed forms."""

import jax
import numpy as np
import pytest

from laureate import interpretation as i

RNG = np.random.default_rng(0)


def test_equal_variances_give_the_threshold_of_linear_discriminants():
    """With equal variances v the border is (μ₀ + μ₁)/2 + v log(π₀/π₁)/(μ₁ − μ₀)."""
    means, variance, priors = np.array([[0.0], [1.0]]), 0.3, np.array([0.8, 0.2])
    probe = i.GaussianProbe(means, np.full((2, 1), variance), priors)
    border = 0.5 + variance * np.log(4.0)
    x = border + np.array([[-1e-3], [1e-3]])
    assert probe.predict(x).ravel().tolist() == [0, 1]


def test_the_wider_class_wins_far_away():
    probe = i.GaussianProbe(np.zeros((2, 1)), np.array([[1.0], [9.0]]), np.array([0.5, 0.5]))
    border = np.sqrt(np.log(9) / (1 - 1 / 9))
    assert probe.predict(np.array([[0.0], [border - 1e-3], [border + 1e-3]])).ravel().tolist() == [0, 0, 1]


def test_separable_units_are_perfect_and_others_are_not():
    labels = np.repeat([0, 1], [60, 40])
    x = np.column_stack([labels + 0.01 * RNG.normal(size=100), RNG.normal(size=100)])
    probe = i.fit_probe(x, labels)
    found = i.score_probe(probe, x, labels)
    np.testing.assert_allclose(probe.means[:, 0], [0, 1], atol=0.01)
    np.testing.assert_allclose(probe.priors, [0.6, 0.4])
    np.testing.assert_allclose(probe.variances[:, 1], [x[:60, 1].var(), x[60:, 1].var()], rtol=1e-4)
    np.testing.assert_allclose(found.f1[:, 0], 1.0)
    assert float(found.accuracy[0]) == 1.0
    assert float(found.majority) == pytest.approx(0.6)
    assert (np.asarray(found.f1[:, 1]) < 0.9).all()


def test_f1_of_a_table():
    """Says 0, 0, 1, 1 where 0, 1, 1, 1 is right: F1 is 2/3 of class 0 and 4/5 of class 1."""
    probe = i.GaussianProbe(np.array([[0.0], [1.0]]), np.ones((2, 1)), np.array([0.5, 0.5]))
    found = i.score_probe(probe, np.array([[0.0], [0.1], [1.0], [0.9]]), np.array([0, 1, 1, 1]))
    np.testing.assert_allclose(found.f1[:, 0], [2 / 3, 4 / 5], rtol=1e-6)
    assert float(found.accuracy[0]) == pytest.approx(0.75)
    assert float(found.majority) == pytest.approx(0.75)


def test_a_mask_leaves_tokens_out():
    """Of three classes, against NumPy on the tokens that count; the others are not numbers and have no class."""
    rng = np.random.default_rng(1)
    labels, mask = rng.integers(3, size=60), rng.uniform(size=60) < 0.6
    x = rng.normal(size=(60, 4)) + np.array([0.0, 0.5, 1.0, 3.0]) * labels[:, None]
    spoilt, odd = np.where(mask[:, None], x, np.nan), np.where(mask, labels, -7)

    @jax.jit
    def every(x, labels, mask):
        probe = i.fit_probe(x, labels, 3, mask)
        return probe, i.score_probe(probe, x, labels, mask), i.explained_variance(x, labels, 3, mask)

    probe, score, explained = jax.tree.map(np.asarray, every(spoilt, odd, mask))
    x, labels = x[mask], labels[mask]
    means, variances = (np.stack([getattr(x[labels == c], what)(0) for c in range(3)]) for what in ("mean", "var"))
    priors = np.bincount(labels) / len(labels)
    for found, expected in ((probe.means, means), (probe.variances, variances), (probe.priors, priors)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    density = np.log(priors)[:, None] - 0.5 * np.log(variances) - 0.5 * (x[:, None] - means) ** 2 / variances
    said = density.argmax(1)
    assert score.accuracy == pytest.approx((said == labels[:, None]).mean(0), rel=1e-5)
    assert float(score.majority) == pytest.approx(priors.max(), rel=1e-5)
    for c in range(3):
        right, named, there = ((said == c) & (labels == c)[:, None]).sum(0), (said == c).sum(0), (labels == c).sum()
        np.testing.assert_allclose(score.f1[c], 2 * right / (named + there), rtol=1e-5)
    np.testing.assert_allclose(explained, 1 - priors @ variances / x.var(0), atol=1e-5)


def test_explained_variance_is_the_law_of_total_variance():
    condition = RNG.integers(4, size=300)
    x = np.column_stack(
        [np.sqrt(condition), RNG.normal(size=300) + condition, np.full(300, 2.0), 5 + RNG.normal(size=300)]
    )
    found = np.asarray(i.explained_variance(x, condition, 4))
    within = np.sum([(condition == c).mean() * x[condition == c].var(0) for c in range(4)], axis=0)
    expected = 1 - within[[0, 1, 3]] / x[:, [0, 1, 3]].var(0)
    np.testing.assert_allclose(found[[0, 1, 3]], expected, atol=1e-4)
    assert found[0] == pytest.approx(1.0, abs=1e-5)  # a function of the condition
    assert found[2] == 0.0  # constant
    assert ((found >= 0) & (found <= 1)).all()


def test_every_unit_is_judged_alone_in_whatever_unit_its_numbers_come():
    """Beside units of other sizes, as by itself, and as in numbers near 1; of one class the second never varies."""
    rng = np.random.default_rng(4)
    labels = np.arange(60) % 3
    x = rng.normal(size=(60, 3)) * [1.0, 0.5, 2.0] + labels[:, None] * [0.7, 1.0, -1.0]
    x[labels == 1, 1] = 0.25
    sizes = np.array([1e-3, 1.0, 1e4])

    @jax.jit
    def judged(x):
        probe = i.fit_probe(x, labels, 3)
        found = i.score_probe(probe, x, labels)
        explained = i.explained_variance(x, labels, 3)
        return probe.means, probe.variances, probe.predict(x), found.accuracy, found.f1, explained

    scaled = (x * sizes).astype(np.float32)
    together, near_one = judged(scaled), judged(x.astype(np.float32))
    alone = [judged(column) for column in np.split(scaled, 3, axis=1)]
    expected = (sizes, sizes**2, 1.0, 1.0, 1.0, 1.0)
    for size, many, one, *single in zip(expected, together, near_one, *alone, strict=True):
        np.testing.assert_allclose(many, np.concatenate(single, axis=-1), rtol=1e-5)
        np.testing.assert_allclose(many, one * size, rtol=2e-4, atol=1e-6 * np.min(size))
    assert float(together[1][1, 1]) == pytest.approx(1e-6 * x[:, 1].var(), rel=1e-3)
