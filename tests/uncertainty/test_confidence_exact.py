"""Confidence intervals, cascades and shields against SciPy, enumeration, closed forms and known counts."""

import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from laureate.uncertainty import (
    PACConfidence,
    SafeCascade,
    Shield,
    bin_counts,
    cascade_bounds,
    clopper_pearson,
    fixed_sequence,
    hoeffding,
    jeffreys,
    wald,
    wilson,
)
from laureate.uncertainty.binomial import INTERVALS
from laureate.uncertainty.cascade import METHODS

# --- intervals --------------------------------------------------------------------------------------------------------

TABLE = [
    (0, 10, 0.1, 0.0, 0.258866),
    (10, 10, 0.1, 0.741134, 1.0),
    (9, 10, 0.1, 0.605837, 0.994884),
    (50, 100, 0.01, 0.368861, 0.631139),
    (97, 100, 0.005, 0.886292, 0.997344),
]


@pytest.mark.parametrize(("k", "n", "delta", "lo", "hi"), TABLE)
def test_clopper_pearson_by_the_table_and_scipy(k, n, delta, lo, hi):
    found = clopper_pearson(k, n, delta)
    np.testing.assert_allclose(found, (lo, hi), atol=1e-6)
    known = stats.binomtest(k, n).proportion_ci(1 - delta, "exact")
    np.testing.assert_allclose(found, (known.low, known.high), atol=1e-12)
    for side, alternative in (("lower", "greater"), ("upper", "less")):
        known = stats.binomtest(k, n, alternative=alternative).proportion_ci(1 - delta, "exact")
        np.testing.assert_allclose(clopper_pearson(k, n, delta, side), (known.low, known.high), atol=1e-12)


def test_all_or_nothing_in_closed_form_and_the_mirror():
    n = np.arange(1, 50)
    np.testing.assert_allclose(clopper_pearson(n, n, 0.03)[0], 0.015 ** (1 / n))
    np.testing.assert_allclose(clopper_pearson(0 * n, n, 0.03)[1], 1 - 0.015 ** (1 / n))
    k = np.arange(31)
    lo, hi = clopper_pearson(k, 30, 0.2)
    np.testing.assert_allclose(lo, 1 - hi[::-1], atol=1e-12)
    assert [float(end) for end in clopper_pearson(0, 0, 0.1)] == [0.0, 1.0]
    for needed, level, delta in ((104, 0.95, 0.01), (528, 0.99, 0.01), (117, 0.95, 0.005), (597, 0.99, 0.005)):
        assert clopper_pearson(needed, needed, delta)[0] >= level > clopper_pearson(needed - 1, needed - 1, delta)[0]


def miss(interval, n, c, delta):
    """The exact probability that an interval misses c, by enumeration."""
    k = np.arange(n + 1)
    lo, hi = interval(k, n, delta)
    return stats.binom.pmf(k, n, c)[(c < lo) | (c > hi)].sum()


@pytest.mark.parametrize(
    ("interval", "n", "expected"),
    [
        (clopper_pearson, 20, 0.00239),
        (wilson, 20, 0.01125),
        (wald, 20, 0.122),
        (clopper_pearson, 100, 0.00653),
        (wilson, 100, 0.01195),
        (wald, 100, 0.0245),
    ],
)
def test_exact_misses_of_one_bin(interval, n, expected):
    assert miss(interval, n, 0.9, 0.01) == pytest.approx(expected, rel=0.005)


def test_who_promises_never_misses_more_and_who_does_not_does_somewhere():
    rates = np.linspace(0.02, 0.98, 49)
    for interval in (clopper_pearson, hoeffding):
        assert max(miss(interval, n, c, 0.1) for n in (7, 40) for c in rates) <= 0.1
    for interval in (wilson, jeffreys, wald):
        assert max(miss(interval, 40, c, 0.1) for c in rates) > 0.1


def test_wilson_and_jeffreys_by_scipy():
    known = stats.binomtest(7, 20).proportion_ci(0.9, "wilson")
    np.testing.assert_allclose(wilson(7, 20, 0.1), (known.low, known.high), atol=1e-12)
    np.testing.assert_allclose(jeffreys(7, 20, 0.1), stats.beta(7.5, 13.5).ppf([0.05, 0.95]), atol=1e-10)
    for interval in (wilson, jeffreys, wald, hoeffding):
        lo, hi = interval(np.array([0, 0, 5]), np.array([0, 5, 5]), 0.1)
        assert (lo[0], hi[0]) == pytest.approx((0, 1), abs=1e-9)
        assert ((lo >= -1e-12) & (hi <= 1 + 1e-12) & (lo <= hi)).all()


