"""What commands print and give back, put together anew from what they were handed, whatever that is."""

import csv
import dataclasses
import io
import itertools
import json
import random
import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import toys
from laureate.catalogue import KINDS, TOPICS, Entry, Hit, Result, index
from laureate.catalogue.entry import DECISIONS
from laureate.catalogue.importers import bibtex
from laureate.cli import _common, bench, cite, cli, decentralized, export, find, new, run
from laureate.cli._progress import LineProgress, TerminalProgress, TimeLeft
from laureate.lab.cell import Outcome
from laureate.lab.claim import Claim
from laureate.lab.errors import UserError
from laureate.lab.judging.results import ClaimId, ClaimResult, Measured
from laureate.lab.records import Comparison
from laureate.lab.running.cost import Estimate, makespan
from laureate.lab.running.plan import plan
from laureate.lab.running.run import Summary
from laureate.lab.storing.home import reports, store_path
from laureate.lab.storing.store import Store
from laureate.pages.browse import Nearest
from laureate.pages.wording import duration, plural
from laureate.racing.disciplines import disciplines
from laureate.racing.results import RaceResult

STORED_RACE = Path(__file__).parents[1] / "racing" / "stored_race.json"
FACTS = {"experiment": "toy", "statement": "s", "kind": "better", "metric": "loss", "scale": "smoke", "seeds": 10}


def result(name="better", **facts):
    return ClaimResult(id=ClaimId("toy", name), **FACTS | facts)


@pytest.fixture
def store(toy):
    opened = Store(store_path())
    yield opened
    opened.close()


def finished(store, *results, scale="smoke", environment=None):
    facts = {"machine": "an abacus", "versions": {}, "commit": ""} | (environment or {})
    number = store.start_run("laureate run toy", scale, 10, "default", facts)
    store.add_results(number, [dataclasses.replace(one, run=number) for one in results])
    store.end_run(number, "finished")
    return number


# -- what is computed, and how long it takes ---------------------------------------------------------------------------


def test_the_time_left_is_that_of_each_experiment_by_its_own_cells_and_else_by_all():
    cells = [
        dataclasses.replace(cell, experiment=name)
        for name, count in (("slow", 3), ("fast", 2), ("new", 1))
        for cell in plan(toys.selections(toys.paper()), "smoke")[:count]
    ]
    draw = random.Random(0)
    for workers in (1, 2, 3):
        left, took = TimeLeft(cells, workers), {}
        for done, cell in enumerate(draw.sample(cells, len(cells)), 1):
            seconds = {"slow": 100.0, "fast": 1.0, "new": 10.0}[cell.experiment] * draw.uniform(0.5, 2.0)
            left.done(cell, seconds)
            took.setdefault(cell.experiment, []).append(seconds)
            every = [one for mine in took.values() for one in mine]
            waiting = dict.fromkeys(("slow", "fast", "new"), 0)
            for one in cells:
                waiting[one.experiment] += 1
            expected = 0.0
            for name, count in waiting.items():
                mine = took.get(name, [])
                expected += (count - len(mine)) * sum(mine or every) / len(mine or every)
            assert left.seconds() == pytest.approx(expected / workers)
            assert left.words() == (f"about {duration(expected / workers)} left" if done < len(cells) else "")


def test_a_line_of_a_cell_counts_its_compiling_too(capsys):
    cells = plan(toys.selections(toys.paper()), "smoke")[:2]
    progress = LineProgress()
    progress.start(cells, 4, 1)
    progress.finished(cells[0], Outcome(seconds=2.0, compile_seconds=30.0))
    progress.finished(cells[1], Outcome(seconds=2.0, error="ValueError: no"))
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == "2 cells to compute, 4 kept, 1 at a time"
    assert second == f"[1/2] done {cells[0].name} · 32 s · about 32 s left"
    assert third == f"[2/2] failed {cells[1].name} · 2.0 s"


@pytest.mark.parametrize(("kept", "cores"), [(0, 1), (3, 2), (5, 4)])
def test_a_plan_is_of_what_is_left_and_says_what_is_there(laureate, monkeypatch, kept, cores):
    seconds = (60.0, 120.0, 30.0, 600.0, 90.0)
    left = seconds[kept:]
    one = Estimate("toy/toy", "desk", seconds, kept, 2 << 30, "measured", "desk", left)
    monkeypatch.setattr("laureate.lab.running.cost.estimate", lambda *_: [one])
    monkeypatch.setattr("laureate.lab.running.executors.cores", lambda: cores)
    told = json.loads(laureate("plan", "toy", "--json").out)["total"]
    assert told == {
        "cells": 5, "kept": kept, "core_hours": sum(seconds) / 3600, "left_core_hours": sum(left) / 3600,
        "memory_gib": 2.0, "cores_a_machine": cores,
        "hours_on_machines": {str(n): makespan(left, n * cores) / 3600 for n in (1, 16, 256)},
    }  # fmt: skip
    said = " ".join(laureate("plan", "toy").out.split())
    assert f"5 cells, {kept} of them are in the store already; left: {5 - kept} cells" in said
    assert (f"the longest cell alone: {duration(max(left))}" in said) if left else ("computes nothing" in said)


