"""Is the ranking right, and is chance called chance? On planted numbers, many races each."""

import itertools

import numpy as np
import pytest

from laureate.lab.judging import statistics
from laureate.pages.wording import number
from laureate.racing.conclusion import _curve as curve_of
from laureate.racing.discipline import Metric
from laureate.racing.halving import FIRST_TUNING_SEED, TUNING_RUNS, best, rungs
from laureate.racing.standing import (
    ALPHA,
    Measured,
    at_seconds,
    compare,
    decidable,
    enough_seeds,
    envelope,
    pareto,
    stand,
)

LOSS, GAIN = Metric("loss", "a loss"), Metric("gain", "a gain", "higher")


def planted(rng, levels, seeds, noise=1.0):
    shared = rng.normal(size=seeds)
    return {name: level + shared + noise * rng.normal(size=seeds) for name, level in levels.items()}


def test_a_winner_among_equals_is_called_at_most_as_often_as_declared():
    """All entrants alike: any real difference is an error, and the family of all pairs keeps them at 5 %."""
    rng = np.random.default_rng(0)
    races, seeds = 100, enough_seeds(3)
    wrong = sum(
        any(pair.real for pair in stand(planted(rng, dict.fromkeys("abc", 0.0), seeds), LOSS).pairs)
        for _ in range(races)
    )
    # Two standard errors of a share of 5 % in 100 races.
    assert wrong / races <= ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / races)


@pytest.mark.parametrize("metric", [LOSS, GAIN], ids=lambda metric: metric.name)
def test_a_known_order_is_found(metric):
    rng = np.random.default_rng(1)
    levels = (
        {"worst": 0.0, "middle": 3.0, "best": 6.0} if metric is GAIN else {"best": 0.0, "middle": 3.0, "worst": 6.0}
    )
    right = 0
    for _ in range(40):
        found = stand(planted(rng, levels, 12), metric)
        right += found.order == ("best", "middle", "worst") and all(pair.real for pair in found.pairs)
        assert not any(pair.real and pair.difference < 0 for pair in found.pairs)
    # Differences of 3 with a deviation of √2 show in nearly every one of twelve seeds.
    assert right >= 38


def test_identical_entrants_are_equal_whatever_the_third_does():
    rng = np.random.default_rng(2)
    scores = planted(rng, {"a": 0.0, "far": 9.0}, 12)
    found = stand({"a": scores["a"], "twin": scores["a"], "far": scores["far"]}, LOSS)
    pair = found.pair("a", "twin")
    assert pair.same
    assert not pair.real
    assert pair.adjusted == 1.0
    assert set(found.leaders) == {"a", "twin"}
    assert found.order[-1] == "far"


def test_one_seed_without_a_number_is_no_comparison():
    found = stand({"a": [1.0] * 8, "nan": [0.0] * 7 + [np.nan], "inf": [np.inf] * 8}, LOSS)
    assert found.order == ("a",)
    assert dict(found.diverged) == {"nan": 1, "inf": 8}
    assert not found.pairs
    assert found.mean["nan"] == 0.0
    assert np.isnan(found.mean["inf"])


def test_the_seeds_that_are_enough_are():
    for entrants in (2, 5, 11):
        seeds = enough_seeds(entrants)
        scores = {str(i): np.arange(seeds) * 1e-3 + i for i in range(entrants)}
        assert all(pair.real for pair in compare(scores, LOSS))
    few = {str(i): np.arange(4) * 1e-3 + i for i in range(3)}
    assert not any(pair.real for pair in compare(few, LOSS))


