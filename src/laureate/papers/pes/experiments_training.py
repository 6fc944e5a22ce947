"""Persistent evolution strategies against its rivals while θ is trained.

When each claim was declared and changed, why, and whether results had been seen by then, is in ``ledger.jsonl``.
"""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale

__all__ = ["INFLUENCE_BALANCING", "L2_COEFFICIENT", "LEARNED_OPTIMISER", "TOY_SCHEDULE"]

TRIALS = "laureate.papers.pes.trials_training"
UNROLLS = "laureate.problems.unrolls"

INFLUENCE_BALANCING = Experiment(
    name="influence-balancing",
    title="Influence balancing: a parameter whose short-term influence has the wrong sign",
    x64=True,
    trial=f"{TRIALS}:influence_balancing",
    problem=f"{UNROLLS}:InfluenceBalancing",
    arms=(
        Arm("pes", "PES, K = 1", estimator="pes", truncation=1, sigma=0.1, learning_rate=1e-4),
        Arm(
            "truncated-es", "truncated ES, K = 1", estimator="truncated-es", truncation=1, sigma=0.1, learning_rate=1e-4
        ),
        Arm("noise-reuse", "NRES", estimator="noise-reuse", truncation=1, sigma=0.1, learning_rate=1e-4),
        Arm("rtrl", "RTRL", estimator="rtrl", truncation=1, sigma=0.1, learning_rate=1e-4),
        Arm(
            "truncated-backprop-10",
            "truncated backprop, K = 10",
            estimator="truncated-backprop",
            truncation=10,
            sigma=0.1,
            learning_rate=1e-4,
        ),
        Arm(
            "truncated-backprop-100",
            "truncated backprop, K = 100",
            estimator="truncated-backprop",
            truncation=100,
            sigma=0.1,
            learning_rate=1e-4,
        ),
        Arm("start", "no training", estimator="none", truncation=1, sigma=0.1, learning_rate=0.0),
    ),
    guards=(
        Guard("limit", "log_loss", low=-30.0, high=300.0),
        Guard("limit", "mean_log_loss", low=-30.0, high=300.0),
        # A mean hides that one point of its curve was cut.
        Guard("limit", "log_loss_curve", low=-30.0, high=300.0, claims=("influence-balancing-rtrl",)),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", pairs=2, updates=4, points=2),
        "smoke": Scale(10, block=10, cost=5, pairs=500, updates=1500, points=50),
        "desk": Scale(20, cost=7.5, pairs=500, updates=3000, points=50),
        "full": Scale(40, cost=16, pairs=500, updates=3000, points=50),
    },
    claims=(
        Claim(
            "influence-balancing",
            "With one step a truncation, PES ends at a loss more than six decades below that of truncated ES.",
            metric="log_loss",
            method="pes",
            baseline="truncated-es",
            margin=6.0,
            unit="decades of loss",
            source="experiment on influence balancing",
            reported="PES with K = 1 reaches the optimum, ES with K = 1 diverges (figure)",
            role="headline",
            trivial="start",
        ),
        Claim(
            "influence-balancing-rtrl",
            "PES learns as fast as exact real-time recurrent learning: their mean log-losses over the training "
            "differ by less than half a decade.",
            metric="mean_log_loss",
            method="pes",
            baseline="rtrl",
            kind="equal",
            margin=0.5,
            unit="decades of loss",
            source="experiment on influence balancing",
            reported="PES with K = 1 matches RTRL (figure)",
            role="headline",
            trivial="start",
        ),
        Claim(
            "influence-balancing-backprop",
            "PES with one step a truncation ends more than six decades below backpropagation through ten.",
            metric="log_loss",
            method="pes",
            baseline="truncated-backprop-10",
            margin=6.0,
            unit="decades of loss",
            source="experiment on influence balancing",
            role="headline",
            trivial="start",
        ),
        Claim(
            "noise-reuse",
            "How does noise reuse (NRES, Li et al. 2023), one perturbation for ever, compare with PES?",
            metric="mean_log_loss",
            method="noise-reuse",
            kind="question",
            unit="decades of loss, mean over the training",
            role="extension",
        ),
    ),
    deviations=(
        "UORO is left out.",
        "log10 of the loss is cut to [−30, 300], in double precision; a run that ends as no number counts as 300.",
        "Changed on 2026-11-17, after results: in single precision the loss was cut to [−9, 6], PES lay at the floor "
        "and truncated backpropagation at the ceiling in every seed, and the effect, 15 decades, was that of the cuts.",
        "smoke was first declared with 100 pairs; the first run showed PES too noisy there to be compared with RTRL,"
        " and the paper's 500 cost little. It makes 1,500 updates instead of 3,000 (first 2,000; cut for its seconds"
        " alone).",
    ),
    curves=(
        Curve(
            "log_loss_curve",
            "updates",
            "Influence balancing: the loss while training",
            x_label="updates",
            y_label="log10 loss",
        ),
    ),
)


