"""One loop for everything that takes steps: compiled in chunks, resumable, with progress and a checkpoint.

What an environment is that agents step in, and drawings that move, to look at one.
"""

from laureate.loops.checkpoint import Checkpoint
from laureate.loops.driver import Outcome, Progress, chunks, firm, run, scan
from laureate.loops.environments import Box, Discrete, Environment, Timestep, step_or_reset
from laureate.loops.gif import gif_of, save_gif
from laureate.loops.repeat import repeat
from laureate.loops.scenes import Scene, Stroke, frames_of, plain_scene
from laureate.loops.settings import describe

__all__ = [
    "Box",
    "Checkpoint",
    "Discrete",
    "Environment",
    "Outcome",
    "Progress",
    "Scene",
    "Stroke",
    "Timestep",
    "chunks",
    "describe",
    "firm",
    "frames_of",
    "gif_of",
    "plain_scene",
    "repeat",
    "run",
    "save_gif",
    "scan",
    "step_or_reset",
]
