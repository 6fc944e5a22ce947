"""Every number that a race tells, recomputed from planted runs; and what is advised in which case."""

from types import SimpleNamespace

import numpy as np
import planted
import pytest

from laureate.lab.judging import statistics
from laureate.pages.wording import number
from laureate.racing.conclusion import _by_the_clock, conclude
from laureate.racing.discipline import Entrant, Metric
from laureate.racing.results import Pair, RaceResult
from laureate.racing.running import Course, Run, Scored
from laureate.racing.standing import Measured

BUDGET, SEEDS = 800, 10
COSTS = np.array([100.0, 200.0, 400.0, 800.0])
LOSS, GAIN = Metric("loss", "a loss"), Metric("gain", "a gain", "higher")
FACTOR = Metric("ess", "samples", "higher", log=True)


def runs(quality, speed, cost=COSTS, cut=()):
    """Runs with these qualities [seeds, points], so many seconds a cost; ``cut``: (seed, points that it came to)."""
    quality = np.array(np.broadcast_to(quality, (SEEDS, len(cost))), float)
    cost = np.tile(cost, (SEEDS, 1))
    seconds = cost * speed * (1 + 0.1 * np.arange(SEEDS)[:, None])
    for seed, points in cut:
        for part in (quality, cost, seconds):
            part[seed, points:] = np.nan
    return Measured(cost, seconds, quality)


def raced(metric, found, *, others=None, grids=None, absent=None, budget=BUDGET):
    """The race of these runs; a text stands for an error."""
    grids = grids or {}
    scored = []
    for i, (name, one) in enumerate(found.items()):
        entrant = Entrant(name, f"{name}(rate, k, budget)", grids.get(name, {"rate": (0.1, 0.5, 1.0)}))
        config = {"rate": 0.5}
        measured = None if isinstance(one, str) else one
        more = (others or {}).get(name, {})
        error = one if measured is None else ""
        scored.append(Scored(entrant, config, measured, more, 1.0 + i, 10.0 * i, error))
    course = Course(
        planted.discipline(),
        (),
        "/elsewhere/mine.py:course",
        (),
        {"k": 3},
        {},
        metric,
        SEEDS,
        60.0,
        budget=budget,
        points=4,
    )
    return conclude(course, Run(7, budget, 2.0, tuple(scored), 5, 6, "here"), absent or {})


def everybody():
    """Random runs: some are cut in one seed, one has overspent, one has a seed that is not finite."""
    rng = np.random.default_rng(0)
    draw = lambda level: np.exp(0.3 * rng.normal(size=(SEEDS, 4))) * np.array([8.0, 4.0, 2.0, 1.0]) * level  # noqa: E731
    found = {
        "quick": runs(draw(3.0), 1e-3),
        "best": runs(draw(1.0), 8e-3),
        "cut": runs(draw(1.2), 4e-3, cut=[(2, 3), (5, 1)]),
        "dear": runs(draw(1.5), 2e-3, cost=1.2 * COSTS),
        "at-once": runs(draw(9.0), 1e-6),
        "slow": runs(draw(0.9), 5e-2),
        "lost": runs(draw(1.0), 5e-3),
    }
    found["lost"].quality[4, -1] = np.nan
    found["quick"].quality[0, 0] *= 1000  # one seed that decides a mean, and no mean of factors
    return found


def final(one, what):
    return np.array([row[int(np.isfinite(cost).sum()) - 1] for row, cost in zip(what, one.cost, strict=True)])


def centre(values, metric):
    return float(np.exp(np.mean(np.log(values))) if metric.log else np.mean(values))


