"""``laureate cite``: BibTeX."""

import click

from laureate.cli._common import emit, find_paper, json_option


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@json_option
def cite(ids: tuple[str, ...], as_json: bool) -> None:
    """BibTeX for the papers you used."""
    entries = {paper_id: find_paper(paper_id.partition("/")[0]).bibtex.strip() for paper_id in ids}
    if as_json:
        emit([{"id": paper_id, "bibtex": bibtex} for paper_id, bibtex in entries.items()])
    else:
        click.echo("\n\n".join(entries.values()))
