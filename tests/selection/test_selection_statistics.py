"""Statistics: antisymmetric, right against scikit-learn, and silent where X̃ = X."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.selection import (
    LassoDifference,
    LassoEntry,
    RandomForestDifference,
    RidgeDifference,
    check_antisymmetry,
    swap,
)
from laureate.selection.statistics import _moments, lasso

KEY = jax.random.key(0)
STATISTICS = {
    "lasso": LassoDifference(),
    "entry": LassoEntry(),
    "ridge": RidgeDifference(),
    "forest": RandomForestDifference(num_trees=10),
}


# Outside jit each operation of a statistic is a program of its own.
compiled = eqx.filter_jit(lambda statistic, *given: statistic(*given))
exchange = jax.jit(swap)


def called(name):
    """The statistic as a function, compiled where it is ours."""
    statistic = STATISTICS[name]
    return statistic if name == "forest" else lambda *given: compiled(statistic, *given)


def table(n=80, p=6):
    x, knockoff = np.asarray(jax.random.normal(KEY, (2, n, p)))
    noise = np.asarray(jax.random.normal(jax.random.key(1), (n,)))
    y = x[:, 0] - np.float32(0.7) * x[:, 1] + np.float32(0.5) * knockoff[:, 2] + np.float32(0.3) * noise
    return x, np.float32(0.5) * x + knockoff, y


@pytest.mark.parametrize("name", STATISTICS)
def test_a_swap_flips_just_the_swapped(name):
    """O3."""
    x, knockoff, y = table()
    statistic = called(name)
    w = np.asarray(statistic(KEY, x, knockoff, y))
    assert w[0] > 0
    assert np.abs(w).max() > 0
    swapped = np.array([True, False, True, True, False, False])
    found = np.asarray(statistic(KEY, *exchange(x, knockoff, swapped), y))
    np.testing.assert_allclose(found, np.where(swapped, -w, w), atol=2e-3 * np.abs(w).max())
    check_antisymmetry(KEY, statistic)


@pytest.mark.parametrize("name", STATISTICS)
def test_a_copy_as_knockoff_gives_zero(name):
    """O9: X̃ = X tells nothing, so W is 0; coordinate descent would give all to the first of a pair."""
    x, _, y = table()
    w = np.asarray(called(name)(KEY, x, x, y))
    if name == "forest":  # draws columns at random: no more than noise, of no preferred sign
        assert w[0] != np.abs(w).max() or np.abs(w).max() < 0.5
    else:
        np.testing.assert_allclose(w, 0, atol=1e-5)


def test_the_lasso_is_scikit_learns():
    from sklearn.linear_model import Lasso

    x, knockoff, y = table()
    gram, correlation, deviation = jax.jit(_moments)(x, knockoff, y)
    assert float(deviation[0]) == pytest.approx(float(np.std(y)), rel=1e-5)
    both = np.hstack([x, knockoff]).astype(float)
    both = (both - both.mean(0)) / both.std(0)
    reference = Lasso(alpha=0.1, tol=1e-10, max_iter=100_000).fit(both, np.asarray(y, float))
    found = np.asarray(jax.jit(lasso)(gram, np.asarray(correlation)[0], jnp.asarray(0.1)))
    np.testing.assert_allclose(np.concatenate([found[:, 0], found[:, 1]]), reference.coef_, atol=1e-3)


def test_the_lasso_goes_on_while_one_of_a_pair_moves():
    """Variables that are much alike need many sweeps; knockoffs that nothing depends on stay at 0 from the first."""
    alike, wanted = 0.1 * np.eye(6) + 0.9, np.array([0.1, 0.5, 0.2, 0.9, 0.3, 0.4])
    gram, correlation = np.zeros((6, 2, 6, 2), np.float32), np.zeros((6, 2), np.float32)
    gram[:, 0, :, 0], gram[:, 1, :, 1] = alike, np.eye(6)
    correlation[:, 0] = alike @ wanted + 0.1  # where all coefficients are positive R β = c - λ
    found = np.asarray(jax.jit(lasso)(gram, correlation, jnp.asarray(0.1)))
    np.testing.assert_allclose(found, np.stack([wanted, 0 * wanted], 1), atol=2e-3)


def test_ridge_is_scikit_learns():
    from sklearn.linear_model import Ridge

    x, knockoff, y = table()
    both = np.hstack([x, knockoff]).astype(float)
    both = (both - both.mean(0)) / both.std(0)
    size = np.abs(Ridge(alpha=0.1 * len(both)).fit(both, np.asarray(y, float)).coef_).reshape(2, -1)
    np.testing.assert_allclose(called("ridge")(KEY, x, knockoff, y), size[0] - size[1], atol=1e-4)


def test_the_entry_is_the_largest_correlation_for_one_variable():
    """Alone, a variable enters at λ = |cor(x, y)|: the grid's next point below."""
    x, knockoff, y = table(p=6)
    single = np.asarray(compiled(LassoEntry(num_points=200), KEY, x[:, :1], 0 * knockoff[:, :1] + 1, y))
    expected = float(abs(np.corrcoef(x[:, 0], y)[0, 1]) * np.std(np.asarray(y)))
    assert single[0] == pytest.approx(expected, rel=0.05)
    assert single[0] <= expected * (1 + 1e-5)


def test_classes_are_a_column_each():
    x, knockoff, y = table()
    classes = np.eye(3)[np.digitize(np.asarray(y), [-0.5, 0.5])]
    w = np.asarray(called("lasso")(KEY, x, knockoff, classes))
    assert w.shape == (6,)
    assert w[0] > 0
    shifted = np.asarray(called("lasso")(KEY, x + np.float32(100), knockoff + np.float32(100), classes))
    np.testing.assert_allclose(shifted, w, atol=2e-3)


@pytest.mark.parametrize("name", ["lasso", "entry", "ridge"])
def test_classes_are_added_up_or_the_earliest_entry_counts(name):
    """Of two columns the coefficients' sizes add up; of entries the larger penalty counts. Their order is none."""
    x, knockoff, y = table()
    other = x[:, 3] + knockoff[:, 1] - np.float32(0.4) * knockoff[:, 0]
    of = lambda *columns: np.asarray(called(name)(KEY, x, knockoff, np.stack(columns, 1)))  # noqa: E731
    first, second, both = of(y, y), of(other, other), of(y, other)
    np.testing.assert_allclose(of(other, y), both, atol=1e-4)
    assert np.abs(first - second).max() > 0.1
    if name == "entry":
        np.testing.assert_allclose(called(name)(KEY, x, knockoff, y), first, atol=1e-5)
        # Each is a largest penalty with its sign: that of the class in which either of the pair enters first.
        larger = np.where(np.abs(first) > np.abs(second), first, second)
        np.testing.assert_allclose(np.abs(both), np.abs(larger), atol=1e-5)
    else:
        np.testing.assert_allclose(both, (first + second) / 2, atol=2e-3)


def test_a_statistic_of_the_wrong_kind_is_refused():
    with pytest.raises(ValueError, match=r"antisymmetric.*Treat X and X_knockoff alike"):
        check_antisymmetry(KEY, lambda key, x, knockoff, y: np.asarray(x).T @ np.asarray(y))
    with pytest.raises(ValueError, match=r"one number a variable, shape \(5,\); got \(\)"):
        check_antisymmetry(KEY, lambda key, x, knockoff, y: 0.0)
    mixed = lambda key, x, knockoff, y: (x - knockoff).T @ y + jnp.sum(x)  # noqa: E731  (others' swaps show too)
    with pytest.raises(ValueError, match="must be antisymmetric"):
        check_antisymmetry(KEY, mixed)
