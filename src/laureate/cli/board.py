"""``laureate board``: all claims with what is shown of them."""

import click

from laureate.cli._common import (
    MARKS,
    context_line,
    emit,
    filled,
    find_paper,
    json_option,
    open_store,
    plural,
    say,
    say_reference,
    verdict_line,
)
from laureate.pages.wording import best_here, in_words


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--claims", "everything", is_flag=True, help="List every claim, also those that we measured and you did not."
)
@click.option("--checks", is_flag=True, help="List the checks of our own code too.")
@json_option
def board(ids: tuple[str, ...], everything: bool, checks: bool, as_json: bool) -> None:
    """All papers with their verdicts: the largest scale, then the most seeds, then the newest.

    What was measured here is listed claim by claim. What was not is counted as we measured it, our reference; ID or
    --claims lists it too. Headlines come first; checks of our own code are only counted. Runs on your own problems
    stand apart.
    """
    from laureate.lab.claim import ROLES
    from laureate.lab.judging.results import by_role, tally
    from laureate.lab.records import board_results, own_results, run_standings
    from laureate.papers import all_papers

    store, papers = open_store(), [find_paper(id) for id in dict.fromkeys(ids)] or all_papers()
    listed = everything or bool(ids)
    results, own = board_results(store, papers), own_results(store, papers)
    if as_json:
        about = {paper.id: {"title": paper.title, "area": paper.area, "meaning": paper.meaning} for paper in papers}
        counts = {role: tally(mine) for role, mine in by_role(results).items()}
        rows, yours = ([about[result.paper] | result.to_json() for result in found] for found in (results, own))
        emit({"counts": counts, "claims": rows, "own_problems": yours})
        return
    width = max(len(str(result.id)) for result in results)
    say_reference(results)
    for paper in papers:
        click.echo()
        click.echo(click.style(filled(f"{paper.id} · {paper.title}", 0, 2), bold=True))
        if paper.meaning:
            say(paper.meaning, 2, dim=False)
        for role, mine in by_role(result for result in results if result.paper == paper.id).items():
            words = ", ".join(f"{MARKS[word]} {count} {word}" for word, count in tally(mine).items())
            say(f"{plural(role, len(mine))} ({ROLES[role]}): {words}", 2)
            for result in mine if role != "check" or checks else ():
                if listed or not result.reference:
                    _line(result, width)
    if own:
        click.echo(click.style("\nOn your own problems", bold=True))
        for problem in dict.fromkeys(result.problem for result in own):
            click.echo(f" {problem}")
            mine = [result for result in own if result.problem == problem]
            for run in sorted({result.run for result in mine if result.run is not None}):
                for standing in run_standings(store, papers, run):
                    say(
                        f"{standing.paper}/{standing.experiment}, {in_words(standing.metric)}: {best_here(standing)}", 2
                    )
            for result in mine:
                _line(result, width)
    waiting = sorted({result.paper for result in results if result.verdict == "not run" or result.reference})
    click.echo()
    if not listed and any(result.reference for result in results):
        say(f"The claims of a paper: laureate board {papers[0].id}; of all: laureate board --claims", dim=False)
    if waiting:
        say(f"Not measured here yet: laureate run {' '.join(waiting)}", dim=False)


def _line(result, width: int) -> None:
    click.echo(verdict_line(result, width))
    say(context_line(result), 4)
