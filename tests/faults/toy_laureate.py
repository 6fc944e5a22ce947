"""``laureate`` as a program with one paper, a toy of 24 short cells: for tests that kill it, starve it and crowd it.

TOY_EXECUTOR=numpy computes its numbers here and at once, without jax and its seconds of start-up.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
import toys
from laureate.lab.claim import Paper, Scale

SEEDS = 8
CELLS = len(toys.ARMS) * SEEDS
PAUSE = 0.02


def paper() -> Paper:
    scales = {"smoke": Scale(seeds=SEEDS, block=1, sleep=PAUSE)}
    return toys.paper(toys.experiment(trial="slow", scales=scales, curves=(), over_seeds="loop"))


class Drawn:
    """An executor that draws the toy's numbers by numpy: the same for the same cell, wherever and whenever."""

    workers = 1

    def __init__(self, pause: float = PAUSE):
        self._pause = pause

    def outcomes(self, cells: Any) -> Any:
        from laureate.lab.cell import Outcome

        shifts = {arm.name: arm.settings["shift"] for arm in toys.ARMS}
        for cell in cells:
            time.sleep(7200.0 if cell.start >= int(os.environ.get("TOY_HELD", 2**31)) else self._pause)
            rng = np.random.default_rng(cell.start)
            loss = 0.1 * rng.normal(size=cell.count) + shifts[cell.arm]
            yield cell, Outcome(metrics={"loss": loss, "curve": np.full((cell.count, 300), loss[0])}, seconds=0.5)

    def close(self) -> None:
        pass


if __name__ == "__main__":
    from laureate import cli, papers
    from laureate.lab.running import run
    from laureate.pages import report

    papers.paper_ids = report.paper_ids = lambda: ["toy"]  # pyright: ignore
    papers.paper = report.load_paper = lambda _: paper()  # pyright: ignore
    if os.environ.get("TOY_EXECUTOR") == "numpy":
        run.make_executor = lambda *_: Drawn()  # pyright: ignore
    cli.main()
