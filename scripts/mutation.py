"""Plant faults, one at a time, and see that the tests notice: ``make mutation``, or this script with parts of ids.

With ``--random N --area A --seed S`` the faults are not those of the tables but N of the many that the syntax tree of
an area's files allows (``mutants/operators.py``): prints the share caught and the survivors as diffs, and always leaves
with 0. ``--operator NAME --area A`` tries all faults of one kind. ``--devised FILE...`` tries rows that name no tests,
each with the quick and then the thorough tests that touch its lines. ``--table FILE...`` prints the rows of
``docs/mutants.md`` from results that ``--random ... --json`` wrote.

A fault is a row in ``tests/mutations/*.toml``: a file, the text to replace and what to put there; the tests of which
one must then fail are the table's, or the row's own. Where a row names a ``claim``, its verdict at smoke must also turn
away from ``supported``, which it must be without the fault. A fault is planted in a copy of the repository, so the
working tree is never touched. Exit code 1 where a fault goes unnoticed, where its text is no longer found, or where its
tests fail without it: such a table proves nothing.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mutants.coverage_map import QUICK, area_of
from mutants.operators import OPERATORS
from mutants.trial import BY_THOROUGH, SURVIVED, devised, in_copies, listed, random_mutants, run_tests, summary, table

ROOT = Path(__file__).resolve().parents[1]
NOTICED, UNNOTICED, STALE, BROKEN = "noticed", "UNNOTICED", "STALE", "BROKEN"


def faults(words: list[str]) -> list[dict[str, Any]]:
    """The rows whose id contains one of the words; all of them without words."""
    rows = []
    for path in sorted((ROOT / "tests" / "mutations").glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        for fault in table["fault"]:
            rows.append({"tests": table["tests"]} | fault | {"id": f"{path.stem}/{fault['id']}"})
    return [row for row in rows if not words or any(word in row["id"] for word in words)]


def verdict_of(folder: Path, claim: str) -> str:
    """The verdict on a claim at smoke by the sources of the copy, whatever an earlier run of it found."""
    command = [sys.executable, "-m", "laureate", "run", claim, "--scale", "smoke", "--fresh", "--quiet", "--json"]
    environment = os.environ | {
        "PYTHONPATH": str(folder / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LAUREATE_HOME": str(folder / "home"),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    try:
        return {found["id"]: found["verdict"] for found in json.loads(done.stdout)["claims"]}[claim]
    except (ValueError, KeyError):
        return f"no verdict, left with {done.returncode}"


class Sound:
    """What tests and claims say without any fault, each asked once; a table on top of red tests proves nothing."""

    def __init__(self, marks: str, limit: float):
        self.marks, self.limit = marks, limit
        self._known: dict[Any, Any] = {}
        self._asking = threading.Lock()

    def tests(self, folder: Path, tests: tuple[str, ...]) -> tuple[str, str]:
        """Outcome of the tests, and the first that failed."""
        return self._once(tests, lambda: run_tests(ROOT, folder, list(tests), self.marks, self.limit))

    def verdict(self, folder: Path, claim: str) -> str:
        """Of a claim at smoke."""
        return self._once(claim, lambda: verdict_of(folder, claim))

    def _once(self, what: Any, ask: Callable[[], Any]) -> Any:
        with self._asking:
            if what not in self._known:
                self._known[what] = ask()
        return self._known[what]


def plant(folder: Path, fault: dict[str, Any], *, test: bool, marks: str, limit: float) -> dict[str, str]:
    """What became of one fault, by which test it was noticed and what its claim then says."""
    path = folder / fault["file"]
    source = path.read_text(encoding="utf-8")
    if source.count(fault["replace"]) != 1:
        return {"outcome": STALE, "by_test": f"found {source.count(fault['replace'])} times in {fault['file']}"}
    path.write_text(source.replace(fault["replace"], fault["by"]), encoding="utf-8")
    try:
        found, failed = run_tests(ROOT, folder, fault["tests"], marks, limit) if test else ("caught", "")
        verdict = verdict_of(folder, fault["claim"]) if "claim" in fault else ""
    finally:
        path.write_text(source, encoding="utf-8")
    # What keeps a module from being imported is a fault badly planted.
    outcome = {"caught": NOTICED, "too slow": NOTICED, "does not import": BROKEN}.get(found, UNNOTICED)
    if outcome == NOTICED and verdict.startswith(("supported", "no verdict")):
        outcome = UNNOTICED
    return {"outcome": outcome, "by_test": failed, "verdict": verdict}


def print_random(options: argparse.Namespace) -> None:
    """The share of random mutants that the tests catch, and those they do not."""
    if (options.random is not None and options.random < 1) or not options.area:
        sys.exit("--random needs a number >= 1 and --area, --operator needs --area.")
    if options.list:
        print(json.dumps(listed(ROOT, options.area, options.random, options.seed, options.operator), indent=1))
        return
    read = lambda name: json.loads(Path(name).read_text(encoding="utf-8"))  # noqa: E731
    more = {name: getattr(options, name) for name in ("operator", "processes", "limit", "slow", "budget")}
    more |= {"known": read(options.again)["mutants"]} if options.again else {}
    more |= {"named": read(options.named)} if options.named else {}
    outcomes = random_mutants(ROOT, options.area, options.random, options.seed, **more)
    found = summary(options.area, options.seed, outcomes)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for one in outcomes:
        if one.outcome in SURVIVED:
            print(f"{one.outcome} {one.file}:{one.line} ({one.operator})\n{one.diff}")
    thorough, slow = found["caught by thorough tests"], found["caught by slow tests"]
    caught = found["caught"] + thorough + slow
    print(
        f"{caught} of {found['tried']} mutants of {options.area} caught, {thorough} by thorough, {slow} by slow tests"
    )


def print_devised(options: argparse.Namespace) -> None:
    """What became of each devised fault, and by room how many were noticed."""
    rows = [row for name in options.devised for row in tomllib.loads(Path(name).read_text(encoding="utf-8"))["fault"]]
    rows = [row for row in rows if not options.words or any(word in row["id"] for word in options.words)]
    rooms: dict[str, list[str]] = {}
    tried = []
    for one in devised(ROOT, rows, processes=options.processes, limit=options.limit):
        tried.append(asdict(one))
        rooms.setdefault(area_of(ROOT, one.file), []).append(one.outcome)
        if not options.json:
            print(f"{one.outcome:25} {one.operator:46} {one.seconds:6.1f} s  {one.by_test}", flush=True)
    if options.json:
        print(json.dumps(tried, indent=1))
        return
    for room, outcomes in [*sorted(rooms.items()), ("all", [one["outcome"] for one in tried])]:
        late = outcomes.count(BY_THOROUGH)
        missed = sum(outcome in SURVIVED for outcome in outcomes)
        print(f"{room}: {len(outcomes) - missed} of {len(outcomes)} noticed, {late} of them by thorough tests alone")


def main() -> None:
    """The table, and 1 where a fault goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only faults whose id contains one of these")
    parser.add_argument("--claims", action="store_true", help="only the verdicts of the claims, without the tests")
    parser.add_argument("--short", action="store_true", help="only the tests of `make test`, no claims")
    parser.add_argument("--marks", default="", help="only tests of these marks, as of pytest's -m, and no claims")
    parser.add_argument("--json", action="store_true", help="print a list of rows instead of a table")
    parser.add_argument("--random", type=int, metavar="N", help="N mutants by chance instead of the tables")
    parser.add_argument("--operator", choices=OPERATORS, help="only mutants of this kind; all without --random")
    parser.add_argument("--area", help="of --random: a folder of src/laureate, also lab, catalogue and pages")
    parser.add_argument("--seed", type=int, default=0, help="of --random: the same seed, the same mutants")
    parser.add_argument("--processes", type=int, default=1, help="how many faults at once")
    parser.add_argument("--limit", type=float, default=240.0, help="CPU seconds a fault")
    parser.add_argument("--budget", type=float, default=math.inf, help="of --random: minutes; then begin no other")
    parser.add_argument("--slow", action="store_true", help="of --random: survivors meet the slow tests too")
    parser.add_argument("--list", action="store_true", help="of --random: print the mutants as JSON and try none")
    parser.add_argument("--named", metavar="FILE", help="of --random: that list, with the tests that each shall meet")
    parser.add_argument("--again", metavar="FILE", help="of --random: only the survivors of an earlier result")
    parser.add_argument("--devised", nargs="+", metavar="FILE", help="rows without tests: try all that touch them")
    parser.add_argument("--table", nargs="+", metavar="FILE", help="print a table of earlier results")
    options = parser.parse_args()
    if options.table:
        print(table(options.table))
        return
    if options.devised:
        print_devised(options)
        return
    if options.random is not None or options.operator:
        print_random(options)
        return
    rows = [row for row in faults(options.words) if "claim" in row or not options.claims]
    marks = QUICK if options.short else options.marks
    if marks:
        rows = [{name: value for name, value in row.items() if name != "claim"} for row in rows]
    if not rows:
        sys.exit(f"No fault matches {' '.join(options.words)!r}.")
    sound = Sound(marks, options.limit)

    def one(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        claim = row.get("claim")
        found, failed = ("SURVIVED", "") if options.claims else sound.tests(folder, tuple(row["tests"]))
        before = sound.verdict(folder, claim) if claim else ""
        if found != "SURVIVED":
            row |= {"outcome": BROKEN, "by_test": f"without any fault: {failed or found}", "verdict": ""}
        else:
            row |= plant(folder, row, test=not options.claims, marks=marks, limit=options.limit)
        if claim:
            row["verdict"] = f"{claim}: {before} -> {row['verdict']}"
            if before != "supported":
                row["outcome"] = STALE
        return row | {"seconds": round(time.perf_counter() - started, 1)}

    tried = []
    for row in in_copies(ROOT, one, rows, options.processes):
        tried.append(row)
        if not options.json:
            noticed_by = "  ".join(filter(None, (row["by_test"], row.get("verdict"))))
            print(f"{row['outcome']:10} {row['id']:46} {row['seconds']:6.1f} s  {noticed_by}", flush=True)
    if options.json:
        print(json.dumps(tried, indent=1))
    missed = [row for row in tried if row["outcome"] != NOTICED]
    if not options.json:
        print(f"{len(tried) - len(missed)} of {len(tried)} planted faults noticed")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
