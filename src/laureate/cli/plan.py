"""``laureate plan``: what a run would cost, on paper."""

from typing import TYPE_CHECKING

import click

from laureate.cli._common import columns, duration, emit, json_option, open_store, plural, say

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
    """What a run would still take: cells that are not in the store, minutes, memory, and on 1, 16 and 256 machines.

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
    left = [seconds for each in found for seconds in each.left]
    hours = {str(n): makespan(left, n * here) / 3600 for n in MACHINES}
    total = {"cells": len(cells), "kept": sum(each.kept for each in found), "core_hours": sum(cells) / 3600}
    memory = max((each.memory or 0 for each in found), default=0)
    total |= {"left_core_hours": sum(left) / 3600, "memory_gib": round(memory / 2**30, 3) or None}
    total |= {"cores_a_machine": here, "hours_on_machines": hours}
    if as_json:
        emit({"scale": scale, "experiments": [each.to_json() for each in found], "total": total})
        return
    _print(found, total, max(left, default=0.0))


def _print(found: "list[Estimate]", total: dict, longest: float) -> None:
    papers = dict.fromkeys(each.id.partition("/")[0] for each in found)
    lines = {name: [each for each in found if each.id.startswith(f"{name}/")] for name in papers}
    if len(papers) == 1:
        lines = {each.id: [each] for each in found}
    width = max(map(len, lines))
    bases = dict.fromkeys(_basis(each) for each in found)
    wide = columns() >= width + 75
    memory = f" {'memory each':>12}" if total["memory_gib"] else ""
    click.echo(f"{found[0].scale:<{width}}  {'cells':>6} {'left':>6} {'computing':>10}{memory}")
    for name, mine in lines.items():
        left = [seconds for each in mine for seconds in each.left]
        cells = sum(len(each.seconds) for each in mine)
        numbers = f"{cells:>6} {len(left):>6} {duration(sum(left)) if left else '–':>10}"
        if memory:
            peak = max(mine, key=lambda each: each.memory or 0)
            at_least = "≥" if any(each.basis == "extrapolated" or not each.memory for each in mine) else ""
            numbers += f" {f'{at_least}{peak.memory / 2**30:.2f} GiB' if peak.memory else '?':>12}"
        basis = "; ".join(dict.fromkeys(map(_basis, mine))) if len(bases) > 1 else ""
        click.echo(f"{name:<{width}}  {numbers}" + (click.style(f"   {basis}", dim=True) if wide and basis else ""))
        if not wide:
            say(basis, 4)
    click.echo()
    if len(bases) == 1:
        say(f"Seconds and memory {next(iter(bases))}." if memory else f"Seconds {next(iter(bases))}.")
    left_cells = total["cells"] - total["kept"]
    say(
        f"{plural('cell', total['cells'])}, {total['kept']} of them are in the store already;"
        f" left: {plural('cell', left_cells)},"
        f" {duration(3600 * total['left_core_hours'])} of computing on one core",
        dim=False,
    )
    if not left_cells:
        click.echo("  a run takes what is there and computes nothing")
        return
    for machines, hours in total["hours_on_machines"].items():
        what = "machine like this" if machines == "1" else "machines"
        click.echo(f"  on {machines:>3} {what} ({total['cores_a_machine']} cores each): {duration(3600 * hours)}")
    say(f"the longest cell alone: {duration(longest)}; no number of machines is faster than that", 2, dim=False)


def _basis(each: "Estimate") -> str:
    return BASES[each.basis].format(each.basis_scale)
