"""Calibration against closed forms, NumPy, SciPy and scikit-learn, in double precision."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression

from laureate.uncertainty import (
    Beta,
    Constant,
    HistogramBinning,
    Isotonic,
    NaturalSpline,
    Platt,
    SplineCalibrator,
    Temperature,
    brier,
    cumulative_difference,
    ece,
    ks_error,
    ks_test,
    nll,
    pool_adjacent_violators,
    top_scores,
    within_scores,
)
from laureate.uncertainty.measures import exceeded

RNG = np.random.default_rng(3)
N = 80
P = RNG.permutation(np.round(RNG.beta(3, 1, N), 2) * 0.9 + 0.08)  # with ties, in no order
Y = (RNG.random(N) < P**2).astype(float)
W = RNG.uniform(0.5, 2.0, N)
NEW = np.linspace(0, 1, 41)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def measured():
    """All measures in one program."""

    def measures(p, y, w):
        return {
            "ks": ks_error(p, y, w),
            "test": ks_test(p, y),
            "curve": cumulative_difference(p, y, w),
            "ece": ece(p, y, 7),
            "ece_mass": ece(p, y, 7, "mass"),
            "brier": brier(p, y),
            "nll": nll(p, y),
        }

    return jax.jit(measures)


# --- measures ---------------------------------------------------------------------------------------------------------


def test_the_curve_and_its_largest_gap_by_hand():
    p, y = np.array([0.9, 0.2, 0.4]), np.array([1.0, 0.0, 1.0])
    t, d = jax.jit(cumulative_difference)(p, y)
    np.testing.assert_allclose(t, [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(d, [0, -0.2 / 3, 0.4 / 3, 0.5 / 3], atol=1e-15)


def by_groups(p, y, w):
    """Ends of groups of equal scores, from the definition P(score <= s)."""
    w = w / w.sum()
    ends = np.unique(p)
    return np.array([0] + [np.sum(w * (y - p) * (p <= end)) for end in ends])


def test_ks_counts_only_ends_of_ties_and_every_weight(measured):
    found = measured(P, Y, W)
    d = by_groups(P, Y, W)
    assert float(found["ks"]) == pytest.approx(np.abs(d).max(), abs=1e-14)
    even = by_groups(P, Y, np.ones(N))
    assert float(found["test"].statistic) == pytest.approx(np.abs(even).max(), abs=1e-14)
    assert float(found["test"].range) == pytest.approx(even.max() - even.min(), abs=1e-14)
    noise = np.sqrt(np.mean(P * (1 - P)) / N)
    assert float(found["test"].floor) == pytest.approx(np.sqrt(np.pi / 2) * noise)
    assert float(found["test"].z) == pytest.approx(np.abs(even).max() / noise)
    np.testing.assert_allclose(np.unique(found["curve"][1]), np.unique(d), atol=1e-14)


def test_ks_does_not_depend_on_the_order_and_its_range_not_on_the_class(measured):
    order = RNG.permutation(N)
    first, second = measured(P, Y, W), measured(P[order], Y[order], W[order])
    other = measured(1 - P, 1 - Y, W)
    assert float(first["ks"]) == pytest.approx(float(second["ks"]), abs=1e-14)
    assert float(first["test"].range) == pytest.approx(float(other["test"].range), abs=1e-14)
    assert first["test"].statistic <= first["test"].range <= 2 * first["test"].statistic


def test_soft_labels_that_are_the_scores_have_no_error_and_a_change_of_sign_cancels(measured):
    found = measured(P, P, W)
    assert float(found["ks"]) == 0.0
    assert float(found["test"].p_value) == 1.0
    s = (np.arange(2000) + 0.5) / 2000
    wave = 0.1 * np.sin(2 * np.pi * s)
    assert float(jax.jit(ks_error)(s, s + wave * 0.3)) == pytest.approx(0.03 / np.pi, abs=1e-5)


def test_other_measures_by_loops(measured):
    found = measured(P, Y, W)
    gaps = [np.sum((Y - P)[(k / 7 < P) & ((k + 1) / 7 >= P)]) for k in range(7)]
    assert float(found["ece"]) == pytest.approx(np.abs(gaps).sum() / N)
    assert float(found["brier"]) == pytest.approx(np.mean((P - Y) ** 2))
    assert float(found["nll"]) == pytest.approx(-np.mean(np.log(np.where(Y == 1, P, 1 - P))))
    before = np.array([np.sum(p > P) for p in P])  # rows of smaller score: ties share a bin
    gaps = [np.sum((Y - P)[before * 7 // N == k]) for k in range(7)]
    assert float(found["ece_mass"]) == pytest.approx(np.abs(gaps).sum() / N)


def test_an_edge_belongs_to_the_bin_below():
    p, y = np.array([0.5, 0.6, 0.0]), np.array([1.0, 0.0, 0.0])
    assert float(jax.jit(lambda p, y: ece(p, y, 2))(p, y)) == pytest.approx((0.5 + 0.6) / 3)


def test_the_law_of_the_test_has_its_known_quantiles_and_joins():
    law = jax.jit(jax.vmap(exceeded))
    np.testing.assert_allclose(law(np.array([1.1490, 1.9600, 2.2414, 2.8070])), [0.5, 0.1, 0.05, 0.01], rtol=3e-4)
    joined = law(np.array([0.0, 0.3, 1 - 1e-9, 1.0]))
    assert float(joined[0]) == 1.0
    assert float(joined[2]) == pytest.approx(float(joined[3]), abs=1e-8)
    assert float(law(np.array([12.0] * 4))[0]) == pytest.approx(4 * 1.776482e-33, rel=1e-5)


# --- the spline -------------------------------------------------------------------------------------------------------

KNOTS = {"six": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), "uneven": (0.0, 0.1, 0.5, 1.0)}


@pytest.mark.parametrize("name", KNOTS)
def test_the_basis_is_scipys_and_slopes_are_differences(name):
    knots = KNOTS[name]
    values, t = RNG.normal(size=len(knots)), np.linspace(0, 1, 33)
    spline, peer = NaturalSpline(knots), CubicSpline(knots, values, bc_type="natural")
    rows = spline.design(t)
    np.testing.assert_allclose(rows @ values, peer(t), atol=1e-13)
    np.testing.assert_allclose(rows.sum(1), 1, atol=1e-13)
    low, high = t[:-7], t[7:]  # across knots
    mean = spline.mean_slope(low, high, jnp.asarray(values))
    np.testing.assert_allclose(mean, (peer(high) - peer(low)) / (high - low), atol=1e-12)
    near = spline.mean_slope(low, low + 1e-12, jnp.asarray(values))
    np.testing.assert_allclose(near, peer(low, 1), atol=1e-6)


def reference(p, y, w, knots, target, ends, clip=True):
    """γ at the scores, written again: groups by ``unique``, SciPy's splines, NumPy's least squares."""
    w = w / w.sum()
    scores, group = np.unique(p, return_inverse=True)
    mass = np.bincount(group, w)
    base = scores if target == "residual" else 0 * scores
    sums = np.cumsum(np.bincount(group, w * y) - mass * base)
    t = np.cumsum(mass)
    basis = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
    design, root = basis(t), np.sqrt(mass)
    if ends == "pinned":
        rest = np.linalg.lstsq(design[:, 1:-1] * root[:, None], (sums - design[:, -1] * sums[-1]) * root, rcond=None)
        values = np.concatenate([[0], rest[0], sums[-1:]])
    else:
        rows = np.concatenate([design * root[:, None], basis(0.0)[None] / np.sqrt(len(p))])
        values = np.linalg.lstsq(rows, np.append(sums * root, 0), rcond=None)[0]
    fitted = CubicSpline(knots, values, bc_type="natural")
    low = np.append(0, t[:-1])
    gamma = base + (fitted(t) - fitted(low)) / (t - low)
    return scores, np.clip(gamma, 0, 1) if clip else gamma


@pytest.mark.parametrize(
    ("knots", "target", "ends"),
    [
        ("six", "residual", "pinned"),
        ("uneven", "direct", "free"),
        pytest.param("six", "residual", "free", marks=pytest.mark.slow),
        pytest.param("uneven", "direct", "pinned", marks=pytest.mark.slow),
    ],
)
def test_gamma_is_that_of_a_second_writing(knots, target, ends):
    calibrator = SplineCalibrator(KNOTS[knots], target=target, ends=ends)  # pyright: ignore[reportArgumentType]
    run = jax.jit(lambda p, y, w: calibrator.fit(p, y, w).transform(NEW))
    for w in (W, np.ones(N)):
        scores, gamma = reference(P, Y, w, KNOTS[knots], target, ends)
        np.testing.assert_allclose(run(P, Y, w), np.interp(NEW, scores, gamma), atol=1e-9)
        if target == "residual" and ends == "pinned":
            shifted = run(P, P - 0.07, w)  # hits that miss each score by 0.07 are found exactly, in range
            inside = (P.min() <= NEW) & (P.max() >= NEW)
            np.testing.assert_allclose(shifted[inside], NEW[inside] - 0.07, atol=1e-12)
            np.testing.assert_allclose(shifted[0], P.min() - 0.07, atol=1e-12)  # constant beyond


@pytest.fixture(scope="module")
def fits():
    """Four calibrators of the same rows in one program: the map at its own rows, its info."""
    kinds = (SplineCalibrator(7), SplineCalibrator(2), SplineCalibrator(7, monotone=True))

    def every(p, y, w):
        found = [kind.fit(p, y, w) for kind in kinds]
        return [(one.transform(p), one.info, one.outside(jnp.asarray(NEW))) for one in found]

    compiled = jax.jit(every)
    return lambda p, y, w=None: compiled(p, y, np.ones(N) if w is None else w)


def test_pinned_ends_keep_the_mean_and_two_knots_are_a_shift(fits):
    (seven, info, outside), (two, _, _), _ = fits(P, 0.2 + 0.5 * Y)  # away from the clips
    assert float(info.clipped) == 0
    assert float(seven.mean()) == pytest.approx(0.2 + 0.5 * Y.mean(), abs=1e-13)
    np.testing.assert_allclose(two, np.clip(P + np.mean(0.2 + 0.5 * Y - P), 0, 1), atol=1e-13)
    assert int(outside) == np.sum((P.min() > NEW) | (P.max() < NEW))


def test_monotone_never_falls_where_the_plain_one_does_and_clips_are_counted(fits):
    (plain, info, _), _, (never, _, _) = fits(P, Y)
    order = np.argsort(P)
    assert np.diff(never[order]).min() >= 0 > np.diff(plain[order]).min()
    scores, gamma = reference(P, Y, np.ones(N), np.linspace(0, 1, 7), "residual", "pinned", clip=False)
    gamma = np.interp(P, scores, gamma)
    np.testing.assert_allclose(plain, np.clip(gamma, 0, 1), atol=1e-9)
    assert float(info.clipped) == pytest.approx(np.mean((gamma < 0) | (gamma > 1)))


def test_monotone_pools_by_weight(fits):
    _, _, (never, _, _) = fits(P, Y, W)
    scores, gamma = reference(P, Y, W, np.linspace(0, 1, 7), "residual", "pinned", clip=False)
    mass = np.bincount(np.searchsorted(scores, P), W)
    pooled = IsotonicRegression().fit(scores, gamma, sample_weight=mass).predict(P)
    np.testing.assert_allclose(never, np.clip(pooled, 0, 1), atol=1e-9)


def test_rows_that_all_hit_give_one(fits):
    for gamma, _, _ in fits(P, np.ones(N)):
        np.testing.assert_allclose(gamma, 1.0)


# --- the others, as in scikit-learn -----------------------------------------------------------------------------------


class Scored(ClassifierMixin, BaseEstimator):
    """An estimator whose decision is its input."""

    def fit(self, X, y):  # noqa: N803
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):  # noqa: N803
        return X[:, 0]

    def predict(self, X):  # noqa: N803
        return (X[:, 0] > 0).astype(int)


def scikit(method, x):
    peer = CalibratedClassifierCV(FrozenEstimator(Scored().fit(None, None)), method=method)
    return peer.fit(x(P)[:, None], Y.astype(int), sample_weight=W).predict_proba(x(NEW[1:-1])[:, None])[:, 1]


WEIGHTS = pytest.mark.filterwarnings("ignore:Since FrozenEstimator does not")  # the map gets them, which is all we ask


def logit(p):
    return np.log(p) - np.log1p(-p)


def fitted(calibrator, p=P, y=Y, w=W):
    found = jax.jit(lambda p, y, w: calibrator.fit(p, y, w))(p, y, w)
    assert int(found.info.status) == 0
    return found


@WEIGHTS
def test_isotonic_is_scikit_learns():
    found = fitted(Isotonic())
    np.testing.assert_allclose(found.transform(NEW[1:-1]), scikit("isotonic", lambda p: p), atol=1e-6)
    here = Isotonic().fit(P, Y, W)  # outside jit by SciPy
    np.testing.assert_allclose(here.values, found.values, rtol=1e-12)
    np.testing.assert_array_equal(here.scores, found.scores)
    tied = Isotonic().fit(np.array([0.2, 0.1, 0.1, 0.3]), np.array([0, 1, 0, 1]), np.array([1, 1, 2, 1.0]))
    np.testing.assert_allclose(tied.values, [0.25, 0.25, 0.25, 1])
    assert len(Isotonic().fit(np.array([0.5]), np.array([1])).values) == 1
    values, rounds = jax.jit(pool_adjacent_violators)(np.array([1.0, 3.0, 2.0, 4.0, 0.0]), np.array([1, 1, 3, 1, 1.0]))
    np.testing.assert_allclose(values, [1, *[(3 + 6 + 4) / 6] * 4])
    assert int(rounds) >= 2


def test_isotonic_outside_jit_is_scikit_learns_to_double_precision():
    found = Isotonic().fit(P, Y, W)
    order = np.argsort(P)
    np.testing.assert_array_equal(found.scores, P[order])
    peer = IsotonicRegression().fit(P, Y, sample_weight=W).predict(P[order])
    np.testing.assert_allclose(found.values, peer, rtol=1e-13, atol=1e-15)


@WEIGHTS
def test_platt_is_scikit_learns_sigmoid():
    np.testing.assert_allclose(fitted(Platt()).transform(NEW[1:-1]), scikit("sigmoid", logit), atol=2e-4)


@WEIGHTS
def test_temperature_is_scikit_learns_of_scores_and_of_rows():
    slope = fitted(Temperature())
    np.testing.assert_allclose(slope.transform(NEW[1:-1]), scikit("temperature", logit), atol=2e-4)
    rows = np.stack([1 - P, P], axis=1)
    both = fitted(Temperature(), rows, Y.astype(int))
    assert float(both.beta) == pytest.approx(float(slope.a), rel=1e-6)
    three = np.stack([P, 0.7 * (1 - P), 0.3 * (1 - P)], axis=1)
    labels = RNG.integers(0, 3, N)
    found: Any = Temperature().fit(three, labels, W)
    for kind in (float, np.uint8):  # whole numbers of any type
        again: Any = Temperature().fit(three, labels.astype(kind), W)
        assert float(again.beta) == float(found.beta)
    right = np.log(three)[np.arange(N), labels]
    loss = lambda b: np.average(np.log(np.sum(three ** b[0], axis=1)) - b[0] * right, weights=W)  # noqa: E731
    assert float(found.beta) == pytest.approx(max(0, minimize(loss, [1.0], tol=1e-10).x[0]), abs=1e-5)
    np.testing.assert_allclose(found.transform(three), three**found.beta / np.sum(three**found.beta, 1)[:, None])


@pytest.mark.parametrize("turned", [False, True])
def test_the_beta_family_has_the_largest_likelihood_with_its_signs(turned):
    y = 1 - Y if turned else Y  # scores that speak against the hits: both slopes must be 0
    found, constant = run_beta(P, y, W)
    assert float(constant.values[0]) == pytest.approx(np.average(y, weights=W))
    assert min(float(found.a), float(found.b)) >= 0
    z = lambda q: q[0] * np.log(P) - q[1] * np.log1p(-P) + q[2]  # noqa: E731
    loss = lambda q: np.average(np.logaddexp(0, z(q)) - y * z(q), weights=W)  # noqa: E731
    best = minimize(loss, [1.0, 1.0, 0.0], bounds=[(0, None), (0, None), (None, None)], tol=1e-12)
    assert loss([float(found.a), float(found.b), float(found.c)]) == pytest.approx(best.fun, abs=1e-8)


def steps_by_hand(features, targets, theta):
    """How many steps Newton's method takes, by its rule: halved until they descend, until one is next to nothing."""
    eps, share = np.finfo(float).eps, W / W.sum()
    loss = lambda q: np.sum(share * (np.logaddexp(0, features @ q) - targets * (features @ q)))  # noqa: E731
    scale = 1.0
    for count in range(1, 51):
        chance = 1 / (1 + np.exp(-features @ theta))
        slope = features.T @ (share * (chance - targets))
        bent = (features * (share * chance * (1 - chance))[:, None]).T @ features
        move = -scale * np.linalg.solve(bent + eps * np.eye(len(theta)), slope)
        done = np.all(np.abs(move) <= eps**0.75 * (1 + np.abs(theta)))
        descends = loss(theta + move) <= loss(theta) * (1 + 4 * eps)
        theta, scale = (theta + move, 1.0) if descends else (theta, scale / 2)
        if done:
            return count
    return 50


