"""``laureate show``: what a paper solves, how, and what was measured of it."""

import textwrap

import click

from laureate.cli._common import (
    context_line,
    duration,
    emit,
    find_paper,
    json_option,
    open_store,
    plural,
    verdict_line,
)


@click.command()
@click.argument("id", metavar="ID")
@json_option
def show(id: str, as_json: bool) -> None:
    """The problem, the equation, a five-line example, the claims, the cost and the verdicts of one paper."""
    from laureate.lab.claim import ROLES
    from laureate.lab.judging.results import by_role
    from laureate.lab.records import board_results, paper_record
    from laureate.lab.running.plan import select

    paper_id = id.partition("/")[0]
    paper = find_paper(paper_id)
    wanted = {f"{paper_id}/{c.name}" for s in select([id], [paper_id], lambda _: paper) for c in s.claims}
    rows = [row for row in board_results(open_store(), [paper]) if str(row.id) in wanted]
    if as_json:
        emit(paper_record(paper) | {"claims": [row.to_json() for row in rows]})
        return
    click.echo(click.style(paper.title, bold=True))
    click.echo(
        f"{', '.join(paper.authors)} · {paper.venue} {paper.year}" + (f" · {paper.award}" if paper.award else "")
    )
    if paper.meaning:
        _paragraph("What it means for you", paper.meaning)
    _paragraph("The problem", paper.problem)
    _paragraph("The idea", paper.idea)
    _block("The equation", paper.equation)
    _block("In your code", paper.example)
    click.echo(click.style("\nThe claims", bold=True))
    width = max((len(str(row.id)) for row in rows), default=0)
    for role, mine in by_role(rows).items():
        click.echo(f" {plural(role, len(mine))}: {ROLES[role]}")
        for row in mine:
            click.echo(verdict_line(row, width))
            for text in filter(None, (row.statement, context_line(row))):
                filled = textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    ")
                click.echo(click.style(filled, dim=True))
    deviations = list(dict.fromkeys(text for experiment in paper.experiments for text in experiment.deviations))
    if deviations:
        click.echo(click.style("\nWhat differs from the paper", bold=True))
        for text in deviations:
            click.echo(textwrap.fill(text, 96, initial_indent="  - ", subsequent_indent="    "))
    click.echo(click.style("\nThe cost", bold=True) + " (expected, on two cores)")
    for scale, seconds in paper_record(paper)["cost"].items():
        click.echo(f"  {scale:<6} {duration(seconds)}   laureate run {paper_id} --scale {scale}")


def _paragraph(title: str, text: str) -> None:
    click.echo(click.style(f"\n{title}", bold=True))
    click.echo(textwrap.fill(" ".join(text.split()), 96, initial_indent="  ", subsequent_indent="  "))


def _block(title: str, text: str) -> None:
    click.echo(click.style(f"\n{title}", bold=True))
    click.echo(textwrap.indent(textwrap.dedent(text).strip("\n"), "  "))