def _trained(name: str, label: str, estimator: str, momentum: float, speedup: float = 1.0, **more: float) -> Arm:
    """An arm trained by Adam: β₁ = momentum, learning rate 0.01 × speedup, truncations of 10 steps."""
    return Arm(
        name, label, estimator=estimator, truncation=10, learning_rate=0.01, momentum=momentum, speedup=speedup, **more
    )


TOY_SCHEDULE = Experiment(
    name="toy-schedule",
    title="A learning-rate schedule tuned through a whole training run, or your own unroll",
    trial=f"{TRIALS}:training",
    problem=f"{UNROLLS}:ToySchedule",
    accepts=("init", "step", "theta0", "horizon"),
    arms=(
        _trained("pes", "PES", "pes", sigma=0.3, momentum=0.99),
        _trained("truncated-es", "truncated ES", "truncated-es", sigma=1.0, momentum=0.99),
        _trained("truncated-backprop", "truncated backprop", "truncated-backprop", momentum=0.99),
        _trained("full-es", "full ES", "full-es", sigma=0.3, momentum=0.99, speedup=5.0),
    ),
    guards=(
        Guard("limit", "reduction", low=-1.0),
        Guard(
            "limit", "reduction_curve", low=-1.0, claims=("toy-schedule-full-es",)
        ),  # a mean hides a point that was cut
    ),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", problem={"horizon": 20}, pairs=2, updates=4, points=2, evaluations=2
        ),
        "smoke": Scale(10, block=10, cost=4, pairs=50, updates=1000, points=20, evaluations=2),
        "desk": Scale(16, block=8, cost=37, pairs=50, updates=20_000, points=50, evaluations=2),
        "full": Scale(50, cost=120, pairs=50, updates=20_000, points=50, evaluations=2),
    },
    claims=(
        Claim(
            "toy-schedule",
            "PES lowers the loss of the whole unroll further than truncated ES, by more than 5 % of the loss it "
            "starts from.",
            metric="reduction",
            method="pes",
            baseline="truncated-es",
            better="higher",
            margin=0.05,
            unit="of the first loss",
            source="experiment on the 2-D toy regression",
            reported="PES reaches the basin, truncated methods stop at a short-horizon optimum (figure)",
            role="headline",
        ),
        Claim(
            "toy-schedule-backprop",
            "PES lowers the loss of the whole unroll further than truncated backpropagation, by more than 5 % of "
            "the loss it starts from.",
            metric="reduction",
            method="pes",
            baseline="truncated-backprop",
            better="higher",
            margin=0.05,
            unit="of the first loss",
            source="experiment on the 2-D toy regression",
            reported="PES reaches the basin, truncated methods stop at a short-horizon optimum (figure)",
            role="headline",
        ),
        Claim(
            "toy-schedule-full-es",
            "Updating every truncation, PES has on average lowered the loss further than full ES has with the same "
            "inner steps.",
            metric="mean_reduction",
            method="pes",
            baseline="full-es",
            better="higher",
            unit="of the first loss, mean over the training",
            source="introduction: PES allows rapid updates, full-unroll ES one an episode",
            role="extension",
        ),
    ),
    deviations=(
        "Equal inner steps a particle for all arms. Full ES makes one update for every ten of PES, and gets five "
        "times the learning rate for it.",
        "RTRL and UORO are left out here.",
        "A run that blows up, or ends more than twice as bad as it began, counts as a reduction of −1, and holds its "
        "claims back. The trivial thing, not to train, has a reduction of 0.",
        "smoke: 1,000 updates instead of the paper's 20,000 (first 1,600; cut for its seconds alone, as all smoke "
        "experiments here were from 12 seeds to 10).",
        "On your own problem its attributes sigma, learning_rate and truncation replace the arms' values; the "
        "truncation is lowered to a divisor of the horizon.",
    ),
    curves=(
        Curve(
            "loss_curve",
            "inner_steps",
            "Loss of the whole unroll while training",
            x_label="inner steps a particle",
            y_label="mean loss a step",
        ),
    ),
)

