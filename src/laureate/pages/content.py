"""What each page shows, gathered from the store, the declarations and the catalogue as plain values.

The rendering functions (:mod:`laureate.pages.render`) take what these return and touch nothing else.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laureate import papers
from laureate.catalogue.citation import bibtex
from laureate.catalogue.library import by_id
from laureate.lab import ledger
from laureate.lab.cell import DEFAULT_PROBLEM
from laureate.lab.claim import Experiment, Paper
from laureate.lab.judging.results import (
    WORDS,
    ClaimResult,
    QuestionResult,
    Result,
    by_role,
    claims_of,
    tally,
)
from laureate.lab.records import (
    board_results,
    compare_runs,
    differing,
    own_results,
    paper_record,
    paper_results,
    run_observations,
    run_standings,
)
from laureate.lab.reference import film_panels, reference
from laureate.lab.running.bench import latest_rows
from laureate.lab.storing.rows import CellRow, RunRow
from laureate.lab.storing.store import Store
from laureate.pages.figures import (
    CurveFigure,
    Figure,
    FilmFigure,
    IntervalFigure,
    arm_colours,
    claim_figure,
    curve_figures,
    film_figure,
)
from laureate.pages.wording import origins

__all__ = [
    "Live", "Section", "ShownClaim", "ShownPaper", "ShownSpeed", "Spent", "board", "compare", "figure", "films_of",
    "method", "run", "runs",
]  # fmt: skip

CELLS_A_PAGE = 200
RUNS_A_PAGE = 50
# How many of the newest runs may be chosen for a comparison; an older one by its address.
RUNS_TO_CHOOSE = 200
# How many earlier results of a claim its page lists.
HISTORY = 10
# How many claims a method's page answers before anything else.
ANSWERS = 5


@dataclass(frozen=True)
class ShownPaper:
    """A paper on the board.

    cost: expected seconds, by scale. roles: its claims, headlines first. lead, figure: the claim whose picture stands
        for it, and that picture; None where nothing was measured.
    """

    paper: Paper
    cost: Mapping[str, float]
    roles: Mapping[str, list[ClaimResult]]
    lead: ClaimResult | None
    figure: IntervalFigure | None

    @property
    def claims(self) -> list[ClaimResult]:
        """All of them, in the order of the roles."""
        return [result for mine in self.roles.values() for result in mine]

    @property
    def first(self) -> tuple[str, list[ClaimResult]]:
        """The first role, and its claims."""
        return next(iter(self.roles.items()), ("", []))

    @property
    def tally(self) -> dict[str, int]:
        """How many have each verdict.

        Checks of our own code are counted apart, where they fold away; a paper of nothing else counts them here.
        """
        return tally([result for result in self.claims if result.role != "check"] or self.claims)

    @property
    def idle(self) -> bool:
        """Whether nothing of it was measured."""
        return list(self.tally) == ["not run"]

    @property
    def reference(self) -> int:
        """How many of its results ship with the package."""
        return sum(result.reference for result in self.claims)


def board(store: Store, shown: Iterable[Paper]) -> dict[str, Any]:
    """Every claim with its result, by area, paper and role; what was found on the user's own problems apart."""
    shown = list(shown)
    results = board_results(store, shown)
    groups: dict[str, list[ShownPaper]] = {}
    for paper in shown:
        mine = [result for result in results if result.paper == paper.id]
        lead = _lead(mine)
        drawn = claim_figure(lead) if lead else None
        groups.setdefault(paper.area, []).append(
            ShownPaper(paper, paper_record(paper)["cost"], by_role(mine), lead, drawn)
        )
    # What was measured comes first.
    groups = {area: sorted(methods, key=lambda one: one.idle) for area, methods in groups.items()}
    groups = dict(sorted(groups.items(), key=lambda pair: all(one.idle for one in pair[1])))
    own: dict[str, list[ClaimResult]] = {}
    for result in own_results(store, shown):
        own.setdefault(result.problem, []).append(result)
    standings = {
        problem: [
            ranked
            for number in sorted({row.run for row in rows if row.run is not None}, reverse=True)
            for ranked in run_standings(store, shown, number)
        ]
        for problem, rows in own.items()
    }
    shipped = [result for result in results if result.reference]
    return {
        "standings": standings,
        "reference": len(shipped),
        "reference_words": origins(shipped),
        "areas": groups,
        "tallies": _tallies(results),
        "claims": len(results),
        "papers": len(shown),
        "machines": sorted({result.machine for result in results if result.machine and not result.reference}),
        "own": own,
    }


