"""Prediction sets against what is known exactly: numbers by hand, enumeration, other forms, invariances, the law."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from laureate.uncertainty import (
    APS,
    LAC,
    RAPS,
    SAPS,
    NaiveSets,
    ScoreSets,
    TopK,
    by_class,
    by_rank,
    by_size,
    conformal_quantile,
    coverage,
    coverage_law,
    fit_temperature,
    lac_score,
    mean_size,
    rank_all,
    rank_label,
    raps_score,
    saps_score,
    set_of_size,
    top_k_score,
    tune_raps,
    worst_violation,
)

P = np.array([0.15, 0.5, 0.05, 0.3])
KEY = jax.random.key(0)


def world(n, num_classes, seed=0, sharp=1.0, dtype=np.float64):
    """Logits, and labels drawn from softmax(logits / sharp)."""
    generator = np.random.default_rng(seed)
    logits = generator.uniform(1, 6, size=(n, 1)) * generator.normal(size=(n, num_classes))
    y = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    return (sharp * logits).astype(dtype), y


def softmax(z):
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


# --- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k_reg", "lam", "expected"),
    [
        (1, 0.0, [0.25, 0.65, 0.875, 0.975]),
        (2, 0.1, [0.25, 0.65, 0.975, 1.175]),
        (1, 0.2, [0.25, 0.85, 1.275, 1.575]),
        (0, 0.2, [0.45, 1.05, 1.475, 1.775]),
    ],
)
def test_the_score_by_hand(k_reg, lam, expected):
    np.testing.assert_allclose(raps_score(rank_all(P), 0.5, k_reg, lam), expected, atol=1e-12)
    by_label = raps_score(rank_label(np.tile(P, (4, 1)), np.array([1, 3, 0, 2])), 0.5, k_reg, lam)
    np.testing.assert_allclose(by_label, expected, atol=1e-12)


def test_the_uniform_number_multiplies_the_own_mass_alone():
    low, high = (raps_score(rank_all(P), u, 1, 0.2) for u in (0.0, 1.0))
    np.testing.assert_allclose(high - low, np.sort(P)[::-1], atol=1e-12)


def test_the_other_scores_by_hand():
    at = rank_all(P)
    np.testing.assert_allclose(lac_score(at), [0.5, 0.7, 0.85, 0.95])
    np.testing.assert_allclose(top_k_score(at, 0.25), [0.25, 1.25, 2.25, 3.25])
    np.testing.assert_allclose(saps_score(at, 0.25, 0.1), [0.125, 0.525, 0.625, 0.725])


def test_own_penalties_are_added_by_rank():
    penalty = np.array([0.0, 0.0, 0.1, 0.2])
    at = rank_label(np.tile(P, (4, 1)), np.arange(4))
    np.testing.assert_allclose(raps_score(at, 0.3, 9, 9.0, penalty), raps_score(at, 0.3, 2, 0.1), atol=1e-12)


def test_special_cases():
    uniform = np.full(5, 0.2)
    np.testing.assert_allclose(raps_score(rank_all(uniform), 0.3, 2, 0.0), (np.arange(5) + 0.3) / 5, atol=1e-12)
    cold = softmax(np.array([3.0, 1.0, 2.0]) / 1e-3)
    assert float(raps_score(rank_label(cold, np.array(0)), 0.3, 1, 0.1)) == 0.3


def test_a_label_is_ranked_as_in_the_whole_order_with_ties():
    generator = np.random.default_rng(0)
    p = generator.integers(0, 4, size=(200, 6)) / 7.0
    order = np.argsort(-p, axis=1, kind="stable")
    whole = rank_all(p)
    for y in range(6):
        found = rank_label(p, np.full(200, y))
        rank = np.argmax(order == y, axis=1)
        np.testing.assert_array_equal(found.rank, rank + 1)
        np.testing.assert_allclose(found.above, whole.above[np.arange(200), rank], atol=1e-12)
        np.testing.assert_allclose(found.mass, whole.mass[np.arange(200), rank])
    np.testing.assert_array_equal(whole.top[:, 0], p.max(axis=1))


# --- sets -------------------------------------------------------------------------------------------------------------


def constructive_size(p, tau, u, k_reg, lam):
    """L and V of the paper's algorithm 3, one row at a time."""
    mass = np.sort(p)[::-1]
    penalty = lam * np.maximum(np.arange(1, len(p) + 1) - k_reg, 0)
    length = int(np.sum(np.cumsum(mass) + penalty <= tau)) + 1
    if length > len(p):
        return len(p)
    v = (tau - mass[: length - 1].sum() - penalty[length - 1]) / mass[length - 1]
    return length - (u >= v)


