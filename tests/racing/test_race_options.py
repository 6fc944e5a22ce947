"""What a race is asked for, and what a problem says of itself; the code to paste, wherever the problem is from."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import planted
import pytest

from laureate.lab.errors import UserError
from laureate.racing.api import race
from laureate.racing.code import script, uses
from laureate.racing.discipline import Entrant
from laureate.racing.halving import FIRST_TUNING_SEED, TUNING_SEEDS
from laureate.racing.objects import hold
from laureate.racing.results import RaceResult
from laureate.racing.table import leads


def run(store, problem, **more):
    entrants = planted.entrant("a", 1.0), planted.entrant("b", 2.0)
    return race(problem, among=[planted.discipline(*entrants)], store=store, **more)


def saying(**more):
    """A course that says so of itself."""
    made = planted.Course()
    vars(made).update(more=more)
    return made


def test_the_budget_is_what_is_asked_for_else_the_problems_own_else_what_fits_into_the_seconds(store):
    found = run(store, saying(budget=640))
    assert found.budget == 640
    assert {row.cost for row in found.rows} == {640.0}
    assert run(store, saying(budget=640), budget=100).budget == 100
    # 1e-5 s a stride, two entrants, ten seeds each.
    assert run(store, saying(), seconds=1.0).budget == 5000
    assert run(store, saying(largest=2000), seconds=1.0).budget == 2000
    assert run(store, saying(smallest=9000), seconds=1.0).budget == 9000
    assert run(store, saying(smallest=500), budget=500).budget == 500
    with pytest.raises(UserError, match="--budget must be at least 500 strides; got 499"):
        run(store, saying(smallest=500), budget=499)


def test_the_seconds_are_those_of_all_runs_that_tune_and_score(store):
    """By hand: of every rung all that are in, on every tuning seed, at their share of the budget."""
    share = {1: 0.0, 2: 2 * 1.0, 3: 3 * 0.5 + 2 * 0.5, 4: 4 * 0.25 + 2 * 0.5, 5: 5 * 0.125 + 3 * 0.25 + 2 * 0.5}
    entrants = [planted.entrant(f"e{count}", 1.0, grid={"rate": tuple(10.0 ** np.arange(count))}) for count in share]
    runs = sum(10 + TUNING_SEEDS * each for each in share.values())
    for seconds in (1.0, 7.0):
        found = race(saying(), among=[planted.discipline(*entrants)], store=store, seconds=seconds, seeds=10)
        exact = seconds / 1e-5 / runs
        assert 0.9 * exact <= found.budget <= exact * (1 + 1e-9)


@pytest.mark.parametrize("seeds", [2, 7])
def test_as_many_seeds_score_as_are_asked_for_and_the_first_ones(store, seeds):
    """Whole blocks are computed, for whoever asks for more."""
    found, more = (run(store, saying(), budget=100, seeds=number) for number in (seeds, 12))
    assert (found.seeds, found.standing.seeds) == (seeds, seeds)
    for name, scores in more.scores.items():
        assert found.scores[name] == scores[:seeds]


def test_who_does_not_fit_the_problem_stays_out_with_its_reason_unless_nobody_asked_for_it(store):
    found = run(store, saying(absent={"b": "it has no b"}), budget=100)
    assert [(row.entrant, row.status, row.words) for row in found.rows][1] == ("b", "stayed out", ("it has no b",))
    assert found.scores.keys() == {"a"}
    alone = run(store, saying(absent={"b": "it has no b"}), budget=100, only=["a"])
    assert [row.entrant for row in alone.rows] == ["a"]
    with pytest.raises(UserError, match="Nobody is left to run") as error:
        run(store, saying(absent={"b": "it has no b"}), budget=100, only="b")
    assert "b: it has no b" in str(error.value.remedy)


def test_a_setting_hides_a_fact_of_its_name(store):
    """What is tuned is what runs, whatever the problem says."""
    entrants = (planted.entrant("a", 1.0, grid={"rate": (0.01, 1.0)}),)
    found = race(saying(rate=0.01), among=[planted.discipline(*entrants)], store=store, budget=1000)
    assert found.rows[0].settings["rate"] == 1.0
    assert "planted('a', 1.0, 3, 1.0)" in found.code


def test_what_tuning_costs_is_what_was_run_for_it(store):
    """By hand, for each number of settings; what a rung has run already the next does not run again."""
    expected = {1: 0, 2: 2 * 1000, 3: 3 * 500, 4: 4 * 250 + 2 * 500, 5: 5 * 125 + 3 * 250 + 2 * 500}
    entrants = [planted.entrant(f"e{count}", 1.0, grid={"rate": tuple(10.0 ** np.arange(count))}) for count in expected]
    found = race(planted.Course(), among=[planted.discipline(*entrants)], store=store, budget=1000)
    cost = {row.entrant: row.tuning_cost for row in found.rows}
    assert cost == {f"e{count}": TUNING_SEEDS * each for count, each in expected.items()}
    tuning = [cell["arm"].split()[0] for cell in store.run_cells(found.run) if cell["start"] >= FIRST_TUNING_SEED]
    assert {name: tuning.count(name) for name in cost} == {"e1": 0, "e2": 2, "e3": 3, "e4": 6, "e5": 10}
    assert all(row.settings["rate"] == 1.0 for row in found.rows)


WAYS = list(itertools.product((False, True), (False, True), ("course", "mine")))


@pytest.mark.parametrize(("factory", "dictionary", "name"), WAYS)
def test_pasted_code_finds_the_problem_wherever_it_is_from(factory, dictionary, name, tmp_path, monkeypatch):
    """In a file or a module: itself or what makes it, an object or a dictionary, under the code's name or another."""
    value = "{'length': 3}" if dictionary else "SimpleNamespace(length=3)"
    made = f"def {name}():\n    return {value}\n" if factory else f"{name} = {value}\n"
    module = f"pasted_{factory}_{dictionary}_{name}"
    (tmp_path / f"{module}.py").write_text(f"from types import SimpleNamespace\n\n\n{made}")
    monkeypatch.syspath_prepend(tmp_path)
    discipline = replace(planted.discipline(), script="found = course.length + {method} + {more}\n")
    for where in (f"{tmp_path / module}.py:{name}", f"{module}:{name}"):
        code = script(discipline, Entrant("a", "rate"), {"rate": 20, "more": 100}, {}, where, factory, dictionary)
        scope: dict = {}
        exec(code, scope)
        assert scope["found"] == 123
    held = script(discipline, Entrant("a", "rate"), {"rate": 20, "more": 100}, {}, hold(1), factory, dictionary)
    scope = {"course": {"length": 3} if dictionary else SimpleNamespace(length=3)}
    exec(held, scope)
    assert scope["found"] == 123


