"""Prediction sets with wrong input: the field, the rule, the value and the remedy; and what scikit-learn expects."""

from typing import Any

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from laureate.testing import check_random_function
from laureate.uncertainty import APS, LAC, RAPS, SAPS, ScoreSets, conformal_quantile, coverage_law

KEY = jax.random.key(0)
GENERATOR = np.random.default_rng(0)
Z = GENERATOR.normal(size=(300, 4))
Y = (Z + GENERATOR.gumbel(size=Z.shape)).argmax(axis=1)
FIXED = {"k_reg": 1, "lam": 0.1, "temperature": 1.0}


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (RAPS(0.0), r"RAPS.alpha must be in \(0, 1\); got 0.0"),
        (RAPS(lam=-0.1), "RAPS.lam must be 'auto' or a number >= 0; got -0.1"),
        (RAPS(lam="best"), "RAPS.lam must be 'auto' or a number >= 0; got 'best'"),
        (RAPS(k_reg=5), r"RAPS.k_reg must be 'auto', 'joint' or a rank in \[0, 4\]; got 5"),
        (RAPS(k_reg="some"), "RAPS.k_reg must be"),
        (RAPS(criterion="speed"), "RAPS.criterion must be 'size', 'adaptive' or a function; got 'speed'"),
        (RAPS(lams=()), "RAPS.lams must be numbers >= 0"),
        (RAPS(penalty=[0.0, 0.1]), "RAPS.penalty must be 4 numbers that do not fall"),
        (RAPS(penalty=[0.0, 0.2, 0.1, 0.3]), "RAPS.penalty must be 4 numbers that do not fall"),
        (RAPS(tune_fraction=0.95), r"RAPS.tune_fraction must be in \(0, 0.9\]; got 0.95"),
        (APS(temperature=0.0), "APS.temperature must be 'fit' or a number > 0; got 0.0"),
        (APS(temperature="cold"), "APS.temperature must be 'fit' or a number > 0; got 'cold'"),
        (APS(empty="full"), "APS.empty must be 'allow' or 'top1'; got 'full'"),
        (APS(input="odds"), "APS.input must be 'logits' or 'proba'; got 'odds'"),
        (SAPS(lam=0.0), "SAPS.lam must be 'auto' or a number > 0; got 0.0"),
        (SAPS(lams=(0.1, 0.0)), "SAPS.lams must be numbers > 0"),
        (ScoreSets(lambda p, u: p[:, :2]), "ScoreSets.score must return numbers of shape"),
    ],
)
def test_wrong_settings(method, message):
    with pytest.raises(ValueError, match=message):
        method.fit(KEY, Z, Y)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (Z[:, :1], Y, r"RAPS.logits must be of shape \[n, K\] with K >= 2; got \(300, 1\)"),
        (Z[:, 0], Y, "RAPS.logits must be of shape"),
        (Z[:0], Y[:0], "RAPS.logits must be at least one row; got 0"),
        (np.where(np.arange(300)[:, None] == 7, np.nan, Z), Y, "RAPS.logits must be finite; got others in row 7"),
        (Z, Y[:20], r"RAPS.y must be 300 class indices; got \(20,\)"),
        (Z, np.eye(4)[Y], r"One-hot: give y.argmax\(axis=1\)"),
        (Z, Y.astype(float), "RAPS.y must be integers"),
        (Z, Y + 1, r"RAPS.y must be in \[0, 4\); got \(1, 4\)"),
        (Z, Y - 1, r"RAPS.y must be in \[0, 4\); got \(-1, 2\)"),
        (Z[:100], Y[:100], "must have >= 50 rows to tune on and others to calibrate; got 30 of 100. Give more rows"),
    ],
)
def test_wrong_rows(rows, labels, message):
    with pytest.raises(ValueError, match=message):
        RAPS().fit(KEY, rows, labels)


def test_small_alpha_needs_more_rows_to_tune_on():
    with pytest.raises(ValueError, match="must have >= 100 rows to tune on"):
        RAPS(0.01).fit(KEY, Z, Y)
    with pytest.raises(ValueError, match="must have >= 67 rows to tune on and others to calibrate; got 66 of 300"):
        RAPS(0.015, tune_fraction=0.22).fit(KEY, Z, Y)


