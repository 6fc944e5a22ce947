"""Learned features for scikit-learn's pipelines."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from laureate._core import require
from laureate.representation.siamese import apply_to_batch, outputs_of

__all__ = ["EncoderFeatures"]


class EncoderFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A trained encoder as a step of a scikit-learn ``Pipeline``: rows in, representations out.

    Nothing is learned here: the encoder is as ``Siamese`` or another trainer left it (``state.online``).

    model: an Equinox encoder from one example to a vector.
    shape: of one example, such as (28, 28, 1); None: a row is an example as it is.
    apply: from (model, batch) to outputs [batch, D], as for ``Siamese``; by default vmap over the batch.
    batch_size: examples at once; the last batch is filled up, so that there is one program.

    >>> import equinox as eqx, jax, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 0] > 0
    >>> encoder = eqx.nn.MLP(6, 8, 16, 1, key=jax.random.key(0))
    >>> pipeline = make_pipeline(EncoderFeatures(encoder), LogisticRegression()).fit(X, y)
    >>> bool(pipeline.score(X, y) > 0.7)
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        shape: tuple[int, ...] | None = None,
        apply: Callable[[Any, Any], Any] = apply_to_batch,
        batch_size: int = 256,
    ):
        self.model = model
        self.shape = shape
        self.apply = apply
        self.batch_size = batch_size

    def fit(self, X: Any, y: Any = None) -> "EncoderFeatures":  # noqa: N803  (scikit-learn's name)
        """Look at the rows' form alone."""
        X = validate_data(self, X, dtype=[np.float64, np.float32])  # noqa: N806
        require("EncoderFeatures", "batch_size", ">= 1", self.batch_size, lambda n: n >= 1)
        size = int(np.prod(self.shape)) if self.shape is not None else X.shape[1]
        rule = f"of {X.shape[1]} numbers, as the rows of X are"
        require("EncoderFeatures", "shape", rule, self.shape, lambda _: size == X.shape[1])
        self._n_features_out = self._features(X[:1]).shape[1]
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """The representations [n_samples, D] of the rows."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])  # noqa: N806
        return self._features(X)

    def _features(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        found = []
        for start in range(0, len(X), self.batch_size):
            rows = X[start : start + self.batch_size]
            fill = np.repeat(rows[-1:], self.batch_size - len(rows), axis=0)
            batch = jnp.asarray(np.concatenate([rows, fill]), float)
            batch = batch if self.shape is None else batch.reshape(-1, *self.shape)
            found.append(np.asarray(_outputs(self.model, self.apply, batch))[: len(rows)])
        return np.concatenate(found)


@eqx.filter_jit
def _outputs(model: Any, apply: Callable[[Any, Any], Any], batch: Any) -> Any:
    return outputs_of(apply, model, batch)[0]
