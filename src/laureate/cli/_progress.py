"""How far a run is: bars on a terminal, one line a cell in a pipe."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from laureate.cli._common import duration

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

    def start(self, to_compute: "list[Cell]", cached: int, workers: int) -> None:
        """Say what is planned."""
        self._total, self._done = len(to_compute), 0
        if self._total:
            click.echo(f"{self._total} cells to compute, {cached} kept, {workers} at a time", err=True)

    def finished(self, cell: "Cell", outcome: "Outcome") -> None:
        """Say what became of a cell."""
        self._done += 1
        took = duration(outcome.seconds + outcome.compile_seconds)
        word = "failed" if outcome.error else "done"
        click.echo(f"[{self._done}/{self._total}] {word} {cell.name} · {took}", err=True)

    def waiting(self, cells: "list[Cell]") -> None:
        """Say why nothing moves."""
        click.echo(f"{len(cells)} cells are under way in another run; waiting for them", err=True)

    def stop(self) -> None:
        """Lines need no end."""


class TerminalProgress:
    """A bar with cells done, running and left, and the time left; failures stay on the screen."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._started = time.monotonic()
        self._workers = 1

    def start(self, to_compute: "list[Cell]", cached: int, workers: int) -> None:
        """Show the bar, unless there is nothing to do."""
        if not to_compute:
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._workers = workers
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[running]} running · {task.fields[left]} left"),
            TimeElapsedColumn(),
            TextColumn("· left about"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        total = len(to_compute)
        running = min(workers, total)
        kept = f", {cached} kept" if cached else ""
        self._task = self._bar.add_task(f"cells{kept}", total=total, running=running, left=total - running)
        self._bar.start()

    def finished(self, cell: "Cell", outcome: "Outcome") -> None:
        """Move the bar on."""
        task = self._bar.tasks[0]
        todo = task.total - task.completed - 1
        running = min(self._workers, todo)
        self._bar.update(self._task, advance=1, running=running, left=todo - running, description=cell.name)
        if outcome.error:
            self._bar.console.print(f"[red]failed[/red] {cell.name}: {outcome.error.splitlines()[0]}")

    def waiting(self, cells: "list[Cell]") -> None:
        """Say why nothing moves."""
        self._bar.update(self._task, description="waiting for another run")

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