def _lead(results: Sequence[ClaimResult]) -> ClaimResult | None:
    """The claim whose picture stands for the paper: the first with a number, headlines before the others."""
    in_order = [result for mine in by_role(results).values() for result in mine]
    return next((result for result in in_order if claim_figure(result)), None)


def _tallies(results: Iterable[ClaimResult]) -> dict[str, dict[str, int]]:
    """Role -> verdict -> how many; headlines first."""
    return {role: tally(mine) for role, mine in by_role(results).items()}


@dataclass(frozen=True)
class ShownClaim:
    """A claim on its method's page: what is shown of it, when it was declared and changed, its earlier results."""

    result: ClaimResult
    figure: IntervalFigure | None
    declared: str
    earlier: tuple[ClaimResult, ...]


@dataclass(frozen=True)
class Section:
    """An experiment on its method's page. run: the newest of those whose curves are drawn. accepts: of a problem."""

    name: str
    title: str
    claims: tuple[ShownClaim, ...]
    questions: tuple[QuestionResult, ...]
    curves: tuple[CurveFigure, ...]
    run: int | None
    deviations: tuple[str, ...]
    accepts: tuple[str, ...] = ()

    @property
    def words(self) -> dict[str, int]:
        """How many claims have each verdict."""
        return tally(shown.result for shown in self.claims)

    @property
    def findings(self) -> tuple[ShownClaim, ...]:
        """The claims that are about the paper."""
        return tuple(shown for shown in self.claims if shown.result.role != "check")

    @property
    def checks(self) -> tuple[ShownClaim, ...]:
        """The claims that are about our own code."""
        return tuple(shown for shown in self.claims if shown.result.role == "check")


def method(store: Store, paper: Paper, run: int | None = None) -> dict[str, Any]:
    """A paper's page: with what is shown of every claim, or with what one run found."""
    results = paper_results(store, paper, run)
    used = {result.run for result in results if result.run is not None}
    observed = {number: run_observations(store, number, paper.id) for number in used}
    sections = [
        _section(store, paper, experiment, mine, observed, with_history=run is None)
        for experiment in paper.experiments
        if (mine := [result for result in results if result.name in {claim.name for claim in experiment.claims}])
    ]
    claims = [result for result in results if isinstance(result, ClaimResult)]
    roles = by_role(claims)
    entry = by_id(paper.id)
    return paper_record(paper) | {
        "bibtex": bibtex(entry) if entry else "",
        "films": films_of(paper),
        "sections": sections,
        "roles": roles,
        "answers": next(iter(roles.values()), [])[:ANSWERS],
        "reference": sum(result.reference for result in results),
        "reference_words": origins(results),
        "tallies": _tallies(claims),
        "measured": {spent.scale: spent for spent in _measured(store, paper, used)},
        "speed": speed_rows(store, paper.id),
        "run": run,
    }


def films_of(paper: Paper) -> list[FilmFigure]:
    """What the page shows moving."""
    recorded, experiments = film_panels(paper), {experiment.name: experiment for experiment in paper.experiments}
    films = (film for film in paper.films if film.name in recorded)
    return [film_figure(film, experiments[film.experiment], recorded[film.name]) for film in films]


def _section(
    store: Store,
    paper: Paper,
    experiment: Experiment,
    results: Sequence[Result],
    observed: dict[int, dict],
    with_history: bool,
) -> Section:
    claims = [result for result in results if isinstance(result, ClaimResult)]
    lines = ledger.history(paper.id)
    newest = max((result.run for result in results if result.run is not None), default=None)
    arms = observed[newest].get((paper.id, experiment.name), {}) if newest is not None else {}
    return Section(
        name=experiment.name,
        title=experiment.title,
        claims=tuple(
            ShownClaim(
                result,
                claim_figure(result),
                _declaration(lines.get(result.name, ())),
                _earlier(store, result) if with_history else (),
            )
            for result in claims
        ),
        questions=tuple(result for result in results if isinstance(result, QuestionResult)),
        curves=tuple(curve_figures(paper.id, experiment, arms, arm_colours(paper.experiments))),
        run=newest,
        deviations=experiment.deviations,
        accepts=experiment.accepts,
    )


