"""LoCal+SGD in dense networks: what local updates, supervision and directions are worth, beside freezing."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale

__all__ = ["DELAY", "DENSE", "OUR_READING", "PILOTS"]

TRIALS = "laureate.papers.localized_learning.trials"
PROBLEM = "laureate.problems.classes:image_classes"
ACCEPTS = ("inputs", "labels", "validation_inputs", "validation_labels", "test_inputs", "test_labels")

OUR_READING = (
    "The paper's text was not at hand beyond its two abstracts: the Hebbian rule on z = W a, its division by its norm, "
    "the step as a share of ‖W‖, how the loss controls it (sign and scale are two readings, both with the loss of the "
    "step before) and the rule that moves the boundary are our reading, and settings of the component."
)
PILOTS = (
    "The method note's pilots (synthetic images, 3 seeds: freezing as good as SGD, Hebb's rule worse, collapse at a "
    "rate of 0.001 over two thousand steps) were known when this was declared."
)
SMALL = (
    "Handwritten digits and dense networks; the paper has CIFAR-10, CIFAR-100 and ImageNet with eight CNNs on a GPU. "
)
TUNED = (
    "Every arm is trained at every pair of a learning rate and a local rate of one grid; validation rows choose, of "
    "equal accuracies the largest local rate; test rows are reported. Frozen layers and plain SGD have no local rate "
    "and choose among the learning rates alone, so local rules have six times as many tries. Momentum 0.9, a cosine "
    "for the learning rate, none for the local one. Seeds differ in weights and batches, not in images. The grids were "
    "moved by one value for all arms after a first run at smoke, in which random features stood at the upper edge and "
    "Hebb's rule, in half of the seeds, at the lower one."
)


def _arm(name: str, label: str, rule: str = "hebb", schedule: str = "stairs", **numbers: float) -> Arm:
    chosen: dict[str, Any] = {"rising": 1.0, "decay": 0.0} | numbers
    return Arm(name, label, rule=rule, schedule=schedule, **chosen)


SGD = _arm("sgd", "all layers by gradients", rule="frozen", schedule="none")
FREEZE = _arm("freeze", "early layers frozen", rule="frozen")
SIGN = _arm("hebb-sign", "LoCal+SGD: Hebb, sign of the loss's change", rising=-1.0)
MAJORITY = _arm("majority", "the commonest label", rule="majority", schedule="none")
RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
LOCAL_RATES = (0.000001, 0.00001, 0.0001, 0.001, 0.01, 0.03)
LOCAL = ("hebb", "hebb-sign", "hebb-scale", "oja-sign", "random-sign")
AT_BEST = (
    "supervision-tuned",
    "against-freezing",
    "equals-freezing",
    "near-backpropagation",
    "random-direction",
    "from-scratch",
)
GUARDED_AT_LARGEST = ("freeze", "hebb", "hebb-sign", "hebb-scale", "random-sign")
AT_LARGEST = ("unsupervised-collapse", "supervision", "supervision-scale", "random-direction-large")
MORE: dict[str, Any] = {"better": "higher", "unit": "accuracy"}

DENSE = Experiment(
    "dense",
    title="Early layers by Hebb's rule, by chance, or not at all: dense networks",
    trial=f"{TRIALS}:dense",
    problem=PROBLEM,
    accepts=ACCEPTS,
    arms=(
        SIGN,
        FREEZE,
        SGD,
        _arm("hebb", "Hebb, no supervision"),
        _arm("hebb-scale", "Hebb, a tenth while the loss rises", rising=0.1),
        _arm("oja-sign", "Oja, sign", rising=-1.0, decay=1.0),
        _arm("random-sign", "random direction, sign", rule="random", rising=-1.0),
        _arm("scratch-hebb", "Hebb with sign from the first epoch", schedule="scratch", rising=-1.0),
        _arm("scratch-frozen", "random features: frozen from the first epoch", rule="frozen", schedule="scratch"),
        MAJORITY,
    ),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"data": "digits", "train": 20, "validation": 10, "test": 10},
            hidden=4,
            layers=2,
            classes=10,
            epochs=2,
            start=1,
            every=1,
            batch=10,
            rates=RATES[1:3],
            local_rates=LOCAL_RATES[3:5],
        ),
        "smoke": Scale(
            10,
            cost=15.0,
            problem={"data": "digits", "train": 500, "validation": 300, "test": 350},
            hidden=32,
            layers=3,
            classes=10,
            epochs=10,
            start=3,
            every=2,
            batch=50,
            rates=RATES,
            local_rates=LOCAL_RATES,
        ),
        "desk": Scale(
            40,
            cost=55.0,
            problem={"data": "digits", "train": 1000, "validation": 430, "test": 359},
            hidden=32,
            layers=4,
            classes=10,
            epochs=10,
            start=3,
            every=2,
            batch=50,
            rates=RATES,
            local_rates=LOCAL_RATES,
        ),
        "full": Scale(
            20,
            block=5,
            cost=36000.0,
            problem={"data": "fashion-mnist", "train": 10000, "validation": 5000, "test": 10000},
            hidden=256,
            layers=4,
            classes=10,
            epochs=30,
            start=5,
            every=5,
            batch=100,
            rates=RATES,
            local_rates=LOCAL_RATES,
        ),
    },
    claims=(
        Claim(
            "against-freezing",
            "At the best rates of each, localized updates of early layers (Hebb's rule, sign of the loss's change) "
            "give a higher test accuracy than leaving those layers frozen from the same epochs on, by any amount.",
            metric="accuracy",
            method="hebb-sign",
            baseline="freeze",
            trivial="scratch-frozen",
            source="our central question: freezing at the same boundary costs less",
            role="extension",
            **MORE,
        ),
        Claim(
            "equals-freezing",
            "At the best rates of each, localized updates and frozen early layers differ by less than half a point.",
            metric="accuracy",
            method="hebb-sign",
            baseline="freeze",
            kind="equal",
            margin=0.005,
            trivial="scratch-frozen",
            source="our own question",
            role="extension",
            **MORE,
        ),
        Claim(
            "near-backpropagation",
            "LoCal+SGD is at most one point of test accuracy below training all layers by gradients.",
            metric="accuracy",
            method="hebb-sign",
            baseline="sgd",
            margin=-0.01,
            trivial="scratch-frozen",
            source="abstract",
            reported="about 0.5 % of top-1 accuracy lost",
            role="stand-in",
            **MORE,
        ),
        Claim(
            "unsupervised-collapse",
            "At the largest local rate of the grid, Hebb's rule without supervision is more than ten points below "
            "frozen early layers.",
            metric="large",
            method="freeze",
            baseline="hebb",
            margin=0.1,
            trivial="scratch-frozen",
            source="abstract: local updates need to be used judiciously; our own question how far that goes",
            role="extension",
            **MORE,
        ),
        Claim(
            "collapse-directions",
            "At the largest local rate and the learning rate that suits the smallest one, under Hebb's rule without "
            "supervision, the first layer ends with at most half of the directions (participation ratio of its "
            "singular values) that it used when it became local.",
            metric="kept",
            method="hebb",
            kind="bound",
            at_most=0.5,
            unit="share",
            source="a power iteration: all rows turn to the first principal component",
            role="extension",
        ),
        Claim(
            "supervision",
            "At the largest local rate, the sign of the loss's change makes Hebb's rule better by more than five "
            "points.",
            metric="large",
            method="hebb-sign",
            baseline="hebb",
            margin=0.05,
            trivial="majority",
            source="abstract: weak supervision; a reviewer: by how much does it help?",
            role="extension",
            **MORE,
        ),
        Claim(
            "supervision-scale",
            "At the largest local rate, the other reading of weak supervision, a tenth of the step while the loss "
            "rises, makes Hebb's rule better by more than five points.",
            metric="large",
            method="hebb-scale",
            baseline="hebb",
            margin=0.05,
            trivial="majority",
            source="a reviewer: details of the weak supervision are not clear",
            role="extension",
            **MORE,
        ),
        Claim(
            "supervision-tuned",
            "At the best rates of each, the sign of the loss's change makes Hebb's rule better by more than half a "
            "point.",
            metric="accuracy",
            method="hebb-sign",
            baseline="hebb",
            margin=0.005,
            trivial="scratch-frozen",
            source="a reviewer: an ablation of weak supervision is missing",
            role="stand-in",
            **MORE,
        ),
        Claim(
            "random-direction",
            "At the best rates of each, Hebb's direction is better than a random one of the same length, both with the "
            "sign of the loss's change, by any amount.",
            metric="accuracy",
            method="hebb-sign",
            baseline="random-sign",
            trivial="scratch-frozen",
            source="our own question: what is Hebb's in it?",
            role="extension",
            **MORE,
        ),
        Claim(
            "random-direction-large",
            "At the largest local rate, Hebb's direction is better than a random one of the same length, both with the "
            "sign of the loss's change, by any amount.",
            metric="large",
            method="hebb-sign",
            baseline="random-sign",
            trivial="majority",
            source="our own question",
            role="extension",
            **MORE,
        ),
        Claim(
            "from-scratch",
            "With early layers local from the first epoch on, Hebbian features (with the sign) are better than random "
            "ones that stay as they were drawn, by any amount.",
            metric="accuracy",
            method="scratch-hebb",
            baseline="scratch-frozen",
            trivial="majority",
            source="a reviewer: first local method close to SGD; is it the local part or the start by SGD?",
            role="extension",
            **MORE,
        ),
        Claim(
            "dense-table",
            "Test accuracy of every arm at its best rates.",
            metric="accuracy",
            method="hebb-sign",
            kind="question",
            source="a reviewer's request",
            role="extension",
            **MORE,
        ),
    ),
    curves=(Curve("accuracies", "local_rates", "Test accuracy by local rate", "local rate", "accuracy", log_x=True),),
    guards=(
        Guard("grid", "local_rate", grid="local_rates", arms=(*LOCAL, "scratch-hebb"), claims=AT_BEST),
        Guard("grid", "rate", grid="rates", claims=AT_BEST),
        # Of Hebb's rule, too: where it has collapsed all learning rates may tie and the first is chosen, but that was
        # not checked, and a guard is not lifted after a result.
        Guard("grid", "large_rate", grid="rates", arms=GUARDED_AT_LARGEST, claims=AT_LARGEST),
    ),
    deviations=(OUR_READING, TUNED, SMALL + PILOTS),
    data={"tiny": ("digits",), "smoke": ("digits",), "desk": ("digits",), "full": ("fashion-mnist",)},
)

DELAYS = (0, 1, 4, 16)
LATE_RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # old gradients need small steps
DELAY = Experiment(
    "delay",
    title="A pipeline: what if the blocks above the boundary get old inputs?",
    trial=f"{TRIALS}:delayed",
    problem=PROBLEM,
    accepts=ACCEPTS,
    arms=(SIGN, FREEZE, SGD, MAJORITY),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"data": "digits", "train": 20, "validation": 10, "test": 10},
            hidden=4,
            layers=2,
            classes=10,
            epochs=2,
            start=1,
            batch=10,
            rates=RATES[2:4],
            local_rate=0.001,
            delays=(0, 2),
        ),
        "desk": Scale(
            10,
            cost=18.0,
            problem={"data": "digits", "train": 1000, "validation": 430, "test": 359},
            hidden=32,
            layers=3,
            classes=10,
            epochs=9,
            start=3,
            batch=50,
            rates=LATE_RATES,
            local_rate=0.001,
            delays=DELAYS,
        ),
    },
    claims=(
        Claim(
            "delay",
            "With inputs to the layers above the boundary that are 16 steps old, LoCal+SGD loses at most half a point "
            "(median over seeds).",
            metric="lost",
            method="hebb-sign",
            kind="bound",
            at_most=0.005,
            unit="accuracy",
            source="a reviewer: advantages beyond speed, such as asynchronous and pipelined training",
            role="extension",
        ),
        Claim(
            "delay-backpropagation",
            "SGD with gradients that are 16 steps old loses more than LoCal+SGD does, at the best rate for each delay.",
            metric="lost",
            method="hebb-sign",
            baseline="sgd",
            better="lower",
            unit="accuracy",
            source="the same question",
            role="extension",
        ),
        Claim(
            "delay-table",
            "Test accuracy with inputs, or gradients, that are 16 steps old.",
            metric="delayed",
            method="hebb-sign",
            kind="question",
            source="the same question",
            role="extension",
            **MORE,
        ),
    ),
    curves=(Curve("accuracies", "delays", "Test accuracy by delay", "steps", "accuracy"),),
    guards=(Guard("grid", "rate", grid="rates"), Guard("grid", "delayed_rate", grid="rates")),
    deviations=(
        OUR_READING,
        "A simulation in one process: after a common start without delay the boundary moves to the last hidden layer "
        "at once, and all arms go on for two thirds of the epochs. Local rate 0.001 for all; the learning rate is "
        "chosen by validation rows for each delay. The sign is that of the undelayed loss. Frozen layers cannot lose: "
        "they are there for the table. Not at smoke: its programs are the longest to compile.",
        SMALL + PILOTS,
    ),
    data=("digits",),
)
