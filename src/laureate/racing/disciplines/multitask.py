"""Multi-task aggregation: one step from the gradients of several losses."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)}
OPTIMISER = "num_tasks, optax.adam(learning_rate), shared=tasks.shared"

DISCIPLINE = Discipline(
    name="multitask",
    title="Which aggregation of several losses trains best?",
    kind="a problem with several losses",
    problem="tasks",
    area="multitask",
    needs={
        "params0": "params0(key): parameters to start from",
        "batch": "batch(key): what one step sees",
        "losses": "losses(params, batch): one number a task, [T]",
        "scores": "scores(params, part): how good each task is, [T], more is better, for part 'validation' or 'test'",
        "shared": "shared(path): whether all tasks share the leaf of the parameters at that path",
    },
    metrics=(
        Metric("worst", "score of the worst task after training", "higher", (1.0,)),
        Metric("mean", "mean score over tasks", "higher", (1.0,)),
    ),
    unit="gradients of one task",
    entrants=(
        Entrant("uniform", "uniform(shared=tasks.shared)", RATES),
        Entrant("imtl-g", "imtl_g(shared=tasks.shared)", RATES),
        Entrant("imtl", f"imtl({OPTIMISER})", RATES),
        Entrant("imtl-l", f"imtl_l({OPTIMISER})", RATES),
        Entrant("unit-sum", "unit_sum(shared=tasks.shared)", RATES),
        Entrant("mgda", "mgda(shared=tasks.shared)", RATES),
        Entrant("pcgrad", "pcgrad(jax.random.key(0), num_tasks, shared=tasks.shared)", RATES),
        Entrant("gradvac", "gradvac(jax.random.key(0), num_tasks, shared=tasks.shared)", RATES),
        Entrant("gradnorm", "gradnorm(num_tasks, optax.adam(0.025), shared=tasks.shared)", RATES),
        Entrant("uncertainty", f"uncertainty({OPTIMISER})", RATES),
        Entrant("inverse-loss", "inverse_loss(num_tasks, shared=tasks.shared)", RATES),
    ),
    trial="laureate.racing.tracks.multitask:trial",
    facts="laureate.racing.tracks.multitask:facts",
    script="""
optimiser = optax.chain({method}, optax.adam({learning_rate}))
params = tasks.params0(jax.random.key(0))
params, history = train(jax.random.key(1), tasks, optimiser, params, num_steps=1000)
print(tasks.scores(params, "test"))
""",
    absent=dict.fromkeys(("task_geometry", "task_gram"), "tells how the tasks' gradients lie, and makes no step"),
    notes=(
        "a step costs one gradient a task for everybody; the plain sum alone could do with one in all",
        "the rate is tuned on the validation part, and the test part scores",
    ),
)
