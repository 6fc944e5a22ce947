"""Which files of tests execute which lines of an area, and in how many seconds: measured once, kept in a cache.

The tests of an area run in one process. A line of a jitted function runs only in the first test that compiles it, so
whatever was compiled or remembered is forgotten between two files, and a file counts as a whole: what a module's
fixture computes is judged by its later tests. Lines that run at import belong to every file.
"""

import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TypedDict

__all__ = [
    "COMPUTES",
    "QUICK",
    "Touched",
    "area_of",
    "belonging",
    "environment",
    "key_of",
    "options",
    "package_of",
    "tests_of",
    "touched",
]

# A source that compiles: `make test` leaves the examples in its docstrings to `make test-all`.
COMPUTES = re.compile(r"^(import|from) (jax|equinox|optax)", re.MULTILINE)

QUICK = "not slow and not thorough"  # what `make test` runs; CI the thorough ones too

# What else looks at the files of an area that is no folder of tests.
MORE = {
    "catalogue": ["tests/cli/test_find.py"],
    "pages": ["tests/cli/test_commands.py"],
    "lab": ["tests/faults", "tests/cli/test_commands.py"],
    "problems": ["tests/papers/test_every_trial.py"],
    "_core": ["tests/test_require.py"],
    "_data": ["tests/problems"],
    "sampling": ["tests/clusters/test_one_program.py"],
}
# Rows of many areas, of which `belonging` leaves those of others out.
SHARED = [
    f"tests/contract/test_{name}.py"
    for name in (
        "random_functions",
        "standard_errors",
        "settings_by_pairs",
        "drivers_resume",
        "driver_options",
        "stopped_gradients",
        "keys_of_runs",
        "functions",
    )
]


class Touches(TypedDict):
    """Of a file of tests: its CPU seconds, those of its tests, and the lines that it executes of the area's files."""

    seconds: float
    tests: dict[str, float]
    lines: dict[str, list[int]]


Touched = dict[str, Touches]

# Runs pytest under coverage, with a context a file of tests.
RUN = """
import functools, gc, json, os, sys, time
import coverage
package, report = sys.argv[1:3]
measured = coverage.Coverage(data_file=None, source=[package], messages=False)
measured.start()
import pytest

def cpu():
    return time.process_time() + sum(os.times()[2:4])

class Contexts:
    current, seconds, tests = None, {}, {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        name = item.nodeid.partition("::")[0]
        if name != self.current:
            self.current = name
            if "jax" in sys.modules:
                sys.modules["jax"].clear_caches()
            for one in gc.get_objects():
                if isinstance(one, functools._lru_cache_wrapper) and "laureate" in str(one.__module__):
                    one.cache_clear()
            measured.switch_context(name)
        started = cpu()
        try:
            return (yield)
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + cpu() - started
            self.tests[item.nodeid] = cpu() - started

contexts = Contexts()
code = pytest.main(sys.argv[3:], plugins=[contexts])
measured.stop()
data = measured.get_data()
lines = {}
for file in data.measured_files():
    for number, names in data.contexts_by_lineno(file).items():
        for name in names:
            lines.setdefault(name, {}).setdefault(file, []).append(number)
with open(report, "w", encoding="utf-8") as file:
    json.dump({"seconds": contexts.seconds, "tests": contexts.tests, "lines": lines}, file)
sys.exit(int(code))
"""


def area_of(root: Path, name: str) -> str:
    """The area of a file of the package: a folder, a file beside the folders, or one of the papers.

    >>> area_of(Path("."), "src/laureate/pde/sweep.py"), area_of(Path("."), "src/laureate/papers/pes/trials.py")
    ('pde', 'papers/pes')
    """
    parts = Path(name).with_suffix("").parts[2:]
    return "/".join(parts[:2]) if parts[0] == "papers" else parts[0]


def belonging(root: Path, area: str) -> dict[str, str]:
    """What tells pytest to leave out the rows of other papers or areas (``tests/conftest.py``)."""
    folder, _, paper = area.partition("/")
    if paper:
        return {"PAPER": paper.replace("_", "-")}
    has_contract = (root / "tests" / "contract" / f"test_{folder}_contract.py").exists()
    return {"AREA": folder} if has_contract else {}


def tests_of(root: Path, area: str, *, everything: bool) -> list[str]:
    """The files of tests of an area, its rows of the contract, those of its papers, and the examples in its docstrings.

    Of the examples only those that `make test` runs, or ``everything``.
    """
    package = root / "src" / package_of(root)
    folders = [root / "tests" / area, root / "tests" / "contract" / f"test_{area}_contract.py"]
    has_contract, is_paper = folders[-1].exists(), area.startswith("papers/")
    folders += [root / place for place in [*MORE.get(area, ()), *SHARED * has_contract]]
    folders += sorted((root / "tests" / "papers").glob("test_*.py")) * is_paper
    is_its = re.compile(rf'^    area="{area}",$', re.MULTILINE)
    papers = [about.parent.name for about in sorted(package.glob("papers/*/about.py")) if is_its.search(_text(about))]
    folders += [root / "tests" / "papers" / paper for paper in papers]
    files = [file for folder in folders for file in _files(folder)]
    sources = sorted((package / area).rglob("*.py"))
    examples = [file for file in sources if ">>> " in _text(file) and (everything or not COMPUTES.search(_text(file)))]
    return [str(file.relative_to(root)) for file in [*files, *examples]]


