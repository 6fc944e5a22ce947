"""Speed of the tensor-train solver: the paper's HJB-100, error against time beside deep BSDE, and scaling.

    python -m benchmarks.pde_tensor_train [--quick]

Compile first, block, the least of interleaved repetitions; compile seconds apart. Limits of the project on two cores:
implicit 10 s and explicit 4 s for HJB-100 with 2,000 paths and 100 steps.
"""

import argparse
import time

import equinox as eqx
import jax

from laureate.pde import ALS, DeepBSDE, Polynomials, TensorTrainSolver
from laureate.problems.pdes import HJBLog

TRUTH = 4.590161724604866
run = eqx.filter_jit(lambda solver, key, pde: solver.run(key, pde))


def clock(call, repetitions):
    """Seconds of the first call (with compilation) and the least of the others."""
    started = time.perf_counter()
    jax.block_until_ready(call(0))
    first = time.perf_counter() - started
    laps = []
    for i in range(repetitions):
        started = time.perf_counter()
        jax.block_until_ready(call(i))
        laps.append(time.perf_counter() - started)
    return first - min(laps), min(laps)


def hjb_100(repetitions):
    print("HJB-100, 2,000 paths, 100 steps, degree 0 and g\n  scheme     compile s   solve s   relative error")
    pde = HJBLog(100)
    for scheme in ("implicit", "explicit"):
        solver = TensorTrainSolver(Polynomials(-6, 6, 0), 1, 100, 2000, scheme)
        compiling, seconds = clock(lambda i, s=solver: run(s, jax.random.key(i), pde).v0, repetitions)
        error = abs(float(run(solver, jax.random.key(0), pde).v0) / TRUTH - 1)
        print(f"  {scheme:9s} {compiling:9.1f} {seconds:9.2f}   {error:.1e}")


def error_against_time(updates):
    print("\nerror against time, HJB-100 with 20 steps\n  solver            seconds   relative error")
    pde = HJBLog(100)
    for paths in (250, 1000, 4000):
        solver = TensorTrainSolver(Polynomials(-6, 6, 0), 1, 20, paths)
        _, seconds = clock(lambda i, s=solver: run(s, jax.random.key(i), pde).v0, 2)
        error = abs(float(run(solver, jax.random.key(0), pde).v0) / TRUTH - 1)
        print(f"  tensor train {paths:5d} {seconds:7.2f}   {error:.1e}")
    solver = DeepBSDE(num_steps=20, num_updates=updates)
    _, seconds = clock(lambda i: run(solver, jax.random.key(i), pde).v0, 1)
    history = run(solver, jax.random.key(0), pde).history
    for share in (0.1, 0.25, 0.5, 1.0):
        value = float(history[int(share * updates) - 1])
        print(f"  deep BSDE    {int(share * updates):5d} {share * seconds:7.2f}   {abs(value / TRUTH - 1):.1e}")


def scaling(quick):
    print("\nscaling of a solve of 5 explicit steps: d 20, rank 2, degree 2, 1,000 paths, one of them varied")
    base = {"d": 20, "rank": 2, "degree": 2, "paths": 1000}
    varied = {"d": (10, 20, 50, 100), "rank": (1, 2, 4), "degree": (1, 2, 4), "paths": (500, 1000, 4000)}
    for name, values in varied.items():
        for value in values[:2] if quick else values:
            size = {**base, name: value}
            solver = TensorTrainSolver(
                Polynomials(-6, 6, size["degree"]),
                size["rank"],
                5,
                size["paths"],
                "explicit",
                regression=ALS(tolerance=1e-3, max_sweeps=3),
            )
            pde = HJBLog(size["d"])
            compiling, seconds = clock(lambda i, s=solver, p=pde: run(s, jax.random.key(i), p).v0, 3)
            print(f"  {name:6s} {value:5d}   {1000 * seconds:8.1f} ms   compile {compiling:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and sizes")
    quick = parser.parse_args().quick
    with jax.enable_x64(True):
        hjb_100(1 if quick else 3)
        error_against_time(100 if quick else 2000)
        scaling(quick)


if __name__ == "__main__":
    main()