def test_what_is_skewed_is_compared_by_factors():
    """One lucky seed makes the mean of the worse the larger one; by factors the better is better, and really."""
    rng = np.random.default_rng(3)
    luck = np.exp(0.3 * rng.normal(size=12))
    scores = {"steady": 3.0 * luck, "lucky": np.where(np.arange(12) == 5, 60.0, 1.0) * luck}
    ess = Metric("ess", "samples", "higher", log=True)
    assert scores["lucky"].mean() > scores["steady"].mean()
    found = stand(scores, ess)
    assert found.order == ("steady", "lucky")
    assert found.mean["steady"] == pytest.approx(3.0 * np.exp(np.log(luck).mean()))
    assert found.low["steady"] < found.mean["steady"] < found.high["steady"]
    without = stand({name: np.delete(one, 5) for name, one in scores.items()}, ess)
    assert without.pair("steady", "lucky").real
    assert without.pair("steady", "lucky").difference == pytest.approx(np.log(3.0))
    assert stand({"zero": [0.0] * 12, "one": [1.0] * 12}, Metric("error", "an error", log=True)).order == (
        "zero",
        "one",
    )


@pytest.mark.parametrize("unit", [2.0**400, 2.0**-400], ids=["huge", "tiny"])
def test_another_unit_changes_nothing(unit):
    """Far outside single precision, by a power of two: nothing is rounded."""
    scores = planted(np.random.default_rng(5), {"a": 0.0, "b": 1.0, "c": 1.2}, 10)
    plain, other = (stand({name: u * one for name, one in scores.items()}, LOSS) for u in (1.0, unit))
    assert (other.order, other.leaders, other.seeds) == (plain.order, plain.leaders, 10)
    for name in scores:
        assert [unit * plain.mean[name], unit * plain.low[name]] == [other.mean[name], other.low[name]]
    assert [pair.adjusted for pair in other.pairs] == [pair.adjusted for pair in plain.pairs]


@pytest.mark.parametrize("metric", [LOSS, GAIN, Metric("ess", "samples", "higher", log=True)], ids=lambda one: one.name)
def test_every_number_of_a_comparison_is_what_its_seeds_say(metric):
    """p from all patterns of signs, on both sides; Holm by hand; the interval, and both again in words."""
    rng, seeds = np.random.default_rng(6), 8
    scores = {name: np.exp(rng.normal(level, 0.5, seeds)) for name, level in (("a", 0.0), ("b", 0.4), ("c", 3.0))}
    scores["d"] = scores["c"] * (1 + 1e-3 * rng.uniform(1, 2, seeds))
    pairs = compare(scores, metric)
    assert [(pair.first, pair.second) for pair in pairs] == list(itertools.combinations("abcd", 2))
    signs = np.array(list(itertools.product([1, -1], repeat=seeds)))
    raw = []
    for pair in pairs:
        first, second = (np.log(scores[name]) if metric.log else scores[name] for name in (pair.first, pair.second))
        gain = first - second if metric.better == "higher" else second - first
        above, below = (np.mean(signs @ (way * gain) >= (way * gain).sum() - 1e-12) for way in (1, -1))
        assert pair.p == pytest.approx(min(1.0, 2 * min(above, below)))
        assert pair.difference == pytest.approx(gain.mean())
        ends = statistics.interval(gain)
        assert (pair.low, pair.high) == pytest.approx(ends)
        shown = np.exp if metric.log else np.asarray
        assert pair.by == number(float(shown(gain.mean()))) + " times" * metric.log
        assert pair.interval == f"[{number(float(shown(ends[0])))}, {number(float(shown(ends[1])))}]"
        raw.append(pair.p)
    order, largest = sorted(range(len(raw)), key=lambda i: raw[i]), 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(raw) - place) * raw[i]))
        pair = pairs[i]
        assert pair.adjusted == pytest.approx(largest)
        assert pair.real == (largest < ALPHA and (pair.low > 0 or pair.high < 0))
    assert {pair.real for pair in pairs} == {True, False}


