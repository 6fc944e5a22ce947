"""Workers that live as long as what uses them, and can be stopped one at a time: for cells that may never end.

``ProcessPool`` is for runs, whose trials are ours and end; a race lets a user's problem into the loop.
"""

import multiprocessing
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from laureate.lab.cell import Cell, Outcome
from laureate.lab.running.executors import interrupts_held, next_cell, start_worker
from laureate.lab.running.worker import compute

__all__ = ["ENDLESS", "Stoppable"]

# How the error of a cell begins that was stopped because it took too long.
ENDLESS = "Stopped after"
READY = "ready"  # what a worker says first
START_SECONDS = 120.0  # until then; a machine may be busy, and what is loaded is large


class Stoppable:
    """Fresh processes (``spawn``), a cell each at a time; what takes longer than ``limit`` seconds is stopped.

    A worker that dies or is stopped is replaced; nobody else's cell is touched.
    """

    def __init__(self, workers: int, compilation_cache: Path, limit: float):
        self.workers = workers
        self.limit = limit
        self._cache = str(compilation_cache)
        self._idle: list[tuple[Any, Connection]] = []
        self._busy: dict[Connection, tuple[Any, Cell, float]] = {}
        self._starting: set[Connection] = set()  # of the busy, those that have said nothing yet

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Outcome]]:
        """Each cell once, with what became of it."""
        waiting = list(cells)
        compiled: set[str] = set()
        while waiting or self._busy:
            while waiting and len(self._busy) < self.workers:
                running = [cell for _, cell, _ in self._busy.values()]
                cell = next_cell(waiting, running, compiled)
                if cell is None:
                    break
                process, connection, fresh = self._given(cell)
                if fresh:
                    self._starting.add(connection)
                # A cell's time begins when its worker does.
                self._busy[connection] = process, cell, time.monotonic() + START_SECONDS * fresh
            for connection in self._ready():
                if self._begins(connection):
                    continue
                process, cell, began = self._busy.pop(connection)
                self._starting.discard(connection)
                outcome = self._outcome(process, connection, began)
                compiled.add(cell.program)
                yield cell, outcome

    def _given(self, cell: Cell) -> tuple[Any, Connection, bool]:
        """An idle worker that has been sent the cell, or else a fresh one; one that died while idle is let go."""
        while self._idle:
            process, connection = self._idle.pop()
            try:
                connection.send(cell)
            except OSError:  # it died while nobody looked
                _stop(process, connection)
            else:
                return process, connection, False
        process, connection = self._start()
        connection.send(cell)
        return process, connection, True

    def _ready(self) -> list[Connection]:
        """Those that have something to say, or whose time is up."""
        first = min(began for _, _, began in self._busy.values())
        found: list[Any] = wait(list(self._busy), timeout=max(0.0, first + self.limit - time.monotonic()))
        late = [one for one, (_, _, began) in self._busy.items() if time.monotonic() - began >= self.limit]
        return found or late

    def _begins(self, connection: Connection) -> bool:
        """Whether all that a worker has to say is that it begins now."""
        if connection not in self._starting or not connection.poll():
            return False
        try:
            connection.recv()
        except (EOFError, OSError):
            return False
        self._starting.remove(connection)
        process, cell, _ = self._busy[connection]
        self._busy[connection] = process, cell, time.monotonic()
        return True

    def _outcome(self, process: Any, connection: Connection, began: float) -> Outcome:
        try:
            if connection.poll():
                outcome = connection.recv()
                self._idle.append((process, connection))
                return outcome
            error = f"{ENDLESS} {self.limit:.3g} s, which is more than it may take."
        except (EOFError, OSError):
            error = "The worker died while computing this cell (out of memory?)."
        _stop(process, connection)
        return Outcome(error=error, seconds=max(0.0, time.monotonic() - began))

    def _start(self) -> tuple[Any, Connection]:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._cache), daemon=True)
        with interrupts_held():
            process.start()
        theirs.close()
        return process, ours

    def close(self) -> None:
        """Stop at once what still runs."""
        for connection, (process, _, _) in self._busy.items():
            _stop(process, connection)
        for process, connection in self._idle:
            _stop(process, connection)
        self._busy.clear()
        self._starting.clear()
        self._idle.clear()


def _stop(process: Any, connection: Connection) -> None:
    process.kill()
    process.join()
    connection.close()


def _serve(connection: Connection, compilation_cache: str) -> None:
    """In the worker: cells in, outcomes out, until nobody sends any more."""
    start_worker(compilation_cache)
    connection.send(READY)
    while True:
        try:
            cell = connection.recv()
        except EOFError:
            return
        connection.send(compute(cell))
