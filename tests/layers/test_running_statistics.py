"""Running statistics and batch normalisation against NumPy on all rows at once, in float64."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laureate.layers import BatchNorm, GroupNorm, RunningStatistics

RNG = np.random.default_rng(0)


def of_parts(rows, cuts):
    statistics = RunningStatistics.empty(rows.shape[1:])
    for part in np.split(rows, cuts):
        statistics = statistics.update(jnp.asarray(part))
    return statistics


@pytest.mark.parametrize("cuts", [[], [1], [1, 2, 40], [0, 50, 50]])
def test_parts_give_the_statistics_of_the_whole(cuts):
    rows = (1000.0 + RNG.normal(size=(60, 3))).astype(np.float32)
    statistics = of_parts(rows, cuts)
    assert int(statistics.count) == 60
    assert_allclose(statistics.mean, rows.astype(float).mean(0), rtol=1e-6)
    assert_allclose(statistics.variance(), rows.astype(float).var(0), rtol=1e-3)  # a difference of squares loses it all
    assert_allclose(statistics.variance(ddof=1), rows.astype(float).var(0, ddof=1), rtol=1e-3)


def test_merging_is_exact_where_the_numbers_are():
    """Small integers with counts that are powers of two: no operation rounds, so both orders give the same bits."""
    a, b = RNG.integers(-8, 8, (8, 2)).astype(np.float32), RNG.integers(-8, 8, (8, 2)).astype(np.float32)
    one, two = (RunningStatistics.of(jnp.asarray(rows)) for rows in (a, b))
    both = np.concatenate([a, b])
    for merged in (one.merge(two), two.merge(one)):
        assert_array_equal(merged.mean, both.mean(0))
        assert_array_equal(merged.squares, ((both - both.mean(0)) ** 2).sum(0))
    for nothing in (one.merge(RunningStatistics.empty((2,))), RunningStatistics.empty((2,)).merge(one)):
        assert_array_equal(nothing.mean, one.mean)
        assert_array_equal(nothing.squares, one.squares)


def test_a_mask_leaves_rows_out_even_nan():
    rows = RNG.normal(size=(10, 2)).astype(np.float32)
    mask = RNG.random(10) < 0.5
    spoiled = np.where(mask[:, None], rows, np.nan)
    statistics = RunningStatistics.of(jnp.asarray(spoiled), jnp.asarray(mask))
    assert int(statistics.count) == mask.sum()
    assert_allclose(statistics.variance(), rows[mask].var(0), rtol=1e-5)
    nobody = RunningStatistics.of(jnp.asarray(spoiled), jnp.zeros(10, bool))
    assert np.isfinite(nobody.mean).all()
    assert int(nobody.count) == 0


def test_float64_keeps_its_digits_and_float16_is_summed_in_float32():
    with jax.enable_x64(True):
        rows = 1e8 + RNG.normal(size=(50, 1))
        statistics = RunningStatistics.empty((1,), jnp.float64).update(rows[:20]).update(rows[20:])
        assert statistics.mean.dtype == np.float64
        assert_allclose(statistics.variance(), rows.var(0), rtol=1e-6)
    half = jnp.full((4096, 1), 100.0, jnp.float16)  # the sum is beyond float16's largest number
    assert_allclose(RunningStatistics.of(half).mean, 100.0)


@pytest.mark.parametrize("half", [jnp.float16, jnp.bfloat16])
def test_either_half_precision_is_summed_in_float32(half):
    """One would not do: summed in what it has in common with bfloat16, float16 is right and bfloat16 is lost."""
    rows, mask = RNG.integers(0, 256, (300, 2)), RNG.random(300) < 0.5  # whole numbers that both types hold

    @jax.jit
    def every(rows):
        by_mask, begun = RunningStatistics.of(rows, jnp.asarray(mask)), RunningStatistics.empty((2,), half)
        return RunningStatistics.of(rows), by_mask, begun.update(rows), BatchNorm(2)(rows)[1]

    expected = [rows, rows[mask], rows, rows]
    for found, seen in zip(every(jnp.asarray(rows, half)), expected, strict=True):
        assert {found.mean.dtype, found.squares.dtype} == {np.dtype(np.float32)}
        assert_allclose(found.mean, seen.mean(0), rtol=1e-5)
        assert_allclose(found.variance(), seen.var(0), rtol=1e-5)


def test_the_count_stops_at_its_largest_number():
    most = np.iinfo(np.int32).max
    full = RunningStatistics(jnp.asarray(most - 1, jnp.int32), jnp.zeros(1), jnp.ones(1))
    assert int(full.update(jnp.ones((8, 1))).count) == most
    assert int(full.average(RunningStatistics.of(jnp.ones((8, 1))), 0.5).count) == most


def test_beyond_the_largest_count_statistics_are_a_slow_average():
    """Of as many rows as were counted and those that come, weighed by their numbers: the variance does not grow."""
    most = np.iinfo(np.int32).max
    counts = np.array([most, most - 2**30, most, most - 1], np.int32)
    more = np.array([2**30, 2**30 + 2**29, most, 1], np.int32)  # the last is counted to the end and no further

    def statistics(count, mean, variance):
        return RunningStatistics(count, mean[None], variance[None] * count.astype(jnp.float32))

    @jax.jit
    @jax.vmap
    def merged(count, other):
        own = statistics(count, jnp.float32(1), jnp.float32(4))
        after = own.merge(statistics(other, jnp.float32(3), jnp.float32(2)))
        return after.count, after.mean[0], after.variance()[0]

    share = more / (counts.astype(float) + more)
    count, mean, variance = merged(counts, more)
    assert_array_equal(count, most)
    assert_allclose(mean, 1 + 2 * share, rtol=1e-6)
    assert_allclose(variance, 4 * (1 - share) + 2 * share + 4 * share * (1 - share), rtol=1e-6)


def test_a_batch_without_rows_is_no_news():
    """Neither for the statistics of all rows nor for an exponential average, before and after the first rows."""
    rows = RNG.normal(size=(9, 2)).astype(np.float32)

    @jax.jit
    def both(rows):
        nothing = RunningStatistics.of(rows, jnp.zeros(9, bool))
        known = RunningStatistics.empty((2,)).average(nothing, 0.9).average(RunningStatistics.of(rows), 0.9)
        return known, known.merge(nothing), known.average(nothing, 0.9)

    for found in both(rows):
        assert int(found.count) == 9
        assert_allclose(found.mean, rows.mean(0), rtol=1e-6, atol=1e-7)
        assert_allclose(found.variance(), rows.var(0), rtol=1e-5)


@pytest.mark.parametrize("shape", [(100, 4), (5, 20, 4)])
def test_normalise_and_restore(shape):
    """Entries that vary much, hardly and not at all, with a small and a large ε; rows along one axis and along two."""
    rows = np.array([3, 300, -2, 7]) + np.array([2, 50, 1e-3, 0]) * RNG.normal(size=(100, 4))
    rows, shaped = rows.astype(np.float32), rows.astype(np.float32).reshape(shape)
    clips = (None, 0.5)

    @jax.jit
    def both(rows, shaped, epsilon):
        statistics = RunningStatistics.of(rows)
        scaled = [statistics.normalise(shaped, epsilon, clip) for clip in clips]
        return scaled, statistics.restore(scaled[0], epsilon), statistics.restore(statistics.normalise(shaped))

    for epsilon in (1e-8, 0.3):
        (scaled, clipped), back, by_default = both(rows, shaped, epsilon)
        exact = (shaped - rows.astype(float).mean(0)) / np.sqrt(rows.astype(float).var(0) + epsilon)
        assert_allclose(scaled, exact, rtol=1e-3, atol=2e-3)  # of -2 ± 1e-3 single precision has four digits
        assert_allclose(clipped, exact.clip(-0.5, 0.5), rtol=1e-3, atol=2e-3)
        for restored in (back, by_default):
            assert_allclose(restored, shaped, rtol=1e-5, atol=1e-6)
    assert float(np.abs(clipped).max()) == 0.5


def reference(x, mean, variance, epsilon=1e-5):
    return (x - mean) / np.sqrt(variance + epsilon)


@pytest.mark.parametrize("shape", [(6, 3), (4, 5, 2, 3)])
def test_batch_normalisation_is_the_textbooks(shape):
    x = (2 + 3 * RNG.normal(size=shape)).astype(np.float32)
    rows = x.reshape(-1, 3).astype(float)
    result, batch = BatchNorm(3)(jnp.asarray(x))
    assert_allclose(result, reference(x, rows.mean(0), rows.var(0)), atol=1e-5)
    assert_allclose(batch.variance(), rows.var(0), rtol=1e-5)


def test_standing_statistics_are_those_of_all_batches_and_are_used_as_given():
    norm = BatchNorm(2)
    batches = (1 + RNG.normal(size=(3, 8, 2))).astype(np.float32)
    standing = norm.init()
    for batch in batches:
        standing = standing.merge(norm(jnp.asarray(batch))[1])
    rows = batches.reshape(-1, 2)
    one = jnp.asarray(rows[:1])
    result, used = norm(one, standing)
    assert_allclose(result, reference(rows[:1], rows.mean(0), rows.var(0)), atol=1e-5)
    assert used is not standing
    assert int(used.count) == 24


def test_an_exponential_average_begins_with_the_first_batch():
    first, second = (RunningStatistics.of(jnp.asarray(RNG.normal(size=(9, 2)), jnp.float32)) for _ in range(2))
    running = RunningStatistics.empty((2,)).average(first, 0.9)
    assert_allclose(running.mean, first.mean)
    assert int(running.count) == 9
    running = running.average(second, 0.9)
    assert int(running.count) == 18
    assert_allclose(running.mean, 0.9 * first.mean + 0.1 * second.mean, rtol=1e-5)
    assert_allclose(running.variance(), 0.9 * first.variance() + 0.1 * second.variance(), rtol=1e-5)


def test_conditional_scale_and_shift_are_a_row_an_example():
    norm = BatchNorm(3, affine=False)
    x = jnp.asarray(RNG.normal(size=(4, 2, 2, 3)), jnp.float32)
    scale, shift = (jnp.asarray(RNG.normal(size=(4, 3)), jnp.float32) for _ in range(2))
    plain, _ = norm(x)
    expected = plain * scale[:, None, None, :] + shift[:, None, None, :]
    assert_allclose(norm(x, scale=scale, shift=shift)[0], expected, atol=1e-6)


@pytest.mark.parametrize("affine", [True, False])
def test_scales_and_shifts_of_its_own_and_handed_in_are_all_applied(affine):
    """Every pair of options, for rows and for images; its own begin as ones and zeros, which none at all look like."""
    norm, (own, by_row) = BatchNorm(3, affine=affine), (RNG.normal(size=(2, 3)), RNG.normal(size=(2, 4, 3)))
    assert [leaf is not None for leaf in (norm.scale, norm.shift)] == [affine] * 2
    if affine:
        assert_array_equal(norm.scale, np.ones(3))
        assert_array_equal(norm.shift, np.zeros(3))
        norm = eqx.tree_at(lambda n: (n.scale, n.shift), norm, tuple(jnp.asarray(own, jnp.float32)))
    images = {shape: RNG.normal(size=shape) for shape in ((4, 3), (4, 2, 3, 3))}
    options = list(itertools.product((True, False), repeat=2))

    @eqx.filter_jit
    def every(norm, x, scale, shift):
        return [norm(x, scale=scale if a else None, shift=shift if b else None)[0] for a, b in options]

    for shape, x in images.items():
        row = (4, *(1,) * (len(shape) - 2), 3)
        found = every(norm, *(jnp.asarray(value, jnp.float32) for value in (x, *by_row)))
        axes = tuple(range(len(shape) - 1))
        plain = reference(x, x.mean(axes), x.var(axes)) * (own[0] if affine else 1)
        for result, (a, b) in zip(found, options, strict=True):
            expected = plain * (by_row[0].reshape(row) if a else 1)
            expected = expected + (own[1] if affine else 0) + (by_row[1].reshape(row) if b else 0)
            assert_allclose(result, expected, atol=1e-5)


def test_half_precision_is_normalised_in_single_and_comes_back_as_half():
    """With a scale and a shift and without, its own and handed in; rounded once, at the end. Integers become floats."""
    kinds = {jnp.float16: 2**-11, jnp.bfloat16: 2**-8, jnp.int32: 1e-5}
    images = 16.0 * RNG.integers(-250, 250, (4, 2, 3, 4))  # exact in all; float16 cannot hold their squares
    scale, shift = RNG.normal(size=(2, 4)).astype(np.float32)
    rows = RNG.normal(size=(2, 4, 4)).astype(np.float32)
    every = [BatchNorm(4), GroupNorm(4, 2)]
    every = [eqx.tree_at(lambda n: (n.scale, n.shift), norm, (scale, shift)) for norm in every]

    @jax.jit
    def found(given):
        plain = BatchNorm(4, affine=False)
        return [(every[0](x)[0], every[1](x), plain(x)[0], plain(x, None, *rows)[0]) for x in given]

    normal = reference(images, images.mean((0, 1, 2)), images.var((0, 1, 2)))
    groups = images.reshape(4, 6, 2, 2)
    groups = reference(groups, *(f((1, 3), keepdims=True) for f in (groups.mean, groups.var))).reshape(images.shape)
    rows_of_images = rows[:, :, None, None]
    wanted = normal * scale + shift, groups * scale + shift, normal, normal * rows_of_images[0] + rows_of_images[1]
    for results, (kind, relative) in zip(found([images.astype(kind) for kind in kinds]), kinds.items(), strict=True):
        for result, right in zip(results, wanted, strict=True):
            assert result.dtype == (jnp.float32 if kind == jnp.int32 else kind)
            assert_allclose(np.asarray(result, float), right, rtol=1.01 * relative, atol=1e-5)


def test_the_gradient_of_batch_normalisation_flows_through_its_statistics():
    """γ (g − mean g − x̂ mean g x̂) / σ over rows while training; by statistics that are handed in, γ g / σ."""
    x, slope = (RNG.normal(size=(6, 2)).astype(np.float32) for _ in range(2))
    norm = eqx.tree_at(lambda norm: norm.scale, BatchNorm(2), jnp.array([2.0, -0.5]))

    @jax.jit
    def slopes(x, slope):
        given = RunningStatistics.of(x)
        both = (lambda x: norm(x)[0]), (lambda x: norm(x, given)[0])
        return [jax.vjp(one, x)[1](slope)[0] for one in both]

    deviation = np.sqrt(x.var(0) + 1e-5)
    unit = (x - x.mean(0)) / deviation
    through = slope - slope.mean(0) - unit * (slope * unit).mean(0)
    for found, expected in zip(slopes(x, slope), (through, slope), strict=True):
        assert_allclose(found, np.array([2.0, -0.5]) * expected / deviation, rtol=1e-4, atol=1e-5)


def test_the_gradient_of_batch_normalisation_by_finite_differences():
    norm = BatchNorm(2)
    with jax.enable_x64(True):
        x, toward = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 2))
        loss = lambda x: jnp.sum(jnp.sin(norm(x)[0]))  # noqa: E731
        slope = jnp.vdot(jax.grad(loss)(jnp.asarray(x)), toward)
        step = 1e-6
        assert_allclose(slope, (loss(x + step * toward) - loss(x - step * toward)) / (2 * step), rtol=1e-6)


def test_wrong_settings_raise():
    with pytest.raises(ValueError, match=r"BatchNorm\.channels must be >= 1; got 0"):
        BatchNorm(0)
    with pytest.raises(ValueError, match=r"BatchNorm\.x must be of 3 channels in the last axis; got \(4, 2\)"):
        BatchNorm(3)(jnp.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"RunningStatistics\.momentum must be in \[0, 1\); got 1\.0"):
        BatchNorm(3).init().average(BatchNorm(3).init(), 1.0)
