"""Probes and explained variance against closed forms."""

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
    x, labels, mask = RNG.normal(size=(50, 3)), RNG.integers(2, size=50), RNG.uniform(size=50) < 0.6
    spoilt, odd = np.where(mask[:, None], x, np.nan), np.where(mask, labels, -7)
    for function in (i.fit_probe, i.explained_variance):
        masked, plain = function(spoilt, odd, 2, mask), function(x[mask], labels[mask], 2)
        for one, two in zip(*(vars(m).values() if hasattr(m, "means") else [m] for m in (masked, plain)), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
    probe = i.fit_probe(x[mask], labels[mask])
    one, two = i.score_probe(probe, spoilt, odd, mask), i.score_probe(probe, x[mask], labels[mask])
    for first, second in zip(one, two, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-5)


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
