"""Which files of tests execute which lines of an area: measured once, kept under ``.pytest_cache/mutants``.

Files and not single tests, and each in a process of its own: a line of a jitted function runs only in the first test
that compiles it, and what a module's fixture computes is judged by its later tests.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["Touched", "environment", "tests_of", "touched"]

# What else looks at the files of an area that is no folder of tests.
MORE = {
    "catalogue": ["tests/cli/test_find.py"],
    "pages": ["tests/cli/test_commands.py"],
    "lab": ["tests/faults", "tests/cli/test_commands.py"],
    "problems": ["tests/papers/test_every_trial.py"],
    "sampling": ["tests/clusters/test_one_program.py"],
}
Touched = dict[str, dict[str, list[int]]]  # file of tests -> file of the area -> its lines

RUN = """
import sys
import coverage
measured = coverage.Coverage(data_file=None, source=[sys.argv[1]], messages=False)
measured.start()
import pytest
code = pytest.main(sys.argv[3:])
measured.stop()
import json
data = measured.get_data()
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump({name: sorted(data.lines(name) or ()) for name in data.measured_files()}, file)
sys.exit(int(code))
"""


def tests_of(root: Path, area: str) -> list[str]:
    """The area's files of tests, its rows of the contract, and the examples in its docstrings as one."""
    folders = [root / "tests" / area, root / "tests" / "contract" / f"test_{area}_contract.py"]
    folders += [root / place for place in MORE.get(area, ())]
    files = [file for folder in folders for file in _files(folder)]
    examples = [f"src/{_package(root)}/{area}"] if (root / "src" / _package(root) / area).is_dir() else []
    return [str(file.relative_to(root)) for file in files] + examples


def touched(root: Path, area: str, sources: list[Path], marks: str, log=print) -> Touched:
    """The map, from the cache where neither the sources nor the file of tests have changed since."""
    place = root / ".pytest_cache" / "mutants" / f"{area}.json"
    known = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    base = _digest([*sources, *sorted((root / "tests").glob("*.py"))]) + marks
    found: Touched = {}
    for name in tests_of(root, area):
        key = base + _digest(_files(root / name) if (root / name).is_dir() else [root / name])
        entry = known.get(name)
        if entry is None or entry["key"] != key:
            log(f"measuring what {name} executes", flush=True)
            entry = {"key": key, "lines": _measure(root, area, name, marks)}
            known[name] = entry
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(known), encoding="utf-8")
        found[name] = entry["lines"]
    return found


def environment(root: Path, programs: Path) -> dict[str, str]:
    """For a process of tests that reads the sources of ``root`` and shares compiled programs with all others."""
    more = {
        "PYTHONPATH": str(root / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_COMPILATION_CACHE_DIR": str(programs),
        "OMP_NUM_THREADS": "1",
    }
    return os.environ | more


def options(marks: str) -> list[str]:
    """Of pytest: quiet, one process, no cache."""
    return ["-q", "-x", "-n", "0", "-m", marks, "-p", "no:cacheprovider", "--tb=no"]


def _measure(root: Path, area: str, name: str, marks: str) -> dict[str, list[int]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "lines.json"
        package = root / "src" / _package(root) / area
        package = package if package.exists() else package.with_suffix(".py")
        programs = root / ".pytest_cache" / "programs"
        command = [sys.executable, "-c", RUN, str(package), str(report), *options(marks), name]
        subprocess.run(command, cwd=root, env=environment(root, programs), capture_output=True, check=False)
        lines = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return {str(Path(file).relative_to(root)): numbers for file, numbers in lines.items()}


def _package(root: Path) -> str:
    return next(path.parent.name for path in sorted((root / "src").glob("*/__init__.py")))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("test_*.py")) if folder.is_dir() else [folder] * folder.exists()


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