@pytest.mark.parametrize("metric", [LOSS, GAIN, FACTOR], ids=lambda metric: metric.name)
def test_every_number_is_that_of_the_runs(metric):
    found = everybody()
    told = raced(metric, found | {"broken": "it broke\nat line 3"}, absent={"out": "no wings"})
    rows = {row.entrant: row for row in told.rows}
    sound = {name: one for name, one in found.items() if name != "lost"}
    means = {name: centre(final(one, one.quality), metric) for name, one in sound.items()}
    order = sorted(means, key=lambda name: means[name] if metric.better == "lower" else -means[name])
    assert [row.entrant for row in told.rows] == [*order, "lost", "broken", "out"]
    assert [row.status for row in told.rows[6:]] == ["diverged", "crashed", "stayed out"]
    assert [row.place for row in told.rows] == [1, 2, 3, 4, 5, 6, None, None, None]
    assert told.standing.seeds == SEEDS
    seconds = {name: np.median(final(one, one.seconds)) for name, one in sound.items()}
    for i, (name, one) in enumerate(found.items()):
        row, scores = rows[name], final(one, one.quality)
        assert told.scores[name] == pytest.approx(tuple(scores), nan_ok=True)
        assert row.cost == np.median(final(one, one.cost))
        assert row.seconds == np.median(final(one, one.seconds))
        assert (row.compile_seconds, row.tuning_cost, row.settings) == (1.0 + i, 10.0 * i, {"rate": 0.5})
        assert row.mean == pytest.approx(centre(scores[np.isfinite(scores)], metric))
        if name in sound:
            ends = statistics.interval(np.log(scores) if metric.log else scores)
            assert (row.low, row.high) == pytest.approx(np.exp(ends) if metric.log else ends)
        else:
            assert (row.low, row.high) == (None, None)
    # At equal seconds: who is done at once does not say when, and each seed is read off between two points.
    moment = min(one for one in seconds.values() if one >= 0.05)
    assert told.moment == moment == seconds["quick"]
    at = {}
    for name, one in sound.items():
        points = int(np.isfinite(one.cost).all(0).sum())
        clock = np.median(one.seconds[:, :points], axis=0)
        if clock[0] > moment * (1 + 1e-9):
            assert rows[name].at_seconds is None
            continue
        read = [np.interp(np.log(moment), np.log(clock), row[:points]) for row in one.quality]
        at[name] = centre(read, metric)
        assert rows[name].at_seconds == pytest.approx(at[name])
    assert 2 < len(at) < len(sound)
    assert told.by_seconds is not None
    assert told.by_seconds.order == tuple(sorted(at, key=lambda name: at[name] * (-1) ** (metric.better == "higher")))
    # Nobody is both as fast and as good, and one of the two more.
    up = 1.0 if metric.better == "higher" else -1.0
    beats = lambda a, b: seconds[a] <= seconds[b] and up * means[a] > up * means[b]  # noqa: E731
    front = sorted((b for b in sound if not any(beats(a, b) for a in sound)), key=lambda name: seconds[name])
    assert told.pareto == tuple(front)
    # The best at each budget, of those that came there in every seed.
    best = []
    for i, cost in enumerate(COSTS):
        there = {name: one for name, one in sound.items() if np.isfinite(one.cost[:, i]).all()}
        at_cost = {name: up * centre(one.quality[:, i], metric) for name, one in there.items()}
        best.append((int(cost), max(at_cost, key=lambda name: at_cost[name])))
    assert told.envelope == tuple(best)
    for curve in told.curves:
        one = found[curve.entrant]
        points = int(np.isfinite(one.cost).all(0).sum())
        assert curve.cost == tuple(np.median(one.cost[:, :points], axis=0))
        assert curve.seconds == tuple(np.median(one.seconds[:, :points], axis=0))
        ends = [np.nanquantile(one.quality[:, :points], share, axis=0) for share in (0.1, 0.5, 0.9)]
        assert np.allclose([curve.low, curve.middle, curve.high], ends)
    assert [curve.entrant for curve in told.curves] == [*order, "lost"]
    assert (told.run, told.budget, told.seeds, told.machine, told.unit) == (7, BUDGET, SEEDS, "here", "strides")
    assert told.cells == {"computed": 5, "kept": 6}
    assert (told.problem, told.title, told.discipline) == ("mine.py:course", "Who is planted best?", "planted")
    assert (told.metric, told.best, told.code) == (metric, order[0], told.codes[order[0]])
    assert told.codes.keys() == set(order)
    assert [row.against for row in told.rows][6:] == ["diverged", "crashed", "stayed out"]
    assert rows[order[0]].against == "first"
    for name in order[1:]:  # the p after Holm over all pairs, by which it was decided
        pair = told.standing.pair(order[0], name)
        word = "worse" if pair.real else "within noise" if pair.low <= 0 else "perhaps worse"
        assert rows[name].against == f"{word}, p {number(pair.adjusted, 2)}"
        assert pair.adjusted > pair.p
    assert rows["broken"].words == ("it broke",)
    assert {name for name, row in rows.items() if row.leads} == set(told.standing.leaders)
    assert RaceResult.from_json(told.to_json()).to_json() == told.to_json()
    read_back = RaceResult.from_json(told.to_json()).by_seconds
    for name, end in told.by_seconds.high.items():
        assert read_back is not None
        assert (read_back.low[name], read_back.high[name]) == (told.by_seconds.low[name], end)


