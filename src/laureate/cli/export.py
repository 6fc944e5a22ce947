"""``laureate export``: every observation of a run, or every paper of the catalogue, for other tools."""

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import click

from laureate.cli._common import find_run, open_store, run_number

PAPER_COLUMNS: tuple[str, ...] = (
    "id", "title", "authors", "venue", "decision", "award", "name", "kind", "topic", "problem", "does", "demo", "cpu",
    "runs", "url",
)  # fmt: skip


@click.command()
@click.argument("what", required=False, metavar="[RUN | papers]")
@click.option("--csv", "form", flag_value="csv", default=True, help="Comma-separated values (the default).")
@click.option("--json", "form", flag_value="json", help="A JSON list of the same rows.")
@click.option("--bibtex", "form", flag_value="bibtex", help="BibTeX, for papers.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of the screen.")
@click.option(
    "--figures",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Every chart of the run instead: CSV, Vega-Lite, SVG and PNG (needs the extra charts).",
)
def export(what: str | None, form: str, output: Path | None, figures: Path | None) -> None:
    """All observations of a run (by default the newest), one row per number: arm, seed, metric, index, value.

    `laureate export papers` gives the catalogue instead, your imports with it.
    """
    from laureate.lab.errors import UserError
    from laureate.lab.storing.files import written_whole

    run = run_number(what) if what is not None else None
    if what is not None and what != "papers" and run is None:
        raise UserError(
            f"Neither a run's number nor 'papers': {what!r}.", "For example: laureate export papers --bibtex"
        )
    if form == "bibtex" and what != "papers":
        raise UserError(
            "Observations have no BibTeX.", "laureate export papers --bibtex; or, for a run, laureate cite RUN"
        )
    if figures is not None:
        if what == "papers":
            raise UserError("Papers have no charts.", "For example: laureate export 4 --figures charts")
        _figures(run, figures)
        return
    write = _papers if what == "papers" else _observations(run)
    if output is None:
        write(sys.stdout, form)
        return
    with written_whole(output, newline="") as stream:
        write(stream, form)


def _observations(run: int | None) -> Callable[[TextIO, str], None]:
    from laureate.lab.records import OBSERVATION_COLUMNS, observation_rows

    store = open_store()
    number = find_run(store, run)["id"]

    def write(stream: TextIO, form: str) -> None:
        rows = observation_rows(store, number)
        if form == "json":
            json.dump(list(rows), stream)
            stream.write("\n")
        else:
            writer = csv.DictWriter(stream, OBSERVATION_COLUMNS)
            writer.writeheader()
            writer.writerows(rows)

    return write


def _figures(run: int | None, folder: Path) -> None:
    from laureate.pages import content, vega
    from laureate.pages.figures import csv_of
    from laureate.papers import paper_ids

    store = open_store()
    number = find_run(store, run)["id"]
    papers = dict.fromkeys(cell["paper"] for cell in store.run_cells(number))
    folder.mkdir(parents=True, exist_ok=True)
    for figure in content.figures(store, number, [paper for paper in papers if paper in paper_ids()]):
        path = folder / figure.name.replace("/", "-")
        path.with_suffix(".csv").write_text(csv_of(figure), "utf-8")
        path.with_suffix(".vl.json").write_text(json.dumps(vega.spec(figure), indent=1), "utf-8")
        for form in ("svg", "png"):
            path.with_suffix(f".{form}").write_bytes(vega.image(figure, form))
        click.echo(f"{path}.png")


def _papers(stream: TextIO, form: str) -> None:
    from laureate.catalogue import citation
    from laureate.catalogue.library import all_entries
    from laureate.papers import paper_ids

    if form == "bibtex":
        for text in citation.bibliography(all_entries()):
            stream.write(text + "\n\n")
        return
    running = paper_ids()
    records = (entry.record() | {"runs": entry.id in running} for entry in all_entries())
    if form == "json":
        json.dump(list(records), stream, ensure_ascii=False)
        stream.write("\n")
        return
    writer = csv.DictWriter(stream, PAPER_COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for record in records:
        writer.writerow({name: _cell(value) for name, value in record.items()})


def _cell(value: object) -> object:
    """Lists by semicolons; a text that a spreadsheet would take for a formula is marked as text."""
    if isinstance(value, list):
        value = "; ".join(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
