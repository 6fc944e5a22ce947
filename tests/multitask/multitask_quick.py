"""One program for many small cases, compiled as lightly as can be."""

import jax
import numpy as np

QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


def quick(function, *arguments):
    """What a function of arrays gives, as NumPy's."""
    program = jax.jit(function).lower(*arguments).compile(compiler_options=QUICK)
    return jax.tree.map(np.asarray, program(*arguments))
