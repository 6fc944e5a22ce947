"""What the lab plans, decides, keeps and says, all fields of it, as it was when somebody last looked at it."""

import dataclasses
import importlib
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import made_home
import toys
from laureate.lab import ledger
from laureate.lab import reference as references
from laureate.lab.claim import Arm, Claim, Curve, Experiment, Film, Guard, Paper, Scale, Settings
from laureate.lab.errors import UserError
from laureate.lab.judging import statistics
from laureate.lab.judging.evidence import answers, draft, measure
from laureate.lab.judging.guards import held_back
from laureate.lab.judging.judge import Observed, judge
from laureate.lab.judging.results import ClaimId, ClaimResult, Result, Verdict, by_role, tally
from laureate.lab.judging.standing import standings
from laureate.lab.judging.verdict import decide
from laureate.lab.records import (
    board_results,
    compare_runs,
    differing,
    observation_rows,
    own_results,
    paper_record,
    paper_results,
    run_standings,
)
from laureate.lab.running.bench import last_row, latest_rows, slow_down
from laureate.lab.running.cost import estimate, makespan
from laureate.lab.running.diagnosis import diagnose
from laureate.lab.running.plan import plan, scale_of, select, unknown
from laureate.lab.running.references import check_file
from laureate.lab.running.run import problem_label
from laureate.lab.running.skeleton import first_scale, skeleton, wanted
from laureate.pages.wording import best_here, busy, centre, duration, interval, looks, means, number, rival
from plain_words import plain_words

REAL = ("tensor-train-pde", "gvp", "mesh-graph-nets")  # papers that need no data set


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        home = made_home.Home(tmp_path_factory.mktemp("full"), patch)
        home.fill()
        yield home
        home.close()


@pytest.fixture
def store(full, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(full.home))
    opened = full.open()
    yield opened
    opened.close()


def declared_paper(paper_id):
    return importlib.import_module(f"laureate.papers.{paper_id.replace('-', '_')}.about").PAPER


# -- plans -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paper_id", REAL)
def test_plans_of_papers(recorded, monkeypatch, paper_id):
    """Which cells, in which order, with which settings; not their fingerprints, which move with every library."""
    monkeypatch.setattr("laureate.lab.running.plan.fingerprint", lambda *_: "")
    paper = declared_paper(paper_id)
    chosen = select([paper_id], [paper_id], lambda _: paper)
    for scale in ("smoke", "desk"):
        lines, before = [], {}
        for cell in plan([one for one in chosen if scale in one.experiment.scales], scale):
            shared = {"scale": cell.scale_settings, "problem": cell.problem_settings, "accepts": cell.accepts,
                      "how": [cell.trial, cell.problem_reference, cell.over_seeds, cell.x64, cell.compilation],
                      }  # fmt: skip
            lines += [f"{cell.experiment}: {json.dumps(shared)}"] if shared != before else []
            before = shared
            lines.append(f"  {cell.arm} {cell.start}+{cell.count} {json.dumps(dict(cell.arm_settings))}")
        recorded.text(f"plan-{paper_id}-{scale}.txt", "\n".join(lines) + "\n")


def test_plans_of_the_toy(recorded, full):
    cells = plan(toys.select(["toy/lower", "known/"], made_home.IDS, made_home.paper_of), "smoke", 12)
    places = full.places()
    rows = []
    for cell in cells:
        told = {name: value for name, value in vars(cell).items() if name != "fingerprint"}
        rows.append(json.loads(plain_words(json.dumps(told), places)) | {"name": cell.name})
    recorded("first", rows[:2])
    recorded("order", [[row["name"], row["start"], row["count"]] for row in rows])
    programs = [cell.program for cell in cells]
    recorded("programs", [len(set(programs)), plain_words(programs[0], places)])
    turns = plan(toys.select(["toy/clocked/"], made_home.IDS, made_home.paper_of), "desk", 3)
    recorded("turns", [cell.name for cell in turns])
    recorded("distinct", len({cell.key for cell in cells}))