L2_COEFFICIENT = Experiment(
    name="l2-coefficient",
    title="The L2 coefficient of ridge regression on diabetes, tuned in one endless training run",
    trial=f"{TRIALS}:l2_coefficient",
    problem=f"{UNROLLS}:RidgeFamily",
    data=("diabetes",),
    arms=(
        Arm("pes", "PES, K = 1", estimator="pes", truncation=1, sigma=0.01, learning_rate=3e-3),
        Arm(
            "truncated-es",
            "truncated ES, K = 1",
            estimator="truncated-es",
            truncation=1,
            sigma=0.01,
            learning_rate=3e-3,
        ),
        Arm("start", "no tuning", estimator="none", truncation=1, sigma=0.01, learning_rate=0.0),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", problem={"size": 2}, pairs=1, updates=4, points=2),
        "smoke": Scale(10, block=10, cost=3, pairs=2, updates=10_000, points=20),
        "desk": Scale(20, cost=9.5, pairs=2, updates=50_000, points=50),
        "full": Scale(40, cost=24, pairs=2, updates=50_000, points=50),
    },
    claims=(
        Claim(
            "l2-coefficient",
            "From six starts, PES ends nearer to the best log-coefficient than truncated ES.",
            metric="distance",
            method="pes",
            baseline="truncated-es",
            unit="|log λ − log λ*|, mean of six starts",
            source="experiment on the L2 coefficient (UCI Yacht)",
            reported="the same optimum from all six starts, ES not (figure)",
            role="stand-in",
            trivial="start",
        ),
        Claim(
            "l2-coefficient-optimum",
            "From six starts, PES ends on average within 0.3 of the best log-coefficient.",
            metric="distance",
            method="pes",
            kind="bound",
            at_most=0.3,
            unit="|log λ − log λ*|, mean of six starts",
            source="experiment on the L2 coefficient (UCI Yacht)",
            role="stand-in",
            trivial="start",
        ),
    ),
    deviations=(
        "scikit-learn's diabetes instead of UCI Yacht, which is not bundled with anything.",
        "Each start of each seed has its own random division of the patients, out of 24 whose validation loss has"
        " one valley, inside the starts' range; the paper has one.",
        "Changed after the first run: divisions whose validation loss has two valleys are left out, for no descent"
        " finds the deeper one from every start; and the weights start at 0 instead of at random.",
        "smoke: 10,000 updates instead of 50,000.",
    ),
    curves=(
        Curve(
            "distance_curve",
            "updates",
            "Distance from the best log-coefficient while training",
            x_label="updates",
            y_label="|log λ − log λ*|",
        ),
    ),
)


LEARNED_OPTIMISER = Experiment(
    name="learned-optimiser",
    title="A learned optimiser, meta-trained to train a classifier of digits",
    trial=f"{TRIALS}:training",
    problem=f"{UNROLLS}:LearnedOptimiser",
    data=("digits",),
    arms=(
        _trained("pes", "PES", "pes", sigma=0.05, momentum=0.9),
        _trained("truncated-es", "truncated ES", "truncated-es", sigma=0.05, momentum=0.9),
        _trained("truncated-backprop", "truncated backprop", "truncated-backprop", sigma=0.05, momentum=0.9),
    ),
    guards=(Guard("limit", "reduction", low=-1.0),),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"horizon": 4, "truncation": 2, "hidden": 0, "pool": 4, "batch": 2, "units": 2},
            pairs=1,
            updates=4,
            points=2,
            evaluations=1,
        ),
        "smoke": Scale(
            10,
            block=10,
            cost=9,
            problem={"horizon": 50, "truncation": 5, "hidden": 0, "pool": 2, "batch": 16},
            pairs=4,
            updates=200,
            points=4,
            evaluations=8,
        ),
        "desk": Scale(16, block=8, cost=48, problem={"horizon": 100}, pairs=5, updates=400, points=10, evaluations=8),
        "full": Scale(
            20,
            block=1,
            cost=170_000,
            problem={"horizon": 1000, "hidden": 32, "units": 32},
            pairs=50,
            updates=10_000,
            points=50,
            evaluations=8,
        ),
    },
    claims=(
        Claim(
            "learned-optimiser",
            "For the same inner steps, PES meta-trains an optimiser to a lower training loss than truncated ES.",
            metric="reduction",
            method="pes",
            baseline="truncated-es",
            better="higher",
            unit="of the first loss",
            source="experiment on learned optimisers",
            reported="a lower meta-loss than ES (figure)",
            role="stand-in",
        ),
        Claim(
            "learned-optimiser-backprop",
            "For the same inner steps, PES meta-trains an optimiser to a lower training loss than truncated "
            "backpropagation.",
            metric="reduction",
            method="pes",
            baseline="truncated-backprop",
            better="higher",
            unit="of the first loss",
            source="experiment on learned optimisers",
            reported="a lower meta-loss than truncated backprop (figure)",
            role="stand-in",
        ),
    ),
    deviations=(
        "scikit-learn's 8 × 8 digits and a classifier with 8 hidden units; an optimiser of 58 parameters that "
        "starts as a slow Adam; an inner run of 100 steps. The paper's networks are larger and its runs longer.",
        "All arms share Adam with learning rate 0.01, and σ = 0.05: chosen beforehand, tuned for none of them.",
        "smoke: a linear classifier of digits averaged to 4 × 4, 50 steps in truncations of 5, batches of 16, 200"
        " updates; desk: 400 updates.",
        "Changed after the first run: smoke had 100 updates of a run of 100 steps, where no arm had converged and"
        " truncated backpropagation led; the optimiser had two features more.",
        "full is a larger run of the same kind, not the paper's: its settings could not be confirmed.",
    ),
    curves=(
        Curve(
            "loss_curve",
            "inner_steps",
            "Training loss of the classifier, mean over its whole training, while the optimiser is meta-trained",
            x_label="inner steps a particle",
            y_label="mean training loss",
        ),
    ),
)
