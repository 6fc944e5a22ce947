"""Thresholds with a certificate: when a fast model hands over to a slow one, or a policy to a safe fallback.

Exit at the fast model where its score is at least γ. What that costs, and what it may gain::

    b(γ) = P(exit, fast wrong, slow right),  c(γ) = P(exit, fast right, slow wrong),  error gap = b(γ) − c(γ)

b grows as γ falls. So thresholds are tried from the strictest on, each with the whole of δ, until the first fails (a
fixed sequence): a threshold that is not safe is passed only if the first such one is, which happens with probability δ.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from laureate._core import require
from laureate.uncertainty.binomial import clopper_pearson
from laureate.uncertainty.confidence import check_events, check_scores
from laureate.uncertainty.ranks import namespace

__all__ = ["CertificateError", "SafeCascade", "Shield", "cascade_bounds", "fixed_sequence"]

METHODS = ("sequence", "difference", "union", "hoeffding", "empirical")


class CertificateError(ValueError):
    """With so few examples not even a perfect record would certify what was asked for."""


def fixed_sequence(upper_bounds: Any, limit: Any) -> Any:
    """How many of the bounds ``[..., G]``, in their order, are at most the limit before the first that is not.

    >>> int(fixed_sequence(np.array([0.01, 0.02, 0.05, 0.03]), 0.04))
    2
    """
    xp = namespace(upper_bounds, limit)
    return xp.sum(xp.cumsum(xp.asarray(upper_bounds) > limit, axis=-1) == 0, axis=-1)


def cascade_bounds(worse: Any, better: Any, n: int, delta: float, method: str = "sequence") -> Any:
    """Upper bounds of the error gap from counts ``[..., G]`` of b and c among n rows, in the order of thresholds.

    method: "sequence" bounds b with the whole of δ; "difference" b and −c with half of it each; "union" b with δ/G;
        "hoeffding" b with Hoeffding's bound; "empirical" takes (b − c)/n, which bounds nothing.

    worse, better: b, rows that only the cascade gets wrong, and c, those that only the slow model does. delta: δ.
    """
    if method == "empirical":
        return (worse - better) / n
    if method == "hoeffding":
        return worse / n + math.sqrt(math.log(1 / delta) / (2 * n))
    if method == "difference":
        return _bound(worse, n, delta / 2, "upper") - _bound(better, n, delta / 2, "lower")
    return _bound(worse, n, delta / np.shape(worse)[-1] if method == "union" else delta, "upper")


def _bound(counts: Any, n: int, delta: float, side: str) -> Any:
    """One end of Clopper and Pearson's interval; of equal counts only one is computed."""
    different, places = np.unique(counts, return_inverse=True)
    lo, hi = clopper_pearson(different, n, delta, side)
    return (lo if side == "lower" else hi)[places].reshape(np.shape(counts))


