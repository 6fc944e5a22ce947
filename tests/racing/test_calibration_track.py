"""The track of calibration: which rows fit, which tune, which score."""

import jax
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.calibration import facts, trial

ROWS = np.tile(np.array([[0.75, 0.25]], np.float32), (240, 1))
# The first half is all hits, the second all misses: who is fitted to the first and judged by the second is all wrong.
SCORED = {"probabilities": ROWS, "labels": (np.arange(240) >= 120).astype(int)}
ARM = Settings(code="Constant()", area="uncertainty", swept="")


@pytest.mark.parametrize(("phase", "brier"), [("tune", 0.0), ("score", 1.0)])
def test_tuning_never_sees_the_second_half_and_scoring_never_the_first(phase, brier):
    scale = Settings(cost=400, points=2, seconds=10.0, phase=phase)
    found = trial(jax.random.key(0), ARM, SCORED, scale)
    np.testing.assert_allclose(found["brier"], brier, rtol=1e-6)
    np.testing.assert_allclose(found["ks"], brier, rtol=1e-6)
    np.testing.assert_array_equal(found["cost"], [80, 80] if phase == "tune" else [120, 120])  # no more than there are


def test_no_more_rows_are_fitted_than_are_paid_for():
    found = trial(jax.random.key(0), ARM, SCORED, Settings(cost=60, points=2, seconds=10.0, phase="score"))
    np.testing.assert_array_equal(found["cost"], [30, 60])


def test_logits_are_refused():
    with pytest.raises(UserError, match=r"scored: top_scores.probabilities must be within \[0, 1\].*softmax"):
        facts({"probabilities": 4 * ROWS, "labels": SCORED["labels"]})
