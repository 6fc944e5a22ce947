"""Pieces of DreamerV2 alone: the balanced divergence, straight-through draws, what a prior imagines, and aggregates."""

from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale

__all__ = ["AGGREGATION", "BALANCE", "CROSSROADS", "STRAIGHT_THROUGH"]

TRIALS = "laureate.papers.dreamer_v2.trials_alone"
PILOTS = (
    "Known when this was declared: the method note's pilots (gradients of the balanced divergence 0.8 and 0.2; a "
    "cosine of 0.896 for one quadratic function; on a world with eight branches, three seeds, 17 to 51 % of pictures "
    "sharp with one-hot latents and 9 to 13 % with normal ones, the balance weak)."
)

BALANCE = Experiment(
    "balance",
    title="What does balancing do to the gradients?",
    trial=f"{TRIALS}:balance",
    arms=(
        Arm("balanced", "balanced, α = 0.8", gradient="balanced", alpha=0.8),
        Arm("plain", "the divergence itself", gradient="plain", alpha=0.8),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", rows=2, variables=2, classes=3),
        "smoke": Scale(12, block=12, cost=2.0, rows=16, variables=8, classes=8),
        "desk": Scale(12, block=12, cost=3.0, rows=50, variables=32, classes=32),
    },
    claims=(
        Claim(
            "kl-balance-gradient",
            "Balancing multiplies the gradient for the prior by α and that for the posterior by 1 − α, and changes "
            "nothing else: to one part in 100,000.",
            metric="log10_error",
            method="balanced",
            kind="bound",
            at_most=-5.0,
            trivial="plain",
            unit="log10 of the relative error of both gradients",
            source="algorithm 2",
            role="check",
        ),
    ),
    deviations=("Logits are normal random numbers, one draw a seed; in float32.", PILOTS),
)

STRAIGHT_THROUGH = Experiment(
    "straight-through",
    title="How biased are straight-through gradients?",
    trial=f"{TRIALS}:straight_through",
    arms=(
        Arm("quadratic", "straight-through, a quadratic function", function="quadratic", estimator="straight-through"),
        Arm("linear", "straight-through, a linear function", function="linear", estimator="straight-through"),
        Arm("reinforce", "REINFORCE, the same quadratic function", function="quadratic", estimator="reinforce"),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", variables=2, classes=2),
        "smoke": Scale(20, block=20, cost=4.0, variables=3, classes=4),
        "desk": Scale(20, block=20, cost=6.0, variables=4, classes=5),
    },
    claims=(
        Claim(
            "straight-through-bias",
            "For a function that is quadratic in the draws the mean straight-through gradient points elsewhere than "
            "the true one: their cosine is below 0.97.",
            metric="cosine",
            method="quadratic",
            kind="bound",
            better="lower",
            at_most=0.97,
            trivial="linear",
            unit="cosine between the mean estimate and the exact gradient",
            source="section 2: straight-through gradients are biased and were chosen for their simplicity",
            role="check",
        ),
        Claim(
            "straight-through-linear",
            "For a linear function it is the true gradient: to one part in 100,000.",
            metric="log10_bias",
            method="linear",
            kind="bound",
            at_most=-5.0,
            trivial="quadratic",
            unit="log10 of the relative error of the mean estimate",
            source="the same",
            role="check",
        ),
    ),
    deviations=(
        "Functions of a few choices with normal coefficients, drawn for every seed, so that the exact gradient is a "
        "sum over all outcomes, and so is the mean of the estimates: no noise lowers a cosine, and the arm with "
        "REINFORCE, which has no bias, must have one of 1.",
        PILOTS,
    ),
    over="data sets",
)

