"""Calibration maps beside scikit-learn's, on the same scores, from scores and hits to new probabilities."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.uncertainty import Isotonic, Platt, SplineCalibrator, Temperature

__all__ = ["COMPARISONS"]

ROWS = 10_000


def _scores() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    p = np.clip(rng.beta(4, 1, ROWS), 1e-6, 1 - 1e-6).astype(np.float32)
    return p, (rng.random(ROWS) < p**2).astype(np.float32)


def _ours(calibrator) -> Side:
    p, y = map(jnp.asarray, _scores())
    run = jax.jit(lambda p, y: calibrator.fit(p, y).transform(p))
    return Side(lambda: run(p, y))


def _ours_isotonic() -> Side:
    """As a user calls it, outside jit."""
    p, y = _scores()
    return Side(lambda: Isotonic().fit(p, y).transform(p))


def _theirs(method: str) -> Side:
    """``CalibratedClassifierCV`` of a classifier whose decision is the logit."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Scored(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):  # noqa: N803
            self.classes_ = np.array([0, 1])
            return self

        def decision_function(self, X):  # noqa: N803
            return X[:, 0]

        def predict(self, X):  # noqa: N803
            return (X[:, 0] > 0).astype(int)

    p, y = _scores()
    logits, labels = np.log(p / (1 - p)).astype(np.float64)[:, None], y.astype(int)
    peer = CalibratedClassifierCV(FrozenEstimator(Scored().fit(None, None)), method=method)  # pyright: ignore[reportArgumentType]
    return Side(lambda: peer.fit(logits, labels).predict_proba(logits))


def _theirs_isotonic() -> Side:
    from sklearn.isotonic import IsotonicRegression

    p, y = _scores()
    return Side(lambda: IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(p))


COMPARISONS = (
    Comparison(
        work=f"temperature of {ROWS:,} scores",
        peer='scikit-learn\'s CalibratedClassifierCV("temperature")',
        package="scikit-learn",
        ours=lambda: _ours(Temperature()),
        theirs=lambda: _theirs("temperature"),
    ),
    Comparison(
        work=f"Platt's sigmoid of {ROWS:,} scores",
        peer='scikit-learn\'s CalibratedClassifierCV("sigmoid")',
        package="scikit-learn",
        ours=lambda: _ours(Platt()),
        theirs=lambda: _theirs("sigmoid"),
    ),
    Comparison(
        work=f"isotonic regression of {ROWS:,} scores",
        peer="scikit-learn's IsotonicRegression",
        package="scikit-learn",
        ours=_ours_isotonic,
        theirs=_theirs_isotonic,
    ),
    Comparison(
        work=f"the spline of {ROWS:,} scores beside the usual isotonic regression",
        peer="scikit-learn's IsotonicRegression",
        package="scikit-learn",
        ours=lambda: _ours(SplineCalibrator()),
        theirs=_theirs_isotonic,
    ),
)
