"""One trial over a few seeds, compiled as the lab does it, for the tests of each paper."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.running.references import load

# These programs run for milliseconds, so the compiler need not optimise at all.
QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


def run(trial, arm, problem, scale, seeds=2, x64=False):
    """The trial's metrics with a leading axis of seeds; floats and the problem's arrays are arguments."""
    arrays, rest = eqx.partition(problem, eqx.is_array)
    floats = {name: value for name, value in arm.items() if isinstance(value, float)}
    fixed = {name: value for name, value in arm.items() if name not in floats}

    def block(seeds, arrays, floats):
        settings = Settings(fixed, **floats)
        whole = eqx.combine(arrays, rest)
        return jax.vmap(lambda seed: trial(jax.random.key(seed), settings, whole, Settings(scale)))(seeds)

    with jax.enable_x64(x64):
        arguments = (jnp.arange(seeds, dtype=jnp.uint32), arrays, floats)
        program = jax.jit(block).lower(*arguments).compile(compiler_options=QUICK)
        return jax.tree.map(np.asarray, program(*arguments))


def problem_of(experiment, **settings):
    """The experiment's own problem with these settings."""
    return load(experiment.problem)(**settings) if experiment.problem else None


def check_metrics(experiment, metrics, seeds=2):
    """All that the experiment's claims and curves read is there, finite and of the right shape."""
    for metric, values in metrics.items():
        assert values.shape[0] == seeds, metric
        assert np.isfinite(values).all(), metric
    for claim in experiment.claims:
        wanted = [claim.metric, claim.against] if claim.kind == "trend" else [claim.metric]
        for metric in wanted:
            assert metrics[metric].ndim == (2 if claim.kind == "trend" else 1), claim.name
    for curve in experiment.curves:
        assert metrics[curve.x].shape == metrics[curve.y].shape