@pytest.mark.parametrize(
    "words",
    [("--workers", "0"), ("--workers", "-1"), ("--workers", "1.5"), ("--workers", "²"), ("--workers", "9" * 5000)],
)
def test_there_is_at_least_one_process(laureate, words):
    for command in (("run", "toy"), ("race", "x.py:y")):
        said = laureate(*command, *words)
        assert (said.code, "a number of processes, or auto" in said.err) == (2, True)
    context, parameter = click.Context(run.run), run.run.params[0]
    assert [run._workers(context, parameter, text) for text in ("auto", "1", "16")] == [None, 1, 16]


def test_where_a_run_was_measured_is_told(laureate, monkeypatch, tmp_path):
    """On a cluster, or here; a run that is repeated, where it was."""
    monkeypatch.setattr("laureate.lab.running.run.make_executor", lambda *_: SimpleNamespace(workers=3, **drawing()))
    (tmp_path / "mine.py").write_text("class Mine:\n    offset = 1.0\n")
    there, words = "a Ray cluster of 3 cores", ("run", "toy", "--scale", "smoke", "--quiet")
    for more, told in (
        (("--on", "ray://host:1"), there), ((), there), (("--fresh",), "this machine"),
        (("--problem", f"{tmp_path / 'mine.py'}:Mine", "--on", "host:1"), f"on mine.py:Mine, {there}"),
    ):  # fmt: skip
        said = " ".join(laureate(*words, *more).out.split())
        assert f"scale smoke, 10 seeds, {told} ·" in said


def drawing():
    """An executor's two methods, without jax: every number 0, worse by the arm's shift."""
    shift = {arm.name: arm.settings["shift"] for arm in toys.ARMS}

    def outcomes(cells):
        for cell in cells:
            yield cell, Outcome(metrics={"loss": np.full(cell.count, shift[cell.arm])}, seconds=0.5)

    return {"outcomes": outcomes, "close": lambda: None}


def test_all_behind_a_script_is_the_scripts(monkeypatch, tmp_path):
    """Also what would be an option of ours, and what no option is."""
    script, seen = tmp_path / "train.py", []
    script.write_text("")
    monkeypatch.setattr(
        decentralized.subprocess, "run", lambda words, check: seen.append(words) or SimpleNamespace(returncode=7)
    )
    behind = ("-n", "9", "--nodes=8", "--help", "-x", "--", "a", "-n3", "--fast")
    for before, nodes in ((), "4"), (("-n", "2"), "2"), (("--nodes", "3"), "3"):
        for start in range(len(behind) + 1):
            done = CliRunner().invoke(cli, ["decentralized", "launch", *before, str(script), *behind[start:]])
            assert done.exit_code == 7
            assert seen.pop()[3:] == ["-n", nodes, str(script), *behind[start:]]


def test_the_gate_does_not_hold_where_something_was_skipped(laureate, monkeypatch):
    """Nothing is known of a claim whose data are missing, or that has no such scale."""
    monkeypatch.setattr("laureate.pages.report.write_report", lambda *given: None)
    for skipped, code in (([], 0), (["toy/other is not run: it needs data"], 3)):
        found = Summary(1, "smoke", 10, "default", [result(verdict="supported")], [], {"total": 0}, skipped=skipped)
        monkeypatch.setattr("laureate.lab.running.run.run_claims", lambda *given, found=found, **more: found)
        assert laureate("run", "toy", "--quiet", "--json", "--gate").code == code
        assert laureate("run", "toy", "--quiet", "--json").code == 0


# -- what was found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("skipped", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("gate", [False, True])
def test_how_a_run_leaves(laureate, monkeypatch, tmp_path, gate, own, skipped, failed):
    """1 where a cell failed; behind a gate 3 where something is not supported, or was skipped that is the paper's."""
    monkeypatch.setattr("laureate.pages.report.write_report", lambda *given: None)
    monkeypatch.setattr("laureate.lab.records.run_standings", lambda *given: [])
    (tmp_path / "mine.py").write_text("class Mine:\n    offset = 1.0\n")
    problem = f"{tmp_path / 'mine.py'}:Mine"
    more = {"skipped": ["toy/other needs data"] * skipped}
    more |= {"failures": [{"cell": "toy/toy · ours", "error": "ValueError: no\nTraceback"}] * failed}
    for verdict in ("supported", "refuted", "inconclusive", "not run"):
        claims = [result(verdict="supported"), result("worse", verdict=verdict)]
        counts = {"total": 1, "computed": 1, "cached": 0, "failed": int(failed)}
        found = Summary(1, "smoke", 10, "mine.py:Mine" if own else "default", claims, [], counts, **more)
        monkeypatch.setattr("laureate.lab.running.run.run_claims", lambda *given, found=found, **asked: found)
        words = [*(("--problem", problem) if own else ()), *(("--gate",) if gate else ()), "--quiet"]
        closed = verdict != "supported" or (skipped and not own)
        expected = 1 if failed else 3 if gate and closed else 0
        assert laureate("run", "toy", *words).code == laureate("run", "toy", *words, "--json").code == expected, verdict


