"""Gumbel-Rao: errors against gradients that are known, how they fall, and a categorical autoencoder."""

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Role, Scale

__all__ = ["GRADIENT", "SAMPLES", "TEMPERATURE", "VAE"]

TRIALS = "laureate.papers.gumbel_rao.trials"
PILOTS = (
    "The method note's pilots were known when this was declared: there plain straight-through had the lowest error of "
    "all and the worst bound."
)
TOY = (
    "One choice of ten options and a random function of 32 tanh units, logits of spread 0.5, so that the gradient is "
    "known by enumeration; errors are relative to its square, and 1 is the error of no gradient. We could read the "
    "paper's abstract alone, no table and no code of its authors."
)
TAUS = {"cold": 0.1, "middle": 0.5, "warm": 1.0}


def relaxed(name: str, label: str, estimator: str, samples: int) -> tuple[Arm, ...]:
    """An estimator at three temperatures."""
    return tuple(
        Arm(f"{name}-{word}", f"{label}, τ = {tau:g}", estimator=estimator, temperature=tau, samples=samples)
        for word, tau in TAUS.items()
    )


def lower(name: str, words: str, method: str, baseline: str, role: Role = "stand-in", **more) -> Claim:
    """The error of one arm is lower than that of another, and than that of no gradient."""
    more = {"source": "abstract: lower mean squared error", "trivial": "zero", **more}
    unit = "log of the error relative to the exact gradient"
    return Claim(name, words, metric="log_error", method=method, baseline=baseline, unit=unit, role=role, **more)


GRADIENT = Experiment(
    "gradient",
    title="How far is the gradient of one draw from the exact one?",
    trial=f"{TRIALS}:gradient",
    arms=(
        *relaxed("gr-10", "Gumbel-Rao, 10 samples", "gumbel-rao", 10),
        *relaxed("gr-100", "Gumbel-Rao, 100 samples", "gumbel-rao", 100),
        *relaxed("st-gs", "straight-through Gumbel-softmax", "st-gumbel", 1),
        Arm("zgr", "limit of τ → 0", estimator="zgr", temperature=1.0, samples=1),
        Arm("st", "plain straight-through", estimator="straight-through", temperature=1.0, samples=1),
        Arm("rloo", "leave-one-out, two draws", estimator="rloo", temperature=1.0, samples=1),
        Arm("total", "derivative through the draw (wrong)", estimator="total-derivative", temperature=0.5, samples=10),
        Arm("zero", "no gradient", estimator="zero", temperature=1.0, samples=1),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", options=3, spread=0.5, repeats=4),
        "smoke": Scale(20, block=20, cost=7.0, compilation="lightest", options=10, spread=0.5, repeats=300),
        "desk": Scale(60, block=20, cost=60.0, options=10, spread=0.5, repeats=4000),
        "full": Scale(200, block=20, cost=1200.0, options=10, spread=0.5, repeats=20000),
    },
    claims=(
        lower(
            "error-to-exact",
            "at τ = 0.5 Gumbel-Rao with ten samples has a lower mean squared error than straight-through "
            "Gumbel-softmax.",
            "gr-10-middle",
            "st-gs-middle",
        ),
        lower("error-to-exact-cold", "so it has at τ = 0.1.", "gr-10-cold", "st-gs-cold"),
        lower("error-to-exact-warm", "so it has at τ = 1.", "gr-10-warm", "st-gs-warm"),
        lower(
            "plain-lowest",
            "plain straight-through has a lower error than Gumbel-Rao with a hundred samples at τ = 1.",
            "st",
            "gr-100-warm",
            role="extension",
            source="a reviewer's question: the simplest rival",
        ),
        lower(
            "limit",
            "the limit of τ → 0, which needs no samples, has a lower error than ten samples at τ = 0.1.",
            "zgr",
            "gr-10-cold",
            role="extension",
            source="a reviewer's question: is K needed at all?",
        ),
        lower(
            "against-unbiased",
            "at τ = 0.5 ten samples have a lower error than the unbiased leave-one-out estimate from two draws.",
            "gr-10-middle",
            "rloo",
            role="extension",
            source="a reviewer's question",
        ),
        Claim(
            "total-derivative",
            "taking the derivative through the draw as well, as the preprint can be read, has more squared bias: at "
            "τ = 0.5 by more than 0.1 of the exact gradient's square.",
            metric="bias2",
            method="gr-10-middle",
            baseline="total",
            margin=0.1,
            unit="share of the exact gradient's square",
            source="two texts of the appendix differ, as public ports report",
            role="extension",
        ),
        Claim(
            "same-mean",
            "the mean gradient of ten samples is that of straight-through Gumbel-softmax: at τ = 0.5 its part along "
            "the exact gradient differs by less than 0.03.",
            metric="along",
            method="gr-10-middle",
            baseline="st-gs-middle",
            kind="equal",
            margin=0.03,
            unit="share of the exact gradient",
            source="Rao-Blackwell",
            role="check",
            reported="equal",
        ),
    ),
    deviations=(
        TOY,
        PILOTS,
        "That averaging raises no error is a theorem; how much it lowers it is measured. same-mean looks along the "
        "exact gradient alone.",
    ),
    over="data sets",
)

