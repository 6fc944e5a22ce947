"""``laureate compare``: two runs side by side."""

import click

from laureate.cli._common import (
    MARKS,
    STYLES,
    effect,
    emit,
    filled,
    find_run,
    json_option,
    number,
    open_store,
    say,
    unit_of,
)
from laureate.pages.wording import moment


@click.command()
@click.argument("first", type=int)
@click.argument("second", type=int)
@json_option
def compare(first: int, second: int, as_json: bool) -> None:
    """Two runs side by side: verdicts, effects, and the change of each effect with its interval."""
    from laureate.lab.records import compare_runs, differing
    from laureate.papers import all_papers

    store = open_store()
    runs = [find_run(store, number) for number in (first, second)]
    rows = compare_runs(store, all_papers(), first, second)
    unlike = differing(*runs)
    if as_json:
        emit({"runs": runs, "unlike": unlike, "claims": [row.to_json() for row in rows]})
        return
    for run in runs:
        commit = run["environment"]["commit"] or "-"
        facts = (run["command"], moment(run["started"]), f"commit {commit}", run["environment"]["machine"])
        click.echo(filled(f"run {run['id']}: {' · '.join(facts)}", 0, 2))
    if unlike:
        say(f"Unlike runs: {'; '.join(unlike)}. A change says nothing about the methods then.", dim=False)
    click.echo()
    for row in rows:
        click.echo(f"  {row.id}")
        for claim in (row.first, row.second):
            if claim is None:
                click.echo("    · not in this run")
                continue
            word = claim.verdict
            shown = click.style(f"{MARKS[word]} {word:<13}", fg=STYLES[word])
            click.echo(f"    run {claim.run:<5} {shown} {filled(effect(claim), 30).lstrip()}".rstrip())
        if row.change is not None:
            sure = "  ← differs" if row.differs else ""
            unit = unit_of(row.second) if row.second else ""
            shown = f"{number(row.change)} {unit} [{number(row.low)}, {number(row.high)}]{sure}"
            click.echo(filled(f"change {shown}", 4, 8))
