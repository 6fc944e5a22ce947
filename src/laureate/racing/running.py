"""A race: pilot, tuning, scoring. Cells as the lab's, kept in its store, so that repeating a command resumes it.

1. *Pilot*, where only seconds are given: how fast everybody is, from which one budget in cost follows for all.
2. *Tuning*: successive halving on seeds that do not count, the same cost for every entrant.
3. *Scoring*: everybody with the settings chosen, the same seeds, the same budget.

A crash, a run that does not end and a number that is not finite are what became of that entrant; the others go on.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laureate.lab.cell import Cell, Outcome
from laureate.lab.errors import UserError
from laureate.lab.running.environment import check_compiler, environment
from laureate.lab.running.executors import OF_WORKERS, Executor, cores, make_executor
from laureate.lab.running.fingerprint import fingerprint
from laureate.lab.running.run import Progress, in_turn, problem_label
from laureate.lab.running.stoppable import ENDLESS, Stoppable
from laureate.lab.storing.home import compilation_cache
from laureate.lab.storing.store import Store
from laureate.pages.wording import settings as in_words
from laureate.racing.code import filled, uses
from laureate.racing.discipline import Config, Discipline, Entrant, Metric
from laureate.racing.halving import FIRST_TUNING_SEED, TUNING_SEEDS, best, rungs
from laureate.racing.objects import is_held
from laureate.racing.standing import Measured, compared

__all__ = ["Course", "Run", "Scored", "run_course"]

PILOT_SECONDS = 0.05  # a pilot runs at least so long, compiling apart
SLOWEST = 10.0  # who is so many times slower than the median does not shrink the others' budget, and is cut
BLOCK = 5  # scoring seeds a cell
COMPILE_PATIENCE = 180.0  # seconds that a cell may take beyond those of the whole race


@dataclass(frozen=True)
class Course:
    """What is asked for, in plain values.

    reference: of the problem; accepts: attributes by which the worker knows it for one.
    facts: plain values of the problem that all entrants share; fragments: names in code that stand for more code.
    factory: the reference is to what makes the problem, not to the problem itself. dictionary: the problem is one.
    nonce: what tells an object of this process from all others; its cells are kept, but never taken for another's.
    budget: in cost; 0: as much as fits into ``seconds`` of computing for all entrants together.
    """

    discipline: Discipline
    entrants: tuple[Entrant, ...]
    reference: str
    accepts: tuple[str, ...]
    facts: Mapping[str, Any]
    fragments: Mapping[str, str]
    metric: Metric
    seeds: int
    seconds: float
    budget: int = 0
    nonce: str = ""
    points: int = 6
    factory: bool = False
    dictionary: bool = False

    @property
    def smallest(self) -> int:
        """The least budget that gives every entrant a step."""
        return max(self.discipline.smallest, int(self.facts.get("smallest", 1)))

    @property
    def largest(self) -> int:
        """The budget beyond which nobody can use more, such as all rows that there are."""
        return min(self.discipline.largest, int(self.facts.get("largest", self.discipline.largest)))

    def costs(self, budget: int) -> list[int]:
        """Where a curve is looked at: budgets that double, each once."""
        return [budget >> k for k in reversed(range(min(self.points, budget.bit_length())))]


@dataclass(frozen=True)
class Scored:
    """What became of one entrant. error: in words, with ``measured`` None; tuning_cost: what it was given to tune."""

    entrant: Entrant
    config: Config
    measured: Measured | None
    others: Mapping[str, np.ndarray]
    compile_seconds: float
    tuning_cost: float
    error: str = ""
    endless: bool = False


@dataclass(frozen=True)
class Run:
    """A race that was run: its number in the store, the budget, and everybody's runs."""

    number: int
    budget: int
    seconds_a_run: float
    scored: tuple[Scored, ...]
    computed: int
    kept: int
    machine: str