def test_what_words_select(recorded):
    found = {}
    for words in (["toy"], ["toy/lower"], ["toy/lower", "toy/quick"], ["toy/walk"], ["toy/walk/"],
                  ["idle", "known/worse"],
                  ["toy/which"], ["toy/lower", "toy"]):  # fmt: skip
        chosen = select(words, made_home.IDS, made_home.paper_of)
        found[" ".join(words)] = [[one.experiment.name, len(one.claims), one.arms()] for one in chosen]
    recorded("chosen", found)
    everything = select([], made_home.IDS, made_home.paper_of, everything=True)
    recorded("all", [f"{one.paper.id}/{one.experiment.name}" for one in everything])
    known = [f"name-{i}" for i in range(40)]
    recorded("unknown", [str(unknown(*asked)) for asked in (
        ("name-7x", known), ("zzz", known), ("zzz", known[:3], "p/"), ("", known[:2]), ("me-1", known))])  # fmt: skip


def test_what_a_run_would_cost(recorded, store):
    for scale in ("smoke", "desk", "full"):
        found = estimate(store, select([], made_home.IDS, made_home.paper_of, everything=True), scale)
        recorded(scale, [one.to_json() for one in found])
    recorded("makespan", [makespan(cells, n) for cells in ([], [1.0], [5.0, 3.0, 3.0, 2.0]) for n in (1, 2, 9)])


# -- verdicts ----------------------------------------------------------------------------------------------------------

SEEDS = 14


def numbers(level, *key, spread=0.3, seeds=SEEDS):
    return np.array(
        [level + spread * made_home.drawn(seed, 0) / 2 + spread * made_home.drawn(seed, *key) for seed in range(seeds)]
    )


def arms_of(gap, spread=0.3, seeds=SEEDS):
    """ours is better than theirs by ``gap``, and both than nothing clever by one more."""
    levels = {"ours": 1.0, "theirs": 1.0 + gap, "still": 2.0 + gap}
    loss = {arm: numbers(level, key, spread=spread, seeds=seeds) for key, (arm, level) in enumerate(levels.items(), 1)}
    steps = np.tile(np.arange(1.0, 6.0), (seeds, 1))
    return {
        arm: {"loss": one, "curve": one[:, None] - 0.2 * gap * steps, "steps": steps, "rate": np.full(seeds, 0.1),
              "ess": 5 + one, "capped": np.minimum(one, 1.0)}
        for arm, one in loss.items()
    }  # fmt: skip


TESTS = {
    "better": {"baseline": "theirs"}, "margin": {"baseline": "theirs", "margin": 0.4},
    "no worse": {"baseline": "theirs", "margin": -0.2},
    "share": {"baseline": "theirs", "margin": 0.2, "relative": True},
    "higher": {"baseline": "theirs", "better": "higher"}, "trivial": {"baseline": "theirs", "trivial": "still"},
    "equal": {"kind": "equal", "baseline": "theirs", "margin": 0.5},
    "equal share": {"kind": "equal", "baseline": "theirs", "margin": 0.3, "relative": True},
    "at most": {"kind": "bound", "at_most": 1.3}, "at least": {"kind": "bound", "at_least": 0.9, "trivial": "still"},
    "within": {"kind": "bound", "at_least": 0.5, "at_most": 1.5, "unit": "nats"},
    "falls": {"kind": "trend", "metric": "curve", "against": "steps"},
    "rises": {"kind": "trend", "metric": "curve", "against": "steps", "better": "higher", "margin": 0.05},
    "slope": {"kind": "trend", "metric": "curve", "against": "steps", "at_least": -0.3, "at_most": 0.3},
}  # fmt: skip
DATA = {
    "clear": arms_of(1.0), "even": arms_of(0.0), "against": arms_of(-1.0), "noisy": arms_of(0.5, spread=1.5),
    "few": arms_of(1.0, seeds=4), "two": arms_of(1.0, seeds=2), "many": arms_of(0.2, seeds=34),
}  # fmt: skip


def claim_of(name, **facts):
    return Claim(name, f"{name} holds", **{"metric": "loss", "method": "ours", "role": "stand-in"} | facts)


def told(one):
    """Everything that a verdict says, without the names."""
    kept = ("verdict", "seeds", "effect", "low", "high", "p", "p_raw", "effect_size", "improvement", "guard", "centre",
            "reason")  # fmt: skip
    return [getattr(one, name) if getattr(one, name) == getattr(one, name) else "nan" for name in kept]