CROSSROADS = Experiment(
    "crossroads",
    title="Can a prior imagine one of eight futures, and not their mean?",
    trial=f"{TRIALS}:crossroads",
    problem="laureate.problems.small_worlds:Crossroads",
    accepts=("draw", "ends", "branches", "last_middle"),
    arms=(
        Arm("one-hot", "one-hot latents, α = 0.8", latent="one-hot", alpha=0.8, blind=0.0),
        Arm("one-hot-equal", "one-hot latents, α = 0.5", latent="one-hot", alpha=0.5, blind=0.0),
        Arm("normal", "normal latents, α = 0.8", latent="normal", alpha=0.8, blind=0.0),
        Arm("blind", "one-hot latents drawn evenly", latent="one-hot", alpha=0.8, blind=1.0),
    ),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"branches": 3},
            variables=2,
            classes=2,
            normals=2,
            memory=4,
            width=4,
            rate=0.003,
            length=4,
            batch=2,
            pool=2,
            updates=2,
            draws=4,
            weights=(0.01, 0.1),
        ),
        "smoke": Scale(
            10,
            block=10,
            cost=12.0,
            problem={"branches": 8},
            variables=4,
            classes=4,
            normals=8,
            memory=16,
            width=32,
            rate=0.003,
            length=6,
            batch=16,
            pool=16,
            updates=200,
            draws=32,
            weights=(0.001, 0.01, 0.1),
        ),
        "desk": Scale(
            12,
            block=12,
            cost=60.0,
            problem={"branches": 8},
            variables=4,
            classes=4,
            normals=8,
            memory=16,
            width=32,
            rate=0.003,
            length=6,
            batch=16,
            pool=64,
            updates=500,
            draws=64,
            weights=(0.0002, 0.001, 0.005, 0.025, 0.125, 0.6),
        ),
    },
    claims=(
        Claim(
            "multimodal-prior",
            "One-hot latents imagine more of the true branches, sharply and as often as they come, than normal "
            "latents: the overlap with the true law is larger by more than 0.1.",
            metric="overlap",
            method="one-hot",
            baseline="normal",
            better="higher",
            margin=0.1,
            trivial="blind",
            unit="overlap of imagined and true futures, 0 to 1",
            source="section 2: why discrete latents might help; table 2",
            role="stand-in",
            reported="clipped record mean 0.25 with discrete, 0.19 with Gaussian latents; 42 of 55 games better",
        ),
        Claim(
            "multimodal-likelihood",
            "By the likelihood of what comes next, which asks for no sharp pictures, one-hot latents are better than "
            "normal ones too: by more than 0.05.",
            metric="log_score",
            method="one-hot",
            baseline="normal",
            better="higher",
            margin=0.05,
            trivial="blind",
            unit="nats a picture, one step ahead without looking",
            source="the same",
            role="extension",
        ),
        Claim(
            "kl-balancing",
            "With a balance of 0.8 the prior says what comes next better than with 0.5: the open-loop log-likelihood "
            "is larger by more than 0.05.",
            metric="log_score",
            method="one-hot",
            baseline="one-hot-equal",
            better="higher",
            margin=0.05,
            trivial="blind",
            unit="nats a picture, one step ahead without looking",
            source="section 2, KL balancing; table 2",
            role="stand-in",
            reported="clipped record mean 0.25 with, 0.16 without balancing; 44 of 55 games better",
        ),
    ),
    guards=(Guard("grid", "weight", grid="weights"), Guard("effective", "finite", low=1.0)),
    deviations=(
        "A world of 3 × 3 pixels stands for 55 games of Atari, and what a prior draws one step ahead for an agent's "
        "score. No actions, no rewards, no agent. Networks of 16 and 32 units, four choices among four (16 joint "
        "codes a pair) against eight normal numbers, Adam at 0.003.",
        "The grid is one of β (1 − α), what pulls the posterior towards the prior, chosen for every arm and seed by "
        "the open-loop likelihood of draws that are not those measured. So a balance of 0.8 and one of 0.5 are "
        "compared at equal pulls on the posterior, and differ in that on the prior: 4 times as strong against as "
        "strong. How well pictures are reconstructed is reported beside it, and not held fixed.",
        "Overlap counts pictures within a squared distance of 0.1 of a true one, which suits draws that are sharp: "
        "overlaps within 0.05 and 0.2 are reported, and the likelihood has a claim of its own.",
        "The open-loop likelihood is of the mixture of the drawn pictures, each blurred by a variance of 0.1.",
        "Seen afterwards: normal latents did no better than one-hot ones drawn evenly (−1.74 and −1.72 nats; overlap "
        "0.03 and 0.08): the difference may be one of training, not of the law.",
        PILOTS,
    ),
)

AGGREGATION = Experiment(
    "aggregation",
    title="How much does one game decide a score over 55?",
    trial=f"{TRIALS}:aggregation",
    problem="laureate.problems.score_tables:ScoreTables",
    accepts=("draw",),
    arms=(
        Arm("clipped-record-mean", how="clipped-record-mean", reference="record"),
        Arm("record-mean", how="record-mean", reference="record"),
        Arm("gamer-mean", how="gamer-mean", reference="gamer"),
        Arm("gamer-median", how="gamer-median", reference="gamer"),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", problem={"games": 4}),
        "smoke": Scale(20, block=20, cost=4.0, problem={"games": 55}),
        "desk": Scale(40, block=40, cost=5.0, problem={"games": 55}),
    },
    claims=(
        Claim(
            "aggregation",
            "Leaving one game out changes the clipped record mean by a smaller share than the gamer mean: by more than "
            "0.1 of the whole.",
            metric="influence",
            method="clipped-record-mean",
            baseline="gamer-mean",
            better="lower",
            margin=0.1,
            trivial="record-mean",
            unit="largest relative change when one game is left out",
            source="section 3, on aggregating scores; table 1",
            role="check",
            reported="gamer median 2.15, gamer mean 11.33, record mean 0.44, clipped record mean 0.28",
        ),
    ),
    deviations=(
        "The tables are drawn, log-normal with the gamer median and the gamer mean that the paper reports; the "
        "records' law is ours. The authors' own scores are not part of this package: the note's count on them (one "
        "game of 55, James Bond, decides the gamer mean) was known when this was declared.",
        "A heavy tail makes this nearly certain: it asks how much, at what the paper reports.",
    ),
    over="data sets",
)
