"""``laureate run``: measure claims here."""

import shlex
import sys

import click

from laureate.cli._common import (
    claim_name,
    context_line,
    duration,
    emit,
    filled,
    json_option,
    number,
    open_store,
    plural,
    say,
    verdict_line,
)
from laureate.pages.wording import best_here, in_words, sentence


def _workers(ctx: click.Context, parameter: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    if not value.isdecimal() or len(value) > 9 or int(value) < 1:
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
@click.option("--seeds", type=click.IntRange(2, 100_000), help="Seeds per arm, instead of the scale's own number.")
@click.option("--workers", default="auto", callback=_workers, metavar="N|auto", help="Processes; auto: one per core.")
@click.option(
    "--on", default="", metavar="ray | ray://HOST:PORT | HOST:PORT", help="On a Ray cluster; ray: one that starts here."
)
@click.option(
    "--problem", metavar="FILE.py:NAME | new", help="Compare on your own problem; new: write a file to fill in."
)
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

    ID/CLAIM decides that claim, ID/EXPERIMENT all claims of an experiment (ID/EXPERIMENT/ where a claim has the same
    name). With --problem the answer is a table of all
    arms on your problem, the best first; it is traced once before anything starts.

    Finished work is kept: repeating a command resumes it, and a finished one adds no run. Exit codes: 0 done, 1 some
    cells failed, 2 wrong words or a problem that cannot be used, 3 the gate did not hold, 130 stopped.
    """
    from laureate.cli._progress import make_progress
    from laureate.lab.cell import DEFAULT_PROBLEM
    from laureate.lab.records import run_standings
    from laureate.lab.running.plan import select
    from laureate.lab.running.references import check_file
    from laureate.lab.running.run import run_claims
    from laureate.lab.storing.home import reports
    from laureate.pages.report import write_report
    from laureate.papers import paper, paper_ids

    selections = select(ids, paper_ids(), paper, everything)
    if problem == "new":
        _write_skeleton(selections, as_json)
        return 0
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
    own = summary.problem != DEFAULT_PROBLEM
    ranked = run_standings(store, [selection.paper for selection in selections], summary.run) if own else []
    if as_json:
        emit(summary.to_json() | {"standings": [standing.to_json() for standing in ranked]})
    else:
        record = store.run(summary.run)
        _print(summary, ranked, page, record["environment"]["machine"] if record else "")
    if summary.failures:
        return 1
    if gate and summary.skipped and not problem:  # one's own problem fits some experiments alone
        return 3  # nothing is known of these
    return 3 if gate and any(claim.verdict != "supported" for claim in summary.claims) else 0


def _write_skeleton(selections, as_json: bool) -> None:
    """A commented file for a problem of one's own; one that is there is never written over."""
    from pathlib import Path

    from laureate.lab.errors import UserError
    from laureate.lab.running.skeleton import first_scale, skeleton
    from laureate.lab.storing.files import written_whole

    if len({selection.paper.id for selection in selections}) > 1:
        raise UserError("--problem new is for one paper at a time.", "For example: laureate run pes --problem new")
    paper, taking = selections[0].paper, [s.experiment for s in selections if s.experiment.accepts]
    if not taking:
        raise UserError(f"{paper.id} takes no problem of yours there.", f"laureate show {paper.id} says what does.")
    path = Path(f"my_{paper.id.replace('-', '_')}.py")
    if path.exists():
        raise UserError(f"{path} is there already.", "Move it away, or run it: --problem FILE.py:NAME")
    with written_whole(path) as file:
        file.write(skeleton(paper, taking, path.name))
    if as_json:
        emit({"file": str(path), "experiments": [f"{paper.id}/{experiment.name}" for experiment in taking]})
        return
    click.echo(f"{path}: fill it in, then")
    words = "laureate run", paper.id, first_scale(taking), f"--problem {path}:Mine"
    click.echo(f"  {' '.join(filter(None, words))}")


def _print(summary, standings, page, machine: str) -> None:
    from laureate.lab.claim import ROLES
    from laureate.lab.judging.results import by_role

    width = max((len(claim_name(result)) for result in (*summary.claims, *summary.questions)), default=0)
    click.echo()
    for standing in standings:
        _print_standing(standing, summary.problem)
    if standings and summary.claims:
        click.echo(click.style(f" What the paper claims, on {summary.problem}", bold=True))
        say("The margins are the paper's; these verdicts are about your problem and count for no paper.", 1)
    for role, mine in by_role(summary.claims).items():
        click.echo(f" {plural(role, len(mine))}: {ROLES[role]}")
        for claim in mine:
            click.echo(verdict_line(claim, width))
            say(sentence(claim.statement), 4)
            say(context_line(claim), 4)
            if claim.verdict != "supported" and claim.reason:
                say(f"({claim.reason})", 4)
    for question in summary.questions:
        click.echo(filled(f"{claim_name(question):<{width}}  {sentence(question.statement)}", 2, 4))
        for row in question.answers:
            shown = f"{number(row.mean)}  [{number(row.low)}, {number(row.high)}]" if row.is_number else row.reason
            click.echo(f"    {row.arm:<24} {shown or 'a curve: see the page'}")
    skipped: dict[str, list[str]] = {}
    for name, _, reason in (text.partition(" ") for text in summary.skipped):
        skipped.setdefault(reason, []).append(name)
    for reason, names in skipped.items():
        which = f", each {reason}: {', '.join(names)}" if len(names) > 1 else f": {names[0]} {reason}"
        click.echo(filled(f"skipped{which}", 2, 4), err=True)
    for failure in summary.failures:
        click.echo(click.style(f"  failed: {failure['cell']}", fg="red"), err=True)
        click.echo("    " + failure["error"].splitlines()[0], err=True)
    cells = summary.cells
    click.echo()
    # A cluster is told with the machine that it was called from, which is this one.
    where = machine.partition(",")[0] if machine.startswith("a Ray cluster") else "this machine"
    where = where if summary.problem == "default" else f"on {summary.problem}, {where}"
    click.echo(
        filled(
            f"run {summary.run}: scale {summary.scale}, {summary.seeds} seeds, {where} ·"
            f" {plural('cell', cells['total'])}: {cells['computed']} computed, {cells['cached']} kept,"
            f" {cells['failed']} failed"
            f" · {duration(summary.seconds)} of computing",
            2,
            4,
        )
    )
    if summary.repeated:
        say("Nothing is new since that run, so none was added.", 2)
    click.echo(f"  the page: {page}")


def _print_standing(standing, problem: str) -> None:
    """What the person asked: all arms on their problem, the best first."""
    title = f"{standing.paper}/{standing.experiment} on {problem}: {in_words(standing.metric)}"
    unit = f", {standing.unit}" if standing.unit else ""
    click.echo(click.style(filled(title, 1, 3), bold=True))
    say(f"mean over {standing.seeds} seeds with its 95 % interval{unit}; {standing.better} is better", 1)
    width = max(len(place.arm) for place in standing.places)
    for place in standing.places:
        shown = f"{number(place.mean):>9}  [{number(place.low)}, {number(place.high)}]"
        if place not in standing.ranked:
            shown = ""
        click.echo(f"    {place.arm:<{width}} {shown}".rstrip())
        say(place.note, 8)
    say(best_here(standing), 2, dim=False)
    click.echo()
