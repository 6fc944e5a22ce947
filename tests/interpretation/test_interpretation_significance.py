"""Nulls and intervals: their level, what chance gives, and the jackknife against its definition."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import interpretation as i


@pytest.mark.slow
def test_what_chance_gives():
    """E max_j |ρ| of independent Gaussian units is √(2 log(2d)/n) within 15 %."""
    rng = np.random.default_rng(0)
    n, d = 2000, 200
    stats = i.RunningMoments((d, d))
    moments = stats.finish(stats.update(stats.init(), [rng.normal(size=(n, d)) for _ in range(2)])[0])
    assert float(i.max_corr(moments, 0).scores.mean()) == pytest.approx(i.expected_null(d, n), rel=0.15)


@pytest.fixture(scope="module")
def null():
    def one(key):
        data, order = jax.random.split(key)
        values = jax.random.normal(data, (3, 60, 4))
        values = values.at[1, :, 2].set(values[0, :, 0])  # one unit is shared, all others are not
        return i.permutation_null(order, list(values), 0, num_permutations=19)

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 200))


@pytest.mark.slow
def test_the_null_keeps_its_level_and_finds_what_is_shared(null):
    assert (np.asarray(null.p_value[:, 0]) == 1 / 20).all()
    assert (np.asarray(null.adjusted[:, 0]) == 1 / 20).all()
    shares = np.asarray(null.p_value[:, 1:])
    # p is uniform on 1/20 … 1: 600 of them, within four standard errors.
    for level in (0.05, 0.25, 0.5):
        assert (shares <= level + 1e-6).mean() == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 600))
    assert (null.adjusted >= null.p_value).all()
    inside = np.asarray(null.observed <= null.high)[:, 1:]
    assert inside.mean() > 0.85


def test_other_models_are_exchanged_and_not_with_one_order(null):
    """Where the others are copies of each other, exchanging both alike would keep their agreement."""
    x = jax.random.normal(jax.random.key(1), (50, 2))
    seen = []

    def ranking(moments, model):
        jax.debug.callback(
            lambda value: seen.append(np.asarray(value)), moments.covariance(0, 1) - moments.covariance(0, 2)
        )
        return i.max_corr(moments, model)

    i.permutation_null(jax.random.key(2), [x, x, x], 0, num_permutations=3, ranking=ranking)
    jax.effects_barrier()
    assert sum(np.abs(value).max() > 1e-3 for value in seen) == 3  # the three permutations; the observed one is 0


def test_the_null_is_made_of_all_orders_of_blocks_and_its_report_of_the_null():
    """Three blocks of two other models have 36 pairs of orders: each occurs, nothing else does, and NumPy counts p."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(7, units)) for units in (2, 3, 2)]  # the last token fills no block

    def ranking(moments, model):
        return i.ranked(moments.covariance(model, 0).sum(1) + 3 * moments.covariance(model, 2).sum(1))

    null = jax.jit(
        lambda key: i.permutation_null(key, values, 1, num_permutations=300, block=2, ranking=ranking, level=0.8)
    )
    found = jax.device_get(null(jax.random.key(0)))
    first, mine, last = (x[:6] - x[:6].mean(0) for x in values)
    orders = [np.ravel([(2 * b, 2 * b + 1) for b in blocks]) for blocks in itertools.permutations(range(3))]
    score = lambda one, two: mine.T @ (first[one].sum(1) + 3 * last[two].sum(1)) / 6  # noqa: E731
    possible = np.array([score(one, two) for one in orders for two in orders])
    np.testing.assert_allclose(found.observed, possible[0], atol=1e-5)
    distance = np.abs(found.null[:, None] - possible).max(2)
    assert distance.min(1).max() < 1e-5
    assert set(distance.argmin(1)) == set(range(36))  # one is missing in 1 of 130 keys
    np.testing.assert_allclose(found.p_value, (1 + (found.null >= found.observed).sum(0)) / 301, rtol=1e-6)
    largest = found.null.max(1)[:, None]
    np.testing.assert_allclose(found.adjusted, (1 + (largest >= found.observed).sum(0)) / 301, rtol=1e-6)
    np.testing.assert_allclose(found.high, np.quantile(found.null, 0.8, axis=0), atol=1e-5)


