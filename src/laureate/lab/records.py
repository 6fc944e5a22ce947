"""What the board, the pages and exports read: plain dictionaries made from the store and the declarations."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from laureate.lab.claim import Claim, Experiment, Paper
from laureate.lab.judging import statistics
from laureate.lab.judging.evidence import effects
from laureate.lab.running.plan import DEFAULT_PROBLEM
from laureate.lab.storing.store import Store

__all__ = ["OBSERVATION_COLUMNS", "board_rows", "compare_runs", "observation_rows", "paper_record", "run_observations"]

OBSERVATION_COLUMNS: tuple[str, ...] = (
    "run",
    "paper",
    "experiment",
    "problem",
    "scale",
    "arm",
    "seed",
    "metric",
    "index",
    "value",
)


def board_rows(store: Store, papers: Iterable[Paper]) -> list[dict[str, Any]]:
    """Every claim with its last verdict, questions left out; a claim tried on a user's problem has a second row."""
    latest = store.latest_verdicts()
    rows = []
    for paper in papers:
        for experiment in paper.experiments:
            for claim in experiment.claims:
                if claim.kind == "question":
                    continue
                claim_id = f"{paper.id}/{claim.name}"
                facts = {"title": paper.title, "area": paper.area, "source": claim.source}
                rows.append(facts | latest.get((claim_id, DEFAULT_PROBLEM), _not_run(claim_id, experiment, claim)))
                rows.extend(
                    facts | record
                    for (found, problem), record in sorted(latest.items())
                    if found == claim_id and problem != DEFAULT_PROBLEM
                )
    return rows


def _not_run(claim_id: str, experiment: Experiment, claim: Claim) -> dict[str, Any]:
    told = dict.fromkeys(("effect", "low", "high", "p", "run", "scale", "machine"))
    return told | {
        "id": claim_id,
        "paper": claim_id.partition("/")[0],
        "experiment": experiment.name,
        "kind": claim.kind,
        "statement": claim.statement,
        "verdict": "not run",
        "metric": claim.metric,
        "method": claim.method,
        "baseline": claim.baseline,
        "problem": DEFAULT_PROBLEM,
        "seeds": 0,
        "seconds": 0.0,
    }


def paper_record(paper: Paper) -> dict[str, Any]:
    """A paper's own facts, with what each scale is expected to cost in seconds."""
    scales = dict.fromkeys(scale for experiment in paper.experiments for scale in experiment.scales)
    cost = {
        scale: sum(e.scales[scale].cost for e in paper.experiments if scale in e.scales)
        for scale in ("smoke", "desk", "full")
        if scale in scales
    }
    facts = (
        "id",
        "title",
        "authors",
        "venue",
        "year",
        "award",
        "area",
        "problem",
        "idea",
        "equation",
        "example",
    )
    deviations = {e.name: list(e.deviations) for e in paper.experiments if e.deviations}
    return {name: getattr(paper, name) for name in facts} | {"cost": cost, "deviations": deviations}


def run_observations(
    store: Store, run: int, paper: str = ""
) -> dict[tuple[str, str], dict[str, dict[str, np.ndarray]]]:
    """(paper, experiment) -> arm -> metric -> array with the run's seeds first; of one paper, if it is named."""
    blocks: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for cell in sorted(store.run_cells(run, paper), key=lambda cell: cell["start"]):
        if cell["status"] == "done":
            blocks.setdefault((cell["paper"], cell["experiment"]), {}).setdefault(cell["arm"], []).append(cell)
    seeds = {(v["paper"], v["experiment"]): v.get("seeds") for v in store.verdicts(run) if v.get("seeds")}
    found: dict[tuple[str, str], dict[str, dict[str, np.ndarray]]] = {}
    for key, arms in blocks.items():
        for arm, cells in arms.items():
            parts = [store.observations(cell["id"]) for cell in cells]
            found.setdefault(key, {})[arm] = {
                metric: np.concatenate([part[metric] for part in parts])[: seeds.get(key)] for metric in parts[0]
            }
    return found


def observation_rows(store: Store, run: int) -> Iterator[dict[str, Any]]:
    """Every number a run rests on, in long form."""
    record = store.run(run) or {}
    for (paper, experiment), arms in run_observations(store, run).items():
        for arm, metrics in arms.items():
            for metric, values in metrics.items():
                for place, value in np.ndenumerate(values):
                    where = (run, paper, experiment, record["problem"], record["scale"], arm, place[0], metric)
                    index = " ".join(map(str, place[1:]))
                    yield dict(zip(OBSERVATION_COLUMNS, (*where, index, value.item()), strict=True))


def compare_runs(store: Store, papers: Iterable[Paper], first: int, second: int) -> list[dict[str, Any]]:
    """The claims of two runs side by side, with the change of the per-seed effect where both have the same seeds."""
    declared = {f"{paper.id}/{claim.name}": claim for paper in papers for claim in paper.claims}
    sides = [{claim["id"]: claim for claim in store.verdicts(run) if "verdict" in claim} for run in (first, second)]
    observed = [run_observations(store, run) for run in (first, second)]
    rows = []
    for claim_id in dict.fromkeys((*sides[0], *sides[1])):
        a, b = (side.get(claim_id) for side in sides)
        row: dict[str, Any] = {"id": claim_id, "first": a, "second": b, "change": None, "low": None, "high": None}
        if a and b and a["seeds"] == b["seeds"] and a["effect"] is not None and b["effect"] is not None:
            claim, key = declared.get(claim_id), (a["paper"], a["experiment"])
            # An old run may be of another declaration: its verdict stands, its numbers cannot be paired.
            with contextlib.suppress(KeyError, ValueError):
                if claim is not None:
                    change = effects(claim, observed[1][key]) - effects(claim, observed[0][key])
                    low, high = statistics.interval(change)
                    row |= {"change": float(change.mean()), "low": float(low), "high": float(high)}
        rows.append(row)
    return rows