def test_a_grid_is_tried_whole_and_its_middle_first():
    for grid, configs, default in (
        ({}, [{}], {}),
        ({"a": (1, 2, 3)}, [{"a": 1}, {"a": 2}, {"a": 3}], {"a": 2}),
        ({"a": (1, 2), "b": ("x", "y")}, [{"a": a, "b": b} for a in (1, 2) for b in "xy"], {"a": 2, "b": "y"}),
    ):
        entrant = Entrant("e", "f(a, b)", grid)
        assert (entrant.configs, entrant.default) == (configs, default)
    assert Entrant("e", "f(a, b)").names == {"f", "a", "b"}
    for wrong in ((), (2, 1), ("x", 1)):
        with pytest.raises(ValueError, match=r"must be words, or ascending numbers"):
            Entrant("e", "f(a)", {"a": wrong})
    words = Entrant("e", "f(a)", {"a": ("x", "y")}), Entrant("e", "f(a)", {"a": (True, False)})
    for entrant in (*words, Entrant("e", "f(a)", {"a": (1.0,)})):
        assert not any(entrant.edges(config) for config in entrant.configs)  # of words and of one there are none


def test_a_curve_has_half_as_many_points_where_each_is_a_run_of_its_own_and_a_run_says_what_it_was(store):
    for one_shot, points in ((True, 3), (False, 6)):
        discipline = replace(planted.discipline(planted.entrant("a", 1.0)), one_shot=one_shot)
        found = race(saying(), among=[discipline], store=store, budget=1000, seeds=7, command="laureate race it")
        assert len(found.curves[0].cost) == points
        record = store.run(found.run)
        told = [record[name] for name in ("scale", "seeds", "problem", "command", "status")]
        assert told == ["race", 7, "an object of this process", "laureate race it", "finished"]
        assert store.artefact(found.run, "race.json")
    broken = planted.discipline(planted.entrant("a", 1.0), planted.entrant("b", 1.0, mood="crash"))
    found = race(saying(), among=[broken], store=store, budget=10)
    assert store.run(found.run)["status"] == "failed"
    assert [row.status for row in found.rows] == ["finished", "crashed"]


def test_all_that_code_names_counts_for_its_fingerprint():
    """The names of its area, of whatever it is made; not of settings, of what is bound within, or of the problem."""
    discipline = replace(planted.discipline(), area="sampling", problem="energy")
    for code, names in {
        "Gibbs(energy, domain, num=n)": {"Gibbs", "domain"},
        "lambda key, f: f(Outer(Inner(key), jnp.ones(2)), max(n, 3))": {"Outer", "Inner"},
        "ParallelTempering(Gibbs(energy), jnp.linspace(1.0, n, 4))": {"ParallelTempering", "Gibbs"},
        "a.b.c(n)": {"a"},
    }.items():
        assert set(uses(discipline, code, {"n": 1})) == {f"laureate.sampling:{name}" for name in names}
    assert uses(discipline, "Siamese(optax.adam(n))", {"n": 1}) == ("laureate.sampling:Siamese", "optax:optax")


def test_who_led_from_which_budget_is_told_where_it_was_not_one():
    def told(*envelope):
        return leads(SimpleNamespace(envelope=envelope))  # pyright: ignore[reportArgumentType]

    assert told() == told((10, "a")) == told((10, "a"), (20, "a")) == ""
    assert told((10, "a"), (2000, "a"), (4000, "b"), (8000, "a")) == "a from 10, b from 4,000, a from 8,000"


def test_a_race_is_read_back_from_what_it_was_stored_as(store):
    found = run(store, saying(budget=640))
    assert RaceResult.from_json(found.to_json()).to_json() == found.to_json()
    assert found.best == "a"
