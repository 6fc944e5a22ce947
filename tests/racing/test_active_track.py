"""The track of labels that are paid for: who is unbiased, which half of the pool scores, what is charged."""

import jax
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.racing.tracks.active import facts, halves, trial

SCALE = {"points": 1, "seconds": 10.0, "sessions": 64}
GUESS = np.random.default_rng(0).uniform(0.2, 1.0, 120)


def raced(code, pool, cost, phase="score"):
    arm = Settings(code=code, area="active", swept="beta", beta=1.0)
    return trial(jax.random.key(0), arm, pool, Settings(cost=cost, phase=phase, **SCALE))


@pytest.mark.parametrize(("risk", "least", "most"), [("lure_risk", 0.0, 0.02), ("plain_risk", 0.1, 1.0)])
def test_a_choice_by_the_loss_itself_is_biased_until_it_is_corrected(risk, least, most):
    """Points of large loss are chosen: their plain mean is too large; LURE's is exact but for the floor."""
    found = raced(f"(Acquisition(beta), {risk})", {"losses": GUESS, "scores": GUESS}, 20)
    assert least <= found["bias"][0] <= most
    assert found["error"][0] >= found["bias"][0]
    assert found["cost"].tolist() == [20]


def test_tuning_is_judged_by_the_other_half():
    """One half of the pool has no spread at all: whoever is judged by it is never wrong."""
    tunes = np.zeros(120, bool)
    tunes[halves(np.arange(120))[0]] = True
    pool = {"losses": np.where(tunes, 1.0, GUESS), "scores": np.ones(120)}
    assert raced("(Acquisition(0.0), plain_risk)", pool, 10, "tune")["error"] == pytest.approx(0.0, abs=1e-6)
    assert raced("(Acquisition(0.0), plain_risk)", pool, 10)["error"] > 0.02


def test_the_labels_that_can_be_paid_for_are_the_budget():
    assert facts({"losses": GUESS, "scores": GUESS, "num_labels": 30}) == {"budget": 30, "largest": 30}
    assert facts({"losses": GUESS, "scores": GUESS})["budget"] == 8