SAMPLES = Experiment(
    "samples",
    title="Does the variance fall with the number of samples?",
    trial=f"{TRIALS}:samples",
    arms=tuple(Arm(word, f"τ = {tau:g}", temperature=tau) for word, tau in TAUS.items()),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", options=3, spread=0.5, repeats=4, samples=(1, 2)),
        "smoke": Scale(
            12, block=12, cost=4.0, compilation="lightest", options=10, spread=0.5, repeats=300, samples=(1, 10, 100)
        ),
        "desk": Scale(30, block=30, cost=10.0, options=10, spread=0.5, repeats=1000, samples=(1, 3, 10, 30, 100)),
        "full": Scale(100, block=20, cost=3600.0, options=10, spread=0.5, repeats=10000, samples=(1, 10, 100, 1000)),
    },
    claims=tuple(
        Claim(
            f"variance-trend{suffix}",
            f"at τ = {TAUS[word]:g} the logarithm of the variance falls with that of the number of samples: slope "
            "below −0.05.",
            metric="log_variances",
            against="log_samples",
            method=word,
            kind="trend",
            better="lower",
            margin=0.05,
            unit="slope of logarithms",
            source="abstract: variance is reduced without more function evaluations",
            role="stand-in",
        )
        for suffix, word in (("", "middle"), ("-cold", "cold"), ("-warm", "warm"))
    ),
    curves=(
        Curve("log_variances", "log_samples", "Variance against samples", "ln of samples", "ln of relative variance"),
    ),
    deviations=(TOY, PILOTS, "That the variance falls is a theorem; how steeply is measured."),
    over="data sets",
)

TEMPERATURE = Experiment(
    "temperature",
    title="At which temperatures does averaging pay?",
    trial=f"{TRIALS}:temperature",
    arms=(Arm("both", "hundred samples beside one"),),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", options=3, spread=0.5, repeats=4, samples=2, temperatures=(0.5, 1.0)
        ),
        "smoke": Scale(
            12,
            block=12,
            cost=3.0,
            compilation="lightest",
            options=10,
            spread=0.5,
            repeats=300,
            samples=100,
            temperatures=(0.1, 0.3, 1.0),
        ),
        "desk": Scale(
            30,
            block=30,
            cost=6.0,
            options=10,
            spread=0.5,
            repeats=1000,
            samples=100,
            temperatures=(0.1, 0.2, 0.5, 1.0, 2.0),
        ),
        "full": Scale(
            100,
            block=20,
            cost=3600.0,
            options=10,
            spread=0.5,
            repeats=10000,
            samples=1000,
            temperatures=(0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
        ),
    },
    claims=(
        Claim(
            "temperature",
            "the lower the temperature, the more of the variance is removed: the slope of the log of the variances' "
            "ratio against the log of the temperature lies below −0.5.",
            metric="log_ratio",
            against="log_temperature",
            method="both",
            kind="trend",
            better="lower",
            margin=0.5,
            unit="slope of logarithms",
            source="the paper's experiments as remembered by the method note; unverified",
            role="stand-in",
        ),
    ),
    curves=(Curve("log_ratio", "log_temperature", "Variance removed", "ln of τ", "ln of the variances' ratio"),),
    deviations=(TOY, PILOTS),
    over="data sets",
)

RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
COLD_TO_WARM = (0.03, 0.1, 0.5, 1.0)
TUNED = ("categorical-vae", "vae-plain", "vae-limit", "vae-unbiased", "vae-exact")  # at each arm's best


def gain(name: str, words: str, metric: str, method: str, baseline: str, **more) -> Claim:
    """The bound of one arm is higher than that of another."""
    more = {"source": "a reviewer's question", "role": "extension", "trivial": "zero", **more}
    return Claim(
        name, words, metric=metric, method=method, baseline=baseline, better="higher", unit="nats a digit", **more
    )