@pytest.mark.parametrize("data", DATA)
def test_verdicts_of_every_kind_of_claim(recorded, data):
    tests = {name: TESTS[name] for name in ("better", "equal", "at most")} if data == "many" else TESTS
    claims = [claim_of(name, **facts) for name, facts in tests.items()]
    drafts = [draft(claim, DATA[data]) for claim in claims]
    for one, verdict in zip(claims, decide(drafts, len(drafts)), strict=True):
        recorded(one.name, told(verdict))
    recorded("alone", told(decide(drafts[:1], 1)[0]))
    looked = dataclasses.replace(drafts[0], looks=(5, 7))
    recorded("third look", told(decide([looked], 3, "of this run")[0]))
    if data == "clear":
        recorded("tests", {one.claim.name: one.test for one in drafts})
    measured = {one.name: measure(one, DATA[data]).to_json() for one in claims} if data in ("clear", "few") else {}
    for name, found in measured.items():
        recorded(f"{name}, measured", {n: v for n, v in found.items() if n != "effects" or data == "few"})


def test_verdicts_of_odd_numbers(recorded):
    odd = {
        "constant": np.full(10, 0.5), "zero": np.zeros(10), "nan": np.array([1.0] * 9 + [np.nan]),
        "infinite": np.array([1.0] * 9 + [np.inf]), "huge": 1e300 * numbers(3.0, 4, seeds=10),
        "tiny": 1e-300 * numbers(3.0, 4, seeds=10), "outlier": np.array([1.0 + 0.01 * i for i in range(9)] + [1e6]),
        "halves": np.array([1.0, -1.0] * 5), "nearly": np.array([1.0] * 9 + [1.0 + 1e-12]), "one": np.array([2.0]),
    }  # fmt: skip
    chosen = {"better": TESTS["better"], "at most": {"kind": "bound", "at_most": 0.7}, "equal": TESTS["equal"]}
    for name, values in odd.items():
        arms = {"ours": {"loss": np.zeros(len(values)) if name != "huge" else -values}, "theirs": {"loss": values}}
        arms["ours"] = {"loss": values} if name == "one" else arms["ours"]
        for kind, facts in chosen.items():
            facts = facts | {"method": "theirs"} if kind == "at most" else facts
            found = draft(claim_of(kind, **facts), arms)
            recorded(f"{name}, {kind}", told(decide([found], 1)[0]))


def test_what_holds_a_claim_back(recorded):
    arms = DATA["clear"]
    guards = {
        "limit": Guard("limit", "loss", low=0.0, high=5.0), "at its limit": Guard("limit", "capped", high=1.0),
        "grid": Guard("grid", "rate", low=0.1, high=0.5), "inside": Guard("grid", "rate", low=0.01, high=0.5),
        "effective": Guard("effective", "ess", low=7.0), "enough": Guard("effective", "ess", low=1.0),
        "of theirs": Guard("grid", "rate", low=0.1, high=0.5, arms=("theirs",)),
        "not there": Guard("limit", "x", low=0.0),
        "another claim": Guard("grid", "rate", low=0.1, claims=("other",)),
        "not reported": Guard("effective", "x", low=1.0, claims=("better",)),
    }  # fmt: skip
    for name, guard in guards.items():
        metric = {"metric": "capped"} if "limit" in name else {}
        claim = claim_of("better", baseline="theirs", **metric)
        found = draft(claim, arms, [guard])
        recorded(name, [found.guard, found.void, told(decide([found], 1)[0])[0]])
        against = draft(claim, DATA["against"], [guard])
        recorded(f"{name}, against", [against.guard, against.void, told(decide([against], 1)[0])[-1]])
    worse = {"ours": arms["still"], "theirs": arms["theirs"], "still": arms["ours"]}
    for role in ("check", "headline"):
        claim = claim_of("better", baseline="theirs", trivial="still", role=role)
        effects = np.full(10, 0.25)
        recorded(f"trivial, {role}", [list(one) for one in held_back(claim, worse, effects)])
    recorded(
        "shared", held_back(claim_of("b", kind="bound", at_most=1.0), arms, [0.5] * 8 + [0.6, 0.7], (), (0.5, 0.5))
    )


