"""What is still to be written of a paper: one failure that lists it all.

``laureate new`` fills a paper's files with placeholders behind ``TO WRITE``; a finished paper has none, and people can
find it by asking.
"""

import json
from pathlib import Path

import pytest

import laureate
from laureate.papers import paper_ids

TESTS = Path(__file__).parents[1]
PAPERS = Path(laureate.__file__).parent / "papers"
MARK = "TO WRITE"


def left_to_write(paper: str) -> list[str]:
    folder = paper.replace("-", "_")
    places = [*sorted((PAPERS / folder).glob("*.*")), *sorted((TESTS / "papers" / folder).glob("*.py"))]
    found = [
        f"{path.parent.name}/{path.name}:{number}: {line.strip()}"
        for path in places
        if path.suffix in (".py", ".jsonl")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if MARK in line
    ]
    found += [name for name in ("about.py", "speed.py") if not (PAPERS / folder / name).is_file()]
    if not list((TESTS / "papers" / folder).glob("test_*.py")):
        found.append(f"tests/papers/{folder}: tests of its trials")
    return found + missing_questions(paper)


def missing_questions(paper: str) -> list[str]:
    queries = TESTS / "catalogue" / "queries.jsonl"
    lines = queries.read_text("utf-8").splitlines() if queries.is_file() else []
    asked = any(paper in json.loads(line)["right"] for line in lines)
    return [] if asked else ["catalogue/queries.jsonl: questions of people whom it helps"]


@pytest.mark.parametrize("paper", paper_ids())
def test_nothing_is_left_to_write(paper):
    missing = left_to_write(paper)
    assert not missing, f"{paper} is not finished. Still to be written:\n" + "\n".join(missing)