def test_a_fit_costs_the_passes_of_all_its_steps():
    """Of the beta family those of all four fits, whichever is taken; rounding may cost a step more or less."""
    low, high = np.log(P), np.log1p(-P)
    features = np.stack([low, -high, np.ones(N)], axis=1)
    subsets = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [0, 0, 1.0]])
    each = [steps_by_hand(features * kept, Y, kept * [1.0, 1.0, 0.0]) for kept in subsets]
    slope = steps_by_hand((low - high)[:, None], Y, np.ones(1))
    (beta, _), temperature = run_beta(P, Y, W), fitted(Temperature())
    assert abs(int(beta.info.cost) - sum(each)) <= 2 < sum(each) - max(each)
    assert abs(int(temperature.info.cost) - slope) <= 1 < slope


run_beta = jax.jit(lambda p, y, w: (Beta().fit(p, y, w), Constant().fit(p, y, w)))


def test_histograms_by_loops():
    wide = fitted(HistogramBinning(5, "width"))
    for k in range(5):
        inside = (k / 5 < P) & ((k + 1) / 5 >= P)
        wanted = np.average(Y[inside], weights=W[inside]) if inside.any() else (k + 0.5) / 5
        assert float(wide.transform(np.array((k + 0.5) / 5))) == pytest.approx(wanted)
    scores, hits = np.linspace(0.05, 0.95, 12), np.arange(12) % 3 == 0
    run = jax.jit(lambda p, y, w: HistogramBinning(3).fit(p, y, w).transform(p))
    np.testing.assert_allclose(run(scores, hits, np.ones(12)), np.repeat(hits.reshape(3, 4).mean(1), 4))
    order, weights = np.arange(12) * 5 % 12, np.array([6.0, 1, 1, 1, 1, 1, 1, 6, 1, 1, 2, 2])
    thirds = [(3, slice(0, 3)), (5, slice(3, 8)), (4, slice(8, 12))]  # of the weight 24, by ascending score
    expected = np.concatenate([np.full(k, np.average(hits[part], weights=weights[part])) for k, part in thirds])
    np.testing.assert_allclose(run(scores[order], hits[order], weights[order]), expected[order])