@pytest.mark.parametrize(
    ("change", "low", "high", "words"),
    [
        (0.5, -1.0, 1.0, "change 0.5 loss [−1, 1]"), (0.5, 0.1, 1.0, "change 0.5 loss [0.1, 1] ← differs"),
        (-0.5, -1.0, -0.1, "change −0.5 loss [−1, −0.1] ← differs"), (0.0, 0.0, 0.0, "change 0 loss [0, 0]"),
        (0.5, 0.0, 1.0, "change 0.5 loss [0, 1]"), (None, None, None, ""),
    ],
)  # fmt: skip
def test_two_runs_differ_where_the_interval_of_the_change_leaves_0_out(
    laureate, store, monkeypatch, change, low, high, words
):
    for _ in range(2):
        finished(store, result(verdict="supported", effect=1.0, low=0.5, high=1.5))
    one, two = (result(verdict="supported", effect=float(n), low=0.5, high=3.0, run=n) for n in (1, 2))
    rows = [Comparison(ClaimId("toy", "better"), one, two, change, low, high)]
    rows.append(Comparison(ClaimId("toy", "worse"), None, two))
    monkeypatch.setattr("laureate.lab.records.compare_runs", lambda *_: rows)
    said = laureate("compare", "1", "2").out
    told = [" ".join(line.split()) for line in said.splitlines() if "change" in line]
    assert told == ([words] if words else [])
    assert said.count("not in this run") == 1
    assert said.index("run 1     ✔") < said.index("run 2     ✔")


@pytest.mark.parametrize("verdicts", list(itertools.product(("here", "reference", "not run"), repeat=2)))
def test_the_board_says_what_was_not_measured_here(laureate, store, monkeypatch, verdicts):
    """A paper with a reference waits to be measured as one without; what is listed is what was measured here."""
    names = ("better", "worse")
    shipped = {
        f"toy/{name}": result(
            name, verdict="supported", effect=1.0, low=0.5, high=1.5, reference=True, machine="theirs"
        )
        for name, where in zip(names, verdicts, strict=True)
        if where == "reference"
    }
    monkeypatch.setattr("laureate.lab.reference.reference", lambda _: shipped)
    here = [name for name, where in zip(names, verdicts, strict=True) if where == "here"]
    if here:
        finished(store, *(result(name, verdict="refuted", effect=-1.0, low=-2.0, high=-0.5) for name in here))
    said = laureate("board").out
    assert ("Not measured here yet: laureate run toy" in said) == (set(verdicts) != {"here"})
    assert ("The claims of a paper: laureate board toy" in said) == bool(shipped)
    for name, where in zip(names, verdicts, strict=True):
        assert (f"toy/{name}" in said) == (where != "reference")
        assert f"toy/{name}" in laureate("board", "--claims").out


def test_whose_verdicts_are_counted_is_told(capsys):
    for ours, theirs in itertools.product((0, 1, 2), repeat=2):
        claims = [result(verdict="supported", reference=False)] * ours + [
            result(verdict="refuted", reference=True)
        ] * theirs
        find._verdicts("toy", claims)
        said = capsys.readouterr().out.splitlines()[0].strip()
        whose = "" if not theirs else " (our reference)" if not ours else f" ({theirs} of them our reference)"
        counts = ", ".join(f"{w} {n} {v}" for w, n, v in (("✔", ours, "supported"), ("✘", theirs, "refuted")) if n)
        assert said == f"runs here, {plural('claim', ours + theirs)}" + (f": {counts}{whose}" if counts else "")


def test_a_filter_is_known_in_any_capitals_and_nothing_else_is():
    for allowed in (TOPICS, KINDS, DECISIONS):
        for name in allowed:
            for written in (name, name.lower(), name.upper(), name.title()):
                find._one_of("--x", written, allowed)
        find._one_of("--x", "", allowed)
        for wrong in (allowed[0][:-1], f"{allowed[0]} ", allowed[0] + allowed[1]):
            with pytest.raises(UserError, match="--x has no"):
                find._one_of("--x", wrong, allowed)


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize("centre", ["mean", "median"])
def test_a_verdict_is_told_with_its_number_on_one_line_where_there_is_room(monkeypatch, columns, centre):
    monkeypatch.setenv("COLUMNS", str(columns + 1))
    measured = Measured((1.0, 2.0), 0, 3.0, 4.0)
    for word, reference, problem in itertools.product(("supported", "refuted"), (False, True), ("default", "m.py:x")):
        one = result(
            verdict=word, reference=reference, problem=problem, effect=1.5, low=1.0, high=2.0, p=0.0123, centre=centre,
            over="data sets", measured=measured, unit="nats", run=3,
        )  # fmt: skip
        lines = click.unstyle(_common.verdict_line(one, 12)).splitlines()
        detail = f"1.5 nats [1, 2]{' median' if centre == 'median' else ''} over data sets p 0.012"
        name = "toy/better" + (f" on {problem}" if problem != "default" else "")
        mark = {"supported": "✔", "refuted": "✘"}[word]
        assert " ".join(" ".join(lines).split()) == f"{name} {mark} {word} {detail}" + " (our reference)" * reference
        assert (len(lines) == 1) == (columns == 100)
        assert _common.context_line(one).endswith("smoke, 10 seeds" + ("" if reference else ", run 3"))
    none = click.unstyle(_common.verdict_line(result(), 12))
    assert none.split() == ["toy/better", "·", "not", "run"]


