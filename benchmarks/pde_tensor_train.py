"""Speed of the tensor-train solver: the paper's HJB-100, error against time beside deep BSDE, and scaling.

    python -m benchmarks pde_tensor_train [--quick]

Compiled first, compile seconds apart, then the least of the repetitions. Limits of the project on two cores: implicit
10 s and explicit 4 s for HJB-100 with 2,000 paths and 100 steps. The whole takes about five minutes.
"""

import argparse
import time
from typing import Any

import equinox as eqx
import jax

from laureate.pde import ALS, DeepBSDE, Polynomials, TensorTrainSolver
from laureate.problems.pdes import HJBLog

TRUTH = 4.590161724604866


def clock(solver, pde, repetitions, wanted="v0"):
    """Seconds to compile, the least seconds of a solve, and what was wanted of the solution for key 0."""
    run: Any = eqx.filter_jit(lambda key, solver, pde: getattr(solver.run(key, pde), wanted))
    started = time.perf_counter()
    compiled = run.lower(jax.random.key(0), solver, pde).compile()
    compiling = time.perf_counter() - started
    laps, result = [], None
    for _ in range(repetitions):
        started = time.perf_counter()
        result = jax.block_until_ready(compiled(jax.random.key(0), solver, pde))
        laps.append(time.perf_counter() - started)
    return compiling, min(laps), result


def error_of(value):
    """Relative, of V(0, 0) in 100 dimensions."""
    return abs(float(value) / TRUTH - 1)


def hjb_100(repetitions):
    """The paper's own size."""
    print("HJB-100, 2,000 paths, 100 steps, degree 0 and g\n  scheme     compile s   solve s   relative error")
    pde = HJBLog(100)
    for scheme in ("implicit", "explicit"):
        solver = TensorTrainSolver(Polynomials(-6, 6, 0), 1, 100, 2000, scheme)
        compiling, seconds, value = clock(solver, pde, repetitions)
        print(f"  {scheme:9s} {compiling:9.1f} {seconds:9.2f}   {error_of(value):.1e}", flush=True)


def error_against_time(updates):
    """More paths for the tensor train, more updates for deep BSDE, both with 20 steps."""
    print("\nerror against time, HJB-100 with 20 steps\n  solver                  seconds   relative error")
    pde = HJBLog(100)
    for scheme in ("implicit", "explicit"):
        for paths in (250, 1000, 4000):
            solver = TensorTrainSolver(Polynomials(-6, 6, 0), 1, 20, paths, scheme)
            _, seconds, value = clock(solver, pde, 2)
            print(f"  {scheme} {paths:6d} paths  {seconds:8.2f}   {error_of(value):.1e}", flush=True)
    history: Any
    rival = DeepBSDE(num_steps=20, num_updates=updates, learning_rate=3e-4)  # the best of 1e-2 to 3e-5 here
    _, seconds, history = clock(rival, pde, 1, "history")
    for share in (0.05, 0.1, 0.25, 0.5, 1.0):
        done = int(share * updates)
        print(f"  deep BSDE {done:5d} updates {share * seconds:7.2f}   {error_of(history[done - 1]):.1e}", flush=True)


def scaling(quick):
    """One of dimension, rank, degree and paths varied, the others held."""
    print("\nscaling of a solve of 5 explicit steps: d 20, rank 2, degree 2, 1,000 paths, one of them varied")
    base = {"d": 20, "rank": 2, "degree": 2, "paths": 1000}
    varied = {"d": (10, 20, 50, 100), "rank": (1, 2, 4), "degree": (1, 2, 4), "paths": (500, 1000, 4000)}
    for name, values in varied.items():
        for value in values[:2] if quick else values:
            size = {**base, name: value}
            basis, regression = Polynomials(-6, 6, size["degree"]), ALS(tolerance=1e-3, max_sweeps=3)
            solver = TensorTrainSolver(basis, size["rank"], 5, size["paths"], "explicit", regression=regression)
            compiling, seconds, _ = clock(solver, HJBLog(size["d"]), 3)
            print(f"  {name:6s} {value:5d}   {1000 * seconds:8.1f} ms   compile {compiling:.1f} s", flush=True)


def main():
    """All three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and sizes")
    quick = parser.parse_args().quick
    with jax.enable_x64(True):
        hjb_100(1 if quick else 3)
        error_against_time(100 if quick else 1000)
        scaling(quick)


if __name__ == "__main__":
    main()
