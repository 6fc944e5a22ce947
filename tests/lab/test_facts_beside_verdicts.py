"""What stands beside a verdict, recomputed: guards' findings, seeds asked for, seconds, comparisons of runs."""

import dataclasses
import itertools
import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import toys
from laureate.lab.cell import Outcome
from laureate.lab.claim import Claim, Guard, Scale
from laureate.lab.judging import statistics
from laureate.lab.judging.evidence import draft, measure
from laureate.lab.judging.guards import TOLERANCE, held_back
from laureate.lab.judging.judge import Observed, judge
from laureate.lab.judging.looks import price
from laureate.lab.judging.results import (
    Answer,
    ClaimId,
    ClaimResult,
    Measured,
    QuestionResult,
    Result,
    by_role,
    tally,
)
from laureate.lab.judging.verdict import ALPHA, decide
from laureate.lab.records import (
    OBSERVATION_COLUMNS,
    compare_runs,
    differing,
    observation_rows,
    run_observations,
    run_standings,
)
from laureate.lab.running import run as run_module
from laureate.lab.running import trying, worker
from laureate.lab.running.diagnosis import diagnose
from laureate.lab.running.plan import Selection, plan
from laureate.lab.running.run import run_claims
from laureate.lab.running.skeleton import Wanted
from laureate.lab.storing.files import written_whole

SEEDS = 10
DRAW = np.random.default_rng(0)
BETTER = Claim("better", "a beats b", "loss", "a", "b", role="stand-in")
AT_LEAST = Claim("bound", "a is above 0", "loss", "a", kind="bound", at_least=0.0, role="stand-in")
LOSSES = {"a": {"loss": DRAW.normal(1.0, 0.1, SEEDS)}, "b": {"loss": DRAW.normal(3.0, 0.1, SEEDS)}}


# -- guards ------------------------------------------------------------------------------------------------------------


def findings(*guards, **metrics):
    arms = {arm: LOSSES[arm] | {name: np.asarray(values[arm]) for name, values in metrics.items()} for arm in "ab"}
    return held_back(BETTER, arms, LOSSES["b"]["loss"] - LOSSES["a"]["loss"], guards)