def test_jax_agrees_rounds_outwards_and_is_traced_once():
    traced = 0

    def both(k, n, delta):
        nonlocal traced
        traced += 1
        return clopper_pearson(k, n, delta)

    compiled = jax.jit(jax.vmap(both, in_axes=(0, 0, None)))
    k, n = np.array([0, 3, 9, 10, 500, 0]), np.array([10, 10, 10, 10, 1000, 0])
    for delta in (0.1, 1e-5):
        lo, hi = (np.asarray(end, float) for end in compiled(jnp.asarray(k), jnp.asarray(n), delta))
        known = clopper_pearson(k, n, delta)
        np.testing.assert_allclose((lo, hi), known, atol=6e-6)
        assert (lo <= known[0] + 1e-9).all()
        assert (hi >= known[1] - 1e-7).all()
    assert traced == 1


# --- bins -------------------------------------------------------------------------------------------------------------


def test_a_score_on_an_edge_is_counted_once():
    """Votes of ten trees lie on the edges; counted twice, a promise of 10 % was missed in 39 %."""
    score = np.arange(11) / 10
    edges = np.arange(11) / 10
    counts = bin_counts(score, score > 0.45, edges)
    assert counts.count.tolist() == [1] * 9 + [2]
    assert counts.count.sum() == 11
    assert counts.correct.sum() == 6
    jitted = jax.jit(bin_counts)(jnp.asarray(score), jnp.asarray(score > 0.45), jnp.asarray(edges))
    assert int(jitted.count.sum()) == 11


SCORE = np.random.default_rng(0).uniform(size=900)
RIGHT = np.random.default_rng(1).uniform(size=900) < SCORE


@pytest.mark.parametrize(("levels", "share"), [("bonferroni", 0.2 / 4), ("sidak", 1 - 0.8**0.25), ("none", 0.2)])
@pytest.mark.parametrize("method", ["clopper-pearson", "wilson"])
def test_intervals_of_bins_by_hand(method, levels, share):
    model = PACConfidence(0.2, bins=[0.0, 0.3, 0.5, 0.9, 1.0], method=method, levels=levels).fit(SCORE, RIGHT)
    for low, high, score in ((0.0, 0.3, 0.1), (0.3, 0.5, 0.3), (0.5, 0.9, 0.89), (0.9, 1.0, 1.0)):
        inside = (low <= SCORE) & (high > SCORE)
        interval = {"clopper-pearson": clopper_pearson, "wilson": wilson}[method]
        expected = interval(RIGHT[inside].sum(), inside.sum(), share)
        np.testing.assert_allclose(np.ravel(model.interval(np.array([score]))), expected)
        assert model.point(np.array([score]))[0] == pytest.approx(RIGHT[inside].mean())
    table = model.table()
    assert (table.start.tolist(), table.stop.tolist()) == ([0.0, 0.3, 0.5, 0.9], [0.3, 0.5, 0.9, 1.0])
    assert table.count.sum() == 900
    assert table.correct.sum() == RIGHT.sum()
    assert (table.low <= table.correct / table.count).all()


@pytest.mark.parametrize(("levels", "share"), [("bonferroni", 0.3 / 6), ("sidak", 1 - 0.7 ** (1 / 6)), ("none", 0.3)])
@pytest.mark.parametrize("method", list(INTERVALS))
def test_the_width_that_is_warned_of_is_that_of_the_intervals(method, levels, share):
    """Of rows half of which are right, spread evenly over the bins of all groups."""
    score, site = np.tile([0.1, 0.5, 0.9], 16), np.repeat([0, 1], 24)
    low, high = INTERVALS[method](4, 8, share)
    with pytest.warns(UserWarning, match=f"6 bins for 48 rows: intervals will be about {high - low:.2f} wide"):
        model = PACConfidence(0.3, bins=3, method=method, levels=levels).fit(score, np.arange(48) // 3 % 2, site)
    np.testing.assert_allclose(model.hi_ - model.lo_, high - low)


def test_a_bin_of_fewer_than_thirty_examples_is_marked():
    counts = [29, 30, 31, 210]
    score, right = np.repeat([0.1, 0.3, 0.6, 0.9], counts), np.arange(300) % 2
    table = PACConfidence(bins=4).fit(score, right).table()
    assert (table.count.tolist(), table.few.tolist()) == (counts, [True, False, False, False])


def test_the_target_is_the_top_or_a_class():
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=300)
    y = np.array([np.random.default_rng(i).choice(3, p=row) for i, row in enumerate(p)])
    by_hand = {"top": (p.max(axis=1), p.argmax(axis=1) == y), 1: (p[:, 1], y == 1)}
    for target, (score, event) in by_hand.items():
        whole = PACConfidence(bins=5, target=target).fit(p, event).interval(p)
        np.testing.assert_array_equal(whole, PACConfidence(bins=5).fit(score, event).interval(score))


