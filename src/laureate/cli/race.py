"""``laureate race``: which of an area's methods is best on a problem of one's own?"""

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from laureate.cli._common import emit, json_option, open_store, plural
from laureate.cli.run import _workers

if TYPE_CHECKING:
    from laureate.racing.discipline import Discipline


@click.command()
@click.argument("problem", required=False, metavar="FILE.py:NAME")
@click.option(
    "--list", "listing", is_flag=True, help="Which kinds of problems there are, who runs in each; of --kind alone."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="About how long all entrants together may compute, compile time apart.",
)
@click.option("--budget", type=click.IntRange(1), help="The cost of a run instead, in the discipline's unit.")
@click.option("--metric", default="", help="What quality is; by default the discipline's first.")
@click.option("--only", default="", metavar="NAME,NAME", help="Some of the entrants.")
@click.option("--kind", default="", help="The discipline, where a problem could be of several.")
@click.option("--seeds", type=click.IntRange(2, 100_000), help="Seeds that score; by default enough to tell all apart.")
@click.option("--workers", default="auto", callback=_workers, metavar="N|auto", help="Processes; auto: one per core.")
@click.option(
    "--on", default="", metavar="ray | ray://HOST:PORT | HOST:PORT", help="On a Ray cluster; ray: one that starts here."
)
@click.option("--fresh", is_flag=True, help="Compute again what the store already has.")
@click.option("--quiet", is_flag=True, help="No progress.")
@json_option
def race(
    problem: str | None,
    listing: bool,
    seconds: float,
    budget: int | None,
    metric: str,
    only: str,
    kind: str,
    seeds: int | None,
    workers: int | None,
    on: str,
    fresh: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Race an area's methods and baselines on your own problem: a table, what to use, and the code to paste.

    The kind of problem follows from what the object offers. All entrants are tuned at the same cost on seeds that do
    not count, and scored on the same seeds. Finished work is kept: repeating a command resumes it.

    \b
    laureate race mine.py:energy
    laureate race mine.py:energy --seconds 20 --metric ess --only gibbs,gibbs-with-gradients
    laureate race --list
    """
    from laureate.lab.errors import UserError

    if listing:
        _list(as_json, kind)
        return 0
    if not problem:
        raise UserError("Say what to race on: FILE.py:NAME.", "`laureate race --list` says what it must offer.")
    from laureate.cli._progress import make_progress
    from laureate.lab.storing.files import written_whole
    from laureate.lab.storing.home import reports
    from laureate.pages.race import page
    from laureate.racing.api import race as run_race

    found = run_race(
        problem,
        seconds=seconds,
        budget=budget or 0,
        kind=kind,
        metric=metric,
        only=only,
        seeds=seeds,
        workers=workers,
        on=on,
        fresh=fresh,
        store=open_store(),
        command=shlex.join(["laureate", *sys.argv[1:]]),
        progress=None if quiet else make_progress(),
    )
    path = reports() / f"race-{found.run}.html"
    with written_whole(path) as file:
        file.write(page(found))
    if as_json:
        emit(found.to_json())
    else:
        click.echo(str(found))
        counts = f"{plural('cell', found.cells['computed'])} computed, {found.cells['kept']} kept"
        click.echo(f"  run {found.run} · {counts} · {found.machine}\n  the page: {path}")
    return 0 if found.best else 1


def _list(as_json: bool, kind: str) -> None:
    from laureate.racing.disciplines import WITHOUT_RACE, disciplines
    from laureate.racing.kinds import spoken

    known = disciplines()
    if kind and kind not in [one.name for one in known]:
        from laureate.lab.running.plan import unknown

        raise unknown(kind, [one.name for one in known])
    shown = [one for one in known if kind in ("", one.name)]
    if as_json:
        emit([_record(one) for one in shown])
        return
    if not kind:
        click.echo(
            f"{len(known)} kinds of problems. A problem is an object or a dictionary that offers what stands here, or\n"
            "a function without arguments that makes one: laureate race FILE.py:NAME. Its kind follows from these.\n"
        )
    for one in shown:
        click.echo(click.style(f"{one.name}: {one.kind}", bold=True))
        click.echo(f"  {one.title}")
        width = max(len(spoken(name)) for name in (*one.needs, *one.offers))
        for word, names in (("must offer", one.needs), ("may offer ", one.offers)):
            for name, meaning in names.items():
                click.echo(f"  {word}  {spoken(name):<{width}}  {meaning}")
        for i, metric in enumerate(one.metrics):
            arrow = "↓" if metric.better == "lower" else "↑"
            click.echo(f"  {'' if i else 'judged by':<10}  {metric.name} {arrow}  {metric.words}")
        click.echo(f"  cost        {one.unit}")
        click.echo(f"  entrants    {', '.join(entrant.name for entrant in one.entrants)}\n")
    if not kind:
        click.echo(click.style("Areas without a race", bold=True))
        for area, why in WITHOUT_RACE.items():
            click.echo(f"  {area}: {why}")


def _record(one: "Discipline") -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "kind": one.kind,
        "needs": dict(one.needs),
        "offers": dict(one.offers),
        "metrics": [vars(metric) for metric in one.metrics],
        "unit": one.unit,
        "entrants": [
            {
                "name": entrant.name,
                "code": entrant.code,
                "grid": {name: list(values) for name, values in entrant.grid.items()},
            }
            for entrant in one.entrants
        ],
        "absent": dict(one.absent),
    }
