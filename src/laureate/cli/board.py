"""``laureate board``: all claims with what is shown of them."""

import click

from laureate.cli._common import context_line, emit, json_option, open_store, plural, say, verdict_line
from laureate.pages.wording import best_here, in_words, origin


@click.command()
@click.option("--checks", is_flag=True, help="List the checks of our own code too.")
@json_option
def board(checks: bool, as_json: bool) -> None:
    """All claims with their verdicts on this machine: the largest scale, then the most seeds, then the newest.

    What was not measured here is shown as we measured it, and marked as our reference. Headlines come first; checks of
    our own code are only counted. Runs on your own problems stand apart.
    """
    from laureate.lab.claim import ROLES
    from laureate.lab.judging.results import by_role, tally
    from laureate.lab.records import board_results, own_results, run_standings
    from laureate.papers import all_papers

    store, papers = open_store(), all_papers()
    results, own = board_results(store, papers), own_results(store, papers)
    if as_json:
        about = {paper.id: {"title": paper.title, "area": paper.area, "meaning": paper.meaning} for paper in papers}
        counts = {role: tally(mine) for role, mine in by_role(results).items()}
        rows, yours = ([about[result.paper] | result.to_json() for result in found] for found in (results, own))
        emit({"counts": counts, "claims": rows, "own_problems": yours})
        return
    width = max(len(str(result.id)) for result in results)
    if shipped := [result for result in results if result.reference]:
        say(
            f"{len(shipped)} of {len(results)} verdicts were not measured here but are {origin(shipped[0])}. "
            "`laureate run ID` puts yours in their place."
        )
    for paper in papers:
        click.echo(click.style(f"\n{paper.title}", bold=True))
        if paper.meaning:
            say(paper.meaning, 2, dim=False)
        for role, mine in by_role(result for result in results if result.paper == paper.id).items():
            words = ", ".join(f"{count} {word}" for word, count in tally(mine).items())
            say(f"{plural(role, len(mine))} ({ROLES[role]}): {words}", 1)
            for result in mine if role != "check" or checks else ():
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
    if waiting:
        click.echo()
        say(f"Not measured here yet: laureate run {' '.join(waiting)}", dim=False)


def _line(result, width: int) -> None:
    click.echo(verdict_line(result, width))
    say(context_line(result), 4)
