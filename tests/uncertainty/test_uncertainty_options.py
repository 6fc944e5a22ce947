"""Estimators of sets and intervals with their options by pairs, each row beside a second writing of all that it does.

Most faults of estimators need two settings away from their defaults: one that is not handed on, one that is heeded in
``predict_set`` and not in ``predict_size``, one that is reported and not applied.
"""

import math
import warnings
from itertools import pairwise, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from by_pairs import by_pairs
from laureate.uncertainty import (
    APS,
    LAC,
    RAPS,
    SAPS,
    NaiveSets,
    PACConfidence,
    ScoreSets,
    TopK,
    by_class,
    by_rank,
    by_size,
    conformal_quantile,
    ece,
    worst_violation,
)
from laureate.uncertainty.binomial import INTERVALS
from laureate.uncertainty.raps import ADAPTIVE_GRID, SIZE_GRID

KEY, ASKED = jax.random.key(0), jax.random.key(7)
N, K, NEW = 240, 7, 40
GENERATOR = np.random.default_rng(5)
LOGITS = GENERATOR.uniform(0.5, 5, size=(N + NEW, 1)) * GENERATOR.normal(size=(N + NEW, K))
LABELS = (0.6 * LOGITS + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)
SITES = np.array(["west", "east", "mid"])[GENERATOR.integers(3, size=N + NEW)]


def softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def ranked(p):
    """Of every label its rank from 1 and the mass before it, ties by the class index."""
    order = np.argsort(-p, axis=1, kind="stable")
    rank = np.argsort(order, axis=1) + 1
    above = np.cumsum(np.take_along_axis(p, order, 1), axis=1) - np.take_along_axis(p, order, 1)
    return rank, np.take_along_axis(above, rank - 1, axis=1)


def quantile(scores, alpha):
    """The ⌈(n + 1)(1 − α)⌉-th smallest, ∞ where there are not so many."""
    place = math.ceil(round((len(scores) + 1) * (1 - alpha), 9))
    return np.sort(scores)[place - 1] if place <= len(scores) else np.inf


# Scores [n, K] of all labels, from p, u [n] and the method's own numbers.
def raps_scores(p, u, k, lam, penalty=None):
    rank, above = ranked(p)
    extra = lam * np.maximum(rank - k, 0) if penalty is None else np.asarray(penalty)[rank - 1]
    return above + u[:, None] * p + extra


def saps_scores(p, u, lam):
    rank, _ = ranked(p)
    top, u = p.max(axis=1)[:, None], u[:, None]
    return np.where(rank == 1, u * top, top + (rank - 2 + u) * lam)


def own_scores(p, u):
    return -np.log(np.maximum(p, 1e-12)) * (1 + u[:, None])


def own_criterion(size, covered):
    """Sets of just two labels are what is wanted."""
    return np.mean(np.abs(size - 2)) - 0.01 * np.mean(covered)


def worst(size, covered, alpha):
    found = [0.0]
    for low, high in ((0, 1), (2, 3), (4, 6), (7, 10)):
        inside = (size >= low) & (size <= high)
        found += [abs(covered[inside].mean() - (1 - alpha))] if inside.sum() >= 20 else []
    return max(found)


def tuned(made, p, y, u):
    """The method's own numbers, by trying all on the tuning rows: of equals the first."""
    rows = np.arange(len(y))
    scores: Any = raps_scores
    value: Any
    if isinstance(made, SAPS):
        tried = [(lam,) for lam in (made.lams if made.lam == "auto" else (made.lam,))]
        scores, value = saps_scores, lambda size, covered: size.mean()
    else:
        if made.penalty is not None:
            return (None, None, made.penalty)
        if not (isinstance(made.k_reg, str) or isinstance(made.lam, str)):
            return (made.k_reg, made.lam)
        grid = ADAPTIVE_GRID if made.criterion == "adaptive" else SIZE_GRID
        lams = (made.lam,) if made.lam != "auto" else grid if made.lams is None else made.lams
        needed = int(min(K, quantile(ranked(p)[0][rows, y], made.alpha)))
        ks: Any = {"auto": (needed,), "joint": (1, 2, 5, needed)}.get(made.k_reg, (made.k_reg,))
        tried = list(product(ks, lams))
        criteria: dict[Any, Any] = {
            "size": lambda size, covered: size.mean(),
            "adaptive": lambda size, covered: worst(size, covered, made.alpha),
        }
        value = criteria.get(made.criterion, made.criterion)
    if len(tried) == 1:
        return tried[0]
    losses = []
    numbers: Any
    for numbers in tried:
        every = scores(p, u, *numbers)
        tau = quantile(every[rows, y], made.alpha)
        losses.append(value((every <= tau).sum(axis=1), every[rows, y] <= tau))
    return tried[int(np.argmin(losses))]