def test_results_of_a_paper_with_all_their_fields(recorded):
    claims = (
        *(claim_of(name, **facts) for name, facts in TESTS.items()), claim_of("which", kind="question"),
        claim_of("course", kind="question", metric="curve"), claim_of("lost", baseline="theirs"),
    )  # fmt: skip
    made = toys.experiment(
        arms=tuple(Arm(name) for name in ("ours", "theirs", "still")), claims=claims, curves=(), over="data sets",
        scales={"desk": Scale(seeds=10, rates=(0.1, 0.5))},
        guards=(Guard("grid", "rate", grid="rates", claims=("margin",)),),
    )  # fmt: skip
    paper = toys.paper(made)
    arms = {name: metrics | {"wall_over_cpu": np.array([1.0, 1.4])} for name, metrics in DATA["clear"].items()}
    seconds = {"ours": 1.23456, "theirs": 2.0}
    observed = Observed(made, claims, arms, seconds, {"better": (5,), "equal": (3, 4)})
    facts = {"scale": "desk", "machine": "an abacus", "run": 3, "started": "2031-01-01"}
    results = judge(paper, [observed], **facts)
    for one in results[:1] + results[5:6] + results[-3:]:
        recorded(one.name, {n: v for n, v in one.to_json().items() if n != "measured"})
    recorded("words", [getattr(one, "verdict", "question") for one in results])
    recorded(
        "again", [Result.from_json(json.loads(json.dumps(one.to_json()))).to_json() == one.to_json() for one in results]
    )
    lost = judge(paper, [dataclasses.replace(observed, arms={"ours": arms["ours"]})], **facts)
    recorded("without theirs", [[one.name, getattr(one, "verdict", "question"), one.reason] for one in lost])
    own = judge(paper, [dataclasses.replace(observed, claims=claims[:2])], **facts | {"problem": "mine.py:Mine"})
    recorded("own", [[one.family, one.reason] for one in own if isinstance(one, ClaimResult)])
    found = [one for one in results if isinstance(one, ClaimResult)]
    recorded("roles", {role: len(mine) for role, mine in by_role(found).items()})
    recorded("tally", tally(found))
    for one in found:
        words = [centre(one), interval(one), means(one), rival(one), looks(one), busy(one), one.price, one.weak_rival]
        recorded(f"{one.name}, in words", words)


def test_answers_to_questions(recorded):
    claim = claim_of("which", kind="question")
    arms = DATA["few"] | {"lost": {"loss": np.array([1.0, np.nan, 2.0, np.inf])}}
    recorded("scalar", [dataclasses.asdict(one) for one in answers(claim, arms)])
    vector = answers(dataclasses.replace(claim, metric="curve"), DATA["two"])
    recorded("vector", [dataclasses.asdict(one) for one in vector[:1]])


def test_who_is_best(recorded):
    cases = {
        "clear": DATA["clear"], "even": DATA["even"], "few": DATA["few"], "alone": {"ours": DATA["clear"]["ours"]},
        "lost": DATA["clear"] | {"theirs": {"loss": np.array([np.nan] * 3 + [1.0])}},
        "nobody": {"ours": {"loss": np.array([np.nan, 1.0])}},
        "other seeds": {"ours": DATA["few"]["ours"], "theirs": DATA["two"]["theirs"]},
        "level": {name: {"loss": np.full(6, 3.0)} for name in ("ours", "theirs", "still")},
    }  # fmt: skip
    claims = (claim_of("a", baseline="theirs", unit="nats"), claim_of("b", kind="bound", at_least=1.0, metric="capped"),
              claim_of("c", kind="question"))  # fmt: skip
    guards = (Guard("limit", "capped", high=1.0), Guard("limit", "loss", high=3.0))
    made = toys.experiment(
        arms=tuple(map(Arm, ("ours", "theirs", "still", "x"))), claims=claims, guards=guards, curves=()
    )
    for name, arms in cases.items():
        for one in standings("toy", made, claims, arms, made.scales["desk"]):
            recorded(f"{name}, {one.metric}", [one.to_json(), one.level_ground, best_here(one)])


