"""Self-supervision: methods that learn features from pairs of views, judged by labels that they never see."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.01, 0.03, 0.1, 0.3)}
SLOW_RATES = {"learning_rate": (0.001, 0.003, 0.01, 0.03)}
DESCENT = "optax.sgd(learning_rate, momentum=0.9), apply=views.apply"

DISCIPLINE = Discipline(
    name="representation",
    title="Which self-supervision learns the best features?",
    kind="pairs of views",
    problem="views",
    area="representation",
    needs={
        "dim": "length of a network's output, an integer",
        "model0": "model0(key): a network at its start",
        "views": "views(key, n): two views of n random examples",
        "apply": "apply(model, batch): the network's outputs, [batch, dim]",
        "features": "features(model, examples): what is judged, [examples, any]",
        "images": "examples whose labels the judge may know; training sees views of them without",
        "labels": "their labels, integers from 0",
        "test_images": "examples to be judged by: the first half tunes, the second scores",
        "test_labels": "their labels",
    },
    metrics=(
        Metric("error", "share of test examples that the nearest neighbours' labels classify wrongly", limits=(0.0,)),
        Metric("rank", "effective rank of the features: 1 where they have collapsed", "higher"),
    ),
    unit="views",
    entrants=(
        Entrant("direct-pred", f"Siamese(DirectPred(dim), {DESCENT}, momentum=0.99)", RATES),
        Entrant("direct-copy", f"Siamese(DirectCopy(dim), {DESCENT}, momentum=0.99)", RATES),
        Entrant("direct-set", f"Siamese(DirectSet(dim, power=1.0), {DESCENT}, momentum=0.99)", RATES),
        Entrant("byol", f"Siamese(TwoLayer(dim, hidden=4 * dim), {DESCENT}, momentum=0.99)", RATES),
        Entrant("byol-linear", f"Siamese(Linear(dim), {DESCENT}, momentum=0.99)", RATES),
        Entrant("simsiam", f"Siamese(TwoLayer(dim, hidden=4 * dim), {DESCENT}, momentum=None)", RATES),
        Entrant("no-predictor", f"Siamese(Identity(dim), {DESCENT}, momentum=0.99)", RATES),
        Entrant("simclr", f"JointEmbedding(SimCLR(), {DESCENT})", RATES),
        Entrant("barlow-twins", f"JointEmbedding(BarlowTwins(), {DESCENT})", SLOW_RATES),
        Entrant("vicreg", f"JointEmbedding(VICReg(), {DESCENT})", SLOW_RATES),
        Entrant("untrained", "JointEmbedding(lambda one, other: 0.0 * one.sum(), optax.sgd(0.0), apply=views.apply)"),
    ),
    trial="laureate.racing.tracks.representation:trial",
    facts="laureate.racing.tracks.representation:facts",
    script="""
trainer = {method}
state = trainer.init(jax.random.key(0), views.model0(jax.random.key(1)))
step = jax.jit(lambda state, key: trainer.step(state, *views.views(key, {batch})))
for index in range(20):
    state, info = step(state, jax.random.key(index))
print(views.features(state.online, views.test_images).shape)
""",
    absent={
        "LinearDynamics": "the theory's flow of matrices, which trains no network",
        "ModeDynamics": "the theory's equations of one mode",
        "EncoderFeatures": "scikit-learn's form of a trained network",
    },
    notes=(
        "a step of batch n costs 2n views; batches are the same for all entrants of a seed",
        "seeds train anew and are judged by the same test examples: chance in those is not in the intervals",
    ),
)  # fmt: skip
