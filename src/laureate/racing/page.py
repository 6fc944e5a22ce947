"""The page of a race, and what a notebook shows of it."""

from laureate.pages import race as pages
from laureate.racing.results import Race
from laureate.racing.table import cells, columns

__all__ = ["fragment", "page"]


def fragment(race: Race) -> str:
    """For a notebook."""
    return pages.fragment(race.to_json(), _table(race))


def page(race: Race) -> str:
    """One HTML file that opens from disk."""
    return pages.page(race.to_json(), _table(race))


def _table(race: Race) -> list[tuple[str, ...]]:
    return [columns(race), *(cells(race, row) for row in race.rows)]
