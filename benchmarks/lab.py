"""What the lab costs: start-up, a fully cached run, and its share of the computing.

    python -m benchmarks.lab [--desk] [--json]

Without ``--desk`` the share is taken of a smoke run, whose cells are small: an upper bound.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import print_rows
from laureate.lab.running.executors import make_executor
from laureate.lab.running.plan import plan, select
from laureate.lab.storing.home import compilation_cache
from laureate.lab.storing.store import Store
from laureate.papers import paper, paper_ids

LAUREATE = Path(sys.executable).with_name("laureate")


def command_seconds(*words: str, repeats: int = 9) -> float:
    """The median of whole commands, start-up included."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        subprocess.run([LAUREATE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def overhead(scale: str) -> dict[str, float]:
    """PES on one worker: the wall time of planning, computing and storing against the sum of its cells."""
    with tempfile.TemporaryDirectory() as folder:
        executor = make_executor(1, compilation_cache())
        list(executor.outcomes([]))  # imports jax, outside the clock
        started = time.perf_counter()
        cells = plan(select(["pes"], paper_ids(), paper), scale)
        store = Store(Path(folder) / "store.sqlite")
        run = store.start_run("benchmark", scale, 0, "default", {})
        computing = 0.0
        for cell, outcome in executor.outcomes(cells):
            store.add_cell(run, cell, outcome)
            computing += outcome.seconds + outcome.compile_seconds
        wall = time.perf_counter() - started
        store.close()
    return {"ours_s": wall, "computing_s": computing, "share": wall / computing - 1, "limit": 0.03}


def main() -> None:
    scale = "desk" if "--desk" in sys.argv else "smoke"
    run = ("run", "pes", "--scale", scale)
    command_seconds(*run, repeats=1)  # so that the next ones are fully cached
    print_rows(
        [
            {"id": "lab/help", "work": "laureate --help", "ours_s": command_seconds("--help"), "limit": 0.25},
            {"id": "lab/board", "work": "laureate board", "ours_s": command_seconds("board")},
            {"id": "lab/cached", "work": f"cached {' '.join(run)}", "ours_s": command_seconds(*run), "limit": 1.5},
            {"id": "lab/overhead", "work": f"{' '.join(run)}, one worker"} | overhead(scale),
        ]
    )


if __name__ == "__main__":
    main()
