"""The first shell: pages in one HTML file that opens from disk, with no network."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laureate.lab.storing.files import written_whole
from laureate.lab.storing.store import Store
from laureate.pages import content, render
from laureate.pages.figures import Figure
from laureate.papers import paper as load_paper
from laureate.papers import paper_ids

if TYPE_CHECKING:
    from laureate.catalogue import Entry

__all__ = ["render_everything", "render_run", "write_everything", "write_report"]

# The 873 papers that ship take 0.9; packed with the pages a fraction of it.
LARGEST_CATALOGUE = 1_200_000
# What the search inside a file looks through and shows.
PAPER_FIELDS = (
    "id", "title", "authors", "venue", "decision", "award", "name", "kind", "topic", "problem", "does", "demo", "asks",
    "url",
)  # fmt: skip


def write_report(store: Store, run: int, path: Path, explore: bool = False) -> None:
    """The page of one run, put in place whole: a reader never sees half a file."""
    _write(path, render_run(store, run, explore))


def write_everything(store: Store, path: Path, explore: bool = False) -> None:
    """The board, every method, the runs behind the board's verdicts and the catalogue."""
    _write(path, render_everything(store, explore))


def _write(path: Path, html: str) -> None:
    with written_whole(path) as file:
        file.write(html)


def render_run(store: Store, run: int, explore: bool = False) -> str:
    """A run's page, with the pages of its papers as that run found them."""
    shown_run = content.run(store, run)
    if shown_run is None:
        raise KeyError(run)
    papers = [paper_id for paper_id in shown_run["papers"] if paper_id in paper_ids()]
    methods = {paper_id: content.method(store, load_paper(paper_id), run) for paper_id in papers}
    pages = frozenset((f"run/{run}", *(f"method/{paper_id}" for paper_id in papers)))
    site = _site(pages, [(method, run) for method in methods.values()], explore)
    # A file has no second page of cells: all of them stand in it.
    shown_run |= {"cells": store.run_cells(run), "pages": 1}
    bodies = {f"run/{run}": render.body("run", site, **shown_run)}
    bodies |= {f"method/{name}": render.body("method", site, **method) for name, method in methods.items()}
    return render.file_page(site, f"Run {run}", bodies, library=_library(explore))


def render_everything(store: Store, explore: bool = False) -> str:
    """All that there is, in one file."""
    from laureate.catalogue.library import all_entries
    from laureate.catalogue.search import Catalogue
    from laureate.pages import browse

    ids = paper_ids()
    board = content.board(store, [load_paper(paper_id) for paper_id in ids])
    methods = {paper_id: content.method(store, load_paper(paper_id)) for paper_id in ids}
    groups = [shown.roles for found in board["areas"].values() for shown in found] + [board["own"]]
    shown = [row for group in groups for rows in group.values() for row in rows]
    runs = sorted({row.run for row in shown if row.run}, reverse=True)
    names = ("", "catalogue", "paper", *(f"method/{name}" for name in ids), *(f"run/{number}" for number in runs))
    site = _site(frozenset(names), [(method, None) for method in methods.values()], explore)
    with Catalogue(running=ids) as catalogue:
        listing = browse.listing(catalogue)
    entries = _entries(all_entries(), ids)
    listing["left_out"] = listing["size"] - len(entries)
    bodies = {"": render.body("board", site, **board)}
    bodies |= {f"method/{name}": render.body("method", site, **method) for name, method in methods.items()}
    for number in runs:
        shown_run: dict[str, Any] = content.run(store, number) or {}
        # The curves stand on the methods' pages.
        shown_run |= {"cells": store.run_cells(number), "pages": 1, "curves": []}
        bodies[f"run/{number}"] = render.body("run", site, **shown_run)
    bodies["catalogue"] = render.body("catalogue", site, **listing, query=None, results="")
    bodies["paper"] = ""
    return render.file_page(site, "The board", bodies, entries, _library(explore))


def _entries(found: Iterable["Entry"], running: list[str]) -> list[dict[str, Any]]:
    """The papers that the file's own search looks through: those that ship, then imports while there is room."""
    kept, size = [], 0
    for entry in found:
        record = {name: value for name, value in entry.record().items() if name in PAPER_FIELDS}
        size += len(json.dumps(record))
        if size > LARGEST_CATALOGUE:
            break
        kept.append(record | {"runs": entry.id in running})
    return kept


def _site(pages: frozenset[str], methods: list[tuple[dict[str, Any], int | None]], explore: bool) -> render.Site:
    return render.Site(pages=pages, explore=explore, specs=_specs(methods) if explore else {})


def _specs(methods: list[tuple[dict[str, Any], int | None]]) -> dict[str, Any]:
    """``run/figure`` -> its Vega-Lite specification."""
    from laureate.pages import vega

    found: dict[str, Any] = {}
    for method, _ in methods:
        for section in method["sections"]:
            drawn: list[tuple[int | None, Figure]] = [(c.result.run, c.figure) for c in section.claims if c.figure]
            drawn += [(section.run, curve) for curve in section.curves]
            found |= {f"{run or 'reference'}/{figure.name}": vega.spec(figure) for run, figure in drawn}
    return found


def _library(explore: bool) -> str:
    if not explore:
        return ""
    from laureate.pages import vega

    return vega.library()
