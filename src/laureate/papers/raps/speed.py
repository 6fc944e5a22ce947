"""Sets beside MAPIE: APS, where both give the same sets from the same u, and RAPS with its tuning.

In MAPIE's RAPS the penalty also enters what u is compared with: about one set in a thousand differs by a label.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.uncertainty import APS, RAPS

__all__ = ["COMPARISONS", "our_side", "rows", "their_classifier", "their_side"]

ROWS, TUNED = 5000, 0.2
GRID = (0.001, 0.01, 0.1, 0.2, 0.5)  # MAPIE's, and the paper's


def rows(num_rows: int, num_classes: int) -> tuple[Any, Any]:
    """Probabilities, and labels drawn from them; every class comes equally often, for MAPIE stratifies."""
    generator = np.random.default_rng(0)
    logits = generator.uniform(2, 16, size=(num_rows, 1)) * generator.normal(size=(num_rows, num_classes))
    drawn = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    y, places = np.arange(num_rows) % num_classes, np.arange(num_rows)
    logits[places, drawn], logits[places, y] = logits[places, y], logits[places, drawn]
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True)).astype(np.float32), y


def our_side(score: str, num_classes: int, num_rows: int = ROWS) -> Side:
    """Calibration on half of the rows, and the sets of the others."""
    p, y = rows(2 * num_rows, num_classes)
    raps = RAPS(lams=GRID, tune_fraction=TUNED, temperature=1.0, input="proba")
    method = raps if score == "raps" else APS(temperature=1.0, input="proba")
    calls = 0

    def run():
        nonlocal calls
        calls += 1
        fit_key, set_key = jax.random.split(jax.random.key(calls))
        return method.fit(fit_key, p[:num_rows], y[:num_rows]).predict_set(set_key, p[num_rows:])

    return Side(run)


def their_classifier(score: str, num_classes: int) -> Any:
    """MAPIE's estimator over a classifier whose inputs are its probabilities."""
    from mapie.classification import SplitConformalClassifier  # pyright: ignore[reportMissingImports]  (a peer)
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        classes_ = np.arange(num_classes)

        def fit(self, X, y):  # noqa: N803
            return self

        def predict_proba(self, X):  # noqa: N803
            return X

        def predict(self, X):  # noqa: N803
            return X.argmax(axis=1)

        def __sklearn_is_fitted__(self):
            return True

    return SplitConformalClassifier(
        Given(), confidence_level=0.9, conformity_score=score, prefit=True, random_state=np.random.RandomState(0)
    )


def their_side(score: str, num_classes: int, num_rows: int = ROWS) -> Side:
    """The same by MAPIE, with its randomised sets."""
    p, y = rows(2 * num_rows, num_classes)

    def run():
        method = their_classifier(score, num_classes).conformalize(p[:num_rows], y[:num_rows])
        return method.predict_set(p[num_rows:], {"include_last_label": "randomized"})[1]

    return Side(run)


def _made(side: Callable[[str, int], Side], score: str, num_classes: int) -> Callable[[], Side]:
    return lambda: side(score, num_classes)


COMPARISONS = tuple(
    Comparison(
        work=f"{name}: calibration on {ROWS} rows of {classes} classes and the sets of {ROWS} others",
        peer="MAPIE",
        package="mapie",
        ours=_made(our_side, score, classes),
        theirs=_made(their_side, score, classes),
    )
    for name, score, classes in (("APS, the same sets", "aps", 1000), ("RAPS with its tuning", "raps", 100))
)
