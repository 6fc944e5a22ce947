"""Answers drawn: models of pairs in which one input has several right answers."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)}
GIVEN = "pairs.x, pairs.y, learning_rate=learning_rate"
ENTERS = "enters by make_model"
# The parts of the adversarial trainer and of imitation.
UNCONDITIONAL = ("Adversarial", "AdversarialIRL", "AdversarialImitation", "FiniteEnvironment", "GradientPenalty",
                 "InstanceNoise", "Judge", "VariationalBottleneck")  # fmt: skip

DISCIPLINE = Discipline(
    name="generative",
    title="Which model draws the best answers?",
    kind="pairs with several right answers",
    problem="pairs",
    area="generative",
    needs={
        "x": "inputs [n, ...], numbers",
        "y": "an answer to each [n, ...]: half of the pairs train, a quarter tunes, a quarter scores",
    },
    metrics=(
        Metric("score", "energy score of 16 draws for pairs kept apart, in deviations of y: lowest for the true law"),
        Metric("error", "mean absolute error of a draw, in deviations of y; the lowest where all draws are the median"),
        Metric("diversity", "mean absolute difference of two draws for one input, in deviations of y", "higher"),
    ),
    unit="passes",
    entrants=(
        Entrant(
            "latent-flow",
            f'make_model(jax.random.key(seed), "latent-flow", {GIVEN}, inner_rate=inner_rate)',
            RATES | {"inner_rate": (0.1, 0.5)},
            natural={"inner_rate": "both"},
        ),
        Entrant("regression", f'make_model(jax.random.key(seed), "regression", {GIVEN})', RATES),
        Entrant("cvae", f'make_model(jax.random.key(seed), "cvae", {GIVEN})', RATES),
        Entrant("cgan", f'make_model(jax.random.key(seed), "cgan", {GIVEN})', RATES),
        Entrant("mixture-density", f'make_model(jax.random.key(seed), "mixture-density", {GIVEN})', RATES),
        Entrant("best-of-k", f'make_model(jax.random.key(seed), "best-of-k", {GIVEN})', RATES),
        Entrant("diffusion", f'make_model(jax.random.key(seed), "diffusion", {GIVEN})', RATES),
    ),
    trial="laureate.racing.tracks.generative:trial",
    facts="laureate.racing.tracks.generative:facts",
    script="""
x, y = (jnp.asarray(part, jnp.float32) for part in (pairs.x, pairs.y))
x, y = ((part - part.mean(0)) / (part.std(0) + 1e-6) for part in (x, y))
model = {method}
train = jax.jit(lambda state: model.train(jax.random.key(1), x, y, state, num_steps=200, batch={batch}))
state, info = train(model.init())
print(model.sample(jax.random.key(2), state, x[:5], 16).shape)
""",
    absent={
        "LatentFlowRegressor": ENTERS, "Regression": ENTERS, "CVAE": ENTERS, "ConditionalGAN": ENTERS,
        "MixtureDensity": ENTERS, "BestOfK": ENTERS, "ConditionalDiffusion": ENTERS,
    } | dict.fromkeys(UNCONDITIONAL, "makes examples or rewards, not answers to an input"),
    notes=(
        "a pass is one network forward and backward over the batch: a step of cGML costs 62, of a cGAN 4, of a CVAE 2",
        "all have perceptrons of 64 units from make_model; inputs and answers are brought to deviation 1",
    ),
)  # fmt: skip
