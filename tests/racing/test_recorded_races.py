"""What races tell, whole: of the one that is stored, of planted numbers of every sort, and of one that is run."""

import dataclasses
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from widgets import Widget

import made_home
import plain_words
from laureate.cli._progress import LineProgress
from laureate.lab.cell import Outcome
from laureate.lab.errors import UserError
from laureate.lab.running.stoppable import ENDLESS
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.pages.race import fragment, page
from laureate.racing.api import race
from laureate.racing.code import filled, script, uses
from laureate.racing.conclusion import Race, conclude
from laureate.racing.discipline import Discipline, Entrant, Metric
from laureate.racing.disciplines import WITHOUT_RACE, disciplines
from laureate.racing.halving import best, rungs
from laureate.racing.kinds import detect
from laureate.racing.running import Course, Run, Scored, _two_digits
from laureate.racing.standing import Measured, enough_seeds, pareto, stand
from laureate.racing.table import leads
from plain_words import plain_words as plain
from plain_words import tags

STORED = json.loads(Path(__file__).with_name("stored_race.json").read_text("utf-8"))
WIDGETS = Path(__file__).with_name("widgets.py")
HOSTILE = made_home.HOSTILE
LOSS = Metric("loss", "a loss <of ours>", limits=(0.0, 1.0))
GAIN = Metric("gain", "a gain", "higher")
FACTOR = Metric("ess", "samples", "higher", log=True)
COSTS = np.array([125.0, 250.0, 500.0, 1000.0])


def course_of(metric, seeds, entrants=(), budget=1000, **more):
    discipline = Discipline(
        name="widgets", title="Which widget walks best?", kind="a widget", problem="widget", area="nowhere",
        needs={"length": "its length, a number", "__call__": "what it gives"}, offers={"colour": "which it has"},
        metrics=(LOSS, GAIN, FACTOR), unit="steps", entrants=tuple(entrants), trial=f"{WIDGETS}:trial",
        facts=f"{WIDGETS}:facts", script="chosen = {method}\nfor _ in range({budget}):\n    chosen(widget)\n",
        absent={"Old": "it is older"}, notes=("Numbers are made up.",),
    )  # fmt: skip
    facts = {"facts": {"length": 3}, "fragments": {"domain": "Binary()"}} | more
    return Course(
        discipline, tuple(entrants), "/elsewhere/mine.py:course", (), facts["facts"], facts["fragments"], metric, seeds,
        60.0, budget=budget, points=4, factory=more.get("factory", False), dictionary=more.get("dictionary", False),
    )  # fmt: skip


def measured(number, level, seeds, speed=1e-3, cut=(), lost=(), cost=COSTS, same=False):
    """Runs with these levels: a seed's luck is shared, the rest is the entrant's own."""
    shape = (seeds, len(cost))
    noise = [[made_home.drawn(seed, 0) + 0.3 * made_home.drawn(seed, number, at) for at in range(shape[1])]
             for seed in range(seeds)]  # fmt: skip
    quality = level * (1 + 100.0 / np.array(cost)) * np.exp(0.1 * (0.0 if same else 1.0) * np.array(noise))
    costs, seconds = (np.array(np.broadcast_to(np.array(cost) * one, shape)) for one in (1.0, speed))
    for seed, points in cut:
        for part in (quality, costs, seconds):
            part[seed, points:] = np.nan
    for seed in lost:
        quality[seed, -1] = np.nan
    return Measured(costs, seconds, quality)


def entrant(name, **grid):
    settings = grid or {"rate": (0.1, 0.5, 1.0), "scan": ("random", "fixed")}
    given = "".join(f", {one}={one}" for one in settings)
    return Entrant(name, f"Widget(widget, domain, length{given})", settings, natural={"count": "low"})


