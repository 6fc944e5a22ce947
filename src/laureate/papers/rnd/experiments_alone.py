"""The bonus by itself: how it falls with exposure, a noisy television, and two heads on one trunk."""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale
from laureate.papers.rnd.experiments import FINITE, agent, sizes

__all__ = ["DECAY", "MONTEZUMA", "TELEVISION", "TRUNK"]

TRIALS = "laureate.papers.rnd.trials_alone"
LESS = {"width": 8, "features": 4, "code": 2, "rate": 0.001, "batch": 8}
MORE = {"width": 64, "features": 32, "code": 8, "rate": 0.001, "batch": 32}

DECAY = Experiment(
    "decay",
    title="How does the bonus for a class fall with the number of its examples?",
    trial=f"{TRIALS}:decay",
    problem="laureate.problems.novelty:RareImages",
    accepts=("draw",),
    arms=(
        Arm("rnd", "RND", bonus="rnd", speed=1.0),
        Arm("untrained", "RND, never trained", bonus="rnd", speed=1e-9),
        Arm("autoencoder", "error of an autoencoder", bonus="autoencoder", speed=1.0),
    ),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"data": "digits", "num_train": 12, "num_held": 4},
            counts=(2, 4, 8),
            steps=3,
            **LESS,
        ),
        "smoke": Scale(
            12,
            block=12,
            cost=6.0,
            problem={"data": "digits", "num_train": 130, "num_held": 40},
            counts=(8, 16, 32, 64, 128),
            steps=200,
            **MORE,
        ),
        "desk": Scale(
            12,
            block=12,
            cost=21.0,
            problem={"data": "mnist-5k", "num_train": 400, "num_held": 100, "pool": 2},
            counts=(10, 20, 40, 80, 160, 320),
            steps=500,
            **MORE,
        ),
        "full": Scale(
            40,
            block=10,
            cost=20000.0,
            problem={"data": "fashion-mnist", "num_train": 5000, "num_held": 1000},
            counts=(10, 30, 100, 300, 1000, 3000),
            steps=20000,
            **MORE | {"width": 256, "features": 128},  # pyright: ignore[reportArgumentType]
        ),
    },
    claims=(
        Claim(
            "novelty-decay",
            "The error on new images of a class falls with the number n of its images in training: the slope of "
            "log error against log n is below −0.1.",
            metric="log_error",
            method="rnd",
            kind="trend",
            better="lower",
            margin=0.1,
            against="log_count",
            unit="slope of log error against log n",
            source="figure 2: MNIST, one class and n images of another",
            role="stand-in",
            reported="falls with n, figure only",
        ),
        Claim(
            "novelty-slower",
            "It falls more slowly than the bonus of counts, 1/√n: the slope is above −0.5.",
            metric="slope",
            method="rnd",
            kind="bound",
            at_least=-0.5,
            unit="slope of log error against log n",
            source="our own question: is the bonus a count in disguise?",
            role="check",
        ),
    ),
    curves=(Curve("error", "count", "Error on new images of the rarer class", "images of it", "error", True, True),),
    deviations=(
        "Perceptrons of width 64 on images of 14 × 14 (MNIST, 500 of each class) at desk and 8 × 8 (digits) at smoke; "
        "the paper has 28 × 28 and 5,000 images of the common class. A seed is another pair of classes and another "
        "split; pairs come from ten classes, so seeds share images.",
        "The number of images is fixed: n rare ones take the place of common ones. So is the number of steps.",
        "Pixels are whitened once, by all training images of both classes, also by rare ones that are not learned "
        "from: by the mixture itself, the error would fall with n without learning. What is never trained has slope 0.",
        "Known when this was declared: the note's nine fits on Fashion-MNIST, with slopes from −0.34 to −0.24. "
        "They answer novelty-slower as well, which has the same slopes: a check.",
    ),
    data={
        "tiny": ("digits",),
        "smoke": ("digits",),
        "desk": ("mnist-5k",),
        "full": ("fashion-mnist",),
    },
)

ROOM = {"side": 6, "pixels": 16, "limit": 64}
SMALL_ROOM = {"side": 2, "pixels": 2, "limit": 8}
WATCHING = "share of the last quarter's steps beside the television"


def _viewer(name: str, label: str, bonus: str, pictures: int, **settings: float) -> Arm:
    return agent(name, label, bonus=bonus, pictures=pictures, **settings)


TELEVISION = Experiment(
    "television",
    title="Does the agent stay before a noisy television?",
    trial=f"{TRIALS}:television",
    arms=(
        _viewer("rnd", "RND, 8 pictures", "rnd", 8),
        _viewer("dynamics", "error of a model of the dynamics, 8 pictures", "dynamics", 8),
        _viewer("count", "1/√n of the cell, 8 pictures", "count", 8),
        _viewer("random", "random actions, 8 pictures", "count", 8, speed=1e-9),
        _viewer("rnd-endless", "RND, new noise at every switch", "rnd", 0),
        _viewer("dynamics-endless", "error of a model, new noise at every switch", "dynamics", 0),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", **sizes()["tiny"] | SMALL_ROOM),  # pyright: ignore[reportArgumentType]
        "desk": Scale(12, block=12, cost=48.0, **sizes()["desk"] | ROOM | {"updates": 128}),  # pyright: ignore[reportArgumentType]
        "full": Scale(30, block=10, cost=2500.0, **sizes()["full"] | ROOM | {"side": 10, "pixels": 64}),  # pyright: ignore[reportArgumentType]
    },
    claims=(
        Claim(
            "noisy-tv",
            "Before a television with eight pictures an agent that is paid by RND spends less of its time than one "
            "that is paid for errors of a model of the dynamics, by more than a fifth of all steps.",
            metric="watching",
            method="rnd",
            baseline="dynamics",
            margin=0.2,
            unit=WATCHING,
            source="the section on sources of prediction errors: a fixed target is not stochastic",
            role="extension",
            reported="argued, and figures only",
        ),
        Claim(
            "noisy-tv-endless",
            "With new noise at every switch RND stays there too: more than a fifth of all steps above chance.",
            metric="watching",
            method="rnd-endless",
            baseline="random",
            better="higher",
            margin=0.2,
            unit=WATCHING,
            source="our own question: noise that never repeats is new for RND as well",
            role="extension",
        ),
    ),
    curves=(Curve("watching_curve", "step", "Before the television", "environment steps", "share of steps"),),
    # Who never leaves the corner of the start does not watch either.
    guards=(FINITE, Guard("effective", "cells_seen", low=0.9)),
    deviations=(
        "A room of 6 × 6 cells without any reward, a television of 16 pixels in one corner that an action of the agent "
        "switches; intrinsic returns go on across episodes of 64 steps, which a time limit truncates. Networks and "
        "learning as on the chain. The model of the dynamics predicts random features, as the paper's baseline.",
        "No arm acts at random: it would watch 1.2 % of the time, and pass where it sees the cells.",
        "The paper has no such room: it argues by the sources of errors, and tries mazes with a television elsewhere.",
    ),
)

