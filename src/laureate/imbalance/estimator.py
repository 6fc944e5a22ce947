"""Logit adjustment around any scikit-learn classifier that gives probabilities."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from laureate._core import require
from laureate.imbalance.priors import tune_tau

__all__ = ["LogitAdjusted"]

GRID = np.linspace(0.0, 2.0, 9)


class LogitAdjusted(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are divided by the class frequencies: rare classes are predicted again.

    ::

        predict: argmax_y log p_y(x) - τ log π_y     (Menon et al. 2021, post hoc)

    estimator: any classifier with ``predict_proba``, calibrated at best; a logistic regression without one. Leave its
        ``class_weight`` unset, or the prior is removed twice.
    tau: τ >= 0, or "cv": chosen by the balanced error of cross-validation among 0, 0.25, ..., 2.
    prior: π, a frequency a class in the order of ``classes_``; those of y without it.
    target: class frequencies where it is used, for ``predict_proba`` and ``predict``; equal without it.

    Probabilities of exactly 0, as forests give them, come last: once adjusted they count half of the smallest positive
    one of the training rows, or of the row itself where that is smaller; how many is warned of.

    Fitted: ``estimator_``, ``classes_``, ``log_prior_``, ``tau_``, ``floor_``.

    >>> rng = np.random.default_rng(0)
    >>> y = (rng.uniform(size=2000) < 0.05).astype(int)
    >>> X = rng.normal(size=(2000, 2)) + 2 * y[:, None] - 1
    >>> plain, adjusted = LogisticRegression().fit(X, y), LogitAdjusted().fit(X, y)
    >>> [round(float(model.predict(X)[y == 1].mean()), 2) for model in (plain, adjusted)]  # recall of the rare class
    [0.61, 0.87]
    """

    def __init__(self, estimator: Any = None, *, tau: Any = 1.0, prior: Any = None, target: Any = None):
        self.estimator = estimator
        self.tau = tau
        self.prior = prior
        self.target = target

    def fit(self, X: Any, y: Any) -> "LogitAdjusted":  # noqa: N803
        """Fit the classifier as it is, and count the classes."""
        X, y = validate_data(self, X, y)  # noqa: N806
        check_classification_targets(y)
        self.classes_, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        numeric = isinstance(self.tau, int | float | np.number) and not isinstance(self.tau, bool)
        require("LogitAdjusted", "tau", ">= 0 or 'cv'", self.tau, lambda t: t == "cv" or (numeric and t >= 0))
        if len(self.classes_) < 2:
            raise ValueError(f"LogitAdjusted needs at least two classes; got the one class {self.classes_[0]!r}.")
        base = LogisticRegression() if self.estimator is None else self.estimator
        if getattr(base, "class_weight", None) is not None:
            warnings.warn("LogitAdjusted: the estimator has a class_weight: the prior is removed twice.", stacklevel=2)
        self.log_prior_ = _logs("prior", counts if self.prior is None else self.prior, len(counts))
        self.estimator_ = clone(base).fit(X, y)  # pyright: ignore[reportAttributeAccessIssue]
        if self.tau == "cv":
            folds = StratifiedKFold(int(min(5, max(2, counts.min()))), shuffle=True, random_state=0)
            held = cross_val_predict(clone(base), X, y, cv=folds, method="predict_proba")
            tuned, _, _ = tune_tau(np.log(np.maximum(held, 1e-30)), codes, self.log_prior_, GRID)  # pyright: ignore
            self.tau_ = float(tuned)
        else:
            self.tau_ = float(self.tau)
        probabilities = self.estimator_.predict_proba(X)
        adjusted = probabilities / np.exp(self.tau_ * self.log_prior_)
        self.floor_ = float(adjusted[probabilities > 0].min()) / 2
        return self

    def predict_log_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Logarithms of the probabilities under equal or the target's class frequencies, a column a class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)  # noqa: N806
        probabilities = self.estimator_.predict_proba(X)
        zeros = int((probabilities <= 0).sum())
        if zeros:
            told = f"LogitAdjusted: {zeros} of {probabilities.size} probabilities are 0; their classes come last."
            warnings.warn(told, stacklevel=2)
        positive = np.where(probabilities > 0, probabilities, 1.0)
        scores = np.log(positive) - self.tau_ * self.log_prior_
        least = np.min(scores, axis=1, where=probabilities > 0, initial=np.inf, keepdims=True)
        scores = np.where(probabilities > 0, scores, np.minimum(np.log(self.floor_), least - np.log(2)))
        if self.target is not None:
            scores = scores + _logs("target", self.target, len(self.classes_))
        scores = scores - scores.max(axis=1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Probabilities under equal or the target's class frequencies; at the prior's the estimator's are right."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> np.ndarray:  # noqa: N803
        """Adjusted log-probabilities, a column a class; of two classes their difference, as in scikit-learn."""
        scores = self.predict_log_proba(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The class of the highest adjusted probability."""
        best = np.argmax(self.predict_log_proba(X), axis=1)
        return self.classes_[best]


def _logs(field: str, frequencies: Any, count: int) -> np.ndarray:
    values = np.asarray(frequencies, np.float64)
    require("LogitAdjusted", field, f"a number > 0 a class, {count}", values.shape, (count,).__eq__)
    require("LogitAdjusted", field, "> 0 and finite", values, lambda v: bool((np.isfinite(v) & (v > 0)).all()))
    return np.log(values) - np.log(values.sum())
