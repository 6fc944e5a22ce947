"""Persistent evolution strategies on hyper-parameters of each layer, on accuracy, and on a control task.

When each claim was declared and changed, why, and whether results had been seen by then, is in ``ledger.jsonl``.
"""

from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale

__all__ = ["CONTROL", "PER_LAYER", "SCHEDULE_ACCURACY"]

TRIAL = "laureate.papers.pes.trials_tuning:tuning"
RUNS = "laureate.problems.unrolls.training_runs"
SETTINGS = {"sigma": 0.3, "learning_rate": 0.03, "speedup": 1.0}
PES = Arm("pes", "PES", estimator="pes", **SETTINGS)
TRUNCATED = Arm("truncated-es", "truncated ES", estimator="truncated-es", **SETTINGS)
FULL = Arm("full-es", "full ES", estimator="full-es", **(SETTINGS | {"speedup": 5.0}))
SEARCH = Arm("random-search", "random search", estimator="random-search")
START = Arm("start", "the start, not tuned", estimator="none")

BUDGET = (
    "Not at smoke, for seconds alone: declared there too, run once, then taken out. Equal inner steps for all arms; "
    "σ = 0.3 and Adam at 0.03 for PES and truncated ES, tuned for neither. Starts are drawn anew for every seed."
)
CUT = "Seeds and updates at desk were cut for seconds (16 to 12, 400 to 300) before anything was run there."
SMALL = "A network of two layers (64, 16, 10) on scikit-learn's digits, judged by 200 images apart, runs of 100 steps"

PER_LAYER = Experiment(
    name="per-layer",
    title="A rate and a momentum for each layer, tuned through whole training runs",
    trial=TRIAL,
    problem=f"{RUNS}:TrainingRun",
    data=("digits",),
    arms=(PES, TRUNCATED, SEARCH, START),
    guards=(Guard("limit", "worst_step", high=10.0, claims=("per-layer", "per-layer-truncated")),),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"horizon": 4, "truncation": 2, "hidden": 2, "batch": 2},
            pairs=2,
            updates=4,
            evaluations=2,
        ),
        "desk": Scale(12, block=6, cost=58, problem={}, pairs=5, updates=300, evaluations=8),
        "full": Scale(
            20, cost=20_000, problem={"horizon": 1000, "hidden": 100}, pairs=5, updates=10_000, evaluations=8
        ),
    },
    claims=(
        Claim(
            "per-layer",
            "For the same inner steps, a rate and a momentum for each layer tuned by PES give a lower validation loss, "
            "mean over the training run, than the best of a random search.",
            metric="loss",
            method="pes",
            baseline="random-search",
            unit="nats",
            source="experiment on per-layer hyper-parameters",
            reported="better than random search at equal compute, four seeds (figure)",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "per-layer-truncated",
            "They give a lower one than those tuned by truncated ES.",
            metric="loss",
            method="pes",
            baseline="truncated-es",
            unit="nats",
            source="experiment on per-layer hyper-parameters",
            reported="better than ES at equal compute, four seeds (figure)",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "per-layer-final",
            "What is the validation loss of every arm in the last tenth of the run?",
            metric="final",
            method="pes",
            kind="question",
            unit="nats",
            role="extension",
        ),
    ),
    deviations=(
        BUDGET,
        CUT,
        f"{SMALL}: two rates and two momenta. The paper tunes five layers on Fashion-MNIST over 1,000 steps, and their "
        "widths too.",
        "A validation loss above 10 or not finite counts as 10 in what is tuned; where "
        "such a step is left in a judged run of an arm, its claim is held back.",
        "Random search draws rates between e^−9 and 1 and momenta between 0.05 and 0.95, as the starts are drawn.",
    ),
)

SCHEDULE_ACCURACY = Experiment(
    name="schedule-accuracy",
    title="A learning-rate schedule tuned for accuracy, of which there is no derivative",
    trial=TRIAL,
    problem=f"{RUNS}:TrainingRun",
    data=("digits",),
    arms=(PES, TRUNCATED, START),
    guards=(Guard("limit", "worst_step", high=2.0, claims=("schedule-accuracy",)),),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={
                "kind": "schedule",
                "objective": "accuracy",
                "horizon": 4,
                "truncation": 2,
                "hidden": 2,
                "batch": 2,
            },
            pairs=2,
            updates=4,
            evaluations=2,
        ),
        "desk": Scale(
            12,
            block=6,
            cost=22,
            problem={"kind": "schedule", "objective": "accuracy"},
            pairs=5,
            updates=300,
            evaluations=8,
        ),
        "full": Scale(
            20,
            cost=50_000,
            problem={"kind": "schedule", "objective": "accuracy", "horizon": 5000, "hidden": 100},
            pairs=500,
            updates=10_000,
            evaluations=8,
        ),
    },
    claims=(
        Claim(
            "schedule-accuracy",
            "A schedule that PES tunes for accuracy itself leaves fewer validation images wrong, mean over the "
            "training run, than one that truncated ES tunes with the same inner steps.",
            metric="loss",
            method="pes",
            baseline="truncated-es",
            unit="share of images",
            source="experiment on a schedule for MNIST, validation accuracy",
            reported="PES finds the good region with K = 10 (figure)",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "schedule-accuracy-final",
            "What share is wrong with every arm in the last tenth of the run?",
            metric="final",
            method="pes",
            kind="question",
            unit="share of images",
            role="extension",
        ),
    ),
    deviations=(
        BUDGET,
        CUT,
        f"{SMALL} and ten pairs of particles at most, instead of MNIST, 5,000 steps and 1,000 particles.",
        "Weights that are not finite count as a share of 2.",
    ),
)

CONTROL = Experiment(
    name="control",
    title="A car that must swing back before it climbs: a linear rule tuned through whole rides",
    trial=TRIAL,
    problem=f"{RUNS}:CarInValley",
    arms=(PES, TRUNCATED, FULL, START),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"horizon": 4, "truncation": 2},
            pairs=2,
            updates=4,
            evaluations=2,
        ),
        "desk": Scale(16, block=8, cost=12, pairs=10, updates=4000, evaluations=50),
        "full": Scale(20, cost=200, pairs=30, updates=40_000, evaluations=100),
    },
    claims=(
        Claim(
            "control",
            "For the same steps of the simulation, a rule tuned by PES costs less over whole rides than one tuned by "
            "truncated ES.",
            metric="loss",
            method="pes",
            baseline="truncated-es",
            unit="of 2 at the bottom, 0 at the goal; mean over the ride",
            source="experiment on a control task (Swimmer)",
            reported="PES with K = 100 learns, ES with K = 100 does not (figure)",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "control-full-es",
            "It costs less than one tuned by full ES, which makes one update a ride at five times the rate.",
            metric="loss",
            method="pes",
            baseline="full-es",
            unit="of 2 at the bottom, 0 at the goal; mean over the ride",
            source="experiment on a control task (Swimmer)",
            reported="full ES is slower a step of the environment (figure)",
            role="stand-in",
            trivial="start",
        ),
    ),
    deviations=(
        BUDGET,
        "A mountain car of our own (Gymnasium's constants, 200 steps, K = 10, three numbers to tune) instead of the "
        "Swimmer with 1,000 steps, K = 100.",
        "The smoke run showed PES far ahead of truncated ES and level with full ES.",
        "Full ES gets five times the rate, as in the experiment on the toy schedule; a twentieth of the updates.",
    ),
)