VALUES = {"size": 12, "gamma_e": 0.99}

TRUNK = Experiment(
    "trunk",
    title="Does a loud intrinsic head spoil the extrinsic values?",
    trial=f"{TRIALS}:interference",
    arms=(
        Arm("shared", "one trunk, bonus × 1", trunk="shared", factor=1.0, speed=1.0),
        Arm("shared-loud", "one trunk, bonus × 10", trunk="shared", factor=10.0, speed=1.0),
        Arm("separate", "two trunks, bonus × 1", trunk="separate", factor=1.0, speed=1.0),
        Arm("separate-loud", "two trunks, bonus × 10", trunk="separate", factor=10.0, speed=1.0),
        Arm(
            "stopped-loud",
            "one trunk, trained by the first head, bonus × 10",
            trunk="stopped",
            factor=10.0,
            speed=1.0,
        ),
        Arm("untrained", "values of 0, about", trunk="shared", factor=1.0, speed=1e-9),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", **sizes()["tiny"] | VALUES | {"size": 4}),  # pyright: ignore[reportArgumentType]
        "desk": Scale(16, block=16, cost=31.0, **sizes()["desk"] | VALUES | {"updates": 100}),  # pyright: ignore[reportArgumentType]
        "full": Scale(40, block=10, cost=500.0, **sizes()["full"] | VALUES),
    },
    claims=(
        Claim(
            "trunk-interference",
            "With a shared trunk, intrinsic rewards ten times as large make the extrinsic values of a fixed policy "
            "worse, by more than a tenth, though nothing about the policy or its rewards has changed.",
            metric="log_error",
            method="shared",
            baseline="shared-loud",
            margin=0.1,
            trivial="untrained",
            unit="log of the root mean square error, as a share of the values'",
            source="a reviewer's question: shared trunk and the scale of the bonus",
            role="extension",
        ),
        Claim(
            "trunk-stopped",
            "Then a trunk that the intrinsic head does not train has better extrinsic values than one that it does, by "
            "more than a tenth.",
            metric="log_error",
            method="stopped-loud",
            baseline="shared-loud",
            margin=0.1,
            trivial="untrained",
            unit="log of the root mean square error, as a share of the values'",
            source="the same",
            role="extension",
        ),
    ),
    guards=(FINITE,),
    deviations=(
        "A chain of 12 states, of which the values of random actions are known exactly (without a time limit, which "
        "truncates here); both heads learn by the same PPO updates while the policy stays uniform. Separate trunks "
        "have three times the parameters, so no claim speaks of them.",
        "Seen afterwards: both claims give nearly the same numbers, and are one result, after 100 updates.",
    ),
    over="data sets",
)

LEAST = {"rate": 0.001, "minibatches": 2, "rollout": 8, "warmup": 1, "actors": 2, "updates": 2}

MONTEZUMA = Experiment(
    "montezuma",
    title="Montezuma's Revenge: is the bonus large where a room is new?",
    trial="laureate.papers.rnd.trials_atari:montezuma",
    problem="laureate.problems.atari:Montezuma",
    arms=(Arm("rnd", "RND"),),
    scales={
        "tiny": Scale(1, block=1, width=8, channels=2, **LEAST),
        "full": Scale(
            10,
            block=1,
            cost=60000.0,
            width=256,
            channels=32,
            rate=0.0001,
            minibatches=4,
            rollout=128,
            warmup=50,
            actors=32,
            updates=500,
        ),
    },
    claims=(
        Claim(
            "montezuma-bonus",
            "A step that enters a room nobody had been in has a higher bonus than another step in more than four of "
            "five pairs.",
            metric="area",
            method="rnd",
            kind="bound",
            at_least=0.8,
            unit="area under the curve, all steps of a run",
            source="figure 1: the bonus spikes at what is new",
            role="stand-in",
            reported="a picture",
        ),
    ),
    deviations=(
        "Two million steps instead of 490 million, 32 actors, pictures of 42 × 40, no maximum over frames. Never run "
        "here: about 1,000 steps a second without learning. Not at smoke or desk.",
        "Rewards are as the game gives them, where the paper takes their sign; weights of convolutions are Equinox's, "
        "where the paper's are orthogonal.",
        "Where no second room is entered in a seed, nothing is decided.",
    ),
    guards=(Guard("effective", "entered", low=1.0),),
    over_seeds="loop",
    data=("montezuma",),
)
