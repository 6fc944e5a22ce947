"""Mutants on trial: each in a copy of the repository, on the tests that touch its lines, several at once."""

import difflib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants.coverage_map import Touched, environment, options, touched
from mutants.operators import Mutant, is_sound, mutants_of, sample

__all__ = ["SURVIVED", "Outcome", "random_mutants", "summary", "table"]

COPIED = ("src", "tests", "examples", "scripts", "pyproject.toml", "docs", "README.md", "CONTRIBUTING.md", "LICENSE")
CAUGHT = ("caught", "caught by a slow test", "does not import", "too slow")
SURVIVED = ("SURVIVED", "UNTOUCHED")


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
    root: Path, area: str, number: int, seed: int, *, processes: int = 1, limit: float = 240.0, slow: bool = False
) -> list[Outcome]:
    """Try ``number`` mutants of an area; ``slow``: also the slow tests, where the others let one live."""
    place = root / "src" / next(path.parent.name for path in sorted((root / "src").glob("*/__init__.py"))) / area
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    sources = {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}
    every = [mutant for name in sources for mutant in mutants_of(root / name, name)]
    chosen = sample(every, number, seed, lambda mutant: is_sound(mutant, sources[mutant.path]))
    say = lambda *words, **more: print(*words, file=sys.stderr, **more)  # noqa: E731
    say(f"{len(chosen)} of {len(every)} mutants of {area}, seed {seed}")
    short = touched(root, area, files, "not slow", say)
    folders: queue.Queue[Path] = queue.Queue()
    with tempfile.TemporaryDirectory() as temporary:
        for process in range(processes):
            folders.put(_copy(root, Path(temporary) / str(process)))

        def one(mutant: Mutant) -> Outcome:
            folder = folders.get()
            try:
                found = _try(root, folder, mutant, sources[mutant.path], short, limit, slow)
            finally:
                (folder / mutant.path).write_text(sources[mutant.path], encoding="utf-8")
                folders.put(folder)
            where = f"{found.file}:{found.line}"
            say(f"{found.outcome:22} {found.operator:20} {where}  {found.seconds:.0f} s  {found.by_test}", flush=True)
            return found

        with ThreadPoolExecutor(processes) as pool:
            return list(pool.map(one, chosen))


def summary(area: str, seed: int, outcomes: list[Outcome]) -> dict:
    """For a file and for the table."""
    count = lambda words: sum(one.outcome in words for one in outcomes)  # noqa: E731
    tried, slow = len(outcomes), count(("caught by a slow test",))
    return {
        "area": area,
        "seed": seed,
        "tried": tried,
        "caught": count(CAUGHT) - slow,
        "caught by slow tests": slow,
        "mutants": [asdict(one) for one in outcomes],
    }


def table(files: list[str]) -> str:
    """The rows of ``docs/mutants.md`` from the results of several runs."""
    rows = [
        "| area | seed | tried | caught by `make test` | by `make test-all` | survived |",
        "|---|---|---|---|---|---|",
    ]
    for file in files:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
        short, all_caught = found["caught"], found["caught"] + found["caught by slow tests"]
        share = lambda part, whole=found["tried"]: f"{part} ({part / max(whole, 1):.0%})"  # noqa: E731
        row = [found["area"], found["seed"], found["tried"], share(short), share(all_caught)]
        rows.append("| " + " | ".join(str(cell) for cell in [*row, found["tried"] - all_caught]) + " |")
    return "\n".join(rows)


def _try(root: Path, folder: Path, mutant: Mutant, source: str, short: Touched, limit: float, slow: bool) -> Outcome:
    started = time.perf_counter()
    (folder / mutant.path).write_text(mutant.apply(source), encoding="utf-8")
    lines = range(mutant.line, mutant.last_line + 1)
    tests = [name for name, files in short.items() if any(line in lines for line in files.get(mutant.path, ()))]
    outcome, by_test = ("UNTOUCHED", "") if not tests else _run(root, folder, tests, "not slow", limit)
    if slow and outcome in SURVIVED:
        outcome, by_test = _run(root, folder, list(short), "slow", 4 * limit)
        outcome = "caught by a slow test" if outcome == "caught" else "SURVIVED" if tests else "UNTOUCHED"
    seconds = round(time.perf_counter() - started, 1)
    diff = _diff(mutant, source)
    return Outcome(mutant.operator, mutant.path, mutant.line, outcome, by_test, seconds, diff)


def _run(root: Path, folder: Path, tests: list[str], marks: str, limit: float) -> tuple[str, str]:
    """What pytest says in the copy, and the first test that failed."""
    command = [sys.executable, "-m", "pytest", *options(marks), *tests]
    programs = root / ".pytest_cache" / "programs"
    with subprocess.Popen(
        command, cwd=folder, env=environment(folder, programs), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, encoding="utf-8", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that its tests have started
            process.communicate()
            return "too slow", ""
    failed = [line.split()[1] for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    outcome = {0: "SURVIVED", 1: "caught", 5: "UNTOUCHED"}.get(process.returncode, "does not import")
    return outcome, failed[0] if failed else ""


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