def test_what_must_be_known_to_read_a_number_is_told():
    """Where one seed was cut as where all were; who overspends; who could use no more; who has a number in some."""
    found = {
        "whole": runs(1.0, 1e-3),
        "one-cut": runs(2.0, 1e-3, cost=0.4 * COSTS, cut=[(3, 2)]),
        "all-cut": runs(3.0, 1e-3, cut=[(seed, 2) for seed in range(SEEDS)]),
        "frugal": runs(4.0, 1e-3, cost=0.25 * COSTS),
        "dear": runs(5.0, 1e-3, cost=2 * COSTS),
        "half": runs(6.0, 1e-3, cost=0.5 * COSTS),
        "lost": runs(7.0, 1e-3),
    }
    found["lost"].quality[:3, -1] = np.inf
    told = {row.entrant: " ".join(row.words) for row in raced(LOSS, found).rows}
    assert told["whole"] == told["half"] == ""
    assert told["one-cut"] == "out of time at 40% of the budget: cut after 2 s"
    assert told["all-cut"] == "out of time at 25% of the budget: cut after 2 s"
    assert told["frugal"] == "spent 25% of the budget, as much as it could use"
    assert told["dear"] == "spent 2 times the budget, for one step costs as much"
    assert told["lost"] == "no finite number in 3 of 10 seeds; the mean is of the others"


def test_the_code_has_the_settings_that_were_found_for_the_whole_budget():
    """Of the first seed; what was found for smaller budgets, or by other seeds, is not what is handed out."""
    chosen = np.arange(40.0).reshape(10, 4)
    told = raced(
        LOSS, {"a": runs(1.0, 1e-3), "b": runs(2.0, 1e-3)}, others={"a": {"chosen_k": chosen, "error": chosen}}
    )
    assert "a(0.5, 3, 800)" in told.codes["a"]  # the fourth point of the first seed
    assert "b(0.5, 3, 800)" in told.codes["b"]  # a fact
    assert told.code == told.codes["a"]
    nowhere = raced(LOSS, {"a": runs(1.0, 1e-3)}, others={"a": {"chosen_k": np.full((10, 4), np.nan)}})
    assert "a(0.5, 3, 800)" in nowhere.code


