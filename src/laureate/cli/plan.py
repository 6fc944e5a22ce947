"""``laureate plan``: what a run would cost, on paper."""

from typing import TYPE_CHECKING

import click

from laureate.cli._common import duration, emit, json_option, open_store

if TYPE_CHECKING:
    from laureate.lab.running.cost import Estimate

MACHINES = (1, 16, 256)
BASES = {
    "measured": "measured at {0}",
    "extrapolated": "measured at {0}, times the ratio of the declared costs",
    "declared": "as declared; never measured here",
}


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID | ID/CLAIM]...")
@click.option("--all", "everything", is_flag=True, help="All papers.")
@click.option(
    "--scale", type=click.Choice(["smoke", "desk", "full"]), default="desk", show_default=True, help="As for `run`."
)
@json_option
def plan(ids: tuple[str, ...], everything: bool, scale: str, as_json: bool) -> None:
    """Cells, core-hours and memory of a run before you start it, and how long on 1, 16 and 256 machines.

    From cells that this store has measured: at the same scale where it can be, else extrapolated by the ratio of the
    declared costs, else the declaration's own guess; each line says which.
    """
    from laureate.lab.errors import UserError
    from laureate.lab.running.cost import estimate, makespan
    from laureate.lab.running.executors import cores
    from laureate.lab.running.plan import select
    from laureate.papers import paper, paper_ids

    found = estimate(open_store(), select(ids, paper_ids(), paper, everything), scale)
    if not found:
        raise UserError(f"None of these has a scale {scale}.", "laureate show ID lists the scales of a paper.")
    here = cores()
    cells = [seconds for each in found for seconds in each.seconds]
    hours = {str(n): makespan(cells, n * here) / 3600 for n in MACHINES}
    total = {"cells": len(cells), "kept": sum(each.kept for each in found), "core_hours": sum(cells) / 3600}
    memory = max((each.memory or 0 for each in found), default=0)
    total |= {"memory_gib": round(memory / 2**30, 3) or None, "cores_a_machine": here, "hours_on_machines": hours}
    if as_json:
        emit({"scale": scale, "experiments": [each.to_json() for each in found], "total": total})
        return
    _print(found, total)


def _print(found: "list[Estimate]", total: dict) -> None:
    width = max(len(each.id) for each in found)
    click.echo(f"{'':<{width}}  {'cells':>6} {'core-hours':>11} {'a worker':>10}   {found[0].scale}, from")
    for each in found:
        record = each.to_json()
        at_least = "≥" if each.basis == "extrapolated" else " "
        gib = f"{at_least}{record['memory_gib']:.2f} GiB" if each.memory else "?"
        basis = BASES[each.basis].format(each.basis_scale)
        click.echo(
            f"{each.id:<{width}}  {record['cells']:>6} {_hours(each.core_hours):>11} {gib:>10}   "
            + click.style(basis, dim=True)
        )
    click.echo(
        f"\n{total['cells']} cells ({total['kept']} of them are in the store already),"
        f" {_hours(total['core_hours'])} core-hours"
    )
    for machines, hours in total["hours_on_machines"].items():
        what = "machine like this" if machines == "1" else "machines"
        click.echo(f"  on {machines:>3} {what} ({total['cores_a_machine']} cores each): {duration(3600 * hours)}")
    longest = max(max(each.seconds) for each in found)
    click.echo(f"  the longest cell alone: {duration(longest)}; no number of machines is faster than that")


def _hours(hours: float) -> str:
    return f"{hours:.0f}" if hours >= 100 else f"{hours:.3g}"