@pytest.mark.parametrize(("k_reg", "lam"), [(1, 0.0), (2, 0.05), (0, 0.3), (3, 2.0)])
def test_the_score_form_is_the_constructive_form(k_reg, lam):
    generator = np.random.default_rng(k_reg)
    p, u, tau = generator.dirichlet(np.full(7, 0.4), 500), generator.uniform(size=500), generator.uniform(0, 1.4, 500)
    size = np.sum(raps_score(rank_all(p), u[:, None], k_reg, lam) <= tau[:, None], axis=1)
    assert size.tolist() == [constructive_size(*row, k_reg, lam) for row in zip(p, tau, u, strict=True)]


def test_a_set_is_the_head_of_the_stable_order():
    generator = np.random.default_rng(1)
    p, size = generator.integers(0, 4, size=(300, 6)) / 7.0, generator.integers(0, 7, size=300)
    sets = set_of_size(p, size)
    order = np.argsort(-p, axis=1, kind="stable")
    for row in range(300):
        assert set(np.flatnonzero(sets[row])) == set(order[row, : size[row]])


METHODS = {
    "raps": RAPS(k_reg=2, lam=0.05, temperature=1.3),
    "raps-penalty": RAPS(penalty=np.linspace(0, 1, 8) ** 2, temperature=1.0),
    "aps": APS(temperature=1.0),
    "lac": LAC(temperature=1.0),
    "saps": SAPS(lam=0.1, temperature=1.0),
    "top-k": TopK(temperature=1.0),
    "own": ScoreSets(lambda p, u: -np.log(p) * (1 + u[:, None])),
    "own-tied": ScoreSets(lambda p, u: 0.07 * np.ceil(11 * (1 - p)).astype(int)),  # in double precision
}


@pytest.mark.parametrize("name", METHODS)
def test_a_set_holds_the_labels_whose_score_is_at_most_tau(name):
    """Label by label, and sizes beside it: with options away from their defaults, in both precisions."""
    method = METHODS[name]
    for dtype in (np.float32, np.float64):
        z, y = world(300, 8, dtype=dtype)
        method.fit(KEY, z[:200], y[:200])
        p = softmax(z[200:] / dtype(method.temperature_))
        u = np.asarray(jax.random.uniform(jax.random.key(5), (100,)), dtype)
        scores = np.stack([method._label_scores(p, np.full(100, label), u) for label in range(8)], axis=1)
        sets = method.predict_set(jax.random.key(5), z[200:])
        np.testing.assert_array_equal(sets, scores <= np.float64(method.tau_))
        np.testing.assert_array_equal(method.predict_size(jax.random.key(5), z[200:]), sets.sum(axis=1))
        unlike = not np.array_equal(sets, method.predict_set(jax.random.key(6), z[200:]))
        assert unlike != (name in ("lac", "own-tied"))
    if name == "own-tied":
        return
    # A score of just τ belongs: with τ the score of a row's third rank the row has three labels.
    p = method._probabilities(z[200:])
    ordered = np.sort(method._scores(p, u), axis=1) if name == "own" else method._score(rank_all(p), u[:, None])
    for row in range(5):
        method.tau_ = ordered[row, 2]
        assert method.predict_set(jax.random.key(5), z[200:])[row].sum() == 3
        assert method.predict_size(jax.random.key(5), z[200:])[row] == 3


