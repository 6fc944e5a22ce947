"""``laureate import``: other venues into the user's own catalogue."""

from pathlib import Path

import click

from laureate.cli._common import emit, json_option


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--venue", default="", help="The venue and year of papers whose list does not say, such as 'ICLR 2022'.")
@json_option
def import_papers(files: tuple[Path, ...], venue: str, as_json: bool) -> None:
    """Add papers to your catalogue: OpenReview notes (JSON), BibTeX, a conference's virtual site (HTML), Markdown.

    Papers that are already there gain what was missing and are not listed twice; what is left out is counted, and why.
    If one file cannot be read, nothing is imported.
    """
    from laureate.catalogue import library
    from laureate.catalogue.importers import clean, read_file
    from laureate.catalogue.index import opened

    lists = [read_file(path) for path in files]
    papers = [paper for found in lists for paper in found]
    left_out: dict[str, int] = {}
    for what, count in ((what, count) for found in lists for what, count in found.left_out.items()):
        left_out[what] = left_out.get(what, 0) + count
    done = library.add(papers, clean(venue, 120))
    # Built now, so that the next search does not wait for it.
    opened().close()
    if twice := len(papers) - done.new - done.enriched - done.known:
        left_out["listings of a paper that these files list more than once"] = twice
    if as_json:
        counts = {"read": len(papers), "new": done.new, "enriched": done.enriched, "known": done.known}
        emit(counts | {"left_out": left_out})
        return
    click.echo(f"{len(papers)} read: {done.new} new, {done.enriched} gained something, {done.known} already there.")
    for what, count in left_out.items():
        click.echo(f"Left out: {count} {what}.")
    if done.new and not venue and not all(paper.venue for paper in papers):
        click.echo("Some have no venue: give it with --venue, for example --venue 'ICLR 2022'.")
