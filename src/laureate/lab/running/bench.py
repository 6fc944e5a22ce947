"""Speed, measured and kept: comparisons with peers, each method in a process of its own, and a gate against slow-downs.

The lab knows no method by name: a paper's ``speed.py`` does, and is loaded in a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from laureate.lab.errors import UserError
from laureate.lab.running.executors import OF_WORKERS
from laureate.lab.storing.rows import BenchmarkRow, StoredBenchmark

__all__ = ["bench_rows", "last_row", "latest_rows", "slow_down"]

MEASURE = "from laureate.lab.running.timing import main; main()"
# An interval tells how sure one process is of its own mean; another process, another day, differs by more than that.
BETWEEN_PROCESSES = 0.10


def bench_rows(methods: Iterable[tuple[str, str]]) -> Iterator[BenchmarkRow]:
    """The comparisons of each method as they are measured, on one thread, as the lab's workers run.

    methods: an id, and where its comparisons are, as ``"module:name"``.
    """
    environment = os.environ | {name: os.environ.get(name, value) for name, value in OF_WORKERS.items()}
    for method, comparisons in methods:
        command = [sys.executable, "-c", MEASURE, method, comparisons]
        # Row by row: what was measured before a comparison failed, or before patience ended, is kept. Complaints
        # go to a file, for two pipes that are read one after the other can block each other.
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as complaint,
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=complaint, text=True) as process,
        ):
            yield from (json.loads(line) for line in process.stdout or () if line.startswith("{"))
            if process.wait():
                complaint.seek(0)
                failure = (complaint.read().strip().splitlines() or ["it said nothing"])[-1]
                raise UserError(
                    f"The benchmark of {method} failed: {failure}", "Is the peer's version one that it knows?"
                )


def last_row(rows: Iterable[StoredBenchmark], row: BenchmarkRow, machine: str) -> StoredBenchmark | None:
    """The newest of the stored rows (oldest first) for the same work, peer and machine."""
    same = ("id", "work", "peer")
    found = None
    for old in rows:
        if old["environment"].get("machine") == machine and all(old.get(name) == row.get(name) for name in same):
            found = old
    return found


def latest_rows(rows: Iterable[StoredBenchmark]) -> list[StoredBenchmark]:
    """The newest of the stored rows (oldest first) for each work and peer."""
    return list({(row.get("id"), row.get("work"), row.get("peer")): row for row in rows}.values())


def slow_down(new: BenchmarkRow, old: BenchmarkRow | None) -> str:
    """What became slower beyond noise, in words; empty where nothing did, or where there is nothing to compare with.

    Against the same version of the same peer the ratio is compared, as a busy machine slows both sides down; else our
    own seconds. The intervals must lie apart, and by more than processes differ among themselves.
    """
    if old is None:
        return ""
    apart = 1 + BETWEEN_PROCESSES
    now, before = _Ratio.of(new), _Ratio.of(old)
    if now and before and new.get("peer_version") == old.get("peer_version"):
        if now.high * apart < before.low:
            faster = f"{now.ratio:.3g} times as fast as {new['peer']} {now.interval}"
            return f"{faster}, before {before.ratio:.3g} {before.interval}"
    elif new["ours_low"] > old["ours_high"] * apart:
        return (
            f"{new['ours_s']:.3g} s [{new['ours_low']:.3g}, {new['ours_high']:.3g}],"
            f" before {old['ours_s']:.3g} s [{old['ours_low']:.3g}, {old['ours_high']:.3g}]"
        )
    return ""


class _Ratio(NamedTuple):
    """How many times as fast as the peer, with its interval."""

    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, row: BenchmarkRow) -> "_Ratio | None":
        """None where the peer was not there."""
        ratio, low, high = row.get("ratio"), row.get("low"), row.get("high")
        return None if ratio is None or low is None or high is None else cls(ratio, low, high)

    @property
    def interval(self) -> str:
        return f"[{self.low:.3g}, {self.high:.3g}]"