def test_a_score_that_is_not_a_number_has_a_p_of_one():
    values = np.random.default_rng(0).normal(size=(2, 6, 2))
    ranking = lambda moments, model: i.ranked(moments.covariance(model, 1)[:, 0] * np.array([np.nan, 0.0]))  # noqa: E731
    null = jax.jit(lambda key: i.permutation_null(key, list(values), 0, num_permutations=3, ranking=ranking))
    found = jax.device_get(null(jax.random.key(0)))
    assert np.isnan(found.observed[0])
    assert found.p_value.tolist() == found.adjusted.tolist() == [1, 1]  # and so have equals


def test_what_is_not_a_number_is_never_beyond_chance():
    x = jax.random.normal(jax.random.key(1), (50, 2))
    found = i.permutation_null(jax.random.key(2), [x.at[3, 0].set(jnp.nan), x], 0, num_permutations=9)
    assert float(found.p_value[0]) == float(found.adjusted[0]) == 1.0
    assert float(found.p_value[1]) == pytest.approx(0.1)


def test_blocks_stay_together():
    """One unit counts up inside every block, the other counts the blocks: only the second can be exchanged."""
    blocks = jnp.repeat(jnp.arange(8.0), 5)
    inner = jnp.tile(jnp.arange(5.0), 8)
    mine, other = jnp.stack([inner, blocks], axis=1), jnp.stack([inner, blocks], axis=1)
    found = i.permutation_null(jax.random.key(0), [mine, other], 0, num_permutations=10, block=5)
    np.testing.assert_allclose(found.null[:, 0], 1.0, atol=1e-5)  # the order inside a block is kept
    assert (np.asarray(found.null[:, 1]) < 0.999).any()  # the order of blocks is not
    single = i.permutation_null(jax.random.key(0), [mine, other], 0, num_permutations=10)
    assert (np.asarray(single.null[:, 0]) < 0.9).all()


def test_the_null_of_a_model_that_is_not_the_first():
    values = list(jax.random.normal(jax.random.key(3), (3, 200, 2)))
    values[0] = jnp.concatenate([values[2][:, :1], values[0][:, 1:]], axis=1)
    found = i.permutation_null(jax.random.key(4), values, 2, num_permutations=19)
    assert float(found.p_value[0]) == pytest.approx(0.05)
    np.testing.assert_allclose(found.observed[0], 1.0, atol=1e-5)
    assert float(found.null[:, 0].max()) < 0.5


def test_intervals_are_the_jackknife():
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(50, 3)), rng.normal(size=(50, 2))) for _ in range(6)]
    for x, y in parts:
        y[:, 0] += x[:, 1]
    stats = i.RunningMoments((3, 2))
    update = jax.jit(stats.update)
    groups = [update(stats.init(), part)[0] for part in parts]
    found = i.score_interval(stats, groups, 0)

    def score(kept):
        x, y = (np.concatenate([part[side] for part in kept]) for side in (0, 1))
        return np.abs(np.corrcoef(x.T, y.T)[:3, 3:]).max(1)

    without = np.stack([score(parts[:g] + parts[g + 1 :]) for g in range(6)])
    error = np.sqrt(5 / 6 * ((without - without.mean(0)) ** 2).sum(0))
    np.testing.assert_allclose(found.scores, score(parts), atol=1e-5)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found.corrected, 6 * score(parts) - 5 * without.mean(0), atol=1e-4)
    np.testing.assert_allclose(found.high - found.low, 2 * 2.5706 * error, rtol=1e-3)  # Student's t, 5 degrees
    assert int(found.order[0]) == 1


def test_a_score_that_all_groups_agree_on_has_no_error_to_the_last_bit():
    """Seven times a number of single precision is exact in double precision, and so are its sums and means."""
    agreed = np.array([0.1, 0.3, 0.7, 1 / 3, 1e5 / 7], np.float32)
    stats = i.RunningMoments((5, 1))
    found = i.score_interval(stats, [stats.init()] * 7, 0, ranking=lambda moments, model: i.ranked(agreed))
    for name in ("scores", "corrected", "low", "high"):
        np.testing.assert_array_equal(getattr(found, name), agreed.astype(np.float64), err_msg=name)
    np.testing.assert_array_equal(found.standard_error, 0)
    assert found.order.tolist() == [4, 2, 3, 1, 0]
