"""One trial over a few seeds, compiled as the lab does it, for the tests of each paper."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate._core import light_options
from laureate.lab.claim import Settings

# These programs run for milliseconds, so the compiler need not optimise at all.
QUICK = light_options(0)


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


def compiled(trial, key, arm, problem, scale):
    """One call of a trial as one program: outside ``jit`` each of its operations would be compiled on its own."""
    program = jax.jit(lambda key: trial(key, arm, problem, scale)).lower(key).compile(compiler_options=QUICK)
    return jax.tree.map(np.asarray, program(key))
