"""``laureate board``: all claims with their last verdicts."""

import click

from laureate.cli._common import emit, json_option, open_store, verdict_line


@click.command()
@json_option
def board(as_json: bool) -> None:
    """All claims with their last verdicts on this machine."""
    from laureate.lab.records import board_rows
    from laureate.papers import all_papers

    rows = board_rows(open_store(), all_papers())
    if as_json:
        emit(rows)
        return
    width = max(len(row["id"]) for row in rows)
    for paper in dict.fromkeys(row["paper"] for row in rows):
        mine = [row for row in rows if row["paper"] == paper]
        click.echo(click.style(f"\n{mine[0]['title']}", bold=True))
        for row in mine:
            line = verdict_line(row, width)
            if row["verdict"] != "not run":
                line += click.style(f"  {row['scale']}, {row['seeds']} seeds, run {row['run']}", dim=True)
            click.echo(line)
            if row["problem"] != "default":
                click.echo(click.style(f"    on your problem {row['problem']}", dim=True))
    waiting = sorted({row["paper"] for row in rows if row["verdict"] == "not run"})
    if waiting:
        click.echo(f"\nNot run yet; to measure: laureate run {' '.join(waiting)}")
