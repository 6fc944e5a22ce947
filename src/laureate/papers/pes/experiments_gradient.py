"""Persistent evolution strategies at frozen θ: bias and variance of the gradient.

When each claim was declared and changed, why, and whether results had been seen by then, is in ``ledger.jsonl``.
"""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Scale

__all__ = ["CHARACTER_LSTM", "UNBIASED", "VARIANCE"]

TRIALS = "laureate.papers.pes.trials"
UNROLLS = "laureate.problems.unrolls"

UNBIASED = Experiment(
    name="unbiased",
    title="The mean gradient at frozen θ against backpropagation through the whole unroll",
    trial=f"{TRIALS}:unbiased",
    problem=f"{UNROLLS}:LinearQuadratic",
    accepts=("init", "step", "theta0", "horizon"),
    arms=(
        Arm("pes", "PES", estimator="pes", truncation=2, sigma=0.1),
        Arm("truncated-es", "truncated ES", estimator="truncated-es", truncation=2, sigma=0.1),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", problem={"horizon": 4}, pairs=2, episodes=2),
        "smoke": Scale(10, block=10, cost=2, pairs=100, episodes=40),
        "desk": Scale(20, cost=14, pairs=200, episodes=500),
        "full": Scale(40, cost=1200, pairs=1000, episodes=4000),
    },
    claims=(
        Claim(
            "unbiased",
            "Summed over an episode, the mean PES gradient is the gradient of the whole unroll: its squared bias is"
            " below 1 % of the gradient's squared norm.",
            metric="squared_bias",
            method="pes",
            kind="bound",
            at_most=0.01,
            unit="of ‖∇L‖²",
            source="the theorem that PES is unbiased (for losses quadratic in θ)",
            role="check",
        ),
        Claim(
            "unbiased-truncated",
            "The truncated ES gradient is not: its squared bias is larger than PES's by more than 4 % of the "
            "gradient's squared norm.",
            metric="squared_bias",
            method="pes",
            baseline="truncated-es",
            margin=0.04,
            unit="of ‖∇L‖²",
            source="section on truncation bias",
            role="check",
        ),
    ),
    deviations=(
        "The paper proves it and shows it through training; here the mean itself is measured on a linear-quadratic "
        "system (4 states, 3 parameters, 20 steps in truncations of 2), where smoothing adds no bias.",
        "The randomness inside the unroll is held still for each seed, so that the exact gradient is known. On your"
        " own problem the smoothing by σ counts as bias too: take it small.",
    ),
)

VARIANCE = Experiment(
    name="variance",
    title="The variance of one pair's gradient of an episode, measured and by the formula",
    trial=f"{TRIALS}:variance",
    arms=(
        Arm("pes", "PES", estimator="pes", sigma=0.1),
        Arm("full-es", "full ES", estimator="full-es", sigma=0.1),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", truncations=2, parameters=2, repeats=3),
        "smoke": Scale(10, block=10, cost=3, truncations=8, parameters=5, repeats=12_000),
        "desk": Scale(20, cost=18, truncations=16, parameters=10, repeats=20_000),
        "full": Scale(40, block=1, cost=6400, truncations=64, parameters=50, repeats=50_000),
    },
    claims=(
        Claim(
            "variance",
            "The variance of PES is what the formula for linear losses says, within 3 %, when each truncation's "
            "loss depends on the parameters of all truncations before it.",
            metric="ratio_memory",
            method="pes",
            kind="bound",
            at_least=0.97,
            at_most=1.03,
            unit="measured / formula",
            source="section and appendix on the variance of PES",
            role="check",
        ),
        Claim(
            "variance-agreeing",
            "Where all truncations have the same gradient, PES has less variance than full ES, by more than a fifth.",
            metric="log_variance_agreeing",
            method="pes",
            baseline="full-es",
            margin=0.1,
            unit="decades of tr cov / ‖g‖²",
            source="section on the variance of PES: identical gradients",
            role="check",
        ),
        Claim(
            "variance-cancelling",
            "Where the truncations' gradients are independent, full ES has less variance than PES, by more than a "
            "fifth.",
            metric="log_variance_cancelling",
            method="full-es",
            baseline="pes",
            margin=0.1,
            unit="decades of tr cov / ‖g‖²",
            source="section on the variance of PES: independent gradients",
            role="check",
        ),
    ),
    deviations=(
        "The formula is ours, for antithetic pairs and any linear losses; the paper gives the two extreme cases.",
        "Full ES is compared per pair and episode, where it spends as many inner steps as PES but makes one update.",
    ),
)

CHARACTER_LSTM = Experiment(
    name="character-lstm",
    title="A character LSTM: the variance of PES against the number of truncations",
    trial=f"{TRIALS}:character_lstm",
    problem=f"{UNROLLS}:CharacterLSTM",
    data=("descriptions",),
    arms=(
        Arm("real", "real text", stride=1.0, randomness=0.0, sigma=1e-3),
        Arm("random", "random characters", stride=1.0, randomness=1.0, sigma=1e-3),
        Arm("repeated", "one character repeated", stride=0.0, randomness=0.0, sigma=1e-3),
    ),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"horizon": 4, "hidden": 2},
            truncation_lengths=(1, 2, 4),
            pairs=2,
            repeats=2,
        ),
        "smoke": Scale(
            10, block=10, cost=4, problem={"horizon": 64}, truncation_lengths=(1, 4, 16, 64), pairs=8, repeats=4
        ),
        "desk": Scale(
            16,
            block=8,
            cost=15,
            compilation="thorough",
            problem={"horizon": 500},
            truncation_lengths=(1, 5, 25, 125, 500),
            pairs=8,
            repeats=8,
        ),
        "full": Scale(
            20,
            block=1,
            cost=64_000,
            problem={"horizon": 1000},
            truncation_lengths=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
            pairs=500,
            repeats=50,
        ),
    },
    claims=(
        Claim(
            "character-lstm",
            "On real text the variance of PES grows more slowly with the number of truncations than on random "
            "characters.",
            metric="slope",
            method="real",
            baseline="random",
            unit="decades of variance a decade of truncations",
            source="experiment measuring variance with a small LSTM",
            role="stand-in",
        ),
        Claim(
            "character-lstm-random",
            "On random characters the variance of PES grows with the number of truncations.",
            metric="log_variance",
            against="log_truncations",
            method="random",
            kind="trend",
            better="higher",
            unit="decades of variance a decade of truncations",
            source="experiment measuring variance with a small LSTM",
            role="stand-in",
        ),
        Claim(
            "character-lstm-repeated",
            "With one character repeated for ever the variance of PES does not grow with the number of truncations:"
            " the slope is below 0.1.",
            metric="log_variance",
            against="log_truncations",
            method="repeated",
            kind="trend",
            at_most=0.1,
            unit="decades of variance a decade of truncations",
            source="experiment measuring variance with a small LSTM",
            role="stand-in",
        ),
    ),
    deviations=(
        "The text is scikit-learn's descriptions of its data sets (43,000 characters, 67 kinds) instead of Penn "
        "Treebank, which is not free; another sequence and another network for each seed, where the paper has one.",
        "The exact gradient comes from backpropagation, the paper's from ES with 5,000 particles.",
        "smoke reads 64 characters and desk 500 instead of 1,000; the variance is that of one pair, from 32 (smoke)"
        " or 64 pairs.",
    ),
    curves=(
        Curve(
            "log_variance",
            "log_truncations",
            "Variance of PES against the number of truncations",
            x_label="log10 truncations an episode",
            y_label="log10 (E‖ĝ − g‖² / ‖g‖²), one pair",
        ),
    ),
)
