"""The statistics against scipy's and against enumeration, and against what theory says of their level and power."""

import itertools

import numpy as np
import pytest
from scipy import stats

from laureate.lab.judging import statistics


def brute_force_sign_flip(x):
    """The definition, without any of the shortcuts; exact for integers."""
    patterns = np.array(list(itertools.product([1, -1], repeat=len(x))))
    return np.mean(patterns @ x >= np.sum(x))


class TestInterval:
    @pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
    @pytest.mark.parametrize("level", [0.8, 0.95])
    @pytest.mark.parametrize("shape", ["round", "skewed", "two values"])
    def test_is_scipys_bca(self, n, level, shape):
        # Integers, because scipy breaks ties between a resampled mean and the mean by rounding, we by counting half.
        draw = np.random.default_rng(n)
        x = {"round": draw.normal(0, 50, n), "skewed": draw.lognormal(3, 1, n), "two values": 7.0 * (np.arange(n) == 0)}
        x = np.round(x[shape])
        expected = stats.bootstrap(
            (x,), np.mean, confidence_level=level, n_resamples=10_000, method="BCa", rng=np.random.default_rng(0)
        ).confidence_interval
        # Where the two middle means tie, one ulp of Φ can move the interpolation; nothing else differs.
        np.testing.assert_allclose(statistics.interval(x, level, expanded=False), expected, rtol=1e-9, atol=1e-9)

    def test_is_scipys_bca_on_continuous_numbers(self):
        x = np.random.default_rng(3).gamma(2.0, size=20)
        expected = stats.bootstrap((x,), np.mean, n_resamples=10_000, rng=np.random.default_rng(5)).confidence_interval
        np.testing.assert_allclose(statistics.interval(x, seed=5, expanded=False), expected, rtol=1e-12)

    def test_as_many_resamples_as_are_asked_for(self):
        x = np.round(np.random.default_rng(1).normal(0, 50, 9))
        for resamples, seed in ((99, 0), (500, 7)):
            expected = stats.bootstrap((x,), np.mean, n_resamples=resamples, rng=np.random.default_rng(seed))
            found = statistics.interval(x, seed=seed, resamples=resamples, expanded=False)
            np.testing.assert_allclose(found, expected.confidence_interval, rtol=1e-9)

    def test_same_seed_same_bits_and_another_seed_others(self):
        x = np.random.default_rng(0).standard_normal(12)
        assert statistics.interval(x, seed=4) == statistics.interval(x, seed=4)
        assert statistics.interval(x, seed=4) != statistics.interval(x, seed=5)

    def test_a_batch_is_its_rows(self):
        x = np.random.default_rng(0).standard_normal((2, 300, 6))
        low, high = statistics.interval(x)
        assert low.shape == high.shape == (2, 300)
        for i, j in [(0, 0), (1, 7), (1, 299)]:
            np.testing.assert_allclose([low[i, j], high[i, j]], statistics.interval(x[i, j]), rtol=1e-12)

    def test_shifts_scales_and_reflects_with_the_data(self):
        x = np.random.default_rng(1).lognormal(size=15)
        low, high = statistics.interval(x)
        np.testing.assert_allclose(statistics.interval(1e9 + x), (1e9 + low, 1e9 + high), rtol=1e-15)
        np.testing.assert_allclose(statistics.interval(1e300 * x), (1e300 * low, 1e300 * high), rtol=1e-12)
        np.testing.assert_allclose(statistics.interval(-x), (-high, -low), rtol=1e-12)

    def test_a_skewed_sample_has_a_skewed_interval(self):
        x = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0])
        low, high = statistics.interval(x)
        assert high - 1.0 > 1.5 * (1.0 - low)

    @pytest.mark.parametrize("value", [0.0, 0.1, -3.0, 1e308, 5e-324])
    def test_seeds_that_agree_give_their_value(self, value):
        assert statistics.interval(np.full(7, value)) == (value, value)

    def test_one_seed_and_broken_seeds_say_nothing(self):
        assert statistics.interval([3.0]) == (-np.inf, np.inf)
        low, high = statistics.interval([[1.0, np.nan], [np.inf, 2.0], [1.0, 1.0]])
        assert low.tolist() == [-np.inf, -np.inf, 1.0]
        assert high.tolist() == [np.inf, np.inf, 1.0]
        with pytest.raises(ValueError, match="at least 1 seed"):
            statistics.interval([])

    def test_falls_back_to_the_percentile_where_bca_is_undefined(self):
        # At a level this near to 1, a (z₀ + z) > 1 for the most skewed sample there is: the correction turns over.
        x = np.eye(8)[0]
        low, high = statistics.interval(x, level=1 - 1e-13)
        assert low == 0.0
        assert 0.5 < high <= 1.0

    def test_covers_what_theory_says(self):
        # A bootstrap of the mean knows no t-quantile: with n = 20 normal seeds it covers about
        # P(|T_19| < 1.96 sqrt(19/20)) = 0.929, not 0.95. Measured here with 4,000 samples.
        runs, n = 4_000, 20
        theory = 1 - 2 * stats.t.sf(stats.norm.ppf(0.975) * np.sqrt((n - 1) / n), n - 1)
        x = np.random.default_rng(11).standard_normal((runs, n))
        low, high = statistics.interval(x, expanded=False)
        assert theory == pytest.approx(0.929, abs=1e-3)
        assert abs(np.mean((low < 0) & (high > 0)) - theory) < 4 * np.sqrt(theory * (1 - theory) / runs)
        low, high = statistics.interval(x)
        assert abs(np.mean((low < 0) & (high > 0)) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / runs)

    def test_of_ten_normal_seeds_it_covers_94_percent(self):
        low, high = statistics.interval(np.random.default_rng(12).standard_normal((4_000, 10)))
        assert 0.93 < np.mean((low < 0) & (high > 0)) < 0.96

    @pytest.mark.parametrize("n", [3, 5, 10, 40])
    @pytest.mark.parametrize("level", [0.9, 0.95])
    def test_the_expanded_tail_is_that_of_students_quantile(self, n, level):
        quantile = stats.t.isf((1 - level) / 2, n - 1)
        expected = stats.norm.cdf(-np.sqrt(n / (n - 1)) * quantile)
        assert statistics._expanded_tail(n, level) == pytest.approx(expected, rel=1e-6)