def test_declared_seeds_are_told_only_where_more_were_taken():
    for seeds, declared in ((10, 0), (10, 10), (10, 20), (20, 10)):
        said = _common.context_line(result(seeds=seeds, declared_seeds=declared, run=3))
        assert (
            said == f"smoke, {seeds} seeds" + (f" ({declared} declared)" if declared == 10 < seeds else "") + ", run 3"
        )


def test_what_is_told_of_a_claim_is_that_of_its_experiment(laureate, toy):
    """Deviations, what it takes of the reader's own, and the cost; of a paper those of all, each once."""
    first = toys.experiment(deviations=("It is a toy.", "Both are small."))
    other = Claim("third", "s", "loss", "ours", "theirs", role="extension")
    scales = {"smoke": dataclasses.replace(toys.experiment().scales["smoke"], cost=7.0)}
    second = toys.experiment(
        "second", claims=(other,), deviations=("Both are small.", "It is blue."), accepts=(), scales=scales
    )
    toy.paper = toys.paper(first, second)
    own = {"toy": ["It is a toy.", "Both are small."], "second": ["Both are small.", "It is blue."]}
    for asked, names in (("toy", ["toy", "second"]), ("toy/third", ["second"]), ("toy/better", ["toy"])):
        told = json.loads(laureate("show", asked, "--json").out)
        assert told["deviations"] == {name: own[name] for name in names}, asked
        assert told["own_problem"] == ({"toy": ["offset"]} if "toy" in names else {})
        said = laureate("show", asked).out
        lines = said.partition("What differs from the paper")[2].partition("On your own")[0].split("\n  - ")[1:]
        assert [line.strip() for line in lines] == list(dict.fromkeys(text for name in names for text in own[name]))
        cost = [line.split() for line in said.partition("The cost")[2].splitlines() if "laureate run" in line]
        smoke = ["smoke", *("7.0 s" if "second" in names else "?").split()]
        expected = [f"{' '.join(smoke)} laureate run {asked} --scale smoke"]
        expected += [f"desk ? laureate run {asked} --scale desk"] if "toy" in names else []
        assert [" ".join(line) for line in cost] == expected


# -- runs and files ----------------------------------------------------------------------------------------------------


def test_names_and_notes_are_kept_as_long_as_they_may_be(laureate, store):
    number = str(finished(store))
    for name, note in (("n" * 60, "x " * 999 + "y"), ("n" * 61, "x" * 2001)):
        (told,) = json.loads(laureate("runs", number, "--name", name, "--note", note, "--json").out)
        assert (told["name"], told["note"]) == (name[:60], note[:2000])
    (told,) = json.loads(laureate("runs", number, "--note", "", "--json").out)
    assert (told["name"], told["note"]) == ("n" * 60, "")


def test_with_a_run_its_pages_are_deleted(laureate, store):
    """Also that of a race; the next run may have its number."""
    kept, gone = finished(store), finished(store)
    reports().mkdir(parents=True, exist_ok=True)
    pages = {(kind, number): reports() / f"{kind}-{number}.html" for kind in ("run", "race") for number in (kept, gone)}
    for page in pages.values():
        page.touch()
    laureate("runs", str(gone), "--delete", "--yes")
    assert {key for key, page in pages.items() if page.exists()} == {("run", kept), ("race", kept)}


@pytest.mark.parametrize(
    "words", [["report"], ["export"], ["cite"], ["runs"], ["compare", "1"], ["export", "--json"], ["cite", "--csl"]]
)
def test_there_is_no_run_0(laureate, store, words):
    finished(store)
    said = laureate(*words, "0")
    assert (said.code, "There is no run 0." in said.err) == (2, True)


@pytest.mark.parametrize("what", [[], ["1"], ["99"]])
def test_observations_have_no_bibtex(laureate, store, what):
    finished(store)
    said = laureate("export", *what, "--bibtex")
    assert (said.code, said.out, "Observations have no BibTeX." in said.err) == (2, "", True)


def test_every_paper_of_a_run_is_cited_once_by_its_own_name(laureate, monkeypatch):
    monkeypatch.setattr(cite, "_papers_of_run", lambda number: ["fno", "detag"])
    for words, ids, labels in (
        (["3"], ["fno", "detag"], ["fno", "detag"]),
        (["3", "rnd"], ["fno", "detag", "rnd"], ["fno", "detag", "rnd"]),
        (["fno", "3"], ["fno", "detag"], ["fno", "detag"]),
        (["FNO", "fno/claim", "fno"], ["fno"], ["FNO", "fno/claim", "fno"]),
    ):
        assert [one["id"] for one in json.loads(laureate("cite", *words, "--csl").out)] == ids
        assert [one["id"] for one in json.loads(laureate("cite", *words, "--json").out)] == labels
        assert laureate("cite", *words).out.count("\n  title ") == len(ids)


