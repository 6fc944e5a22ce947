"""Two parts whose right answer is known: the largest singular value and the truncated law."""

from laureate.lab.claim import Arm, Claim, Experiment, Scale
from laureate.papers.biggan.experiments import PILOTS

__all__ = ["SAMPLER", "SINGULAR"]

TRIALS = "laureate.papers.biggan.trials_parts"

SINGULAR = Experiment(
    "singular",
    title="Does one power iteration a step follow the largest singular value?",
    trial=f"{TRIALS}:singular",
    arms=(
        Arm("followed", "one iteration a step, 200 steps", kind="followed", iterations=1),
        Arm("cold", "one iteration from a random direction", kind="cold", iterations=1),
        Arm("five", "five iterations", kind="cold", iterations=5),
        Arm("thirty", "thirty iterations", kind="cold", iterations=30),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", rows=6, columns=4, steps=4, rate=1e-3),
        "smoke": Scale(20, cost=4.0, rows=64, columns=48, steps=200, rate=1e-3),
        "desk": Scale(20, cost=6.0, rows=256, columns=128, steps=200, rate=1e-3),
    },
    claims=(
        Claim(
            "spectral-norm",
            "one iteration a step follows the largest singular value of a weight whose entries move at random by a "
            "thousandth of their deviation a step: after 200 steps it is within 1 %.",
            metric="error",
            method="followed",
            kind="bound",
            at_most=0.01,
            unit="relative error",
            role="check",
            trivial="cold",
            source="appendix B: one power iteration a step",
        ),
        Claim(
            "spectral-norm-cold",
            "but a single iteration from a random direction is more than 5 % off: read σ later.",
            metric="error",
            method="cold",
            kind="bound",
            at_least=0.05,
            unit="relative error",
            role="check",
            source="the method note",
        ),
    ),
    over="data sets",
    deviations=(
        PILOTS,
        "Seen in the note: estimates of .81, .93 and .99 of the largest singular value after 1, 5 and 30 iterations "
        "from a random direction, and below 1 % after 200 steps of a moving weight.",
        "Random matrices whose entries, of unit deviation, walk at random in steps of 1e-3. A layer in "
        "training moves otherwise, and its entries are smaller: a step of Adam is a larger part of them.",
    ),
)

SAMPLER = Experiment(
    "sampler",
    title="Do truncated latents have the law of drawing anew?",
    trial=f"{TRIALS}:sampler",
    arms=(
        Arm("exact", "truncated_normal", kind="exact"),
        Arm("hub", "t times a normal law cut at 2", kind="hub"),
        Arm("scaled", "a normal law of deviation t", kind="scaled"),
        Arm("clipped", "a normal law clipped at t", kind="clipped"),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", draws=50, thresholds=(0.5, 2.0)),
        "smoke": Scale(20, cost=3.0, draws=20_000, thresholds=(0.1, 0.5, 1.0, 2.0)),
        "desk": Scale(20, cost=5.0, draws=100_000, thresholds=(0.1, 0.5, 1.0, 2.0)),
    },
    claims=(
        Claim(
            "truncated-sampler",
            "draws have the law of N(0, 1) given |z| <= t: the largest of Kolmogorov's √n D over four thresholds is "
            "below 1.63, the 1 % point of one.",
            metric="kolmogorov",
            method="exact",
            kind="bound",
            at_most=1.63,
            unit="√n D",
            role="check",
            trivial="clipped",
            source="section 3.1; the reviewers' question how entries are drawn anew",
        ),
        Claim(
            "truncated-sampler-hub",
            "and t times a normal law cut at 2, as released modules have it, does not: √n D is above 10 at every "
            "threshold.",
            metric="least_kolmogorov",
            method="hub",
            kind="bound",
            at_least=10.0,
            unit="√n D",
            role="check",
            source="the method note",
        ),
    ),
    over="data sets",
    deviations=(PILOTS, "Seen in the note: deviations at t = 0.5 of .284 (exact), .440 (hub) and .5 (scaled)."),
)
