"""Which arm is best on a problem, by how much, and how sure that is."""

import numpy as np
import pytest

import toys
from laureate.lab.claim import Claim, Guard
from laureate.lab.judging import statistics
from laureate.lab.judging.standing import standings
from laureate.pages.wording import best_here

SEEDS = np.arange(10)
NOISE = np.random.default_rng(0).normal(size=(3, 10))


def stand(arms, claims=(toys.BETTER,), **changes):
    arms = {name: {"loss": values} for name, values in arms.items()}
    return standings("toy", toys.experiment(claims=claims, **changes), claims, arms)


def test_all_arms_are_ranked_and_the_gap_is_paired_by_seed():
    (found,) = stand({"theirs": 5.0 + NOISE[0], "ours": 3.0 + NOISE[0] + 0.01 * NOISE[1], "third": 9.0 + NOISE[2]})
    assert [place.arm for place in found.places] == ["ours", "theirs", "third"]
    second = found.places[1]
    assert second.behind == pytest.approx(2.0, abs=0.02)
    assert second.behind_high - second.behind_low < 0.1, "the seeds' common noise is taken out"
    assert second.beaten
    assert "Best here: ours, by 2 [" in best_here(found)
    assert "surely better than every other arm" in best_here(found)
    assert found.level == pytest.approx(97.5), "the best was chosen among three: each of two intervals pays"


def test_a_gap_within_the_noise_is_said_so():
    (found,) = stand({"ours": NOISE[0], "theirs": NOISE[1] + 0.05})
    assert "not surely better" in best_here(found)


def test_higher_may_be_better_and_a_bound_says_which_side():
    claim = Claim("high", "s", "loss", "ours", kind="bound", at_least=0.0, role="extension")
    (found,) = stand({"ours": NOISE[0], "theirs": 5.0 + NOISE[0]}, (claim,))
    assert found.best is not None
    assert (found.better, found.best.arm) == ("higher", "theirs")


def test_what_is_not_finite_has_no_place_and_a_limit_is_told():
    broken = NOISE[0].copy()
    broken[3] = np.nan
    (found,) = stand(
        {"ours": np.full(10, 7.0), "theirs": broken, "third": 8.0 + NOISE[0]},
        guards=(Guard("limit", "loss", low=7.0),),
    )
    assert [place.arm for place in found.places] == ["ours", "third", "theirs"]
    assert found.places[-1].note == "1 of 10 seeds not finite"
    assert "lies at its limit 7 in 10 of 10 seeds" in best_here(found)
    (capped,) = stand({"ours": np.full(10, 7.0), "theirs": np.full(10, 7.0)}, guards=(Guard("limit", "loss", low=7.0),))
    assert best_here(capped).startswith("No arm is ahead here: all of them end at 7: loss of ours lies at its limit")
    (none,) = stand({"ours": broken, "theirs": broken})
    assert best_here(none) == "No arm gave finite numbers here."


def test_the_best_of_equals_is_rarely_called_sure():
    """Chosen among five by the same numbers: the level holds all the same."""
    rng = np.random.default_rng(1)
    sure = 0
    for _ in range(200):
        arms = {name: rng.normal(size=10) for name in "abcde"}
        (found,) = stand(arms)
        sure += all(place.beaten for place in found.places[1:])
    assert sure <= 10


def test_every_gap_has_the_interval_of_the_level_that_is_told():
    """Of k arms each of k - 1 intervals pays for the choice; the arms' own are of 95 %."""
    draws = np.random.default_rng(2).normal(size=(5, 10))
    for count in (2, 3, 5):
        (found,) = stand({f"arm{i}": values + i for i, values in enumerate(draws[:count])})
        values = {f"arm{i}": values + i for i, values in enumerate(draws[:count])}
        best, *others = found.places
        assert found.level == pytest.approx(100 * (1 - 0.05 / (count - 1)))
        for place in others:
            gap = values[place.arm] - values[best.arm]
            ends = statistics.interval(gap, found.level / 100)
            assert (place.behind_low, place.behind_high) == pytest.approx(ends)
            assert (place.low, place.high) == pytest.approx(statistics.interval(values[place.arm], 0.95))


def test_an_arm_without_a_mean_is_no_rival_of_which_the_level_would_pay():
    draws = np.random.default_rng(3).normal(size=(4, 10)) + np.arange(4.0)[:, None]
    draws[3, 2] = np.inf
    values = {f"arm{i}": one for i, one in enumerate(draws)}
    (found,) = stand(values)
    assert found.level == pytest.approx(97.5)
    for place in found.places[1:3]:
        ends = statistics.interval(values[place.arm] - values["arm0"], 0.975)
        assert (place.behind_low, place.behind_high) == pytest.approx(ends)
    assert [place.arm for place in found.places] == [f"arm{i}" for i in range(4)]
    assert found.to_json()["level_percent"] == found.level
    assert [place["beaten"] for place in found.to_json()["places"]] == [place.beaten for place in found.places]


BETTER_LOWER = Claim("a", "s", "loss", "ours", "theirs", unit="nats", role="check")
EQUAL_HIGHER = Claim(
    "b", "s", "loss", "ours", "theirs", kind="equal", margin=1.0, better="higher", unit="bits", role="check"
)
AT_LEAST = Claim("c", "s", "loss", "ours", kind="bound", at_least=0.0, unit="points", role="check")
AT_MOST = Claim("d", "s", "loss", "ours", kind="bound", at_most=0.0, unit="dots", role="check")
BETWEEN = Claim("e", "s", "loss", "ours", kind="bound", at_least=0.0, at_most=1.0, role="check")


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        ((EQUAL_HIGHER, AT_LEAST, BETTER_LOWER), ("lower", "nats")),  # a comparison says best which side is better
        ((EQUAL_HIGHER, AT_MOST), ("lower", "dots")),  # that two are equal says it least
        ((AT_LEAST, AT_MOST), ("higher", "points")),  # of two alike the first
        ((BETWEEN, toys.QUESTION, EQUAL_HIGHER), ("higher", "bits")),
    ],
)
def test_the_direction_and_the_unit_are_those_of_the_claim_that_says_most(claims, told):
    (found,) = stand({"ours": NOISE[0], "theirs": 5.0 + NOISE[0]}, claims)
    assert (found.better, found.unit) == told
    assert not stand({"ours": NOISE[0], "theirs": NOISE[1]}, (BETWEEN,))