class TestMedian:
    @pytest.mark.parametrize("n", [1, 6, 10, 25, 50])
    def test_the_sign_test_is_scipys_binomial(self, n):
        x = np.random.default_rng(n).standard_normal((40, n))
        for alternative in ("greater", "less"):
            count = np.sum(x > 0 if alternative == "greater" else x < 0, axis=1)
            expected = [stats.binomtest(int(k), n, 0.5, alternative="greater").pvalue for k in count]
            assert statistics.sign_test(x, alternative).tolist() == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("n", [6, 10, 21, 50])
    def test_the_interval_is_scipys(self, n):
        # scipy's quantile_test inverts the same binomial test.
        x = np.random.default_rng(n).lognormal(size=n)
        expected = stats.quantile_test(x, p=0.5).confidence_interval(0.95)
        assert statistics.median_interval(x) == pytest.approx((expected.low, expected.high))

    def test_a_seed_at_zero_counts_against_either_side(self):
        for alternative in ("greater", "less"):
            assert statistics.sign_test(np.zeros(6), alternative) == 1.0
            assert statistics.sign_test([0.0, *[1.0 if alternative == "greater" else -1.0] * 5], alternative) == 7 / 64

    def test_five_seeds_and_broken_ones_say_nothing(self):
        for x in ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, np.nan, 5.0, 6.0]):
            assert statistics.median_interval(x) == (-np.inf, np.inf)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="at least 1 seed"):
            statistics.median_interval([])
        with pytest.raises(ValueError, match="finite"):
            statistics.sign_test([np.nan])
        with pytest.raises(ValueError, match="alternative"):
            statistics.sign_test([1.0], "both")


