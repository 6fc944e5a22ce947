"""Classes of unequal frequency: which loss, correction or resampling is right about the rare ones, too."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.001, 0.003, 0.01, 0.03)}
TAUS = RATES | {"tau": (0.5, 1.0, 1.5)}
ANY = "lambda key: jax.random.randint(key, (batch,), 0, labels.shape[0])"


def _trained(loss: str, rows: str = ANY, corrected: str = "logits") -> str:
    """Which rows a step sees, its loss, and what is done to the logits that predict."""
    return f"lambda labels, prior: ({rows}, lambda logits, y: {loss}, lambda logits: {corrected})"


PLAIN = "cross_entropy(logits, y, prior)"

DISCIPLINE = Discipline(
    name="imbalance",
    title="What is right about rare classes, too?",
    kind="rows with rare classes",
    problem="rows",
    area="imbalance",
    needs={
        "features": "[rows, columns], numbers",
        "labels": "their classes, integers from 0; at least 8 rows of each",
    },
    metrics=(
        Metric("error", "balanced error: the mean of the classes' shares of wrong answers", "lower", (0.0,)),
        Metric("worst", "share of wrong answers in the worst class", "lower", (0.0, 1.0)),
        Metric("plain", "share of wrong answers in all rows, in which rare classes hardly count", "lower", (0.0,)),
    ),
    unit="rows looked at",
    entrants=(
        Entrant("logit-adjusted", _trained("logit_adjusted_cross_entropy(logits, y, prior, tau=tau)"), TAUS),
        Entrant("adjusted-afterwards", _trained(PLAIN, corrected="adjust(logits, prior, tau=tau)"), TAUS),
        Entrant("weighted", _trained("weighted_cross_entropy(logits, y, prior, tau=tau)"), TAUS),
        Entrant("resampled", _trained(PLAIN, "lambda key: balanced_indices(key, labels, classes, batch)"), RATES),
        Entrant("vector-scaling", _trained("vector_scaling_cross_entropy(logits, y, prior, gamma=gamma)"),
                RATES | {"gamma": (0.05, 0.2, 0.5)}),
        Entrant("label-margin", _trained("label_margin_cross_entropy(logits, y, prior, margin=margin)"),
                RATES | {"margin": (1.0, 3.0, 10.0)}),
        Entrant("equalised", _trained("equalised_cross_entropy(logits, y, prior, tau=tau)"), TAUS),
        Entrant("focal", _trained("focal_cross_entropy(logits, y, prior, tau=gamma)"),
                RATES | {"gamma": (1.0, 2.0, 4.0)}),
        Entrant("cross-entropy", _trained(PLAIN), RATES),
    ),
    trial="laureate.racing.tracks.imbalance:trial",
    facts="laureate.racing.tracks.imbalance:facts",
    script="""
features, labels = jnp.asarray(rows.features, jnp.float32), jnp.asarray(rows.labels)
features = (features - features.mean(0)) / (features.std(0) + 1e-6)
draw, loss, corrected = ({method})(labels, log_prior(class_counts(labels, {classes})))
adam = optax.adam({learning_rate})
keys = jax.random.split(jax.random.key(0))
params = [jax.random.normal(keys[0], (features.shape[1], 32)) / features.shape[1] ** 0.5, jnp.zeros(32)]
params += [jax.random.normal(keys[1], (32, {classes})) / 32**0.5, jnp.zeros({classes})]
network = lambda params, x: jax.nn.relu(x @ params[0] + params[1]) @ params[2] + params[3]

@jax.jit
def update(key, params, state):
    rows = draw(key)
    slope = jax.grad(lambda p: loss(network(p, features[rows]), labels[rows]).mean())(params)
    changes, state = adam.update(slope, state)
    return optax.apply_updates(params, changes), state

state = adam.init(params)
for key in jax.random.split(jax.random.key(1), 1000):
    params, state = update(key, params, state)
found = corrected(network(params, features)).argmax(axis=1)
print(class_errors(found, labels, {classes}))
""",
    absent={"LogitAdjusted": "scikit-learn's form of adjusted-afterwards"},
    notes=(
        "all train a perceptron of one hidden layer of 32 units on inputs brought to deviation 1",
        "a quarter of each class tunes; of the rest a seed deals out two thirds to train and one to score",
    ),
)  # fmt: skip