SCORES = {
    APS: lambda p, u: raps_scores(p, u, 0, 0.0),
    NaiveSets: lambda p, u: raps_scores(p, u, 0, 0.0),
    LAC: lambda p, u: 1 - p,
    TopK: lambda p, u: ranked(p)[0] - 1 + u[:, None],
    ScoreSets: own_scores,
    RAPS: raps_scores,
    SAPS: saps_scores,
}
SHARED: dict[str, tuple] = {
    "alpha": (0.1, 0.9),
    "temperature": ("fit", 1.0, 1.7),
    "tune_fraction": (0.3, 0.5),
    "randomized": (True, False),
    "empty": ("allow", "top1"),
    "input": ("logits", "proba"),
    "groups": (False, True),
}
RISING = np.linspace(0, 1, K) ** 2
OWN: dict[type, dict[str, tuple]] = {kind: {} for kind in SCORES} | {
    ScoreSets: {"score": (own_scores,)},
    SAPS: {"lam": ("auto", 0.1), "lams": ((0.01, 0.05, 0.3), (0.5, 0.02))},
    RAPS: {
        "k_reg": ("auto", "joint", 2),
        "lam": ("auto", 0.05),
        "criterion": ("size", "adaptive", own_criterion),
        "lams": (None, (0.003, 0.2)),
        "penalty": (None, RISING),
    },
}


@pytest.mark.parametrize("kind", SCORES, ids=lambda kind: kind.__name__)
def test_sets_with_options_by_pairs_are_those_of_a_second_writing(kind):
    rows = by_pairs(SHARED | OWN[kind])
    rows.append(rows[0] | {"alpha": 0.9, "randomized": True, "empty": "top1"})  # where most sets have no label
    empties = 0
    for row in rows:
        settings = {name: value for name, value in row.items() if name != "groups"}
        made: Any = kind(**settings)
        grouped, alpha = row["groups"], row["alpha"]
        z = softmax(LOGITS) if row["input"] == "proba" else LOGITS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of groups with too few rows
            made.fit(KEY, z[:N], LABELS[:N], SITES[:N] if grouped else None)
        # The parts, the temperature and the method's own numbers.
        order_key, tune_key, score_key = jax.random.split(KEY, 3)
        logs = np.log(z) if row["input"] == "proba" else z
        tunes = row["temperature"] == "fit" or "auto" in (row.get("lam"), row.get("k_reg"))
        tunes |= row.get("k_reg") == "joint"
        if row.get("penalty") is not None:
            tunes = row["temperature"] == "fit"
        number = math.ceil(row["tune_fraction"] * N) if tunes else 0
        order = np.asarray(jax.random.permutation(order_key, N)) if tunes else np.arange(N)
        known, held = order[:number], order[number:]
        assert made.n_cal_ == N - number, row
        if row["temperature"] == "fit":
            loss = lambda log: -np.mean(np.log(softmax(logs[known] / np.exp(log))[np.arange(number), LABELS[known]]))  # noqa: B023, E731
            found: Any = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9})
            assert made.temperature_ == pytest.approx(np.exp(found.x), rel=1e-5), row
        else:
            assert made.temperature_ == row["temperature"]
        p = softmax(logs / made.temperature_)
        numbers = ()
        if kind in (RAPS, SAPS):
            u = np.asarray(jax.random.uniform(tune_key, (number,)), float)
            numbers = tuned(made, p[known], LABELS[known], u)
            assert (made.lam_,) == numbers if kind is SAPS else (made.k_reg_, made.lam_) == numbers[:2], row
        # The thresholds.
        u = np.asarray(jax.random.uniform(score_key, (len(held),)), float)
        scores = SCORES[kind](p[held], u, *numbers)[np.arange(len(held)), LABELS[held]]
        sites = np.unique(SITES[:N]).tolist() if grouped else [None]
        each = {site: scores[SITES[held] == site] if grouped else scores for site in sites}
        taus = {site: 1 - alpha if kind is NaiveSets else quantile(one, alpha) for site, one in each.items()}
        np.testing.assert_allclose(made.tau_, list(taus.values()) if grouped else taus[None], rtol=1e-9)
        assert (made.groups_ is None) != grouped
        # The sets, and their sizes.
        draws = row["randomized"] and kind is not LAC
        key = ASKED if draws else None
        u = np.asarray(jax.random.uniform(ASKED, (NEW,)), float) if draws else np.zeros(NEW)
        tau = np.array([taus[site if grouped else None] for site in SITES[N:]])
        sets = SCORES[kind](p[N:], u, *numbers) <= tau[:, None] + 1e-12
        empty = ~sets.any(axis=1)
        empties += empty.sum() * (row["empty"] == "top1")
        if row["empty"] == "top1":
            sets[empty, p[N:].argmax(axis=1)[empty]] = True
        given = z[N:], SITES[N:] if grouped else None
        np.testing.assert_array_equal(made.predict_set(key, *given), sets, err_msg=str(row))
        np.testing.assert_array_equal(made.predict_size(key, *given), sets.sum(axis=1), err_msg=str(row))
    assert empties


