"""What all prediction sets share: the split, the temperature, the threshold, groups, and sets without a label.

Estimators in scikit-learn's manner (settings in the constructor, ``clone``, fitted names end in ``_``), with the key
first: ``fit(key, logits, y)`` and ``predict_set(key, logits)``. Both draw uniform numbers, and ``fit`` a split; a seed
in the constructor would give every call the same ones.
"""

import math
import warnings
from abc import ABC, abstractmethod
from typing import Any

import jax
import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from laureate._core import require
from laureate.uncertainty.ranks import (
    Ranked,
    conformal_quantile,
    fit_temperature,
    rank_all,
    rank_label,
    set_of_size,
)

__all__ = ["AbstractRankedSets", "AbstractSets"]

FEWEST = 50  # rows below which nothing is tuned


class AbstractSets(BaseEstimator, ABC):
    """Sets of the labels whose scores are at most τ, a threshold found on calibration rows.

    A method of one's own inherits from this (or from `AbstractRankedSets`, if its score looks at ranks), has the
    settings below, and says how labels are scored. With (x_i, y_i) exchangeable, P(y in C(x)) >= 1 − α.

    alpha: α, the share of sets that may miss.
    temperature: T of softmax(z / T); "fit": the one of the smallest negative log-likelihood on the tuning part.
    tune_fraction: the tuning part, a share of the rows given to ``fit``; all calibrate where nothing is tuned.
    randomized: whether the last label of a set is drawn; if not, sets are rounded up, cover more and need no key.
    empty: "allow", or "top1" to put the most probable label into a set that has none.
    input: "logits", or "proba" where rows are probabilities.

    Fitted: ``tau_`` (one for each of ``groups_``, if given), ``temperature_``, ``n_cal_``, ``n_classes_``.
    """

    draws = True  # whether scores depend on u
    groups_: Any  # None without groups, and then ``tau_`` is a number
    tau_: Any

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        temperature: float | str = "fit",
        tune_fraction: float = 0.3,
        randomized: bool = True,
        empty: str = "allow",
        input: str = "logits",
    ):
        self.alpha = alpha
        self.temperature = temperature
        self.tune_fraction = tune_fraction
        self.randomized = randomized
        self.empty = empty
        self.input = input

    @abstractmethod
    def _label_scores(self, p: np.ndarray, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The scores ``[n]`` of the labels ``y [n]``, for p ``[n, K]`` and u ``[n]``."""

    @abstractmethod
    def _sizes(self, p: np.ndarray, u: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """How many labels ``[n]`` have scores of at most τ ``[n]``."""

    @abstractmethod
    def _sets(self, p: np.ndarray, u: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Which they are, as bool ``[n, K]``."""

    def _tunes(self) -> bool:
        """Whether anything but the temperature is tuned."""
        return False

    def _tune(self, p: np.ndarray, y: np.ndarray, u: np.ndarray) -> None:
        """Choose the method's own settings on the tuning part; also called, with no rows, where they are given."""

    def _threshold(self, scores: np.ndarray) -> float:
        n, least = len(scores), math.ceil(1 / self.alpha - 1e-9) - 1
        if n < least:
            warnings.warn(
                f"{type(self).__name__}: n={n} cannot give {1 - self.alpha:.0%}: need n >= {least}; every label is "
                "returned.",
                stacklevel=4,
            )
        return float(conformal_quantile(scores, self.alpha))

    def fit(self, key: Any, logits: Any, y: Any, groups: Any = None) -> Any:
        """Calibrate on rows that the model was not trained on.

        key: splits the rows and draws u; None where nothing is drawn. logits: ``[n, K]``. y: class indices ``[n]``.
        groups: a value for each row, such as its class or site, to have a threshold (and coverage) for each.
        """
        self._check_settings()
        z = self._logits(logits)
        n, self.n_classes_ = z.shape
        y = self._labels(y, n)
        self.groups_, group = (None, np.zeros(n, int)) if groups is None else self._values(groups, n)
        tunes = self.temperature == "fit" or self._tunes()
        if key is None and (tunes or self.draws):
            raise TypeError(f"{type(self).__name__}.fit draws random numbers: give a jax.random.key first; got None.")
        order_key, tune_key, score_key = (None,) * 3 if key is None else jax.random.split(key, 3)
        known, held = self._parts(order_key, z) if tunes else (np.arange(0), np.arange(n))
        fitted = fit_temperature(self._as_logits(z[known]), y[known]) if self.temperature == "fit" else self.temperature
        self.temperature_, self.n_cal_ = float(fitted), len(held)
        self._tune(self._probabilities(z[known]), y[known], _uniform(tune_key, known, z.dtype))
        p, y = self._probabilities(z[held]), y[held]
        if n >= FEWEST and np.all(np.argmax(p, axis=1) == y):
            warnings.warn(
                f"{type(self).__name__}: the model is right on every calibration row. If it was trained on them, "
                "nothing is promised.",
                stacklevel=2,
            )
        scores = self._label_scores(p, y, _uniform(score_key, held, z.dtype))
        num_groups = 1 if self.groups_ is None else len(self.groups_)
        taus = np.array([self._threshold(scores[group[held] == one]) for one in range(num_groups)])
        self.tau_ = float(taus[0]) if self.groups_ is None else taus
        return self

    def predict_set(self, key: Any, logits: Any, groups: Any = None) -> np.ndarray:
        """The sets of rows ``[n, K]``, as bool ``[n, K]``. key: a new one for every call; None if nothing is drawn."""
        p, u, tau = self._ready(key, logits, groups)
        sets = self._sets(p, u, tau)
        if self.empty == "top1":
            sets[np.arange(len(p)), np.argmax(p, axis=1)] |= ~sets.any(axis=1)
        return sets

    def predict_size(self, key: Any, logits: Any, groups: Any = None) -> np.ndarray:
        """How many labels ``[n]`` the sets have that ``predict_set`` gives for this key, in less time."""
        size = self._sizes(*self._ready(key, logits, groups))
        return np.maximum(size, 1) if self.empty == "top1" else size

    def _ready(self, key: Any, logits: Any, groups: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        check_is_fitted(self)
        owner, z = type(self).__name__, self._logits(logits)
        if z.shape[1] != self.n_classes_:
            raise ValueError(f"{owner} was fitted with {self.n_classes_} classes; got logits with {z.shape[1]}.")
        if (groups is None) != (self.groups_ is None):
            raise ValueError(f"{owner}.groups must be given to both fit and predict, or to none.")
        tau = np.full(len(z), self.tau_) if self.groups_ is None else self.tau_[self._places(groups, len(z))]
        if self.randomized and self.draws and key is None:
            raise TypeError(f"{owner} draws random numbers: give a new jax.random.key first, or randomized=False.")
        rows = np.arange(len(z))
        u = np.zeros(len(z), z.dtype) if key is None or not self.randomized else _uniform(key, rows, z.dtype)
        return self._probabilities(z), u, tau

    def _probabilities(self, z: np.ndarray) -> np.ndarray:
        if self.input == "proba" and self.temperature_ == 1:
            return z
        return softmax(self._as_logits(z) / z.dtype.type(self.temperature_), axis=1)

    def _as_logits(self, z: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(z, np.finfo(z.dtype).tiny)) if self.input == "proba" else z

    def _parts(self, key: Any, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows to tune on and rows to calibrate on."""
        n, owner = len(z), type(self).__name__
        num_known, needed = math.ceil(self.tune_fraction * n), max(FEWEST, math.ceil(1 / self.alpha))
        if num_known < needed or num_known >= n:
            raise ValueError(
                f"{owner}.fit must have >= {needed} rows to tune on and others to calibrate; got {num_known} of {n}. "
                "Give more rows, another tune_fraction, or all settings and a temperature."
            )
        order = np.asarray(jax.random.permutation(key, n))
        known, held = order[:num_known], order[num_known:]
        if _share_rows(z[known], z[held]):
            warnings.warn(f"{owner}: rows of the tuning part are also in the calibration part.", stacklevel=3)
        return known, held

    def _logits(self, logits: Any) -> np.ndarray:
        """Checked logits, or probabilities, ``[n, K]`` in float32 or float64."""
        owner, z = type(self).__name__, np.asarray(logits)
        z = z if z.dtype in (np.float32, np.float64) else z.astype(np.float32)
        require(owner, self.input, "of shape [n, K] with K >= 2", z.shape, lambda s: len(s) == 2 and s[1] >= 2)
        require(owner, self.input, "at least one row", len(z), lambda n: n > 0)
        if not np.isfinite(z).all():
            raise ValueError(f"{owner}.{self.input} must be finite; got others in row {_first(~np.isfinite(z))}.")
        if self.input == "logits":
            return z
        wrong = (z < 0).any(axis=1) | (np.abs(z.sum(axis=1) - 1) > 1e-3)
        if wrong.any():
            row = _first(wrong[:, None])
            raise ValueError(
                f"{owner}.proba must be >= 0 and sum to 1; row {row} has the least {z[row].min():g} and the sum "
                f"{z[row].sum():g}. For logits give input='logits'."
            )
        return z

    def _labels(self, y: Any, n: int) -> np.ndarray:
        owner, y = type(self).__name__, np.asarray(y)
        require(owner, "y", f"{n} class indices", y.shape, lambda s: s == (n,), "One-hot: give y.argmax(axis=1).")
        require(owner, "y", "integers", y.dtype, lambda d: np.issubdtype(d, np.integer))
        rule = f"in [0, {self.n_classes_})"
        require(owner, "y", rule, (int(y.min()), int(y.max())), lambda e: e[0] >= 0 and e[1] < self.n_classes_)
        return y

    def _values(self, groups: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        groups = np.asarray(groups)
        require(type(self).__name__, "groups", f"{n} values", groups.shape, lambda s: s == (n,))
        return np.unique(groups, return_inverse=True)

    def _places(self, groups: Any, n: int) -> np.ndarray:
        found, place = self._values(groups, n)
        if len(unknown := np.setdiff1d(found, self.groups_)):
            raise ValueError(f"{type(self).__name__}.groups must be among those of fit; got {unknown[:5].tolist()}.")
        return np.searchsorted(self.groups_, found)[place]

    def _check_settings(self) -> None:
        owner = type(self).__name__
        require(owner, "alpha", "in (0, 1)", self.alpha, lambda a: 0 < a < 1)
        rule = "'fit' or a number > 0"
        require(owner, "temperature", rule, self.temperature, lambda t: t == "fit" if isinstance(t, str) else t > 0)
        require(owner, "tune_fraction", "in (0, 0.9]", self.tune_fraction, lambda f: 0 < f <= 0.9)
        require(owner, "empty", "'allow' or 'top1'", self.empty, lambda e: e in ("allow", "top1"))
        require(owner, "input", "'logits' or 'proba'", self.input, lambda i: i in ("logits", "proba"))


class AbstractRankedSets(AbstractSets):
    """Prediction sets whose score looks at a label's rank and mass alone and never falls with the rank.

    So a set is the head of the ranking, and its size says which labels it has. Settings are those of `AbstractSets`.
    """

    @abstractmethod
    def _score(self, at: Ranked, u: np.ndarray) -> np.ndarray:
        """s(x, y, u)."""

    def _label_scores(self, p: np.ndarray, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        return self._score(rank_label(p, y), u)

    def _sizes(self, p: np.ndarray, u: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return np.sum(self._score(rank_all(p), u[:, None]) <= tau[:, None], axis=1)

    def _sets(self, p: np.ndarray, u: np.ndarray, tau: np.ndarray) -> np.ndarray:
        at = rank_all(p)
        return set_of_size(p, np.sum(self._score(at, u[:, None]) <= tau[:, None], axis=1), at.mass)


def _uniform(key: Any, rows: np.ndarray, dtype: Any) -> np.ndarray:
    return np.zeros(len(rows), dtype) if key is None else np.asarray(jax.random.uniform(key, rows.shape), dtype)


def _share_rows(some: np.ndarray, others: np.ndarray) -> bool:
    """Whether a row is in both; whole rows are compared only where their first numbers are equal."""
    one, two = (rows[np.isin(rows[:, 0], besides[:, 0])] for rows, besides in ((some, others), (others, some)))
    return not {row.tobytes() for row in one}.isdisjoint(row.tobytes() for row in two)


def _first(wrong: np.ndarray) -> int:
    return int(np.argmax(wrong.any(axis=1)))
