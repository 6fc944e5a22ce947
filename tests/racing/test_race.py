"""A whole race with planted entrants: who wins, who fails, what is said, and that it can be taken up again."""

import importlib.util
import itertools
import json
import re

import numpy as np
import planted
import pytest

from laureate.lab.errors import UserError
from laureate.lab.running.stoppable import Stoppable
from laureate.pages.race import page, picture
from laureate.racing import objects, running
from laureate.racing.api import race
from laureate.racing.conclusion import Race, conclude
from laureate.racing.discipline import Metric
from laureate.racing.halving import FIRST_TUNING_SEED, TUNING_SEEDS
from laureate.racing.running import Course, Run, Scored
from laureate.racing.standing import Measured
from laureate.racing.table import lines

GRID = {"rate": (0.01, 0.1, 1.0, 10.0)}


@pytest.fixture
def here(monkeypatch):
    """File problems are raced in this process: no worker need be started to see what is computed."""
    made = running.make_executor
    monkeypatch.setattr(running, "Stoppable", lambda workers, cache, limit: made(1, cache))


def run(store, *entrants, problem=planted.course, **more):
    """A race among these."""
    return race(problem, among=[planted.discipline(*entrants)], store=store, **({"budget": 1000} | more))


REFERENCE = f"{planted.HERE}:course"


def test_the_planted_order_is_found_and_advised(store):
    found = run(store, planted.entrant("b", 2.0), planted.entrant("a", 1.0), planted.entrant("c", 4.0))
    assert found.standing.order == ("a", "b", "c")
    assert found.best == "a"
    assert all(pair.real for pair in found.standing.pairs)
    assert found.advice.startswith("Use a with")
    assert "really better than b and c" in found.advice
    assert found.to_json()["leaders"] == ["a"]


def test_the_metric_decides_which_way_is_up(store):
    found = run(store, planted.entrant("a", 1.0), planted.entrant("b", 2.0), metric="gain")
    assert found.best == "a"
    assert (found.rows[0].mean or 0) < 0


def test_twins_are_equal(store):
    twins = planted.entrant("one", 1.0, own=0), planted.entrant("two", 1.0, own=0, slow=0.25)
    assert "of the time" not in run(store, *twins).advice  # a hundredth of a second is no reason
    found = run(store, *twins, budget=100_000)
    assert found.standing.pair("one", "two").same
    assert {row.entrant for row in found.rows if row.leads} == {"one", "two"}
    assert "two" in found.advice
    assert "within noise and takes 0.25 of the time" in found.advice


def test_a_crash_and_a_nan_are_rows_and_stop_nobody(store):
    broken = planted.entrant("broken", 0.0, mood="crash"), planted.entrant("nan", 0.0, mood="nan")
    found = run(store, *broken, planted.entrant("sound", 1.0), planted.entrant("needy", 0.0, needs=("wings",)))
    status = {row.entrant: row.status for row in found.rows}
    assert status == {"sound": "finished", "nan": "diverged", "broken": "crashed", "needy": "stayed out"}
    assert found.best == "sound"
    assert found.rows[0].entrant == "sound"
    told = {row.entrant: " ".join(row.words) for row in found.rows}
    assert "planted to crash" in told["broken"]
    assert "1 of 10 seeds" in told["nan"]
    assert "wings" in told["needy"]
    table = {line.split()[0]: line for line in lines(found)}
    assert "level 0, mood crash" in table["broken"]  # with which settings it was
    assert table["needy"].split() == ["needy", "stayed", "out"]
    for name in ("broken", "nan", "needy"):
        assert name not in found.advice
        assert name not in found.codes


def test_a_crash_in_one_seed_is_a_crash(store):
    found = run(store, planted.entrant("late", 0.0, mood="crash-late"), planted.entrant("sound", 1.0))
    assert {row.entrant: row.status for row in found.rows} == {"sound": "finished", "late": "crashed"}
    assert "late" not in found.scores


def test_the_quickest_of_those_within_noise_is_named_first(store):
    names = {"first": 4.0, "quick": 0.5, "slow": 2.0}
    found = run(store, *(planted.entrant(name, 1.0, own=0, slow=slow) for name, slow in names.items()), budget=100_000)
    assert "quick with" in found.advice
    assert "takes 0.12 of the time; slow is within noise, too" in found.advice


