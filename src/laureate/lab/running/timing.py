"""How we time: compile first, block, repeat, interleave, medians, ratios in one process, compile time apart."""

import contextlib
import ctypes
import gc
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.lab.running.memory import forget_peak, peak
from laureate.lab.running.references import load
from laureate.lab.storing.rows import BenchmarkRow

__all__ = ["compare", "interval", "main", "measure", "seconds_of", "seconds_of_once"]

REPEATS = 15
ENOUGH_SECONDS = 40.0
FEWEST = 5
DRAWS = 4000


def seconds_of_once(work: Callable[[], Any]) -> float:
    """One repeat, waited for."""
    import jax

    started = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - started


def seconds_of(work: Callable[[], Any], repeats: int = 7) -> np.ndarray:
    """Seconds of each repeat, after one that is not counted; the result is waited for."""
    seconds_of_once(work)
    return np.array([seconds_of_once(work) for _ in range(repeats)])


def compare(ours: Callable[[], Any], peer: Callable[[], Any], repeats: int = REPEATS) -> dict[str, float]:
    """Both, interleaved: medians, and how many times faster ours is with the 95 % interval of the paired ratio."""
    for warm in (ours, peer):
        seconds_of_once(warm)
    return _summary(_interleaved([ours, peer], repeats), 1.0, 1.0)


def measure(method: str, comparison: Comparison) -> BenchmarkRow:
    """One row of ``laureate bench``; without numbers of the peer where it is not installed."""
    version = _version(comparison.package)
    row: dict[str, Any] = {"id": method, "work": comparison.work, "ours_s": None, "peer": comparison.peer}
    row |= dict.fromkeys(("peer_s", "ratio", "low", "high"))
    sides = [comparison.ours()] if version is None else [comparison.ours(), comparison.theirs()]
    first = [_first_calls(side) for side in sides]
    seconds = _interleaved([side.run for side in sides], REPEATS)
    for i, who in enumerate(("ours", "peer")[: len(sides)]):
        row[f"{who}_compile_s"] = max(0.0, first[i][0] - float(np.median(seconds[:, i])))
        row[f"{who}_mb"] = first[i][1]
    row |= _summary(seconds, *(side.times for side in sides))
    row |= {"repeats": len(seconds), "package": comparison.package, "peer_version": version}
    return cast(BenchmarkRow, row | {"note": " ".join(side.note for side in sides if side.note)})


def _version(package: str) -> str | None:
    """Of an installed package; empty for a peer of our own, None for one that is not there."""
    try:
        return importlib.metadata.version(package) if package else ""
    except importlib.metadata.PackageNotFoundError:
        return None


def _first_calls(side: Side) -> tuple[float, float | None]:
    """Seconds of the first call, compiling included; megabytes that the second takes beyond what it leaves behind."""
    seconds = seconds_of_once(side.run)
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)  # what the compiler freed goes back to the system, and is not taken again
    forget_peak()
    before = peak()
    seconds_of_once(side.run)
    after = peak()
    return seconds, None if before is None or after is None else (after - before) / 1e6


def _interleaved(works: list[Callable[[], Any]], repeats: int) -> np.ndarray:
    """Seconds [repeat, side]; fewer repeats of what takes long. Who begins changes from repeat to repeat."""
    rows: list[list[float]] = []
    began = time.perf_counter()
    while len(rows) < repeats and (len(rows) < FEWEST or time.perf_counter() - began < ENOUGH_SECONDS):
        order = range(len(works)) if len(rows) % 2 else reversed(range(len(works)))
        taken = {i: seconds_of_once(works[i]) for i in order}
        rows.append([taken[i] for i in range(len(works))])
    return np.array(rows)


def _summary(seconds: np.ndarray, ours_times: float, peer_times: float = 1.0) -> dict[str, float]:
    """Medians; the 95 % interval of our time; the paired ratio with its own, where there is a peer."""
    low, high = interval(np.log(ours_times * seconds[:, 0]))
    timings = {"ours_s": float(ours_times * np.median(seconds[:, 0])), "ours_low": low, "ours_high": high}
    if seconds.shape[1] > 1:
        logs = np.log(peer_times * seconds[:, 1]) - np.log(ours_times * seconds[:, 0])
        low, high = interval(logs)
        timings |= {"peer_s": float(peer_times * np.median(seconds[:, 1])), "ratio": float(np.exp(logs.mean()))}
        timings |= {"low": low, "high": high}
    return timings


def interval(logs: np.ndarray) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean of logarithms, as a factor."""
    means = np.random.default_rng(0).choice(logs, (DRAWS, len(logs))).mean(1)
    low, high = np.exp(np.quantile(means, (0.025, 0.975)))
    return float(low), float(high)


def main() -> None:
    """In a process of its own, started by ``laureate bench``: a line of JSON for each comparison of a method.

    Its words are the method's id and where its comparisons are, as ``"module:name"``.
    """
    method, comparisons = sys.argv[1:]
    for comparison in load(comparisons):
        print(json.dumps(measure(method, comparison)), flush=True)
