"""Consensus and quadratics, where optimum and bound are known: DeTAG and its rivals over sparse networks.

When each claim was declared and changed, why, and whether results had been seen by then, is in ``ledger.jsonl``.
"""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale

__all__ = [
    "CONSENSUS",
    "LAZY",
    "LOWER_BOUND",
    "NOTHING",
    "PEERS",
    "QUADRATICS",
    "RIVALS",
    "ROUNDS",
    "SAME_GRID",
    "TRIALS",
]

TRIALS = "laureate.papers.detag.trials"
PEERS = "laureate.problems.peers"
SAME_GRID = (
    "Every arm gets the best of the same grid of learning rates, chosen a seed and a case by the metric itself: no arm "
    "is tuned more than another."
)
LAZY = (
    "All arms use κ W + (1 − κ) I with the ring's Metropolis matrix W, as the paper does for sparse networks. The ring "
    "that is not made sparse has κ = ½, the lazy walk, for D² and accelerated gossip need eigenvalues that are not "
    "negative. Until 2026-11-17 W was made lazy first and κ applied to that, so that our κ = 0.1 was the paper's 0.05."
)
ROUNDS = (
    "DeTAG's phases have R = ⌈1/√(1 − λ)⌉ rounds of the paper's accelerated gossip: the theory's choice without its "
    "logarithm, not tuned."
)

CONSENSUS = Experiment(
    name="consensus",
    title="How many rounds until the nodes of a ring agree",
    trial=f"{TRIALS}:consensus",
    arms=(
        Arm("plain", "plain gossip", method="plain"),
        Arm("accelerated", "accelerated gossip", method="accelerated"),
        Arm("chebyshev", "Chebyshev gossip", method="chebyshev"),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", sizes=(4, 6), most=40),
        "smoke": Scale(10, block=10, compilation="lightest", cost=3, sizes=(8, 16, 32), most=8000),
        "desk": Scale(12, block=12, cost=5, sizes=(8, 16, 32, 64), most=8000),
        "full": Scale(40, cost=30, sizes=(8, 16, 32, 64, 128), most=30_000),
    },
    claims=(
        Claim(
            "consensus",
            "Rounds of accelerated gossip until differences have shrunk a thousandfold grow as the spectral gap to the "
            "power −0.5: the slope over rings lies between −0.6 and −0.4.",
            metric="log_rounds",
            against="log_gap",
            method="accelerated",
            kind="trend",
            at_least=-0.6,
            at_most=-0.4,
            unit="decades of rounds a decade of gap",
            source="section on accelerated gossip",
            role="check",
        ),
        Claim(
            "consensus-plain",
            "Rounds of plain gossip grow as the gap to the power −1: the slope lies between −1.1 and −0.9.",
            metric="log_rounds",
            against="log_gap",
            method="plain",
            kind="trend",
            at_least=-1.1,
            at_most=-0.9,
            unit="decades of rounds a decade of gap",
            source="section on accelerated gossip",
            role="check",
        ),
        Claim(
            "consensus-bound",
            "From the slowest start there is, Chebyshev gossip shrinks differences by just its bound 1/T_R: the "
            "largest relative deviation over all rings is below 1e-6.",
            metric="deviation",
            method="chebyshev",
            kind="bound",
            at_most=1e-6,
            unit="relative",
            source="classical: no polynomial of W does better",
            role="check",
        ),
    ),
    deviations=(
        "Consensus is the classical part; the paper uses it. All arms have the lazy Metropolis matrix (I + W)/2.",
    ),
    x64=True,
)


def _arm(name: str, label: str) -> Arm:
    return Arm(name, label, optimiser=name)


NOTHING = Arm("start", "no training", optimiser="none")
RIVALS = (
    _arm("detag", "DeTAG"),
    _arm("d-psgd", "D-PSGD"),
    _arm("d2", "D²"),
    _arm("gradient-tracking", "gradient tracking"),
)