KINDS = {
    "limit": Guard("limit", "x", high=10.0, claims=("better",)),
    "grid": Guard("grid", "x", low=0.0, high=10.0),
    "effective": Guard("effective", "x", low=5.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_measurement_is_void_and_a_rivals_edge_is_not(kind):
    """By kind of guard: nothing reported, a number that is not finite, and one arm that breaks the rule."""
    guard, fine = KINDS[kind], np.full(SEEDS, 7.0)
    assert findings(guard, x={"a": fine, "b": fine}) == []
    (missing,) = findings(guard)
    assert missing.words == "x, which a guard asks for, is not reported by a or b"
    assert missing.void == (kind != "grid")  # without its choice a tuned arm is a measurement all the same
    broken = np.where(np.arange(SEEDS) == 3, np.nan, 7.0)
    bad = {"limit": 10.0, "grid": 10.0, "effective": 4.0}[kind]
    for arm, other in ("ab", "ba"):
        (lost,) = findings(guard, x={arm: broken, other: fine})
        assert (lost.words, lost.void) == (f"x of {arm} is not finite in 1 of 10 seeds", True)
        (found,) = findings(guard, x={arm: np.full(SEEDS, bad), other: fine})
        assert found.void == (kind != "grid" or arm == "a")


@pytest.mark.parametrize("kind", ["limit", "grid"])
def test_how_near_to_an_end_is_at_it_is_a_share_of_the_larger_end(kind):
    """Also at 0, and where one end is thousands of times the other."""
    for low, high in ((0.0, 10.0), (1e-4, 10.0), (-10.0, 0.0), (-3.0, None), (None, 3.0)):
        size = TOLERANCE * max(abs(end) for end in (low, high) if end is not None)
        guard = Guard(kind, "x", low=low, high=high, claims=("better",))
        ends = [(end, inward) for end, inward in ((low, 1), (high, -1)) if end is not None]
        for end, inward in ends:
            for share, hit in ((0.9, True), (1.1, False)):
                values = np.full(SEEDS, end + inward * share * size)
                middle = {arm: np.full(SEEDS, sum(e for e in (low, high) if e is not None) / 2) for arm in "ab"}
                assert bool(findings(guard, x=middle | {"b": values})) == hit, (low, high, end, share)


@pytest.mark.parametrize("components", [(1,), (3,), (2, 2)])
def test_a_grid_is_too_narrow_where_half_of_the_seeds_stand_at_an_end_in_one_component(components):
    guard, draw = KINDS["grid"], np.random.default_rng(1)
    for _ in range(40):
        values = draw.choice([0.0, 4.0, 6.0, 10.0], (SEEDS, *components), p=[0.3, 0.2, 0.2, 0.3])
        flat = values.reshape(SEEDS, -1)
        often = max(int((flat == end).sum(0).max()) for end in (0.0, 10.0))
        found = findings(guard, x={"a": np.full(SEEDS, 5.0), "b": values})
        assert bool(found) == (often >= SEEDS / 2)
        lowest = int((flat == 0.0).sum(0).max())
        which, told = ("lowest", lowest) if lowest >= SEEDS / 2 else ("highest", often)
        assert not found or (f"{which} of its grid" in found[0].words and f"in {told} of 10" in found[0].words)


def test_the_ends_of_a_grid_are_its_smallest_and_largest_in_whatever_order():
    for rates in ((0.1, 0.3, 1.0), (1.0, 0.3, 0.1), (0.3, 1.0, 0.1)):
        found = Guard("grid", "rate", grid="rates").at(Scale(3, rates=rates))
        assert (found.low, found.high, found.grid) == (0.1, 1.0, "")


# -- evidence and verdicts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"baseline": "b"},
        {"baseline": "b", "kind": "equal", "margin": 1.0},
        {"kind": "bound", "at_most": 9.0},
        {"kind": "bound", "at_least": -9.0, "at_most": 9.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_seed_that_is_not_finite_is_the_worst(changes, value):
    broken = LOSSES["a"]["loss"].copy()
    broken[6] = value
    claim = Claim("c", "s", "loss", "a", role="check", **changes)
    found = measure(claim, {"a": {"loss": broken}, "b": LOSSES["b"]})
    assert found.worst == 6
    assert not math.isfinite(found.worst_effect)
    assert not math.isfinite(found.method_mean)


@pytest.mark.parametrize("seeds", [3, 10, 30, 31, 40])
@pytest.mark.parametrize("claim", [BETTER, AT_LEAST], ids=lambda claim: claim.kind)
def test_other_seeds_are_asked_for_just_where_no_numbers_could_decide(claim, seeds):
    """The smallest p of so many seeds is that of numbers that all speak for the claim, by the test itself."""
    all_for = np.arange(1.0, seeds + 1)
    smallest = float((statistics.sign_test if claim.kind == "bound" else statistics.sign_flip)(all_for))
    weak = 100.0 * (-1.0) ** np.arange(seeds) + 1.0
    arms = {"a": {"loss": weak if claim.kind == "bound" else -weak}, "b": {"loss": np.zeros(seeds)}}
    made = draft(claim, arms)
    for family, looks in itertools.product((1, 50, 1000, 10**8, 10**13), ((), (5,), (5, 6))):
        (found,) = decide([dataclasses.replace(made, looks=looks)], family)
        times = family * price(1 + len(looks))
        hopeless = smallest * times >= ALPHA
        assert found.verdict == "inconclusive"
        assert ("the smallest p that" in found.reason) == hopeless
        if hopeless:
            assert f"{seeds} seeds can give is {smallest:.3g} before Holm" in found.reason
            enough = next(n for n in range(1, 200) if 0.5**n * times < ALPHA)
            more = seeds < enough
            assert (f"it takes at least {enough} with" in found.reason) == more
            assert ("needs more seeds" if more else "needs other seeds") in found.reason


def test_what_a_result_says_of_its_run_is_summed_over_the_arms_that_it_rests_on():
    """Seconds, how busy the machine was in the worst seed, how many seeds were declared, which arms failed."""
    experiment = toys.experiment()
    busy = {"ours": np.linspace(1.0, 1.3, SEEDS), "theirs": np.linspace(1.0, 1.2, SEEDS), "third": np.full(SEEDS, 9.0)}
    arms = {name: {"loss": DRAW.normal(size=SEEDS), "wall_over_cpu": values} for name, values in busy.items()}
    seconds = {"ours": 1.25, "theirs": 20.5, "third": 300.0}

    def told(arms, scale="smoke") -> dict[str, Any]:
        observed = Observed(experiment, experiment.claims, arms, seconds)
        return {result.name: result for result in judge(toys.paper(experiment), [observed], scale=scale)}

    found = told(arms)
    assert {name: result.seconds for name, result in found.items()} == {
        "better": 21.75,
        "worse": 301.25,
        "which": 321.75,
    }
    assert [found[name].busy for name in ("better", "worse")] == [1.3, 9.0]
    assert {result.declared_seeds for result in found.values()} == {10}
    assert {result.declared_seeds for result in told(arms, "elsewhere").values()} == {0}
    without = told({"ours": arms["ours"], "third": {"loss": arms["third"]["loss"]}})
    assert (without["better"].verdict, without["better"].reason) == ("not run", "failed: theirs")
    assert without["worse"].busy == 1.3  # of those arms that say it
    assert isinstance(without["which"], QuestionResult)
    assert [row.arm for row in without["which"].answers] == ["ours", "third"]
    nobody = told({})
    assert nobody["which"].reason == "failed: ours, theirs, third"
    quiet = {name: {"loss": values["loss"]} for name, values in arms.items()}
    assert math.isnan(told(quiet)["better"].busy)


def test_todays_declaration_changes_words_and_no_number():
    kept = ClaimResult(
        id=ClaimId("toy", "better"), experiment="toy", statement="s", kind="better", role="check", metric="loss",
        unit="old", source="old", data=("old",), over="data sets", scale="smoke", declared_seeds=7, seeds=12,
        machine="m", run=3, started="t", seconds=1.5, verdict="supported", effect=1.0, low=0.5, high=1.5, p=0.01,
        p_raw=0.01, effect_size=2.0, improvement=1.0, family=2, test="t", guard="g", looks=(5,), method="ours",
        baseline="theirs", trivial="third", reported="old", remeasured=1, busy=1.0,
    )  # fmt: skip
    claim = dataclasses.replace(toys.BETTER, role="headline", unit="new", source="new", reported="new", margin=9.0)
    experiment = toys.experiment(data=("digits",), claims=(claim,))
    now = kept.declared(experiment, claim)
    before, after = kept.to_json(), now.to_json()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"role", "unit", "source", "data", "over", "reported"}
    assert (now.role, now.unit, now.source, now.data, now.over) == ("headline", "new", "new", ("digits",), "seeds")
    assert now.more_seeds  # than were declared then, whatever is declared now
    older = dataclasses.replace(kept, declared_seeds=0)
    assert older.declared(experiment, claim).declared_seeds == 10
    assert dataclasses.replace(older, scale="gone").declared(experiment, claim).declared_seeds == 0


# -- records -----------------------------------------------------------------------------------------------------------


def keep(store, effects, axis="loss: theirs − ours"):
    run = store.start_run("laureate run toy", "smoke", len(effects), "default", {"machine": "a cpu"})
    measured = Measured(tuple(effects), axis=axis)
    result = ClaimResult(
        id=ClaimId("toy", "better"), experiment="toy", statement="s", kind="better", verdict="supported",
        effect=float(np.mean(effects)), seeds=len(effects), measured=measured,
    )  # fmt: skip
    store.add_results(run, [result])
    return run


def test_runs_are_compared_seed_by_seed_where_both_have_the_same_seeds_of_the_same_thing(store):
    first, second = DRAW.normal(size=(2, SEEDS))
    before, after = keep(store, first), keep(store, second)
    (found,) = compare_runs(store, [], before, after)
    ends = statistics.interval(second - first)
    assert found.change == pytest.approx((second - first).mean())
    assert (found.low, found.high) == pytest.approx(ends)
    assert found.differs == (not ends[0] <= 0 <= ends[1])
    broken = np.where(np.arange(SEEDS) == 2, np.nan, second)
    for other in (keep(store, second, axis="slope of loss"), keep(store, second[:9]), keep(store, broken)):
        (apart,) = compare_runs(store, [], before, other)
        assert (apart.change, apart.low, apart.high, apart.differs) == (None, None, None, False)
        assert apart.to_json()["first"]["effect"] == pytest.approx(first.mean())


def test_the_blocks_of_a_run_stand_in_the_order_of_their_seeds_whenever_they_were_computed(store):
    run = store.start_run("laureate run toy", "smoke", 10, "default", {})
    for cell in reversed(plan(toys.selections(toys.paper()), "smoke")):
        store.add_cell(run, cell, Outcome({"loss": np.arange(cell.start, cell.start + cell.count)}))
    ((_, arms),) = run_observations(store, run).items()
    assert set(arms) == {"ours", "theirs", "third"}
    for metrics in arms.values():
        assert metrics["loss"].tolist() == list(range(10))


def test_every_number_of_a_run_is_exported_with_its_place(store):
    """A row for every component of every seed, by the names of its columns."""
    own = "/elsewhere/mine.py:Bowl"
    run = store.start_run("laureate run toy", "smoke", 10, own, {})
    expected = {}
    for cell in plan(toys.selections(toys.paper()), "smoke"):
        seeds = np.arange(cell.start, cell.start + cell.count)
        metrics = {"loss": 1.0 * seeds, "table": seeds[:, None, None] + 0.1 * np.arange(6.0).reshape(2, 3)}
        store.add_cell(run, cell, Outcome(metrics))
        for i, seed in enumerate(seeds.tolist()):
            expected[cell.arm, seed, "loss", ""] = metrics["loss"][i]
            for j, k in itertools.product(range(2), range(3)):
                expected[cell.arm, seed, "table", f"{j} {k}"] = metrics["table"][i, j, k]
    rows = list(observation_rows(store, run))
    assert {(row["run"], row["paper"], row["experiment"], row["problem"], row["scale"]) for row in rows} == {
        (run, "toy", "toy", own, "smoke")
    }
    assert {(row["arm"], row["seed"], row["metric"], row["index"]): row["value"] for row in rows} == expected
    assert len(rows) == len(expected)
    assert all(tuple(row) == OBSERVATION_COLUMNS for row in rows)
    assert list(observation_rows(store, run + 1)) == []


def test_seeds_are_told_by_their_numbers_where_a_block_failed_and_where_experiments_have_fewer(store):
    """Two experiments of one run with other numbers of seeds, of one of which a block of one arm failed."""
    made = toys.paper(
        toys.experiment(), toys.experiment("second", claims=(dataclasses.replace(toys.BETTER, name="again"),))
    )
    run = store.start_run("laureate run toy", "smoke", 10, "default", {})
    expected = set()
    wanted = {"toy": 7, "second": 10}
    for cell in plan(toys.selections(made), "smoke"):
        seeds = np.arange(cell.start, cell.start + cell.count)
        lost = (cell.experiment, cell.arm, cell.start) == ("toy", "theirs", 0)
        store.add_cell(run, cell, Outcome(error="lost") if lost else Outcome({"loss": 0.5 + seeds}))
        if not lost:
            expected |= {(cell.experiment, cell.arm, s, 0.5 + s) for s in seeds.tolist() if s < wanted[cell.experiment]}
    facts = {"statement": "s", "kind": "better", "verdict": "inconclusive"}
    results = [
        ClaimResult(id=ClaimId("toy", name), experiment=experiment, seeds=wanted[experiment], **facts)
        for name, experiment in (("better", "toy"), ("again", "second"))
    ]
    store.add_results(run, results)
    rows = list(observation_rows(store, run))
    assert {(row["experiment"], row["arm"], row["seed"], row["value"]) for row in rows} == expected
    assert len(rows) == len(expected) == 7 + 2 + 7 + 3 * 10
    found = run_observations(store, run)
    assert found["toy", "toy"]["theirs"]["loss"].tolist() == [5.5, 6.5]
    assert found["toy", "second"]["theirs"]["loss"].tolist() == [0.5 + seed for seed in range(10)]
    ranked = {one.experiment: {place.arm for place in one.places} for one in run_standings(store, [made], run)}
    assert ranked == {"toy": {"ours", "third"}, "second": {"ours", "theirs", "third"}}


@pytest.mark.parametrize("seeds", [1, 4, 9])
@pytest.mark.parametrize("centre", ["mean", "median"])
def test_a_change_is_of_what_the_effect_is_of_and_json_whatever_the_seeds(store, seeds, centre):
    """Too few give an interval without ends."""
    effects, runs = DRAW.lognormal(size=(2, seeds)), []
    for side in effects:
        runs.append(keep(store, side))
        (kept,) = store.results(runs[-1])
        store.add_results(runs[-1], [dataclasses.replace(kept, centre=centre)])
    (found,) = compare_runs(store, [], *runs)
    change = effects[1] - effects[0]
    interval = statistics.median_interval if centre == "median" else statistics.interval
    assert found.change == pytest.approx(np.median(change) if centre == "median" else change.mean())
    assert (found.low, found.high) == pytest.approx(interval(change))
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    ends = [end if math.isfinite(end) else None for end in interval(change)]
    assert [told["change"], told["low"], told["high"]] == pytest.approx([found.change, *ends])


def test_what_keeps_two_runs_apart_is_told_by_name(store):
    """The problem, by its name and not by where it lies, and the scale."""
    runs = [
        store.run(store.start_run("laureate run toy", scale, 10, problem, {}))
        for scale, problem in (("smoke", "default"), ("desk", "/a/mine.py:Bowl"), ("smoke", "/b/mine.py:Bowl"))
    ]
    assert differing(runs[0], runs[0]) == []
    assert differing(runs[0], runs[2]) == ["the problem of run 1 is the paper's own, that of run 3 is mine.py:Bowl"]
    assert differing(runs[1], runs[0]) == [
        "the problem of run 2 is mine.py:Bowl, that of run 1 is the paper's own",
        "the scale of run 2 is desk, that of run 1 is smoke",
    ]


def test_claims_by_role_and_by_verdict_in_their_order():
    results = [
        ClaimResult(id=ClaimId("p", str(i)), experiment="e", statement="s", kind="better", role=role, verdict=verdict)
        for i, (role, verdict) in enumerate(
            [("check", "refuted"), ("headline", "supported"), ("check", "not run"), ("extension", "supported")]
        )
    ]
    roles = {role: [result.name for result in mine] for role, mine in by_role(results).items()}
    assert list(roles.items()) == [("headline", ["1"]), ("extension", ["3"]), ("check", ["0", "2"])]
    assert list(tally(results).items()) == [("supported", 2), ("refuted", 1), ("not run", 1)]
    assert by_role([]) == tally([]) == {}


# -- running -----------------------------------------------------------------------------------------------------------


def test_compiled_programs_are_mended_after_a_run_that_was_interrupted_and_after_no_other(store, monkeypatch):
    mended = []
    monkeypatch.setattr(run_module, "mend_compilation_cache", lambda: mended.append(True))
    monkeypatch.setattr(run_module, "make_executor", lambda *words: Nothing())
    for status, expected in (("finished", 0), ("failed", 0), ("interrupted", 1)):
        store.end_run(store.start_run("laureate run toy", "smoke", 10, "default", {}), status)
        run_claims(store, toys.selections(toys.paper(), "toy/better"), scale="smoke", workers=1, fresh=True)
        assert len(mended) == expected, status


class Nothing:
    """Computes cells at once: zeros."""

    workers = 1

    def outcomes(self, cells):
        for cell in cells:
            yield cell, Outcome({"loss": np.arange(float(cell.count))})

    def close(self):
        pass


def test_every_experiment_of_every_paper_tries_a_users_problem_once(monkeypatch):
    """Two papers may have experiments of one name."""
    tried = []
    monkeypatch.setattr(trying, "attempt", lambda cell: (toys, None) if tried.append(cell) is None else None)
    cells = []
    for paper, name in itertools.product(("one", "two"), ("toy", "more")):
        made = dataclasses.replace(toys.paper(toys.experiment(name, accepts=("TRIALS",))), id=paper)
        cells += plan(trying_selections(made), "smoke")
    trying.try_problem("mine.py:it", cells)
    assert [(cell.paper, cell.experiment) for cell in tried] == [
        ("one", "toy"), ("one", "more"), ("two", "toy"), ("two", "more"),
    ]  # fmt: skip
    assert {(cell.arm, cell.start) for cell in tried} == {("ours", 0)}


def trying_selections(paper):
    return toys.select([paper.id], [paper.id], lambda _: paper)


def test_a_file_that_is_written_takes_the_place_of_what_a_link_leads_to(tmp_path):
    target, link = tmp_path / "kept" / "page.html", tmp_path / "page.html"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    with written_whole(link) as stream:
        stream.write("new")
    assert link.is_symlink()
    assert target.read_text() == link.read_text() == "new"
    with pytest.raises(ZeroDivisionError), written_whole(link) as stream:
        stream.write(f"half {1 / 0}")
    assert target.read_text() == "new"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept", "page.html"]


# -- what is kept ------------------------------------------------------------------------------------------------------

# Of each type values that a reader may take for nothing, and others.
KEPT_VALUES = {
    "float": (0.0, -0.5, math.nan, math.inf),
    "int": (0, 1),
    "int | None": (0, 1, None),
    "bool": (False, True),
    "str": ("", "some words"),
    "tuple[str, ...]": ((), ("digits",)),
    "tuple[int, ...]": ((), (0, 5)),
    "Literal['supported', 'refuted', 'inconclusive', 'not run']": ("supported", "not run"),
    "Literal['mean', 'median']": ("mean", "median"),
    "tuple[float, ...]": ((), (0.0, -1.0), (math.nan, 0.0)),
    "tuple[tuple[float, str], ...]": ((), ((0.0, "no effect"), (0.5, "margin"))),
    "tuple[float, float]": ((-math.inf, math.inf), (0.0, math.inf), (-math.inf, 0.0), (0.0, 0.0), (-0.5, 2.0)),
}
OF_A_CLAIM = {"id": ClaimId("toy", "better"), "experiment": "e", "statement": "s", "kind": "better"}
KEPT = {
    "claim": ClaimResult(**OF_A_CLAIM, verdict="refuted"),
    "question": QuestionResult(**OF_A_CLAIM, answers=(Answer("ours", 0.0, None, 1.0, 0), Answer("theirs", seeds=0))),
    "numbers": Measured((1.0, 0.0)),
}


@pytest.mark.parametrize("kind", KEPT)
def test_what_is_kept_is_read_back_whatever_it_is(kind):
    """Field by field: nought, no words and what is not finite are not the same as nothing."""
    first = KEPT[kind]
    reading = Measured.from_json if kind == "numbers" else Result.from_json
    for field in dataclasses.fields(first):
        if field.name in ("id", "answers", "measured"):
            continue
        kind_of = field.type.__name__ if isinstance(field.type, type) else str(field.type).removeprefix("typing.")
        for value in KEPT_VALUES[kind_of]:
            one = dataclasses.replace(first, **{field.name: value})
            told = json.loads(json.dumps(one.to_json(), allow_nan=False))
            found = reading(told)
            # JSON has nothing that is not finite: such a number is the field's default again.
            lost = isinstance(value, float) and not math.isfinite(value)
            expected = dataclasses.replace(one, **{field.name: field.default}) if lost else one
            assert repr(found) == repr(expected), (field.name, value)
    if kind == "claim":
        whole = dataclasses.replace(first, measured=KEPT["numbers"])
        assert Result.from_json(json.loads(json.dumps(whole.to_json(), allow_nan=False))) == whole


def test_the_seconds_of_a_cell_are_those_of_running_and_apart_from_them_those_of_compiling(monkeypatch):
    """Together they are what the clock of the wall has shown, whether the cell came to an end or not."""
    (cell, *_) = plan(toys.selections(toys.paper(), "toy/better"), "smoke")
    clock = iter([10.0, 15.0, 20.0, 26.0])
    monkeypatch.setattr(worker, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(worker, "_vmapped", lambda *given: ({"loss": np.zeros(5)}, 2.0))
    done = worker.compute(cell)
    assert (done.seconds, done.compile_seconds, done.error) == (3.0, 2.0, "")
    monkeypatch.setattr(worker, "_vmapped", lambda *given: 1 / 0)
    failed = worker.compute(cell)
    assert (failed.seconds, failed.compile_seconds) == (6.0, 0.0)
    assert failed.error.startswith("ZeroDivisionError: division by zero\n\nTraceback")


def test_a_scale_that_an_experiment_has_not_is_told_with_those_a_person_may_choose(store):
    scales = {name: Scale(seeds=2, draws=1) for name in ("tiny", "smoke", "desk")}
    one, other = (
        toys.experiment(scales=scales),
        toys.experiment("other", scales={"full": Scale(seeds=2, draws=1)}, claims=()),
    )
    fitting, skipped = run_module._fitting(
        [Selection(toys.paper(one), made, made.claims) for made in (one, other)], "full", "default"
    )
    assert [selection.experiment.name for selection in fitting] == ["other"]
    assert skipped == ["toy/toy has no scale full, only smoke and desk"]


def test_sizes_are_told_in_the_unit_that_stands_beside_them(store, home):
    folder = home / "cache" / "xla"
    (folder / "below").mkdir(parents=True)
    (folder / "one").write_bytes(b"x" * (3 << 20))
    (folder / "below" / "two").write_bytes(b"x" * (2 << 20))
    folders = diagnose(store)["folders"]
    assert folders["compiled programs"] == f"{folder} (2 files, 5.0 MiB; safe to delete)"
    assert folders["store"] == f"{store.path} ({store.path.stat().st_size / 1048576:.1f} MiB)"


def test_how_a_part_is_called_is_told_without_the_object_itself():
    calls = {None: "it", "": "it()", "self": "it()", "self, key": "it(key)", "key, number": "it(key, number)"}
    assert {arguments: Wanted("it", arguments).signature for arguments in calls} == calls
