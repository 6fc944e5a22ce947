"""A discipline of which everything is known: entrants with planted qualities, in NumPy, and some that misbehave."""

import os
import time
import zlib
from pathlib import Path

import jax
import numpy as np

from laureate.racing.discipline import Discipline, Entrant, Metric

HERE = Path(__file__)


class Course:
    """A problem that offers all that is asked, and may say more of itself."""

    length = 3

    def shape(self):
        return "round"


course = Course()


def facts(problem):
    """What all entrants share."""
    return {"length": problem.length} | getattr(problem, "more", {})


def trial(key, arm, problem, scale):
    """Noise that all entrants of a seed share, noise of their own, and a planted level that halves with the cost."""
    if arm.mood == "crash":
        raise RuntimeError("planted to crash")
    if arm.mood == "dies":
        os._exit(1)
    if arm.mood == "endless":
        time.sleep(600)
    words = np.asarray(jax.random.key_data(key)).astype(np.uint32)
    if arm.mood == "crash-late" and int(words[-1]) == 7:
        raise RuntimeError("planted to crash in a later seed")
    shared = np.random.default_rng(words).normal()
    own = np.random.default_rng([*words, zlib.crc32(arm.code.encode()) if arm.own else 0]).normal()
    budget, points = int(scale.cost), int(scale.points)
    if scale.get("pilot", 0.0):
        return {"cost": np.array([100.0]), "seconds": np.array([0.001 * arm.slow]), "loss": np.array([1.0])} | {
            "gain": np.array([1.0]),
            "compile_seconds": np.asarray(0.5),
        }
    costs = np.array([max(1, budget >> k) for k in reversed(range(points))], float)
    penalty = abs(np.log10(arm.get("rate", 1.0))) * 0.5
    loss = arm.level + penalty + 0.3 * shared + 0.1 * own + 10.0 / costs
    if arm.mood == "nan" and int(words[-1]) == 3:
        loss = np.full_like(loss, np.nan)
    return {
        "cost": costs,
        "seconds": costs * 1e-5 * arm.slow,
        "loss": loss,
        "gain": -loss,
        "compile_seconds": np.asarray(0.5),
    }


def entrant(name, level, mood="fine", slow=1.0, own=1, grid=None, needs=()):
    """One line, as in a real discipline."""
    planted = {"level": (level,), "mood": (mood,), "slow": (slow,), "own": (own,)}
    settings = "".join(f", {setting}" for setting in grid or {})
    return Entrant(name, f"planted('{name}', level, length{settings})", {**planted, **(grid or {})}, needs=needs)


def discipline(*entrants):
    """With these entrants."""
    return Discipline(
        name="planted",
        title="Who is planted best?",
        kind="a course",
        problem="course",
        area="nowhere",
        needs={"length": "its length, a number", "shape": "a function that says its shape"},
        metrics=(Metric("loss", "a planted loss"), Metric("gain", "its opposite", "higher")),
        unit="strides",
        entrants=entrants,
        trial=f"{HERE}:trial",
        facts=f"{HERE}:facts",
        script="chosen = {method}\n",
    )
