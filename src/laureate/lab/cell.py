"""A unit of work and what became of it: what planning, workers and the store hand to each other, in plain values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from laureate.lab.claim import Compilation

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DEFAULT_PROBLEM", "Cell", "Outcome"]

# The paper's own problem, in the plan and in the store; a user's own is ``FILE.py:NAME``.
DEFAULT_PROBLEM = "default"


@dataclass(frozen=True)
class Cell:
    """A unit of work: all that a worker on another machine needs, in plain values."""

    paper: str
    experiment: str
    arm: str
    problem: str
    scale: str
    start: int
    count: int
    trial: str
    problem_reference: str
    problem_settings: Mapping[str, Any]
    accepts: tuple[str, ...]
    arm_settings: Mapping[str, Any]
    scale_settings: Mapping[str, Any]
    over_seeds: str
    x64: bool
    compilation: Compilation
    fingerprint: str

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all others, in the plan and in the store."""
        return self.fingerprint, self.start

    @property
    def program(self) -> str:
        """What must be compiled for it: blocks of one arm, and arms that differ in floats alone, are one program."""
        static = [
            {name: None if isinstance(value, float) else value for name, value in settings.items()}
            for settings in (self.arm_settings, self.scale_settings)
        ]
        how = [self.trial, self.count, self.x64, self.compilation]
        shape = [how, self.problem_reference, dict(self.problem_settings), static]
        return json.dumps(shape, sort_keys=True)

    @property
    def name(self) -> str:
        """How a person refers to it."""
        return f"{self.paper}/{self.experiment} · {self.arm} · seeds {self.start}–{self.start + self.count - 1}"


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: arrays with a leading axis of seeds, or the error: one line, then the traceback.

    memory: the most that the worker held while it computed the cell, in bytes; None where the system does not tell.
    """

    metrics: "Mapping[str, np.ndarray]" = field(default_factory=dict)
    seconds: float = 0.0
    compile_seconds: float = 0.0
    error: str = ""
    memory: int | None = None
