"""DARTS-PT: what each rule takes from the same supernets, judged by a table of all networks trained alone."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Experiment, Scale

__all__ = ["BILEVEL", "PROPOSITION", "SELECTION"]

TRIALS = "laureate.papers.darts_pt.trials"
CELLS = "laureate.problems.supernets:CellSupernet"
ACCEPTS = ("ops", "init", "apply", "inputs", "labels", "test_inputs", "test_labels")
DATA = {"tiny": ("digits",), "smoke": ("digits",), "desk": ("digits",), "full": ("fashion-mnist",)}
LATER = {name: sets for name, sets in DATA.items() if name != "smoke"}

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"problem": {"train": 16, "test": 8, "num_nodes": 2, "num_cells": 1, "channels": 2}},
    "smoke": {"problem": {"train": 600, "test": 359, "num_cells": 1, "channels": 4}},
    "desk": {"problem": {"train": 1400, "test": 359}},
    "full": {
        "problem": {
            "data": "fashion-mnist",
            "train": 60000,
            "test": 10000,
            "num_nodes": 4,
            "num_cells": 5,
            "channels": 16,
        }
    },
}
# batch, rate: of the weights' SGD; alpha_rate: of alpha's Adam, such that rate x steps is about what DARTS has.
STEPS: dict[str, dict[str, Any]] = {
    "tiny": {"batch": 4, "steps": 10, "tune_steps": 1, "table_steps": 10, "table_values": 1},
    "smoke": {"batch": 32, "steps": 150, "tune_steps": 15, "table_steps": 150, "table_values": 1},
    "desk": {"batch": 64, "steps": 300, "tune_steps": 30, "table_steps": 150, "table_values": 2},
    "full": {"batch": 64, "steps": 20000, "tune_steps": 2000, "table_steps": 10000, "table_values": 3},
}
ALPHA_RATES = {"tiny": 0.02, "smoke": 0.04, "desk": 0.02, "full": 3e-4}


def scale(name: str, seeds: int, block: int, cost: float, **more: Any) -> Scale:
    """A scale of one experiment; what trains is the same in all of them, so that they share tables."""
    return Scale(
        seeds, block=block, cost=cost, rate=0.1, alpha_rate=ALPHA_RATES[name], **SIZES[name], **STEPS[name], **more
    )


def arm(name: str, label: str, rule: str = "perturbation", **more: Any) -> Arm:
    """An arm; what is not said is the paper's own choice: learned alpha, accuracy, tuning, statistics of the batch."""
    usual = {
        "rule": rule,
        "alpha": "bilevel",
        "criterion": "accuracy",
        "ties": "random",
        "exclude": "",
        "tuned": 1,
        "statistics": "batch",
        "examples": 0,
    }
    return Arm(name, label, **(usual | more))


PERTURBATION = arm("perturbation", "perturbation")
MAGNITUDE = arm("magnitude", "magnitude, none included", "magnitude", tuned=0)
WITHOUT_NONE = arm("without-none", "magnitude without none", "magnitude", tuned=0, exclude="none")
FIXED = arm("fixed", "perturbation, alpha fixed", alpha="fixed")
FIXED_MAGNITUDE = arm(
    "fixed-magnitude", "magnitude without none, alpha fixed", "magnitude", alpha="fixed", tuned=0, exclude="none"
)
RANDOM = arm("random", "a random network", "random", tuned=0)

TABLE = (
    "Three edges with none, skip, avg3 and conv3 each, 64 networks, over 4 x 4 positions of 8 x 8 images, a choice for "
    "all cells; the paper has NAS-Bench-201 and the space of DARTS on CIFAR-10. Every network was trained alone on all "
    "training images, and its mean accuracy on test images (two trainings at desk, one at smoke) is what counts; ranks "
    "are exact in that table. All seeds share it, and the images and their halves: seeds draw supernets and "
    "choices, and the intervals are about those alone. A process computes the table once; the time is that of its "
    "first trial."
)
RATES = (
    "Short trainings: a supernet takes 300 steps of 64 images at desk (150 of 32 at smoke), alpha's rate is raised so "
    "that rate x steps is about that of DARTS; 30 steps of tuning (15) a decision. One learning rate for all arms, "
    "taken after seven single networks had been trained with it, before anything was searched; nothing was tuned. What "
    "another rate of alpha would do is a question of its own. Images are not augmented, and all validation images "
    "are scored as one batch with its statistics; the released code scores augmented images in batches of 64."
)
PILOTS = "The method note's pilots, made with other code and sizes, were known when this was declared."

