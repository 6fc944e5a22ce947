"""A run started from the page: the same ``laureate run`` in a process of its own, watched and stopped from here.

Stopping is Ctrl-C to that process: it finishes its transaction, keeps every finished cell and says so; whoever starts
again goes on from there.
"""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["BusyError", "Jobs"]

LINES = 400
# Ctrl-C twice, then the hard way: a worker may be deep in a compilation.
PATIENCE = (10.0, 5.0)


class BusyError(Exception):
    """Another run from the page is under way; it has all cores."""


@dataclass
class _Job:
    words: list[str]
    process: subprocess.Popen[str]
    newest_before: int
    started: float
    lines: deque[str]
    total: int | None = None
    done: int = 0
    experiment: str = ""
    left: str = ""
    run: int | None = None
    ended: float | None = None
    stopping: bool = False


class Jobs:
    """At most one run at a time. ``command``: what is called with the words of ``laureate``."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", "laureate")):
        self._command = list(command)
        self._lock = threading.Lock()
        self._job: _Job | None = None

    def start(self, claim_id: str, scale: str, newest_run: int) -> None:
        """Begin to measure a paper or a claim; ``newest_run`` tells later which run is this one."""
        words = ["run", claim_id, "--scale", scale]
        with self._lock:
            if self._job is not None and self._job.process.poll() is None:
                raise BusyError(shlex.join(["laureate", *self._job.words]))
            process = subprocess.Popen(
                [*self._command, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C at the server's terminal is passed on by us, once
            )
            self._job = _Job(words, process, newest_run, time.monotonic(), deque(maxlen=LINES))
            threading.Thread(target=self._listen, args=(self._job,), daemon=True).start()

    def _listen(self, job: _Job) -> None:
        """Keep the lines, and read from them how far it is."""
        with job.process.stdout or contextlib.nullcontext(()) as lines:
            for line in lines:
                text = line.rstrip("\n")
                job.lines.append(text)
                if found := re.match(r"(\d+) cells? to compute", text):
                    job.total = int(found[1])
                elif found := re.match(r"\[(\d+)/(\d+)\]", text):
                    job.done, job.total = int(found[1]), int(found[2])
                    cell = re.search(r"(?:done|failed) (\S+) ·", text)
                    job.experiment = cell[1] if cell else job.experiment
                    left = re.search(r"(about \S+ \w+ left)$", text)
                    job.left = left[1] if left else ""
                elif found := re.match(r"  run (\d+): scale ", text):
                    job.run = int(found[1])
        job.process.wait()
        job.ended = time.monotonic()

    def stop(self) -> bool:
        """Ask the run to stop; whether there was one."""
        with self._lock:
            job = self._job
            if job is None or job.process.poll() is not None:
                return False
            if not job.stopping:
                job.stopping = True
                threading.Thread(target=_interrupt, args=(job.process,), daemon=True).start()
            return True

    def close(self) -> None:
        """The server ends: stop the run and wait for it."""
        job = self._job
        if job is not None and job.process.poll() is None:
            job.stopping = True
            _interrupt(job.process)

    @property
    def running(self) -> str:
        """The command under way; empty where there is none."""
        job = self._job
        return shlex.join(["laureate", *job.words]) if job is not None and job.process.poll() is None else ""

    def state(self) -> dict[str, Any] | None:
        """What the page shows of the last run from here."""
        job = self._job
        if job is None:
            return None
        code = job.process.poll()
        if code is None:
            word = "stopping" if job.stopping else "running"
        elif job.stopping and code != 0:
            word = "stopped"
        else:
            word = "finished" if code == 0 else "failed"
        return {
            "command": shlex.join(["laureate", *job.words]),
            "state": word,
            "active": code is None,
            "seconds": (job.ended or time.monotonic()) - job.started,
            "lines": list(job.lines),
            "total": job.total,
            "done": job.done,
            "newest_before": job.newest_before,
            "experiment": job.experiment,
            "left": job.left,
            "reported_run": job.run,
        }


def _interrupt(process: subprocess.Popen[str]) -> None:
    for patience in PATIENCE:
        if process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
