"""The rows that the store gives of runs and cells, as dictionaries whose entries have types."""

from typing import Any, Literal, TypedDict

__all__ = ["CellRow", "MeasuredCell", "RunRow"]


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
