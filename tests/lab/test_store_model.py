"""The store beside a plain list of all that was written to it: every question has the answer that the list has."""

import random
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np

import toys
from laureate.lab.cell import Outcome
from laureate.lab.judging.results import ClaimId, ClaimResult, QuestionResult
from laureate.lab.running.plan import plan
from laureate.lab.storing import salvage
from laureate.lab.storing.schema import transaction
from laureate.lab.storing.store import Store

RUNS = 14


def filled(store):
    """Runs of random cells and results, some failed, some interrupted, some of cells of earlier ones: as lists."""
    draw = random.Random(0)
    base = plan(toys.selections(toys.paper()), "smoke")[0]
    runs, cells = [], {}
    for number in range(RUNS):
        scale, command = draw.choice(("smoke", "desk")), draw.choice(("laureate run toy", "laureate race"))
        run = store.start_run(command, scale, 10, "default", {"machine": f"cpu {number % 2}"})
        taken = draw.sample(sorted(cells), min(len(cells), draw.randrange(3)))
        taken = [i for i in taken if cells[i]["status"] == "done"]
        store.use_cells(run, taken)
        made = []
        for _ in range(draw.randrange(1, 4)):
            changes = {"arm": draw.choice(("ours", "theirs")), "start": draw.choice((0, 5)), "scale": scale}
            changes |= {"fingerprint": draw.choice("fg"), "problem": draw.choice(("default", "mine.py:bowl"))}
            changes |= {"paper": draw.choice(("toy", "other"))}
            cell = replace(base, **changes)
            seconds, compiling = draw.random(), draw.random()
            error = draw.choice(("", "", "", "it broke"))
            metrics = {} if error else {"loss": np.full(cell.count, draw.random())}
            i = store.add_cell(run, cell, Outcome(metrics, seconds, compiling, error, draw.choice((None, 7 << 20))))
            cells[i] = {"cell": cell, "status": "failed" if error else "done", "run": run, "took": seconds + compiling}
            made.append(i)
        results = [
            ClaimResult(
                id=ClaimId("toy", name), experiment="toy", statement="s", kind="better", scale=scale,
                verdict=draw.choice(("supported", "refuted")), effect=draw.choice((1.0, 2.0, float("nan"))),
                seeds=draw.choice((10, 20)),
            )
            for name in ("better", "worse")
        ]  # fmt: skip
        question = QuestionResult(id=ClaimId("toy", "which"), experiment="toy", statement="s", kind="question")
        store.add_results(run, [*results, question])
        status = draw.choice(("finished", "finished", "failed", "interrupted"))
        store.end_run(run, status)
        runs.append(
            {"id": run, "command": command, "scale": scale, "status": status, "made": made, "taken": taken}
            | {"results": results}
        )
    return runs, cells


def same_answers(store, runs, cells):
    used = {run["id"]: sorted({*run["made"], *run["taken"]}) for run in runs}
    assert [row["id"] for row in store.runs()] == [run["id"] for run in reversed(runs)]
    assert [row["id"] for row in store.runs(limit=3, offset=2)] == [run["id"] for run in reversed(runs)][2:5]
    assert store.last_run() == runs[-1]["id"]
    assert store.counts() == {
        "runs": len(runs),
        "cells": len(cells),
        "observations": sum(one["status"] == "done" for one in cells.values()),
        "verdicts": 3 * len(runs),
    }
    for run in runs:
        number = run["id"]
        record = store.run(number)
        assert [record[name] for name in ("id", "command", "scale", "status")] == [
            run[name] for name in ("id", "command", "scale", "status")
        ]
        for paper in ("", "toy", "other"):
            rows = [i for i in used[number] if paper in ("", cells[i]["cell"].paper)]
            found = store.run_cells(number, paper)
            assert [row["id"] for row in found] == rows
            assert [row["cached"] for row in found] == [int(i in run["taken"]) for i in rows]
            assert [(row["run"], row["status"]) for row in found] == [
                (cells[i]["run"], cells[i]["status"]) for i in rows
            ]
        for command in ("laureate run toy", "laureate race"):
            later = [one["id"] for one in runs if one["id"] > number and one["command"] == command]
            assert store.run_after(number, command) == min(later, default=None)
        for scale in ("smoke", "desk"):
            like = [
                one["id"]
                for one in reversed(runs)
                if one["status"] == "finished" and one["scale"] == scale and used[one["id"]] == used[number]
            ]
            assert store.runs_of(used[number], scale) == like
        assert [result.to_json() | {"run": None} for result in store.results(number)][:2] == [
            result.to_json() for result in run["results"]
        ]
        assert store.cells_ahead(number) == 0
    asked = [run["id"] for run in runs[::2]]
    assert store.words(asked) == {
        run["id"]: [result.verdict for result in run["results"]] for run in runs if run["id"] in asked
    }
    for one in cells.values():
        key = one["cell"].key
        same = [i for i, other in cells.items() if other["cell"].key == key and other["status"] == "done"]
        assert store.finished_cell(one["cell"]) == max(same, default=None)
    half = sorted(cells)[::2]
    took = store.cell_seconds(half)
    assert took.keys() == set(half)
    assert all(abs(took[i] - cells[i]["took"]) < 1e-12 for i in half)
    newest = {}
    for _, one in sorted(cells.items()):
        cell = one["cell"]
        if one["status"] == "done" and cell.problem == "default":
            newest[cell.paper, cell.experiment, cell.arm, cell.scale, cell.start] = one["took"]
    measured = store.measured_cells()
    assert sorted(
        (*(row[name] for name in ("paper", "experiment", "arm", "scale")), row["seconds"]) for row in measured
    ) == (sorted((*key[:4], took) for key, took in newest.items()))
    history = [(run["id"], run["results"][0]) for run in reversed(runs)]
    found = store.history("toy/better", "default", 5)
    assert [(one.run, one.verdict, one.seeds) for one in found] == [
        (number, one.verdict, one.seeds) for number, one in history[:5]
    ]
    for run in runs:
        for result in run["results"]:
            effects = {
                other.effect
                for one in runs
                for other in one["results"]
                if (other.id, other.scale, other.seeds) == (result.id, result.scale, result.seeds)
                and other.effect == other.effect
            }
            assert store.other_effects(result, result.scale) == len(effects - {result.effect})


