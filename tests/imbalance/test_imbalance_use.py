"""scikit-learn's wrapper, bad input, and use inside jit."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from laureate.imbalance import (
    LOSSES,
    LogitAdjusted,
    adjust,
    balanced_error,
    balanced_indices,
    class_counts,
    class_errors,
    log_prior,
    logit_adjusted_cross_entropy,
    pairwise_margin_cross_entropy,
    tune_tau,
)

RNG = np.random.default_rng(0)
PRIOR = np.log([0.7, 0.2, 0.1])
LOGITS, LABELS = RNG.normal(size=(4, 3)), np.array([0, 1, 2, 0])


@pytest.fixture(scope="module")
def rows():
    y = np.repeat([0, 1, 2], [200, 40, 10])
    return RNG.normal(size=(250, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1]])[y], y


def test_passes_scikit_learns_checks():
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(LogitAdjusted(), on_skip=None)


def test_probabilities_are_divided_by_frequencies(rows):
    x, y = rows
    plain = LogisticRegression().fit(x, y).predict_proba(x)
    for tau, prior, target in ((1.0, None, None), (0.5, (0.5, 0.3, 0.2), None), (2.0, None, (0.1, 0.2, 0.7))):
        found = LogitAdjusted(LogisticRegression(), tau=tau, prior=prior, target=target).fit(x, y)
        used = np.array([0.8, 0.16, 0.04] if prior is None else prior)
        expected = plain / used**tau * np.array([1, 1, 1] if target is None else target)
        expected /= expected.sum(1, keepdims=True)
        np.testing.assert_allclose(found.predict_proba(x), expected, rtol=1e-9)
        np.testing.assert_array_equal(found.predict(x), expected.argmax(1))
        np.testing.assert_allclose(found.decision_function(x), np.log(expected), rtol=1e-9)
        np.testing.assert_allclose(np.exp(found.log_prior_).sum(), 1)


def test_two_classes_are_a_threshold_at_the_prior(rows):
    x, y = rows
    x, y = x[y < 2], np.array(["common", "rare"])[y[y < 2]]
    found = LogitAdjusted(LogisticRegression()).fit(x, y)
    threshold = FixedThresholdClassifier(LogisticRegression(), threshold=1 / 6, pos_label="rare").fit(x, y)
    np.testing.assert_array_equal(found.predict(x), threshold.predict(x))
    assert found.decision_function(x).shape == (240,)
    np.testing.assert_array_equal(found.classes_[(found.decision_function(x) > 0).astype(int)], found.predict(x))


def test_tau_by_validation_is_on_the_grid_and_zeros_are_told(rows):
    x, y = rows
    tuned = LogitAdjusted(tau="cv").fit(x, y)
    assert tuned.tau_ in np.linspace(0, 2, 9)
    forest = LogitAdjusted(RandomForestClassifier(5, random_state=0)).fit(x, y)
    inside = forest.estimator_.predict_proba(x)
    ratio = inside / np.array([0.8, 0.16, 0.04])
    assert forest.floor_ == pytest.approx(ratio[inside > 0].min() / 2)
    with pytest.warns(UserWarning, match=r"of 750 probabilities are 0; their classes come last"):
        found = forest.predict_proba(x)
    assert np.isfinite(np.log(found)).all()
    assert (inside[np.arange(250), found.argmax(1)] > 0).all()  # a class without a vote never wins


def test_tau_by_validation_is_that_of_rows_held_out(rows):
    """By hand, with names for classes; on the rows that were trained on another τ would win, as with another prior."""
    x, y = rows
    names, model = np.array(["c", "a", "b"])[y], KNeighborsClassifier(15)
    classes, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
    grid, folds = np.linspace(0, 2, 9), StratifiedKFold(5, shuffle=True, random_state=0)

    def best(probabilities, prior=counts / 250):
        scores = np.log(np.maximum(probabilities, 1e-30)) - grid[:, None, None] * np.log(prior)
        wrong = scores.argmax(-1) != codes
        return grid[np.argmin([np.mean([row[codes == c].mean() for c in range(3)]) for row in wrong])]

    held_out = cross_val_predict(model, x, names, cv=folds, method="predict_proba")
    given = np.array([0.2, 0.2, 0.6])
    assert best(held_out, given) != best(held_out)
    assert LogitAdjusted(model, tau="cv", prior=given).fit(x, names).tau_ == best(held_out, given)
    found = LogitAdjusted(model, tau="cv").fit(x, names)
    assert found.tau_ == best(held_out)
    assert found.tau_ != best(found.estimator_.predict_proba(x))
    np.testing.assert_array_equal(found.classes_, classes)


@pytest.mark.parametrize(("counts", "expected"), [((30, 9), 5), ((30, 3), 3)])
def test_there_are_five_folds_or_as_many_as_the_rarest_class_has_rows(counts, expected, monkeypatch):
    asked = []

    def folds(number, **more):
        asked.append(number)
        return StratifiedKFold(number, **more)

    monkeypatch.setattr("laureate.imbalance.estimator.StratifiedKFold", folds)
    monkeypatch.setattr("laureate.imbalance.estimator.tune_tau", lambda *_: (1.0, None, None))  # nothing is compiled
    y = np.repeat([0, 1], counts)
    LogitAdjusted(tau="cv").fit(y[:, None] + RNG.normal(size=(len(y), 1)), y)
    assert asked == [expected]


class Sure(ClassifierMixin, BaseEstimator):
    """Gives the second class a probability that has no exponential of its inverse."""

    def fit(self, X, y):  # noqa: N803
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):  # noqa: N803
        return np.tile([1.0, 1e-310], (len(X), 1))


class Votes(ClassifierMixin, BaseEstimator):
    """Gives probabilities as a small forest does; row i of a table of whole numbers is the i-th."""

    table = np.array([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.2, 0.0, 0.8]])

    def fit(self, X, y):  # noqa: N803
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):  # noqa: N803
        return self.table[np.asarray(X)[:, 0].astype(int)]


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
def test_a_class_without_a_vote_has_half_of_the_smallest_adjusted_probability(tau):
    """Whatever the strength, the prior and the target: half of 0.2/0.5 where these are as they come."""
    x, y = np.array([[0.0], [0.0], [1.0], [2.0]]), np.array([0, 0, 1, 2])
    for prior, target in itertools.product((None, np.array([0.1, 0.3, 0.6])), (None, np.array([0.7, 0.2, 0.1]))):
        model = LogitAdjusted(Votes(), tau=tau, prior=prior, target=target).fit(x, y)
        adjusted = Votes.table / (np.array([0.5, 0.25, 0.25]) if prior is None else prior) ** tau
        floor = adjusted[Votes.table > 0].min() / 2
        assert model.floor_ == pytest.approx(floor, rel=1e-12)
        assert model.floor_ == pytest.approx(0.2) or (tau, prior is None) != (1.0, True)
        with pytest.warns(UserWarning, match="6 of 12 probabilities are 0"):
            found = model.predict_proba(x)
        expected = np.where(Votes.table > 0, adjusted, floor)[x[:, 0].astype(int)]
        expected = expected if target is None else expected * target
        np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True), rtol=1e-12)


def test_a_class_without_a_vote_comes_last_whatever_the_others_have():
    """Also where a new row gives another class less than any row of training gave one; no row looks at the others."""
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 2])
    model = LogitAdjusted(Votes()).fit(x, y)
    model.estimator_.table = np.vstack([Votes.table, [1 - 1e-6, 1e-6, 0.0], [0.0, 1e-9, 1 - 1e-9]])
    with pytest.warns(UserWarning, match="6 of 15 probabilities are 0"):
        found = model.predict_proba(np.arange(5.0)[:, None])
    with pytest.warns(UserWarning, match="1 of 3 probabilities are 0"):
        alone = model.predict_proba(np.array([[1.0]]))
    assert (found[3, 2] < found[3, 1], found[4, 0] < found[4, 1]) == (True, True)
    np.testing.assert_allclose(found[3, 2] / found[3, 1], 0.5)
    np.testing.assert_array_equal(found[1], alone[0])


def test_a_tiny_probability_is_no_overflow(rows):
    x, y = rows
    found = LogitAdjusted(Sure()).fit(x[y < 2], y[y < 2]).predict_log_proba(x[:1])
    np.testing.assert_allclose(found[0], [0, np.log(1e-310) + np.log(200 / 40)], rtol=1e-6, atol=1e-12)


def test_wrong_settings_of_the_wrapper(rows):
    x, y = rows
    for settings, said in (
        ({"tau": -1.0}, "tau must be >= 0 or 'cv'; got -1.0"),
        ({"tau": "best"}, "tau must be >= 0 or 'cv'"),
        ({"prior": (0.5, 0.5)}, "prior must be a number > 0 a class, 3"),
        ({"prior": (0.5, 0.5, 0.0)}, "prior must be > 0 and finite"),
        ({"prior": (0.5, 0.5, np.inf)}, "prior must be > 0 and finite"),
    ):
        with pytest.raises(ValueError, match=said):
            LogitAdjusted(**settings).fit(x, y)
    with pytest.raises(ValueError, match="target must be a number > 0 a class"):
        LogitAdjusted(target=(1.0, 2.0)).fit(x, y).predict(x)
    with pytest.warns(UserWarning, match="the prior is removed twice"):
        LogitAdjusted(LogisticRegression(class_weight="balanced")).fit(x, y)


@pytest.mark.parametrize("loss", list(LOSSES.values()), ids=list(LOSSES))
def test_bad_input_of_every_loss(loss):
    for arguments, said in (
        (
            (LOGITS, LABELS, PRIOR[:2]),
            r"log_prior must be of shape \[3\], a number a class of logits \(4, 3\); got \(2,\)",
        ),
        ((LOGITS, LABELS, np.array([70.0, 20.0, 10.0])), "look like counts or probabilities"),
        ((LOGITS, LABELS, np.array([0.7, 0.2, 0.1])), "pass log_prior"),
        ((LOGITS, LABELS, np.array([-0.3, -np.inf, -1])), "finite logarithms"),
        ((LOGITS, np.array([0, 1, 3, 0]), PRIOR), "labels must be in 0..2"),
        ((LOGITS, np.array([0.0, 1.0, 2.0, 0.0]), PRIOR), "whole numbers.*soft labels"),
    ):
        with pytest.raises(ValueError, match=said):
            loss(*arguments)
    with pytest.raises(ValueError, match=r"tau must be >= 0; got -0\.5"):
        loss(LOGITS, LABELS, PRIOR, tau=-0.5)
    with pytest.warns(UserWarning, match="tau = 5.0 is far beyond 1"):
        loss(LOGITS, LABELS, PRIOR, tau=5.0)


@pytest.mark.parametrize("wrong", [-1, 3])
def test_labels_that_are_no_class_are_refused_everywhere(wrong):
    labels, right, key = np.array([0, 1, 2, wrong]), np.array([0, 1, 2, 0]), jax.random.key(0)
    calls = {
        "class_counts": lambda: class_counts(labels, 3),
        "balanced_indices": lambda: balanced_indices(key, labels, 3, 2),
        "class_errors": lambda: class_errors(right, labels, 3),
        "balanced_error": lambda: balanced_error(right, labels, 3),
        "tune_tau": lambda: tune_tau(LOGITS, labels, PRIOR, np.ones(1)),
        "pairwise": lambda: pairwise_margin_cross_entropy(LOGITS, labels, np.ones(3), np.ones((3, 3))),
    }
    losses = {name: lambda loss=loss: loss(LOGITS, labels, PRIOR) for name, loss in LOSSES.items()}
    for call in (calls | losses).values():
        with pytest.raises(ValueError, match=r"labels must be in 0\.\.2"):
            call()


def test_bad_input_elsewhere():
    for call, said in (
        (lambda: log_prior(np.array([3, 0, 1])), r"got 0 for the classes \[1\].*smoothing"),
        (lambda: log_prior(np.array([3.0, -1.0])), "finite and >= 0"),
        (lambda: log_prior(np.array([[3.0, 1.0]])), r"a vector, \[C\] with C >= 2"),
        (lambda: log_prior(np.array([3.0, 1.0]), smoothing=-1.0), "smoothing must be >= 0"),
        (lambda: adjust(LOGITS, PRIOR, target=np.array([0.2, 0.3, 0.5])), "adjust.target must be <= 0"),
        (lambda: adjust(LOGITS, PRIOR, tau=-1.0), "tau must be >= 0"),
        (lambda: class_counts(np.array([0, 5]), 3), "in 0..2"),
        (lambda: balanced_error(np.array([0, 1]), np.array([0, 1]), 3), r"absent are those here; got \[2\]"),
        (lambda: class_errors(np.array([0]), np.array([0, 1]), 2), r"of shape \(2,\); got \(1,\)"),
        (lambda: tune_tau(LOGITS, LABELS, PRIOR, np.array([-1.0])), "numbers >= 0"),
        (
            lambda: tune_tau(LOGITS, np.array([0, 1, 1, 0]), PRIOR, np.ones(1)),
            r"tune_tau.labels must be of every class; absent are those here; got \[2\]",
        ),
        (lambda: LOSSES["label-margin"](LOGITS, LABELS, PRIOR, margin=-1.0), "margin must be >= 0"),
        (lambda: LOSSES["vector-scaling"](LOGITS, LABELS, PRIOR, gamma=-1.0), "gamma must be >= 0"),
        (
            lambda: pairwise_margin_cross_entropy(LOGITS, LABELS, np.ones(2), np.ones((3, 3))),
            r"weight must be of shape \(3,\)",
        ),
        (
            lambda: pairwise_margin_cross_entropy(LOGITS, LABELS, np.ones(3), np.ones(3)),
            r"margin must be of shape \(3, 3\)",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_inside_jit_a_new_number_traces_nothing():
    traces = []

    @jax.jit
    def loss(logits, labels, prior, tau):
        traces.append(1)
        return jnp.stack([one(logits, labels, prior, tau=tau).mean() for one in LOSSES.values()])

    first = loss(LOGITS, LABELS, PRIOR, 1.0)
    second = loss(LOGITS, LABELS, PRIOR, 2.0)
    assert len(traces) == 1
    changed = np.asarray(first != second)
    assert changed.tolist() == [name != "cross-entropy" for name in LOSSES]
    one = jax.vmap(lambda f, y: logit_adjusted_cross_entropy(f, y, PRIOR))(LOGITS, LABELS)
    np.testing.assert_allclose(one, logit_adjusted_cross_entropy(LOGITS, LABELS, PRIOR), rtol=1e-5)