SELECTION = Experiment(
    "selection",
    title="Which network is taken from a supernet that was trained with alpha, or without?",
    trial=f"{TRIALS}:selection",
    problem=CELLS,
    accepts=ACCEPTS,
    arms=(
        PERTURBATION,
        arm("perturbation-loss", "perturbation by the loss", criterion="loss"),
        arm("untuned", "perturbation without tuning", tuned=0),
        MAGNITUDE,
        WITHOUT_NONE,
        arm("tuned-magnitude", "magnitude without none, tuned (PT-Mag)", "magnitude", exclude="none"),
        FIXED,
        FIXED_MAGNITUDE,
        RANDOM,
        arm("random-without-none", "a random network without none", "random", tuned=0, exclude="none"),
    ),
    scales={
        "tiny": scale("tiny", 2, 2, 0.0),
        "smoke": scale("smoke", 10, 10, 25.0),
        "desk": scale("desk", 20, 10, 80.0),
        "full": scale("full", 20, 1, 3e6),
    },
    claims=(
        Claim(
            "magnitude-elects-none",
            "on at least half of the edges the largest weight of a supernet trained by DARTS is that of none, which "
            "does nothing.",
            metric="none_share",
            method="magnitude",
            kind="bound",
            at_least=0.5,
            unit="share of edges",
            source="our pilot; the paper leaves none out of the space of DARTS, but not of NAS-Bench-201",
            role="extension",
        ),
        Claim(
            "magnitude-worse-half",
            "the network of the largest weights is in the worse half of all networks.",
            metric="rank",
            method="magnitude",
            kind="bound",
            at_least=0.5,
            unit="share of networks that are better",
            source="table 4, NAS-Bench-201: the network that DARTS finds",
            role="stand-in",
            reported="45.7 % error on CIFAR-10",
        ),
        Claim(
            "perturbation-better",
            "of the same supernets perturbation takes a better network than magnitude does, by more than five points "
            "of accuracy.",
            metric="accuracy",
            method="perturbation",
            baseline="magnitude",
            trivial="random",
            better="higher",
            margin=0.05,
            unit="share of test images",
            source="table 4, NAS-Bench-201",
            role="stand-in",
            reported="CIFAR-10 error 45.7 % → 11.89 %",
        ),
        Claim(
            "without-none",
            "it is as good as magnitude where none may not be chosen, within two points.",
            metric="accuracy",
            method="perturbation",
            baseline="without-none",
            kind="equal",
            better="higher",
            trivial="random",
            margin=0.02,
            unit="share of test images",
            source="our own control",
            role="extension",
        ),
        Claim(
            "criterion-not-tuning",
            "it is the criterion and not the tuning: perturbation takes a better network than magnitude with the same "
            "tuning.",
            metric="accuracy",
            method="perturbation",
            baseline="tuned-magnitude",
            trivial="random",
            better="higher",
            unit="share of test images",
            source="the ablation PT-Mag",
            role="stand-in",
            reported="CIFAR-10, space of DARTS: error 2.61 % against 2.85 %",
        ),
        Claim(
            "fixed-alpha",
            "from a supernet whose alpha was never trained perturbation takes a network that fewer others beat than "
            "a random one: a tenth of all networks fewer, at least.",
            metric="rank",
            method="fixed",
            baseline="random",
            trivial="random-without-none",
            better="lower",
            margin=0.1,
            unit="share of networks that are better",
            source="table 4: fixed alpha",
            role="stand-in",
            reported="NAS-Bench-201, CIFAR-10: 6.20 % error",
        ),
        Claim(
            "rules",
            "How good is the network that each rule takes?",
            metric="accuracy",
            method="perturbation",
            kind="question",
            unit="share of test images",
            source="our own question",
            role="extension",
        ),
    ),
    deviations=(TABLE, RATES, PILOTS),
    data=DATA,
    over_seeds="loop",
)