def _declaration(lines: Sequence[ledger.Entry]) -> str:
    """When a claim was declared and changed; empty where its ledger has no line of it."""
    return ledger.summary(lines) if lines else ""


def _earlier(store: Store, result: ClaimResult) -> tuple[ClaimResult, ...]:
    """Other results of a claim, newest first; repetitions that say the same are listed once."""
    found: dict[tuple, ClaimResult] = {}
    for other in store.history(str(result.id), DEFAULT_PROBLEM, HISTORY):
        if isinstance(other, ClaimResult):
            found.setdefault((other.scale, other.seeds, other.verdict, other.effect, other.reason), other)
    same = (result.scale, result.seeds, result.verdict, result.effect, result.reason)
    earlier = tuple(other for key, other in found.items() if key != same)
    ours = reference(papers.paper(result.paper)).get(str(result.id)) if result.run is not None else None
    return (*earlier, ours) if isinstance(ours, ClaimResult) else earlier


@dataclass(frozen=True)
class Spent:
    """The seconds that a paper's cells took at a scale, and where."""

    scale: str
    seconds: float
    machine: str


def _measured(store: Store, paper: Paper, runs: Iterable[int]) -> Iterable[Spent]:
    """What the paper's cells of these runs took, a row a scale; the newest run of a scale stands."""
    for number in sorted(runs):
        record = store.run(number)
        if record:
            seconds = sum(
                cell["seconds"] + cell["compile_seconds"]
                for cell in store.run_cells(number, paper.id)
                if cell["status"] == "done"
            )
            yield Spent(record["scale"], seconds, record["environment"]["machine"])


@dataclass(frozen=True)
class ShownSpeed:
    """A comparison with a peer on its method's page. versions: of what was compared, in words. measured: when."""

    work: str
    ours_s: float
    peer: str
    peer_s: float | None
    ratio: float
    low: float | None
    high: float | None
    note: str
    measured: str
    machine: str
    versions: str


def speed_rows(store: Store, paper_id: str) -> list[ShownSpeed]:
    """The newest comparison with each peer that ``laureate bench`` measured, with versions and machine."""
    found = []
    for row in latest_rows(store.benchmarks(paper_id)):
        ratio = row.get("ratio")
        if isinstance(ratio, int | float):
            facts = row["environment"]
            versions = facts.get("versions", {})
            with_what = [f"{name} {versions[name]}" for name in ("laureate", "jax") if name in versions]
            if row.get("peer_version") and row.get("package"):
                with_what.append(f"{row['package']} {row['peer_version']}")
            found.append(
                ShownSpeed(
                    work=row["work"],
                    ours_s=row["ours_s"],
                    peer=row["peer"],
                    peer_s=row.get("peer_s"),
                    ratio=ratio,
                    low=row.get("low"),
                    high=row.get("high"),
                    note=row.get("note", ""),
                    measured=row["measured"],
                    machine=facts.get("machine", ""),
                    versions=", ".join(with_what),
                )
            )
    return found