@pytest.mark.parametrize("name", [name for name in METHODS if name != "raps-penalty"])
def test_invariances(name):
    method = METHODS[name]
    z, y = world(300, 8)
    sets = method.fit(KEY, z[:200], y[:200]).predict_set(KEY, z[200:])
    shifted = method.fit(KEY, z[:200] + 5.0, y[:200]).predict_set(KEY, z[200:] - 3.0)
    np.testing.assert_array_equal(shifted, sets)
    order = np.random.default_rng(0).permutation(8)
    moved = method.fit(KEY, z[:200][:, order], np.argsort(order)[y[:200]]).predict_set(KEY, z[200:][:, order])
    np.testing.assert_array_equal(moved, sets[:, order])


def test_the_order_of_the_calibration_rows_does_not_matter_to_tau():
    scores = np.random.default_rng(0).normal(size=57)
    assert conformal_quantile(scores, 0.13) == conformal_quantile(scores[::-1], 0.13)


def test_aps_is_raps_without_a_penalty_and_naive_has_its_level():
    z, y = world(300, 8)
    aps, raps = APS(0.2, temperature=2.0).fit(KEY, z, y), RAPS(0.2, k_reg=3, lam=0.0, temperature=2.0).fit(KEY, z, y)
    assert aps.tau_ == raps.tau_
    assert NaiveSets(0.2, temperature=1.0).fit(KEY, z, y).tau_ == 0.8


def test_a_large_penalty_is_top_k():
    """With λ >= 1 and k_reg below the rank m that top-k needs, sets have m − 1 or m labels; else at most k_reg."""
    z, y = world(4000, 12, sharp=0.3)
    rank = rank_label(z, y).rank
    m = int(conformal_quantile(np.asarray(rank, float), 0.1))
    assert m >= 3
    sizes = RAPS(k_reg=m - 2, lam=3.0, temperature=1.0).fit(KEY, z[:2000], y[:2000]).predict_size(KEY, z[2000:])
    assert set(sizes) == {m - 1, m}
    cut = RAPS(k_reg=m + 1, lam=3.0, temperature=1.0).fit(KEY, z[:2000], y[:2000]).predict_size(KEY, z[2000:])
    assert cut.max() == m + 1


def test_sets_are_nested_in_alpha():
    z, y = world(600, 8)
    sets = [RAPS(alpha, k_reg=1, lam=0.02, temperature=1.0).fit(KEY, z[:400], y[:400]) for alpha in (0.3, 0.1, 0.02)]
    small, middle, large = (method.predict_set(KEY, z[400:]) for method in sets)
    assert (small <= middle).all()
    assert (middle <= large).all()
    assert small.sum() < middle.sum() < large.sum()


@pytest.mark.parametrize("name", ["raps", "aps", "saps", "top-k"])
def test_rounded_up_is_the_union_over_u(name):
    """u calibrates, and only the sets are rounded: nothing is in a drawn set that is not in the rounded one."""
    method = METHODS[name]
    z, y = world(400, 8)
    drawn = method.fit(KEY, z[:200], y[:200])
    many = np.any([drawn.predict_set(jax.random.key(i), z[200:]) for i in range(300)], axis=0)
    rounded = type(method)(**(method.get_params() | {"randomized": False})).fit(KEY, z[:200], y[:200])
    assert rounded.tau_ == drawn.tau_
    sets = rounded.predict_set(None, z[200:])
    np.testing.assert_array_equal(rounded.predict_set(KEY, z[200:]), sets)  # a key changes nothing
    assert (many <= sets).all()
    assert (sets & ~many).mean() < 0.02


def test_empty_sets_get_the_most_probable_label_alone():
    z, y = world(600, 8, sharp=1.0)
    z *= 3.0
    plain, filled = (APS(0.6, temperature=1.0, empty=empty).fit(KEY, z[:300], y[:300]) for empty in ("allow", "top1"))
    sets, more = plain.predict_set(KEY, z[300:]), filled.predict_set(KEY, z[300:])
    empty = ~sets.any(axis=1)
    assert empty.any()
    np.testing.assert_array_equal(more[~empty], sets[~empty])
    np.testing.assert_array_equal(more[empty], np.eye(8, dtype=bool)[z[300:].argmax(axis=1)][empty])
    np.testing.assert_array_equal(filled.predict_size(KEY, z[300:]), more.sum(axis=1))


# --- the threshold ----------------------------------------------------------------------------------------------------


