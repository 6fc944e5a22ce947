"""Gradients through a choice of one of several options inside a model of one's own."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.003, 0.01, 0.03, 0.1)}
RELAXED = RATES | {"tau": (0.1, 0.5, 1.0)}
SOFT = "jax.nn.softmax((logits + jax.random.gumbel(key, logits.shape)) / tau)"
UNROLLS = ("AnalyticPES", "FullES", "GPES", "NoiseReuseES", "PersistentES", "RTRL", "TruncatedBackprop", "TruncatedES")

DISCIPLINE = Discipline(
    name="categorical-gradients",
    title="Which gradient through a choice trains best?",
    kind="a model with a choice inside",
    problem="model",
    area="gradients",
    needs={
        "theta0": "theta0(key): the parameters at first",
        "logits": "logits(params, inputs): of the options, [rows, ..., options]",
        "loss": "loss(params, z, inputs, targets): a number for each row, of one-hot choices z [rows, ..., options]",
        "inputs": "rows, at least 64; half of them train, a quarter tunes, a quarter scores",
        "targets": "one for each row",
    },
    metrics=(
        Metric("loss", "mean loss of other rows with choices drawn", "lower"),
        Metric("greedy", "the same with the likeliest option", "lower"),
    ),
    unit="rows of which the loss is computed",
    entrants=(
        Entrant("gumbel-rao", "lambda key, f, logits: f(gumbel_rao(key, logits, tau, 10))", RELAXED),
        Entrant("st-gumbel-softmax", "lambda key, f, logits: f(st_gumbel_softmax(key, logits, tau))", RELAXED),
        Entrant("gumbel-softmax", f"lambda key, f, logits: f({SOFT})", RELAXED),
        Entrant("straight-through", "lambda key, f, logits: f(straight_through(key, logits))", RATES),
        Entrant("zgr", "lambda key, f, logits: f(zgr(key, logits))", RATES),
        Entrant(
            "rloo",
            "lambda key, f, logits: rloo_loss(key, f, logits, samples)",
            RATES | {"samples": (2, 4, 8)},
            natural={"samples": "low"},
        ),
        Entrant("no-gradient", "lambda key, f, logits: f(jax.lax.stop_gradient(straight_through(key, logits)))", RATES),
    ),
    trial="laureate.racing.tracks.categorical_gradients:trial",
    facts="laureate.racing.tracks.categorical_gradients:facts",
    script="""
estimate = {method}
params = model.theta0(jax.random.key(0))
adam = optax.adam({learning_rate})
state = adam.init(params)

@jax.jit
def update(key, params, state):
    def objective(params):
        follows = lambda z: model.loss(params, z, model.inputs, model.targets)
        return estimate(key, follows, model.logits(params, model.inputs)).mean()

    value, gradient = jax.value_and_grad(objective)(params)
    updates, state = adam.update(gradient, state)
    return optax.apply_updates(params, updates), state, value

for key in jax.random.split(jax.random.key(1), 100):
    params, state, value = update(key, params, state)
print(value)
""",
    settings={"batch": 32, "draws": 16},
    absent=dict.fromkeys(UNROLLS, "estimates gradients of unrolls")
    | {"Sharded": "spreads an estimator over devices", "conditional_gumbel": "draws the noise inside gumbel-rao"},
    notes=(
        "gumbel-softmax trains on mixtures of options and is scored with options; all others see one-hot choices",
        "ten samples of gumbel-rao cost no loss, and rloo pays one for each of its samples",
    ),
)