class TestSignFlip:
    @pytest.mark.parametrize("n", range(1, 13))
    def test_is_the_share_of_all_patterns(self, n):
        draw = np.random.default_rng(n)
        for x in draw.integers(-4, 6, (8, n)):  # integers: many ties, none by rounding
            assert statistics.sign_flip(x) == brute_force_sign_flip(x)
            assert statistics.sign_flip(x, "less") == brute_force_sign_flip(-x)
            # The same ties when every sum is rounded.
            assert statistics.sign_flip(x * 0.1) == statistics.sign_flip(x)

    @pytest.mark.parametrize("alternative", ["greater", "less"])
    def test_is_scipys_permutation_test(self, alternative):
        x = np.random.default_rng(2).normal(0.4, 1.0, 9)
        expected = stats.permutation_test(
            (x,), np.mean, permutation_type="samples", alternative=alternative, n_resamples=2**9
        )
        assert statistics.sign_flip(x, alternative) == pytest.approx(expected.pvalue, abs=1e-12)

    @pytest.mark.parametrize("n", [1, 2, 5, 20, 30])
    def test_the_smallest_p(self, n):
        x = np.random.default_rng(n).lognormal(size=n)
        assert statistics.sign_flip(x) == statistics.smallest_p(n) == 2.0**-n
        assert statistics.sign_flip(-x) == 1.0
        # A seed that dwarfs the others does not take their evidence away.
        x[0] = 1e300
        assert statistics.sign_flip(x) == 2.0**-n

    def test_no_effect_no_evidence(self):
        assert statistics.sign_flip(np.zeros(10)) == 1.0
        assert statistics.sign_flip(np.zeros(50)) == 1.0
        assert statistics.sign_flip([0.1, 0.2, -0.3]) == brute_force_sign_flip([1, 2, -3])

    def test_other_patterns_are_drawn_by_another_seed(self):
        x = np.random.default_rng(0).normal(0.3, 1.0, 31)
        for seed in (0, 5):
            drawn = np.random.default_rng(seed).integers(0, 2, (31, statistics.PATTERNS))
            expected = (1 + np.count_nonzero(x @ drawn <= 0)) / (1 + statistics.PATTERNS)
            assert statistics.sign_flip(x, seed=seed) == expected

    def test_above_thirty_seeds_patterns_are_drawn(self):
        x = np.random.default_rng(0).normal(0.3, 1.0, 40)
        p = statistics.sign_flip(x)
        assert p == statistics.sign_flip(x)
        # The normal approximation of the flipped sums: their variance is Σ x².
        expected = float(stats.norm.sf(x.sum() / np.sqrt((x**2).sum())))
        assert p == pytest.approx(expected, abs=4 * np.sqrt(expected / statistics.PATTERNS) + 0.1 * expected)
        # The observed pattern is one of them, so p is never 0.
        assert statistics.sign_flip(np.ones(40)) == statistics.smallest_p(40) == 1 / 20_000

    def test_drawn_agrees_with_counted(self, monkeypatch):
        x = np.random.default_rng(4).normal(0.3, 1.0, (20, 16))
        counted = statistics.sign_flip(x)
        monkeypatch.setattr(statistics, "EXACT", 15)
        drawn = statistics.sign_flip(x)
        error = np.sqrt(counted * (1 - counted) / statistics.PATTERNS) + 1 / statistics.PATTERNS
        assert np.all(np.abs(drawn - counted) < 4 * error)

    def test_batches(self):
        x = np.random.default_rng(5).standard_normal((3, 4, 7))
        assert statistics.sign_flip(x).tolist() == [[statistics.sign_flip(row) for row in part] for part in x]

    @pytest.mark.parametrize("n", [5, 10, 20, 40])
    def test_keeps_its_level_exactly_whatever_the_distribution(self, n):
        # Heavy-tailed and of unequal spread: P(p <= k / 2^n) = k / 2^n for data without ties.
        runs = 4_000
        draw = np.random.default_rng(n)
        x = draw.standard_t(1, (runs, n)) * draw.lognormal(0, 2, n)
        p = statistics.sign_flip(x)
        for level in (0.05, 0.25, 0.5):
            exact = np.floor(level * 2**n) / 2**n
            assert stats.binomtest(int(np.sum(p <= level)), runs, exact).pvalue > 1e-3

    def test_one_sided_power_is_near_the_t_tests(self):
        # Half a standard deviation at n = 20, 5 % one-sided: the t-test finds 0.695 of them; a two-sided one 0.565.
        runs, n = 4_000, 20
        theory = stats.nct.sf(stats.t.isf(0.05, n - 1), n - 1, 0.5 * np.sqrt(n))
        found = np.mean(statistics.sign_flip(np.random.default_rng(8).normal(0.5, 1, (runs, n))) < 0.05)
        assert theory == pytest.approx(0.695, abs=1e-3)
        assert abs(found - theory) < 0.01 + 4 * np.sqrt(theory * (1 - theory) / runs)

    @pytest.mark.parametrize("x", [[], [1.0, np.nan], [np.inf]])
    def test_refuses_what_has_no_sign(self, x):
        with pytest.raises(ValueError, match="finite"):
            statistics.sign_flip(x)

    def test_refuses_another_alternative(self):
        with pytest.raises(ValueError, match="'two-sided'"):
            statistics.sign_flip([1.0], "two-sided")  # pyright: ignore[reportArgumentType]


