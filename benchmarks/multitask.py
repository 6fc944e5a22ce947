"""How the time and memory of a step with several losses grow with the number of tasks: exact, at features, plain.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false PJRT_NPROC=1 \
        python -m benchmarks multitask [--json] [--quick]

A trunk of two layers of 256 and a linear head a task, batches of 128. The plain sum needs one gradient; an aggregator
one a task, of all shared parameters (exact) or at the last shared features, with one more through the trunk.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import print_rows, seconds_of
from laureate.multitask import gradvac, imtl_g, imtl_weights, task_gram

WIDTH, INPUTS, BATCH = 256, 64, 128


def trunk(params, x):
    return jnp.tanh(jnp.tanh(x @ params["first"]) @ params["second"])


def head_losses(heads, z, y):
    return jnp.mean((z @ heads - y) ** 2, axis=0)


def rows(counts):
    """Milliseconds of one step, and megabytes of temporaries."""
    for count in counts:
        keys = jax.random.split(jax.random.key(0), 5)
        shared = {
            "first": jax.random.normal(keys[0], (INPUTS, WIDTH)) / 8,
            "second": jax.random.normal(keys[1], (WIDTH, WIDTH)) / 16,
        }
        heads = jax.random.normal(keys[2], (WIDTH, count)) / 16
        x, y = jax.random.normal(keys[3], (BATCH, INPUTS)), jax.random.normal(keys[4], (BATCH, count))
        losses = lambda p, heads=heads, x=x, y=y: head_losses(heads, trunk(p, x), y)  # noqa: E731

        def plain(p, losses=losses):
            return jax.grad(lambda q: jnp.sum(losses(q)))(p)

        def aggregated(tx, losses=losses):
            state = tx.init(shared)  # noqa: B023
            return lambda p: tx.update(jax.jacrev(losses)(p), state)[0]

        def at_features(p, heads=heads, x=x, y=y):
            z, pull = jax.vjp(lambda q: trunk(q, x), p)
            gz = jax.jacrev(lambda z: head_losses(heads, z, y))(z)
            return pull(jnp.tensordot(imtl_weights(task_gram(gz))[0], gz, 1))[0]

        calls = {"plain sum": plain, "IMTL-G, exact": aggregated(imtl_g()), "IMTL-G, at features": at_features}
        calls["GradVac, exact"] = aggregated(gradvac(jax.random.key(0), count))
        for name, call in calls.items():
            run = jax.jit(call)
            memory = run.lower(shared).compile().memory_analysis()
            seconds = seconds_of(lambda run=run, shared=shared: run(shared))
            yield {
                "tasks": count,
                "step": name,
                "milliseconds": 1e3 * float(np.median(seconds)),
                "megabytes of temporaries": getattr(memory, "temp_size_in_bytes", 0) / 1e6,
            }


def main() -> None:
    """The table."""
    print_rows(rows((2, 4) if "--quick" in sys.argv else (2, 5, 10, 20, 40)))


if __name__ == "__main__":
    main()