def test_groups_have_their_own_bins_and_share_delta():
    site = np.where(np.arange(900) % 3 == 0, "north", "south")
    model = PACConfidence(0.1, bins=4).fit(SCORE, RIGHT, groups=site)
    for name in ("north", "south"):
        inside = (site == name) & (SCORE >= 0.5) & (SCORE < 0.75)
        expected = clopper_pearson(RIGHT[inside].sum(), inside.sum(), 0.1 / 8)
        np.testing.assert_allclose(np.ravel(model.interval(np.array([0.6]), np.array([name]))), expected)
        assert model.table(name).count.sum() == (site == name).sum()
        np.testing.assert_allclose((model.table(name).low[2], model.table(name).high[2]), expected)
        assert model.point(np.array([0.6]), np.array([name]))[0] == pytest.approx(RIGHT[inside].mean())
        np.testing.assert_allclose(np.ravel(model.interval([0.6], [name])), expected)  # lists as well


def test_joint_misses_are_those_of_enumeration():
    """Given the counts, bins are independent: 1 − Π(1 − miss_k) against 4,000 draws, and at most δ."""
    count, rate = np.array([15, 40, 80]), np.array([0.3, 0.7, 0.9])
    exact = 1 - np.prod([1 - miss(clopper_pearson, n, c, 0.1 / 3) for n, c in zip(count, rate, strict=True)])
    correct = np.random.default_rng(0).binomial(count, rate, size=(4000, 3))
    lo, hi = clopper_pearson(correct, np.broadcast_to(count, correct.shape), 0.1 / 3)
    found = np.mean(np.any((rate < lo) | (rate > hi), axis=1))
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000)
    assert exact <= 0.1


def test_more_rows_narrow_and_a_smaller_delta_widens():
    widths = [np.diff(clopper_pearson(9 * m, 10 * m, 0.1), axis=0)[0] for m in (1, 10, 100)]
    assert widths[0] > widths[1] > widths[2]
    assert np.diff(clopper_pearson(9, 10, 0.01), axis=0) > np.diff(clopper_pearson(9, 10, 0.1), axis=0)


def test_the_calibration_error_lies_between_its_ends():
    """By hand for two bins, and around the error of the counts."""
    score = np.array([0.2] * 50 + [0.9] * 150)
    right = np.array([True] * 10 + [False] * 40 + [True] * 120 + [False] * 30)
    model = PACConfidence(0.1, bins=2).fit(score, right)
    ends = [clopper_pearson(10, 50, 0.05), clopper_pearson(120, 150, 0.05)]
    low = sum(w * max(a - m, m - b, 0) for w, m, (a, b) in zip((0.25, 0.75), (0.2, 0.9), ends, strict=True))
    high = sum(w * max(abs(a - m), abs(b - m)) for w, m, (a, b) in zip((0.25, 0.75), (0.2, 0.9), ends, strict=True))
    np.testing.assert_allclose(model.ece_interval(score), (low, high), atol=1e-12)
    assert 0 < low < 0.75 * 0.1 < high


def test_drift_is_the_two_sample_test_of_kolmogorov_and_smirnov():
    generator = np.random.default_rng(0)
    model = PACConfidence().fit(SCORE, RIGHT)
    same, moved = generator.uniform(size=400), generator.uniform(size=400) ** 1.5
    for other in (same, moved):
        compared: Any = stats.ks_2samp(other, SCORE, method="asymp")
        known = compared.statistic * math.sqrt(400 * 900 / 1300)
        assert model.drift(other) == pytest.approx(stats.kstwobign.sf(known))
    assert model.drift(same) > 0.01 > 1e-3 > model.drift(moved)


