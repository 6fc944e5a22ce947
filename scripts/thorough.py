"""Choose the tests that `make test` leaves to CI: ``pytest -m "not slow" --seconds FILE``, then this script on FILE.

Listed in ``tests/thorough.txt`` are tests of more than so many CPU seconds, but none that a planted fault of
``tests/mutations`` names itself, for these are there to see that fault, and none of ``ALWAYS``; of every file the
cheapest test stays. With ``--mutants`` (what ``scripts/mutation.py --json`` printed, with ``--short`` or ``--random``)
those stay as well that noticed a planted fault or a random mutant and take no more than ``KEEN`` seconds. What tests
share is counted with the first of them, so that the time saved is less than the sum: measure again.

    python scripts/thorough.py /tmp/seconds.json --above 0.55 --mutants /tmp/mutants/*.json
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from mutation import ROOT, faults

LIST = ROOT / "tests" / "thorough.txt"
# What a newcomer meets first, whatever it costs.
ALWAYS = ("tests/test_startup.py", "tests/test_readme.py")
KEEN = 3.0


def chosen(seconds: dict[str, float], named: set[str], above: float, keen: Collection[str] = ()) -> list[str]:
    """The names of tests, in order. ``named``: those of planted faults; ``keen``: those that caught random mutants.

    >>> took = {"tests/a.py::b": 2.0, "tests/a.py::c": 3.0, "tests/d.py::e": 9.0, "tests/a.py::f[1]": 9.0}
    >>> chosen(took, {"tests/a.py::f"}, 1.0)
    ['tests/a.py::c']
    """
    files = defaultdict(list)
    for test, took in seconds.items():
        files[test.partition("::")[0]].append((took, test))
    cheapest = {min(tests)[1] for tests in files.values()}
    return sorted(
        test
        for test, took in seconds.items()
        if took > above
        and test.startswith("tests/")
        and not test.startswith(ALWAYS)
        and test not in cheapest
        and named.isdisjoint((test, test.partition("[")[0]))
        and not (test in keen and took <= KEEN)
    )


def main() -> None:
    """Write the list and say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="what pytest --seconds wrote")
    parser.add_argument("--above", type=float, default=0.55, metavar="SECONDS", help="CPU seconds of a test")
    parser.add_argument("--mutants", type=Path, nargs="*", default=(), help="results of faults and mutants")
    options = parser.parse_args()
    measured = json.loads(options.file.read_text(encoding="utf-8"))
    seconds = {test: found["seconds"] for test, found in measured.items()}
    named = {test for row in faults([]) for test in row["tests"] if "::" in test}
    results = [json.loads(file.read_text(encoding="utf-8")) for file in options.mutants]
    noticed = {one["by_test"] for found in results for one in (found if isinstance(found, list) else found["mutants"])}
    tests = chosen(seconds, named, options.above, noticed)
    LIST.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
    sum_of = lambda names: f"{sum(seconds[name] for name in names):.0f} s"  # noqa: E731
    print(f"{len(tests)} of {len(seconds)} tests, {sum_of(tests)} of {sum_of(seconds)}", file=sys.stderr)


if __name__ == "__main__":
    main()