def test_a_race_is_of_no_paper(laureate, store):
    number = finished(store, scale="race")
    said = laureate("cite", str(number))
    assert (said.code, f"Run {number} is a race, which is of no paper." in said.err) == (2, True)


def test_what_is_left_out_is_counted_over_all_files(laureate, monkeypatch, tmp_path):
    monkeypatch.setattr(index, "opened", lambda: SimpleNamespace(close=lambda: None))
    for name, untitled in (("a", 2), ("b", 3), ("c", 0)):
        entries = [f"@misc{{t{name}, title = {{Widget {name}}}}}", *["@misc{x, author = {Nobody}}"] * untitled]
        (tmp_path / f"{name}.bib").write_text("\n".join(entries))
    files = [str(tmp_path / f"{name}.bib") for name in "abca"]
    told = json.loads(laureate("import", *files, "--json").out)
    assert told == {
        "read": 4, "new": 3, "enriched": 0, "known": 0,
        "left_out": {
            "entries without a title": 7, "listings of a paper that these files list more than once": 1,
        },
    }  # fmt: skip


def test_both_sides_of_a_benchmark_are_told_by_their_own_numbers(capsys):
    row = {
        "id": "toy", "work": "a step", "ours_s": 0.0125, "ours_compile_s": 1.5, "ours_mb": 3.0, "peer": "theirs",
        "peer_version": "0.3", "package": "pkg", "peer_s": 2.5, "peer_compile_s": 0.25, "peer_mb": 70.0, "ratio": 200.0,
        "low": 150.0, "high": 250.0, "repeats": 15, "note": "A note.",
    }  # fmt: skip
    expected = [
        "toy  a step",
        "  here 12.5 ms (first call 1.5 s more, 3 MB)",
        "  theirs 0.3 2.5 s (first call 0.25 s more, 70 MB)",
        "  200 times as fast [150, 250], 15 repeats in turn",
        "  A note.",
    ]
    bench._print(row, "")  # pyright: ignore[reportArgumentType]
    assert capsys.readouterr().out.splitlines() == expected
    bench._print(row | {"ratio": None, "note": "", "ours_mb": None}, "by much")  # pyright: ignore[reportArgumentType]
    said = capsys.readouterr()
    assert said.out.splitlines()[1:] == [
        "  here 12.5 ms (first call 1.5 s more)",
        "  theirs: not installed; pip install pkg",
    ]
    assert said.err == "  slower than last time: by much\n"


# -- races and the web -------------------------------------------------------------------------------------------------


def test_a_race_that_nobody_finished_is_no_success(laureate, monkeypatch):
    stored = RaceResult.from_json(json.loads(STORED_RACE.read_text("utf-8")))
    nobody = dataclasses.replace(stored, standing=dataclasses.replace(stored.standing, order=()), run=8)
    for found, code in ((stored, 0), (nobody, 1)):
        asked = {}
        monkeypatch.setattr(
            "laureate.racing.api.race", lambda problem, found=found, asked=asked, **more: asked.update(more) or found
        )
        said = laureate("race", "x.py:y", "--json", "--quiet", "--budget", "7", "--only", "a,b", "--seeds", "4")
        assert (said.code, json.loads(said.out)) == (code, found.to_json())
        assert (reports() / f"race-{found.run}.html").exists()
        given = {name: asked[name] for name in ("budget", "only", "seeds", "seconds", "workers", "progress", "fresh")}
        assert given == {
            "budget": 7, "only": "a,b", "seeds": 4, "seconds": 60.0, "workers": None, "progress": None, "fresh": False
        }  # fmt: skip


def test_the_arrow_of_a_quality_points_to_where_it_is_better():
    said = CliRunner().invoke(cli, ["race", "--list"]).output
    for one in disciplines():
        part = said.partition(f"{one.name}: {one.kind}\n")[2].partition("\n\n")[0]
        for metric in one.metrics:
            assert f"{metric.name} {'↓' if metric.better == 'lower' else '↑'}  {metric.words}" in part
        assert f"  cost        {one.unit}" in part


def test_the_web_ends_by_either_signal_also_where_its_shell_ignores_them(laureate, monkeypatch):
    """A server that a script put into the background ignores Ctrl-C, as then would the runs it starts."""
    seen = []

    def serve_forever():
        seen.extend(signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT))
        raise KeyboardInterrupt

    fake = SimpleNamespace(url="http://x/", serve_forever=serve_forever, server_close=lambda: seen.append("closed"))
    monkeypatch.setattr("laureate.pages.server.make_server", lambda host, port: fake)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        said = laureate("web", "--json")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (said.code, json.loads(said.out)) == (0, {"url": "http://x/"})
    assert seen == [signal.default_int_handler] * 2 + ["closed"]


# -- papers ------------------------------------------------------------------------------------------------------------


