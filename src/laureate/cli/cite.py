"""``laureate cite``: BibTeX and CSL-JSON, of papers or of a run."""

from typing import TYPE_CHECKING

import click

from laureate.cli._common import emit, find_entry, find_run, json_option, open_store, run_number
from laureate.lab.errors import UserError

if TYPE_CHECKING:
    from laureate.catalogue import Entry


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID... | RUN")
@click.option("--csl", "as_csl", is_flag=True, help="CSL-JSON, for Zotero and Pandoc.")
@json_option
def cite(ids: tuple[str, ...], as_csl: bool, as_json: bool) -> None:
    """BibTeX for the papers you used: by their ids in the catalogue, or all papers of a run by its number."""
    from laureate.catalogue import citation

    found: dict[str, Entry] = {}
    for asked in ids:
        run = run_number(asked)
        for paper_id in _papers_of_run(run) if run is not None else [asked.partition("/")[0]]:
            found[paper_id if run is not None else asked] = find_entry(paper_id)
    papers = {entry.id: entry for entry in found.values()}
    texts = dict(zip(papers, citation.bibliography(papers.values()), strict=True))
    if as_csl:
        emit(list(map(citation.csl, papers.values())))
    elif as_json:
        emit([{"id": label, "bibtex": texts[entry.id]} for label, entry in found.items()])
    else:
        click.echo("\n\n".join(texts.values()))


def _papers_of_run(number: int) -> list[str]:
    store = open_store()
    run = find_run(store, number)
    if run["scale"] == "race":
        raise UserError(f"Run {number} is a race, which is of no paper.", "Name papers: laureate find WORDS")
    papers = [cell["paper"] for cell in store.run_cells(run["id"])]
    papers += [result.paper for result in store.results(run["id"])]
    return list(dict.fromkeys(papers))
