"""One loop for everything that takes steps: compiled in chunks, resumable, with progress and a checkpoint.

And what an environment is that agents step in.
"""

from laureate.loops.checkpoint import Checkpoint
from laureate.loops.driver import Outcome, Progress, chunks, firm, run, scan
from laureate.loops.environments import Box, Discrete, Environment, Timestep, step_or_reset
from laureate.loops.repeat import repeat
from laureate.loops.settings import describe

__all__ = [
    "Box",
    "Checkpoint",
    "Discrete",
    "Environment",
    "Outcome",
    "Progress",
    "Timestep",
    "chunks",
    "describe",
    "firm",
    "repeat",
    "run",
    "scan",
    "step_or_reset",
]