def touched(root: Path, area: str, sources: list[Path], marks: str, log=print) -> Touched:
    """The map, from the cache where nothing that it depends on has changed since."""
    place = root / ".pytest_cache" / "mutants" / f"{area}.json"
    known = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    names = tests_of(root, area, everything=False)
    key = key_of(root, sources, names, marks, belonging(root, area))
    if known.get("key") != key:
        log(f"measuring what {', '.join(names)} execute", flush=True)
        known = {"key": key, "touched": _measure(root, area, names, marks)}
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(known), encoding="utf-8")
    return known["touched"]


def key_of(root: Path, sources: list[Path], names: list[str], marks: str, around: dict[str, str]) -> str:
    """What a map depends on: the sources, the tests with all that they read, how they are run, and what beneath.

    Beside the tests themselves these are all files among the tests that are no test, such as helpers, data and the
    list of those that are thorough, and the tests beside them, for some take tables from each other; not the planted
    faults, which are text alone.
    """
    tests = [file for name in names for file in _files(root / name)]
    folders = {file.parent for file in tests}
    beside = [
        file
        for file in (root / "tests").rglob("*")
        if file.is_file() and (file.parent in folders or not file.name.startswith("test_"))
    ]
    read = {file for file in [*sources, *tests, *beside, root / "pyproject.toml"] if not _left_out(file, root)}
    files = [(file.relative_to(root).as_posix(), hashlib.sha256(file.read_bytes()).hexdigest()) for file in read]
    whole = [sorted(files), names, RUN, options(marks), around, sys.version, _installed()]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:16]


def _left_out(file: Path, root: Path) -> bool:
    return bool({"__pycache__", "mutations"} & set(file.relative_to(root).parts)) or not file.exists()


@cache
def _installed() -> list[str]:
    """The libraries with their versions."""
    return sorted({f"{one.name} {one.version}" for one in importlib.metadata.distributions()})


def environment(root: Path, programs: Path) -> dict[str, str]:
    """For a process of tests that reads the sources of ``root`` and shares compiled programs with all others."""
    more = {
        "PYTHONPATH": str(root / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_COMPILATION_CACHE_DIR": str(programs),
        "OMP_NUM_THREADS": "1",
        "PROGRAM_BUDGET": "none",
    }
    return os.environ | more


def options(marks: str) -> list[str]:
    """Of pytest: quiet, one process, no cache, no complaint about what is loaded already."""
    loaded = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return ["-q", "-x", "-n", "0", "-m", marks, "-p", "no:cacheprovider", "--tb=no", *loaded]


def package_of(root: Path) -> str:
    """The name of the package in ``src``."""
    return next(path.parent.name for path in sorted((root / "src").glob("*/__init__.py")))


def _measure(root: Path, area: str, names: list[str], marks: str) -> Touched:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "lines.json"
        package = root / "src" / package_of(root) / area
        package = package if package.exists() else package.with_suffix(".py")
        programs = root / ".pytest_cache" / "programs"
        command = [sys.executable, "-c", RUN, str(package), str(report), *options(marks), *names]
        around = environment(root, programs) | belonging(root, area)
        done = subprocess.run(command, cwd=root, env=around, capture_output=True, text=True, check=False)
        if done.returncode or not report.exists():
            sys.exit(f"The tests of {area} must pass before mutants are tried; they say:\n{done.stdout}{done.stderr}")
        found = json.loads(report.read_text(encoding="utf-8"))
    at_import = found["lines"].pop("", {})
    local = lambda lines: {str(Path(file).relative_to(root)): numbers for file, numbers in lines.items()}  # noqa: E731
    result: Touched = {}
    for name, seconds in found["seconds"].items():
        tests = {test: round(one, 2) for test, one in found["tests"].items() if test.startswith(f"{name}::")}
        lines = _union(local(at_import), local(found["lines"].get(name, {})))
        result[name] = {"seconds": round(seconds, 2), "tests": tests, "lines": lines}
    return result


def _union(first: dict[str, list[int]], second: dict[str, list[int]]) -> dict[str, list[int]]:
    return {name: sorted({*first.get(name, ()), *second.get(name, ())}) for name in first | second}


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _files(folder: Path) -> list[Path]:
    if folder.is_dir():
        return sorted(folder.rglob("test_*.py")) or sorted(folder.rglob("*.py"))
    return [folder] * folder.exists()
