"""Labels that must be paid for: how good is a model, judged from as few as can be?"""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

SHARP = {"beta": (0.25, 0.5, 1.0, 2.0)}

DISCIPLINE = Discipline(
    name="active",
    title="Which choice of labels estimates a model's loss best?",
    kind="a pool with losses",
    problem="pool",
    area="active",
    needs={
        "losses": "[n >= 80] of the model at points whose labels you have: half tunes, half scores",
        "scores": "[n] >= 0, known without labels, by which points are chosen: a guess of the loss",
    },
    offers={"num_labels": "how many labels can be paid for; by default a twentieth of the pool"},
    metrics=(
        Metric("error", "root mean square error of the estimated mean loss, over the true one"),
        Metric("bias", "how far the mean of the estimates is from it, over the true one"),
        Metric("covered", "share of sessions in which two standard errors reach the truth", "higher"),
    ),
    unit="labels",
    entrants=(
        Entrant("lure", "(Acquisition(beta), lure_risk)", SHARP),
        Entrant("pure", "(Acquisition(beta), pure_risk)", SHARP),
        Entrant("importance", "(Acquisition(beta), importance_risk)", SHARP),
        Entrant("chosen-uncorrected", "(Acquisition(beta), plain_risk)", SHARP),
        Entrant("random", "(Acquisition(0.0), plain_risk)"),
    ),
    trial="laureate.racing.tracks.active:trial",
    facts="laureate.racing.tracks.active:facts",
    script="""
acquisition, risk = {method}
scores = jnp.asarray(pool.scores, jnp.float32)

def pick(state, key):
    index, state, info = acquisition.step(key, scores, state)
    return state, (index, info.q)

keys = jax.random.split(jax.random.key(0), {budget})
_, (picks, q) = jax.jit(lambda keys: jax.lax.scan(pick, acquisition.init(len(scores)), keys))(keys)
print(risk(jnp.asarray(pool.losses)[picks], q, len(scores)))  # label these, in this order
""",
    settings={"sessions": 64},
    smallest=8,
    one_shot=True,
    notes=(
        "a seed is 64 sessions of labelling; its error is over them",
        "the model was not trained on these labels; for one that was, see bias_report",
    ),
)