class SafeCascade(BaseEstimator):
    """Two models, of which the slow one is asked only where the fast one is not sure enough, at a certified price.

    The loosest threshold γ for which, with probability 1 − δ over calibration sets (Park et al. 2021, section 5)::

        P(cascade wrong) − P(slow wrong) ≤ ξ

    models: (fast, slow), functions from inputs ``[n, ...]`` to probabilities ``[n, K]``; only for ``predict``.
    error_gap: ξ >= 0.
    delta: δ.
    method: "sequence" (our default), "difference", "union", "hoeffding"; "empirical" certifies nothing.
        See `cascade_bounds`. Of "union" and "empirical" the loosest threshold that passes is taken.
    thresholds: those tried, fixed before the data were seen; by default 0, 0.005, …, 1.

    Fitted: ``threshold_`` (∞: never exit), ``bound_`` of the gap, ``exit_share_``, ``n_cal_``.

    >>> generator = np.random.default_rng(0)
    >>> score = generator.uniform(size=2000)
    >>> fast, slow = generator.uniform(size=2000) < score, generator.uniform(size=2000) < 0.95
    >>> cascade = SafeCascade(error_gap=0.05).fit(score, fast, slow)
    >>> round(cascade.threshold_, 2), bool(cascade.bound_ <= 0.05)
    (0.68, True)
    """

    def __init__(
        self,
        models: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None = None,
        error_gap: float = 0.02,
        delta: float = 0.1,
        *,
        method: str = "sequence",
        thresholds: Sequence[float] | None = None,
    ):
        self.models = models
        self.error_gap = error_gap
        self.delta = delta
        self.method = method
        self.thresholds = thresholds

    def fit(self, score: Any, right_fast: Any, right_slow: Any) -> "SafeCascade":
        """Find the threshold on rows that neither model was trained on.

        score: of the fast model, in [0, 1], ``[n]``. right_fast, right_slow: whether each model was right, ``[n]``.
        """
        owner = "SafeCascade"
        self._check()
        score = check_scores(owner, "score", score)
        require(owner, "score", "[n]", score.ndim, lambda d: d == 1)
        n = len(score)
        fast, slow = (
            check_events(owner, name, events, n)
            for name, events in (("right_fast", right_fast), ("right_slow", right_slow))
        )
        chance = fast.mean() * slow.mean()
        if np.mean(fast & slow) < chance - 4 * math.sqrt(chance * (1 - chance) / n):
            raise ValueError(
                f"SafeCascade: the models are right together in {np.mean(fast & slow):.0%} of rows, and by chance it "
                f"would be {chance:.0%}. Are right_fast and right_slow of the same rows, in the same order?"
            )
        if slow.mean() < fast.mean():
            warnings.warn("SafeCascade: the slow model is wrong more often than the fast one.", stacklevel=2)
        grid = np.linspace(0, 1, 201) if self.thresholds is None else np.asarray(self.thresholds, float)
        # The bound where b never happened, and c whenever it could.
        best = cascade_bounds(np.zeros(len(grid)), np.full(len(grid), np.sum(fast & ~slow)), n, self.delta, self.method)
        if best[0] > self.error_gap:
            needed = self._needed(len(grid))
            raise CertificateError(f"n={n} cannot certify {self.error_gap:g} (best possible {best[0]:.3g}); {needed}.")
        order = np.sort(grid)[::-1]  # from strict to loose
        exits = score >= order[:, None]
        worse, better = (np.sum(exits & event, axis=1) for event in (~fast & slow, fast & ~slow))
        bounds = cascade_bounds(worse, better, n, self.delta, self.method)
        passed = fixed_sequence(bounds, self.error_gap)
        if self.method in ("union", "empirical"):
            safe = np.flatnonzero(bounds <= self.error_gap)
            passed = safe[-1] + 1 if len(safe) else 0
        self.threshold_ = float(order[passed - 1]) if passed else math.inf
        self.bound_ = float(bounds[passed - 1]) if passed else 0.0
        self.exit_share_, self.n_cal_ = float(np.mean(score >= self.threshold_)), n
        return self

    def predict(self, inputs: Any) -> np.ndarray:
        """Classes ``[n]``; the slow model is called once, with the rows that the fast one hands over, or not at all."""
        check_is_fitted(self)
        require("SafeCascade", "models", "two functions", self.models, lambda m: m is not None and len(m) == 2)
        fast, slow = self.models  # pyright: ignore[reportGeneralTypeIssues]  (required above)
        p = np.asarray(fast(inputs), np.float64)  # as in fit: a float32 of 0.7 is below 0.7
        classes, rest = p.argmax(axis=1), np.flatnonzero(p.max(axis=1) < self.threshold_)
        if len(rest):
            classes[rest] = np.asarray(slow(inputs[rest])).argmax(axis=1)
        return classes

    def certificate(self) -> dict[str, Any]:
        """What was certified, from how many examples, in plain values for a safety file; threshold None: never exit."""
        check_is_fitted(self)
        promise = f"with probability {1 - self.delta:g} over calibration sets"
        return {
            "statement": f"error of the cascade - error of the slow model <= {self.error_gap:g}",
            "holds": "not certified: an estimate" if self.method == "empirical" else promise,
            "requires": "calibration rows independent, from the distribution of use, seen by neither model",
            "threshold": self.threshold_ if math.isfinite(self.threshold_) else None,  # JSON has no ∞
            "bound": self.bound_,
            "exit_share": self.exit_share_,
            "rows": self.n_cal_,
            "method": self.method,
        }

    def _needed(self, thresholds: int) -> str:
        """How many rows certify the gap where b and c never happen, in words."""
        if self.error_gap == 0:
            alone = "rows that the fast model alone gets right are too few"
            return alone if self.method == "difference" else "no number of rows does"
        delta = self.delta / {"union": thresholds, "difference": 2}.get(self.method, 1)
        rows = math.log(delta) / math.log1p(-self.error_gap)
        if self.method == "hoeffding":
            rows = -math.log(delta) / (2 * self.error_gap**2)
        return f"need n >= {math.ceil(rows)}"

    def _check(self) -> None:
        owner = "SafeCascade"
        require(owner, "error_gap", "in [0, 1)", self.error_gap, lambda g: 0 <= g < 1)
        require(owner, "delta", "in (0, 1)", self.delta, lambda d: 0 < d < 1)
        require(owner, "method", f"one of {', '.join(METHODS)}", self.method, lambda m: m in METHODS)
        rule = "None or numbers"
        require(owner, "thresholds", rule, self.thresholds, lambda t: t is None or (np.ndim(t) == 1 and len(t) > 0))


