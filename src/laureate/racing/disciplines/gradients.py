"""Gradient estimators on a long unroll."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.003, 0.03, 0.3, 3.0)}
NOISE = RATES | {"sigma": (0.03, 0.1, 0.3)}
PAIRS = "unroll, num_pairs=num_pairs, truncation=truncation, horizon=horizon, sigma=sigma"

DISCIPLINE = Discipline(
    name="gradients",
    title="Which gradient estimator trains best?",
    kind="an unroll",
    problem="unroll",
    area="gradients",
    needs={
        "init": "init(key, theta): the first state of an episode",
        "step": "step(key, theta, state): the next state and its loss",
        "theta0": "theta0(key): where training starts",
        "horizon": "T, inner steps of an episode, an integer",
    },
    offers={"truncation": "K, inner steps between updates; by default a tenth of the horizon, and a divisor of it"},
    metrics=(Metric("loss", "mean loss a step of whole, fresh episodes after training", "lower"),),
    unit="inner steps",
    entrants=(
        Entrant("pes", f"PersistentES({PAIRS})", NOISE),
        Entrant("noise-reuse-es", f"NoiseReuseES({PAIRS}, phase='random')", NOISE),
        Entrant("gpes", f"GPES({PAIRS}, noise_steps=middle)", NOISE),
        Entrant("pes-analytic", f"AnalyticPES({PAIRS})", NOISE),
        Entrant("full-es", "FullES(unroll, num_pairs=num_pairs, horizon=horizon, sigma=sigma)", NOISE),
        Entrant("truncated-es", f"TruncatedES({PAIRS})", NOISE),
        Entrant("truncated-backprop", "TruncatedBackprop(unroll, truncation=truncation, horizon=horizon)", RATES),
        Entrant("full-backprop", "TruncatedBackprop(unroll, truncation=horizon, horizon=horizon)", RATES),
        Entrant("rtrl", "RTRL(unroll, truncation=truncation, horizon=horizon)", RATES),
    ),
    trial="laureate.racing.tracks.gradients:trial",
    facts="laureate.racing.tracks.gradients:facts",
    script="""
estimator = {method}
theta = unroll.theta0(jax.random.key(0))
theta, history = train(jax.random.key(1), estimator, optax.adam({learning_rate}), theta, num_updates=100)
print(full_unroll_loss(jax.random.key(2), unroll, theta, {horizon}) / {horizon})
""",
    settings={"episodes": 8},
    absent={"Sharded": "spreads an estimator over devices; the estimate is the same"},
    notes=("an inner step that is differentiated counts as one: the seconds tell what it costs besides",),
)