def test_the_exact_coverage_at_small_n():
    """k/(n + 1), by the rank that the threshold has among n scores; never outside [1 − α, 1 − α + 1/(n + 1)]."""
    table = {10: 0.9091, 15: 0.9375, 19: 0.9, 20: 0.9048, 50: 0.902, 99: 0.9, 100: 0.901, 105: 0.9057}
    for n in range(9, 201):
        exact = conformal_quantile(np.arange(1.0, n + 1), 0.1) / (n + 1)
        assert 0.9 - 1e-12 <= exact <= 0.9 + 1 / (n + 1) + 1e-12
        assert n not in table or round(exact, 4) == table[n]
        assert coverage_law(n, 0.1).mean == pytest.approx(exact)
    assert conformal_quantile(np.arange(8.0), 0.1) == np.inf


@pytest.mark.parametrize("alpha", [0.3, 0.7, 0.05, 0.1])
def test_rounding_moves_no_index_in_either_precision(alpha):
    for n in (9, 19, 39, 99, 999):
        k = math.ceil(round((n + 1) * (1 - alpha), 6))
        k = k if k <= n else np.inf
        scores = np.arange(1.0, n + 1)
        assert conformal_quantile(scores, alpha) == k
        assert float(conformal_quantile(jnp.asarray(scores, jnp.float32), alpha)) == k


def test_weights_are_repetitions():
    """Whole weights are as many copies of the score, and the new example's as many of ∞."""
    generator = np.random.default_rng(0)
    scores, weights = generator.normal(size=30), generator.integers(0, 4, size=30)
    for alpha, own in itertools.product((0.1, 0.25, 0.5), (1, 3)):
        copies = np.sort(np.repeat(scores, weights).tolist() + [np.inf] * own)
        expected = copies[math.ceil(round(len(copies) * (1 - alpha), 6)) - 1]
        assert conformal_quantile(scores, alpha, weights, own) == expected
    assert conformal_quantile(scores, 0.2, np.ones(30)) == conformal_quantile(scores, 0.2)


def test_the_law_is_scipys_beta():
    law, known = coverage_law(1000, 0.1), stats.beta(901, 100)
    assert (law.mean, law.sd) == (pytest.approx(known.mean()), pytest.approx(known.std()))
    assert law.sd == pytest.approx(0.00947, abs=1e-5)
    np.testing.assert_allclose(law.cdf([0.88, 0.9, 0.92]), known.cdf([0.88, 0.9, 0.92]))
    np.testing.assert_allclose(law.ppf([0.05, 0.5]), known.ppf([0.05, 0.5]))
    assert 1 - coverage_law(640, 0.1).cdf(0.88) >= 0.95 > 1 - coverage_law(560, 0.1).cdf(0.88)
    assert (coverage_law(8, 0.1).mean, coverage_law(8, 0.1).cdf(0.99)) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["raps", "aps", "lac", "saps", "top-k"])
def test_coverage_of_many_calibration_sets_follows_the_law(name):
    """1,500 calibration sets of 39 rows: Kolmogorov's test against Beta(36, 4), and the mean to four errors."""
    z, y = world(1500 * 39 + 40_000, 6, seed=3)
    u = np.random.default_rng(4).uniform(size=len(y))
    scores = METHODS[name].fit(KEY, z[:100], y[:100])._label_scores(softmax(z / METHODS[name].temperature_), y, u)
    taus = [conformal_quantile(row, 0.1) for row in scores[: 1500 * 39].reshape(1500, 39)]
    fresh = np.sort(scores[1500 * 39 :])
    covered = np.searchsorted(fresh, taus, side="right") / len(fresh)
    assert stats.kstest(covered, coverage_law(39, 0.1).cdf).pvalue > 1e-3
    assert abs(covered.mean() - 0.9) < 4 * np.hypot(coverage_law(39, 0.1).sd / np.sqrt(1500), 0.3 / np.sqrt(40_000))


