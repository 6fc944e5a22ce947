"""A run: plan the cells, take the finished ones from the store, compute the rest, judge the claims.

Repeating a command resumes it. The parent alone writes to the store, a cell as soon as it is finished.
"""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from laureate._data import lacking
from laureate.lab.errors import UserError
from laureate.lab.judging.verdict import Draft, Verdict, answers, decide, draft, not_run
from laureate.lab.running.environment import environment
from laureate.lab.running.executors import cores, make_executor
from laureate.lab.running.plan import DEFAULT_PROBLEM, Cell, Selection, plan, scale_of
from laureate.lab.running.worker import Outcome
from laureate.lab.storing.home import compilation_cache, mend_compilation_cache
from laureate.lab.storing.store import Store

__all__ = ["Progress", "Summary", "run_claims"]

# How often a run looks whether another has finished what both need.
WAIT_SECONDS = 0.5


class Progress(Protocol):
    """Who is told how far a run is."""

    def start(self, to_compute: list[Cell], cached: int, workers: int) -> None:
        """The plan is made."""
        ...

    def finished(self, cell: Cell, outcome: Outcome) -> None:
        """One more cell is computed and stored."""
        ...

    def waiting(self, cells: list[Cell]) -> None:
        """These are under way in another run on the same store."""
        ...

    def stop(self) -> None:
        """Nothing more comes."""
        ...


