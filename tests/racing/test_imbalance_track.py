"""The track of rare classes: whose rows are whose, and that every class counts the same."""

import jax
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.racing.tracks.imbalance import facts, shares, trial
from laureate.testing import KeyRecorder

LABELS = np.repeat([0, 1, 2], [60, 24, 8])


def test_rows_that_tune_never_train_nor_score_and_every_class_has_its_share():
    tuning = [shares(LABELS, jax.random.key(seed), "tune") for seed in range(3)]
    scoring = [shares(LABELS, jax.random.key(seed), "score") for seed in range(3)]
    judges = tuning[0][1]
    for (train, held), (same, scored) in zip(tuning, scoring, strict=True):
        np.testing.assert_array_equal(held, judges)  # the same for all seeds
        np.testing.assert_array_equal(train, same)
        assert not set(held) & (set(train) | set(scored))
        assert not set(train) & set(scored)
        assert len({*held, *train, *scored}) == len(LABELS)
        assert np.bincount(LABELS[held]).tolist() == [15, 6, 2]
        assert np.bincount(LABELS[scored]).tolist() == [15, 6, 2]
    assert set(scoring[0][1]) != set(scoring[1][1])


def raced(said):
    """Drawing rows evenly, with what is said of them; every batch is another one."""
    code = (
        "lambda labels, prior: (lambda key: jax.random.randint(key, (batch,), 0, labels.shape[0]),"
        f" lambda logits, y: cross_entropy(logits, y, prior), lambda logits: {said})"
    )
    rows = {"features": np.zeros((92, 1)), "labels": LABELS}
    arm = Settings(code=code, area="imbalance", swept="learning_rate", learning_rate=0.01, **facts(rows))
    scale = Settings(cost=64, points=1, seconds=10.0, phase="score")
    with KeyRecorder() as recorder:
        found = trial(jax.random.key(0), arm, rows, scale)
    assert recorder.reused() == []
    assert found["cost"].tolist() == [64]
    return found


def test_every_class_counts_the_same_whatever_its_rows():
    """A rule that always says 0 is right about most rows, and wrong about two classes of three."""
    found = raced("logits * 0.0 + prior")
    assert found["error"] == pytest.approx(2 / 3)
    assert found["worst"] == 1.0
    assert found["plain"] == pytest.approx(8 / 23)


def test_who_says_nothing_finite_has_no_error():
    found = raced("logits * jnp.nan")
    assert np.isnan([found[name] for name in ("error", "worst", "plain")]).all()