BILEVEL = Experiment(
    "bilevel",
    title="Is learning alpha on data of its own of any use?",
    trial=f"{TRIALS}:selection",
    problem=CELLS,
    accepts=ACCEPTS,
    arms=(
        PERTURBATION,
        FIXED,
        arm("one-level", "perturbation, alpha learned on the same data", alpha="one-level"),
        WITHOUT_NONE,
        FIXED_MAGNITUDE,
        arm(
            "one-level-magnitude",
            "magnitude without none, alpha learned on the same data",
            "magnitude",
            alpha="one-level",
            tuned=0,
            exclude="none",
        ),
        RANDOM,
    ),
    scales={
        "tiny": scale("tiny", 2, 2, 0.0),
        "desk": scale("desk", 20, 10, 30.0),
        "full": scale("full", 20, 1, 3e6),
    },
    claims=(
        Claim(
            "bilevel",
            "perturbation needs no learned alpha: from a supernet with fixed alpha it takes a network that is worse "
            "by at most one point.",
            metric="accuracy",
            method="fixed",
            baseline="perturbation",
            trivial="random",
            better="higher",
            margin=-0.01,
            unit="share of test images",
            source="table 4; a reviewer: is bilevel optimisation useless for architecture search?",
            role="stand-in",
            reported="NAS-Bench-201: 6.20 % error against 11.89 %; space of DARTS: 2.87 % against 2.61 %",
        ),
        Claim(
            "bilevel-one-level",
            "nor data of its own: alpha learned on the same data as the weights gives a network that is worse by at "
            "most one point.",
            metric="accuracy",
            method="one-level",
            baseline="perturbation",
            trivial="random",
            better="higher",
            margin=-0.01,
            unit="share of test images",
            source="a reviewer's question",
            role="extension",
        ),
        Claim(
            "bilevel-ranks",
            "How many networks are better than that of each rule and each training?",
            metric="rank",
            method="perturbation",
            kind="question",
            unit="share of networks that are better",
            source="a reviewer's question",
            role="extension",
        ),
    ),
    deviations=(
        TABLE,
        RATES,
        "At one level weights and alpha see all training images, the validation half among them, in batches of their "
        "own; perturbation then scores images that the weights have been trained on. No analysis of variance: "
        "differences are paired by seed. Not at smoke. " + PILOTS,
    ),
    data=LATER,
    over_seeds="loop",
)

PROPOSITION = Experiment(
    "proposition",
    title="Is the weight of proposition 1 the one that minimises the variance?",
    trial=f"{TRIALS}:proposition",
    arms=(
        Arm("weak", "errors almost uncorrelated", coupling=0.05),
        Arm("correlated", "errors correlated", coupling=1.0),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", draws=50),
        "smoke": Scale(10, cost=1.0, compilation="lightest", draws=1000),
        "desk": Scale(20, cost=1.0, compilation="lightest", draws=1000),
        "full": Scale(50, cost=1.0, compilation="lightest", draws=100000),
    },
    claims=(
        Claim(
            "proposition",
            "the weight of an operation beside a skip connection that minimises the variance of their mixture is "
            "(V_skip − C)/(V_skip + V_op − 2C), to a millionth.",
            metric="log10_error",
            method="correlated",
            kind="bound",
            at_most=-6.0,
            unit="log10 of the difference",
            source="proposition 1, there for uncorrelated errors",
            role="check",
        ),
    ),
    deviations=("It holds by algebra; here it tests our code. " + PILOTS,),
    x64=True,
    over="data sets",
)
