"""``laureate export``: every observation, for other tools."""

import csv
import json
import sys
from pathlib import Path

import click

from laureate.cli._common import find_run, open_store


@click.command()
@click.argument("run", type=int, required=False)
@click.option("--csv", "form", flag_value="csv", default=True, help="Comma-separated values (the default).")
@click.option("--json", "form", flag_value="json", help="A JSON list of the same rows.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of the screen.")
def export(run: int | None, form: str, output: Path | None) -> None:
    """All observations of a run (by default the newest), a row a number: arm, seed, metric, index, value."""
    from laureate.lab.records import OBSERVATION_COLUMNS, observation_rows

    store = open_store()
    rows = observation_rows(store, find_run(store, run)["id"])
    stream = output.open("w", newline="", encoding="utf-8") if output else sys.stdout
    try:
        if form == "json":
            json.dump(list(rows), stream)
            stream.write("\n")
        else:
            writer = csv.DictWriter(stream, OBSERVATION_COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    finally:
        if output:
            stream.close()