def noisy(level, speed, amount=1.0, **more):
    """A level with noise; turned round in another entrant, so that nothing tells two of one level apart."""
    noise = amount * np.repeat(np.linspace(0.1, 0.9, SEEDS // 2), 2)[:, None] * (-1.0) ** np.arange(SEEDS)[:, None]
    return runs(level + noise, speed, **more)


CASES = {
    "alone": ({"a": runs(1.0, 1e-3)}, ["Use a with rate = 0.5: nobody else came in at 800 strides."], []),
    "really better": (
        {"a": noisy(1.0, 1e-3), "b": noisy(9.0, 1e-3, -1.0)},
        ["Use a with rate = 0.5: really better than b at 800 strides (loss 1)."],
        [],
    ),
    "quicker": (
        {"a": noisy(1.0, 1e-3), "b": noisy(1.01, 2e-4, -1.0), "c": noisy(1.02, 9e-4, -2.0)},
        ["; b with rate = 0.5 is within noise and takes 0.2 of the time; c is within noise, too."],
        [],
    ),
    "hardly quicker": (
        {"a": noisy(1.0, 1e-3), "b": noisy(1.01, 9e-4, -1.0)},
        ["(loss 1); b is within noise."],
        ["of the time"],
    ),
    "quicker, and done at once": (
        {"a": noisy(1.0, 1e-3), "b": noisy(1.01, 1e-6, -1.0)},
        ["is within noise and takes 0.001 of the time."],
        [],
    ),
    "both at once": (
        {"a": noisy(1.0, 1e-5), "b": noisy(1.01, 1e-6, -1.0)},
        ["(loss 1); b is within noise."],
        ["of the time"],
    ),
    # When the fastest was done, the first had nothing yet: worth a word only of one who may be as good in the end.
    "nothing yet": (
        {"a": noisy(1.0, 1.0), "b": noisy(1.01, 1e-3, -1.0)},
        ["When the fastest was done, it had nothing yet; b was first then."],
        [],
    ),
    "nothing yet, but really better": (
        {"a": noisy(1.0, 1.0), "b": noisy(9.0, 1e-3, -1.0)},
        ["really better than b"],
        ["nothing yet"],
    ),
    "really better by the clock": (
        {
            "a": noisy(np.array([9.0, 9.0, 9.0, 1.0]), 4e-3, 0.1),
            "b": noisy(np.array([3.0, 3.0, 3.0, 1.01]), 1e-3, -0.1),
        },
        ["At equal seconds b is really better."],
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_advised(case):
    found, said, unsaid = CASES[case]
    advice = raced(LOSS, found).advice
    for words in said:
        assert words in advice
    for words in unsaid:
        assert words not in advice


def test_an_edge_is_told_of_whoever_stands_there_unless_it_is_known():
    """``both``: neither end of the grid is an accident."""
    found = {"a": runs(1.0, 1e-3), "b": runs(2.0, 1e-3)}
    told = raced(LOSS, found, grids={"a": {"rate": (0.5, 1.0)}, "b": {"rate": (0.1, 0.5)}})
    assert told.rows[0].words == ("rate = 0.5 is the smallest that was tried: look beyond",)
    assert told.rows[1].words == ("rate = 0.5 is the largest that was tried: look beyond",)
    assert told.advice.endswith("But rate = 0.5 is the smallest that was tried: look beyond before you settle.")
    for natural, edges in (("low", ["the largest"]), ("high", ["the smallest"]), ("both", [])):
        entrant = Entrant("a", "a(rate)", {"rate": (0.1, 0.5)}, natural={"rate": natural})
        words = " ".join(entrant.edges({"rate": 0.1}) + entrant.edges({"rate": 0.5}))
        assert [which for which in ("the smallest", "the largest") if which in words] == edges


@pytest.mark.parametrize(("real", "apart"), [(True, True), (False, True), (False, False)])
@pytest.mark.parametrize("fastest", ["quick", "first", ""])
def test_at_equal_seconds_nobody_is_better_whose_lead_does_not_hold_after_holm(real, apart, fastest):
    """An interval beyond 0 is not enough; nor is anything said where the first by cost is first here, or nobody is."""
    pair = Pair("quick", "first", 1.0, 0.5 if apart else -0.5, 1.5, 0.02, 0.02 if real else 0.2, real)
    asked = []
    by_seconds = SimpleNamespace(
        order=tuple(filter(None, [fastest])), diverged=(), pair=lambda *names: asked.append(names) or pair
    )
    told = _by_the_clock("first", SimpleNamespace(leaders=("first",)), by_seconds)  # type: ignore[arg-type]
    assert told == (" At equal seconds quick is really better." if real and fastest == "quick" else "")
    assert asked == [("quick", "first")] * (fastest == "quick")