def raced(metric, found, *, seeds=10, absent=None, configs=None, **more):
    """The race of these runs; a text stands for an error."""
    scored = []
    for number, (name, one) in enumerate(found.items()):
        config = (configs or {}).get(name, {"rate": 0.5, "scan": "fixed"})
        grid = {n: v for n, v in {"rate": (0.1, 0.5, 1.0), "scan": ("random", "fixed"), "count": (1, 2)}.items()
                if n in config}  # fmt: skip
        made = entrant(name, **grid) if grid else Entrant(name, "Plain()")
        runs, error = (None, one) if isinstance(one, str) else (one, "")
        others = {"chosen_steps": np.full((seeds, 4), 7.0)} if name == "fitted" else {}
        scored.append(Scored(made, config, runs, others, 1.5 + number, 10.0 * number, error, "not end" in error))
    course = course_of(metric, seeds, **more)
    return conclude(course, Run(7, 1000, 2.0, tuple(scored), 5, 6, "an abacus"), absent or {})


def races():
    """Every sort of them."""
    m = measured
    twin = m(1, 2.0, 10)
    yield "many", raced(LOSS, {
        "near": m(1, 2.05, 10, 2e-4), "best": m(2, 2.0, 10), HOSTILE: m(3, 9.0, 10, 1e-6),
        "cut": m(4, 2.5, 10, cut=[(2, 3)]),
        "early": m(11, 3.0, 10, cut=[(s, 2) for s in range(10)]), "dear": m(5, 3.0, 10, cost=1.2 * COSTS),
        "thrifty": m(6, 3.0, 10, cost=0.3 * COSTS), "lost": m(7, 1.0, 10, lost=(4, 5)), "fitted": m(8, 2.2, 10, 5e-2),
        "crashed": "ValueError: no <wings>\nTraceback", "endless": f"{ENDLESS} 3 s: it did not end",
        "silent": "",
    }, absent={"out": "the problem does not offer colour"}, configs={
        "near": {"rate": 1.0}, "fitted": {"count": 1},
    })  # fmt: skip
    yield "twins", raced(LOSS, {"a": twin, "b": twin, "far": m(2, 20.0, 10)})
    yield "higher", raced(GAIN, {"a": m(1, 2.0, 10), "b": m(2, 4.0, 10, 1e-2), "c": m(3, 4.02, 10, 1e-2)})
    yield "factors", raced(FACTOR, {"a": m(1, 20.0, 10), "b": m(2, 400.0, 10), "c": m(3, 410.0, 10, 0.1)})
    yield "one", raced(LOSS, {"alone": m(1, 2.0, 10)}, configs={"alone": {}})
    yield "none", raced(LOSS, {"lost": m(1, 2.0, 10, lost=(0, 1, 2)), "crashed": "RuntimeError: no"})
    yield "few seeds", raced(LOSS, {"a": m(1, 2.0, 3), "b": m(2, 5.0, 3), "c": m(3, 9.0, 3)}, seeds=3)
    yield "limit", raced(dataclasses.replace(LOSS, limits=(2.2,)), {"a": m(1, 2.0, 10, same=True), "b": m(2, 4.0, 10)})
    yield "edge", raced(LOSS, {"a": m(1, 2.0, 10), "b": m(2, 9.0, 10)}, configs={"a": {"rate": 0.1, "scan": "random"}})
    yield "dictionary", raced(LOSS, {"a": m(1, 2.0, 10), "b": m(2, 2.3, 10)}, dictionary=True, factory=True)


RACES = dict(races())


@pytest.mark.parametrize("name", RACES)
def test_races_of_planted_numbers(recorded, name):
    found = RACES[name]
    recorded.text(f"{name.replace(' ', '-')}.txt", f"{found}\n\nLeads: {leads(found)}\n")
    told = found.to_json()
    kept = ("rows", "best", "leaders", "pareto", "envelope", "moment", "by_seconds", "pairs", "codes", "curves")
    for part in kept if name in ("many", "factors", "none") else ("best", "pareto", "envelope", "pairs"):
        recorded(part, told[part])
    recorded("fields", list(told))
    if name in ("many", "factors", "one", "none"):
        recorded.text(f"{name}.html", without_style(page(found)))


def without_style(whole):
    whole = re.sub(r"(<(style|script)[^>]*>).*?(</\2>)", r"\1...\3", whole, flags=re.DOTALL)
    return tags(re.sub(r"sha256-[A-Za-z0-9+/=]+", "sha256-HASH", whole))


def test_the_race_that_is_stored(recorded):
    found = Race.from_json(STORED)
    recorded.text("stored.txt", str(found) + "\n")
    recorded.text("stored.html", without_style(page(found)))
    recorded.text("stored-fragment.html", tags(fragment(found)))
    recorded("words", [pair.word for pair in found.standing.pairs])
    recorded("changed", {n: v for n, v in found.to_json().items() if v != STORED.get(n)})


