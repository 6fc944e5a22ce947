"""Write anew what tests record (tests/recording.py), with as many digits as compilers and processors agree on.

``python scripts/records.py tests/contract/test_pde_contract.py`` records with this environment, then asks it twice more
as on older processors. ``--python FILE`` asks an environment with another jaxlib as well, ``--keep`` keeps the records
and only asks. The releases that were asked about everything, without words, stand in ``tests/recorded/compilers.json``.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASKED = ROOT / "tests" / "recorded" / "compilers.json"

# As on processors with fewer instructions, for XLA and for the linear algebra of NumPy and SciPy.
MACHINES = {
    "as with AVX2": {"isa": "AVX2", "OPENBLAS_CORETYPE": "Haswell"},
    "as with SSE 4.2": {"isa": "SSE4_2", "OPENBLAS_CORETYPE": "Nehalem"},
}


def run(python: str, mode: str, tests: list[str], machine: dict[str, str], processes: int) -> int:
    """The tests with their records in this mode; pytest's exit code."""
    more = dict(machine)
    isa = more.pop("isa", None)
    with tempfile.TemporaryDirectory() as cache:  # programs of one kind of processor are not for another
        if isa:
            more |= {"MORE_XLA_FLAGS": json.dumps({"xla_cpu_max_isa": isa}), "JAX_COMPILATION_CACHE_DIR": cache}
        command = [python, "-m", "pytest", *tests, "-m", "", "-q", "-n", str(processes), f"--record={mode}"]
        command += ["--dist", "loadfile"] if processes else []
        return subprocess.run(command, cwd=ROOT, env=os.environ | more, check=False).returncode


def release_of(python: str) -> str:
    """The version of jaxlib in an environment."""
    command = [python, "-c", "import importlib.metadata as m; print(m.version('jaxlib'))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Write, ask, and leave with 1 where tests failed for another reason than their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="files or tests that record; all of them without words")
    parser.add_argument(
        "--python", action="append", default=[], help="the Python of an environment to be asked as well"
    )
    parser.add_argument("--keep", action="store_true", help="write nothing anew, only ask")
    parser.add_argument("--processes", type=int, default=0, help="workers of pytest, a file of tests each")
    options = parser.parse_args()
    tests = options.tests or recording()
    failed = 0 if options.keep else run(sys.executable, "write", tests, {}, options.processes)
    asking = [(sys.executable, name, machine) for name, machine in MACHINES.items()]
    asking += [(python, "as it is", {}) for python in options.python]
    for python, name, machine in asking:
        print(f"== jaxlib {release_of(python)}, {name}", flush=True)
        failed |= run(python, "soften", tests, machine, options.processes)
    if not options.tests:
        asked = {release_of(python) for python in (sys.executable, *options.python)}
        asked |= set(json.loads(ASKED.read_text("utf-8"))) if options.keep and ASKED.exists() else set()
        ASKED.write_text(json.dumps(sorted(asked)) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


def recording() -> list[str]:
    """All files of tests that record."""
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        str(path.relative_to(ROOT))
        for path in paths
        if path.parent.name == "contract" or re.search(r"\brecorded[(.]", path.read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    main()