# --- intervals --------------------------------------------------------------------------------------------------------


def interval_by_hand(method, k, n, delta):
    """One interval, from its definition; of no trials [0, 1]."""
    if n == 0:
        return 0.0, 1.0
    share, z = k / n, stats.norm.isf(delta / 2)
    if method in ("clopper-pearson", "wilson"):
        name: Any = {"clopper-pearson": "exact", "wilson": "wilson"}[method]
        found = stats.binomtest(int(k), int(n)).proportion_ci(1 - delta, name)
        return found.low, found.high
    if method == "jeffreys":
        low, high = stats.beta(k + 0.5, n - k + 0.5).ppf([delta / 2, 1 - delta / 2])
        return (low if k else 0.0), (high if k < n else 1.0)
    half = z * np.sqrt(share * (1 - share) / n) if method == "wald" else np.sqrt(np.log(2 / delta) / (2 * n))
    return max(share - half, 0.0), min(share + half, 1.0)


@pytest.mark.parametrize("method", INTERVALS)
def test_intervals_of_all_small_counts_by_hand(method):
    """Of n from 0 to 7 and every k, all of them in one call, alone, and as lists; with a δ for each as well."""
    counts = [(k, n) for n in range(8) for k in range(n + 1)]
    k, n = np.array(counts).T
    for delta in (0.02, 0.4):
        expected = np.array([interval_by_hand(method, *one, delta) for one in counts]).T
        np.testing.assert_allclose(INTERVALS[method](k, n, delta), expected, atol=1e-9)
        alone = [np.array(INTERVALS[method](*one, delta)) for one in counts]
        np.testing.assert_allclose(np.transpose(alone), expected, atol=1e-9)
    deltas = np.linspace(0.02, 0.6, len(counts))
    expected = [interval_by_hand(method, *one, delta) for one, delta in zip(counts, deltas, strict=True)]
    np.testing.assert_allclose(np.transpose(INTERVALS[method](k, n, deltas)), expected, atol=1e-9)


