"""Gibbs-With-Gradients on Ising lattices: against a plain PyTorch loop, and the incremental against the plain kernel.

The PyTorch loop follows the authors' way: both ends of a step are evaluated by autograd, the site is drawn by
multinomial. One core on both sides, one process, interleaved; ratio above 1: ours is faster. Effective samples are of
the Hamming distance to a random state; both sides run the same chain law, so their ratio per second is that of steps.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false PJRT_NPROC=1 \
        python -m benchmarks sampling_gwg [--json] [--quick]
"""

import importlib.util
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import compare, print_rows
from laureate.papers.gibbs_with_gradients.speed import SIGMA, our_chains, torch_chains
from laureate.problems.energies import IsingLattice
from laureate.sampling import (
    Binary,
    DiscreteLangevin,
    Gibbs,
    GibbsWithGradients,
    IncrementalGibbsWithGradients,
    hamming_distance,
    mixing,
    run,
)


def against_torch(quick: bool) -> list[dict]:
    rows = []
    for side, chains in [(10, 100)] if quick else [(10, 100), (50, 100), (100, 100)]:
        steps = max(5, 20_000 // side**2)
        lattice = IsingLattice(side, SIGMA)
        start = jax.vmap(lattice.start)(jax.random.split(jax.random.key(0), chains))
        ours = our_chains(GibbsWithGradients(lattice, Binary()), start, steps)
        found = compare(ours.run, torch_chains(side, chains, steps).run, 7)
        rows.append(
            {
                "work": f"Ising {side}x{side}, {chains} chains",
                "ours": "gwg, ms/step",
                "ours_ms": 1e3 * found["ours_s"] / steps,
                "peer": "PyTorch loop",
                "peer_ms": 1e3 * found["peer_s"] / steps,
                "ratio": found["ratio"],
                "low": found["low"],
                "high": found["high"],
            }
        )
    return rows


def incremental(quick: bool) -> list[dict]:
    rows = []
    for side in [30, 100] if quick else [30, 100, 300, 1000]:
        lattice = IsingLattice(side, SIGMA)
        start = lattice.start(jax.random.key(0))[None]
        steps, few = 2000, max(2, 200_000 // side**2)
        ours = our_chains(IncrementalGibbsWithGradients(lattice, Binary()), start, steps)
        peer = our_chains(GibbsWithGradients(lattice, Binary()), start, few)
        found = compare(ours.run, peer.run, 5)
        ours_ms, peer_ms = 1e3 * found["ours_s"] / steps, 1e3 * found["peer_s"] / few
        rows.append(
            {
                "work": f"Ising {side}x{side}, 1 chain",
                "ours": "incremental, ms/step",
                "ours_ms": ours_ms,
                "peer": "gwg",
                "peer_ms": peer_ms,
                "ratio": peer_ms / ours_ms,
            }
        )
    return rows


def effective(quick: bool) -> list[dict]:
    """Effective samples per second of the Hamming distance to a random state, 16 chains, 10 x 10."""
    lattice = IsingLattice(10, SIGMA)
    start = jax.vmap(lattice.start)(jax.random.split(jax.random.key(0), 16))
    reference = lattice.start(jax.random.key(1))
    steps = 2000 if quick else 20_000
    rows = []
    for name, kernel in {
        "gwg": GibbsWithGradients(lattice, Binary()),
        "incremental": IncrementalGibbsWithGradients(lattice, Binary()),
        "gibbs": Gibbs(lattice, Binary()),
        "dmala": DiscreteLangevin(lattice, Binary(), step_size=0.2),
    }.items():

        def collect(state, info):
            return hamming_distance(state.position, reference)

        run(jax.random.key(2), kernel, start, steps, thin=10, chunk=steps, collect=collect)
        began = time.perf_counter()
        result = run(jax.random.key(2), kernel, start, steps, thin=10, chunk=steps, collect=collect)
        seconds = time.perf_counter() - began
        found = mixing(jnp.asarray(result.samples[:, steps // 100 :]))
        rows.append(
            {
                "work": "Ising 10x10, 16 chains",
                "ours": name,
                "effective_per_s": float(found.effective) / seconds,
                "steps_per_s": 16 * steps / seconds,
                "accepted": float(np.mean(result.acceptance_rate)),
                "r_hat": float(found.r_hat),
            }
        )
    return rows


def main() -> None:
    quick = "--quick" in sys.argv
    rows = incremental(quick) + effective(quick)
    if importlib.util.find_spec("torch") is None:
        print("sampling_gwg: PyTorch is not installed; the comparison with it is left out.", file=sys.stderr)
    else:
        rows = against_torch(quick) + rows
    print_rows(rows)


if __name__ == "__main__":
    main()
