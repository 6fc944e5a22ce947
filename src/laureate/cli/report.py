"""``laureate report``: a page in one file."""

from pathlib import Path

import click

from laureate.cli._common import emit, find_run, json_option, open_store


@click.command()
@click.argument("run", type=int, required=False)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@json_option
def report(run: int | None, output: Path | None, as_json: bool) -> None:
    """Write the page of a run (by default the newest): one HTML file that opens from disk, with no network."""
    from laureate.lab.home import reports
    from laureate.pages.report import write_report

    store = open_store()
    record = find_run(store, run)
    path = output or reports() / f"run-{record['id']}.html"
    write_report(store, record["id"], path)
    if as_json:
        emit({"run": record["id"], "file": str(path)})
    else:
        click.echo(f"{path}")