def test_groups_are_each_covered():
    """One threshold for all covers an easy group too much and a hard one too little."""
    z, y = world(9000, 6, seed=1)
    hard = np.arange(9000) % 3 == 0
    z[hard] = np.random.default_rng(0).normal(size=(3000, 6))
    names = np.where(hard, "hard", "easy")
    key, test = jax.random.key(1), slice(4000, None)
    plain = APS(temperature=1.0).fit(KEY, z[:4000], y[:4000]).predict_set(key, z[test])
    mondrian = APS(temperature=1.0).fit(KEY, z[:4000], y[:4000], groups=names[:4000])
    assert mondrian.groups_.tolist() == ["easy", "hard"]
    sets = mondrian.predict_set(key, z[test], names[test])
    for group in ("easy", "hard"):
        inside = names[test] == group
        assert abs(coverage(sets[inside], y[test][inside]) - 0.9) < 0.03
    assert coverage(plain[hard[test]], y[test][hard[test]]) < 0.85
    mondrian.set_params(randomized=False)  # rows of the second group alone have its threshold, as among others
    among = mondrian.predict_size(None, z[test], names[test])[hard[test]]
    np.testing.assert_array_equal(mondrian.predict_size(None, z[test][hard[test]], names[test][hard[test]]), among)
    alone = APS(temperature=1.0)._threshold(
        mondrian._label_scores(softmax(z[:4000]), y[:4000], _calibration_u(4000))[hard[:4000]]
    )
    assert mondrian.tau_[1] == pytest.approx(alone)


def _calibration_u(n):
    return np.asarray(jax.random.uniform(jax.random.split(KEY, 3)[2], (n,)), float)


# --- temperature and tuning -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharp", [0.4, 1.0, 3.0])
def test_the_temperature_is_the_minimum_of_the_likelihoods_loss(sharp):
    z, y = world(2000, 5, sharp=sharp)
    found = float(fit_temperature(z, y))

    def loss(t):
        return -np.mean(np.log(softmax(z / t)[np.arange(2000), y]))

    assert loss(found) <= min(loss(found * 1.01), loss(found / 1.01))
    assert found == pytest.approx(sharp, rel=0.1)
    assert float(jax.jit(fit_temperature)(jnp.asarray(z, jnp.float32), jnp.asarray(y))) == pytest.approx(
        found, rel=1e-3
    )


def brute_tuning(p, y, u, alpha, ks, lams, criterion):
    best = None
    for k, lam in itertools.product(ks, lams):
        scores = raps_score(rank_label(p, y), u, k, lam)
        tau = np.sort(scores)[math.ceil((len(y) + 1) * (1 - alpha) - 1e-9) - 1]
        size = np.array([np.sum(raps_score(rank_all(row), one, k, lam) <= tau) for row, one in zip(p, u, strict=True)])
        value = criterion(size, scores <= tau)
        if best is None or value < best[0]:
            best = (value, k, lam)
    return best[1:]


def test_tuning_is_the_best_of_its_grid():
    z, y = world(200, 9, sharp=0.5)
    p, u = softmax(z), np.random.default_rng(2).uniform(size=200)
    rank = int(np.sort(rank_label(p, y).rank)[math.ceil(201 * 0.85 - 1e-9) - 1])
    lams = (0.003, 0.03, 0.2)

    def violation(size, covered):
        strata = [(0, 1), (2, 3), (4, 6), (7, 10)]
        inside = [covered[(size >= a) & (size <= b)] for a, b in strata]
        return max(abs(one.mean() - 0.85) for one in inside if len(one) >= 20)

    for criterion, value in {"size": lambda s, c: s.mean(), "adaptive": violation}.items():
        found = tune_raps(p, y, u, 0.15, lams=lams, criterion=criterion)
        assert tuple(map(float, found)) == brute_tuning(p, y, u, 0.15, (rank,), lams, value)

    def largest(size, covered):
        assert (size.dtype.kind, covered.dtype.kind) == ("i", "b")
        return -size.mean()

    for own in (lambda s, c: np.mean(s == 0), largest):
        found = tune_raps(p, y, u, 0.15, lams=lams, k_reg=4, criterion=own)
        assert tuple(map(float, found)) == brute_tuning(p, y, u, 0.15, (4,), lams, own)
    tried = []
    tune_raps(p, y, u, 0.15, lams=lams, k_reg="joint", criterion=lambda s, c: len(tried.append(s) or tried))
    assert len(tried) == 4 * 3  # ranks 1, 2, 5 and the one needed; 10, 20 and 50 are beyond the nine classes
    k, _ = tune_raps(p[:5], y[:5], u[:5], 0.15, lams=lams)  # of five rows none says which rank nine in ten need
    assert (k, k.dtype.kind) == (9, "i")
    joint = tune_raps(p, y, u, 0.15, lams=lams, k_reg="joint")
    assert tuple(map(float, joint)) == brute_tuning(p, y, u, 0.15, (1, 2, 5, rank), lams, lambda s, c: s.mean())


