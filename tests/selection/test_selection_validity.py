"""The validity test keeps its level where knockoffs are exact, and sees what is wrong where they are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.selection import GaussianKnockoffs, InvalidKnockoffsError, ValidityReport, validity, validity_report
from laureate.selection.validity import second_moment_gaps
from laureate.testing import KeyRecorder

P, N = 5, 300


def autoregressive(rho):
    lag = np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
    return jnp.asarray(rho**lag, jnp.float32)


@jax.jit
def reports(keys, rho):
    """Accuracy and p-value for exact, permuted, independent, copied and Gaussian knockoffs of heavy tails."""
    sampler = GaussianKnockoffs(jnp.zeros(P), autoregressive(rho))
    root = jnp.linalg.cholesky(autoregressive(rho))

    def one(key):
        a, b, c, d, e = jax.random.split(key, 5)
        x, other = jax.random.normal(a, (2, N, P)) @ root.T
        tails = x * jnp.sqrt(3.0 / jnp.sum(jax.random.normal(e, (N, 3)) ** 2, axis=1, keepdims=True))
        kinds = ((x, sampler.sample(b, x)), (x, jax.random.permutation(c, x)), (x, other[:, ::-1]), (x, x),
                 (tails, 1.5 * sampler.sample(b, tails / 1.5)))  # fmt: skip
        first, second = jnp.stack([k[0] for k in kinds]), jnp.stack([k[1] for k in kinds])
        found = jax.vmap(lambda u, v: validity_report(u, v, d)[:2])(first, second)
        return jnp.stack(found, axis=-1)

    return jax.vmap(one)(keys)


@pytest.fixture(scope="module")
def found():
    keys = jax.random.split(jax.random.key(0), 40)
    return np.asarray(reports(keys, 0.6)), np.asarray(reports(keys, 0.0))


def test_it_keeps_its_level_on_exact_knockoffs_and_copies(found):
    dependent, _ = found
    for kind in (0, 3):  # O9: a copy is exchangeable
        accuracy, p = dependent[:, kind, 0], dependent[:, kind, 1]
        assert abs(accuracy.mean() - 0.5) < 4 * 0.5 / np.sqrt(150 * 40)
        assert (p < 0.1).mean() < 0.1 + 3 * 0.05
        assert (p < 0.01).sum() <= 3


def test_it_finds_permuted_rows_and_wrong_copies(found):
    dependent, independent = found
    assert (dependent[:, 1, 1] < 0.01).mean() > 0.9
    # O10: an independent copy is a knockoff just if the variables are independent.
    assert dependent[:, 2, 1].max() < 0.2
    assert (independent[:, 2, 1] < 0.01).sum() <= 3


def test_it_sees_beyond_second_moments(found):
    """Gaussian knockoffs of a multivariate t: the dependence of squares betrays them."""
    dependent, _ = found
    assert dependent[:, 4, 0].mean() > 0.5 + 4 * 0.5 / np.sqrt(150 * 40)


def test_the_p_value_is_binomial():
    from scipy.stats import binom

    x, knockoff = np.random.default_rng(3).normal(size=(2, 60, 2)).astype(np.float32)
    tested, units = jax.jit(validity_report), np.array([2.0**-6, 2.0**6], np.float32)
    report, other = tested(x, knockoff * 1.5), tested(x * units, knockoff * 1.5 * units)
    jax.tree.map(np.testing.assert_array_equal, other, report)  # whatever the columns' units
    right = round(float(report.accuracy) * int(report.num_rows))
    assert report.num_rows == 30
    assert float(report.p_value) == pytest.approx(float(binom.sf(right - 1, 30, 0.5)), rel=1e-4)


def test_no_key_is_used_twice():
    x, knockoff = np.random.default_rng(3).normal(size=(2, 60, 2)).astype(np.float32)
    with KeyRecorder() as recorder:
        jax.jit(lambda key: validity_report(x, knockoff, key).accuracy)(jax.random.key(0))
    assert recorder.reused() == []
    assert len(recorder.uses) == 4  # the split; sets for training and for the test; ties


@pytest.mark.parametrize(("rows", "train", "first"), [(60, 0.25, 15), (61, 0.5, 30), (5, 0.01, 2), (5, 0.99, 3)])
def test_the_first_rows_train_and_the_others_test(monkeypatch, rows, train, first):
    """The share asked for, rounded down; two rows at least on either side."""
    seen = []

    def judge(key, *tables):
        seen.extend(np.asarray(table) for table in tables)
        return 0.5, jnp.ones(())

    monkeypatch.setattr(validity, "discrimination", judge)
    monkeypatch.setattr(validity, "second_moment_gaps", lambda x, knockoff: (0.0,) * 4)
    x = np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2)
    assert validity_report(x, -x, train=train).num_rows == rows - first
    for table, wanted in zip(seen, (x[:first], -x[:first], x[first:], -x[first:]), strict=True):
        np.testing.assert_array_equal(table, wanted)


def test_a_p_value_of_just_the_level_is_let_through():
    report = ValidityReport(*(np.float32(number) for number in (0.6, 0.25, 0, 0, 0, 0)), num_rows=40)
    validity.refuse_or_warn(report, 0.25, allow_invalid=False)
    with pytest.raises(InvalidKnockoffsError, match="No selection"):
        validity.refuse_or_warn(report, 0.26, allow_invalid=False)


def test_gaps_by_hand():
    x = jnp.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    mean, covariance, cross, correlation = second_moment_gaps(x, jnp.stack([x[:, 0] + 1.0, x[:, 0]], 1))
    deviation = np.sqrt(0.5)
    assert float(mean) == pytest.approx(1 / deviation)
    assert float(covariance) == pytest.approx(1.0)  # cov(X̃₁, X̃₂) = 1 in these units, cov(X₁, X₂) = 0
    assert float(cross) == pytest.approx(1.0)  # cov(X₁, X̃₂) = 1
    np.testing.assert_allclose(correlation, [1.0, 0.0], atol=1e-6)