PAC: dict[str, tuple] = {
    "method": tuple(INTERVALS),
    "levels": ("bonferroni", "sidak", "none"),
    "bins": (4, np.int64(1), (0.0, 0.15, 0.5, 0.9, 1.0), [0.1, 0.7, 0.95]),
    "target": ("top", 2),
    "delta": (0.05, 0.4),
    "groups": (False, True),
    "kind": ("rows", "scores"),
}


def test_intervals_with_options_by_pairs_are_those_of_a_second_writing():
    """With bins that are empty, in one group or in all, and bins in which all are right or none is."""
    p = softmax(2 * LOGITS)
    for row in by_pairs(PAC):
        top = row["target"] == "top"
        score, event = (p.max(axis=1), p.argmax(axis=1) == LABELS) if top else (p[:, 2], LABELS == 2)
        edges = np.linspace(0, 1, row["bins"] + 1) if np.ndim(row["bins"]) == 0 else np.array(row["bins"])
        gap = (score > 0.55) & (score < 0.72)  # a bin, or a part of one, without rows
        keep = (score >= edges[0]) & (score <= edges[-1]) & ~gap
        score, event, rows, site = score[keep], event[keep], p[keep], SITES[keep]
        event = np.where(score > 0.85, True, event)
        keep = (site != "mid") | (score > 0.5)
        score, event, rows, site = score[keep], event[keep], rows[keep], site[keep]
        given = rows if row["kind"] == "rows" else score
        settings = {name: row[name] for name in ("method", "levels", "bins", "target", "delta")}
        sites = np.unique(site).tolist() if row["groups"] else [None]
        model = PACConfidence(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of many bins for few rows
            model.fit(given, event, site if row["groups"] else None)
        cells = len(sites) * (len(edges) - 1)
        delta = {
            "bonferroni": row["delta"] / cells,
            "sidak": 1 - (1 - row["delta"]) ** (1 / cells),
            "none": row["delta"],
        }[row["levels"]]
        asked = np.append(np.linspace(edges[0], edges[-1], 9), edges)
        for name in sites:
            place = [max(b for b in range(len(edges) - 1) if edges[b] <= s) for s in asked]
            ends, point, table = [], [], []
            for b, (start, stop) in enumerate(pairwise(edges)):
                inside = (score >= start) & ((score < stop) | (b == len(edges) - 2)) & ((site == name) | (name is None))
                n, k = int(inside.sum()), int(event[inside].sum())
                ends.append(interval_by_hand(row["method"], k, n, delta))
                point.append(k / n if n else np.nan)
                table.append((start, stop, n, k, *ends[-1], n < 30))
            where = np.full(len(asked), name) if row["groups"] else None
            np.testing.assert_allclose(model.interval(asked, where), np.transpose(ends)[:, place], atol=1e-9)
            np.testing.assert_allclose(model.point(asked, where), np.array(point)[place], atol=1e-12)
            found = np.array([np.asarray(column, float) for column in model.table(name)])
            np.testing.assert_allclose(found.T, np.array(table, float), atol=1e-9)
            if not row["groups"]:
                low = high = 0.0
                places = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, len(edges) - 2)
                for b in np.unique(places):
                    mean, (a, z), weight = score[places == b].mean(), ends[b], np.mean(places == b)
                    low += weight * max(a - mean, mean - z, 0)
                    high += weight * max(abs(a - mean), abs(z - mean))
                np.testing.assert_allclose(model.ece_interval(given), (low, high), atol=1e-9)


# --- the threshold and the error of bins ------------------------------------------------------------------------------


