"""The local web with 100,000 papers and 50,000 stored cells: how long until a page's data is there, and the memory.

    python -m benchmarks pages_server [--json]

The bars: 200 ms for the board's first paint, 50 ms a search, both from the server's door to its last byte, and 0.4 s
for ``laureate find`` with its start-up (on the papers that ship). The papers are those of ``catalogue_search``; the
cells are 500 runs of the claims that ship, with numbers drawn at random.
"""

import argparse
import dataclasses
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.catalogue_search import QUERIES, papers
from laureate.catalogue import Entry, index
from laureate.catalogue.library import add
from laureate.lab.storing.home import store_path

RUNS, CELLS, PAPERS = 500, 100, 100_000
ASKED = 15


def fill_store(path: Path) -> int:
    """Runs as the lab writes them; the number of cells."""
    from laureate.lab.cell import Cell, Outcome
    from laureate.lab.judging.results import not_run
    from laureate.lab.storing.store import Store
    from laureate.papers import all_papers

    draw = np.random.default_rng(0)
    store = Store(path)
    environment = {
        "commit": "",
        "versions": {},
        "machine": "benchmark",
        "memory_gib": 0,
        "system": "",
        "executable": "",
    }
    claims = [
        (paper, experiment, claim)
        for paper in all_papers()
        for experiment in paper.experiments
        for claim in experiment.claims
        if claim.kind != "question"
    ]
    slots = [(paper.id, experiment, arm.name) for paper, experiment, _ in claims for arm in experiment.arms]
    decided = {"verdict": "supported", "effect": 1.0, "low": 0.5, "high": 1.5, "p": 0.01, "family": 10, "seeds": 10}
    results = [
        dataclasses.replace(not_run(*one, scale="smoke"), **decided, machine="benchmark", seconds=1.0) for one in claims
    ]
    number = 0
    for _ in range(RUNS):
        run = store.start_run("laureate run --all", "smoke", 10, "default", environment)
        for i in range(CELLS):
            paper, experiment, arm = slots[i % len(slots)]
            number += 1
            cell = Cell(
                paper=paper,
                experiment=experiment.name,
                arm=arm,
                problem="default",
                scale="smoke",
                start=0,
                count=10,
                trial=experiment.trial,
                problem_reference=experiment.problem,
                problem_settings={},
                accepts=experiment.accepts,
                arm_settings={},
                scale_settings={},
                over_seeds="vmap",
                x64=False,
                compilation="light",
                fingerprint=f"{number:x}",
            )
            metrics = {claim.metric: draw.normal(size=10) for claim in experiment.claims}
            store.add_cell(run, cell, Outcome(metrics, seconds=0.1, compile_seconds=0.1))
        store.add_results(run, results)
        store.end_run(run, "finished")
    store.close()
    return number


def fill_index(count: int) -> float:
    """The index of many papers in the place where the server looks for its own."""
    import sqlite3

    # After an import the index that ships with the package is not the user's any more.
    add([Entry("", "A paper of one's own", ("A. Author",), "Venue 2030")])
    path = index.index_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    start = time.process_time()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")
    index.build(db, papers(count), index.fingerprint())
    db.close()
    return time.process_time() - start


def ask(port: int, path: str, **headers: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    start = time.perf_counter()
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    taken = time.perf_counter() - start
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status}")
    return taken


def memory_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def find_seconds(home: str) -> list[float]:
    """``laureate find`` in a new home: the first call builds the index, the others read it."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "laureate", "find", "labels are noisy"],
            env=os.environ | {"LAUREATE_HOME": home},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        taken.append(time.perf_counter() - start)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--papers", type=int, default=PAPERS)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAUREATE_HOME"] = f"{folder}/large"
        cells = fill_store(store_path())
        built = fill_index(options.papers)
        server = subprocess.Popen(
            [sys.executable, "-m", "laureate", "web", "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
        )
        try:
            told = ""
            while "}" not in told and server.stdout:
                told += server.stdout.readline()
            port = int(json.loads(told)["url"].rstrip("/").rpartition(":")[2])
            questions = [json.loads(line)["question"] for line in QUERIES.read_text("utf-8").splitlines()]
            random.Random(0).shuffle(questions)
            pages = {
                "first board after start": (["/"], 0.2),
                "board": (["/"] * ASKED, 0.2),
                "catalogue": (["/catalogue"] * ASKED, 0.2),
                "search": ([f"/catalogue?q={quote(text)}" for text in questions[:100]], 0.05),
                "method": (["/method/pes"] * ASKED, None),
                "run": (["/run/250"] * ASKED, None),
                "runs": (["/runs"] * ASKED, None),
                "compare": (["/compare?first=1&second=500"] * 3, None),
            }
            for name, (paths, limit) in pages.items():
                headers = {"X-Fragment": "results"} if name == "search" else {}
                before = cpu_seconds(server.pid)
                walls = [ask(port, path, **headers) for path in paths]
                cpu = (cpu_seconds(server.pid) - before) / len(paths)
                row = {"id": f"pages/{name}", "work": f"{name}, {options.papers} papers, {cells} cells"}
                row |= {"ours_s": statistics.median(walls), "worst_s": max(walls), "cpu_s": cpu, "limit": limit}
                rows.append(row)
            memory = memory_mib(server.pid)
        finally:
            server.terminate()
            server.wait()
        found = find_seconds(f"{folder}/new")
        rows.append({"id": "pages/find-first", "work": "laureate find, index built", "ours_s": found[0]})
        rows.append({"id": "pages/find", "work": "laureate find", "ours_s": min(found[1:]), "limit": 0.4})
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"index of {options.papers:,} papers: {built:.0f} s of CPU; server's memory at its largest {memory:.0f} MiB")
    for row in rows:
        bar = f"  (bar {1e3 * row['limit']:.0f} ms)" if row.get("limit") else ""
        cpu = f", CPU {1e3 * row['cpu_s']:.0f} ms, worst {1e3 * row['worst_s']:.0f} ms" if "cpu_s" in row else ""
        print(f"{row['id']:<34} {1e3 * row['ours_s']:7.0f} ms{cpu}{bar}")


if __name__ == "__main__":
    main()