class Shield(BaseEstimator):
    """A learned policy while its score says that all is well, a safe fallback otherwise, at a certified risk.

    A rollout becomes unsafe only if the score was γ or more at the first unsafe state (Park et al. 2021, section 6)::

        P(unsafe) ≤ P(score ≥ γ at the first unsafe state | the policy alone becomes unsafe) · P(it does)

    Both are bounded by Clopper and Pearson with δ/2, the first along a fixed sequence of thresholds. The fallback must
    be safe, and the rollouts those of use: of a simulator the certificate speaks of the simulator.

    risk: the share of rollouts that may become unsafe.
    delta: δ.
    thresholds: those tried, fixed before the data were seen; by default 0, 0.005, …, 1.

    Fitted: ``threshold_`` (∞: never use the policy), ``bound_``.

    >>> generator = np.random.default_rng(0)
    >>> shield = Shield(risk=0.05).fit(generator.beta(1, 6, size=500), generator.uniform(size=500) < 0.3)
    >>> round(shield.threshold_, 2)
    0.3
    """

    def __init__(self, risk: float = 0.05, delta: float = 0.1, *, thresholds: Sequence[float] | None = None):
        self.risk = risk
        self.delta = delta
        self.thresholds = thresholds

    def fit(self, score_at_unsafe: Any, unsafe: Any) -> "Shield":
        """Find the threshold.

        score_at_unsafe: the scores ``[m]`` at the first unsafe states of rollouts of the policy alone; none: ``[0]``.
        unsafe: whether each of n other or the same rollouts of it became unsafe, ``[n]``.
        """
        require("Shield", "risk", "in (0, 1]", self.risk, lambda r: 0 < r <= 1)
        require("Shield", "delta", "in (0, 1)", self.delta, lambda d: 0 < d < 1)
        unsafe = np.asarray(unsafe)
        unsafe = check_events("Shield", "unsafe", unsafe, unsafe.size)
        require("Shield", "unsafe", "one rollout or more", len(unsafe), lambda n: n > 0)
        score = np.asarray(score_at_unsafe, float)
        score = check_scores("Shield", "score_at_unsafe", score) if score.size else score
        becomes = clopper_pearson(unsafe.sum(), len(unsafe), self.delta / 2, "upper")[1]
        grid = np.linspace(0, 1, 201) if self.thresholds is None else np.asarray(self.thresholds, float)
        order = np.sort(grid)[::-1]
        missed = np.sum(score >= order[:, None], axis=1)
        bounds = becomes * _bound(missed, len(score), self.delta / 2, "upper")
        passed = int(fixed_sequence(bounds, self.risk))
        self.threshold_ = float(order[passed - 1]) if passed else math.inf
        self.bound_ = float(bounds[passed - 1]) if passed else 0.0
        return self
