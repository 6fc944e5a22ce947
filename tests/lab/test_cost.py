"""Cost on paper: from what was measured, and said so where it was not."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import toys
from laureate import papers
from laureate.cli import cli
from laureate.lab.cell import Outcome
from laureate.lab.claim import Scale
from laureate.lab.running.cost import Estimate, estimate, makespan
from laureate.lab.running.plan import plan

SCALES = {
    "smoke": Scale(seeds=10, block=5, cost=2.0, draws=8),
    "desk": Scale(seeds=20, block=10, cost=30.0, draws=8),
    "full": Scale(seeds=40, block=10, cost=1200.0, draws=16),
}
MIB = 2**20


@pytest.fixture
def paper():
    return toys.paper(toys.experiment(scales=SCALES))


def measure(store, paper, scale, seconds, memory=300 * MIB, arms=("ours", "theirs", "third")):
    """Every cell of these arms at the scale took so many seconds, a quarter of them to compile."""
    run = store.start_run("test", scale, 10, "default", {})
    for cell in plan(toys.selections(paper), scale):
        if cell.arm in arms:
            outcome = Outcome({"loss": np.zeros(cell.count)}, 0.75 * seconds, 0.25 * seconds, memory=memory)
            store.add_cell(run, cell, outcome)
    store.end_run(run, "finished")


def only(store, paper, scale):
    (found,) = estimate(store, toys.selections(paper), scale)
    return found


def test_nothing_measured_is_what_was_declared(store, paper):
    found = only(store, paper, "full")
    assert (found.basis, found.memory, found.kept) == ("declared", None, 0)
    assert len(found.seconds) == 3 * 4
    assert found.core_hours == pytest.approx(2 * 1200 / 3600), "declared on two cores"


def test_a_part_of_an_experiment_costs_its_part_of_what_was_declared(store, paper):
    (some,) = estimate(store, toys.selections(paper, "toy/better"), "full")
    assert some.basis == "declared"
    assert some.seconds == some.left == pytest.approx(only(store, paper, "full").seconds[:8])  # of two arms of three


def test_measured_at_the_scale_itself(store, paper):
    measure(store, paper, "desk", 7.0)
    found = only(store, paper, "desk")
    assert (found.basis, found.memory, found.kept) == ("measured", 300 * MIB, 6)
    assert found.seconds == pytest.approx((7.0,) * 6)


def test_extrapolated_by_the_ratio_of_the_declared_costs_from_the_largest_measured_scale(store, paper):
    measure(store, paper, "smoke", 100.0)
    measure(store, paper, "desk", 7.0)
    found = only(store, paper, "full")
    assert (found.basis, found.basis_scale, found.kept) == ("extrapolated", "desk", 0)
    assert len(found.seconds) == 12
    assert sum(found.seconds) == pytest.approx(6 * 7.0 * 1200 / 30)
    assert found.memory == 300 * MIB


def test_an_arm_that_was_never_measured_leaves_the_scale_out(store, paper):
    measure(store, paper, "smoke", 2.0)
    measure(store, paper, "desk", 7.0, arms=("ours", "theirs"))
    assert only(store, paper, "full").basis_scale == "smoke"
    (some,) = estimate(store, toys.selections(paper, "toy/better"), "full")
    assert (some.basis_scale, len(some.seconds)) == ("desk", 8)


def test_every_block_of_the_arms_that_are_asked_for_counts_and_no_other(store, paper):
    """Seconds by arm, memory of the largest: recomputed from cells that are all different."""
    rng, run = np.random.default_rng(0), store.start_run("test", "desk", 20, "default", {})
    seconds, memory = {}, {}
    for cell in plan(toys.selections(paper), "desk"):
        key = cell.arm, cell.start
        seconds[key], memory[key] = (
            rng.uniform(1, 9, 2),
            int(rng.integers(1, 9) * MIB * (9 if cell.arm == "third" else 1)),
        )
        store.add_cell(run, cell, Outcome({"loss": np.zeros(cell.count)}, *seconds[key], memory=memory[key]))
    store.end_run(run, "finished")
    (found,) = estimate(store, toys.selections(paper, "toy/better"), "full")
    asked = ("ours", "theirs")
    a_seed = {arm: sum(seconds[arm, start].sum() for start in (0, 10)) / 20 for arm in asked}
    ratio = 1200 / 30 * 20 / 40  # the declared costs, of twice as many seeds
    expected = [10 * a_seed[cell.arm] * ratio for cell in plan(toys.selections(paper, "toy/better"), "full")]
    assert found.seconds == pytest.approx(expected)
    assert found.left == found.seconds
    assert found.memory == max(memory[key] for key in memory if key[0] in asked)
    (whole,) = estimate(store, toys.selections(paper), "full")
    assert whole.memory == max(memory.values())


@pytest.mark.parametrize("scale", ["smoke", "desk", "full"])
@pytest.mark.parametrize("kept", [(0,), (1, 4), (5,), (0, 2, 4), range(6)], ids=str)
def test_what_is_left_are_the_very_cells_that_lack(store, paper, scale, kept):
    """By older code all is measured, each arm with seconds of its own; what is kept is of today's."""
    seconds = {"ours": 1.0, "theirs": 20.0, "third": 300.0}
    run = store.start_run("test", "desk", 20, "default", {})
    for cell in plan(toys.selections(paper), "desk"):
        outcome = Outcome({"loss": np.zeros(cell.count)}, seconds[cell.arm], 0.0)
        store.add_cell(run, replace(cell, fingerprint=f"older {cell.fingerprint}"), outcome)
    cells = plan(toys.selections(paper), scale)
    for place in kept:
        cell = replace(cells[place], scale="elsewhere") if scale == "smoke" else cells[place]
        store.add_cell(run, cell, Outcome({"loss": np.zeros(cell.count)}, seconds[cell.arm], 0.0))
    found = only(store, paper, scale)
    assert found.kept == len(kept)
    lacking = [second for place, second in enumerate(found.seconds) if place not in kept]
    assert found.left == pytest.approx(tuple(lacking))
    assert found.to_json()["left_core_hours"] == pytest.approx(sum(lacking) / 3600)
    assert len(set(found.seconds)) == 3


