"""How time and memory of Stein's tests and particles grow with draws and dimensions.

python benchmarks/sampling_stein.py [--json]
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.timing import print_rows, seconds_of
from laureate.sampling import sliced_svgd, stein_mean_test, stein_test, svgd

SIZES = ((250, 10), (500, 10), (1000, 10), (250, 40), (250, 160))


def test_with(**more: Any):
    return lambda key, x: stein_test(key, x, -x, **more).p_value


def step_of(sampler: Any):
    return lambda key, x: sampler.step(key, sampler.init(x))[0].position


def bowl(x: jax.Array) -> jax.Array:
    return -jnp.sum(x**2) / 2


WORKS = {
    "test: whole points": test_with(slices=None),
    "test: slices along the axes": test_with(slices="identity"),
    "test: slices fitted in 100 steps": test_with(num_steps=100),
    "test: four functions": lambda key, x: stein_mean_test(key, x, -x).p_value,
    "step: SVGD": step_of(svgd(bowl, optax.adam(0.1))),
    "step: sliced SVGD": step_of(sliced_svgd(bowl, optax.adam(0.1))),
    "step: sliced SVGD, learned": step_of(sliced_svgd(bowl, optax.adam(0.1), slices="learned")),
}


def main() -> None:
    rows = []
    for name, function in WORKS.items():
        for n, d in SIZES:
            x, key = jax.random.normal(jax.random.key(0), (n, d)), jax.random.key(1)
            program = jax.jit(function).lower(key, x).compile()
            memory: Any = program.memory_analysis()
            seconds = float(np.median(seconds_of(lambda program=program, key=key, x=x: program(key, x))))
            rows.append({"work": name, "n": n, "d": d, "ours_s": seconds, "MB": memory.temp_size_in_bytes / 1e6})
    print_rows(rows)


if __name__ == "__main__":
    main()