def test_who_stands_at_a_limit_in_every_seed_is_told(store):
    loss = Metric("loss", "a planted loss", limits=(1.0,))
    ones, config = np.ones((3, 1)), {"level": 1.0, "mood": "", "slow": 1.0, "own": 1}
    scored = [
        Scored(planted.entrant(name, 1.0), config, Measured(ones, ones, np.array(losses)[:, None]), {}, 0.0, 0.0)
        for name, losses in {"there": [1.0, 1.0, 1.0], "once": [1.0, 2.0, 3.0]}.items()
    ]
    course = Course(planted.discipline(), (), "", (), {"length": 3}, {}, loss, 3, 1.0, points=1)
    found = conclude(course, Run(1, 1, 1.0, tuple(scored), 0, 0, "here"), {})
    told = {row.entrant: " ".join(row.words) for row in found.rows}
    assert "at 1, the limit of the metric, in every seed" in told["there"]
    assert "limit" not in told["once"]


def test_nobody_came_in(store):
    found = run(store, planted.entrant("broken", 0.0, mood="crash"))
    assert found.best is None
    assert "nothing to advise" in found.advice
    assert found.code == ""
    assert "broken" in str(found)
    assert "crashed" in page(found)


def test_settings_are_tuned_on_seeds_that_do_not_count(store):
    grid = {"rate": (0.1, 1.0, 10.0, 100.0)}  # the best is not the one that a pilot would take
    found = run(store, planted.entrant("tuned", 1.0, grid=grid), planted.entrant("plain", 3.0))
    assert found.rows[0].settings["rate"] == 1.0
    assert "chosen = planted('tuned', 1.0, 3, 1.0)" in found.code  # what was chosen, not what was tried first
    cells = store.run_cells(found.run)
    tuning = [cell for cell in cells if cell["start"] >= FIRST_TUNING_SEED]
    scoring = [cell for cell in cells if cell["start"] < FIRST_TUNING_SEED]
    assert tuning
    assert scoring
    assert {cell["start"] for cell in scoring} == {0, 5}
    assert all(cell["start"] + cell["count"] <= FIRST_TUNING_SEED for cell in scoring)
    assert {cell["arm"].split()[0] for cell in tuning} == {"tuned"}
    # Four settings with a quarter of the budget each, then two with a half, for every seed that tunes.
    assert {row.entrant: row.tuning_cost for row in found.rows} == {"tuned": TUNING_SEEDS * 2000, "plain": 0}


def test_too_few_seeds_call_nobody_within_noise(store):
    entrants = [planted.entrant(name, level) for name, level in (("a", 1.0), ("b", 1.1), ("far", 9.0))]
    found = run(store, *entrants, seeds=3)
    assert "3 seeds cannot tell 3 entrants apart, ask for 10" in found.advice
    assert "within noise" not in found.advice
    enough = run(store, *entrants)
    assert "far" not in enough.advice


def test_an_edge_of_a_grid_is_told(store):
    found = run(store, planted.entrant("edgy", 1.0, grid={"rate": (1.0, 10.0)}), planted.entrant("plain", 3.0))
    assert any("rate = 1 is the smallest that was tried" in word for word in found.rows[0].words)
    assert "look beyond" in found.advice


def test_the_same_budget_and_seeds_for_all(store):
    found = run(store, planted.entrant("a", 1.0, slow=50.0), planted.entrant("b", 1.1), budget=640, seeds=7)
    assert {row.cost for row in found.rows} == {640.0}
    assert {len(one) for one in found.scores.values()} == {7}


def test_seconds_become_one_budget_from_a_pilot(store):
    found = run(store, planted.entrant("a", 1.0), planted.entrant("slow", 1.0, slow=3.0), budget=0, seconds=1.0)
    # 1e-5 and 3e-5 s a stride, ten seeds each, no settings to tune: 1 s buys 2,500 of both.
    assert found.budget == 2500
    again = run(store, planted.entrant("a", 1.0), budget=0, seconds=2.0)
    assert again.budget == 20_000