def run_course(
    store: Store,
    course: Course,
    *,
    workers: int | None = None,
    on: str = "",
    fresh: bool = False,
    command: str = "",
    progress: Progress | None = None,
    patience: float | None = None,
) -> Run:
    """Run it, computing only what the store does not have.

    patience: seconds that one cell may take, compiling and all, before it counts as endless. Objects of this process
    run in it, where nothing can be stopped from outside; on a cluster nothing is stopped either.
    """
    check_compiler()
    limit = COMPILE_PATIENCE + course.seconds if patience is None else patience
    runner = _Runner(store, course, workers, on, fresh, progress, limit)
    facts = environment()
    named = labelled(course) if is_held(course.reference) else course.reference
    runner.run = store.start_run(command, "race", course.seeds, named, facts)
    status = "interrupted"
    try:
        budget, seconds = runner.budget()
        chosen = runner.tuned(budget, seconds)
        scored = runner.scored(budget, seconds, chosen)
        status = "failed" if any(one.error for one in scored) else "finished"
    finally:
        runner.close()
        store.end_run(runner.run, status)
    kept = len(runner.known) + len(runner.failed) - runner.computed  # what failed was computed too
    return Run(runner.run, budget, seconds, tuple(scored), runner.computed, kept, facts["machine"])


class _Runner:
    """Cells in, numbers out; what was computed once in this race is not asked for again."""

    def __init__(self, store: Store, course: Course, workers: int | None, on: str, fresh: bool, progress, limit: float):
        self.store, self.course, self.progress, self.fresh = store, course, progress, fresh
        self.run = 0
        self.known: dict[tuple[str, int], int] = {}
        self.failed: dict[tuple[str, int], str] = {}
        self.computed = 0
        self.out: dict[str, str] = {}  # entrants that do not end
        self.compiling: dict[str, float] = {}
        self._workers, self._on, self._limit = workers, on, limit
        self._executor: Executor | None = None

    @property
    def workers(self) -> int:
        return 1 if is_held(self.course.reference) else self._workers or cores()

    def close(self) -> None:
        if self.progress:
            self.progress.stop()
        if self._executor is not None:
            self._executor.close()

    def _executing(self) -> Executor:
        if self._executor is None:
            cache = compilation_cache()
            if self._on or is_held(self.course.reference):
                self._executor = make_executor(self._workers if self._on else 1, cache, self._on)
            else:
                for name, value in OF_WORKERS.items():
                    os.environ.setdefault(name, value)
                cache.mkdir(parents=True, exist_ok=True)
                self._executor = Stoppable(self.workers, cache, self._limit)
        return self._executor

    # -- cells -----------------------------------------------------------------------------------------------------

    def cell(self, entrant: Entrant, config: Config, start: int, count: int, **scale: Any) -> Cell:
        course, discipline = self.course, self.course.discipline
        code = filled(entrant.code, {}, course.fragments)
        settings = {"code": code, "area": discipline.area, "swept": ",".join(config), **course.facts, **config}
        scale_settings = {**discipline.settings, "metric": course.metric.name, **scale}
        configuration = {
            "race": discipline.name,
            "entrant": entrant.name,
            "settings": settings,
            "scale": scale_settings,
            "problem": course.reference.rpartition(":")[2],
            "count": count,
            "x64": discipline.x64,
            "nonce": course.nonce,
        }
        references = (discipline.trial, course.reference, *uses(discipline, code, {**course.facts, **config}))
        shown = in_words(config)
        return Cell(
            paper="race",
            experiment=discipline.name,
            arm=f"{entrant.name} ({shown})" if shown else entrant.name,
            problem=course.reference,
            scale="race",
            start=start,
            count=count,
            trial=discipline.trial,
            problem_reference=course.reference,
            problem_settings={},
            accepts=course.accepts,
            arm_settings=settings,
            scale_settings=scale_settings,
            over_seeds="loop",
            x64=discipline.x64,
            compilation="light",
            fingerprint=fingerprint(configuration, references),
        )

    def compute(self, cells: Iterable[Cell]) -> None:
        """Every cell is afterwards known or failed."""
        wanted = {cell.key: cell for cell in cells}
        wanted = {key: cell for key, cell in wanted.items() if key not in self.known and key not in self.failed}
        if not self.fresh:
            found = {key: i for key, cell in wanted.items() if (i := self.store.finished_cell(cell)) is not None}
            self.store.use_cells(self.run, found.values())
            self.known |= found
        todo = [cell for key, cell in wanted.items() if key not in self.known]
        if not todo:
            return
        if self.progress:
            self.progress.start(todo, len(wanted) - len(todo), self.workers)
        for mine, elsewhere in in_turn(self.store, self.run, todo, self.fresh, self.progress):
            for cell, cell_id in elsewhere:
                self.known[cell.key] = cell_id
                self._tell(cell, Outcome())
            for cell, outcome in self._executing().outcomes(mine) if mine else ():
                cell_id = self.store.add_cell(self.run, cell, outcome)
                self.computed += 1
                if outcome.error:
                    self.failed[cell.key] = outcome.error
                else:
                    self.known[cell.key] = cell_id
                self._tell(cell, outcome)
        if self.progress:
            self.progress.stop()

    def _tell(self, cell: Cell, outcome: Outcome) -> None:
        if self.progress:
            self.progress.finished(cell, outcome)

    def numbers(self, name: str, cell: Cell) -> dict[str, np.ndarray] | None:
        """A cell's metrics, and its entrant's compile time kept; None where it failed."""
        if cell.key not in self.known:
            return None
        found = self.store.observations(self.known[cell.key])
        self.compiling[name] = max(self.compiling.get(name, 0.0), float(np.sum(found.pop("compile_seconds"))))
        return found

    # -- the three stages --------------------------------------------------------------------------------------------

    def budget(self) -> tuple[int, float]:
        """The cost that every run gets, and the seconds after which one is cut."""
        course = self.course
        if course.budget:
            if course.budget < course.smallest:
                raise UserError(
                    f"--budget must be at least {course.smallest} {course.discipline.unit}; got {course.budget}.",
                    "Below that not every entrant could make a step.",
                )
            return course.budget, course.seconds
        first = max(1, course.smallest if not course.discipline.one_shot else course.discipline.smallest)
        pilots = {
            one.name: self.cell(
                one, one.default, FIRST_TUNING_SEED, 1, cost=first, points=1, phase="tune", seconds=course.seconds,
                pilot=PILOT_SECONDS if not course.discipline.one_shot else 1e-9,
            )
            for one in course.entrants
        }  # fmt: skip
        self.compute(pilots.values())
        rates = {}
        for name, cell in pilots.items():
            if (found := self.numbers(name, cell)) is not None:
                rates[name] = max(1e-12, float(found["seconds"][0, -1]) / max(1.0, float(found["cost"][0, -1])))
            elif self.failed[cell.key].startswith(ENDLESS):
                self.out[name] = self.failed[cell.key]
        if not rates:
            first_error = next(iter(self.failed.values()), "nobody could start").splitlines()[0]
            raise UserError(
                f"No entrant could run on this problem: {first_error.rstrip('.')}.",
                "`laureate race --list` says what it must offer.",
            )
        middle = float(np.median(list(rates.values())))
        runs = {
            one.name: course.seeds + TUNING_SEEDS * sum(size * share for size, share in rungs(len(one.configs)))
            for one in course.entrants
        }
        for_one = sum(min(rates.get(name, middle), SLOWEST * middle) * count for name, count in runs.items())
        budget = _two_digits(course.seconds * self.workers / for_one)
        budget = min(course.largest, max(course.smallest, budget))
        return budget, float(f"{SLOWEST * middle * budget:.2g}")

    def tuned(self, budget: int, seconds: float) -> dict[str, tuple[Config, float]]:
        """Everybody's settings, and the cost given to find them."""
        left = {one.name: list(range(len(one.configs))) for one in self.course.entrants if one.name not in self.out}
        ladders = {name: rungs(len(left[name])) for name in left}
        spent = dict.fromkeys(left, 0.0)
        seen: dict[str, set[tuple[str, int]]] = {name: set() for name in left}
        for level in range(max(map(len, ladders.values()), default=0)):
            asked: dict[str, dict[int, Cell]] = {}
            for one in self.course.entrants:
                if one.name in left and level < len(ladders[one.name]):
                    share = ladders[one.name][level][1]
                    cost = max(1, int(budget * share))
                    asked[one.name] = {
                        i: self.cell(
                            one,
                            one.configs[i],
                            FIRST_TUNING_SEED,
                            TUNING_SEEDS,
                            cost=cost,
                            points=1,
                            phase="tune",
                            seconds=seconds,
                        )
                        for i in left[one.name]
                    }
            self.compute(cell for mine in zip_longest(asked) for cell in mine)
            for name, cells in asked.items():
                scores = {i: self._scores(name, cell) for i, cell in cells.items()}
                new = [cell for cell in cells.values() if cell.key not in seen[name]]
                seen[name] |= {cell.key for cell in new}
                spent[name] += TUNING_SEEDS * sum(float(cell.scale_settings["cost"]) for cell in new)
                left[name] = best(scores, math.ceil(len(scores) / 2) if level + 1 < len(ladders[name]) else 1)
        chosen = {}
        for one in self.course.entrants:
            if one.name in left:
                config = one.configs[left[one.name][0]] if ladders[one.name] else one.default
                chosen[one.name] = config, spent[one.name]
        return chosen

    def _scores(self, name: str, cell: Cell) -> Sequence[float]:
        """One a tuning seed, more is better; none where the cell failed."""
        found = self.numbers(name, cell)
        if found is None:
            return []
        measured = _measured(found, self.course.metric.name)
        metric = self.course.metric
        return list(metric.sign * compared(measured.final(measured.quality), metric))

    def scored(self, budget: int, seconds: float, chosen: Mapping[str, tuple[Config, float]]) -> list[Scored]:
        """Everybody's runs that count; block by block, so that all see the same load of the machine."""
        course = self.course
        scale = {"cost": budget, "points": len(course.costs(budget)), "phase": "score", "seconds": seconds}
        cells = {
            one.name: [
                self.cell(one, chosen[one.name][0], start, BLOCK, **scale) for start in range(0, course.seeds, BLOCK)
            ]
            for one in course.entrants
            if one.name in chosen
        }
        self.compute(cell for block in zip(*cells.values(), strict=True) for cell in block)
        found = []
        for one in course.entrants:
            if one.name not in chosen:
                found.append(Scored(one, one.default, None, {}, 0.0, 0.0, self.out[one.name], endless=True))
                continue
            config, spent = chosen[one.name]
            errors = [self.failed[cell.key] for cell in cells[one.name] if cell.key in self.failed]
            if errors:
                endless = errors[0].startswith(ENDLESS)
                found.append(Scored(one, config, None, {}, 0.0, spent, errors[0], endless))
                continue
            blocks = [self.numbers(one.name, cell) or {} for cell in cells[one.name]]
            numbers = {name: np.concatenate([block[name] for block in blocks])[: course.seeds] for name in blocks[0]}
            others = {name: values for name, values in numbers.items() if name not in ("cost", "seconds")}
            measured, compiling = _measured(numbers, course.metric.name), self.compiling[one.name]
            found.append(Scored(one, config, measured, others, compiling, spent))
        return found


def zip_longest(asked: Mapping[str, Mapping[int, Cell]]) -> Iterable[list[Cell]]:
    """In turn: everybody's first cell, then everybody's second, and so on."""
    rows = [list(cells.values()) for cells in asked.values()]
    for i in range(max(map(len, rows), default=0)):
        yield [row[i] for row in rows if i < len(row)]


def _measured(numbers: Mapping[str, np.ndarray], metric: str) -> Measured:
    return Measured(*(np.asarray(numbers[name], np.float64) for name in ("cost", "seconds", metric)))


def _two_digits(value: float) -> int:
    """A budget that people can read, rounded down."""
    if value < 10:
        return max(1, int(value))
    step = 10 ** (math.floor(math.log10(value)) - 1)
    return int(value // step * step)


def labelled(course: Course) -> str:
    """The problem as people call it."""
    return "an object of this process" if is_held(course.reference) else problem_label(course.reference)