def test_the_pieces_of_a_race(recorded):
    recorded("rungs", {n: [f"{size} × {share:g}" for size, share in rungs(n)] for n in (1, 2, 3, 5, 8, 9, 27)})
    recorded("seeds", {n: enough_seeds(n) for n in (1, 2, 3, 5, 8, 20)})
    recorded("digits", {str(x): _two_digits(x) for x in (0.3, 9.9, 10.0, 123.0, 98765.0, 1e9)})
    scores = {"a": [1.0, 2.0], "b": [float("nan"), 5.0], "c": [1.5, 1.5], "d": [], "e": [float("inf"), 3.0]}
    recorded("best", {keep: best(scores, keep) for keep in range(1, 6)})
    recorded("pareto", pareto({"a": 1.0, "b": 1.0, "c": 3.0}, {"a": 5.0, "b": 5.0, "c": 4.0}, LOSS))
    for metric in (LOSS, GAIN, FACTOR):
        recorded(metric.name, stand({"a": [1.0, 1.1, 0.9], "b": [2.0, float("nan"), 1.9]}, metric).to_json())
    course = course_of(LOSS, 10, facts={"smallest": 5, "largest": 70})
    recorded("course", [course.smallest, course.largest, course.costs(1000), course.costs(3), course.costs(1)])
    one = Entrant("e", "E(rate)", {"rate": (0.1, 1.0), "n": (1, 2, 3), "w": ("x", "y")}, natural={"n": "low"})
    recorded("configs", one.configs)
    recorded("default", one.default)
    recorded("edges", [one.edges(config) for config in one.configs])


def test_disciplines_and_their_code(recorded):
    for one in disciplines():
        recorded(one.name, [one.title, one.kind, one.problem, one.area, one.unit, one.smallest, one.one_shot, one.x64,
                            sorted(one.settings), [vars(metric) for metric in one.metrics], one.notes])  # fmt: skip
        names = set(re.findall(r"\{(\w+)\}", one.script)) | {"budget"}
        for number, mine in enumerate(one.entrants):
            values = dict.fromkeys(names, 7) | mine.default
            recorded(f"{one.name}, {mine.name}", [filled(mine.code, mine.default), uses(one, mine.code, mine.default)])
            if number == 0:
                for factory, dictionary, reference in ((False, False, "/a/mine.py:ours"), (True, True, "a.b:make")):
                    text = script(one, mine, values, {}, reference, factory, dictionary)
                    recorded(f"{one.name}, {reference}", text)
    recorded("without", WITHOUT_RACE)


def test_what_is_no_problem(recorded):
    odd = {
        "nothing": None, "number": 3, "empty": {}, "text": "x", "unknown": SimpleNamespace(colour=1),
        "near": {"lenght": 1, "start": lambda key: key, "num_catgories": 3},
        "many": dict.fromkeys("abcdefghijklmnop", 1),
        "function": lambda x: x, "class": SimpleNamespace, "missing one": SimpleNamespace(inputs=1, labels=2),
    }  # fmt: skip
    for name, problem in odd.items():
        with pytest.raises(UserError) as error:
            detect(problem, disciplines())
        recorded(name, str(error.value))


# -- one that is run ---------------------------------------------------------------------------------------------------


class Remembered:
    """An executor that computes nothing: levels by entrant and setting."""

    def __init__(self, *_):
        self.workers = 2

    def outcomes(self, cells):
        for cell in cells:
            settings, scale = cell.arm_settings, cell.scale_settings
            name = re.split(r"[ (]", cell.arm)[0]
            cost, points = int(scale["cost"]), int(scale["points"])
            if name == "endless":
                yield cell, Outcome(error=f"{ENDLESS} 3 s.")
            elif name == "crash" and scale["phase"] == "score":
                yield cell, Outcome(error="ValueError: planted to crash\nTraceback", seconds=1.0)
            else:
                costs = np.tile([max(1.0, cost >> k) for k in reversed(range(points))], (cell.count, 1))
                level = {"good": 1.0, "slow": 1.02, "bad": 4.0}.get(name, 2.0)
                level *= 1 + abs(np.log10(settings.get("rate", 1.0)))
                luck = [made_home.drawn(cell.start + seed, len(name)) for seed in range(cell.count)]
                loss = level * np.exp(0.1 * np.array(luck))[:, None] * (1 + 10 / costs)
                speed = {"slow": 1e-3}.get(name, 1e-4)
                metrics = {"loss": loss, "gain": -loss, "ess": 1 / loss, "cost": costs, "seconds": costs * speed}
                yield cell, Outcome(metrics | {"compile_seconds": np.full(cell.count, 0.2)}, 2.0, 0.5)

    def close(self):
        pass


