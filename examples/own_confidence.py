"""How far your own classifier's scores may be trusted, and when a cheap model may answer alone.

    python examples/own_confidence.py
    laureate run pac-confidence/cascade-saves --problem examples/own_confidence.py:answers

Your models are the fast one's logits on rows that it was not trained on, the labels, and whether the slow one is right.
The second line draws calibration sets from these rows, and counts how often each kind of threshold breaks its promise.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from laureate.problems.two_models import AnswerTable
from laureate.uncertainty import PACConfidence, SafeCascade


def models_and_rows():
    """Tumours: naive Bayes on three cheap measurements, logistic regression on all thirty."""
    x, y = map(np.asarray, load_breast_cancer(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(y))
    known, others = order[:100], order[100:]
    centre, scale = x[known].mean(0), x[known].std(0)
    x = (x - centre) / scale
    cheap = GaussianNB().fit(x[known, :3], y[known])
    whole = LogisticRegression().fit(x[known], y[known])
    return (lambda rows: cheap.predict_proba(rows[:, :3]), whole.predict_proba), x[others], y[others]


def answers():
    (fast, slow), x, y = models_and_rows()
    return AnswerTable(np.log(np.maximum(fast(x), 1e-6)), y, slow(x).argmax(axis=1) == y)


def main():
    models, x, y = models_and_rows()
    fast, slow = (model(x) for model in models)
    right = fast.argmax(axis=1) == y
    confidence = PACConfidence(delta=0.1, bins=[0.5, 0.9, 0.99, 1.0]).fit(fast, right)
    for row in zip(*confidence.table(), strict=True):
        low, high, count, correct, lo, hi, _ = row
        print(f"scores {low:.2f} to {high:.2f}: {correct} of {count} right, so the probability is {lo:.2f} to {hi:.2f}")
    cascade = SafeCascade(models, error_gap=0.05).fit(fast.max(axis=1), right, slow.argmax(axis=1) == y)
    print(cascade.certificate())
    return confidence, cascade, np.mean(cascade.predict(x) == y)


if __name__ == "__main__":
    main()
