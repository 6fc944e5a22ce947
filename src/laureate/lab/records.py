"""What the board, the pages and exports read: results from the store, joined with the declarations."""

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from laureate.lab.cell import DEFAULT_PROBLEM
from laureate.lab.claim import Paper
from laureate.lab.judging import statistics
from laureate.lab.judging.evidence import measure
from laureate.lab.judging.results import ClaimId, ClaimResult, Result, claims_of, results_of
from laureate.lab.judging.standing import Standing, standings
from laureate.lab.reference import with_reference
from laureate.lab.storing.rows import CellRow, RunRow
from laureate.lab.storing.store import Store

__all__ = [
    "OBSERVATION_COLUMNS",
    "Comparison",
    "board_results",
    "compare_runs",
    "differing",
    "observation_rows",
    "own_results",
    "paper_record",
    "paper_results",
    "run_observations",
    "run_standings",
]

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


def board_results(store: Store, papers: Iterable[Paper]) -> list[ClaimResult]:
    """Every claim of these papers with the result that is shown of it, on the paper's own problem.

    Where nothing was measured here it is the one that ships, marked as ``reference``.
    """
    found = {claim: result for (claim, problem), result in store.shown().items() if problem == DEFAULT_PROBLEM}
    return [result for paper in papers for result in claims_of(paper, with_reference(paper, found))]


def own_results(store: Store, papers: Iterable[Paper]) -> list[ClaimResult]:
    """What was found on the user's own problems; attempts that failed are no findings."""
    shown = store.shown()
    results = []
    for problem in sorted({problem for _, problem in shown} - {DEFAULT_PROBLEM}):
        found = {claim: result for (claim, where), result in shown.items() if where == problem}
        results.extend(r for paper in papers for r in claims_of(paper, found) if r.verdict != "not run")
    return results


def paper_results(store: Store, paper: Paper, run: int | None = None) -> list[Result]:
    """Every claim and question of a paper with what is shown of it; with ``run``, only what that run found."""
    if run is not None:
        found = {str(result.id): result for result in store.results(run) if result.paper == paper.id}
        results = [result for result in results_of(paper, found) if str(result.id) in found]
    else:
        ids = [f"{paper.id}/{claim.name}" for claim in paper.claims]
        shown = store.shown(ids)
        found = {claim: result for (claim, problem), result in shown.items() if problem == DEFAULT_PROBLEM}
        results = results_of(paper, with_reference(paper, found))
    return _with_numbers(store, paper, results)


def _with_numbers(store: Store, paper: Paper, results: list[Result]) -> list[Result]:
    """With the numbers that an older Laureate did not keep beside its verdicts, made again from the observations."""
    claims = {claim.name: claim for claim in paper.claims}
    observed: dict[int, dict] = {}
    complete = []
    for result in results:
        if isinstance(result, ClaimResult) and result.has_effect and result.measured is None and result.run:
            if result.run not in observed:
                observed[result.run] = run_observations(store, result.run, paper.id)
            # The old run may be of another declaration: its verdict stands, without a picture.
            with contextlib.suppress(KeyError, ValueError):
                arms = observed[result.run][paper.id, result.experiment]
                result = dataclasses.replace(result, measured=measure(claims[result.name], arms))
        complete.append(result)
    return complete


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
        "url",
        "area",
        "problem",
        "idea",
        "equation",
        "example",
        "meaning",
    )
    deviations = {e.name: list(e.deviations) for e in paper.experiments if e.deviations}
    return {name: getattr(paper, name) for name in facts} | {"cost": cost, "deviations": deviations}


class _Arm(NamedTuple):
    """What a run observed of an arm: by metric, the seeds first; which seeds these are; whether a block failed."""

    metrics: dict[str, np.ndarray]
    seeds: np.ndarray
    failed: bool


def _observed(store: Store, run: int, paper: str = "") -> dict[tuple[str, str], dict[str, _Arm]]:
    """(paper, experiment) -> arm -> what was observed of it; arms of which no block was finished are not there."""
    blocks: dict[tuple[str, str], dict[str, list[CellRow]]] = {}
    for cell in sorted(store.run_cells(run, paper), key=lambda cell: cell["start"]):
        blocks.setdefault((cell["paper"], cell["experiment"]), {}).setdefault(cell["arm"], []).append(cell)
    judged = {(result.paper, result.experiment): result.seeds for result in store.results(run) if result.seeds}
    found: dict[tuple[str, str], dict[str, _Arm]] = {}
    for key, arms in blocks.items():
        for arm, cells in arms.items():
            if done := [cell for cell in cells if cell["status"] == "done"]:
                seeds = np.concatenate([cell["start"] + np.arange(cell["count"]) for cell in done])
                mine = seeds < judged.get(key, math.inf)
                metrics = store.joined(cell["id"] for cell in done)
                metrics = {metric: values[mine] for metric, values in metrics.items()}
                found.setdefault(key, {})[arm] = _Arm(metrics, seeds[mine], len(done) < len(cells))
    return found


