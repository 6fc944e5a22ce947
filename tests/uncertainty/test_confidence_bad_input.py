"""Confidence intervals, cascades and shields with wrong input: the field, the rule, the value and the remedy."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from laureate.uncertainty import CertificateError, PACConfidence, SafeCascade, Shield, clopper_pearson

GENERATOR = np.random.default_rng(0)
SCORE = GENERATOR.uniform(size=400)
RIGHT = GENERATOR.uniform(size=400) < SCORE
SLOW = GENERATOR.uniform(size=400) < 0.95


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PACConfidence(0.0), r"PACConfidence.delta must be in \(0, 1\); got 0.0"),
        (PACConfidence(bins=0), "PACConfidence.bins must be >= 1; got 0"),
        (
            PACConfidence(bins=[0.0, 0.5, 0.5, 1.0]),
            "PACConfidence.bins must be a number, or two edges or more that rise",
        ),
        (PACConfidence(bins=[0.5, 1.0]), "PACConfidence.bins must cover the scores; got edges from 0.5 to 1"),
        (PACConfidence(method="exact"), "PACConfidence.method must be one of clopper-pearson, wilson"),
        (PACConfidence(levels="holm"), "PACConfidence.levels must be one of bonferroni, sidak, none; got 'holm'"),
    ],
)
def test_wrong_settings(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(SCORE, RIGHT)


@pytest.mark.parametrize(
    ("score", "right", "message"),
    [
        (SCORE * 3, RIGHT, r"PACConfidence.p must be in \[0, 1\]; got .* Of logits: jax.nn.softmax"),
        (np.where(np.arange(400) == 5, np.nan, SCORE), RIGHT, r"must be in \[0, 1\]; got nan in row 5"),
        (np.zeros(0), RIGHT, r"PACConfidence.p must be \[n\] or \[n, K\] with n >= 1"),
        (SCORE, RIGHT[:10], "PACConfidence.correct must be 400 values"),
        (SCORE, np.arange(400), "PACConfidence.correct must be bool, or 0 and 1; .* Of labels: y_hat == y"),
    ],
)
def test_wrong_rows(score, right, message):
    with pytest.raises(ValueError, match=message):
        PACConfidence().fit(score, right)


def test_wrong_targets_and_groups():
    p = np.stack([SCORE, 1 - SCORE], axis=1)
    for target in (2, "bottom"):
        with pytest.raises(ValueError, match=r"PACConfidence.target must be 'top' or a class in \[0, 2\)"):
            PACConfidence(target=target).fit(p, RIGHT)
    with pytest.raises(NotFittedError):
        PACConfidence().interval(SCORE)
    model = PACConfidence(bins=4).fit(SCORE, RIGHT, groups=np.arange(400) % 2)
    for unknown in (None, 2):
        with pytest.raises(ValueError, match=rf"PACConfidence.group must be one of \[0, 1\]; got {unknown}"):
            model.table(unknown)
    with pytest.raises(ValueError, match="groups must be given to both fit and interval, or to none"):
        model.interval(SCORE)
    with pytest.raises(ValueError, match=r"groups must be among those of fit; got \[2\]"):
        model.interval(SCORE, np.arange(400) % 3)
    with pytest.raises(ValueError, match=r"PACConfidence.groups must be one for each row"):
        model.interval(SCORE, np.arange(3))


def test_warnings():
    with pytest.warns(UserWarning, match=r"50 bins for 400 rows: intervals will be about 0\.\d\d wide. Take fewer"):
        PACConfidence(bins=50).fit(SCORE, RIGHT)
    with pytest.warns(UserWarning, match="every row is right"):
        PACConfidence().fit(SCORE, np.ones(400, bool))
    rows = np.tile(np.stack([SCORE, 1 - SCORE], axis=1)[:80], (5, 1))
    with pytest.warns(UserWarning, match="320 of 400 rows are copies of others"):
        PACConfidence().fit(rows, np.tile(RIGHT[:80], 5))
    model = PACConfidence(bins=[0.2, 0.5, 0.9]).fit(np.clip(SCORE, 0.2, 0.9), RIGHT)
    with pytest.warns(UserWarning, match="2 scores are outside of the bins"):
        lo, hi = model.interval(np.array([0.1, 0.3, 0.95]))
    assert (lo[[0, 2]] == 0).all()
    assert (hi[[0, 2]] == 1).all()
    assert lo[1] > 0


def test_few_examples_are_marked():
    table = PACConfidence(bins=[0.0, 0.05, 1.0]).fit(SCORE, RIGHT).table()
    assert table.few.tolist() == [True, False]


@pytest.mark.parametrize(
    ("cascade", "message"),
    [
        (SafeCascade(error_gap=-0.1), r"SafeCascade.error_gap must be in \[0, 1\); got -0.1"),
        (SafeCascade(delta=1.0), r"SafeCascade.delta must be in \(0, 1\); got 1.0"),
        (SafeCascade(method="best"), "SafeCascade.method must be one of sequence, difference"),
        (SafeCascade(thresholds=[]), "SafeCascade.thresholds must be None or numbers"),
    ],
)
def test_wrong_cascades(cascade, message):
    with pytest.raises(ValueError, match=message):
        cascade.fit(SCORE, RIGHT, SLOW)


def test_what_cannot_be_certified_is_said_with_the_number_of_rows_it_takes():
    with pytest.raises(CertificateError, match=r"n=100 cannot certify 0.01 \(best possible 0.0228\); need n >= 230"):
        SafeCascade(error_gap=0.01).fit(SCORE[:100], RIGHT[:100], SLOW[:100])
    with pytest.raises(CertificateError, match="no number of rows does"):
        SafeCascade(error_gap=0.0).fit(SCORE, RIGHT, SLOW)


@pytest.mark.parametrize("method", ["sequence", "union", "hoeffding", "difference"])
def test_each_method_needs_its_own_number_of_rows(method):
    """A perfect record of so many rows is certified, of one less it is not."""
    cascade = SafeCascade(error_gap=0.05, method=method)

    def fit(n):
        return cascade.fit(np.full(n, 0.9), np.ones(n, bool), np.ones(n, bool))

    with pytest.raises(CertificateError) as refused:
        fit(10)
    needed = int(str(refused.value).rpartition("n >= ")[2].rstrip("."))
    assert fit(needed).bound_ <= 0.05
    with pytest.raises(CertificateError, match=f"need n >= {needed}"):
        fit(needed - 1)


def test_a_difference_can_certify_that_nothing_is_lost():
    right, slow = np.ones(200, bool), np.arange(200) % 2 == 0
    cascade = SafeCascade(error_gap=0.0, method="difference", thresholds=[0.5])
    with pytest.warns(UserWarning, match="slow model is wrong more often"):
        cascade.fit(np.full(200, 0.9), right, slow)
    assert cascade.bound_ < 0
    with pytest.raises(CertificateError, match="the fast model alone gets right are too few"):
        SafeCascade(error_gap=0.0, method="difference").fit(SCORE, SLOW, SLOW)


def test_cascades_with_wrong_rows():
    with pytest.raises(ValueError, match=r"SafeCascade.right_slow must be 400 values"):
        SafeCascade(error_gap=0.1).fit(SCORE, RIGHT, SLOW[:9])
    with pytest.raises(ValueError, match=r"SafeCascade.score must be \[n\]"):
        SafeCascade(error_gap=0.1).fit(np.stack([SCORE, SCORE], axis=1), RIGHT, SLOW)
    with pytest.raises(ValueError, match=r"right together in 0% of rows, and by chance it would be 2\d%"):
        SafeCascade(error_gap=0.1).fit(SCORE, RIGHT, ~RIGHT)
    with pytest.warns(UserWarning, match="the slow model is wrong more often than the fast one"):
        SafeCascade(error_gap=0.1).fit(SCORE, SLOW, RIGHT)
    with pytest.raises(NotFittedError):
        SafeCascade().certificate()
    with pytest.raises(ValueError, match=r"SafeCascade.models must be two functions"):
        SafeCascade(error_gap=0.2).fit(SCORE, RIGHT, SLOW).predict(SCORE)


def test_wrong_shields():
    with pytest.raises(ValueError, match=r"Shield.risk must be in \(0, 1\]; got 0"):
        Shield(0.0).fit(SCORE, RIGHT)
    with pytest.raises(ValueError, match=r"Shield.unsafe must be one rollout or more"):
        Shield().fit(SCORE, np.zeros(0))
    with pytest.raises(ValueError, match=r"Shield.score_at_unsafe must be in \[0, 1\]"):
        Shield().fit(SCORE * 2, RIGHT)
    with pytest.raises(ValueError, match=r"clopper_pearson.delta must be in \(0, 1\); got 0"):
        clopper_pearson(1, 2, 0.0)
    with pytest.raises(ValueError, match=r"clopper_pearson.side must be 'two', 'lower' or 'upper'"):
        clopper_pearson(1, 2, 0.1, "left")


def test_scikit_learns_manner():
    for model, data in (
        (PACConfidence(0.2, bins=4), (SCORE, RIGHT)),
        (SafeCascade(error_gap=0.1, method="union"), (SCORE, RIGHT, SLOW)),
        (Shield(0.2), (SCORE, RIGHT)),
    ):
        before = model.get_params()
        assert model.fit(*data) is model
        again: Any = clone(model)
        assert again.get_params() == before == model.get_params()
