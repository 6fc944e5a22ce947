"""``laureate bench``: speed beside peers, measured and kept."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from laureate.cli._common import emit, json_option, open_store

if TYPE_CHECKING:
    from laureate.lab.storing.rows import BenchmarkRow


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--gate", is_flag=True, help="Exit with 3 where something is slower than last time beyond noise.")
@json_option
def bench(ids: tuple[str, ...], gate: bool, as_json: bool) -> int:
    """Each method beside its peers that are installed: medians, the ratio with its interval, compile time and memory.

    Both sides run in one process and in turn, on one thread. Results are kept and stand on the method's page. A ratio
    above 1: ours is faster. With --gate a slower result is reported and not kept, so that the next is held to the
    same.
    """
    from laureate.lab.running.bench import bench_rows, last_row, slow_down
    from laureate.lab.running.environment import environment
    from laureate.lab.running.plan import unknown
    from laureate.papers import comparisons_of, paper_ids

    known = paper_ids()
    for wanted in ids:
        if wanted not in known:
            raise unknown(wanted, known)
    store, facts = open_store(), environment()
    before = store.benchmarks()
    rows, slower = [], []
    for row in bench_rows((one, comparisons_of(one)) for one in _announced(ids or known, as_json)):
        slower_by = slow_down(row, last_row(before, row, facts["machine"])) if gate else ""
        if slower_by:
            slower.append({"id": row["id"], "work": row["work"], "slower": slower_by})
        else:
            store.add_benchmark(row, facts)
        rows.append(row | ({"slower": slower_by} if slower_by else {}))
        if not as_json:
            _print(row, slower_by)
    if as_json:
        emit(rows)
    return 3 if slower else 0


def _announced(methods: Iterable[str], quiet: bool) -> Iterator[str]:
    """The methods, each announced when its turn comes: one may take a minute."""
    for method in methods:
        if not quiet:
            click.echo(click.style(f"{method} …", dim=True), err=True)
        yield method


def _print(row: "BenchmarkRow", slower: str) -> None:
    click.echo(click.style(row["id"], bold=True) + f"  {row['work']}")
    click.echo(f"  here {_side(row['ours_s'], row['ours_compile_s'], row['ours_mb'])}")
    if row["ratio"] is None:
        click.echo(f"  {row['peer']}: not installed; pip install {row['package']}")
    else:
        version = f" {row['peer_version']}" if row["peer_version"] else ""
        theirs = _side(row["peer_s"], row.get("peer_compile_s", 0.0), row.get("peer_mb"))
        click.echo(f"  {row['peer']}{version} {theirs}")
        times = f"{row['ratio']:.3g} times as fast [{row['low']:.3g}, {row['high']:.3g}]"
        click.echo(f"  {click.style(times, bold=True)}, {row['repeats']} repeats in turn")
    if row["note"]:
        click.echo(click.style(f"  {row['note']}", dim=True))
    if slower:
        click.echo(click.style(f"  slower than last time: {slower}", fg="red"), err=True)


def _side(seconds: float | None, compiling: float, memory: float | None) -> str:
    grew = "" if memory is None else f", {memory:.0f} MB"
    seconds = seconds or 0.0
    shown = f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
    return f"{shown} (first call {compiling:.2g} s more{grew})"
