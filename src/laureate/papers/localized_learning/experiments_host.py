"""LoCal+SGD: which schedule, in convolutional networks, and at what cost."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale
from laureate.papers.localized_learning.experiments import ACCEPTS, OUR_READING, PILOTS, PROBLEM, RATES, SMALL

__all__ = ["CONVOLUTIONAL", "COST", "SCHEDULES"]

TRIALS = "laureate.papers.localized_learning.trials_host"
MORE: dict[str, Any] = {"better": "higher", "unit": "accuracy"}

SCHEDULES = Experiment(
    "schedules",
    title="When should the boundary move: by the clock, by the weights, by the loss, or by chance?",
    trial=f"{TRIALS}:schedules",
    problem=PROBLEM,
    accepts=ACCEPTS,
    arms=(
        Arm("dynamic", "norm of the transition layer's updates", schedule="norm", fraction=0.95),
        Arm("static", "a staircase", schedule="static", fraction=0.0),
        Arm("plateau", "the loss hardly falls", schedule="plateau", fraction=0.1),
        Arm("random", "a random path with the dynamic one's mean", schedule="random", fraction=0.95),
        Arm("sgd", "all layers by gradients", schedule="none", fraction=0.0),
        Arm("majority", "the commonest label", schedule="majority", fraction=0.0),
    ),
    scales={
        "tiny": Scale(
            1,
            block=1,
            compilation="lightest",
            problem={"data": "digits", "train": 20, "validation": 10, "test": 10},
            hidden=4,
            layers=2,
            classes=10,
            epochs=2,
            start=1,
            every=1,
            window=1,
            batch=10,
            rates=RATES[2:4],
            local_rate=0.001,
        ),
        "desk": Scale(
            10,
            cost=22.0,
            problem={"data": "digits", "train": 1000, "validation": 430, "test": 359},
            hidden=32,
            layers=3,
            classes=10,
            epochs=15,
            start=5,
            every=5,
            window=3,
            batch=50,
            rates=(0.01, 0.04, 0.16, 0.64),
            local_rate=0.001,
        ),
    },
    claims=(
        Claim(
            "schedules",
            "A plain staircase (five epochs of SGD, then a layer every five) and the dynamic rule that watches the "
            "updates of the transition layer differ by less than a point of test accuracy.",
            metric="accuracy",
            method="static",
            baseline="dynamic",
            kind="equal",
            margin=0.01,
            trivial="majority",
            source="a reviewer: the heuristic is complicated; would a simple schedule do?",
            role="extension",
            **MORE,
        ),
        Claim(
            "schedule-random",
            "The dynamic rule is better than a random path of boundaries with the same mean, by any amount.",
            metric="accuracy",
            method="dynamic",
            baseline="random",
            trivial="majority",
            source="our own question: does it matter when the boundary moves?",
            role="extension",
            **MORE,
        ),
        Claim(
            "schedule-work",
            "Operations of training with each schedule, as a share of full backpropagation.",
            metric="work",
            method="dynamic",
            kind="question",
            unit="share",
            source="the same question",
            role="extension",
        ),
    ),
    guards=(Guard("grid", "rate", grid="rates"),),
    deviations=(
        OUR_READING,
        "Hebb's rule with the sign at a local rate of 0.001 for all; the learning rate is chosen by validation rows, "
        "its cosine falls epoch by epoch. Fractions and windows of the dynamic rules are not tuned. The random path is "
        "drawn anew for each seed. Not at smoke: each boundary is a program of its own.",
        SMALL + PILOTS,
    ),
    over_seeds="loop",
    data=("digits",),
)

CONVOLUTIONAL = Experiment(
    "convolutional",
    title="The same in a convolutional network",
    trial=f"{TRIALS}:convolutional",
    problem=PROBLEM,
    arms=(
        Arm("hebb-sign", "LoCal+SGD: Hebb, sign of the loss's change", rule="hebb", schedule="stairs", rising=-1.0),
        Arm("freeze", "early layers frozen", rule="frozen", schedule="stairs", rising=1.0),
        Arm("sgd", "all layers by gradients", rule="frozen", schedule="none", rising=1.0),
        Arm("hebb", "Hebb, no supervision", rule="hebb", schedule="stairs", rising=1.0),
        Arm("oja", "Oja, no supervision", rule="oja", schedule="stairs", rising=1.0),
        Arm("oja-sign", "Oja, sign", rule="oja", schedule="stairs", rising=-1.0),
        Arm("random-sign", "random direction, sign", rule="random", schedule="stairs", rising=-1.0),
        Arm("majority", "the commonest label", rule="majority", schedule="none", rising=1.0),
    ),
    scales={
        "tiny": Scale(
            1,
            block=1,
            compilation="lightest",
            problem={"data": "digits", "train": 20, "validation": 10, "test": 10},
            channels=4,
            classes=10,
            epochs=2,
            start=1,
            every=1,
            batch=10,
            rates=(0.03,),
            local_rates=(0.001,),
        ),
        "desk": Scale(
            10,
            cost=55.0,
            problem={"data": "mnist-5k", "train": 600, "validation": 1000, "test": 1000},
            channels=8,
            classes=10,
            epochs=8,
            start=2,
            every=2,
            batch=50,
            rates=(0.004, 0.02, 0.1, 0.5),
            local_rates=(0.000001, 0.00003, 0.001, 0.03),
        ),
        "full": Scale(
            10,
            cost=400000.0,
            problem={"data": "fashion-mnist", "train": 50000, "validation": 10000, "test": 10000},
            channels=32,
            classes=10,
            epochs=30,
            start=5,
            every=5,
            batch=100,
            rates=(0.004, 0.02, 0.1, 0.5),
            local_rates=(0.000001, 0.00003, 0.001, 0.03),
        ),
    },
    claims=(
        Claim(
            "convolutional",
            "In a convolutional network LoCal+SGD is at most one point of test accuracy below training all layers by "
            "gradients.",
            metric="accuracy",
            method="hebb-sign",
            baseline="sgd",
            margin=-0.01,
            trivial="majority",
            source="abstract",
            reported="about 0.5 % of top-1 accuracy lost",
            role="stand-in",
            **MORE,
        ),
        Claim(
            "convolutional-freezing",
            "In a convolutional network LoCal+SGD is better than leaving the same layers frozen from the same epochs "
            "on, by any amount.",
            metric="accuracy",
            method="hebb-sign",
            baseline="freeze",
            trivial="majority",
            source="our central question",
            role="extension",
            **MORE,
        ),
        Claim(
            "convolutional-table",
            "Test accuracy of every rule with and without supervision.",
            metric="accuracy",
            method="hebb-sign",
            kind="question",
            source="a reviewer: an ablation of weak supervision is missing",
            role="extension",
            **MORE,
        ),
    ),
    guards=(
        Guard("grid", "rate", grid="rates"),
        Guard("grid", "local_rate", grid="local_rates", arms=("hebb-sign", "hebb", "oja", "oja-sign", "random-sign")),
    ),
    deviations=(
        OUR_READING,
        "MNIST averaged to 14 × 14 (600 images to learn from), four convolutions (two become local at a time), a dense "
        "layer and a head, group normalisation; the paper has CIFAR and ImageNet with eight CNNs, batch normalisation "
        "and a GPU. Both rates of each arm are chosen by validation rows from one coarse grid with one seed that does "
        "not count, of equal accuracies the largest local rate; frozen layers and SGD have no local rate, so a quarter "
        "of the tries. Seeds differ in weights and batches, not in images. Not at smoke: each boundary of "
        "each rule is a program of its own. " + PILOTS,
    ),
    over_seeds="loop",
    data={"tiny": ("digits",), "desk": ("mnist-5k",), "full": ("fashion-mnist",)},
)

COST = Experiment(
    "cost",
    title="What a step costs",
    trial=f"{TRIALS}:cost",
    arms=(Arm("timed", "a step with the boundary at half depth"),),
    scales={
        "tiny": Scale(1, block=1, compilation="lightest", width=8, layers=4, batch=4, rounds=1),
        "desk": Scale(10, cost=20.0, width=1024, layers=8, batch=128, rounds=5),
    },
    claims=(
        Claim(
            "cost",
            "In a dense network of eight layers of width 1024, a step with Hebb's rule below half depth takes at most "
            "0.75 of the CPU time of full backpropagation (median over seeds).",
            metric="local_share",
            method="timed",
            kind="bound",
            at_most=0.75,
            unit="share of the time",
            source="abstract: one product a layer instead of two; the bound is our issue's",
            reported="up to 1.5 times faster end to end, on a GPU",
            role="stand-in",
        ),
        Claim(
            "cost-freezing",
            "In a dense network of eight layers of width 1024, a step with the layers below half depth frozen takes at "
            "most 0.75 of the CPU time of full backpropagation (median over seeds).",
            metric="frozen_share",
            method="timed",
            kind="bound",
            at_most=0.75,
            unit="share of the time",
            source="our own question",
            role="extension",
        ),
        Claim(
            "cost-model",
            "The operations that the cost model counts predict the shares of time within a fifth.",
            metric="model_error",
            method="timed",
            kind="bound",
            at_most=0.2,
            unit="relative error",
            source="our own code",
            role="extension",
        ),
        Claim(
            "cost-ceiling",
            "With all layers but the last local, a step has at least two thirds of the operations of full "
            "backpropagation: Hebb's rule can make training at most 1.5 times as fast.",
            metric="fastest",
            method="timed",
            kind="bound",
            at_most=1.5,
            unit="times",
            source="arithmetic: two products a layer instead of three",
            reported="up to 1.5 times faster end to end",
            role="check",
        ),
        Claim(
            "cost-table",
            "By how much of full backpropagation's time Hebb's rule costs more than freezing.",
            metric="local_minus_frozen",
            method="timed",
            kind="question",
            unit="share of the time",
            source="our own question",
            role="extension",
        ),
    ),
    deviations=(
        "One CPU core, JAX, plain SGD, a batch of 128; the paper has a GPU and convolutional networks. Steps of all "
        "kinds in turn in one process, CPU time, medians. Not at smoke: it reads a clock. " + PILOTS,
        "Products alone say 0.83 for Hebb's rule and 0.65 for freezing, which was known when this was declared: the "
        "bound of 0.75 is the issue's.",
    ),
    over_seeds="loop",
)