def paper_of(**facts):
    told = {"id": "x-y", "title": "A Long Title", "venue": "ICML 2021", "decision": "Oral", "topic": "audio"}
    return Entry(**told | {"kind": "method", "problem": "What hurts", "does": "What helps"} | facts)


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        ({}, ["A Long Title", "x-y · ICML 2021 Oral · audio · method", "What hurts", "What helps"]),
        ({"name": "Widget"}, ["Widget: A Long Title", None, None, None]),
        ({"name": "a long"}, ["A Long Title", None, None, None]),
        ({"award": "Best", "decision": ""}, [None, "x-y · ICML 2021 · Best · audio · method", None, None]),
        ({"venue": "", "decision": "", "topic": "", "kind": ""}, [None, "x-y", None, None]),
        ({"url": "https://x.org"}, [None, None, "https://x.org", "What hurts", "What helps"]),
        ({"problem": "", "does": "", "abstract": "w " * 400}, [None, None, "w " * 149 + "…"]),
    ],
)
def test_a_paper_that_is_found_is_told_line_by_line(monkeypatch, capsys, facts, lines):
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(find, "columns", lambda: 400, raising=False)
    monkeypatch.setattr(_common, "columns", lambda: 400)
    common = ["A Long Title", "x-y · ICML 2021 Oral · audio · method", "What hurts", "What helps"]
    found = Result([Hit(paper_of(**facts), 1.0)], [("lables", "labels")], ignored_phrase=True, total=1)
    find._show(found)
    said = [" ".join(line.split()) for line in click.unstyle(capsys.readouterr().out).splitlines()]
    lost = "No paper has these words in this order; the nearest without the quotation marks:"
    assert said[:2] == ["Searched: labels (for lables)", lost]
    wanted = [" ".join((line or common[i]).split()) for i, line in enumerate(lines)]
    assert said[2 : 2 + len(wanted)] == [f"1 {wanted[0]}", *wanted[1:]]
    assert said[-1] == "None of these runs in Laureate yet; --runs shows those that do."
    record = find._record("q", found)
    assert record["corrected"] == [{"typed": "lables", "searched": "labels"}]
    assert (record["question"], record["phrase_ignored"], record["suggestions"]) == ("q", True, [])
    assert record["papers"] == [paper_of(**facts).record() | {"score": 1.0, "runs": False, "claims": []}]


def test_every_form_of_the_catalogue_has_the_same_papers(laureate, monkeypatch):
    """Lists by semicolons, what a spreadsheet would compute marked as text, and which of them run."""
    given = [
        paper_of(id="toy", authors=("Ada One", "Bea Two"), fit=3, cpu="minutes", demo="d"),
        paper_of(title="=1+1", authors=("-A B", "C"), award="@Best", abstract="not told"), paper_of(id="z", name="Ünï"),
    ]  # fmt: skip
    monkeypatch.setattr("laureate.catalogue.library.all_entries", lambda: iter(given))
    listed = json.loads(laureate("export", "papers", "--json").out)
    assert listed == [json.loads(json.dumps(one.record())) | {"runs": one.id == "toy"} for one in given]
    rows = list(csv.DictReader(io.StringIO(laureate("export", "papers").out)))
    assert list(rows[0]) == list(export.PAPER_COLUMNS)
    for row, one in zip(rows, listed, strict=True):
        for name, value in row.items():
            told = "; ".join(one[name]) if isinstance(one[name], list) else str(one[name])
            assert value == (f"'{told}" if told[:1] in set("=+-@") else told), name
    assert [row["authors"] for row in rows] == ["Ada One; Bea Two", "'-A B; C", ""]
    assert laureate("export", "papers", "--bibtex").out.count("\n@") == 2


def test_a_bibliography_has_no_key_twice(laureate, monkeypatch):
    """Whether of the whole catalogue or of some papers, each told as often as it is asked for."""
    given = {one: paper_of(id=one, title=f"A Title of {one}", authors=("Ada One",)) for one in ("x-y", "z", "w")}
    monkeypatch.setattr("laureate.catalogue.library.all_entries", lambda: iter(given.values()))
    monkeypatch.setattr("laureate.catalogue.library.by_id", given.get)
    keys = ["one2021a", "one2021a-2", "one2021a-3"]
    for words in (["export", "papers", "--bibtex"], ["cite", "x-y", "z/claim", "x-y", "w"]):
        read = bibtex.read(said := laureate(*words).out)
        assert [fields["@key"] for fields in bibtex.fields_of(said)] == keys
        assert [paper.title for paper in read] == [one.title for one in given.values()]
    told = json.loads(laureate("cite", "z", "x-y", "z/claim", "--json").out)
    assert [one["id"] for one in told] == ["z", "x-y", "z/claim"]
    assert [bibtex.fields_of(one["bibtex"])[0]["@key"] for one in told] == [*keys[:2], keys[0]]