@pytest.fixture
def started(tmp_path, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path / "home"))
    plain_words.stop_the_clock(monkeypatch)
    monkeypatch.setattr("laureate.racing.running.Stoppable", Remembered)
    monkeypatch.setattr("laureate.racing.running.make_executor", Remembered)
    monkeypatch.setattr("laureate.racing.running.environment", lambda: dict(plain_words.FACTS))
    monkeypatch.setattr("laureate.racing.running.cores", lambda: 2)
    store = Store(store_path())
    yield store
    store.close()


def entrants():
    rates = {"rate": (0.01, 0.1, 1.0)}
    return [entrant("good", **rates), entrant("slow", **rates), entrant("bad", rate=(0.5,)), Entrant("bare", "Bare()"),
            entrant("crash", **rates), Entrant("endless", "Endless()"),
            Entrant("red", "Red()", needs=("colour",))]  # fmt: skip


def started_race(store, problem=None, **options):
    mine = course_of(LOSS, 10, entrants()).discipline
    return race(problem or Widget(), among=[mine], store=store, **options)


def test_a_race_that_is_run(started, recorded, capsys):
    for name, options in {
        "seconds": {"seconds": 20.0}, "budget": {"budget": 64, "seeds": 10, "metric": "gain", "only": "good,bad"},
        "factors": {"budget": 64, "metric": "ess", "only": ["good", "slow", "bare"]},
    }.items():  # fmt: skip
        found = started_race(started, command=f"laureate race {name}", progress=LineProgress(), **options)
        recorded.text(f"run-{name}.txt", plain(f"{found}\n\n{capsys.readouterr().err}"))
        recorded(name, [found.budget, found.seeds, found.run, found.cells, found.machine])
        cells = started.run_cells(found.run)
        recorded(f"{name}, cells", [f"{one['arm']} {one['start']} {one['count']} {one['status']}" for one in cells])
    recorded("runs", [[run["command"], run["status"], run["scale"], run["problem"]] for run in started.runs()])


def test_a_race_that_cannot_be_run(started, recorded, tmp_path):
    (tmp_path / "mine.py").write_text("def broken():\n    return 1 / 0\n\nclass Needs:\n    def __init__(self, a, b):\n"
                                      "        pass\n\nnothing = object()\n", "utf-8")  # fmt: skip
    found = {}
    for name, (problem, options) in {
        "seconds": (None, {"seconds": 0.0}), "budget": (None, {"budget": -1}), "metric": (None, {"metric": "los"}),
        "only": (None, {"only": "god"}), "nobody": (None, {"only": "red"}), "kind": (None, {"kind": "widget"}),
        "seeds": (None, {"seeds": 1}), "too small": (Widget(smallest=500), {"budget": 3}),
        "absent": (Widget(absent={"good": "it is red"}), {"only": "good"}), "no kind": ({"a": 1}, {}),
        "lacks": ({"a": 1}, {"kind": "widgets"}), "file": ("none.py:x", {}), "name": (f"{tmp_path}/mine.py:other", {}),
        "broken": (f"{tmp_path}/mine.py:broken", {}), "class": (f"{tmp_path}/mine.py:Needs", {}),
        "no problem": (f"{tmp_path}/mine.py:nothing", {}), "all fail": (Widget(), {"only": "endless"}),
    }.items():  # fmt: skip
        try:
            started_race(started, problem, **options)
        except UserError as error:
            found[name] = plain(str(error), {"HERE": Path.cwd(), "FOLDER": tmp_path})
        else:
            found[name] = "no error"
    recorded("errors", found)