def test_as_many_seeds_decide_as_could_call_the_clearest_difference_real():
    for entrants, seeds in itertools.product((2, 3, 6), (3, 5, 6, 8, 9, 11)):
        scores = {str(i): np.arange(seeds) * 1e-3 + i for i in range(entrants)}
        found = stand(scores, LOSS)
        assert decidable(found) == all(pair.real for pair in found.pairs), (entrants, seeds)
        assert decidable(found) or enough_seeds(entrants) > seeds


def measured(seconds, quality, seeds=3):
    cost = np.tile(np.arange(1.0, len(seconds) + 1), (seeds, 1))
    return Measured(cost, np.tile(seconds, (seeds, 1)), np.tile(quality, (seeds, 1)))


def test_equal_seconds_are_read_between_the_points():
    runs = {"quick": measured([1.0, 2.0, 4.0], [9.0, 8.0, 7.0]), "slow": measured([2.0, 8.0, 16.0], [6.0, 4.0, 2.0])}
    found = at_seconds(runs, 4.0)
    assert found["quick"][0] == 7.0
    assert found["slow"][0] == pytest.approx(5.0)  # half way from 2 to 8 in log time
    assert np.isnan(at_seconds(runs, 1.0)["slow"]).all()  # it had nothing yet


def test_a_hiccup_of_the_machine_moves_nothing():
    calm, jolted = measured([1.0, 2.0], [5.0, 4.0]), measured([1.0, 2.0], [5.0, 4.0])
    jolted.seconds[0] *= 100
    assert at_seconds({"a": calm}, 2.0)["a"].tolist() == at_seconds({"a": jolted}, 2.0)["a"].tolist()


def test_the_pareto_set_and_the_envelope():
    assert pareto({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 2.0}, GAIN) == ("b",)
    assert set(pareto({"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 2.0}, GAIN)) == {"a", "b"}
    runs = {"early": measured([1.0, 2.0], [3.0, 3.0]), "late": measured([1.0, 2.0], [9.0, 1.0])}
    assert envelope(runs, [10, 20], LOSS) == [(10, "early"), (20, "late")]


def test_everybody_is_given_about_the_same_to_tune_with():
    for configs in range(2, 40):
        ladder = rungs(configs)
        spent = sum(size * share for size, share in ladder)
        assert ladder[0][0] == configs
        assert ladder[-1][0] == 2
        assert all(before >= after for (before, _), (after, _) in itertools.pairwise(ladder))
        assert TUNING_RUNS / 2 <= spent <= TUNING_RUNS


def test_what_is_not_finite_loses_and_the_first_wins_a_tie():
    scores = {"nan": [np.nan, np.nan], "half": [99.0, np.inf], "a": [1.0, 1.0], "b": [1.0, 1.0], "none": []}
    assert best(scores, 5) == ["a", "b", "half", "nan", "none"]
    levels = dict(zip("abcdef", [0.3, -2.0, 1e-9, 4.0, 0.0, -1e9], strict=True))
    assert best({name: [level - 1.0, level + 1.0] for name, level in levels.items()}, 4) == ["d", "a", "c", "e"]
    assert FIRST_TUNING_SEED > 100_000  # the most seeds that the command takes


def test_who_diverged_least_stands_first_of_those_who_did():
    nan = float("nan")
    found = stand({"a": [nan, nan, nan], "b": [1.0, nan, nan], "c": [2.0, 2.0, 2.0], "d": [9.0, 9.0, nan]}, LOSS)
    assert found.order == ("c",)
    assert list(found.diverged.items()) == [("d", 1), ("b", 2), ("a", 3)]


def test_a_curve_ends_where_the_first_of_its_seeds_does():
    """Every number of it is of all seeds, and finite."""
    cost = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, np.nan, np.nan], [1.0, 2.0, 3.0, np.nan]])
    found = curve_of("a", Measured(cost, 10 * cost, np.where(np.isfinite(cost), 5 - cost, np.nan)))
    assert (found.cost, found.seconds, found.middle) == ((1.0, 2.0), (10.0, 20.0), (4.0, 3.0))
    assert found.low == found.high == found.middle
