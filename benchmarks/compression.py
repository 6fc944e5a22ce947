"""How the time of quantisation noise grows with the weights, and k-means with its points; beside a plain copy.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false PJRT_NPROC=1 \
        python -m benchmarks compression [--json] [--quick]

1. ``quant_noise`` on one square matrix: rounding to 8 bits, codebooks with codes that are known, dropped blocks.
2. ``kmeans`` of blocks of 8 with 256 centroids, ten steps: seconds, and the bytes of temporaries that XLA asks for.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import print_rows, seconds_of
from laureate.compression import ProductQuantizer, ScalarQuantizer, kmeans, quant_noise, refresh


def noise_rows(sides):
    """Milliseconds of one call."""
    for side in sides:
        weights = {"w": jax.random.normal(jax.random.key(0), (side, side))}
        product = ProductQuantizer(8, 256, 1)
        state = refresh(weights, product, jax.random.key(1))
        calls = {
            "a plain copy": lambda w, key: {"w": w["w"] + 1},
            "rounding to 8 bits": lambda w, key: quant_noise(w, ScalarQuantizer(8), 0.1, key),
            "codebooks": lambda w, key: quant_noise(w, product, 0.1, key, state=state),  # noqa: B023
            "dropped blocks": lambda w, key: quant_noise(w, product, 0.1, key, proxy="zero"),  # noqa: B023
        }
        for name, call in calls.items():
            run = jax.jit(call)
            seconds = seconds_of(lambda: run(weights, jax.random.key(2)))  # noqa: B023
            yield {"weights": side * side, "noise": name, "milliseconds": 1e3 * float(np.median(seconds))}


def kmeans_rows(counts):
    """Seconds, and megabytes of temporaries."""
    for count in counts:
        points = jax.random.normal(jax.random.key(0), (count, 8))
        run = jax.jit(lambda key, points: kmeans(key, points, 256, 10).centroids)
        memory = run.lower(jax.random.key(1), points).compile().memory_analysis()
        seconds = seconds_of(lambda: run(jax.random.key(1), points))  # noqa: B023
        temporary = getattr(memory, "temp_size_in_bytes", 0) / 1e6
        yield {"points": count, "seconds": float(np.median(seconds)), "megabytes of temporaries": temporary}


def main() -> None:
    """Both tables."""
    quick = "--quick" in sys.argv
    jnp.zeros(1).block_until_ready()
    print_rows(noise_rows((256, 512) if quick else (256, 512, 1024, 2048)))
    print_rows(kmeans_rows((10_000, 20_000) if quick else (10_000, 100_000, 1_000_000)))


if __name__ == "__main__":
    main()
