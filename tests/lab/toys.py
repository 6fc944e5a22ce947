"""Papers that no one wrote, for tests of the lab."""

from pathlib import Path

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Paper, Scale
from laureate.lab.running.plan import Selection, select

TRIALS = Path(__file__).with_name("toy_trials.py")
ARMS = (Arm("ours", shift=0.0), Arm("theirs", shift=2.0), Arm("third", shift=4.0))
BETTER = Claim(
    "better", "ours is lower than theirs", metric="loss", method="ours", baseline="theirs", margin=0.5, role="extension"
)
WORSE = Claim("worse", "the third is lower than ours", metric="loss", method="third", baseline="ours", role="extension")
QUESTION = Claim("which", "how do all compare?", metric="loss", method="ours", kind="question", role="extension")


def experiment(name: str = "toy", trial: str = "trial", **changes) -> Experiment:
    declared = {
        "title": "A toy",
        "trial": f"{TRIALS}:{trial}",
        "problem": f"{TRIALS}:Bowl",
        "accepts": ("offset",),
        "arms": ARMS,
        "scales": {"smoke": Scale(seeds=10, block=5, draws=8), "desk": Scale(seeds=20, block=10, draws=8)},
        "claims": (BETTER, WORSE, QUESTION),
        "curves": (Curve("curve", "steps", "Loss against steps", log_x=True),),
        "deviations": ("It is a toy.",),
    }
    return Experiment(name=name, **declared | changes)


def paper(*experiments: Experiment) -> Paper:
    return Paper(
        id="toy",
        title="On <script> Toys",
        authors=("A. Author",),
        venue="Nowhere",
        year=2021,
        award="",
        area="toys",
        problem="p",
        idea="i",
        equation="e",
        example="x",
        experiments=experiments or (experiment(),),
    )


def selections(made: Paper, *words: str) -> list[Selection]:
    return select(words or ["toy"], ["toy"], lambda _: made)
