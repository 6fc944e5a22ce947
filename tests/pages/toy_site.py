"""A paper small enough to run in seconds and a store that already knows it; also, as a program, ``laureate`` with it.

Its title is hostile on purpose: whatever a paper is called, no page may obey it.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
import toys
from laureate.lab.claim import Claim, Film, Paper, Scale

PAYLOAD = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
LONG_UNIT = "decades of squared distance, what the others reach less what ours does, a round"
CLAIMS = (
    toys.BETTER,
    toys.WORSE,
    Claim("close", "the third is near theirs", "loss", "third", "theirs", kind="equal", margin=5.0, role="extension"),
    Claim("small", "ours is small", "loss", "ours", kind="bound", at_most=100.0, role="extension", unit=LONG_UNIT),
    toys.QUESTION,
)


def paper() -> Paper:
    scales = {"smoke": Scale(seeds=10, block=5, sleep=0.0, cost=3.0), "desk": Scale(seeds=10, block=1, sleep=0.4)}
    made = toys.paper(toys.experiment(trial="slow", over_seeds="loop", scales=scales, claims=CLAIMS))
    facts = {"title": f"On {PAYLOAD} Toys", "equation": "x_t = Σ_{i≤t} ε_i² / (2σ²N)"}
    film = Film("walk", f"Toys that {PAYLOAD} walk", "toys:slow", made.experiments[0].name, ("ours", "theirs"), PAYLOAD)
    return Paper(**vars(made) | facts | {"films": (film,)})


def panels(_: Paper) -> dict[str, list[dict[str, Any]]]:
    """What was recorded: a dot that goes from left to right in ten frames, and its way."""
    way = [[100 * frame + 50, 10 * frame + 50] for frame in range(10)]
    strokes = [
        {"look": "trace", "width": 10, "points": [[number for point in way for number in point]]},
        {"look": "body", "width": 80, "points": way},
    ]
    scene = {"width": 1000, "height": 200, "frames": 10, "strokes": strokes}
    about = {"said": f"ten steps {PAYLOAD}", "seed": 0, "scale": "desk", "day": "2031-01-01", "versions": "laureate 0"}
    return {"walk": [{"film": "walk", "arm": arm, "scene": scene, **about} for arm in ("ours", "theirs")]}


class Remembered:
    """An executor that computes nothing: the numbers of a toy, without jax."""

    def outcomes(self, cells: Any) -> Any:
        from laureate.lab.cell import Outcome

        shifts = {arm.name: arm.settings["shift"] for arm in toys.ARMS}
        for cell in cells:
            rng = np.random.default_rng([cell.start, len(cell.arm)])
            loss = 0.1 * rng.normal(size=cell.count) + shifts[cell.arm]
            steps = np.tile(np.arange(1.0, 5.0), (cell.count, 1))
            metrics = {"loss": loss, "steps": steps, "curve": loss[:, None] / steps}
            yield cell, Outcome(metrics=metrics, seconds=0.5, compile_seconds=0.1)

    def close(self) -> None:
        pass


def install(monkeypatch: Any) -> None:
    """One paper runs here: the toy."""
    for module in [importlib.import_module(name) for name in ("laureate.papers", "laureate.pages.report")]:
        monkeypatch.setattr(module, "paper_ids", lambda: ["toy"])
    monkeypatch.setattr("laureate.papers.paper", lambda _: paper())
    monkeypatch.setattr("laureate.pages.report.load_paper", lambda _: paper())
    monkeypatch.setattr("laureate.pages.content.film_panels", panels)


def measure(monkeypatch: Any, runs: int = 1) -> None:
    """Fill the store of today's home with finished runs of the toy."""
    import laureate.lab.running.run
    from laureate.lab.running.run import run_claims
    from laureate.lab.storing.home import store_path
    from laureate.lab.storing.store import Store

    with monkeypatch.context() as patch:
        patch.setattr(laureate.lab.running.run, "make_executor", lambda *_: Remembered())
        store = Store(store_path())
        for _ in range(runs):
            run_claims(store, toys.selections(paper()), scale="smoke", command="laureate run toy", fresh=True)
        store.close()


if __name__ == "__main__":
    from laureate import cli, papers
    from laureate.pages import report

    papers.paper_ids = report.paper_ids = lambda: ["toy"]  # pyright: ignore
    papers.paper = report.load_paper = lambda _: paper()  # pyright: ignore
    cli.main()