def test_the_newest_computation_of_a_block_counts(store, paper):
    measure(store, paper, "desk", 70.0)
    measure(store, paper, "desk", 7.0)
    assert sum(only(store, paper, "desk").seconds) == pytest.approx(6 * 7.0)


def test_failed_cells_and_other_problems_do_not_count(store, paper):
    run = store.start_run("test", "desk", 10, "default", {})
    for cell in plan(toys.selections(paper), "desk"):
        store.add_cell(run, cell, Outcome(error="broken", seconds=1e6))
    for cell in plan(toys.selections(paper), "desk", problem=f"{toys.TRIALS}:Bowl"):
        store.add_cell(run, cell, Outcome({"loss": np.zeros(cell.count)}, 1e6))
    assert only(store, paper, "desk").basis == "declared"


def test_a_scale_without_a_declared_cost_cannot_be_extrapolated(store):
    paper = toys.paper(toys.experiment(scales=SCALES | {"full": Scale(seeds=40, draws=16)}))
    measure(store, paper, "desk", 7.0)
    found = only(store, paper, "full")
    assert (found.basis, found.core_hours) == ("declared", 0.0)


@pytest.mark.parametrize(
    ("seconds", "workers", "long"),
    [([1.0] * 6, 1, 6.0), ([1.0] * 6, 2, 3.0), ([1.0] * 6, 100, 1.0), ([5.0, 1, 1, 1, 1, 1], 2, 5.0)],
)
def test_how_long(seconds, workers, long):
    assert makespan(seconds, workers) == long


def test_the_command(store, paper, monkeypatch, capsys):
    monkeypatch.setattr(papers, "paper_ids", lambda: ["toy"])
    monkeypatch.setattr(papers, "paper", lambda _: paper)
    monkeypatch.setattr("laureate.lab.running.executors.cores", lambda: 2)
    measure(store, paper, "desk", 7.0)
    cli.main(["plan", "--all", "--scale", "full", "--json"], standalone_mode=False)
    told = SimpleNamespace(**json.loads(capsys.readouterr().out))
    (row,) = told.experiments
    assert (row["id"], row["cells"], row["basis"], row["memory_gib"]) == ("toy/toy", 12, "extrapolated", 0.293)
    hours = told.total["hours_on_machines"]
    assert told.total["core_hours"] == pytest.approx(6 * 7.0 * 40 / 3600)
    assert hours["1"] == pytest.approx(told.total["core_hours"] / 2)
    assert hours["16"] == hours["256"] == pytest.approx(row["longest_cell_hours"])
    cli.main(["plan", "toy", "--scale", "full"], standalone_mode=False)
    said = capsys.readouterr().out
    assert "12 cells, 0 of them are in the store already; left: 12 cells, 28 min of computing" in " ".join(said.split())
    assert "measured at desk, times the ratio of the declared costs" in said
    assert "≥0.29 GiB" in said


def test_what_is_stored_costs_nothing_more(store, paper, monkeypatch, capsys):
    monkeypatch.setattr(papers, "paper_ids", lambda: ["toy"])
    monkeypatch.setattr(papers, "paper", lambda _: paper)
    monkeypatch.setenv("COLUMNS", "60")
    measure(store, paper, "desk", 60.0, arms=("ours", "theirs"))
    measure(store, paper, "smoke", 6.0)
    found = only(store, paper, "desk")
    assert (found.kept, len(found.left)) == (4, 2)
    cli.main(["plan", "toy"], standalone_mode=False)
    said = capsys.readouterr().out
    assert "6 cells, 4 of them are in the store already; left: 2 cells" in " ".join(said.split())
    assert all(len(line) <= 60 for line in said.splitlines())
    measure(store, paper, "desk", 60.0)
    cli.main(["plan", "toy"], standalone_mode=False)
    assert "computes nothing" in capsys.readouterr().out


def test_memory_is_that_of_the_largest_worker_and_a_bound_where_one_is_not_known(monkeypatch, capsys, store):
    """Workers take turns; what nobody measured may need more."""
    known = [Estimate(f"{name}/e", "desk", (1.0,), 0, gib << 30, "measured", "desk", (1.0,)) for name, gib in KNOWN]
    for more, sign in (((), ""), ((Estimate("a/f", "desk", (1.0,), 0, None, "declared", "", (1.0,)),), "≥")):
        found = [*known, *more]
        monkeypatch.setattr("laureate.lab.running.cost.estimate", lambda *_, found=found: found)
        cli.main(["plan", "--all", "--json"], standalone_mode=False)
        assert json.loads(capsys.readouterr().out)["total"]["memory_gib"] == 3
        cli.main(["plan", "--all"], standalone_mode=False)
        lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
        assert f" {sign}2.00 GiB" in lines["a"]
        assert " 3.00 GiB" in lines["b"]


KNOWN = (("a", 2), ("b", 3))
