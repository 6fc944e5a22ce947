"""Who computes the cells. Two functions are all that the lab asks of an executor, so a cluster fits behind them."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Protocol

from laureate.lab.cell import Cell, Outcome
from laureate.lab.running.worker import compute, prepare

__all__ = [
    "OF_WORKERS",
    "SINGLE_THREAD",
    "Executor",
    "InProcess",
    "ProcessPool",
    "cores",
    "interrupts_held",
    "make_executor",
    "next_cell",
    "start_worker",
]

# One thread a worker: cells are what runs in parallel, and the numbers do not depend on how many workers there are.
SINGLE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "PJRT_NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
# XLA tells of every program that it takes from the cache, in lines of three thousand letters, which processors it could
# also have been compiled for (jaxlib 0.10.1). What goes wrong is raised.
OF_WORKERS = SINGLE_THREAD | {"TF_CPP_MIN_LOG_LEVEL": "3"}


class Executor(Protocol):
    """Computes cells, in any order, and gives the outcomes as they come.

    workers: how many at a time.
    """

    workers: int

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Outcome]]:
        """Each cell once, with what became of it."""
        ...

    def close(self) -> None:
        """Stop at once what still runs."""
        ...


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_executor(workers: int | None, compilation_cache: Path, on: str = "") -> Executor:
    """In this process for one worker, else a pool of processes; on a Ray cluster if one is named.

    workers: by default one per core. on: as in ``RayCluster``; empty: this machine.
    """
    for name, value in OF_WORKERS.items():
        os.environ.setdefault(name, value)
    compilation_cache.mkdir(parents=True, exist_ok=True)
    if on:
        from laureate.lab.running.ray_executor import RayCluster

        return RayCluster(on, workers, compilation_cache)
    workers = workers or cores()
    return InProcess(compilation_cache) if workers == 1 else ProcessPool(workers, compilation_cache)


class InProcess:
    """One cell after another in this process: the simplest, and the one to debug with."""

    workers = 1

    def __init__(self, compilation_cache: Path):
        self._cache = compilation_cache

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Outcome]]:
        """Each cell once, with what became of it."""
        prepare(str(self._cache))
        for cell in cells:
            yield cell, compute(cell)

    def close(self) -> None:
        """Nothing outlives the loop."""


class ProcessPool:
    """Fresh processes (``spawn``: jax does not survive a fork), one cell each at a time.

    A worker that dies takes the pool with it; the cells under way are then tried once more, each in a pool of its own,
    so that the one that kills its worker is found and the others are not blamed.
    """

    def __init__(self, workers: int, compilation_cache: Path):
        self.workers = workers
        self._cache = compilation_cache
        self._pool: ProcessPoolExecutor | None = None

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Outcome]]:
        """Each cell once, with what became of it."""
        left = list(cells)
        suspects: list[Cell] = []
        while left:
            done: set[tuple[str, int]] = set()
            for cell, outcome in self._batch(left, self.workers):
                if outcome is None:
                    suspects.append(cell)
                else:
                    yield cell, outcome
                done.add(cell.key)
            left = [cell for cell in left if cell.key not in done]
        for cell in suspects:
            for _, outcome in self._batch([cell], 1):
                yield cell, outcome or Outcome(error="The worker died while computing this cell (out of memory?).")

    def _batch(self, cells: list[Cell], workers: int) -> Iterator[tuple[Cell, Outcome | None]]:
        """Outcomes until all are done or the pool breaks; None for a cell that was under way when it broke."""
        self.close()
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, context, initializer=start_worker, initargs=(str(self._cache),))
        waiting = list(cells)
        running: dict[Future[Outcome], Cell] = {}
        compiled: set[str] = set()
        broken = False
        while not broken:
            # No more is handed over than runs, so that a broken pool casts suspicion on few.
            try:
                while len(running) < workers and (cell := next_cell(waiting, running.values(), compiled)) is not None:
                    with interrupts_held():
                        running[self._pool.submit(compute, cell)] = cell
            except BrokenProcessPool:
                break
            if not running:
                break
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                cell = running.pop(future)
                compiled.add(cell.program)
                try:
                    yield cell, future.result()
                except BrokenProcessPool:
                    broken = True
                    yield cell, None
        for cell in running.values():
            yield cell, None

    def close(self) -> None:
        """Stop at once what still runs."""
        if self._pool is None:
            return
        for process in list((self._pool._processes or {}).values()):
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None


def next_cell(waiting: list[Cell], running: Iterable[Cell], compiled: set[str]) -> Cell | None:
    """Take a cell whose program no other worker is compiling just now: once that is done, the cache has it."""
    compiling = {cell.program for cell in running} - compiled
    for i, cell in enumerate(waiting):
        if cell.program not in compiling:
            return waiting.pop(i)
    return None


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C waits while a worker is started, and the worker inherits that: half started, it would tell a traceback."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_worker(compilation_cache: str) -> None:
    """What a fresh process does before it computes."""
    # Ctrl-C reaches the whole group of processes; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    prepare(compilation_cache)


def _leave_with_parent() -> None:
    """A killed parent must not leave workers behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(OSError):
            multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
