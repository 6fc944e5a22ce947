"""The track of labels that are paid for: who is unbiased, which half of the pool scores, what is charged."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.racing.tracks import active
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


def test_what_is_told_of_the_sessions_is_what_their_estimates_say():
    """Root mean square, the size of the mean, and how often two standard errors reach: of estimates that are known."""
    gaps = np.array([-0.45, -0.1, 0.0, 0.3, 0.8])  # of five sessions, around a mean loss of 2
    pool, keys = jnp.full(8, 2.0), jnp.arange(5)
    chooser = SimpleNamespace(
        init=lambda number: jnp.asarray(0), step=lambda key, scores, state: (0, state, SimpleNamespace(q=key))
    )
    told = {"key": None}

    def risk(losses, q, number):
        return SimpleNamespace(value=2.0 + jnp.asarray(gaps)[told["key"]], standard_error=jnp.asarray(0.25))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(active, "made", lambda settings: (chooser, risk))
        patch.setattr(
            active.jax.random, "split", lambda key, labels: told.update(key=key) or jnp.broadcast_to(key, labels)
        )
        found = {name: float(value) for name, value in active._sessions({}, pool, pool, keys, 3).items()}
    expected = {"error": np.sqrt((gaps**2).mean()) / 2, "bias": gaps.mean() / 2, "covered": 4 / 5}
    assert found == pytest.approx(expected, rel=1e-6)


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
