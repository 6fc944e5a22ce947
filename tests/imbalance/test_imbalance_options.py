"""The adjusted classifier with its options by pairs, each row beside a second writing in NumPy of all that it does."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from by_pairs import by_pairs
from laureate.imbalance import LogitAdjusted, estimator

RNG = np.random.default_rng(1)
CODES = np.repeat([0, 1, 2], [90, 30, 8])
X = RNG.normal(size=(128, 2)) + 1.2 * np.array([[0, 0], [1, 0], [0, 1]])[CODES]
GRID = np.linspace(0, 2, 9)
OPTIONS: dict[str, Any] = {
    "estimator": (None, LogisticRegression(C=0.05), DecisionTreeClassifier(max_depth=2, random_state=0)),
    "tau": (0.0, 1.0, 0.7, "cv"),
    "prior": (None, (5, 3, 2)),
    "target": (None, (1.0, 2.0, 6.0)),
    "classes": (2, 3),
    "names": ("numbers", "words"),
}


def best_tau(logits, codes, log_prior, grid):
    """Of the smallest balanced error the one nearest to 1."""
    errors = []
    for tau in grid:
        wrong = np.argmax(logits - tau * log_prior, axis=1) != codes
        errors.append(np.mean([wrong[codes == one].mean() for one in np.unique(codes)]))
    tied = grid[np.array(errors) <= min(errors) + 1e-7]
    return tied[np.argmin(np.abs(tied - 1))]


def test_an_adjusted_classifier_with_options_by_pairs_is_that_of_a_second_writing(monkeypatch):
    monkeypatch.setattr(estimator, "tune_tau", lambda *given: (best_tau(*map(np.asarray, given)), None, None))
    chosen, zeros = set(), 0
    for row in by_pairs(OPTIONS):
        rows, number = row["classes"] > CODES, row["classes"]
        x, codes = X[rows], CODES[rows]
        names = np.array(["often", "seldom", "rare"] if row["names"] == "words" else [7, 3, 5])
        y, classes = names[codes], np.unique(names[:number])
        codes = np.searchsorted(classes, y)
        given = {name: None if row[name] is None else row[name][:number] for name in ("prior", "target")}
        base = LogisticRegression() if row["estimator"] is None else row["estimator"]
        fresh: Any = clone(base)
        made = LogitAdjusted(row["estimator"], tau=row["tau"], **given).fit(x, y)
        np.testing.assert_array_equal(made.classes_, classes)
        prior = np.bincount(codes) if given["prior"] is None else np.array(given["prior"])
        prior = prior / prior.sum()
        np.testing.assert_allclose(made.log_prior_, np.log(prior))
        if row["tau"] == "cv":
            folds = StratifiedKFold(5, shuffle=True, random_state=0)
            held: Any = cross_val_predict(fresh, x, y, cv=folds, method="predict_proba")
            tau = best_tau(np.log(np.maximum(held, 1e-30)), codes, np.log(prior), GRID)
            chosen.add(float(tau))
        else:
            tau = row["tau"]
        assert made.tau_ == pytest.approx(tau), row
        p = fresh.fit(x, y).predict_proba(x)
        weighed = p / prior**tau
        floor = weighed[p > 0].min() / 2
        assert made.floor_ == pytest.approx(floor)
        wanted = np.where(p > 0, weighed, floor) * (1 if given["target"] is None else np.array(given["target"]))
        wanted /= wanted.sum(axis=1, keepdims=True)
        zeros += (p == 0).sum()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            np.testing.assert_allclose(made.predict_proba(x), wanted, rtol=1e-9, err_msg=str(row))
        words = [f"{(p == 0).sum()} of {p.size} probabilities are 0"] if (p == 0).any() else []
        assert [word for word in words if word in str(told[0].message)] == words
        assert len(told) == len(words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(made.predict_log_proba(x), np.log(wanted), rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(made.predict(x), classes[wanted.argmax(axis=1)])
            scores = np.log(wanted)
            scores = scores[:, 1] - scores[:, 0] if number == 2 else scores
            np.testing.assert_allclose(made.decision_function(x), scores, rtol=1e-9, atol=1e-12)
    assert zeros
    assert chosen - {1.0}
