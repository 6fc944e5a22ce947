"""Papers that nobody has begun, and those that ``laureate new`` began and nobody has finished."""

from pathlib import Path

import laureate
from laureate.catalogue.entry import entries
from laureate.cli.new import MARK
from laureate.papers import all_papers

PACKAGE = Path(laureate.__file__).parent
TESTS = Path(__file__).parents[1]


def free_id() -> str:
    """A paper of the catalogue that nobody has begun, with a dash in its id."""
    free = (entry.id for entry in reversed(entries()) if not (PACKAGE / "papers" / folder_of(entry.id)).exists())
    return next(paper for paper in free if "-" in paper)


def folder_of(paper: str) -> str:
    return paper.replace("-", "_")


def marked(paper: str) -> list[str]:
    """Every line of a paper's files that is still a placeholder."""
    places = (PACKAGE / "papers" / folder_of(paper), TESTS / "papers" / folder_of(paper))
    return [
        f"{path.parent.name}/{path.name}:{number}: {line.strip()}"
        for place in places
        for path in sorted(place.glob("*.*"))
        if path.suffix in (".py", ".jsonl")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if MARK in line
    ]


def unfinished_areas() -> set[str]:
    """The areas of which no paper is finished."""
    papers = {paper.id: paper.area for paper in all_papers()}
    return set(papers.values()) - {area for paper, area in papers.items() if not marked(paper)}
