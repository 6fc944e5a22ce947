"""``laureate doctor``: what is here and where it lies."""

import click

from laureate.cli._common import emit, json_option, open_store


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Versions, cores, threads, caches, the store and the data sets found; what to do where something is missing."""
    from laureate.lab.diagnosis import diagnose

    found = diagnose(open_store())
    if as_json:
        emit(found)
        return
    for title, entries in found.items():
        click.echo(click.style(title, bold=True))
        for name, value in entries.items():
            click.echo(f"  {name:<22} {value}")
