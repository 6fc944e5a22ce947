"""The rows that the store gives of runs, cells and benchmarks, as dictionaries whose entries have types."""

from typing import Any, Literal, NotRequired, TypedDict

__all__ = ["BenchmarkRow", "CellRow", "MeasuredCell", "RunRow", "StoredBenchmark"]


class RunRow(TypedDict):
    """One run.

    started, finished: UTC, in ISO 8601; ``finished`` is None until the run ends, or where it was killed.
    environment: machine, system and versions, as ``laureate.lab.running.environment`` found them.
    name, note: what the user called it; empty where they did not.
    """

    id: int
    started: str
    finished: str | None
    status: Literal["running", "finished", "failed", "interrupted"]
    command: str
    scale: str
    seeds: int
    problem: str
    environment: dict[str, Any]
    name: str
    note: str


class CellRow(TypedDict):
    """One cell that a run used.

    run: the run that computed it. cached: whether another run did, and this one took it as it was (0 or 1).
    seconds, compile_seconds: of running and of compiling. memory: peak bytes of its worker; None in older stores.
    error: the traceback where it failed, else empty.
    """

    id: int
    fingerprint: str
    start: int
    count: int
    paper: str
    experiment: str
    arm: str
    problem: str
    scale: str
    status: Literal["done", "failed"]
    seconds: float
    compile_seconds: float
    error: str
    finished: str
    run: int
    memory: int | None
    cached: int


class MeasuredCell(TypedDict):
    """What the newest computation of one block of seeds took: ``seconds`` with compiling, ``count`` seeds."""

    paper: str
    experiment: str
    arm: str
    scale: str
    count: int
    seconds: float
    memory: int | None


class BenchmarkRow(TypedDict):
    """One comparison with a peer, as ``laureate bench`` measures and prints it.

    id: of the paper. work: what was timed, in words. ours_s, peer_s: medians, in seconds. ours_low, ours_high: the 95 %
    interval of our seconds. ratio, low, high: how many times faster ours is, with its interval. What is of the peer is
    None, or is missing, where it is not installed. compile_s: of the first call, beyond the median; mb: megabytes.
    package, peer_version: as installed; empty for a peer of our own.
    """

    id: str
    work: str
    ours_s: float
    ours_low: float
    ours_high: float
    ours_compile_s: float
    ours_mb: float | None
    peer: str
    peer_s: float | None
    peer_compile_s: NotRequired[float]
    peer_mb: NotRequired[float | None]
    ratio: float | None
    low: float | None
    high: float | None
    repeats: int
    package: str
    peer_version: str | None
    note: str


class StoredBenchmark(BenchmarkRow):
    """The same with when it was measured (UTC, ISO 8601), and the environment, as of a run."""

    measured: str
    environment: dict[str, Any]