QUADRATICS = Experiment(
    name="quadratics",
    title="Quadratics that differ from node to node, on a ring: dense and sparse, with and without noise",
    trial=f"{TRIALS}:quadratics",
    problem=f"{PEERS}:Quadratics",
    over="data sets",
    arms=(*RIVALS, NOTHING),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", problem={"nodes": 4, "dimension": 2}, rounds=20, rates=(0.1, 0.2)
        ),
        "smoke": Scale(
            10,
            block=10,
            cost=9,
            problem={"nodes": 16, "dimension": 5},
            rounds=1200,
            rates=(0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        ),
        "desk": Scale(
            12,
            block=12,
            cost=70,
            problem={"nodes": 32, "dimension": 10},
            rounds=4000,
            rates=(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        ),
        "full": Scale(
            40,
            cost=900,
            problem={"nodes": 64, "dimension": 10},
            rounds=20_000,
            rates=(0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        ),
    },
    claims=(
        Claim(
            "sparse",
            "On a sparse network (κ = 0.1) with noisy gradients DeTAG ends more than a decade nearer to the optimum "
            "than D-PSGD, for the same rounds.",
            metric="sparse",
            method="detag",
            baseline="d-psgd",
            margin=1.0,
            unit="decades of squared distance",
            source="experiments on sparse networks",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "sparse-tracking",
            "There it ends more than two decades nearer than gradient tracking.",
            metric="sparse",
            method="detag",
            baseline="gradient-tracking",
            margin=2.0,
            unit="decades of squared distance",
            source="experiments on sparse networks",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "sparse-d2",
            "There DeTAG's squared distance is less than half of D²'s, for the same rounds.",
            metric="sparse",
            method="detag",
            baseline="d2",
            margin=0.301,
            unit="decades of squared distance",
            source="experiments on sparse networks",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "sparse-bytes",
            "There DeTAG ends nearer than D² for the same bytes too: with half the rounds, as it sends two vectors.",
            metric="sparse_bytes",
            method="detag",
            baseline="d2",
            unit="decades of squared distance",
            source="experiments on sparse networks; equal bytes are ours",
            role="extension",
            trivial="start",
        ),
        Claim(
            "dense-noiseless",
            "On the ring as it is and without noise DeTAG is not needed: D² ends below a squared distance of 10⁻¹⁰.",
            metric="dense_noiseless",
            method="d2",
            kind="bound",
            at_most=-10.0,
            unit="log10 of the squared distance",
            source="ours: where not to expect an advantage",
            role="extension",
            trivial="start",
        ),
        Claim(
            "every-case",
            "How near do all methods come on the ring with noise, for the same rounds?",
            metric="dense",
            method="detag",
            kind="question",
            unit="log10 of the squared distance",
            role="extension",
        ),
    ),
    deviations=(
        SAME_GRID,
        LAZY,
        ROUNDS,
        "The metric is log10 of the nodes' mean squared distance to the optimum, averaged over the last tenth of the "
        "rounds (equal bytes: the tenth before the middle for methods of two vectors), cut to [−300, 4].",
        "Changed on 2026-11-17, after results: D², gradient tracking and D-PSGD had all chosen the lowest rate of "
        "their grid, so it goes further down; κ is applied once; dense-noiseless compared two numbers at a floor of "
        "10⁻¹⁰ and now holds D² against that bound. A smoke run then showed D-PSGD still at the lowest rate; the grid "
        "goes down to 0.0003 there.",
        "The paper has no quadratics; they show its theory's effect with an optimum that is known.",
        "Cut for its seconds after the first run: smoke had 12 seeds, 2,000 rounds, six rates and a fourth case. "
        "sparse-bytes was inconclusive (−0.06 decades) before that cut and supported after it: a fragile verdict.",
    ),
    guards=(
        *(
            Guard("limit", f"{case}{budget}", low=-300.0, high=4.0)
            for case in ("dense", "sparse", "dense_noiseless")
            for budget in ("", "_bytes")
        ),
        Guard("grid", "sparse_rate", grid="rates", claims=("sparse", "sparse-tracking", "sparse-d2")),
        Guard("grid", "sparse_bytes_rate", grid="rates", claims=("sparse-bytes",)),
        Guard("grid", "dense_noiseless_rate", grid="rates", claims=("dense-noiseless",)),
    ),
    x64=True,
)

LOWER_BOUND = Experiment(
    name="lower-bound",
    title="Rounds to a target as the spectral gap shrinks, against the bound's 1/√(1 − λ)",
    trial=f"{TRIALS}:lower_bound",
    problem=f"{PEERS}:Quadratics",
    arms=(RIVALS[0], *RIVALS[2:]),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"nodes": 4, "dimension": 2},
            rounds=20,
            kappas=(0.5, 0.3),
            rates=(0.1, 0.2),
        ),
        "smoke": Scale(
            10,
            block=10,
            cost=8,
            problem={"nodes": 8, "dimension": 5},
            rounds=6000,
            kappas=(0.5, 0.3, 0.1, 0.03),
            rates=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        ),
        "desk": Scale(
            12,
            block=12,
            cost=90,
            problem={"nodes": 16, "dimension": 5},
            rounds=60_000,
            kappas=(0.5, 0.3, 0.1, 0.03, 0.01),
            rates=(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        ),
        "full": Scale(
            40,
            cost=1200,
            problem={"nodes": 32, "dimension": 10},
            rounds=200_000,
            kappas=(0.5, 0.3, 0.1, 0.03, 0.01, 0.003),
            rates=(0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        ),
    },
    claims=(
        Claim(
            "lower-bound",
            "DeTAG's rounds until the squared distance has shrunk 10⁶-fold follow the lower bound's shape: they grow "
            "as the gap to a power between −0.7 and −0.3.",
            metric="log_rounds",
            against="log_gap",
            method="detag",
            kind="trend",
            at_least=-0.7,
            at_most=-0.3,
            unit="decades of rounds a decade of gap",
            source="theorems on the lower bound and on DeTAG",
            role="stand-in",
        ),
        Claim(
            "sparse-trend",
            "Gradient tracking's rounds grow faster as the gap shrinks: its exponent is larger than DeTAG's by more "
            "than 0.2.",
            metric="exponent",
            method="detag",
            baseline="gradient-tracking",
            margin=0.2,
            unit="exponent of 1/(1 − λ)",
            source="table of rates",
            role="stand-in",
        ),
        Claim(
            "sparse-rounds",
            "At the smallest gap DeTAG needs less than a third of the rounds that gradient tracking needs.",
            metric="log_rounds_smallest_gap",
            method="detag",
            baseline="gradient-tracking",
            margin=0.477,
            unit="decades of rounds",
            source="table of rates",
            role="stand-in",
        ),
        Claim(
            "exponents",
            "With which exponent of 1/(1 − λ) do the rounds of each method grow?",
            metric="exponent",
            method="detag",
            kind="question",
            unit="exponent of 1/(1 − λ)",
            role="extension",
        ),
        Claim(
            "smallest-gap",
            "How many rounds does each method need at the smallest gap, without noise?",
            metric="log_rounds_smallest_gap",
            method="detag",
            kind="question",
            unit="log10 of the rounds",
            role="extension",
        ),
    ),
    deviations=(
        SAME_GRID,
        LAZY,
        ROUNDS,
        "A run that does not reach the target counts as all its rounds: the exponents of slow methods come out too "
        "small, never too large. D-PSGD is left out: with a constant rate it settles off the optimum.",
        "The first run took a run that had diverged to nan for one that had arrived, a fault of the trial, and so gave "
        "gradient tracking an exponent of 0.34; it was mended, and the question on the smallest gap was "
        "added.",
        "sparse-trend was supported at smoke (0.88 against 0.53) and refuted at desk (0.61 against 0.52), where "
        "gradient tracking ran into the limit of rounds at most gaps, so that its exponent came out too small; run "
        "longer on two seeds, it was 1.0. The claim stands as it was declared. sparse-rounds, in which a run cut short "
        "counts in gradient tracking's favour, was added after that, and first checked on cells already computed.",
        "Cut for its seconds alone: smoke from 12 seeds to 10, and from 4,000 rounds to 3,000.",
        "Strongly convex quadratics without noise; the bound is for non-convex functions, of which they are none.",
        "Changed on 2026-11-17, after results: κ is applied once, the grid is wider, desk has 40,000 rounds instead of "
        "12,000, and claims of which an arm was cut short in any seed are held back. A smoke run then showed gradient "
        "tracking still at the lowest rate: the grid goes further down and smoke has 6,000 rounds. So did the first "
        "desk run by these rules (gradient tracking at 0.0003 in 11 of 12 seeds, cut short in one; sparse-trend 0.45 "
        "and sparse-rounds 1.4 decades, both held back): the grid has 0.0001 for all arms and the runs 60,000 rounds.",
    ),
    guards=(
        Guard("limit", "cut_short", high=1.0, claims=("lower-bound", "sparse-trend")),
        Guard("grid", "rate", grid="rates", claims=("lower-bound", "sparse-trend", "sparse-rounds")),
    ),
    over="data sets",
    curves=(
        Curve(
            "log_rounds",
            "log_gap",
            "Rounds to the target against the spectral gap",
            x_label="log10 of the gap 1 − λ",
            y_label="log10 of the rounds",
        ),
    ),
)