def test_a_slow_entrant_does_not_eat_everybodys_time(store):
    names = [planted.entrant(name, 1.0) for name in "abc"]
    alone = run(store, *names, budget=0, seconds=1.0).budget
    with_snail = run(store, *names, planted.entrant("snail", 1.0, slow=1000.0), budget=0, seconds=1.0).budget
    assert with_snail > alone / 6


def test_a_repeated_race_computes_nothing(store, here):
    entrants = planted.entrant("a", 1.0, grid=GRID), planted.entrant("b", 2.0)
    first = run(store, *entrants, problem=REFERENCE)
    again = run(store, *entrants, problem=REFERENCE)
    assert first.cells["computed"] > 0
    assert again.cells["computed"] == 0
    assert again.scores == first.scores
    more = run(store, *entrants, problem=REFERENCE, seeds=15)
    assert more.cells["computed"] == 2
    assert more.scores["a"][:10] == first.scores["a"]


def test_what_was_kept_is_counted_beside_a_crash_which_is_computed_again(store, here):
    sound, broken = planted.entrant("a", 1.0, grid=GRID), planted.entrant("broken", 0.0, mood="crash")
    alone = run(store, sound, problem=REFERENCE).cells
    both = run(store, sound, broken, problem=REFERENCE).cells
    assert (alone["kept"], both["kept"]) == (0, alone["computed"])
    assert both["computed"] == 2  # ten seeds, five a cell
    assert run(store, sound, broken, problem=REFERENCE).cells == both


def test_an_interrupted_race_goes_on_where_it_was(store, here, monkeypatch):
    entrants = planted.entrant("a", 1.0, grid=GRID), planted.entrant("b", 2.0)
    whole = run(store, *entrants, problem=REFERENCE, fresh=True)
    add, kept = store.add_cell, []

    def stopping(number, cell, outcome):
        if len(kept) == 3:
            raise KeyboardInterrupt
        kept.append(add(number, cell, outcome))
        return kept[-1]

    other = [planted.entrant("a", 1.5, grid=GRID), planted.entrant("b", 2.0)]
    monkeypatch.setattr(store, "add_cell", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(store, *other, problem=REFERENCE)
    monkeypatch.setattr(store, "add_cell", add)
    assert store.run(store.last_run())["status"] == "interrupted"
    resumed = run(store, *other, problem=REFERENCE)
    assert resumed.cells["kept"] >= 3
    assert resumed.scores["b"] == whole.scores["b"]


def test_objects_are_never_taken_for_one_another(store, monkeypatch):
    """Nor where they have the same name, as the first objects of two processes do."""

    class Longer(planted.Course):
        length = 3

    monkeypatch.setattr(objects, "_numbers", itertools.repeat(0))
    first = run(store, planted.entrant("a", 1.0))
    second = run(store, planted.entrant("a", 1.0), problem=Longer())
    assert first.cells["computed"] == second.cells["computed"] > 0


def test_the_advice_names_only_what_was_measured(store):
    entrants = [planted.entrant(f"entrant-{i}", float(i % 2)) for i in range(4)]
    found = run(store, *entrants, only="entrant-1,entrant-3")
    assert {row.entrant for row in found.rows} == {"entrant-1", "entrant-3"}
    assert not any(name in found.advice for name in ("entrant-0", "entrant-2"))
    numbers = found.to_json()
    assert f"{numbers['budget']:,}" in found.advice


def test_everything_is_said_in_json_on_the_page_and_in_the_store(store):
    found = run(store, planted.entrant("a", 1.0), planted.entrant("<b>", 2.0), planted.entrant("c", 2.0, mood="crash"))
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [row["entrant"] for row in told["rows"]] == ["a", "<b>", "c"]
    assert told["pairs"][0]["real"] is True
    html = page(found)
    assert "&lt;b&gt;" in html
    assert "<b></td>" not in html
    assert html.count("<svg") >= 2
    assert "planted to crash" in html
    assert found._repr_html_().startswith('<div class="laureate-race">')
    kept = json.loads(store.artefact(found.run, "race.json"))
    assert kept["best"] == "a"
    assert Race.from_json(kept) == found
    assert store.artefact(found.run, "race.html").decode() == html


def test_equal_seconds_are_of_those_who_take_any_time(store):
    """At the moment when the quick one is done, the slow one is at a tenth of its cost, and worse there."""
    entrants = [
        planted.entrant("slow", 1.0, slow=10.0, own=0),
        planted.entrant("quick", 1.0001, own=0),
        planted.entrant("at-once", 9.0, slow=1e-6, own=0),
    ]
    found = run(store, *entrants, budget=64_000)
    assert found.moment == pytest.approx(0.64)
    assert found.best == "slow"
    assert found.by_seconds is not None
    assert found.by_seconds.order == ("quick", "slow", "at-once")
    assert "At equal seconds quick is really better" in found.advice
    assert run(store, *entrants, budget=64).moment is None


def test_budgets_that_double_are_looked_at_once_each(store):
    found = run(store, planted.entrant("a", 1.0), planted.entrant("b", 2.0), budget=3)
    assert [curve.cost for curve in found.curves] == [(1.0, 3.0)] * 2
    one = run(store, planted.entrant("a", 1.0), planted.entrant("b", 2.0), budget=1)
    assert [curve.cost for curve in one.curves] == [(1.0,)] * 2
    assert "<svg" not in page(one)  # nothing to draw, and no crash


def test_every_entrant_has_a_line_of_its_own(store):
    """Nine of them: eight colours, then dashes."""
    found = run(store, *(planted.entrant(f"e{i}", float(i)) for i in range(9)), seeds=2)
    drawn = re.findall(r'class="line ([^"]*)"', picture(found, "cost"))
    assert len(set(drawn)) == 9


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"metric": "los"}, "Did you mean loss"),
        ({"only": "b"}, "There is no 'b'"),
        ({"kind": "sampling"}, "There is no 'sampling'"),
        ({"seeds": 1}, "seeds must be >= 2"),
        ({"seconds": 0.0}, "seconds must be > 0"),
    ],
)
def test_wrong_words_are_told(store, more, said):
    with pytest.raises(UserError, match=said):
        run(store, planted.entrant("a", 1.0), **more)


