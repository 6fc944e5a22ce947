"""What calibrators and measures refuse, and what they doubt."""

import jax
import numpy as np
import pytest

from laureate.uncertainty import (
    CalibrationWarning,
    Constant,
    HistogramBinning,
    Platt,
    SplineCalibrator,
    Temperature,
    ece,
    ks_error,
    top_scores,
    within_scores,
)

P = (np.arange(40) + 0.5) / 40
Y = np.arange(40) % 2
ROWS = np.stack([P, 1 - P], axis=1)
REFUSED = {
    "logits": (lambda: ks_error(P * 5 - 2, Y), r"ks_error.p must be within \[0, 1\]; got .* in row 0.*logits"),
    "nan": (lambda: Platt().fit(np.where(P > 0.9, np.nan, P), Y), r"Platt.p must be .* got nan in row 36"),
    "labels": (lambda: Constant().fit(P, Y + 1), r"Constant.y must be within \[0, 1\]; got 2 in row 1"),
    "signs": (lambda: ks_error(P, 2 * Y - 1), r"got -1 in row 0"),
    "lengths": (lambda: Constant().fit(P, Y[1:]), r"Constant.y must be as long as p"),
    "two axes": (lambda: Constant().fit(ROWS, Y), r"Constant.p must be \[rows\].*top_scores"),
    "empty": (lambda: ks_error(P[:0], Y[:0]), r"ks_error.p must be \[rows\] with at least one"),
    "weights": (lambda: Constant().fit(P, Y, P - P[0]), r"Constant.weights must be > 0; got 0.0"),
    "weights' length": (lambda: Constant().fit(P, Y, P[1:]), r"Constant.weights must be \[40\], one a row"),
    "rows' weights": (lambda: Temperature().fit(ROWS, Y, P[1:]), r"Temperature.weights must be \[40\]"),
    "bins": (lambda: ece(P, Y, 0), r"ece.num_bins must be >= 1; got 0"),
    "scheme": (lambda: ece(P, Y, 5, "area"), r"ece.scheme must be width or mass; got 'area'"),
    "no bins": (lambda: HistogramBinning(0), r"HistogramBinning.num_bins must be >= 1"),
    "histogram": (lambda: HistogramBinning(3, "area"), r"HistogramBinning.scheme must be mass or width"),
    "one knot": (lambda: SplineCalibrator(1), r"SplineCalibrator.knots must be >= 2; got 1"),
    "knots": (lambda: SplineCalibrator((0.0, 0.6, 0.5, 1.0)), r"knots must be positions ascending from 0 to 1"),
    "target": (lambda: SplineCalibrator(target="text"), r"target must be residual or direct; got 'text'"),
    "ends": (lambda: SplineCalibrator(ends="loose"), r"ends must be pinned or free; got 'loose'"),
    "few rows": (lambda: SplineCalibrator(9).fit(P, Y), r"rows must be >= 5 a knot, 45; got 40. Use at most 8 knots"),
    "sums": (lambda: top_scores(0.7 * ROWS, Y), r"probabilities must be rows of sum 1; got 0.7"),
    "classes": (lambda: top_scores(ROWS, Y + 1), r"labels must be whole numbers from 0 to 1; got \[2\]"),
    "rank": (lambda: within_scores(ROWS, Y, 3), r"within_scores.r must be from 1 to 2; got 3"),
    "rows' labels": (lambda: Temperature().fit(ROWS, Y[:-1]), r"Temperature.labels must be \[40\]"),
    "rows of logits": (lambda: Temperature().fit(ROWS * 3, Y), r"within \[0, 1\].*Apply softmax"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        call()


def doubts(p, y, clipped=0.0, knots=6):
    with pytest.warns(CalibrationWarning) as found:
        SplineCalibrator(knots)._doubt(p, y, knots, clipped)
    return " ".join(str(one.message) for one in found)


def test_doubts_are_told():
    rng = np.random.default_rng(0)
    many, hits = rng.random(1000), rng.integers(0, 2, 1000)
    assert "40 rows are few for 6 knots; use knots=4" in doubts(P, Y)
    assert "every row has y = 1" in doubts(many, np.ones(1000, int))
    assert "5 distinct scores" in doubts(many // 0.2 * 0.2, hits)
    assert "8% of the fitted probabilities were clipped" in doubts(many, hits, 0.08)


def test_a_fit_outside_jit_doubts_and_one_inside_does_not(recwarn):
    with pytest.warns(CalibrationWarning, match="40 rows are few"):
        SplineCalibrator(6).fit(P, Y)
    recwarn.clear()
    jax.eval_shape(lambda p, y: SplineCalibrator(6).fit(p, y).values, P, Y)
    assert not recwarn.list