class TestSlopes:
    def test_is_the_least_squares_line(self):
        draw = np.random.default_rng(0)
        y, x = draw.standard_normal((2, 6, 9))
        expected = [np.polyfit(a, b, 1)[0] for a, b in zip(x, y, strict=True)]
        np.testing.assert_allclose(statistics.slopes(y, x), expected, rtol=1e-10)
        np.testing.assert_allclose(statistics.slopes(y + 5, x[0]), statistics.slopes(y, np.tile(x[0], (6, 1))))

    def test_a_constant_abscissa_has_none(self):
        found = statistics.slopes([[1.0, 2.0], [1.0, 2.0], [1.0, np.nan]], [[3.0, 3.0], [0.0, 2.0], [0.0, 1.0]])
        np.testing.assert_array_equal(found, [np.nan, 0.5, np.nan])


class TestHolm:
    def test_is_the_closed_bonferroni_procedure(self):
        # Holm's adjusted p of i = the largest Bonferroni p among all sets of claims that contain i.
        draw = np.random.default_rng(0)
        for m in (1, 2, 4, 6):
            p = draw.uniform(0, 0.4, m) ** 2
            sets = [s for k in range(1, m + 1) for s in itertools.combinations(range(m), k)]
            expected = [max(min(1.0, len(s) * p[list(s)].min()) for s in sets if i in s) for i in range(m)]
            np.testing.assert_allclose(statistics.holm(p), expected, rtol=1e-12)

    def test_claims_not_run_count_as_one(self):
        p = np.array([0.03, 0.002, 0.2])
        np.testing.assert_array_equal(statistics.holm(p, 5), statistics.holm([*p, 1.0, 1.0])[:3])
        assert statistics.holm([], 4).tolist() == []

    def test_running_fewer_claims_is_never_more_lenient(self):
        draw = np.random.default_rng(1)
        for p in draw.uniform(size=(50, 6)) ** 3:
            together = statistics.holm(p)
            for chosen in ([0], [1, 4], [0, 2, 3, 5]):
                assert np.all(statistics.holm(p[chosen], 6) >= together[chosen])

    def test_refuses_a_family_smaller_than_its_members(self):
        with pytest.raises(ValueError, match="family must be >= the number of p-values, 3; got 2"):
            statistics.holm([0.1, 0.2, 0.3], 2)


class TestEffectSizes:
    def test_effect_size(self):
        d = np.random.default_rng(0).normal(1.0, 2.0, (4, 10))
        np.testing.assert_allclose(statistics.effect_size(d), d.mean(-1) / d.std(-1, ddof=1), rtol=1e-12)
        np.testing.assert_allclose(statistics.effect_size(1e300 * d), statistics.effect_size(d), rtol=1e-12)
        assert statistics.effect_size([0.1, 0.1, 0.1]) == np.inf
        assert statistics.effect_size([-2.0, -2.0]) == -np.inf
        assert statistics.effect_size([0.0, 0.0]) == 0.0
        assert np.isnan(statistics.effect_size([1.0]))

    def test_probability_of_improvement(self):
        d = np.array([3.0, -1.0, 0.0, 0.5, 0.0])
        pairs = stats.mannwhitneyu(d, [0.0]).statistic / 5  # the same count, by another road
        assert statistics.probability_of_improvement(d) == pairs == 0.6

    def test_mean(self):
        x = np.random.default_rng(0).standard_normal((3, 7))
        np.testing.assert_allclose(statistics.mean(x), x.mean(-1), rtol=1e-12)
        assert statistics.mean([1.7e308, 1.7e308, 1.6e308]) == pytest.approx(5 / 3 * 1e308)