def test_every_question_has_the_answer_that_a_list_has_also_after_runs_were_deleted(store):
    runs, cells = filled(store)
    same_answers(store, runs, cells)
    assert any(run["taken"] for run in runs)
    for gone in (runs[2], runs[-1], runs[5]):
        runs.remove(gone)
        using = {i: [run["id"] for run in runs if i in (*run["made"], *run["taken"])] for i in cells}
        lost = [i for i, users in using.items() if cells[i]["run"] == gone["id"] and not users]
        assert store.delete_run(gone["id"]) == len(lost)
        for i in lost:
            del cells[i]
        for i, one in cells.items():
            if one["run"] == gone["id"]:  # it is the first of the others' now
                one["run"] = min(using[i])
    same_answers(store, runs, cells)
    assert store.complaint(thorough=True) == ""
    assert store.unreadable() == 0


def test_what_is_saved_of_a_damaged_store_stands_by_itself(store, tmp_path):
    """Whatever rows are lost, all others are saved, and what they rest on is there or said to be lost."""
    runs, cells = filled(store)
    keys = {"runs": "id", "cells": "id", "environments": "id", "verdicts": "run", "observations": "cell"}
    draw = random.Random(1)
    cases = [{"runs": [run["id"]], "observations": run["made"]} for run in runs]  # verdicts that rest on others' cells
    cases += [{"runs": [run["id"] for run in runs]}, {"environments": [1, 2]}, {"cells": sorted(cells)}, {}]
    some = sorted(keys.keys() - {"cells"})  # of a lost cell the numbers cast doubt on those beside them
    cases += [{table: draw.sample(range(1, 20), 6) for table in draw.sample(some, 3)} for _ in range(10)]
    for number, lost in enumerate(cases):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as source:
            with closing(sqlite3.connect(store.path)) as whole:
                whole.backup(source)
            for table, gone in lost.items():
                asked = ", ".join(map(str, gone))
                source.execute(f"DELETE FROM {table} WHERE {keys[table]} IN ({asked})")
            left = {table: source.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in salvage.TABLES}
            done = "SELECT id, run FROM cells WHERE status = 'failed' OR id IN (SELECT cell FROM observations)"
            kept = dict(source.execute(done).fetchall())
            known = {row[0] for row in source.execute("SELECT id FROM runs UNION SELECT run FROM verdicts")}
            known |= set(kept.values())
            used = source.execute("SELECT run, cell, cached FROM run_cells").fetchall()
            using = {row[:2]: row[2] for row in used if row[0] in known and row[1] in kept}
            new = Store(tmp_path / f"{number}.sqlite")
            with closing(salvage._open(new.path)) as target:
                with transaction(target):
                    saved, _ = salvage._move(source, target)
                assert target.execute("PRAGMA foreign_key_check").fetchall() == [], lost
                assert dict(target.execute("SELECT id, run FROM cells").fetchall()) == kept
                found = {row[:2]: row[2] for row in target.execute("SELECT run, cell, cached FROM run_cells")}
                assert found == {(run, cell): 0 for cell, run in kept.items()} | using
            assert [saved[table] for table in ("verdicts", "benchmarks")] == [left["verdicts"], left["benchmarks"]]
            assert {run["id"] for run in new.runs()} == known
            machines = {run["environment"]["machine"] for run in new.runs()}
            assert machines <= {"cpu 0", "cpu 1", "unknown (lost in a damaged store)"}
            new.close()