def test_fit_tunes_on_rows_that_do_not_calibrate():
    """The parts are those of the key; tau_ is the quantile of the others' scores with the tuned numbers."""
    z, y = world(400, 9, sharp=2.0)
    raps = RAPS(0.2, tune_fraction=0.4, criterion="adaptive").fit(KEY, z, y)
    order_key, tune_key, score_key = jax.random.split(KEY, 3)
    order = np.asarray(jax.random.permutation(order_key, 400))
    known, held = order[:160], order[160:]
    assert raps.n_cal_ == 240
    assert raps.temperature_ == pytest.approx(float(fit_temperature(z[known], y[known])))
    p = softmax(z / raps.temperature_)
    u = np.asarray(jax.random.uniform(tune_key, (160,)), float)
    from laureate.uncertainty.raps import ADAPTIVE_GRID

    k, lam = tune_raps(p[known], y[known], u, 0.2, lams=ADAPTIVE_GRID, criterion="adaptive")
    assert (raps.k_reg_, raps.lam_) == (int(k), float(lam))
    scores = raps_score(rank_label(p[held], y[held]), np.asarray(jax.random.uniform(score_key, (240,)), float), k, lam)
    assert raps.tau_ == pytest.approx(np.sort(scores)[math.ceil(241 * 0.8) - 1])
    # Groups change the thresholds alone: each is that of its own rows among those that calibrate.
    site = np.array(["west", "north", "east"])[np.minimum(2, np.arange(400) ** 2 % 7)]
    grouped = RAPS(0.2, tune_fraction=0.4, criterion="adaptive").fit(KEY, z, y, groups=site)
    assert (grouped.k_reg_, grouped.lam_, grouped.temperature_) == (raps.k_reg_, raps.lam_, raps.temperature_)
    own = [np.sort(scores[site[held] == name]) for name in ("east", "north", "west")]
    taus = [one[math.ceil((len(one) + 1) * 0.8) - 1] for one in own]
    np.testing.assert_allclose(grouped.tau_, taus)
    assert grouped.groups_.tolist() == ["east", "north", "west"]
    assert len(set(taus)) == 3


def test_saps_is_tuned_to_the_smallest_sets():
    z, y = world(400, 9, sharp=0.5)
    saps = SAPS(0.2, lams=(0.01, 0.1, 0.5), temperature=1.0).fit(KEY, z, y)
    order_key, tune_key, _ = jax.random.split(KEY, 3)
    known = np.asarray(jax.random.permutation(order_key, 400))[:120]
    p, u = softmax(z[known]), np.asarray(jax.random.uniform(tune_key, (120,)), float)
    sizes = {}
    for lam in (0.01, 0.1, 0.5):
        tau = np.sort(saps_score(rank_label(p, y[known]), u, lam))[math.ceil(121 * 0.8 - 1e-9) - 1]
        sizes[lam] = np.sum(saps_score(rank_all(p), u[:, None], lam) <= tau)
    assert saps.lam_ == min(sizes, key=sizes.__getitem__)


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_metrics_by_hand():
    sets = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1]], bool)
    y = np.array([0, 2, 1, 2])
    assert (coverage(sets, y), mean_size(sets)) == (0.5, 1.5)
    size, covered = np.array([0, 1, 2, 3, 4, 6, 7, 10, 11, 100, 101]), np.array([0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1], bool)
    strata = by_size(size, covered)
    assert strata.count.tolist() == [2, 2, 2, 2, 2, 1]
    assert strata.coverage.tolist() == [0.5, 1.0, 0.5, 1.0, 0.0, 1.0]
    assert worst_violation(size, covered, 0.1, min_count=2) == pytest.approx(0.9)
    assert worst_violation(size, covered, 0.1, min_count=3) == 0.0
    assert by_rank(np.array([1, 3, 3]), np.array([True, False, True])).coverage.tolist()[:2] == [1.0, 0.5]
    assert by_class(np.array([0, 2, 2]), np.array([True, False, True]), 3).coverage.tolist() == [1.0, 0.0, 0.5]