def test_who_does_not_end_is_a_row_and_stops_nobody(store, monkeypatch):
    """In workers of their own: one that sleeps is stopped, one that dies is replaced, the third comes in.

    The time of who sleeps is over as soon as it begins, that of the others not before ten minutes.
    """

    def ready(self, real=Stoppable._ready):
        for one, (process, cell, began) in self._busy.items():
            if cell.arm.startswith("endless") and one not in self._starting:
                self._busy[one] = process, cell, began - self.limit
        return real(self)

    monkeypatch.setattr(Stoppable, "_ready", ready)
    entrants = [planted.entrant(mood, 0.0, mood=mood) for mood in ("endless", "dies")] + [planted.entrant("sound", 1.0)]
    found = run(store, *entrants, problem=REFERENCE, budget=0, seconds=1.0, seeds=5, workers=1, patience=600.0)
    status = {row.entrant: row.status for row in found.rows}
    assert status == {"sound": "finished", "endless": "endless", "dies": "crashed"}
    told = {row.entrant: " ".join(row.words) for row in found.rows}
    assert "Stopped after 600 s" in told["endless"]
    assert "worker died" in told["dies"]
    assert found.advice.startswith("Use sound")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Ray forks, of which jax warns
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_a_cluster_changes_no_number(store):
    """Crash and all; what a cluster has computed is kept, and needs none."""
    entrants = [
        planted.entrant("a", 1.0, grid=GRID),
        planted.entrant("b", 2.0),
        planted.entrant("c", 1.0, mood="crash"),
    ]
    spread = run(store, *entrants, problem=REFERENCE, on="ray", workers=2)
    assert spread.cells["computed"] > 0
    assert {row.entrant: row.status for row in spread.rows} == {"a": "finished", "b": "finished", "c": "crashed"}
    here = run(store, *entrants, problem=REFERENCE, workers=1, fresh=True)
    assert here.scores == spread.scores
    assert here.advice == spread.advice
    again = run(store, *entrants[:2], problem=REFERENCE, on="ray")
    assert again.cells["computed"] == 0
