"""How time and memory of a MeshGraphNet grow with the edges, to a million of them.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false PJRT_NPROC=1 \
        python -m benchmarks graphs_mesh [--json] [--quick]

A prediction, and a prediction with the gradient of all weights, without and with ``recompute``, on square grids of
triangles; width 16, two steps.
Seconds, and the bytes of temporaries that XLA asks for; both over the edges should stay the same.
"""

import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import print_rows, seconds_of
from laureate.graphs import MeshGraphNet
from laureate.layers import Graph


def grid(side):
    """Senders and receivers of a square grid with one diagonal, both ways, without a loop over cells."""
    number = np.arange(side * side).reshape(side, side)
    pairs = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:]), (number[:-1, :-1], number[1:, 1:])]
    first = np.concatenate([a.ravel() for a, _ in pairs])
    second = np.concatenate([b.ravel() for _, b in pairs])
    return np.concatenate([first, second]).astype(np.int32), np.concatenate([second, first]).astype(np.int32)


def network(recompute):
    """The arrays of a network, and the function that predicts with them."""
    sizes: Any = {"latent": 16, "num_steps": 2, "hidden_layers": 1}
    made = MeshGraphNet(jax.random.key(0), 4, 3, 2, recompute=recompute, **sizes)
    arrays, rest = eqx.partition(made, eqx.is_array)
    return arrays, lambda arrays, graph, x, e: eqx.combine(arrays, rest)(graph, x, e)


def slope(predict):
    """The gradient of the mean square of what is predicted."""
    return jax.grad(lambda *given: jnp.mean(predict(*given) ** 2))


def rows(sides):
    for side in sides:
        senders, receivers = map(jnp.asarray, grid(side))
        count, edges = side * side, len(senders)
        masks = jnp.ones(count, bool), jnp.ones(edges, bool)
        graph = Graph(None, None, senders, receivers, jnp.zeros(count, jnp.int32), *masks, 1)
        x, e = jnp.ones((count, 4)), jnp.ones((edges, 3))
        (arrays, predict), (others, again) = network(False), network(True)
        calls = {
            "prediction": (arrays, predict),
            "with gradient": (arrays, slope(predict)),
            "with gradient, recomputed": (others, slope(again)),
        }
        for name, (arrays, call) in calls.items():
            program = jax.jit(call).lower(arrays, graph, x, e).compile()
            seconds = float(np.median(seconds_of(lambda: program(arrays, graph, x, e))))  # noqa: B023
            temporary = getattr(program.memory_analysis(), "temp_size_in_bytes", 0)
            yield {
                "edges": edges,
                "what": name,
                "milliseconds": 1e3 * seconds,
                "nanoseconds an edge": 1e9 * seconds / edges,
                "bytes an edge": temporary / edges,
            }


def main() -> None:
    quick = "--quick" in sys.argv
    jnp.zeros(1).block_until_ready()
    print_rows(rows((30, 60) if quick else (41, 129, 409)))


if __name__ == "__main__":
    main()
