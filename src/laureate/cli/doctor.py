"""``laureate doctor``: what is here and where it lies, and a damaged store made whole."""

import click

from laureate.cli._common import emit, filled, json_option, open_store, plural


@click.command()
@click.option("--repair", "mend", is_flag=True, help="Save what is readable of a damaged store into a new one.")
@json_option
def doctor(mend: bool, as_json: bool) -> None:
    """Versions, cores, threads, caches, the store and the data sets found; what to do where something is missing."""
    if mend:
        _repair(as_json)
        return
    from laureate.lab.running.diagnosis import diagnose

    found = diagnose(open_store())
    if as_json:
        emit(found)
        return
    for title, entries in found.items():
        click.echo(click.style(title, bold=True))
        for name, value in entries.items():
            click.echo(f"  {name:<22} {filled(str(value), 25).lstrip()}")


def _repair(as_json: bool) -> None:
    from laureate.lab.storing.home import store_path
    from laureate.lab.storing.salvage import repair

    done = repair(store_path())
    if as_json:
        kept_as = str(done.kept_as) if done.kept_as else None
        emit({"saved": done.rows, "lost_cells": done.lost_cells, "damaged_file": kept_as})
    elif done.kept_as is None:
        click.echo("The store is whole: nothing to repair.")
    else:
        saved = ", ".join(plural(name, done.rows[f"{name}s"]) for name in ("run", "cell", "verdict"))
        lost, them = plural("cell", done.lost_cells), "it" if done.lost_cells == 1 else "them"
        click.echo(f"Saved: {saved}. Known to be lost: {lost}; a run computes {them} again.")
        click.echo(f"The damaged file is kept: {done.kept_as}")
