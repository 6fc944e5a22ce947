"""Probes against NumPy and scikit-learn: who votes, who wins a tie, and each test row judged by the training set."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from laureate.representation import knn_probe, linear_probe

CLASSES = 3


def drawn(seed, train, test, width):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, train)
    centres = rng.normal(size=(CLASSES, width))
    rows = centres[labels] + rng.normal(size=(train, width))
    return rows, labels, centres[rng.integers(0, CLASSES, test)] + rng.normal(size=(test, width))


def voted(train, labels, row, k):
    """The class of most votes and, of those with as many, of the largest sum of cosines; and by how much it won."""
    cosines = train @ row / np.linalg.norm(train, axis=1) / np.linalg.norm(row)
    order = np.argsort(-cosines)
    votes = Counter(labels[order[:k]].tolist())
    ranking = sorted(votes, key=lambda c: (votes[c], cosines[order[:k]][labels[order[:k]] == c].sum()), reverse=True)
    tied = len(ranking) > 1 and votes[ranking[0]] == votes[ranking[1]]
    sums = [cosines[order[:k]][labels[order[:k]] == c].sum() for c in ranking[:2]]
    return ranking[0], tied, (sums[0] - sums[1] if tied else cosines[order[k - 1]] - cosines[order[k]])


@pytest.mark.parametrize("k", [1, 3, 4])
def test_neighbours_vote_and_the_nearer_class_wins_a_tie(k):
    """Of lengths that differ, for a direction alone counts; with k = 3 and 4 also where two or three classes tie."""
    train, labels, test = drawn(0, 30, 120, 4)
    train *= np.exp(np.random.default_rng(1).normal(size=(30, 1)))
    found = [voted(train, labels, row, k) for row in test]
    sure = [number for number, (_, _, margin) in enumerate(found) if margin > 1e-3][:64]  # what rounding cannot turn
    wanted, ties = np.array([found[n][0] for n in sure]), [found[n][1] for n in sure]
    assert len(sure) == 64
    assert sum(ties) >= (0 if k == 1 else 5)
    probe = jax.jit(lambda rows, answers: knn_probe(train, labels, rows, answers, CLASSES, k=k).value)
    rows = test[sure].astype(np.float32)
    assert float(probe(rows, wanted)) == 1.0
    for one in (0, 40):  # another answer is one mistake, and no more
        assert float(probe(rows, np.where(np.arange(64) == one, (wanted + 1) % CLASSES, wanted))) == 63 / 64


def test_neighbours_in_half_precision_are_as_near_as_their_numbers_say():
    """A tie of two, decided by the second digit of a cosine: a bonus of a thousandth is none in half precision."""
    train, labels = jnp.array([[1.0, 0.25], [0.25, 1.0]], jnp.bfloat16), np.array([0, 1])
    rows, wanted = jnp.array([[1.0, 0.75], [0.75, 1.0]], jnp.bfloat16), np.array([0, 1])
    assert float(knn_probe(train, labels, rows, wanted, 2, k=2).value) == 1.0


def test_a_line_is_fitted_to_the_training_set_and_judges_each_row_by_itself():
    """By scikit-learn's: the weights alone are decayed, features standardised by the training set's mean and deviation.

    The test rows lie elsewhere and close together, and one of them alone is judged as it is among the others.
    """
    decay = 0.1
    train, labels, test = drawn(2, 60, 80, 4)
    sizes = np.array([1.0, 10.0, 0.1, 3.0])
    train, test = train * sizes + 5, (0.5 * test + 0.5) * sizes + 5
    standard = lambda rows: (rows - train.mean(axis=0)) / train.std(axis=0)  # noqa: E731
    regression = LogisticRegression(C=1 / (60 * decay), tol=1e-8, max_iter=1000).fit(standard(train), labels)
    shares = np.sort(regression.predict_proba(standard(test)))
    sure = np.flatnonzero(shares[:, -1] - shares[:, -2] > 0.02)[:32]
    rows, wanted = test[sure], regression.predict(standard(test[sure]))
    assert len(sure) == 32
    assert len(set(wanted)) == CLASSES
    given = train.astype(np.float32), labels
    probe = jax.jit(lambda rows, answers: linear_probe(*given, rows, answers, CLASSES, decay=decay, num_steps=60).value)
    assert float(probe(rows.astype(np.float32), wanted)) == 1.0
    for one in (int(np.flatnonzero(wanted == c)[0]) for c in range(CLASSES)):
        alone = np.repeat(rows[one : one + 1], 32, axis=0).astype(np.float32)
        assert float(probe(alone, np.full(32, wanted[one]))) == 1.0
