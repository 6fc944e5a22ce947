"""Write ``predecessors.json``: which experiments compute what commit 6cabc4c computed, and under what name it kept it.

    python scripts/predecessors.py FOLDER [--old-store STORE --new-store STORE]

FOLDER is a checkout of that commit with its own ``.venv``. An experiment is carried over where the definitions that its
trial and problem use are the same in both, wherever they stand. With two stores, each filled by ``laureate run --all
--scale smoke`` of one of the two, it is also carried over where the code was rewritten but every number of every arm
came out the same to the last bit. Prints a line an experiment; what is not carried over is computed again.
"""

import argparse
import contextlib
import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from laureate.lab.claim import Experiment
from laureate.lab.running.definitions import program
from laureate.lab.running.fingerprint import SETTINGS
from laureate.lab.running.predecessors import TABLE
from laureate.lab.storing.arrays import label_of, unpack
from laureate.papers import all_papers

COMMIT = "6cabc4c"
# Run by the old Laureate's own Python.
ASK = """
import json
from laureate import __version__
from laureate.claims import all_papers
from laureate.lab import fingerprint as f
found = {
    f"{paper.id}/{e.name}": {"trial": e.trial, "problem": e.problem, "sources": f._sources_hash((e.trial, e.problem))}
    for paper in all_papers() for e in paper.experiments
}
print(json.dumps({"laureate": __version__, "protocol": f.PROTOCOL, "libraries": f.LIBRARIES, "experiments": found}))
"""
Numbers = dict[tuple[str, str, int], dict[str, tuple[str, tuple[int, ...], bytes]]]


def main() -> None:
    """Ask the old Laureate, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--old-store", type=Path)
    parser.add_argument("--new-store", type=Path)
    options = parser.parse_args()
    old_sources = options.folder.resolve() / "src"
    old = ask(options.folder.resolve() / ".venv" / "bin" / "python", old_sources)
    measured = options.old_store and options.new_store
    rows = {}
    for paper in all_papers():
        for experiment in paper.experiments:
            name = f"{paper.id}/{experiment.name}"
            if name not in old["experiments"]:
                print(f"new                 {name}")
                continue
            before = old["experiments"][name]
            now = program((experiment.trial, experiment.problem, SETTINGS)).hash
            then = program((before["trial"], before["problem"], SETTINGS), old_sources / "laureate").hash
            by = "the same definitions" if now == then else ""
            if not by and measured and same_numbers(experiment, name, options.old_store, options.new_store):
                by = "the same numbers"
            if by:
                rows[name] = {"definitions": now, **before}
            print(f"{by or 'computed again':<21}{name}")
    table = old | {"commit": COMMIT, "experiments": rows}
    TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(rows)} of {len(old['experiments'])} experiments of {COMMIT} are carried over: {TABLE}")


def ask(python: Path, sources: Path) -> dict[str, Any]:
    """What the old Laureate's fingerprints are made of."""
    environment = os.environ | {"PYTHONPATH": str(sources)}
    done = subprocess.run([python, "-c", ASK], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def same_numbers(experiment: Experiment, name: str, old_store: Path, new_store: Path) -> bool:
    """Whether both stores hold the same bits for every arm at smoke, in the blocks that the scale declares."""
    before, after = numbers(old_store, name), numbers(new_store, name)
    scale = experiment.scales["smoke"]
    wanted = {(arm.name, "smoke", start) for arm in experiment.arms for start in range(0, scale.seeds, scale.block)}
    return all(key in before and before[key] == after.get(key) for key in wanted)


def numbers(store: Path, name: str) -> Numbers:
    """The newest finished computation of every block of an experiment."""
    paper, _, experiment = name.partition("/")
    found: Numbers = {}
    with contextlib.closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as db:
        rows = db.execute(
            "SELECT arm, scale, start, fingerprint, metric, data FROM cells JOIN observations ON cell = cells.id"
            " WHERE cells.id IN (SELECT max(id) FROM cells WHERE paper = ? AND experiment = ? AND status = 'done'"
            " AND problem = 'default' GROUP BY arm, scale, start)",
            (paper, experiment),
        ).fetchall()
    for arm, scale, start, fingerprint, metric, data in rows:
        values = unpack(data, label_of(fingerprint, start, metric))
        found.setdefault((arm, scale, start), {})[metric] = (str(values.dtype), values.shape, values.tobytes())
    return found


if __name__ == "__main__":
    main()
