"""How far a run is: bars on a terminal, one line per cell in a pipe."""

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from laureate.cli._common import duration, plural

if TYPE_CHECKING:
    from laureate.lab.cell import Cell, Outcome
    from laureate.lab.running.run import Progress


def make_progress() -> "Progress":
    """The fitting one for where standard error goes."""
    return TerminalProgress() if sys.stderr.isatty() else LineProgress()


class LineProgress:
    """One line a cell, for pipes and logs."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._left = TimeLeft([], 1)

    def start(self, to_compute: "list[Cell]", cached: int, workers: int) -> None:
        """Say what is planned."""
        self._total, self._done = len(to_compute), 0
        self._left = TimeLeft(to_compute, workers)
        if self._total:
            click.echo(f"{plural('cell', self._total)} to compute, {cached} kept, {workers} at a time", err=True)

    def finished(self, cell: "Cell", outcome: "Outcome") -> None:
        """Say what became of a cell."""
        self._done += 1
        seconds = outcome.seconds + outcome.compile_seconds
        self._left.done(cell, seconds)
        word = "failed" if outcome.error else "done"
        parts = (f"[{self._done}/{self._total}] {word} {cell.name}", duration(seconds), self._left.words())
        click.echo(" · ".join(filter(None, parts)), err=True)

    def waiting(self, cells: "list[Cell]") -> None:
        """Say why nothing moves."""
        one = len(cells) == 1
        click.echo(
            f"{plural('cell', len(cells))} {'is' if one else 'are'} under way in another run; waiting for"
            f" {'it' if one else 'them'}",
            err=True,
        )

    def stop(self) -> None:
        """Lines need no end."""


class TimeLeft:
    """How long the cells that are left will take, as soon as one is done: each as its experiment's, else as all."""

    def __init__(self, cells: "list[Cell]", workers: int):
        self._left = Counter(_experiment(cell) for cell in cells)
        self._workers = workers
        self._seconds: dict[str, list[float]] = {}

    def done(self, cell: "Cell", seconds: float) -> None:
        """One more."""
        self._left[_experiment(cell)] -= 1
        self._seconds.setdefault(_experiment(cell), []).append(seconds)

    def seconds(self) -> float | None:
        """None where nothing is known yet."""
        known = [took for mine in self._seconds.values() for took in mine]
        if not known:
            return None
        mean = {name: sum(mine) / len(mine) for name, mine in self._seconds.items()}
        overall = sum(known) / len(known)
        return sum(count * mean.get(name, overall) for name, count in self._left.items()) / self._workers

    def words(self) -> str:
        """For a person; empty where nothing is known yet, or nothing is left."""
        seconds = self.seconds()
        return f"about {duration(seconds)} left" if seconds else ""


def _experiment(cell: "Cell") -> str:
    return f"{cell.paper}/{cell.experiment}"


class TerminalProgress:
    """One line with what was computed last, a bar, cells done, and the time left; failures stay on the screen."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._left: TimeLeft | None = None

    def start(self, to_compute: "list[Cell]", cached: int, workers: int) -> None:
        """Show the bar, unless there is nothing to do."""
        if not to_compute:
            return
        from rich.console import Console

        console = Console(stderr=True)
        self._left = TimeLeft(to_compute, workers)
        self._bar = make_bar(console)
        names = dict.fromkeys(_experiment(cell) for cell in to_compute)
        kept = f", {cached} kept" if cached else ""
        at_once = f", {workers} at a time" if console.width >= 80 else ""
        console.print(f"{plural('cell', len(to_compute))} to compute{kept}{at_once}", highlight=False)
        self._task = self._bar.add_task(next(iter(names)), total=len(to_compute), left="")
        self._bar.start()

    def finished(self, cell: "Cell", outcome: "Outcome") -> None:
        """Move the bar on."""
        if self._left is None:
            return
        self._left.done(cell, outcome.seconds + outcome.compile_seconds)
        self._bar.update(self._task, advance=1, left=self._left.words(), description=_experiment(cell))
        if outcome.error:
            message = f"failed {cell.name}: {outcome.error.splitlines()[0]}"
            self._bar.console.print(message, style="red", markup=False, highlight=False)

    def waiting(self, cells: "list[Cell]") -> None:
        """Say why nothing moves."""
        self._bar.update(self._task, description="waiting for another run")

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def make_bar(console: Any) -> Any:
    """The line for a terminal of that width: a narrow one has a shorter bar and no clock. Long names are cut."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    wide = console.width >= 100
    name = Column(ratio=1, no_wrap=True, overflow="ellipsis", min_width=8)
    columns: list[Any] = [TextColumn("{task.description}", table_column=name)]
    if console.width >= 50:
        columns.append(BarColumn(bar_width=24 if wide else 10))
    columns.append(MofNCompleteColumn(table_column=Column(no_wrap=True)))
    if wide:
        columns.append(TimeElapsedColumn(table_column=Column(no_wrap=True)))
    columns.append(TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)))
    return Progress(*columns, console=console, transient=True, expand=True)
