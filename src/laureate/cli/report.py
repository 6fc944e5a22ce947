"""``laureate report``: pages in one file."""

from pathlib import Path

import click

from laureate.cli._common import emit, find_run, json_option, open_store


@click.command()
@click.argument("run", type=int, required=False)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@click.option("--explore", is_flag=True, help="With Vega-Lite inside, to zoom and point (0.9 MB more).")
@json_option
def report(run: int | None, output: Path | None, explore: bool, as_json: bool) -> None:
    """One HTML file that opens from disk, with no network.

    With a RUN its page; without one everything: the board, the methods, the runs behind it, and the catalogue with its
    search.
    """
    from laureate.lab.storing.home import reports
    from laureate.pages.report import write_everything, write_report

    store = open_store()
    if run is None:
        path = output or reports() / "laureate.html"
        write_everything(store, path, explore)
    else:
        number = find_run(store, run)["id"]
        path = output or reports() / f"run-{number}.html"
        write_report(store, number, path, explore)
    if as_json:
        emit({"run": run, "file": str(path), "bytes": path.stat().st_size})
    else:
        click.echo(f"{path}")