def test_probabilities_are_looked_at():
    p = np.full((300, 4), 0.25)
    with pytest.raises(ValueError, match=r"APS.proba must be >= 0 and sum to 1; row 0 .* give input='logits'"):
        APS(input="proba").fit(KEY, Z, Y)
    p[3, 0] = 0.5
    with pytest.raises(ValueError, match=r"row 3 has the least 0.25 and the sum 1.25"):
        APS(input="proba").fit(KEY, p, Y)


def test_a_key_is_asked_for_where_one_is_needed():
    with pytest.raises(TypeError, match=r"RAPS.fit draws random numbers: give a jax.random.key first"):
        RAPS(**FIXED).fit(None, Z, Y)
    with pytest.raises(TypeError, match=r"RAPS draws random numbers: give a new jax.random.key first, or randomized"):
        RAPS(**FIXED).fit(KEY, Z, Y).predict_set(None, Z)
    with pytest.raises(TypeError, match=r"LAC.fit draws random numbers"):
        LAC().fit(None, Z, Y)
    assert LAC(temperature=1.0).fit(None, Z, Y).predict_set(None, Z).shape == (300, 4)


def test_predict_after_another_fit_or_none():
    with pytest.raises(NotFittedError):
        RAPS().predict_set(KEY, Z)
    raps = RAPS(**FIXED).fit(KEY, Z, Y)
    with pytest.raises(ValueError, match="RAPS was fitted with 4 classes; got logits with 3"):
        raps.predict_set(KEY, Z[:, :3])
    with pytest.raises(ValueError, match="groups must be given to both fit and predict, or to none"):
        raps.predict_set(KEY, Z, np.zeros(300))
    grouped = RAPS(**FIXED).fit(KEY, Z, Y, groups=np.arange(300) % 2)
    with pytest.raises(ValueError, match="groups must be given to both"):
        grouped.predict_size(KEY, Z)
    with pytest.raises(ValueError, match=r"groups must be among those of fit; got \[2\]"):
        grouped.predict_set(KEY, Z, np.arange(300) % 3)
    with pytest.raises(ValueError, match=r"RAPS.groups must be 300 values"):
        grouped.predict_set(KEY, Z, np.arange(30))


def test_warnings():
    with pytest.warns(UserWarning, match="n=8 cannot give 90%: need n >= 9; every label is returned"):
        few = APS(temperature=1.0).fit(KEY, Z[:8], Y[:8])
    assert few.predict_set(KEY, Z).all()
    with pytest.warns(UserWarning, match="the model is right on every calibration row"):
        APS(temperature=1.0).fit(KEY, Z, Z.argmax(axis=1))
    with pytest.warns(UserWarning, match="rows of the tuning part are also in the calibration part"):
        RAPS().fit(KEY, np.tile(Z, (2, 1)), np.tile(Y, 2))


def test_pure_functions_check_their_numbers():
    with pytest.raises(ValueError, match=r"conformal_quantile.alpha must be in \(0, 1\); got 1.5"):
        conformal_quantile(Z[:, 0], 1.5)
    with pytest.raises(ValueError, match=r"coverage_law.n must be >= 1; got 0"):
        coverage_law(0, 0.1)


def test_scikit_learns_manner():
    """Settings go in and out unchanged, a clone is unfitted, fit returns itself and changes no setting."""
    for method in (RAPS(0.2, k_reg="joint"), APS(0.2), SAPS(0.2, lam=0.1), LAC(0.3, empty="top1")):
        before = method.get_params()
        assert method.fit(KEY, Z, Y) is method
        assert method.get_params() == before
        again: Any = clone(method)
        assert again.get_params() == before
        assert not hasattr(again, "tau_")
        assert again.set_params(alpha=0.5).alpha == 0.5
    assert "k_reg='joint'" in repr(RAPS(0.2, k_reg="joint"))


def test_no_key_is_used_twice():
    def fitted(key):
        raps = RAPS().fit(key, Z, Y)
        return np.asarray([raps.tau_, raps.lam_])

    check_random_function(lambda key: jax.numpy.asarray(fitted(key)), name="RAPS.fit")
    raps = RAPS(**FIXED).fit(KEY, Z, Y)
    check_random_function(lambda key: jax.numpy.asarray(raps.predict_set(key, Z)), name="RAPS.predict_set")
