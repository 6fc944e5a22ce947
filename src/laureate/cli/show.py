"""``laureate show``: what a paper solves, how, and what was measured of it."""

import textwrap
from typing import TYPE_CHECKING

import click

from laureate.cli._common import (
    context_line,
    duration,
    emit,
    filled,
    find_entry,
    find_paper,
    json_option,
    open_store,
    plural,
    say,
    say_reference,
    verdict_line,
)
from laureate.pages.wording import sentence

if TYPE_CHECKING:
    from laureate.lab.claim import Experiment


@click.command()
@click.argument("id", metavar="ID")
@json_option
def show(id: str, as_json: bool) -> None:
    """The problem, the equation, a five-line example, the claims, the cost and the verdicts of one paper.

    Of a paper that does not run here: what it solves, where it is, and what runs here for the same problem.
    """
    from laureate.lab.claim import ROLES
    from laureate.lab.judging.results import by_role
    from laureate.lab.ledger import history, summary
    from laureate.lab.records import board_results, paper_record
    from laureate.lab.running.plan import select
    from laureate.papers import paper_ids

    asked, slash, claim = id.partition("/")
    paper_id = asked.lower() if asked.lower() in paper_ids() else find_entry(asked).id
    if paper_id not in paper_ids():
        _show_entry(paper_id, as_json)
        return
    paper = find_paper(paper_id)
    selections = select([paper_id + slash + claim], [paper_id], lambda _: paper)
    wanted = {f"{paper_id}/{c.name}" for selection in selections for c in selection.claims}
    experiments = [selection.experiment for selection in selections]
    rows = [row for row in board_results(open_store(), [paper]) if str(row.id) in wanted]
    if as_json:
        record = paper_record(paper)
        names = {experiment.name for experiment in experiments}
        deviations = {name: words for name, words in record["deviations"].items() if name in names}
        accepts = {e.name: list(e.accepts) for e in experiments if e.accepts}
        claims = [row.to_json() for row in rows]
        emit(record | {"deviations": deviations, "own_problem": accepts, "claims": claims})
        return
    click.echo(click.style(filled(paper.title), bold=True))
    facts = (", ".join(paper.authors), f"{paper.venue} {paper.year}", paper.award)
    say(" · ".join(filter(None, facts)), dim=False)
    if paper.url:
        click.echo(paper.url)
    if paper.meaning:
        _paragraph("What it means for you", paper.meaning)
    _paragraph("The problem", paper.problem)
    _paragraph("The idea", paper.idea)
    _block("The equation", paper.equation)
    _block("In your code", paper.example)
    click.echo(click.style("\nThe claims", bold=True))
    say_reference(rows)
    width, declared = max((len(str(row.id)) for row in rows), default=0), history(paper.id)
    for role, mine in by_role(rows).items():
        click.echo(f"\n {plural(role, len(mine))}: {ROLES[role]}")
        for row in mine:
            click.echo(verdict_line(row, width))
            say(sentence(row.statement), 4)
            say(context_line(row), 4)
            say(summary(declared[row.name], reasons=len(rows) == 1) if row.name in declared else "", 4)
    deviations = list(dict.fromkeys(text for experiment in experiments for text in experiment.deviations))
    if deviations:
        click.echo(click.style("\nWhat differs from the paper", bold=True))
        for text in deviations:
            click.echo(filled(f"- {text}", 2, 4))
    _own_problem(paper_id, experiments)
    click.echo(click.style("\nThe cost", bold=True) + " (expected, on two cores)")
    for scale in paper_record(paper)["cost"]:
        costs = [experiment.scales[scale].cost for experiment in experiments if scale in experiment.scales]
        if costs:
            seconds = duration(sum(costs)) if sum(costs) else "?"
            click.echo(f"  {scale:<6} {seconds:>6}   laureate run {paper_id}{slash}{claim} --scale {scale}")


def _own_problem(paper_id: str, experiments: "list[Experiment]") -> None:
    """Which experiments take a problem of the reader's, and what it must offer."""
    from laureate.lab.running.skeleton import wanted

    click.echo(click.style("\nOn your own problem", bold=True))
    kinds: dict[tuple[str, ...], list[Experiment]] = {}
    for experiment in experiments:
        if experiment.accepts:
            kinds.setdefault(experiment.accepts, []).append(experiment)
    if not kinds:
        say("None of these takes another problem than the paper's.", 2, dim=False)
        return
    for mine in kinds.values():
        names = ", ".join(f"{paper_id}/{experiment.name}" for experiment in mine)
        say(f"{names} take{'s' * (len(mine) == 1)} any problem that offers", 2, dim=False)
        for want in wanted(mine[0]):
            click.echo(filled(want.words, 4, 8))
    click.echo(f"  a file to fill in: laureate run {paper_id} --problem new")


def _show_entry(paper_id: str, as_json: bool) -> None:
    """A paper of the catalogue whose claims cannot be measured here."""
    from laureate.catalogue import Catalogue
    from laureate.pages.browse import nearest
    from laureate.papers import paper_ids

    entry = find_entry(paper_id)
    with Catalogue(running=paper_ids()) as catalogue:
        found = nearest(catalogue, entry)
    if as_json:
        runs = {"nearest_that_runs": found.id if found else "", "near": bool(found and found.near)}
        emit(entry.record() | {"runs": False} | runs)
        return
    click.echo(click.style(filled(entry.title), bold=True))
    say(" · ".join(filter(None, (", ".join(entry.authors), entry.venue, entry.decision, entry.award))), dim=False)
    if entry.url:
        click.echo(entry.url)
    for title, text in (("The problem", entry.problem), ("What it does", entry.does or entry.abstract)):
        if text:
            _paragraph(title, text)
    click.echo("\nIts claims cannot be measured here yet.")
    if found:
        say(f"{str(found).capitalize()}: {found.title}", dim=False)
        click.echo(f"  laureate show {found.id}")


def _paragraph(title: str, text: str) -> None:
    click.echo(click.style(f"\n{title}", bold=True))
    click.echo(filled(text, 2))


def _block(title: str, text: str) -> None:
    click.echo(click.style(f"\n{title}", bold=True))
    click.echo(textwrap.indent(textwrap.dedent(text).strip("\n"), "  "))
