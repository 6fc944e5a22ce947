"""The tests of one paper or one area: ``make test PAPER=<id>`` or ``AREA=<area>`` runs them.

As a script it prints them as arguments of pytest. Files that have rows for many areas are named whole; ``conftest.py``
then leaves out, by ``is_of``, the rows of other areas.
"""

import functools
import importlib
import os
import re
import sys
from collections.abc import Collection
from pathlib import Path

from laureate.papers import paper, paper_ids
from rooms import AREAS

ROOT = Path(__file__).parents[1]
# The checks of ``laureate.testing`` are held to faults, whatever the areas' methods are.
OF_TESTING = "tests/contract/test_checks_find_faults.py"


def of_area(area: str) -> list[str]:
    """The area's tests, its rows of the contract, of the form and of races, and the examples in its docstrings."""
    if not (ROOT / "src" / "laureate" / area / "__init__.py").is_file():
        sys.exit(f"AREA must be a folder of src/laureate; got {area!r}.")
    contract = sorted((ROOT / "tests" / "contract").glob(f"test_{area}_*.py"))
    race = ROOT / "tests" / "racing" / f"test_{area}_track.py"
    places = [ROOT / "tests" / area, *contract, race, ROOT / "src" / "laureate" / area]
    shared = with_rows_of_all() if area in AREAS else []
    return [place.relative_to(ROOT).as_posix() for place in places if place.exists()] + shared


def of_paper(name: str) -> list[str]:
    """The paper's tests, what holds for every paper, and its area."""
    if name not in paper_ids():
        sys.exit(f"PAPER must be one of {', '.join(paper_ids())}; got {name!r}.")
    general = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests" / "papers").glob("test_*.py"))]
    return [f"tests/papers/{name.replace('-', '_')}", *general, "tests/lab/test_ledger.py", *of_area(paper(name).area)]


def with_rows_of_all() -> list[str]:
    """Files of tests that have rows for many areas."""
    own = re.compile(rf"test_({'|'.join(AREAS)})_")
    contract = (ROOT / "tests" / "contract").glob("test_*.py")
    names = [path.relative_to(ROOT).as_posix() for path in sorted(contract) if not own.match(path.name)]
    return [*(name for name in names if name != OF_TESTING), "tests/test_form.py"]


def asked() -> tuple[str, str]:
    """The paper and the area that this run is for; empty where it is for all."""
    chosen, area = os.environ.get("PAPER", ""), os.environ.get("AREA", "")
    return chosen, paper(chosen).area if chosen else area


def is_of(words: Collection[str], area: str) -> bool:
    """Whether a row with these words in its name is one of the area: it names the area, or none.

    >>> is_of({"gradients", "train"}, "gradients"), is_of({"GPES"}, "gradients"), is_of({"GPES"}, "sampling")
    (True, True, False)
    >>> is_of({"interaction"}, "sampling")
    True
    """
    named = set(words) & set(AREAS)
    named = named or {room for room in AREAS if not public(room).isdisjoint(words)}
    return not named or area in named


@functools.cache
def public(area: str) -> frozenset[str]:
    """The names that an area offers."""
    return frozenset(importlib.import_module(f"laureate.{area}").__all__)


if __name__ == "__main__":
    chosen, area = sys.argv[1:]
    print(*(of_paper(chosen) if chosen else of_area(area)))