def runs(store: Store, page: int = 1) -> dict[str, Any]:
    """The latest runs, newest first."""
    total = store.counts()["runs"]
    listed = store.runs(RUNS_A_PAGE, RUNS_A_PAGE * (page - 1))
    found = store.words([record["id"] for record in listed])
    words = {run: {word: mine.count(word) for word in WORDS if word in mine} for run, mine in found.items()}
    return {
        "runs": [record | {"tally": words.get(record["id"], {})} for record in listed],
        "page": page,
        "pages": max(1, -(-total // RUNS_A_PAGE)),
        "total": total,
    }


def run(store: Store, number: int, page: int = 1) -> dict[str, Any] | None:
    """One run: its verdicts, its cells with status and traceback, its environment."""
    record = store.run(number)
    if record is None:
        return None
    cells = store.run_cells(number)
    failed = [cell for cell in cells if cell["status"] == "failed"]
    results = [result for result in store.results(number) if isinstance(result, ClaimResult)]
    first = CELLS_A_PAGE * (page - 1)
    running = record["status"] == "running"
    known = [papers.paper(paper_id) for paper_id in papers.paper_ids() if any(c["paper"] == paper_id for c in cells)]
    own = record["problem"] != DEFAULT_PROBLEM
    return {
        "standings": run_standings(store, known, number) if own and not running else [],
        "curves": [] if running else [section for paper in known for section in _drawn(store, paper, number)],
        "wall": _wall_seconds(record),
        "live": _live(store, record, cells) if running else None,
        "run": record,
        "roles": by_role(_declared(results)),
        "tallies": _tallies(_declared(results)),
        "papers": [paper.id for paper in known],
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


def _drawn(store: Store, paper: Paper, number: int) -> list[Section]:
    """The experiments of a run that have curves."""
    return [section for section in method(store, paper, number)["sections"] if section.curves]


def _wall_seconds(record: RunRow) -> float | None:
    """From start to end by the clock on the wall; to now while it runs, None where nobody wrote down the end."""
    end = record["finished"]
    if end is None and record["status"] != "running":
        return None
    now = datetime.datetime.now(datetime.UTC)
    ended = datetime.datetime.fromisoformat(end) if end else now
    return max(0.0, (ended - datetime.datetime.fromisoformat(record["started"])).total_seconds())


@dataclass(frozen=True)
class Live:
    """How far a run is: cells done, of how many, the experiment of the last, seconds left as soon as one is done."""

    done: int
    total: int
    experiment: str
    seconds_left: float | None


def _live(store: Store, record: RunRow, cells: Sequence[CellRow]) -> Live:
    computed = [cell for cell in cells if not cell["cached"]]
    ahead, wall = store.cells_ahead(record["id"]), _wall_seconds(record)
    last = max(computed, key=lambda cell: cell["id"], default=None)
    return Live(
        done=len(computed),
        total=len(computed) + ahead,
        experiment=f"{last['paper']}/{last['experiment']}" if last else "",
        seconds_left=wall / len(computed) * ahead if computed and wall is not None else None,
    )


def _declared(results: Sequence[ClaimResult]) -> list[ClaimResult]:
    """With what today's declarations say of them; those that are not declared any more stay as they are."""
    found = {str(result.id): result for result in results}
    known = set(papers.paper_ids()) & {result.paper for result in results}
    for paper_id in known:
        found |= {str(one.id): one for one in claims_of(papers.paper(paper_id), found) if str(one.id) in found}
    return list(found.values())


def compare(store: Store, first: int | None, second: int | None) -> dict[str, Any]:
    """Two runs side by side; without both numbers, only the choice."""
    left, right = (store.run(number) if number is not None else None for number in (first, second))
    newest = store.runs(RUNS_TO_CHOOSE)
    known = {record["id"] for record in newest}
    older = {side["id"]: side for side in (left, right) if side and side["id"] not in known}
    page: dict[str, Any] = {
        "choice": [*newest, *(older[number] for number in sorted(older, reverse=True))],
        "first": left,
        "second": right,
        "rows": None,
        "unlike": [],
    }
    if first is None or second is None or left is None or right is None:
        return page
    rows = compare_runs(store, papers.all_papers(), first, second)
    facts = [_environment(side) for side in (left, right)]
    differences = [(name, facts[0].get(name, "–"), facts[1].get(name, "–")) for name in {**facts[0], **facts[1]}]
    unlike = differing(left, right)
    return page | {"rows": rows, "unlike": unlike, "differences": [row for row in differences if row[1] != row[2]]}


def _environment(record: RunRow) -> dict[str, str]:
    environment = record["environment"]
    facts = {name: str(value) for name, value in environment["versions"].items()}
    facts |= {name: str(environment.get(name) or "–") for name in ("machine", "memory_gib", "system", "commit")}
    return {"scale": record["scale"], "seeds": str(record["seeds"]), "problem": record["problem"]} | facts


def figure(store: Store, number: int | None, name: str) -> Figure | None:
    """One picture of a run by its name: ``paper/claim`` or ``paper/experiment/number``; without a run, as shown."""
    paper_id = name.partition("/")[0]
    if paper_id not in papers.paper_ids():
        return None
    return next((one for one in figures(store, number, [paper_id]) if one.name == name), None)


def figures(store: Store, number: int | None, paper_ids: Iterable[str]) -> list[Figure]:
    """Every picture of these papers in a run; without one, those that are shown."""
    found: list[Figure] = []
    for paper_id in paper_ids:
        for section in method(store, papers.paper(paper_id), number)["sections"]:
            found.extend(shown.figure for shown in section.claims if shown.figure)
            found.extend(section.curves)
    return found
