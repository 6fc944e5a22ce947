"""The same seed gives the same bits: again, in another order, beside others, in other processes, with other workers."""

import random
import sys
from pathlib import Path

import jax
import pytest

import toys
from laureate import papers
from laureate.lab.claim import Arm, Experiment, Paper
from laureate.lab.running import worker
from laureate.lab.running.plan import plan, select
from laureate.lab.running.run import run_claims
from laureate.lab.storing.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
import harness  # pyright: ignore[reportMissingImports]


def bits(outcome) -> dict[str, bytes]:
    assert not outcome.error, outcome.error
    return {metric: values.tobytes() for metric, values in outcome.metrics.items()}


def computed(cells) -> dict[tuple, dict[str, bytes]]:
    return {cell.key: bits(worker.compute(cell)) for cell in cells}


@pytest.fixture(autouse=True)
def no_programs(monkeypatch):
    monkeypatch.setattr(worker, "_programs", {})


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{}, {"x64": True}, {"over_seeds": "loop"}], ids=["vmapped", "double precision", "one by one"]
)
def test_a_cell_compiled_anew_gives_the_same_bits(changes, monkeypatch):
    cells = plan(toys.selections(toys.paper(toys.experiment(**changes)), "toy/better"), "smoke")[:2]
    first = computed(cells)
    jax.clear_caches()
    monkeypatch.setattr(worker, "_programs", {})
    assert computed(cells) == first
    assert len(set(map(str, first.values()))) == len(cells), "other seeds, other numbers"


def test_order_company_and_other_settings_change_nothing(monkeypatch):
    """Cells of one program run with the numbers of each: none may leak into the next."""
    cells = plan(toys.selections(toys.paper()), "smoke")
    first = computed(cells)
    others = (Arm("ours", shift=7.0), Arm("theirs", shift=8.0), Arm("third", shift=9.0))
    mixed = [*cells, *plan(toys.selections(toys.paper(toys.experiment(arms=others))), "smoke")]
    random.Random(1).shuffle(mixed)
    monkeypatch.setattr(worker, "_programs", {})
    again = computed(mixed)
    assert {key: again[key] for key in first} == first
    assert len({str(found) for found in again.values()}) == len(again), "no two cells have the same numbers"


def kept(made: Paper, words, folder: Path, **options) -> dict[tuple, bytes]:
    folder.mkdir()
    store = Store(folder / "store.sqlite")
    summary = run_claims(store, select(words, [made.id], lambda _: made), scale="smoke", **options)
    store.close()
    assert not summary.failures
    return harness.kept(folder)


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(tmp_path):
    alone, two, three = (kept(toys.paper(), ["toy"], tmp_path / str(n), workers=n) for n in (1, 2, 3))
    assert alone == two == three
    more = kept(toys.paper(), ["toy"], tmp_path / "more", workers=2, seeds=14)
    assert alone.items() <= more.items(), "more seeds only add cells"


def compiled_at_smoke(paper: Paper) -> list[Experiment]:
    """Those that do not read a clock, the cheapest first."""
    fitting = [one for one in paper.experiments if one.over_seeds == "vmap" and "smoke" in one.scales]
    return sorted(fitting, key=lambda one: one.scales["smoke"].cost)


# All their experiments of smoke run seed by seed on the host.
WITHOUT = {"gvp", "interaction-attack", "pac-confidence", "referring-segmentation"}


def test_every_other_paper_has_an_experiment_to_repeat():
    assert {one for one in papers.paper_ids() if not compiled_at_smoke(papers.paper(one))} == WITHOUT


@pytest.mark.slow
@pytest.mark.parametrize("paper_id", sorted({*papers.paper_ids()} - WITHOUT))
def test_an_experiment_of_every_paper_in_one_process_and_in_two(paper_id, tmp_path):
    paper = papers.paper(paper_id)
    words = [f"{paper_id}/{compiled_at_smoke(paper)[0].name}"]
    first = kept(paper, words, tmp_path / "one", workers=1)
    assert first == kept(paper, words, tmp_path / "two", workers=2)
    assert first == kept(paper, words, tmp_path / "again", workers=1, fresh=True)
