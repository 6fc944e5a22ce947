"""Mutants on trial: each in a copy of the repository, on the tests that touch its lines, several at once."""

import difflib
import functools
import json
import math
import multiprocessing
import multiprocessing.forkserver
import os
import queue
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from mutants.coverage_map import QUICK, Touched, area_of, belonging, environment, options, package_of, tests_of, touched
from mutants.operators import Mutant, is_sound, mutants_of, sample

__all__ = [
    "BY_THOROUGH",
    "SURVIVED",
    "Outcome",
    "devised",
    "in_copies",
    "listed",
    "random_mutants",
    "run_tests",
    "summary",
    "table",
]

COPIED = ("src", "tests", "examples", "scripts", "pyproject.toml", "docs", "README.md", "CONTRIBUTING.md", "LICENSE")
BY_THOROUGH, BY_SLOW = "caught by a thorough test", "caught by a slow test"
CAUGHT = ("caught", BY_THOROUGH, BY_SLOW, "does not import", "too slow")
SURVIVED = ("SURVIVED", "UNTOUCHED")
NOT_TRIED = "not tried"
STARTING = threading.Lock()
T = TypeVar("T")
R = TypeVar("R")
WAITED = 5  # how many times the limit, which is of CPU seconds, a mutant may take by the clock


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: one of CAUGHT or SURVIVED, and the test that first failed."""

    operator: str
    file: str
    line: int
    outcome: str
    by_test: str
    seconds: float
    diff: str


def random_mutants(
    root: Path,
    area: str,
    number: int | None,
    seed: int,
    *,
    operator: str | None = None,
    processes: int = 1,
    limit: float = 240.0,
    slow: bool = False,
    budget: float = math.inf,
    known: Iterable[dict] = (),
    named: Iterable[dict] | None = None,
) -> list[Outcome]:
    """Try ``number`` mutants of an area, or all; ``slow``: also the slow tests, where the others let one live.

    After ``budget`` minutes no further one is begun, and what was not tried is left out.
    With an ``operator`` only its mutants.
    Of ``known`` outcomes those that were caught are taken as they are, and only the survivors are tried again.
    ``named`` (rows of ``listed`` with their tests) says by which tests somebody expects each to be caught: only these
    are run, after they have passed once without any fault.
    """
    say = lambda *words, **more: print(*words, file=sys.stderr, **more)  # noqa: E731
    chosen, sources = _chosen(root, area, number, seed, operator, say)
    caught = {(one["file"], one["diff"]): Outcome(**one) for one in known if one["outcome"] in CAUGHT}
    expected = {(row["file"], row["diff"]): row["tests"] for row in named or ()}
    short: Touched = {}
    if named is None:
        short = touched(root, area, [root / name for name in sources], "not slow", say)
    elif tests := sorted({test for names in expected.values() for test in names}):
        found, failed = next(
            in_copies(root, lambda folder, names: run_tests(root, folder, names, "", 3600), [tests], 1)
        )
        if found != "SURVIVED":
            sys.exit(f"Without any fault the named tests must pass; {found}: {failed}")

    def one(folder: Path, mutant: Mutant) -> Outcome:
        source = sources[mutant.path]
        name = mutant.path, _diff(mutant, source)
        if before := caught.get(name):
            return before
        if time.monotonic() > until:
            return Outcome(mutant.operator, mutant.path, mutant.line, NOT_TRIED, "", 0.0, name[1])
        by = short if named is None else expected.get(name, [])
        try:
            found = _try(root, folder, mutant, source, area, by, limit, slow)
        finally:
            (folder / mutant.path).write_text(sources[mutant.path], encoding="utf-8")
        where = f"{found.file}:{found.line}"
        say(f"{found.outcome:22} {found.operator:20} {where}  {found.seconds:.0f} s  {found.by_test}", flush=True)
        return found

    until = time.monotonic() + 60 * budget
    return [found for found in in_copies(root, one, chosen, processes) if found.outcome != NOT_TRIED]


def devised(root: Path, rows: Iterable[dict], *, processes: int = 1, limit: float = 240.0) -> Iterator[Outcome]:
    """Try faults that somebody has devised, of any areas, each with the tests that touch its lines.

    Rows have ``id``, ``file``, ``replace`` and ``by``, as those of ``tests/mutations``. Where no test executes a line
    in its own process, all tests of the area are run.
    """
    say = lambda *words, **more: print(*words, file=sys.stderr, **more)  # noqa: E731
    sources = {row["file"]: (root / row["file"]).read_text(encoding="utf-8") for row in rows}
    mutants = [_of_row(row, sources[row["file"]]) for row in rows]
    of_area = lambda area: [root / name for name in sources if area_of(root, name) == area]  # noqa: E731
    measured = lambda area: (area, touched(root, area, of_area(area), "not slow", say))  # noqa: E731
    with ThreadPoolExecutor(processes) as pool:
        maps = dict(pool.map(measured, sorted({area_of(root, name) for name in sources})))

    def one(folder: Path, mutant: Mutant) -> Outcome:
        area = area_of(root, mutant.path)
        by = maps[area] if _touching(maps[area], mutant) else sorted(maps[area])
        try:
            return _try(root, folder, mutant, sources[mutant.path], area, by, limit, slow=False)
        finally:
            (folder / mutant.path).write_text(sources[mutant.path], encoding="utf-8")

    return in_copies(root, one, mutants, processes)


def _of_row(row: dict, source: str) -> Mutant:
    """A devised fault as a mutant whose operator is its id."""
    if (found := source.count(row["replace"])) != 1:
        sys.exit(f"The text that {row['id']} replaces must stand once in {row['file']}; found {found} times.")
    start = source.index(row["replace"])
    line = 1 + source.count("\n", 0, start)
    return Mutant(row["file"], start, row["id"], row["by"], row["replace"], line, line + row["replace"].count("\n"))


def listed(root: Path, area: str, number: int | None, seed: int, operator: str | None = None) -> list[dict]:
    """The mutants that would be tried, each with its diff and room for the tests that should catch it."""
    chosen, sources = _chosen(root, area, number, seed, operator, lambda *words: None)
    return [
        {
            "file": one.path,
            "line": one.line,
            "operator": one.operator,
            "diff": _diff(one, sources[one.path]),
            "tests": [],
        }
        for one in chosen
    ]


def _chosen(
    root: Path, area: str, number: int | None, seed: int, operator: str | None, say: Callable
) -> tuple[list[Mutant], dict[str, str]]:
    """The mutants of a seed, or all in the order of the text, and the sources of the area by name."""
    place = root / "src" / package_of(root) / area
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    sources = {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}
    made = [mutant for name in sources for mutant in mutants_of(root / name, name)]
    every = [mutant for mutant in made if operator in (None, mutant.operator)]
    sound = lambda mutant: is_sound(mutant, sources[mutant.path])  # noqa: E731
    chosen = list(filter(sound, every)) if number is None else sample(every, number, seed, sound)
    say(f"{len(chosen)} of {len(every)} mutants of {area}, seed {seed}")
    return chosen, sources


def in_copies(root: Path, work: Callable[[Path, T], R], items: Iterable[T], processes: int) -> Iterator[R]:
    """``work(copy of the repository, item)`` for every item, several at once, each copy with one at a time."""
    folders: queue.Queue[Path] = queue.Queue()

    def one(item: T) -> R:
        folder = folders.get()
        try:
            return work(folder, item)
        finally:
            folders.put(folder)

    with tempfile.TemporaryDirectory() as temporary:
        for process in range(processes):
            folders.put(_copy(root, Path(temporary) / str(process)))
        with ThreadPoolExecutor(processes) as pool:
            yield from pool.map(one, items)


def summary(area: str, seed: int, outcomes: list[Outcome]) -> dict:
    """For a file and for the table."""
    count = lambda words: sum(one.outcome in words for one in outcomes)  # noqa: E731
    thorough, slow = count((BY_THOROUGH,)), count((BY_SLOW,))
    return {
        "area": area,
        "seed": seed,
        "tried": len(outcomes),
        "caught": count(CAUGHT) - thorough - slow,
        "caught by thorough tests": thorough,
        "caught by slow tests": slow,
        "mutants": [asdict(one) for one in outcomes],
    }


def table(files: list[str]) -> str:
    """The rows of ``docs/mutants.md`` from the results of several runs."""
    rows = [
        "| area | seed | tried | caught by `make test` | by `make check` | by `make test-all` | survived |",
        "|---|---|---|---|---|---|---|",
    ]
    for file in files:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
        short = found["caught"]
        landed = short + found["caught by thorough tests"]
        all_caught = landed + found["caught by slow tests"]
        share = lambda part, whole=found["tried"]: f"{part} ({part / max(whole, 1):.0%})"  # noqa: E731
        row = [found["area"], found["seed"], found["tried"], share(short), share(landed), share(all_caught)]
        rows.append("| " + " | ".join(str(cell) for cell in [*row, found["tried"] - all_caught]) + " |")
    return "\n".join(rows)


def _try(
    root: Path,
    folder: Path,
    mutant: Mutant,
    source: str,
    area: str,
    by: Touched | list[str],
    limit: float,
    slow: bool,
) -> Outcome:
    started = time.perf_counter()
    (folder / mutant.path).write_text(mutant.apply(source), encoding="utf-8")
    tests = by if isinstance(by, list) else _touching(by, mutant)
    around = belonging(root, area)
    outcome, by_test = ("UNTOUCHED", "") if not tests else run_tests(root, folder, tests, QUICK, limit, around)
    if tests and outcome in SURVIVED:
        found, by_test = run_tests(root, folder, tests, "thorough", limit, around)
        outcome = BY_THOROUGH if found == "caught" else "SURVIVED"
    if slow and outcome in SURVIVED:
        unseen = "SURVIVED" if tests else "UNTOUCHED"
        examples = [name for name in tests_of(root, area, everything=True) if name.startswith("src/")]
        for marks, names in (("", examples), ("slow", tests_of(root, area, everything=False))):
            if outcome in SURVIVED and names:
                found, by_test = run_tests(root, folder, names, marks, 4 * limit, around)
                outcome = BY_SLOW if found == "caught" else unseen
    seconds = round(time.perf_counter() - started, 1)
    diff = _diff(mutant, source)
    return Outcome(mutant.operator, mutant.path, mutant.line, outcome, by_test, seconds, diff)


def _touching(short: Touched, mutant: Mutant) -> list[str]:
    """The files of tests that execute one of its lines, the quickest first, for the first failure ends it."""
    lines = range(mutant.line, mutant.last_line + 1)
    touching = [
        name for name, seen in short.items() if any(line in lines for line in seen["lines"].get(mutant.path, ()))
    ]
    return sorted(touching, key=lambda name: short[name]["seconds"])


def run_tests(
    root: Path, folder: Path, tests: list[str], marks: str, limit: float, around: dict[str, str] | None = None
) -> tuple[str, str]:
    """What pytest says in the copy, within so many CPU seconds, and the first test that failed.

    ``around``: more variables of the environment.
    """
    said = folder / "said.txt"
    said.write_text("", encoding="utf-8")  # what the one before said is not this one's
    process = _server(root).Process(target=_pytest, args=(folder, [*options(marks), *tests], said, limit, around or {}))
    process.start()
    process.join(WAITED * limit)
    killed = process.exitcode is None or process.exitcode < 0
    if process.exitcode is None and process.pid:
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that its tests have started
    process.join()
    if killed:
        return "too slow", ""
    lines = said.read_text(encoding="utf-8").splitlines()
    failed = [line.partition(" ")[2].partition(" - ")[0] for line in lines if line.startswith(("FAILED", "ERROR"))]
    outcome = {0: "SURVIVED", 1: "caught", 5: "UNTOUCHED"}.get(process.exitcode or 0, "does not import")
    return outcome, failed[0] if failed else ""


@functools.cache
def _server(root: Path):
    """Forks processes in which the libraries are loaded already: loading them takes longer than most tests."""
    with STARTING:
        context = multiprocessing.get_context("forkserver")
        if (root / "tests" / "conftest.py").exists():
            os.environ.update(environment(root, root / ".pytest_cache" / "programs"), MUTANTS_ROOT=str(root))
            # The server does not get our sys.path before Python 3.13, and says nothing where it cannot load a module.
            os.environ["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[1])
            context.set_forkserver_preload(["mutants.loaded"])
            multiprocessing.forkserver.ensure_running()
            probe = context.Process(target=_probe)
            probe.start()
            probe.join()
            if probe.exitcode:
                raise RuntimeError("mutants.loaded was not loaded by the server that forks; see mutants/loaded.py.")
    return context


def _probe() -> None:
    """Fails where the server has not loaded the libraries: everything would pass, and take thrice as long."""
    sys.exit("mutants.loaded" not in sys.modules)


def _pytest(folder: Path, arguments: list[str], said: Path, limit: float, around: dict[str, str]) -> None:
    """In a process of its own: its exit code is pytest's."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))
    os.chdir(folder)
    os.environ.update(around, PYTHONPATH=str(folder / "src"), PYTHONDONTWRITEBYTECODE="1")
    sys.path[:0] = [str(folder), str(folder / "src")]
    sys.dont_write_bytecode = True
    with said.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import pytest

    os._exit(_flushed(pytest.main(arguments)))


def _flushed(code: int) -> int:
    sys.stdout.flush()
    return int(code)


def _copy(root: Path, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in COPIED:
        if (root / name).exists():
            copy = shutil.copytree if (root / name).is_dir() else shutil.copy
            copy(root / name, folder / name)
    return folder


def _diff(mutant: Mutant, source: str) -> str:
    before, after = (text.splitlines(keepends=True) for text in (source, mutant.apply(source)))
    return "".join(difflib.unified_diff(before, after, mutant.path, f"{mutant.path} ({mutant.operator})", n=1))
