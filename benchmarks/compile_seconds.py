"""How long the first call of each area's driver takes to trace and compile, and what compiles again afterwards.

    OMP_NUM_THREADS=1 PJRT_NPROC=1 python -m benchmarks compile_seconds [--json] [--quick]

By jax's own events: seconds of tracing, lowering and XLA's compiling, and programs compiled, of a toy problem's first
call; then of the same call with another number of steps and with weak-typed numbers (``jnp.asarray(0.3)``), which
should compile nothing but a program whose arrays are as long as the run. Each area in a process of its own, without a
compilation cache.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.timing import print_rows

PREFIX = "/jax/core/compile/"
AREAS = ("gradients", "sampling", "pde", "decentralized", "representation")


def gradients(calls: dict[str, Callable[[], Any]]) -> None:
    """A toy PES step, and training with it."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    from laureate.gradients import PersistentES, train

    class Decay:
        def init(self, key, theta):
            return jnp.ones(())

        def step(self, key, theta, state):
            state = 0.9 * state + theta
            return state, state**2

    estimator = PersistentES(Decay(), num_pairs=100, truncation=5, horizon=20, sigma=0.1)
    theta, optimiser = jnp.asarray(0.3, jnp.float32), optax.adam(0.1)
    state = estimator.init(jax.random.key(0), theta)
    step = eqx.filter_jit(estimator.step)
    calls["a PES step"] = lambda: step(jax.random.key(1), theta, state)
    calls["PES training"] = lambda: train(jax.random.key(0), estimator, optimiser, theta, 10)
    calls["more updates"] = lambda: train(jax.random.key(0), estimator, optimiser, theta, 25)
    calls["weak-typed theta"] = lambda: train(jax.random.key(0), estimator, optimiser, jnp.asarray(0.3), 10)


def sampling(calls: dict[str, Callable[[], Any]]) -> None:
    """Gibbs-With-Gradients on a quadratic energy."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np

    from laureate.sampling import Binary, GibbsWithGradients, run

    class Quadratic(eqx.Module):
        weights: jax.Array

        def __call__(self, x):
            return x @ self.weights @ x

    weights = jnp.asarray(np.random.default_rng(0).normal(size=(10, 10)), jnp.float32)
    start = np.zeros((4, 10), bool)

    def chains(beta, steps):
        kernel = GibbsWithGradients(Quadratic(weights), Binary(), inverse_temperature=beta)
        return run(jax.random.key(0), kernel, start, steps)

    calls["sampling.run"] = lambda: chains(0.5, 100)
    calls["more steps"] = lambda: chains(0.5, 250)
    calls["weak-typed β"] = lambda: chains(jnp.asarray(0.3), 100)


def pde(calls: dict[str, Callable[[], Any]]) -> None:
    """A Hamilton-Jacobi-Bellman equation in ten dimensions, rank 2."""
    import warnings

    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from laureate.pde import Polynomials, TensorTrainSolver

    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")

    class Equation(eqx.Module):
        x0: jax.Array
        horizon: float | jax.Array = 1.0

        def drift(self, t, x):
            return jnp.zeros_like(x)

        def diffusion(self, t, x):
            return jnp.sqrt(2.0) * jnp.ones(())

        def driver(self, t, x, y, z):
            return -0.5 * jnp.sum(z**2)

        def terminal(self, x):
            return jnp.log(0.5 + 0.5 * jnp.sum(x**2))

    def solve(scheme, steps, horizon=1.0):
        basis = Polynomials(-6.0, 6.0, 3)
        solver = TensorTrainSolver(basis, 2, num_steps=steps, num_samples=500, scheme=scheme)
        return solver.solve(jax.random.key(0), Equation(jnp.zeros(10), horizon))

    calls["implicit"] = lambda: solve("implicit", 4)
    calls["implicit, more steps"] = lambda: solve("implicit", 6)
    calls["explicit"] = lambda: solve("explicit", 4)
    calls["explicit, more steps"] = lambda: solve("explicit", 6)


def decentralized(calls: dict[str, Callable[[], Any]]) -> None:
    """DeTAG on eight nodes."""
    import jax
    import jax.numpy as jnp

    from laureate.decentralized import DeTAG, Gossip, ring, train

    def pull(key, x, target):
        return x - target

    def nodes(rate, rounds):
        params, data = jnp.zeros((8, 3)), jnp.ones((8, 3))
        return train(jax.random.key(0), DeTAG(Gossip(ring(8)), rate, 3), pull, params, rounds, data=data, every=10)

    calls["DeTAG training"] = lambda: nodes(0.1, 30)
    calls["more rounds"] = lambda: nodes(0.1, 60)
    calls["weak-typed rate"] = lambda: nodes(jnp.asarray(0.2), 30)


def representation(calls: dict[str, Callable[[], Any]]) -> None:
    """A DirectPred step of a small network, and fine-tuning."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    from laureate.representation import DirectPred, Siamese, fine_tune

    key = jax.random.key(0)
    model, x = eqx.nn.MLP(6, 8, 16, 1, key=key), jax.random.normal(key, (32, 6))
    siamese, labels, optimiser = Siamese(DirectPred(dim=8), optax.sgd(0.05)), jnp.arange(32) % 2, optax.adam(0.01)
    state, step = siamese.init(key, model), eqx.filter_jit(siamese.step)

    def tune(steps):
        return fine_tune(key, model, x, labels, x, labels, 2, optimiser=optimiser, num_steps=steps, batch=8)

    calls["a DirectPred step"] = lambda: step(state, x, x + 0.1)
    calls["fine-tuning"] = lambda: tune(10)
    calls["more steps"] = lambda: tune(25)


def measured(area: str) -> list[dict[str, Any]]:
    """The rows of one area, in this process."""
    import jax

    events: list[tuple[str, float]] = []

    def listen(event: str, duration_secs: float, **_: Any) -> None:
        events.append((event, duration_secs))

    jax.monitoring.register_event_duration_secs_listener(listen)
    calls: dict[str, Callable[[], Any]] = {}
    globals()[area](calls)
    rows = []
    for name, call in calls.items():
        events.clear()
        jax.block_until_ready(jax.tree.leaves(call()))
        of = {kind: [s for event, s in events if event.startswith(PREFIX + kind)] for kind in ("jaxpr", "backend")}
        total = sum(seconds for event, seconds in events if event.startswith(PREFIX))
        rows.append(
            {
                "area": area,
                "call": name,
                "seconds": total,
                "of which XLA": sum(of["backend"]),
                "programs": len(of["backend"]),
                "largest": max(of["backend"], default=0.0),
            }
        )
    return rows


def main() -> None:
    rows = []
    areas = AREAS[:2] if "--quick" in sys.argv else AREAS
    cold = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    for area in areas:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.compile_seconds", area], capture_output=True, text=True, env=cold
        )
        if done.returncode:
            sys.exit(f"{area}: {done.stderr}")
        rows += json.loads(done.stdout.splitlines()[-1])
    print_rows(rows)


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