# --- jit, vmap and precision ------------------------------------------------------------------------------------------


def test_numpy_and_jax_agree_inside_jit_and_vmap_and_no_number_compiles_anew():
    z, y = world(3 * 60, 7, sharp=0.6, dtype=np.float32)
    z, y = z.reshape(3, 60, 7), y.reshape(3, 60)
    u = np.random.default_rng(0).uniform(size=(3, 60)).astype(np.float32)
    traced = 0

    def whole(z, y, u, alpha, k_reg, lam):
        nonlocal traced
        traced += 1
        xp = jnp if isinstance(z, jax.Array) else np
        p = (jax.nn.softmax(z) if xp is jnp else softmax(z)).astype(np.float32)
        scores = raps_score(rank_label(p, y), u, k_reg, lam)
        tau = conformal_quantile(scores, alpha)
        size = xp.sum(raps_score(rank_all(p), u[:, None], k_reg, lam) <= tau, axis=1)
        tuned = tune_raps(p, y, u, alpha, lams=(0.01, 0.1), k_reg="joint")
        violation = worst_violation(size, scores <= tau, alpha, min_count=5)
        others = lac_score(rank_all(p)), saps_score(rank_all(p), 0.5, lam)
        return tau, set_of_size(p, size), tuned, violation, others

    compiled = jax.jit(jax.vmap(whole, in_axes=(0, 0, 0, None, None, None)))
    for alpha, k_reg, lam in ((0.1, 2, 0.1), (0.3, 1, 0.02)):
        found = compiled(jnp.asarray(z), jnp.asarray(y), jnp.asarray(u), alpha, k_reg, lam)
        expected = [whole(*row, alpha, k_reg, lam) for row in zip(z, y, u, strict=True)]
        for one in range(3):
            jax.tree.map(
                lambda a, b, one=one: np.testing.assert_allclose(a[one], b, atol=2e-6), tuple(found), expected[one]
            )
    assert traced == 1 + 2 * 3


def test_float32_float64_and_half_give_the_same_sets():
    z, y = world(600, 50, dtype=np.float32)
    for method in (RAPS(k_reg=3, lam=0.02, temperature=1.0), LAC(temperature=1.0)):
        single, double = (
            method.fit(KEY, z[:300].astype(t), y[:300]).predict_set(KEY, z[300:].astype(t)) for t in (np.float32, float)
        )
        assert (single != double).any(axis=1).mean() <= 0.01
    wide = z.astype(float)
    tau = conformal_quantile(1 - softmax(wide)[np.arange(600), y], 0.1)
    assert LAC(temperature=1.0).fit(None, wide, y).tau_ == pytest.approx(tau, rel=1e-13)
    half = z.astype(np.float16)
    coarse = APS(temperature=1.0).fit(KEY, half[:300], y[:300]).predict_set(KEY, half[300:])
    fine = (
        APS(temperature=1.0)
        .fit(KEY, half[:300].astype(np.float32), y[:300])
        .predict_set(KEY, half[300:].astype(np.float32))
    )
    np.testing.assert_array_equal(coarse, fine)


def test_probabilities_and_their_logarithms_give_the_same_sets():
    z, y = world(400, 6)
    p = softmax(z)
    for settings in ({"temperature": 1.0}, {"temperature": 0.5}, {"temperature": "fit"}):
        by_logits = APS(**settings).fit(KEY, z[:300], y[:300]).predict_set(KEY, z[300:])
        by_proba = APS(input="proba", **settings).fit(KEY, p[:300], y[:300]).predict_set(KEY, p[300:])
        np.testing.assert_array_equal(by_logits, by_proba)
