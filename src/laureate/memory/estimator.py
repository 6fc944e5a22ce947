"""Features for scikit-learn: how much of each remembered pattern is in a row."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from laureate.memory.hopfield import store
from laureate.memory.initial import class_patterns
from laureate.memory.machine import to_boltzmann_machine

__all__ = ["HopfieldFeatures"]


class HopfieldFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The hidden units' means Wᵀs of the Boltzmann machine that equals a Hopfield network of class patterns.

    per_class: patterns a class, by clustering; without labels all rows are one class.
    threshold: a value above it is +1, else -1; by default each column's mean over the rows that were fitted.
    factor: as for `to_boltzmann_machine`.

    >>> import numpy as np
    >>> X = np.array([[0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 0, 0], [1, 1, 0, 1]])
    >>> HopfieldFeatures(threshold=0.5).fit_transform(X, [0, 0, 1, 1]).shape
    (4, 2)
    """

    def __init__(self, per_class: int = 1, threshold: float | None = None, factor: str = "lowdin"):
        self.per_class = per_class
        self.threshold = threshold
        self.factor = factor

    def fit(self, X: Any, y: Any = None) -> "HopfieldFeatures":  # noqa: N803 (scikit-learn's name)
        """Make the patterns from the rows of X, by the labels where they are given."""
        X = validate_data(self, X, dtype=(np.float64, np.float32))  # noqa: N806
        self.threshold_ = np.full(X.shape[1], self.threshold, X.dtype) if self.threshold is not None else X.mean(0)
        labels = np.zeros(len(X)) if y is None else np.asarray(y)
        self.patterns_ = class_patterns(self._spins(X), labels, self.per_class)
        machine = to_boltzmann_machine(store(self.patterns_, rule="pseudo-inverse"), factor=self.factor)  # pyright: ignore
        self.weights_ = np.asarray(machine.weights, X.dtype)
        self._n_features_out = self.weights_.shape[1]
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Wᵀs of every row."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32))  # noqa: N806
        return self._spins(X) @ self.weights_

    def _spins(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        return np.where(self.threshold_ < X, 1, -1).astype(X.dtype)