@pytest.mark.parametrize(
    ("area", "good"),
    [
        ("brand_new", True), ("sampling", True), ("a1", True), ("Sampling", False), ("_x", False), ("lab", False),
        ("testing", False), ("class", False), ("lambda", False), ("1a", False), ("a-b", False), ("a.b", False),
        ("ä", False), ("", False), ("../x", False),
    ],
)  # fmt: skip
def test_an_area_is_a_package_and_no_room_of_another_kind(area, good):
    if good:
        assert new._area(area) == area
    else:
        with pytest.raises(UserError, match="--area must be a name"):
            new._area(area)


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (UserError("No.", "Do."), 2, "laureate: No. Do.\n"), (KeyboardInterrupt(), 130, "laureate: stopped; what"),
        (click.Abort(), 130, "laureate: stopped; what"),
        (OSError(28, "No space left", "a\x1bb"), 2, "No space left: a\\x1bb\n"),
        (OSError("odd"), 2, "laureate: odd\n"), (click.UsageError("wrong"), 2, "Error: wrong\n"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_line_and_its_code(laureate, monkeypatch, raised, code, said):
    def fail(**_):
        raise raised

    monkeypatch.setattr(cli, "main", fail)
    told = laureate("board")
    assert (told.code, told.out) == (code, "")
    assert said in told.err
    assert "\x1b" not in told.err


def test_runs_are_listed_with_their_verdicts_newest_first(laureate, store):
    words = [("supported", "refuted", "supported"), (), ("not run", "inconclusive")]
    for mine in words:
        finished(store, *(result(f"c{i}", verdict=word) for i, word in enumerate(mine)))
    told = json.loads(laureate("runs", "--json").out)
    counted = [{word: mine.count(word) for word in _common.MARKS} for mine in words[::-1]]
    assert [row["verdicts"] for row in told] == counted
    assert [(row["id"], row["status"], row["seeds"]) for row in told] == [(n, "finished", 10) for n in (3, 2, 1)]
    said = laureate("runs", "1").out
    assert "✔ 2 supported, ✘ 1 refuted" in said
    assert "run 3" not in said
    assert "2 more: --limit 3" in laureate("runs", "--limit", "1").out
    error = laureate("runs", "9").err
    assert "There is no run 9. The latest are: 3, 2, 1." in error


def test_a_damaged_store_says_what_was_saved_and_what_was_lost(laureate, monkeypatch, tmp_path):
    rows = {"runs": 3, "cells": 40, "verdicts": 7, "other": 9}
    for kept_as in (None, tmp_path / "old"):
        done = SimpleNamespace(rows=rows, lost_cells=2, kept_as=kept_as)
        monkeypatch.setattr("laureate.lab.storing.salvage.repair", lambda path, done=done: done)
        told = json.loads(laureate("doctor", "--repair", "--json").out)
        assert told == {"saved": rows, "lost_cells": 2, "damaged_file": kept_as and str(kept_as)}
        said = laureate("doctor", "--repair").out
        assert said == (
            "The store is whole: nothing to repair.\n" if kept_as is None else
            "Saved: 3 runs, 40 cells, 7 verdicts. Known to be lost: 2 cells; a run computes them again.\n"
            f"The damaged file is kept: {kept_as}\n"
        )  # fmt: skip


def test_a_paper_that_does_not_run_says_what_is_near(laureate, monkeypatch):
    shown = paper_of(
        authors=("Ada One", "Bea Two"), award="Best", url="https://x.org", problem="", abstract="Says.", does=""
    )
    monkeypatch.setattr("laureate.catalogue.library.by_id", lambda paper_id: shown if paper_id == "x-y" else None)
    monkeypatch.setattr("laureate.catalogue.Catalogue", lambda **_: nullcontext())
    for near in (None, Nearest("pes", "A Near Paper", True), Nearest("pes", "A Far Paper", False)):
        monkeypatch.setattr("laureate.pages.browse.nearest", lambda catalogue, entry, near=near: near)
        lines = [line.strip() for line in laureate("show", "X-Y").out.splitlines() if line.strip()]
        assert lines[:3] == ["A Long Title", "Ada One, Bea Two · ICML 2021 · Oral · Best", "https://x.org"]
        assert lines[3:6] == ["What it does", "Says.", "Its claims cannot be measured here yet."]
        assert lines[6:] == ([f"{str(near).capitalize()}: {near.title}", "laureate show pes"] if near else [])
        told = json.loads(laureate("show", "x-y", "--json").out)
        known = {"nearest_that_runs": near.id if near else "", "near": bool(near and near.near)}
        assert told == json.loads(json.dumps(shown.record())) | {"runs": False} | known


def test_a_file_of_a_run_and_of_everything_is_told_with_its_size(laureate, store, monkeypatch, tmp_path):
    asked = []

    def write(store, *more):
        *run, path, explore = more
        asked.append((*run, explore))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 77)

    monkeypatch.setattr("laureate.pages.report.write_report", write)
    monkeypatch.setattr("laureate.pages.report.write_everything", write)
    number = finished(store)
    for words, asked_run, place in (
        ([], None, reports() / "laureate.html"), ([str(number)], number, reports() / f"run-{number}.html"),
        ([str(number), "-o", str(tmp_path / "a.html"), "--explore"], number, tmp_path / "a.html"),
    ):  # fmt: skip
        assert json.loads(laureate("report", *words, "--json").out) == {
            "run": asked_run,
            "file": str(place),
            "bytes": 77,
        }
        assert laureate("report", *words).out == f"{place}\n"
    assert asked == [(False,)] * 2 + [(number, False)] * 2 + [(number, True)] * 2