# --- cascades and shields ---------------------------------------------------------------------------------------------


def models_of(n=3000, seed=0):
    generator = np.random.default_rng(seed)
    score = generator.uniform(size=n)
    return score, generator.uniform(size=n) < 0.3 + 0.7 * score, generator.uniform(size=n) < 0.95


def test_the_sequence_stops_at_the_first_failure():
    bounds = np.array([[0.1, 0.3, 0.2], [0.3, 0.1, 0.1], [0.1, 0.1, 0.2]])
    assert fixed_sequence(bounds, 0.2).tolist() == [1, 0, 3]
    assert jax.jit(fixed_sequence)(jnp.asarray(bounds), 0.2).tolist() == [1, 0, 3]


@pytest.mark.parametrize("method", ["sequence", "difference", "union", "hoeffding", "empirical"])
def test_the_threshold_by_brute_force(method):
    score, fast, slow = models_of()
    grid, n, delta, gap = np.linspace(0, 1, 41), 3000, 0.2, 0.06
    score = grid[np.round(40 * score).astype(int)]  # a score of just the threshold exits
    cascade = SafeCascade(None, gap, delta, method=method, thresholds=grid).fit(score, fast, slow)

    def bound(gamma):
        out = score >= gamma
        b, c = int((out & ~fast & slow).sum()), int((out & fast & ~slow).sum())
        return {
            "sequence": clopper_pearson(b, n, delta, "upper")[1],
            "difference": clopper_pearson(b, n, delta / 2, "upper")[1] - clopper_pearson(c, n, delta / 2, "lower")[0],
            "union": clopper_pearson(b, n, delta / 41, "upper")[1],
            "hoeffding": b / n + math.sqrt(math.log(1 / delta) / (2 * n)),
            "empirical": (b - c) / n,
        }[method]

    if method in ("union", "empirical"):
        expected = min(gamma for gamma in grid if bound(gamma) <= gap)
    else:
        expected = math.inf
        for gamma in grid[::-1]:
            if bound(gamma) > gap:
                break
            expected = gamma
    assert cascade.threshold_ == expected
    assert cascade.bound_ == pytest.approx(bound(expected))
    assert cascade.exit_share_ == pytest.approx(np.mean(score >= expected))


def test_cascades_at_the_ends():
    score, _, slow = models_of()
    alike = SafeCascade(None, 0.01, 0.1).fit(score[:230], slow[:230], slow[:230])
    assert (alike.threshold_, alike.exit_share_) == (0.0, 1.0)  # 1 − δ^{1/n} <= ξ from n = 230 on
    hopeless = SafeCascade(None, 0.02, 0.1).fit(np.ones(500), np.zeros(500), np.ones(500))
    assert (hopeless.threshold_, hopeless.exit_share_, hopeless.bound_) == (math.inf, 0.0, 0.0)
    # (b, c) = (10, 0) at the strict threshold and (10, 20) at the loose one, of 130 rows: only the latter passes.
    score = np.repeat([0.9, 0.6, 0.7, 0.0], [10, 20, 70, 30])
    fast, slow = (np.repeat(right, [10, 20, 70, 30]) for right in ([0, 1, 1, 0], [1, 0, 1, 1]))
    loose = SafeCascade(None, 0.06, method="empirical", thresholds=[0.8, 0.5]).fit(score, fast, slow)
    assert (loose.threshold_, loose.bound_, loose.exit_share_) == (0.5, pytest.approx(-10 / 130), 100 / 130)
    worse, better = np.array([[30]]), np.array([[10]])
    assert cascade_bounds(worse, better, 100, 0.1, "empirical")[0, 0] == pytest.approx(0.2)


def test_the_sequence_is_never_stricter_than_the_union():
    for seed in range(20):
        drawn = models_of(600, seed)
        grid = np.linspace(0, 1, 31)
        union, sequence = (
            SafeCascade(None, 0.05, method=method, thresholds=grid).fit(*drawn) for method in ("union", "sequence")
        )
        assert sequence.threshold_ <= union.threshold_


