"""A run: plan the cells, take the finished ones from the store, compute the rest, judge the claims.

Repeating a command resumes it. The parent alone writes to the store, a cell as soon as it is finished.
"""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from laureate._data import lacking
from laureate.lab.cell import DEFAULT_PROBLEM, Cell, Outcome
from laureate.lab.errors import UserError
from laureate.lab.judging.judge import Observed, judge
from laureate.lab.judging.results import ClaimResult, QuestionResult, Result
from laureate.lab.running.environment import check_compiler, environment
from laureate.lab.running.executors import Executor, cores, make_executor
from laureate.lab.running.plan import Selection, plan, scale_of
from laureate.lab.running.trying import try_problem
from laureate.lab.storing.home import compilation_cache, mend_compilation_cache
from laureate.lab.storing.store import Store

__all__ = ["Progress", "Summary", "in_turn", "problem_label", "run_claims"]

# How often a run looks whether another has finished what both need.
WAIT_SECONDS = 0.5


class Progress(Protocol):
    """What is called with how far a run is."""

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
    """What a run found: verdicts, answers to questions, what became of its cells, and their seconds of computing.

    repeated: nothing was new, so no run was added; ``run`` is the one that found the same before.
    """

    run: int
    scale: str
    seeds: int
    problem: str
    claims: list[ClaimResult]
    questions: list[QuestionResult]
    cells: dict[str, int]
    seconds: float = 0.0
    failures: list[dict[str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    repeated: bool = False

    def to_json(self) -> dict[str, Any]:
        """The object that ``laureate run --json`` prints."""
        results = {"claims": self.claims, "questions": self.questions}
        return vars(self) | {name: [result.to_json() for result in mine] for name, mine in results.items()}


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
    workers: processes; by default one per core, and this process alone where one cell is left.
    on: a Ray cluster, as in ``RayCluster``; empty: this machine.
    """
    selections, skipped = _fitting(list(selections), scale, problem)
    planned = plan(selections, scale, seeds, problem)
    found = {} if fresh else {cell.key: i for cell in planned if (i := store.finished_cell(cell)) is not None}
    to_compute = _longest_first([cell for cell in planned if cell.key not in found], selections, scale)
    shown_seeds = seeds or max(scale_of(selection.experiment, scale).seeds for selection in selections)

    if not to_compute and (before := _repeated(store, selections, planned, found, seeds, scale, problem)):
        run, results = before
        return _summary(
            store, run, scale, shown_seeds, problem, results, planned, found, skipped=skipped, repeated=True
        )

    # First of all, for a cluster may not be there.
    at_once = max(1, min(workers or cores(), len(to_compute)))
    if to_compute:
        check_compiler()
    executor = make_executor(workers if on else at_once, compilation_cache(), on) if to_compute else None
    at_once = executor.workers if executor and on else at_once
    if problem != DEFAULT_PROBLEM and executor:
        with _closing_on_error(executor):
            try_problem(problem, to_compute)
    facts = environment()
    if executor and on:
        facts["machine"] = f"a Ray cluster of {at_once} cores, from {facts['machine']}"
    run = store.start_run(command, scale, shown_seeds, problem, facts)
    failures: list[dict[str, str]] = []
    computed = 0
    status = "interrupted"
    try:
        store.use_cells(run, found.values())
        before = store.run(run - 1)
        if executor and before and before["status"] == "interrupted":
            mend_compilation_cache()
        if progress:
            progress.start(to_compute, len(found), at_once)
        for cells, elsewhere in in_turn(store, run, to_compute, fresh, progress):
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
        circumstances = {"scale": scale, "problem": problem_label(problem), "machine": facts["machine"], "run": run}
        results = _judge(store, selections, planned, found, seeds, circumstances)
        results = [_with_history(store, result, scale) for result in results]
        store.add_results(run, results)
    finally:
        if progress:
            progress.stop()
        if executor:
            executor.close()
        store.end_run(run, status)
    became = {"computed": computed, "failures": failures, "skipped": skipped}
    return _summary(store, run, scale, shown_seeds, problem, results, planned, found, **became)


@contextmanager
def _closing_on_error(executor: Executor) -> Iterator[None]:
    try:
        yield
    except BaseException:
        executor.close()
        raise


def _summary(
    store: Store,
    run: int,
    scale: str,
    seeds: int,
    problem: str,
    results: list[Result],
    planned: list[Cell],
    found: Mapping[tuple[str, int], int],
    *,
    computed: int = 0,
    failures: Iterable[dict[str, str]] = (),
    skipped: Iterable[str] = (),
    repeated: bool = False,
) -> Summary:
    failures = list(failures)
    total = len(planned)
    counts = {"total": total, "computed": computed, "cached": total - computed, "failed": len(failures)}
    return Summary(
        run,
        scale,
        seeds,
        problem_label(problem),
        [result for result in results if isinstance(result, ClaimResult)],
        [result for result in results if isinstance(result, QuestionResult)],
        counts,
        round(sum(store.cell_seconds(found.values()).values()), 3),
        failures,
        list(skipped),
        repeated,
    )


def _repeated(
    store: Store,
    selections: list[Selection],
    planned: list[Cell],
    found: Mapping[tuple[str, int], int],
    seeds: int | None,
    scale: str,
    problem: str,
) -> tuple[int, list[Result]] | None:
    """The newest finished run of just these cells that says just what would be said now, with its results.

    Judged anew and compared: a claim that is declared or decided otherwise since is a new run.
    """
    for run in store.runs_of(found.values(), scale):
        record = store.run(run)
        machine = record["environment"]["machine"] if record else ""
        facts = {"scale": scale, "problem": problem_label(problem), "machine": machine, "run": run}
        now = [
            _with_history(store, result, scale) for result in _judge(store, selections, planned, found, seeds, facts)
        ]
        then = store.results(run)
        if [result.to_json() for result in now] == [result.to_json() for result in then]:
            return run, then
    return None


def _with_history(store: Store, result: Result, scale: str) -> Result:
    """With how often it was measured before; looks are known to the judge already, who makes them pay."""
    if not isinstance(result, ClaimResult):
        return result
    return replace(result, remeasured=store.other_effects(result, scale))


def in_turn(
    store: Store, run: int, cells: list[Cell], fresh: bool, progress: Progress | None
) -> Iterator[tuple[list[Cell], list[tuple[Cell, int]]]]:
    """The cells to compute here, and those (with their ids) that another run finished meanwhile, until none is left.

    What another run is computing is waited for, and taken over should that run stop.
    """
    if fresh:
        yield cells, []
        return
    announced = False
    while cells:
        mine, finished = store.take(run, cells)
        if mine or finished:
            store.use_cells(run, finished.values())
            yield mine, [(cell, finished[cell.key]) for cell in cells if cell.key in finished]
            settled = {cell.key for cell in mine} | finished.keys()
            cells = [cell for cell in cells if cell.key not in settled]
            continue
        if progress and not announced:
            progress.waiting(cells)
            announced = True
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
    seeds: int | None,
    circumstances: Mapping[str, Any],
) -> list[Result]:
    """The results of all selected claims, paper by paper."""
    seconds, scale = store.cell_seconds(found.values()), circumstances["scale"]
    observed: dict[str, list[Observed]] = {}
    for selection in selections:
        paper, experiment = selection.paper, selection.experiment
        total = seeds or scale_of(experiment, scale).seeds
        arms, cost = {}, {}
        for arm in selection.arms():
            keys = [c.key for c in planned if (c.paper, c.experiment, c.arm) == (paper.id, experiment.name, arm)]
            if all(key in found for key in keys):
                arms[arm] = store.joined([found[key] for key in keys], total)
                cost[arm] = sum(seconds[found[key]] for key in keys)
        looks = {
            claim.name: store.earlier_looks(f"{paper.id}/{claim.name}", circumstances["problem"], scale, total)
            for claim in selection.claims
        }
        observed.setdefault(paper.id, []).append(Observed(experiment, selection.claims, arms, cost, looks))
    papers = {selection.paper.id: selection.paper for selection in selections}
    return [result for paper in papers.values() for result in judge(paper, observed[paper.id], **circumstances)]
