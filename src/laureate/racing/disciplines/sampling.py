"""Discrete samplers on an energy."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

DISCIPLINE = Discipline(
    name="sampling",
    title="Which sampler mixes best?",
    kind="an energy",
    problem="energy",
    area="sampling",
    needs={
        "__call__": "the log density f(x) of relaxed variables: floats, or one-hot rows with num_categories",
        "start": "a function of a key: a random position of booleans, or of integers 0..K-1",
    },
    offers={
        "num_categories": "K, for variables with more than two unordered values",
        "ordinal": "(low, high), for ordered integers",
    },
    metrics=(
        Metric("ess", "effective samples in the whole budget, of the worse of f(x) and a Hamming distance", "higher",
               log=True),
        Metric("rhat", "split R-hat of the worse of the two: 1 where the chains agree", "lower"),
        Metric("logdensity", "mean f(x) over the second half: how far down the chains came", "higher"),
    ),
    unit="evaluations of f",
    entrants=(
        Entrant("gibbs", "Gibbs(energy, domain, scan=scan)", {"scan": ("random", "systematic")}),
        Entrant(
            "block-gibbs", "BlockGibbs(energy, domain, block_size=size)", {"size": (2, 4)}, natural={"size": "low"}
        ),
        Entrant("hamming-ball", "HammingBall(energy, domain, block_size=size)", {"size": (3, 5, 10)}),
        Entrant(
            "gibbs-with-gradients",
            "GibbsWithGradients(energy, domain, num_flips=flips)",
            {"flips": (1, 2, 4)},
            natural={"flips": "low"},
        ),
        Entrant("locally-informed", "LocallyInformed(energy, domain)"),
        Entrant(
            "discrete-langevin",
            "DiscreteLangevin(energy, domain, step_size=step)",
            {"step": (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)},
        ),
        Entrant(
            "path-auxiliary", "PathAuxiliary(energy, domain, path_length=length, max_length=longest)",
            {"length": (1.0, 2.0, 4.0)}, natural={"length": "low"},
        ),
        Entrant(
            "parallel-tempering",
            "ParallelTempering(GibbsWithGradients(energy, domain), jnp.linspace(1.0, hottest, 4))",
            {"hottest": (0.03, 0.1, 0.3, 0.6)},
        ),
    ),
    trial="laureate.racing.tracks.sampling:trial",
    facts="laureate.racing.tracks.sampling:facts",
    script="""
kernel = {method}
starts = jax.vmap(energy.start)(jax.random.split(jax.random.key(0), 8))
result = run(jax.random.key(1), kernel, starts, num_steps=1000)
print(result.samples.shape)
""",
    settings={"slots": 512},
    absent={
        "IncrementalGibbsWithGradients": "its cost counts sites and not evaluations of f",
        "PersistentContrastiveDivergence": "trains an energy, and samples from none",
        "SteinVariational": "moves particles of continuous densities; makes no chain",
    },
    notes=("all entrants are exact: a sampler that is biased would look good by effective samples alone",),
)  # fmt: skip
