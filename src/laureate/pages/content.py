"""What each page shows, gathered from the store, the declarations and the catalogue as plain values.

The rendering functions (:mod:`laureate.pages.render`) take what these return and touch nothing else.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from laureate import papers
from laureate.catalogue.citation import bibtex
from laureate.catalogue.library import by_id
from laureate.lab.claim import Claim, Experiment, Paper
from laureate.lab.records import board_rows, compare_runs, paper_record, run_observations
from laureate.lab.running.bench import latest_rows
from laureate.lab.running.plan import DEFAULT_PROBLEM
from laureate.lab.storing.store import Store
from laureate.pages.figures import Figure, claim_figure, curve_figures, row_strip

__all__ = ["board", "compare", "figure", "method", "run", "runs"]

CELLS_A_PAGE = 200
RUNS_A_PAGE = 50


def board(store: Store, shown: Iterable[Paper]) -> dict[str, Any]:
    """Every claim with its last verdict, by area and paper."""
    shown = list(shown)
    declared = {f"{paper.id}/{claim.name}": claim for paper in shown for claim in paper.claims}
    costs = {paper.id: paper_record(paper)["cost"] for paper in shown}
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in board_rows(store, shown):
        rows.setdefault(row["paper"], []).append(row | {"strip": row_strip(declared[row["id"]], row)})
    groups: dict[str, list[dict[str, Any]]] = {}
    for paper in shown:
        mine = rows.get(paper.id, [])
        groups.setdefault(paper.area, []).append(_facts(paper, costs) | {"rows": mine, "tally": _tally(mine)})
    # What was measured comes first.
    groups = {area: sorted(methods, key=_idle) for area, methods in groups.items()}
    groups = dict(sorted(groups.items(), key=lambda pair: all(map(_idle, pair[1]))))
    everything = [row for mine in rows.values() for row in mine]
    return {
        "areas": groups,
        "tally": _tally(everything),
        "claims": len(everything),
        "papers": len(shown),
        "machines": sorted({row["machine"] for row in everything if row.get("machine")}),
    }


def _idle(paper: dict[str, Any]) -> bool:
    return list(paper["tally"]) == ["not run"]


def _facts(paper: Paper, costs: dict[str, dict[str, float]]) -> dict[str, Any]:
    names = ("id", "title", "authors", "venue", "year", "award", "area", "problem")
    return {name: getattr(paper, name) for name in names} | {"cost": costs[paper.id]}


def _tally(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    counts = Counter(row["verdict"] for row in rows if "verdict" in row)
    return {word: counts[word] for word in ("supported", "refuted", "inconclusive", "not run") if counts[word]}


def method(store: Store, paper: Paper, run: int | None = None) -> dict[str, Any]:
    """A paper's page: with the last verdict of every claim, or with those of one run."""
    verdicts = _verdicts_of(store, paper, run)
    used = {record["run"] for record in verdicts.values() if record.get("run") is not None}
    observed = {number: run_observations(store, number, paper.id) for number in used}
    sections = [
        section
        for experiment in paper.experiments
        if (section := _section(paper, experiment, verdicts, observed, everything=run is None))
    ]
    rows = [claim for section in sections for claim in section["claims"]]
    entry = by_id(paper.id)
    return paper_record(paper) | {
        "bibtex": bibtex(entry) if entry else "",
        "sections": sections,
        "tally": _tally(rows),
        "measured": {record["scale"]: record for record in _measured(store, paper, used)},
        "speed": speed_rows(store, paper.id),
        "run": run,
    }


def _verdicts_of(store: Store, paper: Paper, run: int | None) -> dict[str, dict[str, Any]]:
    if run is not None:
        return {record["id"]: record | {"run": run} for record in store.verdicts(run) if record["paper"] == paper.id}
    ids = [f"{paper.id}/{claim.name}" for claim in paper.claims]
    latest = store.latest_verdicts(ids)
    return {claim_id: latest[claim_id, DEFAULT_PROBLEM] for claim_id in ids if (claim_id, DEFAULT_PROBLEM) in latest}


def _section(
    paper: Paper,
    experiment: Experiment,
    verdicts: dict[str, dict[str, Any]],
    observed: dict[int, dict],
    everything: bool,
) -> dict[str, Any] | None:
    shown, questions, newest = [], [], None
    for claim in experiment.claims:
        claim_id = f"{paper.id}/{claim.name}"
        record = verdicts.get(claim_id)
        if record is None and not everything:
            continue
        arms = observed[record["run"]].get((paper.id, experiment.name), {}) if record else {}
        if record:
            newest = max(newest or 0, record["run"])
        if claim.kind == "question":
            questions.append(_about(claim_id, claim) | (record or {"answers": None}))
        else:
            base = record or {"verdict": "not run", "effect": None, "seeds": 0, "run": None}
            drawn = claim_figure(claim, base, arms)
            shown.append(_about(claim_id, claim) | base | {"figure": drawn})
    if not shown and not questions:
        return None
    arms = observed[newest].get((paper.id, experiment.name), {}) if newest is not None else {}
    return {
        "name": experiment.name,
        "title": experiment.title,
        "claims": shown,
        "questions": questions,
        "curves": curve_figures(paper.id, experiment, arms),
        "run": newest,
        "deviations": list(experiment.deviations),
    }


