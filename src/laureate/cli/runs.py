"""``laureate runs``: what was run here; names, notes, and runs that are not wanted any more."""

from typing import TYPE_CHECKING

import click

from laureate.cli._common import MARKS, emit, filled, find_run, json_option, open_store, plural, say
from laureate.pages.wording import moment

if TYPE_CHECKING:
    from laureate.lab.storing.rows import RunRow
    from laureate.lab.storing.store import Store

LONGEST_NAME, LONGEST_NOTE = 60, 2000


@click.command()
@click.argument("run", type=int, required=False)
@click.option("--name", help="Give the run a name; '' removes it.")
@click.option("--note", help="Keep a note with the run; '' removes it.")
@click.option("--delete", is_flag=True, help="Forget the run, and what only it has computed.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@json_option
def runs(
    run: int | None, name: str | None, note: str | None, delete: bool, yes: bool, limit: int, as_json: bool
) -> None:
    """The runs on this machine, newest first; with a RUN, that one, to name, to note or to delete.

    Numbers that another run uses too are kept when a run is deleted. Its verdicts are gone with it, so a later run with
    other seeds does not know of that look any more.
    """
    from laureate.lab.errors import UserError

    store = open_store()
    if run is None:
        if delete or name is not None or note is not None:
            raise UserError("Say which run.", "For example: laureate runs 3 --name baseline")
        _list(store, limit, as_json)
        return
    record = find_run(store, run)
    if delete:
        _delete(store, record, yes, as_json)
        return
    if name is not None or note is not None:
        store.describe(run, _clean(name, LONGEST_NAME), _clean(note, LONGEST_NOTE))
        record = find_run(store, run)
    _show([record], store, as_json)


def _clean(text: str | None, longest: int) -> str | None:
    """One line of what can be printed."""
    if text is None:
        return None
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(plain.split())[:longest]


def _list(store: "Store", limit: int, as_json: bool) -> None:
    found = store.runs(limit)
    if not found and not as_json:
        click.echo("Nothing was run yet. To start: laureate run pes --scale smoke")
        return
    _show(found, store, as_json)
    if not as_json and (left := store.counts()["runs"] - len(found)) > 0 and len(found) == limit:
        say(f"{left} more: --limit {limit + left}")


def _show(records: "list[RunRow]", store: "Store", as_json: bool) -> None:
    words = store.words([record["id"] for record in records])
    if as_json:
        facts = ("id", "name", "note", "started", "finished", "status", "command", "scale", "seeds", "problem")
        listed = [{name: record[name] for name in facts} for record in records]
        counted = ({word: words.get(record["id"], []).count(word) for word in MARKS} for record in records)
        emit([one | {"verdicts": verdicts} for one, verdicts in zip(listed, counted, strict=True)])
        return
    for record in records:
        mine = words.get(record["id"], [])
        counts = ", ".join(f"{MARKS[word]} {mine.count(word)} {word}" for word in MARKS if word in mine)
        name = f"  {record['name']}" if record["name"] else ""
        click.echo(click.style(f"run {record['id']}{name}", bold=True))
        facts = (record["status"], record["scale"], f"{record['seeds']} seeds", moment(record["started"]), counts)
        click.echo(filled(" · ".join(filter(None, facts)), 2, 4))
        say(record["command"], 2)
        say(record["note"] and f"note: {record['note']}", 2, dim=False)


def _delete(store: "Store", record: "RunRow", yes: bool, as_json: bool) -> None:
    from laureate.lab.errors import UserError
    from laureate.lab.storing.home import reports

    number = record["id"]
    if number in store.living_runs():
        raise UserError(f"Run {number} is under way.", "Stop it first.")
    if not yes:
        click.confirm(f"Delete run {number} ({record['command']}), with what only it has computed?", abort=True)
    cells = store.delete_run(number)
    for kind in ("run", "race"):
        (reports() / f"{kind}-{number}.html").unlink(missing_ok=True)
    if as_json:
        emit({"deleted": number, "cells": cells})
    else:
        click.echo(f"Run {number} is deleted, and {plural('cell', cells)} that only it had.")