VAE = Experiment(
    "vae",
    title="Does a categorical autoencoder learn better?",
    trial=f"{TRIALS}:vae",
    problem="laureate.problems.spins:SpinImages",
    accepts=("spins", "test_spins"),
    arms=(
        Arm("gr-10", "Gumbel-Rao, 10 samples", estimator="gumbel-rao", samples=10),
        Arm("st-gs", "straight-through Gumbel-softmax", estimator="st-gumbel", samples=1),
        Arm("zgr", "limit of τ → 0", estimator="zgr", samples=1),
        Arm("st", "plain straight-through", estimator="straight-through", samples=1),
        Arm("rloo", "leave-one-out, two draws", estimator="rloo", samples=1),
        Arm("exact", "exact gradient", estimator="exact", samples=1),
        Arm("zero", "no gradient for the choice", estimator="zero", samples=1),
    ),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"train": 40, "test": 10},
            variables=1,
            options=3,
            width=4,
            batch=4,
            steps=2,
            rates=RATES,
            temperatures=COLD_TO_WARM,
            worst=100.0,
        ),
        "smoke": Scale(
            10,
            cost=16.0,
            compilation="lightest",
            problem={"train": 1400, "test": 359},
            variables=2,
            options=5,
            width=24,
            batch=32,
            steps=100,
            rates=RATES,
            temperatures=COLD_TO_WARM,
            worst=100.0,
        ),
        "desk": Scale(
            12,
            block=6,
            cost=125.0,
            problem={"train": 1400, "test": 359},
            variables=2,
            options=10,
            width=48,
            batch=32,
            steps=800,
            rates=RATES,
            temperatures=COLD_TO_WARM,
            worst=100.0,
        ),
        "full": Scale(
            20,
            block=4,
            cost=14400.0,
            problem={"data": "mnist-5k", "train": 4000, "test": 1000},
            variables=3,
            options=16,
            width=200,
            batch=64,
            steps=20000,
            rates=RATES,
            temperatures=COLD_TO_WARM,
            worst=500.0,
        ),
    },
    claims=(
        gain(
            "categorical-vae",
            "with rate and temperature chosen for each on other digits, Gumbel-Rao with ten samples reaches a higher "
            "bound on new ones than straight-through Gumbel-softmax.",
            "bound",
            "gr-10",
            "st-gs",
            source="abstract: better results in latent variable models",
            role="stand-in",
        ),
        gain(
            "categorical-vae-cold",
            "at τ = 0.1, the rate alone chosen, it does too.",
            "bound_cold",
            "gr-10",
            "st-gs",
            source="abstract: better results in latent variable models",
            role="stand-in",
        ),
        gain(
            "categorical-vae-warm",
            "and at τ = 1.",
            "bound_warm",
            "gr-10",
            "st-gs",
            source="abstract: better results in latent variable models",
            role="stand-in",
        ),
        gain("vae-plain", "it is higher than plain straight-through's.", "bound", "gr-10", "st"),
        gain("vae-limit", "it is higher than that of the limit, which needs no samples.", "bound", "gr-10", "zgr"),
        gain("vae-unbiased", "and than leave-one-out's, which decodes twice.", "bound", "gr-10", "rloo"),
        gain("vae-exact", "the exact gradient reaches a higher one than ten samples.", "bound", "exact", "gr-10"),
    ),
    guards=(
        Guard("limit", "bound", low=-100.0),
        Guard("limit", "bound_cold", low=-100.0),
        Guard("limit", "bound_warm", low=-100.0),
        Guard("grid", "rate", grid="rates", claims=TUNED),
        Guard("grid", "rate_cold", grid="rates", claims=("categorical-vae-cold",)),
        Guard("grid", "rate_warm", grid="rates", claims=("categorical-vae-warm",)),
        Guard("grid", "temperature", grid="temperatures", arms=("gr-10", "st-gs"), claims=TUNED),
    ),
    curves=(Curve("bounds", "temperatures", "Bound against temperature", "τ", "nats a digit", log_x=True),),
    deviations=(
        "scikit-learn's digits as black and white pixels, two variables of ten options, one hidden layer, so that the "
        "bound and the exact gradient are known by enumeration; the paper trains larger models on MNIST, which we know "
        "by its abstract alone. Rates are chosen from five for every arm, and temperatures from four where there is "
        "one, by a seventh of the training rows.",
        "The part of the bound that needs no draw, the divergence from the prior, is exact in all arms.",
        PILOTS + " They had one rate for all.",
        "All arms have the same number of steps, not the same time: ten samples cost more a step than one, and two "
        "draws decode twice. At desk straight-through Gumbel-softmax chose the highest temperature tried, 1, in four "
        "of twelve seeds.",
    ),
    data={"tiny": ("digits",), "smoke": ("digits",), "desk": ("digits",), "full": ("mnist-5k",)},
)