def _about(claim_id: str, claim: Claim) -> dict[str, Any]:
    facts = ("name", "statement", "kind", "metric", "source")
    return {"id": claim_id} | {name: getattr(claim, name) for name in facts}


def _measured(store: Store, paper: Paper, runs: Iterable[int]) -> Iterable[dict[str, Any]]:
    """What the paper's cells of these runs took, a row a scale; the newest run of a scale stands."""
    for number in sorted(runs):
        record = store.run(number)
        if record:
            seconds = sum(
                cell["seconds"] + cell["compile_seconds"]
                for cell in store.run_cells(number, paper.id)
                if cell["status"] == "done"
            )
            yield {"scale": record["scale"], "seconds": seconds, "machine": record["environment"]["machine"]}


def speed_rows(store: Store, paper_id: str) -> list[dict[str, Any]]:
    """The newest comparison with each peer that ``laureate bench`` measured, with versions and machine."""
    found = []
    for row in latest_rows(store.benchmarks(paper_id)):
        if isinstance(row.get("ratio"), int | float):
            facts = row["environment"]
            versions = facts.get("versions", {})
            with_what = [f"{name} {versions[name]}" for name in ("laureate", "jax") if name in versions]
            if row.get("peer_version") and row.get("package"):
                with_what.append(f"{row['package']} {row['peer_version']}")
            found.append(dict(row) | {"machine": facts.get("machine", ""), "versions": ", ".join(with_what)})
    return found


def runs(store: Store, page: int = 1) -> dict[str, Any]:
    """The latest runs, newest first."""
    total = store.counts()["runs"]
    listed = store.runs(RUNS_A_PAGE, RUNS_A_PAGE * (page - 1))
    tallies = store.tallies([record["id"] for record in listed])
    return {
        "runs": [record | {"tally": _tally(tallies.get(record["id"], ()))} for record in listed],
        "page": page,
        "pages": max(1, -(-total // RUNS_A_PAGE)),
        "total": total,
    }


def run(store: Store, number: int, page: int = 1) -> dict[str, Any] | None:
    """One run: its verdicts, its cells with status and traceback, its environment."""
    record = store.run(number)
    if record is None:
        return None
    verdicts = store.verdicts(number)
    cells = store.run_cells(number)
    failed = [cell for cell in cells if cell["status"] == "failed"]
    known = papers.paper_ids()
    rows = []
    for verdict in verdicts:
        if "verdict" in verdict:
            claim = _claim(verdict) if verdict["paper"] in known else None
            rows.append(verdict | {"strip": row_strip(claim, verdict) if claim else ""})
    first = CELLS_A_PAGE * (page - 1)
    return {
        "run": record,
        "rows": rows,
        "tally": _tally(rows),
        "papers": list(dict.fromkeys(cell["paper"] for cell in cells)),
        "cells": cells[first : first + CELLS_A_PAGE],
        "failed": failed,
        "counts": {
            "total": len(cells),
            "kept": sum(bool(cell["cached"]) for cell in cells),
            "failed": len(failed),
        },
        "seconds": sum(cell["seconds"] + cell["compile_seconds"] for cell in cells),
        "page": page,
        "pages": max(1, -(-len(cells) // CELLS_A_PAGE)),
    }


def _claim(verdict: dict[str, Any]) -> Claim | None:
    name = verdict["id"].partition("/")[2]
    return next((claim for claim in papers.paper(verdict["paper"]).claims if claim.name == name), None)


def compare(store: Store, first: int | None, second: int | None) -> dict[str, Any]:
    """Two runs side by side; without both numbers, only the choice."""
    sides = [store.run(number) if number is not None else None for number in (first, second)]
    told: dict[str, Any] = {"choice": store.runs(200), "first": sides[0], "second": sides[1], "rows": None}
    if first is None or second is None or sides[0] is None or sides[1] is None:
        return told
    rows = compare_runs(store, papers.all_papers(), first, second)
    for row in rows:
        row["differs"] = row["low"] is not None and not row["low"] <= 0 <= row["high"]
    facts = [_environment(side) for side in sides]
    differences = [(name, facts[0].get(name, "–"), facts[1].get(name, "–")) for name in {**facts[0], **facts[1]}]
    return told | {"rows": rows, "differences": [row for row in differences if row[1] != row[2]]}


def _environment(record: Any) -> dict[str, str]:
    environment = record["environment"]
    told = {name: str(value) for name, value in environment["versions"].items()}
    told |= {name: str(environment.get(name) or "–") for name in ("machine", "memory_gib", "system", "commit")}
    return {"scale": record["scale"], "seeds": str(record["seeds"]), "problem": record["problem"]} | told


def figure(store: Store, number: int, name: str) -> Figure | None:
    """One picture of a run by its name: ``paper/claim`` or ``paper/experiment/number``."""
    paper_id = name.partition("/")[0]
    if paper_id not in papers.paper_ids():
        return None
    return next((one for one in figures(store, number, [paper_id]) if one.name == name), None)


def figures(store: Store, number: int, paper_ids: Iterable[str]) -> list[Figure]:
    """Every picture of these papers in a run."""
    found: list[Figure] = []
    for paper_id in paper_ids:
        for section in method(store, papers.paper(paper_id), number)["sections"]:
            found.extend(claim["figure"] for claim in section["claims"] if claim["figure"])
            found.extend(section["curves"])
    return found