def test_the_gap_is_kept_over_calibration_sets():
    """400 draws from a pool; the promise is 1 − δ, and the empirical threshold breaks it often."""
    score, fast, slow = models_of(4000)
    broken = {"sequence": 0, "empirical": 0}
    generator = np.random.default_rng(0)
    for _ in range(200):
        rows = generator.integers(0, 4000, 500)
        for method in broken:
            cascade = SafeCascade(None, 0.05, 0.2, method=method).fit(score[rows], fast[rows], slow[rows])
            out = score >= cascade.threshold_
            broken[method] += np.mean(out & ~fast & slow) - np.mean(out & fast & ~slow) > 0.05
    assert broken["sequence"] <= 0.2 * 200
    assert broken["empirical"] > 0.3 * 200


def test_the_slow_model_is_asked_for_the_rest_alone():
    asked = []

    def slow(x):
        asked.append(len(x))
        return np.eye(3)[np.full(len(x), 2)]

    def fast(x):
        return np.stack([x, 1 - x, 0 * x], axis=1)

    score, right, right_slow = models_of()
    cascade = SafeCascade((fast, slow), 0.05).fit(score, right, right_slow)
    cascade.threshold_ = 0.8
    assert cascade.predict(np.array([0.95, 0.6, 0.1, 0.8])).tolist() == [0, 2, 1, 0]
    assert asked == [1]
    cascade.predict(np.array([0.99, 0.01]))
    assert asked == [1]
    certificate = cascade.certificate()
    assert certificate["rows"] == 3000
    assert certificate["holds"] == "with probability 0.9 over calibration sets"
    guess = SafeCascade(None, 0.05, method="empirical").fit(score, right, right_slow)
    assert guess.certificate()["holds"] == "not certified: an estimate"


@pytest.mark.parametrize("method", METHODS)
def test_a_certificate_is_valid_json_and_says_what_was_fitted(method):
    """Where the fast model is never trusted as well: JSON has no infinity."""
    score, _, right_slow = models_of(400)
    for fast, never in ((np.ones(400, bool), False), (np.zeros(400, bool), True)):
        slow = right_slow | (not never)
        cascade = SafeCascade(None, 0.15, 0.2, method=method).fit(score if not never else 1 + 0 * score, fast, slow)
        told = json.loads(json.dumps(cascade.certificate(), allow_nan=False))
        assert math.isinf(cascade.threshold_) == never
        assert told["threshold"] == (None if never else cascade.threshold_)
        assert [told[name] for name in ("bound", "exit_share", "rows", "method")] == [
            cascade.bound_,
            cascade.exit_share_,
            400,
            method,
        ]
        assert "error of the slow model <= 0.15" in told["statement"]
        assert ("0.8 over" in told["holds"]) == (method != "empirical")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_exit_in_use_as_they_did_in_calibration(dtype):
    """Scores of a few bits are a little above or below the threshold that they are written as, in both places alike."""
    score = np.repeat(np.arange(1, 10) / 10, 30).astype(dtype)
    models = lambda x: np.stack([x, 0 * x], axis=1), lambda x: np.stack([0 * x, 1 + 0 * x], axis=1)
    for gamma in np.arange(1, 10) / 10:
        cascade = SafeCascade(models, 0.05, thresholds=[gamma]).fit(score, score > 0, score > 0)
        assert cascade.exit_share_ == np.mean(cascade.predict(score) == 0)


def test_a_shield_by_brute_force():
    generator = np.random.default_rng(0)
    unsafe, grid = generator.uniform(size=700) < 0.4, np.linspace(0, 1, 51)
    score = grid[np.round(50 * generator.beta(1, 5, size=400)).astype(int)]
    shield = Shield(0.04, 0.1, thresholds=grid).fit(score, unsafe)
    becomes = clopper_pearson(unsafe.sum(), 700, 0.05, "upper")[1]
    expected, kept = math.inf, 0.0
    for gamma in grid[::-1]:
        bound = becomes * clopper_pearson((score >= gamma).sum(), 400, 0.05, "upper")[1]
        if bound > 0.04:
            break
        expected, kept = gamma, bound
    assert (shield.threshold_, shield.bound_) == (expected, pytest.approx(kept))
    never = Shield(0.01, 0.1).fit(score, np.ones(20, bool))
    every = np.linspace(0, 1, 201)
    assert (never.threshold_, never.bound_) == (every[every > score.max()].min(), pytest.approx(1 - 0.05 ** (1 / 400)))
    none = Shield(0.05, 0.1).fit(np.zeros(0), np.zeros(100, bool))
    assert none.threshold_ == 0.0
    assert none.bound_ == pytest.approx(1 - 0.05 ** (1 / 100))
