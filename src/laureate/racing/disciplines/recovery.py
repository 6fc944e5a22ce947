"""Sparse recovery: signals behind noise, with a known dictionary."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)}
PENALTIES = {"penalty": (0.01, 0.03, 0.1, 0.3, 1.0)}

DISCIPLINE = Discipline(
    name="recovery",
    title="Which solver cleans the signals best?",
    kind="a dictionary with signals",
    problem="recording",
    area="recovery",
    needs={
        "dictionary": "D [N, M]: signals are approximately D times sparse codes",
        "signals": "clean signals [n, N]: half train, a quarter tunes, a quarter scores",
    },
    offers={"snr": "decibels of the noise that is added; by default 15"},
    metrics=(Metric("error", "decibels of what is left of the noise: 10 log |D x - s|^2 / |s|^2", "lower"),),
    unit="layers",
    entrants=(
        Entrant("ista", "ISTA(recording.dictionary, num_layers=budget, penalty=penalty, normalise=True)", PENALTIES),
        Entrant("fista", "FISTA(recording.dictionary, num_layers=budget, penalty=penalty, normalise=True)", PENALTIES),
        Entrant("alista", "ALISTA(recording.dictionary, num_layers=budget, normalise=True)", RATES),
        Entrant("ti-lista", "TiLISTA(recording.dictionary, num_layers=budget, normalise=True)", RATES),
        Entrant("lista-cp", "LISTACP(recording.dictionary, num_layers=budget, normalise=True)", RATES),
        Entrant("lista", "LISTA(recording.dictionary, num_layers=budget, normalise=True)", RATES),
        Entrant("hyper-lista", "HyperLISTA(recording.dictionary, num_layers=budget, normalise=True)", RATES),
    ),
    trial="laureate.racing.tracks.recovery:trial",
    facts="laureate.racing.tracks.recovery:facts",
    script="""
solver = {method}
clean = jnp.asarray(recording.signals)
noisy = add_noise(jax.random.key(0), clean, {snr})
if solver.trainable:
    loss = lambda made, codes, target: jnp.mean((made.synthesise(codes) - target) ** 2)
    rate = optax.adam({learning_rate})
    solver, _ = fit(jax.random.key(1), solver, (noisy, clean), optimiser=rate, num_steps=200, loss=loss)
print(nmse_db(solver.synthesise(solver(noisy)), clean))
""",
    smallest=8,
    largest=32,
    one_shot=True,
    absent={
        "ConvALISTA": "for filters over images, not for a dictionary",
        "ConvLISTA": "for filters over images, not for a dictionary",
        "UnrolledCoherence": "makes weights for dictionaries that drift",
        "SparseCoder": "scikit-learn's form of a solver",
        "BernoulliGaussian": "draws codes",
        "Dense": "a dictionary", "Operator": "a dictionary", "AbstractSolver": "what all solvers share",
    },
    notes=("networks are trained with 200 steps on half of the signals; the seconds hold that, the cost does not",),
)  # fmt: skip
