"""``laureate run``: measure claims here."""

import shlex
import sys

import click

from laureate.cli._common import context_line, duration, emit, json_option, number, open_store, plural, verdict_line


def _workers(ctx: click.Context, parameter: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    if not value.isdigit() or int(value) < 1:
        raise click.BadParameter("a number of processes, or auto")
    return int(value)


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID | ID/CLAIM]...")
@click.option("--all", "everything", is_flag=True, help="All papers.")
@click.option(
    "--scale",
    type=click.Choice(["smoke", "desk", "full"]),
    default="desk",
    show_default=True,
    help="smoke: seconds; desk: minutes on two cores; full: the paper's own size.",
)
@click.option("--seeds", type=click.IntRange(2, 100_000), help="Seeds an arm, instead of the scale's own number.")
@click.option("--workers", default="auto", callback=_workers, metavar="N|auto", help="Processes; auto: one a core.")
@click.option(
    "--on", default="", metavar="ray | ray://HOST:PORT | HOST:PORT", help="On a Ray cluster; ray: one that starts here."
)
@click.option("--problem", metavar="FILE.py:NAME", help="Compare on your own problem.")
@click.option("--fresh", is_flag=True, help="Compute again what the store already has.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.option("--gate", is_flag=True, help="Exit with 3 unless every selected claim is supported.")
@json_option
def run(
    ids: tuple[str, ...],
    everything: bool,
    scale: str,
    seeds: int | None,
    workers: int | None,
    on: str,
    problem: str | None,
    fresh: bool,
    quiet: bool,
    gate: bool,
    as_json: bool,
) -> int:
    """Measure a paper's claims on this machine, against its baselines.

    Finished work is kept: repeating a command resumes it. Exit codes: 0 done, 1 some cells failed, 2 wrong words,
    3 the gate did not hold, 130 stopped.
    """
    from laureate.cli._progress import make_progress
    from laureate.lab.cell import DEFAULT_PROBLEM
    from laureate.lab.running.plan import select
    from laureate.lab.running.references import check_file
    from laureate.lab.running.run import run_claims
    from laureate.lab.storing.home import reports
    from laureate.pages.report import write_report
    from laureate.papers import paper, paper_ids

    selections = select(ids, paper_ids(), paper, everything)
    chosen_problem = check_file(problem) if problem else DEFAULT_PROBLEM
    store = open_store()
    summary = run_claims(
        store,
        selections,
        scale=scale,
        seeds=seeds,
        problem=chosen_problem,
        workers=workers,
        on=on,
        fresh=fresh,
        command=shlex.join(["laureate", *sys.argv[1:]]),
        progress=None if quiet else make_progress(),
    )
    page = reports() / f"run-{summary.run}.html"
    write_report(store, summary.run, page)
    if as_json:
        emit(summary.to_json())
    else:
        _print(summary, page)
    if summary.failures:
        return 1
    return 3 if gate and any(claim.verdict != "supported" for claim in summary.claims) else 0


def _print(summary, page) -> None:
    from laureate.lab.claim import ROLES
    from laureate.lab.judging.results import by_role

    width = max((len(str(result.id)) for result in (*summary.claims, *summary.questions)), default=0)
    click.echo()
    for role, mine in by_role(summary.claims).items():
        click.echo(f" {plural(role, len(mine))}: {ROLES[role]}")
        for claim in mine:
            click.echo(verdict_line(claim, width))
            click.echo(click.style(f"    {claim.statement}", dim=True))
            if context := context_line(claim):
                click.echo(click.style(f"    {context}", dim=True))
            if claim.verdict != "supported" and claim.reason:
                click.echo(click.style(f"    ({claim.reason})", dim=True))
    for question in summary.questions:
        click.echo(f"  {question.id!s:<{width}}  {question.statement}")
        for row in question.answers:
            shown = f"{number(row.mean)}  [{number(row.low)}, {number(row.high)}]" if row.is_number else row.reason
            click.echo(f"    {row.arm:<24} {shown or 'a curve: see the page'}")
    for reason in summary.skipped:
        click.echo(f"  skipped: {reason}", err=True)
    for failure in summary.failures:
        click.echo(click.style(f"  failed: {failure['cell']}", fg="red"), err=True)
        click.echo("    " + failure["error"].splitlines()[0], err=True)
    cells = summary.cells
    click.echo()
    click.echo(
        f"  scale {summary.scale}, {summary.seeds} seeds, this machine · {cells['total']} cells:"
        f" {cells['computed']} computed, {cells['cached']} kept, {cells['failed']} failed"
        f" · {duration(summary.seconds)} of computing"
    )
    click.echo(f"  the page: {page}")