def test_statistics(recorded):
    samples = {
        "seven": numbers(0.4, 5, seeds=7), "twenty": numbers(0.1, 6, seeds=20), "forty": numbers(0.1, 7, seeds=40),
        "skewed": np.exp(numbers(0.0, 8, spread=1.0, seeds=12)), "two": np.array([1.0, 3.0]), "same": np.full(5, 2.0),
    }  # fmt: skip
    for name, x in samples.items():
        p = [statistics.sign_flip(x, side) for side in ("greater", "less")]
        p += [statistics.sign_test(x, side) for side in ("greater", "less")]
        ends = [*statistics.interval(x), *statistics.interval(x, 0.9), *statistics.interval(x, expanded=False)]
        more = [*statistics.median_interval(x), statistics.effect_size(x), statistics.probability_of_improvement(x)]
        recorded(name, [float(value) for value in (*p, *ends, *more)])
    recorded("smallest", {n: statistics.smallest_p(n) for n in (1, 2, 5, 10, 30, 31, 100)})
    recorded("holm", [statistics.holm([0.01, 0.04, 0.03, 0.5], n).tolist() for n in (None, 4, 10)])
    recorded("slopes", statistics.slopes([[1.0, 3.0, 5.5], [0.0, -1.0, -2.0]], [0.0, 1.0, 2.0]).tolist())


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_records_of_a_full_store(recorded, store, full):
    papers = made_home.papers()
    recorded(
        "board",
        [[str(one.id), one.verdict, one.run, one.reference, one.effect] for one in board_results(store, papers)],
    )
    recorded("own", [[str(one.id), one.verdict, one.problem, one.run] for one in own_results(store, papers)])
    for paper, run in itertools.product(papers, (None, 3, 7)):
        found = paper_results(store, paper, run)
        recorded(
            f"{paper.id}, {run}", [[one.name, getattr(one, "verdict", "?"), one.scale, one.seeds] for one in found]
        )
    record = paper_record(papers[-1])
    recorded("paper", {name: record[name] for name in ("cost", "deviations", "venue", "year", "meaning")})
    runs = {n: store.run(n) for n in (1, 2, 5, 6)}
    for first, second in ((1, 5), (1, 2), (2, 6)):
        rows = compare_runs(store, papers, first, second)
        recorded(f"{first} and {second}", [[str(one.id), one.change, one.low, one.high, one.differs] for one in rows])
        recorded(f"{first} unlike {second}", differing(runs[first], runs[second]))  # pyright: ignore[reportArgumentType]
    rows = list(observation_rows(store, 4))
    recorded("rows", [len(rows), rows[0], rows[len(rows) // 2], rows[-1]])
    recorded(
        "standings", [[one.metric, [place.arm for place in one.places]] for one in run_standings(store, papers, 6)]
    )
    recorded("counts", store.counts())
    recorded("run", store.run(7))
    cell = dict(store.run_cells(3)[4])
    recorded("cell", {name: value for name, value in cell.items() if name != "fingerprint"})
    recorded("words", {run: sorted(words) for run, words in store.words([1, 3, 7]).items()})
    history = store.history("toy/lower", "default")
    recorded("history", [[one.run, one.started, one.scale, one.seeds, one.looks, one.remeasured] for one in history
                         if isinstance(one, ClaimResult)])  # fmt: skip
    recorded("looks", [store.earlier_looks("toy/lower", "default", "smoke", n) for n in (10, 13, 99)])
    cells = sorted(
        store.measured_cells(), key=lambda one: (one["experiment"], one["arm"], one["scale"], one["seconds"])
    )
    recorded("measured", [[one["arm"], one["scale"], one["count"], one["seconds"], one["memory"]] for one in cells[:9]])
    recorded("complaint", [store.complaint(), store.complaint(thorough=True), store.unreadable(), store.living_runs()])


def test_speed_beside_peers(recorded, store):
    rows = store.benchmarks()
    recorded("rows", [len(rows), rows[0]])
    recorded("latest", [[one["peer"], one["ratio"]] for one in latest_rows(rows)])
    new = dict(rows[1])
    for machine in ("an abacus, 2 cores", "another"):
        found = last_row(rows, new, machine)  # pyright: ignore[reportArgumentType]
        recorded(machine, found and [found["measured"], found["ratio"]])
    for name, change in {
        "same": {}, "slower": {"ratio": 20.0, "low": 19.0, "high": 21.0}, "noise": {"ratio": 38.0, "high": 39.0},
        "other version": {"peer_version": "2.0", "ours_s": 0.02, "ours_low": 0.019, "ours_high": 0.021},
        "no peer": {"ratio": None, "low": None, "high": None, "ours_low": 0.0125},
        "gone": {"ratio": None, "ours_low": 0.1},
    }.items():  # fmt: skip
        recorded(name, slow_down(new | change, rows[1]))  # pyright: ignore[reportArgumentType]
    recorded("first", slow_down(new, None))  # pyright: ignore[reportArgumentType]


def test_ledgers_and_references(recorded, full):
    toy = made_home.paper_of("toy")
    recorded("history", {name: [vars(line) | {"digest": ""} for line in lines] for name, lines in
                         itertools.islice(ledger.history("toy").items(), 3)})  # fmt: skip
    recorded("summary", [[ledger.summary(lines, reasons) for reasons in (True, False)]
                         for lines in itertools.islice(ledger.history("toy").values(), 5)])  # fmt: skip
    entry = ledger.Entry("2030-01-01", "c", "d", "why", "after", "here")
    recorded("late", ledger.summary([entry, entry, dataclasses.replace(entry, results="before")]))
    recorded("missing", sorted(ledger.missing(toy)))
    known = made_home.paper_of("known")
    changed = dataclasses.replace(known.experiments[0].claims[0], margin=0.75)
    mine = dataclasses.replace(known.experiments[0], claims=(changed, *known.experiments[0].claims[1:]))
    recorded("changed", [list(ledger.missing(dataclasses.replace(known, experiments=(mine,)))),
                         list(references.reference(dataclasses.replace(known, experiments=(mine,))))])  # fmt: skip
    shipped = references.reference(known)
    recorded(
        "shipped",
        {name: {n: v for n, v in one.to_json().items() if v not in (None, "", [], 0)} for name, one in shipped.items()},
    )
    recorded("line", json.loads(references.line_of(shipped["known/better"], "digest", "laureate 9")))
    decisive = ledger.decisive(toy.experiments[0], toy.experiments[0].claims[0])
    recorded("decisive", json.loads(plain_words(json.dumps(decisive), full.places())))
    failed = ClaimResult(id=ClaimId("known", "better"), experiment="toy", statement="s", kind="better", reason="failed")
    found = references.with_reference(known, {"known/better": failed})
    recorded("hidden", [found["known/better"].reference, sorted(found)])


def test_files_to_fill_in(recorded):
    for paper_id in ("pes", "gibbs-with-gradients", "directpred"):
        paper = declared_paper(paper_id)
        taking = [one for one in paper.experiments if one.accepts]
        recorded.text(f"skeleton-{paper_id}.py.txt", skeleton(paper, taking, "mine.py"))
        recorded(paper_id, {one.name: [want.words for want in wanted(one)] for one in taking[:2]})
        recorded(f"{paper_id}, scale", first_scale(taking))


def test_what_the_doctor_finds(recorded, store, full, monkeypatch):
    monkeypatch.setattr("laureate.lab.running.diagnosis.environment", lambda: dict(made_home.plain_words.FACTS))
    monkeypatch.setattr("laureate.lab.running.diagnosis.cores", lambda: 2)
    monkeypatch.setattr("laureate.lab.running.diagnosis.find", lambda name: None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS", "PJRT_NPROC"):
        monkeypatch.delenv(name, raising=False)
    found = diagnose(store)
    found["versions"].pop("to be replaced", None)
    store_size = found["folders"]["store"].partition(" (")[0]
    found["folders"] |= {"store": store_size}
    recorded("found", json.loads(plain_words(json.dumps(found), full.places())))


def test_numbers_in_words(recorded):
    values = (0.0, -0.0, 1.0, -1.0, 0.1234567, 99.95, 999.5, 1234.5, 1e5, 1e-5, 123456789.0, -4.2e-9, 1e300,
              float("nan"), float("inf"))  # fmt: skip
    recorded("number", {repr(value): [number(value), number(value, 2), number(value, 5)] for value in values})
    seconds = (None, 0.0, 0.004, 0.994, 0.996, 1.0, 9.94, 9.96, 10.0, 99.4, 99.6, 100.0, 5999.0, 6000.0, 86_400.0, 1e7)
    recorded("duration", {str(value): duration(value) for value in seconds})
    recorded("label", [problem_label(one) for one in ("default", "/a/b/mine.py:X", "mine.py:X")])


# -- what is refused ---------------------------------------------------------------------------------------------------

ARMS = (Arm("a"), Arm("b"))
SCALE = {"desk": Scale(seeds=3, rates=(1.0, 2.0))}
BETTER = claim_of("c", method="a", baseline="b")


def experiment_of(**facts):
    return Experiment(
        **{"name": "e", "title": "t", "trial": "m:f", "arms": ARMS, "scales": SCALE, "claims": (BETTER,)} | facts
    )


def paper_of(**facts):
    about = {"id": "p", "area": "a", "problem": "p", "idea": "i", "equation": "e", "example": "x"}
    return Paper(**about | {"experiments": (experiment_of(),)} | facts)


REFUSED = {
    "seeds": lambda: Scale(seeds=0), "block": lambda: Scale(seeds=1, block=0), "role": lambda: claim_of("c", role="x"),
    "baseline": lambda: claim_of("c"), "equal": lambda: claim_of("c", kind="equal", baseline="b"),
    "bound": lambda: claim_of("c", kind="bound"), "trend": lambda: claim_of("c", kind="trend"),
    "margin": lambda: claim_of("c", kind="bound", at_most=1.0, margin=-1.0),
    "relative": lambda: claim_of("c", baseline="b", margin=-1.0, relative=True),
    "trivial": lambda: claim_of("c", kind="bound", at_least=0.0, at_most=1.0, trivial="b"),
    "guard grid": lambda: Guard("limit", "x", grid="rates"), "guard ends": lambda: Guard("limit", "x"),
    "guard low": lambda: Guard("effective", "x", high=1.0),
    "guard arms": lambda: experiment_of(guards=(Guard("limit", "x", low=0.0, arms=("z",)),)),
    "guard claims": lambda: experiment_of(guards=(Guard("limit", "x", low=0.0, claims=("z",)),)),
    "guard setting": lambda: experiment_of(guards=(Guard("grid", "x", grid="none"),)),
    "arms": lambda: experiment_of(arms=(Arm("a"), Arm("a"))), "arm": lambda: experiment_of(arms=(Arm("a"),)),
    "data": lambda: experiment_of(over="data sets", data=("mnist",)),
    "data scales": lambda: experiment_of(data={"smoke": ("mnist",)}),
    "scales": lambda: experiment_of(scales={"giant": Scale(seeds=2)}),
    "claims": lambda: paper_of(experiments=(experiment_of(), experiment_of(name="f"))),
    "film": lambda: paper_of(films=(Film("f", "t", "m:f", "e", ("z",), "s"),)),
    "setting": lambda: Settings({"a": 1}).b, "frozen": lambda: setattr(Settings({"a": 1}), "a", 2),
    "verdict": lambda: Verdict(verdict="perhaps"),
    "question": lambda: draft(claim_of("q", kind="question"), DATA["few"]),
    "relative bound": lambda: draft(claim_of("q", kind="bound", at_most=1.0, relative=True), DATA["few"]),
    "no arm": lambda: draft(claim_of("c", method="z", kind="bound", at_most=1.0), DATA["few"]),
    "no metric": lambda: draft(claim_of("c", metric="z", kind="bound", at_most=1.0), DATA["few"]),
    "vector": lambda: draft(claim_of("c", metric="curve", kind="bound", at_most=1.0), DATA["few"]),
    "no vector": lambda: draft(claim_of("c", kind="trend", against="steps"), DATA["few"]),
    "no seeds": lambda: draft(claim_of("c", kind="bound", at_most=1.0), {"ours": {"loss": np.zeros(0)}}),
    "unpaired": lambda: draft(claim_of("c", baseline="theirs"), DATA["few"] | {"theirs": DATA["two"]["theirs"]}),
    "entry": lambda: ledger.Entry("d", "c", "", "why", "never", "x"),
    "reason": lambda: ledger.Entry("d", "c", "", "  ", "before", "x"),
    "no scale": lambda: scale_of(experiment_of(), "full"), "no words": lambda: select([], ["p"], lambda _: paper_of()),
    "no file": lambda: check_file("mine"), "no such file": lambda: check_file("none.py:x", "laureate race"),
}  # fmt: skip


def test_what_is_refused_and_in_which_words(recorded, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, call in REFUSED.items():
        with pytest.raises((ValueError, AttributeError, UserError)) as error:
            call()
        recorded(
            name, plain_words(f"{type(error.value).__name__}: {error.value}", {"HERE": tmp_path, "THERE": Path.cwd()})
        )
    recorded("curve", dataclasses.asdict(Curve("y", "x", "t")))
