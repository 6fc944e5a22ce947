"""What a stranger meets first: cards, references marked as such, own problems answered, units and colours that stay."""

import dataclasses
import re

import numpy as np
import pytest

import toy_site
import toys
from laureate import papers
from laureate.lab import reference
from laureate.lab.claim import Arm
from laureate.lab.judging.results import ClaimId, ClaimResult, Measured
from laureate.lab.running.run import run_claims
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.pages import content, render
from laureate.pages.figures import arm_colours

WEB = render.Site(live=True)


@pytest.fixture
def store(shared):
    opened = Store(store_path())
    yield opened
    opened.close()


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_card_has_problem_verdicts_picture_and_cost(store):
    page = render.body("board", WEB, **content.board(store, papers.all_papers()))
    card = re.search(r'<article class="card paper-card".*?</article>', page, re.S)
    assert card is not None
    for part in (
        'class="problem"',
        'class="chip supported"',
        '<circle class="mean"',
        "laureate run toy",
        "data-verdicts",
    ):
        assert part in card[0], part
    assert page.index("paper-card") < page.index("all-claims"), "the table stands behind the cards"


def test_a_fresh_board_shows_our_reference_and_says_so(tmp_path, shared, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    shipped = ClaimResult(
        id=ClaimId("toy", "better"), experiment="toy", statement="s", kind="better", metric="loss", verdict="refuted",
        effect=-1.0, low=-2.0, high=-0.5, p=1.0, scale="desk", seeds=20, machine="an abacus", versions="jax 1.0",
        started="2026-11-17T00:00:00", reference=True, measured=Measured(effects=(-1.0, -1.5), axis="a_loss"),
    )  # fmt: skip
    monkeypatch.setattr(reference, "reference", lambda paper: {"toy/better": shipped})
    monkeypatch.setattr(content, "reference", lambda paper: {"toy/better": shipped})
    empty = Store(store_path())
    board = text_of(render.body("board", WEB, **content.board(empty, papers.all_papers())))
    assert "1 of these verdicts is our reference (an abacus, jax 1.0, 2026-11-17)" in board
    told = content.method(empty, papers.paper("toy"))
    page = render.body("method", WEB, **told)
    assert "1 of the results below are our reference (an abacus, jax 1.0, 2026-11-17)" in text_of(page)
    assert "/figure/reference/toy/better.csv" in page
    assert "a loss" in page, "an axis reads as words"
    found = content.figure(empty, None, "toy/better")
    assert found is not None
    assert found.name == "toy/better"
    empty.close()


def test_a_run_on_ones_own_problem_answers_first(home, monkeypatch, tmp_path):
    (tmp_path / "mine.py").write_text("class Hill:\n    offset = 3.0\n")
    store = Store(store_path())
    with monkeypatch.context() as patch:
        patch.setattr("laureate.lab.running.run.make_executor", lambda *_: toy_site.Remembered())
        chosen = toys.selections(toy_site.paper())
        summary = run_claims(store, chosen, scale="smoke", problem=f"{tmp_path / 'mine.py'}:Hill")
    page = render.body("run", WEB, **(content.run(store, summary.run) or {}))
    assert text_of(page).index("Best here: ours, by") < text_of(page).index("margins: these count"), (
        "the paper's margin second"
    )
    board = text_of(render.body("board", WEB, **content.board(store, papers.all_papers())))
    assert "Best here: ours, by" in board
    assert "toy/better on mine.py:Hill" in board
    told = content.compare(store, 1, summary.run)
    assert told["unlike"] == [f"the problem of run 1 is the paper's own, that of run {summary.run} is mine.py:Hill"]
    assert "not of the same thing" in render.body("compare", WEB, **told)
    assert content.compare(store, 1, 2)["unlike"] == []
    store.describe(1, name="<b>first</b>", note="a <i>note</i>")
    for text in (
        render.body("runs", WEB, **content.runs(store)),
        render.body("run", WEB, **(content.run(store, 1) or {})),
    ):
        assert "&lt;b&gt;first&lt;/b&gt;" in text
        assert "a &lt;i&gt;note&lt;/i&gt;" in text
    store.close()


def test_a_run_says_how_long_it_took_and_what_failed_and_why(home):
    from laureate.lab.cell import Outcome
    from laureate.lab.running.plan import plan

    store = Store(store_path())
    run = store.start_run("laureate run toy", "smoke", 10, "default", store.run(1)["environment"])
    cells = plan(toys.selections(toy_site.paper()), "smoke")
    store.take(run, cells)
    store.add_cell(run, dataclasses.replace(cells[0], fingerprint="new"), Outcome(error="ValueError: no\nTraceback"))
    page = text_of(render.body("run", WEB, **(content.run(store, run) or {})))
    assert "What failed" in page
    assert "ours · seeds 0–4: ValueError: no" in page
    assert "cells computed, last of toy/toy" in page
    store.end_run(run, "failed")
    assert "by the clock" in text_of(render.body("run", WEB, **(content.run(store, run) or {})))
    store.close()


def test_how_long_a_run_still_takes_is_read_from_the_cells_that_are_done(home, monkeypatch):
    from laureate.lab.cell import Outcome
    from laureate.lab.running.plan import plan

    monkeypatch.setattr(content, "_wall_seconds", lambda record: 30.0)
    store = Store(store_path())
    run = store.start_run("laureate run toy", "desk", 10, "default", store.run(1)["environment"])
    cells = plan(toys.selections(toy_site.paper()), "desk")
    store.take(run, cells)
    kept = [cell["id"] for cell in store.run_cells(1)]
    store.use_cells(run, kept)  # for nothing: what is taken from the store says nothing about the others
    assert kept
    told = content._live(store, store.run(run), store.run_cells(run))
    assert told == content.Live(0, len(cells), experiment="", seconds_left=None)
    for cell in cells[:3]:
        store.add_cell(run, cell, Outcome({"loss": np.zeros(cell.count)}))
    told = content._live(store, store.run(run), store.run_cells(run))
    left = 30.0 / 3 * (len(cells) - 3)
    assert told == content.Live(3, len(cells), experiment="toy/toy", seconds_left=left)
    store.end_run(run, "interrupted")
    store.close()


def test_every_fact_in_which_two_runs_differ_is_told(home):
    facts = {"scale": ("smoke", "desk"), "seeds": ("10", "20"), "problem": ("default", "mine.py:Hill")}
    versions = {"jax": ("1.0", "1.1"), "python": ("3.12", "3.13")}
    around = {"machine": ("an abacus", "two"), "memory_gib": ("1", "2"), "system": ("a", "b"), "commit": ("c", "–")}
    store = Store(store_path())
    for i in range(2):
        environment = {name: pair[i] for name, pair in around.items() if pair[i] != "–"}
        environment["versions"] = {name: pair[i] for name, pair in versions.items()} | {"numpy": "2.0"}
        scale, seeds, problem = (pair[i] for pair in facts.values())
        store.end_run(store.start_run("laureate run toy", scale, int(seeds), problem, environment), "finished")
    told = content.compare(store, 3, 4)
    store.close()
    assert {name: tuple(pair) for name, *pair in told["differences"]} == facts | versions | around


def test_an_arm_has_one_colour_in_every_picture():
    first = toys.experiment("first", arms=(Arm("a"), Arm("b"), Arm("c")), claims=(), curves=())
    second = toys.experiment("second", arms=(Arm("d"), Arm("c"), Arm("e")), claims=(), curves=())
    colours = arm_colours([first, second])
    assert colours == {"a": 0, "b": 1, "c": 2, "d": 0, "e": 1}