def test_thresholds_of_every_kind_of_number_weight_and_library_by_hand():
    """Whole numbers, halves, ties; with weights and the new one's own, at which nothing may be reached: then ∞."""
    scores = np.array([3, -1, 4, 1, 5, 9, -2, 6, 5, 3, 5, 8])
    weights = np.array([1, 0.5, 2, 1, 1, 0.25, 3, 1, 0.5, 1, 2, 1.5])
    seen = set()
    for n, alpha in product((1, 5, 12), (0.02, 0.25, 0.5, 0.9)):
        for given, own in ((None, 1.0), (weights[:n], 1.0), (weights[:n], 7.0), (weights[:n], 0.0)):
            mass = np.ones(n) if given is None else given
            needed = (1 - alpha) * (mass.sum() + own) - 1e-9
            reached = [s for s in np.sort(scores[:n]) if mass[scores[:n] <= s].sum() >= needed]
            wanted = float(reached[0]) if reached else np.inf
            seen.add(np.isinf(wanted))
            for kind in (np.float64, np.float32, np.int64, np.int8, np.uint8):
                if kind is np.uint8 and (scores[:n] < 0).any():
                    continue
                found = conformal_quantile(scores[:n].astype(kind), alpha, given, own)
                assert found == wanted, (n, alpha, given, own, kind)
                assert found.dtype == (kind if np.issubdtype(kind, np.floating) else np.float64)
            assert conformal_quantile(scores[:n].tolist(), alpha, given, own) == wanted
    assert seen == {True, False}
    whole = jax.jit(conformal_quantile)
    for alpha, wanted in ((0.02, np.inf), (0.25, 6.0)):
        assert float(whole(jnp.asarray(scores), alpha)) == wanted


def test_strata_are_those_that_are_asked_for():
    """Coverage and counts by hand, of strata of one's own too, and the worst of those with rows enough."""
    size, covered = GENERATOR.integers(0, 9, 300), GENERATOR.uniform(size=300) < 0.8
    for firsts in ((0, 2, 4, 7, 11, 101), (0, 1, 5), (1, 2, 4, 7, 11, 101), (0, 8)):
        ends = [*firsts[1:], np.inf]
        inside = [(size >= first) & (size < end) for first, end in zip(firsts, ends, strict=True)]
        counts = [int(one.sum()) for one in inside]
        shares = [covered[one].mean() if one.any() else 0.0 for one in inside]
        for found in (by_size(size, covered, firsts), by_rank(size, covered, firsts)):
            assert found.count.tolist() == counts
            np.testing.assert_allclose(found.coverage, shares)
        for alpha, least in ((0.1, 20), (0.4, 20), (0.1, 60), (0.1, 301)):
            wanted = [abs(share - 1 + alpha) for share, count in zip(shares, counts, strict=True) if count >= least]
            assert worst_violation(size, covered, alpha, firsts, least) == pytest.approx(max(wanted, default=0.0))
    np.testing.assert_array_equal(by_class(size, covered, 9).count, np.bincount(size, minlength=9))
    standard = by_size(size, covered, (0, 2, 4, 7, 11, 101))
    np.testing.assert_array_equal(by_size(size, covered).count, standard.count)
    assert worst_violation(size, covered, 0.1) == worst_violation(size, covered, 0.1, (0, 2, 4, 7, 11, 101), 20)
    ranks = by_rank(size + 1, covered, (1, 2, 4, 7, 11, 101))
    np.testing.assert_array_equal(by_rank(size + 1, covered).count, ranks.count)


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_the_error_of_bins_is_the_same_in_any_order_and_of_any_number_of_bins(scheme):
    """Σ_b |Σ_{i in b} (y_i − p_i)| / n by hand, with ties, scores of 0 and 1, and more bins than rows."""
    p = np.round(np.append(GENERATOR.beta(2, 1, 28), [0.0, 1.0, 0.5, 0.25]), 1).astype(np.float32)
    y = (GENERATOR.uniform(size=32) < p**2).astype(np.float32)
    turned = np.argsort(np.sin(np.arange(32.0)))
    for bins in (1, 3, 40):
        if scheme == "width":
            which = np.clip(np.ceil(p * np.float32(bins)).astype(int) - 1, 0, bins - 1)
        else:
            which = np.array([np.sum(p < one) for one in p]) * bins // 32
        wanted = sum(abs(np.sum((y - p)[which == b])) for b in range(bins)) / 32
        measured = jax.jit(lambda p, y, bins=bins: ece(p, y, bins, scheme))
        for order in (np.arange(32), turned):
            assert float(measured(p[order], y[order])) == pytest.approx(wanted, abs=1e-6)