@dataclass(frozen=True)
class Summary:
    """What a run found: verdicts, answers to questions, what became of its cells, and their seconds of computing."""

    run: int
    scale: str
    seeds: int
    problem: str
    claims: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    cells: dict[str, int]
    seconds: float = 0.0
    failures: list[dict[str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The object that ``laureate run --json`` prints."""
        return dict(vars(self))


def run_claims(
    store: Store,
    selections: Iterable[Selection],
    *,
    scale: str = "desk",
    seeds: int | None = None,
    problem: str = DEFAULT_PROBLEM,
    workers: int | None = None,
    on: str = "",
    fresh: bool = False,
    command: str = "",
    progress: Progress | None = None,
) -> Summary:
    """Decide the selected claims, computing only what the store does not have.

    seeds: for every experiment; by default what its scale declares.
    workers: processes; by default one a core, and this process alone where one cell is left.
    on: a Ray cluster, as in ``RayCluster``; empty: this machine.
    """
    selections, skipped = _fitting(list(selections), scale, problem)
    planned = plan(selections, scale, seeds, problem)
    found = {} if fresh else {cell.key: i for cell in planned if (i := store.finished_cell(cell)) is not None}
    to_compute = _longest_first([cell for cell in planned if cell.key not in found], selections, scale)
    shown_seeds = seeds or max(scale_of(selection.experiment, scale).seeds for selection in selections)

    # First of all, for a cluster may not be there.
    at_once = max(1, min(workers or cores(), len(to_compute)))
    executor = make_executor(workers if on else at_once, compilation_cache(), on) if to_compute else None
    at_once = executor.workers if executor and on else at_once
    facts = environment()
    if executor and on:
        facts["machine"] = f"a Ray cluster of {at_once} cores, from {facts['machine']}"
    run = store.start_run(command, scale, shown_seeds, problem, facts)
    failures: list[dict[str, str]] = []
    computed = 0
    status = "interrupted"
    try:
        store.use_cells(run, found.values())
        if executor and (store.run(run - 1) or {}).get("status") == "interrupted":
            mend_compilation_cache()
        if progress:
            progress.start(to_compute, len(found), at_once)
        for cells, elsewhere in _in_turn(store, run, to_compute, fresh, progress):
            for cell, cell_id in elsewhere:
                found[cell.key] = cell_id
                if progress:
                    progress.finished(cell, Outcome(seconds=store.cell_seconds([cell_id])[cell_id]))
            for cell, outcome in executor.outcomes(cells) if executor and cells else ():
                cell_id = store.add_cell(run, cell, outcome)
                computed += 1
                if outcome.error:
                    failures.append({"cell": cell.name, "error": outcome.error})
                else:
                    found[cell.key] = cell_id
                if progress:
                    progress.finished(cell, outcome)
        status = "failed" if failures else "finished"
        claims, questions = _judge(store, selections, planned, found, scale, seeds)
        for record in claims:
            before = store.seeds_judged(record["id"], problem_label(problem), scale)
            record["looks"] = [seeds for seeds in before if seeds != record["seeds"]]
        for record in (*claims, *questions):
            record |= {"scale": scale, "problem": problem_label(problem), "machine": facts["machine"], "run": run}
        store.add_verdicts(run, problem_label(problem), (*claims, *questions))
    finally:
        if progress:
            progress.stop()
        if executor:
            executor.close()
        store.end_run(run, status)
    cached = len(planned) - computed
    counts = {"total": len(planned), "computed": computed, "cached": cached, "failed": len(failures)}
    seconds = round(sum(store.cell_seconds(found.values()).values()), 3)
    label = problem_label(problem)
    return Summary(run, scale, shown_seeds, label, claims, questions, counts, seconds, failures, skipped)


def _in_turn(
    store: Store, run: int, cells: list[Cell], fresh: bool, progress: Progress | None
) -> Iterator[tuple[list[Cell], list[tuple[Cell, int]]]]:
    """The cells to compute here, and those (with their ids) that another run finished meanwhile, until none is left.

    What another run is computing is waited for, and taken over should that run stop.
    """
    if fresh:
        yield cells, []
        return
    told = False
    while cells:
        mine, finished = store.take(run, cells)
        if mine or finished:
            store.use_cells(run, finished.values())
            yield mine, [(cell, finished[cell.key]) for cell in cells if cell.key in finished]
            settled = {cell.key for cell in mine} | finished.keys()
            cells = [cell for cell in cells if cell.key not in settled]
            continue
        if progress and not told:
            progress.waiting(cells)
            told = True
        time.sleep(WAIT_SECONDS)


def _longest_first(cells: list[Cell], selections: list[Selection], scale: str) -> list[Cell]:
    """By the declared cost of a cell, so that no long one is left to a single worker at the end."""
    cost = {(s.paper.id, s.experiment.name): scale_of(s.experiment, scale).cost for s in selections}
    count = Counter((cell.paper, cell.experiment) for cell in cells)
    each = {experiment: cost[experiment] / count[experiment] for experiment in count}
    return sorted(cells, key=lambda cell: -each[cell.paper, cell.experiment])


def problem_label(problem: str) -> str:
    """A user's problem by file and name, not by where the file lies."""
    return problem if problem == DEFAULT_PROBLEM else os.path.basename(problem)


def _fitting(selections: list[Selection], scale: str, problem: str) -> tuple[list[Selection], list[str]]:
    """The selections that make sense at this scale and with the user's own problem, and why the others do not."""
    fitting, skipped = [], []
    for selection in selections:
        experiment = selection.experiment
        name = f"{selection.paper.id}/{experiment.name}"
        if scale not in experiment.scales:
            offered = [one for one in experiment.scales if one != "tiny"]
            skipped.append(f"{name} has no scale {scale}, only {' and '.join(offered)}")
        elif problem != DEFAULT_PROBLEM and not experiment.accepts:
            skipped.append(f"{name} has a problem of its own")
        elif problem == DEFAULT_PROBLEM and (needs := lacking(experiment.data_at(scale))):
            skipped.append(f"{name} is not run: it {needs}")
        else:
            fitting.append(selection)
    if not fitting:
        open_ones = sorted({f"{s.paper.id}/{e.name}" for s in selections for e in s.paper.experiments if e.accepts})
        remedy = f"These take your own problem: {', '.join(open_ones)}." if problem != DEFAULT_PROBLEM else ""
        raise UserError(f"Nothing to run: {'; '.join(skipped)}.", remedy)
    return fitting, skipped


def _judge(
    store: Store,
    selections: list[Selection],
    planned: list[Cell],
    found: Mapping[tuple[str, int], int],
    scale: str,
    seeds: int | None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Verdicts, with Holm over all the claims of each paper, and the tables that answer questions."""
    seconds = store.cell_seconds(found.values())
    drafts: dict[str, dict[str, Draft]] = {}
    records: dict[str, dict[str, Any]] = {}
    questions: list[dict[str, Any]] = []
    for selection in selections:
        paper, experiment = selection.paper, selection.experiment
        total = seeds or scale_of(experiment, scale).seeds
        observed: dict[str, dict[str, np.ndarray]] = {}
        cost: dict[str, float] = {}
        for arm in selection.arms():
            keys = [c.key for c in planned if (c.paper, c.experiment, c.arm) == (paper.id, experiment.name, arm)]
            if all(key in found for key in keys):
                observed[arm] = _observed(store, [found[key] for key in keys], total)
                cost[arm] = sum(seconds[found[key]] for key in keys)
        for claim in selection.claims:
            claim_id = f"{paper.id}/{claim.name}"
            about = {"id": claim_id, "paper": paper.id, "experiment": experiment.name}
            if claim.kind == "question":
                told = {"kind": claim.kind, "statement": claim.statement, "metric": claim.metric}
                questions.append(about | told | {"answers": answers(claim, observed)})
                continue
            needed = {claim.method, claim.baseline, claim.trivial} - {""}
            records[claim_id] = about | {"seconds": round(sum(cost.get(arm, 0.0) for arm in needed), 3)}
            if missing := sorted(needed - set(observed)):
                records[claim_id] |= _told(not_run(claim, f"failed: {', '.join(missing)}"))
            else:
                guards = [guard.at(scale_of(experiment, scale)) for guard in experiment.guards]
                drafts.setdefault(paper.id, {})[claim_id] = draft(claim, observed, guards)
    for paper in {selection.paper.id: selection.paper for selection in selections}.values():
        mine = drafts.get(paper.id, {})
        family = sum(claim.kind != "question" for claim in paper.claims)
        for claim_id, verdict in zip(mine, decide(list(mine.values()), family), strict=True):
            records[claim_id] |= _told(verdict)
    return list(records.values()), questions


def _told(verdict: Verdict) -> dict[str, Any]:
    """A verdict's fields; its claim is told by the full id beside them."""
    return {name: value for name, value in verdict.to_json().items() if name != "claim"}


def _observed(store: Store, cell_ids: list[int], seeds: int) -> dict[str, np.ndarray]:
    """The blocks of one arm joined, cut to the seeds that were asked for."""
    blocks = [store.observations(cell_id) for cell_id in cell_ids]
    if len({frozenset(block) for block in blocks}) > 1:
        raise store.damaged("a metric of some seeds")
    return {metric: np.concatenate([block[metric] for block in blocks])[:seeds] for metric in blocks[0]}
