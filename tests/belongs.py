"""The tests of one paper or one area, as arguments of pytest; ``make test PAPER=<id>`` or ``AREA=<area>`` calls it."""

import sys
from pathlib import Path

from laureate.papers import paper, paper_ids

ROOT = Path(__file__).parents[1]


def of_area(area: str) -> list[str]:
    """The area's tests, its rows of the contract and the examples in its docstrings."""
    if not (ROOT / "src" / "laureate" / area / "__init__.py").is_file():
        sys.exit(f"AREA must be a folder of src/laureate; got {area!r}.")
    contract = sorted((ROOT / "tests" / "contract").glob(f"test_{area}_*.py"))
    places = [ROOT / "tests" / area, *contract, ROOT / "src" / "laureate" / area]
    return [place.relative_to(ROOT).as_posix() for place in places if place.exists()]


def of_paper(name: str) -> list[str]:
    """The paper's tests, what holds for every paper, and its area."""
    if name not in paper_ids():
        sys.exit(f"PAPER must be one of {', '.join(paper_ids())}; got {name!r}.")
    general = [f"tests/papers/test_{every}.py" for every in ("every_paper", "every_trial", "nothing_missing")]
    return [f"tests/papers/{name.replace('-', '_')}", *general, "tests/lab/test_ledger.py", *of_area(paper(name).area)]


if __name__ == "__main__":
    chosen, area = sys.argv[1:]
    print(*(of_paper(chosen) if chosen else of_area(area)))