def test_a_failure_stays_on_the_screen_and_the_bar_is_of_what_is_left(monkeypatch):
    said = io.StringIO()
    console = Console(file=said, width=120, force_terminal=True, color_system=None, legacy_windows=False)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    cells = plan(toys.selections(toys.paper()), "smoke")
    for kept, workers in ((0, 1), (4, 3)):
        said.truncate(0)
        progress = TerminalProgress()
        progress.start(cells, kept, workers)
        (task,) = progress._bar.tasks
        assert (task.total, task.completed, task.description) == (6, 0, "toy/toy")
        progress.waiting(cells)
        assert task.description == "waiting for another run"
        progress.finished(cells[0], Outcome(seconds=40.0, compile_seconds=20.0))
        progress.finished(cells[1], Outcome(seconds=60.0, error="ValueError: [b]no[/b]\nTraceback"))
        assert (task.completed, task.fields["left"]) == (2, f"about {duration(4 * 60.0 / workers)} left")
        progress.stop()
        assert f"failed {cells[1].name}: ValueError: [b]no[/b]" in said.getvalue()
        assert "Traceback" not in said.getvalue()
        assert f"6 cells to compute{', 4 kept' if kept else ''}, {workers} at a time" in said.getvalue()
    nothing = TerminalProgress()
    nothing.start([], 6, 1)
    nothing.finished(cells[0], Outcome())
    nothing.stop()
    assert nothing._bar is None


@pytest.mark.parametrize(
    ("terminal", "wide"), [(10, 30), (31, 30), (32, 31), (80, 79), (100, 99), (101, 100), (300, 100)]
)
def test_a_text_is_as_wide_as_the_terminal_up_to_what_the_eye_follows(monkeypatch, terminal, wide):
    monkeypatch.setenv("COLUMNS", str(terminal))
    assert _common.columns() == wide
    words = "many short words and one-of-many-parts that-is-never-broken-" + "x" * 120
    for indent, hang in ((0, None), (2, None), (2, 6)):
        lines = _common.filled(f"  {words}\n {words} ", indent, hang).split("\n")
        starts = [len(line) - len(line.lstrip()) for line in lines]
        assert starts == [indent] + [indent if hang is None else hang] * (len(lines) - 1)
        assert " ".join(" ".join(lines).split()) == f"{words} {words}"
        assert all(len(line) <= wide or len(line.split()) == 1 for line in lines)


def test_where_nothing_is_found_it_says_with_which_filters_and_what_there_is_without(capsys):
    hits = [Hit(paper_of(name="Widget"), 1.0), Hit(paper_of(topic="vision"), 0.5)]
    catalogue = SimpleNamespace(search=lambda question, limit: Result(hits[:limit], []))
    end = "Try the problem in other words, or a whole topic: laureate find --topic vision\n"
    filters = {"topic": "audio", "kind": "", "venue": "x", "decision": "", "runs": True}
    find._nothing(catalogue, "q", filters, Result([], [], suggestions=("a", "b")))  # pyright: ignore
    assert capsys.readouterr().out == (
        "Nothing found for 'q' with --topic --venue --runs.\n"
        "Without the filter: Widget (audio); A Long Title (vision).\n"
        f"Words near yours: a, b.\n{end}"
    )
    find._nothing(catalogue, "q", dict.fromkeys(filters, ""), Result([], []))  # pyright: ignore
    assert capsys.readouterr().out == f"Nothing found for 'q'.\n{end}"


def test_a_plan_of_several_papers_has_a_line_each_and_says_on_what_it_rests(laureate, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    found = [
        Estimate("a/x", "desk", (60.0, 60.0), 1, 1 << 30, "measured", "desk", (60.0,)),
        Estimate("a/y", "desk", (30.0,), 0, 3 << 30, "extrapolated", "smoke", (30.0,)),
        Estimate("b/x", "desk", (5.0,), 1, None, "declared", "", ()),
    ]
    monkeypatch.setattr("laureate.lab.running.cost.estimate", lambda *_: found)
    said = [" ".join(line.split()) for line in laureate("plan", "toy").out.splitlines()]
    bases = "measured at desk; measured at smoke, times the ratio of the declared costs"
    assert said[:3] == [
        "desk cells left computing memory each",
        f"a 3 2 90 s ≥3.00 GiB {bases}",
        "b 1 0 – ? as declared; never measured here",
    ]
    assert "4 cells, 2 of them are in the store already; left: 2 cells, 90 s of computing on one core" in " ".join(said)
    monkeypatch.setattr("laureate.lab.running.cost.estimate", lambda *_: found[:2])
    alone = [" ".join(line.split()) for line in laureate("plan", "toy").out.splitlines()]
    assert [line.split()[:3] for line in alone[1:] if line.startswith("a/")] == [["a/x", "2", "1"], ["a/y", "1", "1"]]
    monkeypatch.setattr("laureate.lab.running.cost.estimate", lambda *_: found[:1])
    assert "Seconds and memory measured at desk." in laureate("plan", "toy").out
    monkeypatch.setattr("laureate.lab.running.cost.estimate", lambda *_: found[2:])
    assert "Seconds as declared; never measured here." in laureate("plan", "toy").out
