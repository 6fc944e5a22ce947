"""One loop for everything that takes steps: compiled in chunks, resumable, with progress and a checkpoint."""

from laureate.loops.checkpoint import Checkpoint
from laureate.loops.driver import Outcome, Progress, chunks, firm, run, scan
from laureate.loops.repeat import repeat
from laureate.loops.settings import describe

__all__ = ["Checkpoint", "Outcome", "Progress", "chunks", "describe", "firm", "repeat", "run", "scan"]