def run_observations(
    store: Store, run: int, paper: str = ""
) -> dict[tuple[str, str], dict[str, dict[str, np.ndarray]]]:
    """(paper, experiment) -> arm -> metric -> array with the run's seeds first; of one paper, if it is named.

    Seeds of a block that failed are not there.
    """
    found = _observed(store, run, paper)
    return {key: {arm: observed.metrics for arm, observed in arms.items()} for key, arms in found.items()}


def run_standings(store: Store, papers: Iterable[Paper], run: int) -> list[Standing]:
    """The arms of every experiment of a run, ranked by what its claims are decided by, but for those that failed."""
    known = {paper.id: paper for paper in papers}
    record, judged = store.run(run), {str(result.id) for result in store.results(run)}
    found: list[Standing] = []
    if record is None:
        return found
    for (paper_id, name), observed in _observed(store, run).items():
        arms = {arm: one.metrics for arm, one in observed.items() if not one.failed}
        experiments = known[paper_id].experiments if paper_id in known else ()
        for experiment in experiments:
            if experiment.name == name:
                claims = [claim for claim in experiment.claims if f"{paper_id}/{claim.name}" in judged]
                found += standings(paper_id, experiment, claims, arms, experiment.scales.get(record["scale"]))
    return found


def observation_rows(store: Store, run: int) -> Iterator[dict[str, Any]]:
    """Every number a run rests on, in long form."""
    record = store.run(run)
    if record is None:
        return
    for (paper, experiment), arms in _observed(store, run).items():
        for arm, observed in arms.items():
            seeds = observed.seeds.tolist()
            for metric, values in observed.metrics.items():
                for place, value in np.ndenumerate(values):
                    where = (run, paper, experiment, record["problem"], record["scale"], arm, seeds[place[0]], metric)
                    index = " ".join(map(str, place[1:]))
                    yield dict(zip(OBSERVATION_COLUMNS, (*where, index, value.item()), strict=True))


@dataclass(frozen=True)
class Comparison:
    """One claim in two runs.

    change, low, high: of the effect, paired by seed, in the mean or, for bounds, in the median; None where they cannot
    be paired.
    """

    id: ClaimId
    first: ClaimResult | None
    second: ClaimResult | None
    change: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def differs(self) -> bool:
        """Whether the interval of the change leaves 0 out."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    def to_json(self) -> dict[str, Any]:
        """A dictionary for ``json``."""
        sides = {"first": self.first, "second": self.second}
        results = {name: side.to_json() if side else None for name, side in sides.items()}
        numbers = {name: getattr(self, name) for name in ("change", "low", "high")}
        # Too few seeds give an interval without ends, for which JSON has no number.
        finite = {
            name: value if value is not None and math.isfinite(value) else None for name, value in numbers.items()
        }
        return {"id": str(self.id)} | results | finite


def differing(first: RunRow, second: RunRow) -> list[str]:
    """Why the effects of two runs are not of the same thing: another problem, another scale; empty where they are."""
    found = []
    for what in ("problem", "scale"):
        sides = [str(run[what]).rpartition("/")[2] for run in (first, second)]
        if first[what] != second[what]:
            words = ["the paper's own" if side == DEFAULT_PROBLEM else side for side in sides]
            found.append(f"the {what} of run {first['id']} is {words[0]}, that of run {second['id']} is {words[1]}")
    return found


def compare_runs(store: Store, papers: Iterable[Paper], first: int, second: int) -> list[Comparison]:
    """The claims of two runs side by side, with the change of the per-seed effect where both have the same seeds."""
    known = {paper.id: paper for paper in papers}
    sides = []
    for run in (first, second):
        found = [result for result in store.results(run) if isinstance(result, ClaimResult)]
        kept = {str(result.id): result for result in found}
        for paper in {result.paper for result in found} & known.keys():
            kept |= {str(r.id): r for r in paper_results(store, known[paper], run) if isinstance(r, ClaimResult)}
        sides.append(kept)
    ids = dict.fromkeys((*sides[0], *sides[1]))
    return [_compared(ClaimId.parse(id), sides[0].get(id), sides[1].get(id)) for id in ids]


def _compared(id: ClaimId, first: ClaimResult | None, second: ClaimResult | None) -> Comparison:
    if not (first and second and first.measured and second.measured) or first.measured.axis != second.measured.axis:
        return Comparison(id, first, second)
    before, after = np.array(first.measured.effects), np.array(second.measured.effects)
    if before.shape != after.shape or not np.isfinite([before, after]).all():
        return Comparison(id, first, second)
    of_medians = second.centre == "median"
    centre, interval = (np.median, statistics.median_interval) if of_medians else (np.mean, statistics.interval)
    low, high = interval(after - before)
    return Comparison(id, first, second, float(centre(after - before)), float(low), float(high))
