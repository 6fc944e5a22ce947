"""What is still to be written of a paper: one failure that lists it all.

``laureate new`` fills a paper's files with placeholders behind ``TO WRITE``; a finished paper has none, stands where
people look for it, and can be found by asking.
"""

import json

import pytest
from skeletons import PACKAGE, TESTS, folder_of, marked

from laureate.cli.new import MARK
from laureate.papers import paper, paper_ids
from laureate.racing.disciplines import WITHOUT_RACE, disciplines
from recording import FOLDER


def left_to_write(paper_id: str) -> list[str]:
    folder, area = folder_of(paper_id), paper(paper_id).area
    found = marked(paper_id)
    found += [name for name in ("about.py", "speed.py") if not (PACKAGE / "papers" / folder / name).is_file()]
    if not list((TESTS / "papers" / folder).glob("test_*.py")):
        found.append(f"tests/papers/{folder}: tests of its trials")
    if MARK in (PACKAGE / area / "__init__.py").read_text("utf-8"):
        found.append(f"{area}/__init__.py: what the area is for")
    if f"from laureate.{area} import " not in paper(paper_id).example:
        found.append(f"laureate/{area}: the method that its example imports")
        found.append(f"tests/{area}: oracles of the method; tests/contract: its row; tests/mutations: planted faults")
        found.append("examples: a program for a problem that is not ours; CHANGELOG.md: a line")
    if area not in {one.area for one in disciplines()} | WITHOUT_RACE.keys():
        found.append(f"racing/disciplines: a discipline of {area}, or why there is none, in WITHOUT_RACE")
    return found + missing_rows(paper_id)


def missing_rows(paper_id: str) -> list[str]:
    """Where a finished paper stands beside the others."""
    root = TESTS.parent
    found = []
    if f"| `{paper_id}` |" not in (root / "README.md").read_text("utf-8"):
        found.append("README.md: its row in the table of papers")
    if f"(<code>{paper_id}</code>)" not in (root / "docs" / "board.md").read_text("utf-8"):
        found.append("docs/board.md: its verdicts, which scripts/board.py writes")
    queries = (TESTS / "catalogue" / "queries.jsonl").read_text("utf-8").splitlines()
    if not any(paper_id in json.loads(line)["right"] for line in queries):
        found.append("catalogue/queries.jsonl: questions of people whom it helps")
    if f"[{paper_id}/" not in (FOLDER / "papers" / "test_every_trial.json").read_text("utf-8"):
        found.append("tests/recorded: what its trials report, which scripts/records.py writes once they are right")
    return found


@pytest.mark.parametrize("paper_id", paper_ids())
def test_nothing_is_left_to_write(paper_id):
    missing = left_to_write(paper_id)
    assert not missing, f"{paper_id} is not finished. Still to be written:\n" + "\n".join(missing)
