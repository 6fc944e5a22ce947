"""Intervals for the probability that a prediction is right, correct for all bins of the score at once."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import kolmogorov
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from laureate._core import require
from laureate.uncertainty.binomial import INTERVALS
from laureate.uncertainty.ranks import namespace

__all__ = ["BinCounts", "BinTable", "PACConfidence", "bin_counts", "check_events", "check_scores"]

FEW = 30  # examples below which a bin is marked
LEVELS = ("bonferroni", "sidak", "none")


class BinCounts(NamedTuple):
    """What was counted in each bin.

    count: scores in it. correct: those of which the event came true.
    """

    count: Any
    correct: Any


class BinTable(NamedTuple):
    """What is known of each bin, [bins] each.

    start, stop: its ends. count, correct: scores in it, and those of which the event came true. low, high: the ends of
    the interval of the probability. few: whether it has fewer than 30 examples.
    """

    start: np.ndarray
    stop: np.ndarray
    count: np.ndarray  # pyright: ignore[reportIncompatibleMethodOverride]
    correct: np.ndarray
    low: np.ndarray
    high: np.ndarray
    few: np.ndarray


def bin_counts(score: Any, correct: Any, edges: Any) -> BinCounts:
    """Counts of scores ``[n]`` in the bins [e_j, e_{j+1}) of K + 1 edges, the last one closed; each in one bin alone.

    >>> counts = bin_counts(np.array([0.0, 0.5, 0.5, 1.0]), np.array([True, True, False, True]), np.array([0, 0.5, 1]))
    >>> counts.count.tolist(), counts.correct.tolist()
    ([1, 3], [1, 2])
    """
    xp = namespace(score, correct, edges)
    inside = _bin(xp, score, edges)[..., None] == xp.arange(len(edges) - 1)
    return BinCounts(xp.sum(inside, axis=0), xp.sum(inside & xp.asarray(correct, bool)[..., None], axis=0))


def _bin(xp: Any, score: Any, edges: Any) -> Any:
    """Which bin; -1 or K outside of the edges."""
    place = xp.searchsorted(xp.asarray(edges), xp.asarray(score), side="right") - 1
    return xp.where(xp.asarray(score) == edges[-1], len(edges) - 2, place)


class PACConfidence(BaseEstimator):
    """For every score an interval of the probability to be right, which holds for all bins at once.

    The scores are cut into K bins that were fixed before the data were seen. Of n_k calibration examples in bin k
    s_k ~ Bin(n_k, c_k) are right, so that (Park et al. 2021)::

        [lo_k, hi_k] = ClopperPearson(s_k, n_k, δ/K),    P(c_k in [lo_k, hi_k] for all k) ≥ 1 − δ

    over calibration sets. It speaks of the mean over a bin, not of one input, and of data like the calibration's.

    delta: δ, the share of calibration sets with which some interval may be wrong.
    bins: how many of equal width on [0, 1], or their edges.
    method: "clopper-pearson", or without the promise "wilson", "jeffreys", "wald"; "hoeffding" promises and is wide.
    levels: how the bins share δ: "bonferroni" δ/K, "sidak" 1 − (1 − δ)^{1/K}, or "none", which promises nothing.
    target: "top", the largest of p ``[n, K]``, or the index of a class; of no matter for p ``[n]``.

    Fitted: ``edges_``, ``counts_``, ``lo_``, ``hi_`` (a row for each of ``groups_``, if given).

    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> score = generator.uniform(size=2000)
    >>> right = generator.uniform(size=2000) < score
    >>> lo, hi = PACConfidence(delta=0.1, bins=5).fit(score, right).interval(np.array([0.1, 0.95]))
    >>> lo.round(2).tolist(), hi.round(2).tolist()
    ([0.09, 0.88], [0.16, 0.95])
    """

    def __init__(
        self,
        delta: float = 0.1,
        *,
        bins: int | Sequence[float] = 10,
        method: str = "clopper-pearson",
        levels: str = "bonferroni",
        target: str | int = "top",
    ):
        self.delta = delta
        self.bins = bins
        self.method = method
        self.levels = levels
        self.target = target

    def fit(self, p: Any, correct: Any, groups: Any = None) -> "PACConfidence":
        """Count on rows that the model was not trained on.

        p: scores in [0, 1], ``[n]``, or probabilities ``[n, K]``. correct: whether the event came true, ``[n]`` of bool
            or 0 and 1; for a class as target whether it was that class.
        groups: a value for each row, such as its site: every group has bins of its own, and all share δ.
        """
        self._check()
        score = self._score(p)
        correct = check_events("PACConfidence", "correct", correct, len(score))
        edges = (
            np.arange(self.bins + 1) / self.bins
            if isinstance(self.bins, int | np.integer)
            else np.asarray(self.bins, float)
        )
        place = _bin(np, score, edges)
        if ((place < 0) | (place >= len(edges) - 1)).any():
            raise ValueError(
                f"PACConfidence.bins must cover the scores; got edges from {edges[0]:g} to {edges[-1]:g} and the score "
                f"{score[np.argmax((place < 0) | (place >= len(edges) - 1))]:g}."
            )
        self.groups_, group = np.unique(np.zeros(len(score)) if groups is None else groups, return_inverse=True)
        require("PACConfidence", "groups", "one for each row", group.shape, lambda s: s == score.shape)
        self.grouped_, self.edges_, self._scores = groups is not None, edges, np.sort(score)
        counts = [bin_counts(score[group == one], correct[group == one], edges) for one in range(len(self.groups_))]
        self.counts_ = BinCounts(*(np.stack(part) for part in zip(*counts, strict=True)))
        cells = self.counts_.count.size
        shares = {"bonferroni": self.delta / cells, "sidak": 1 - (1 - self.delta) ** (1 / cells), "none": self.delta}
        share = shares[self.levels]
        self._warn(p, correct, cells, share)
        self.lo_, self.hi_ = INTERVALS[self.method](self.counts_.correct, self.counts_.count, share)
        return self

    def interval(self, p: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The interval [lo, hi] of every row of p; [0, 1], with a warning, where a score is outside of the bins."""
        place, group = self._places(p, groups)
        outside = (place < 0) | (place >= len(self.edges_) - 1)
        if outside.any():
            warnings.warn(f"PACConfidence: {outside.sum()} scores are outside of the bins: [0, 1].", stacklevel=2)
        inside = np.where(outside, 0, place)
        return np.where(outside, 0.0, self.lo_[group, inside]), np.where(outside, 1.0, self.hi_[group, inside])

    def point(self, p: Any, groups: Any = None) -> np.ndarray:
        """The share that was right in the bin of every row, NaN for an empty one: right on average, no promise."""
        place, group = self._places(p, groups)
        share = self.counts_.correct / np.where(self.counts_.count > 0, self.counts_.count, np.nan)
        return share[group, np.clip(place, 0, len(self.edges_) - 2)]

    def table(self, group: Any = None) -> BinTable:
        """What is known of each bin, of one group where there are several."""
        check_is_fitted(self)
        known = self.groups_.tolist() if self.grouped_ else [None]
        require("PACConfidence", "group", f"one of {known}", group, lambda g: not self.grouped_ or g in known)
        row = known.index(group) if self.grouped_ else 0
        count, correct = self.counts_.count[row], self.counts_.correct[row]
        return BinTable(self.edges_[:-1], self.edges_[1:], count, correct, self.lo_[row], self.hi_[row], count < FEW)

    def ece_interval(self, p: Any) -> tuple[float, float]:
        """The expected calibration error Σ_k w_k |c_k − p̄_k| of the scores p, as an interval.

        w_k and p̄_k, the share and the mean of these scores in bin k, are known; c_k is in its interval for all k with
        probability 1 − δ, and so is the error.
        """
        score, (lo, hi) = self._score(p), self.interval(p)
        bin_of = _bin(np, score, self.edges_)
        low = high = 0.0
        for one in np.unique(bin_of):
            inside = bin_of == one
            mean, a, b = score[inside].mean(), lo[inside][0], hi[inside][0]
            low += inside.mean() * max(a - mean, mean - b, 0.0)
            high += inside.mean() * max(abs(a - mean), abs(b - mean))
        return float(low), float(high)

    def drift(self, p: Any) -> float:
        """Kolmogorov and Smirnov's p-value of these scores against the calibration's: if small, do not trust.

        It sees a shift of the scores alone; the probability to be right may change without one.
        """
        check_is_fitted(self)
        score, known = np.sort(self._score(p)), self._scores
        every = np.concatenate([score, known])
        shares = [np.searchsorted(one, every, side="right") / len(one) for one in (score, known)]
        distance = np.max(np.abs(shares[0] - shares[1]))
        return float(kolmogorov(distance * np.sqrt(len(score) * len(known) / (len(score) + len(known)))))

    def _places(self, p: Any, groups: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        score = self._score(p)
        if (groups is not None) != self.grouped_:
            raise ValueError("PACConfidence.groups must be given to both fit and interval, or to none.")
        if not self.grouped_:
            return _bin(np, score, self.edges_), np.zeros(len(score), int)
        groups = np.asarray(groups)
        require("PACConfidence", "groups", "one for each row", groups.shape, lambda s: s == score.shape)
        if len(unknown := np.setdiff1d(groups, self.groups_)):
            raise ValueError(f"PACConfidence.groups must be among those of fit; got {unknown[:5].tolist()}.")
        return _bin(np, score, self.edges_), np.searchsorted(self.groups_, groups)

    def _score(self, p: Any) -> np.ndarray:
        p = check_scores("PACConfidence", "p", p)
        if p.ndim == 1:
            return p
        if self.target == "top":
            return p.max(axis=1)
        rule = f"'top' or a class in [0, {p.shape[1]})"
        require("PACConfidence", "target", rule, self.target, lambda t: not isinstance(t, str) and 0 <= t < p.shape[1])
        return p[:, self.target]

    def _check(self) -> None:
        owner, edges = "PACConfidence", self.bins
        require(owner, "delta", "in (0, 1)", self.delta, lambda d: 0 < d < 1)
        require(owner, "method", f"one of {', '.join(INTERVALS)}", self.method, lambda m: m in INTERVALS)
        require(owner, "levels", f"one of {', '.join(LEVELS)}", self.levels, lambda v: v in LEVELS)
        if isinstance(edges, int | np.integer):
            require(owner, "bins", ">= 1", edges, lambda b: b >= 1)
        else:
            rule = "a number, or two edges or more that rise"
            require(owner, "bins", rule, edges, lambda e: np.ndim(e) == 1 and len(e) > 1 and (np.diff(e) > 0).all())

    def _warn(self, p: Any, correct: np.ndarray, cells: int, share: float) -> None:
        n = len(correct)
        if cells > n / 10:
            width = np.diff(INTERVALS[self.method](n / cells / 2, n / cells, share), axis=0)[0]
            warnings.warn(
                f"PACConfidence: {cells} bins for {n} rows: intervals will be about {width:.2f} wide. Take fewer.",
                stacklevel=3,
            )
        if n >= FEW and correct.all():
            warnings.warn(
                "PACConfidence: every row is right. If the model was trained on them, nothing is promised.",
                stacklevel=3,
            )
        rows = np.asarray(p)
        if rows.ndim == 2 and (copies := n - len(np.unique(rows, axis=0))) > n / 100:
            warnings.warn(
                f"PACConfidence: {copies} of {n} rows are copies of others. With every row five times, a promise of "
                "10 % was missed in 40 % of trials: keep one of each.",
                stacklevel=3,
            )


def check_scores(owner: str, field: str, p: Any) -> np.ndarray:
    """Scores ``[n]`` or ``[n, K]`` in [0, 1], as float64."""
    p = np.asarray(p, float)
    require(owner, field, "[n] or [n, K] with n >= 1", p.shape, lambda s: len(s) in (1, 2) and s[0] >= 1)
    wrong = ~((p >= 0) & (p <= 1)).reshape(len(p), -1).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{owner}.{field} must be in [0, 1]; got {p[row]} in row {row}. Of logits: jax.nn.softmax.")
    return p


def check_events(owner: str, field: str, events: Any, n: int) -> np.ndarray:
    """``[n]`` of bool, or of 0 and 1."""
    events = np.asarray(events)
    require(owner, field, f"{n} values", events.shape, lambda s: s == (n,))
    if not np.isin(events, (0, 1)).all():
        raise ValueError(f"{owner}.{field} must be bool, or 0 and 1; got {events[:3]}. Of labels: y_hat == y.")
    return events.astype(bool)