@pytest.mark.parametrize("r", [1, 4, 6])
def test_scores_of_several_classes_are_scores_whatever_rounding_makes_of_their_sum(r):
    """In single precision the sum of all probabilities is 1 but for its last bits: it stays a score."""
    logits = np.random.default_rng(r).normal(size=(400, 6)) * 3
    rows = (np.exp(logits) / np.exp(logits).sum(1, keepdims=True)).astype(np.float32)
    labels = np.arange(400) % 6
    p, y = (np.asarray(part) for part in within_scores(rows, labels, r))
    order = np.argsort(-rows, axis=1, kind="stable")
    np.testing.assert_allclose(p, np.take_along_axis(rows, order[:, :r], 1).sum(1), rtol=1e-6)
    np.testing.assert_array_equal(y, (order[:, :r] == labels[:, None]).any(1))
    assert p.max() <= 1
    assert p.dtype == np.float32
    assert np.isfinite(ks_error(p, y))  # every measure and calibrator takes it


def test_scores_of_several_classes_by_hand():
    rows, labels = np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.4, 0.35, 0.25]]), np.array([1, 1, 0])
    np.testing.assert_allclose(top_scores(rows, labels)[0], [0.5, 0.6, 0.4])
    np.testing.assert_allclose(top_scores(rows, labels)[1], [0, 0, 1])
    np.testing.assert_allclose(top_scores(rows, labels, 2), [[0.3, 0.3, 0.35], [1, 1, 0]])
    np.testing.assert_allclose(within_scores(rows, labels, 2), [[0.8, 0.9, 0.75], [1, 1, 1]])
