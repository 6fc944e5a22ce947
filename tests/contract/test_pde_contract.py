"""What every solver of parabolic equations must do, whatever it is: one table, every check."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import laureate.pde as area
from laureate._core import Status
from laureate.pde import ALS, SALSA, DeepBackward, DeepBSDE, MonteCarlo, Polynomials, TensorTrainSolver
from laureate.problems.pdes import HJBLog

QUICK = {"xla_backend_optimization_level": 0}
BASIS = Polynomials(-6.0, 6.0, 1)
SMALL = {"rank": 2, "num_steps": 3, "num_samples": 60}
NETWORK = {"num_steps": 3, "width": 4}
# A solver with one number that may be swept.
CASES = {
    "implicit": lambda w: TensorTrainSolver(BASIS, **SMALL, tolerance=w),
    "explicit": lambda w: TensorTrainSolver(BASIS, **SMALL, scheme="explicit", regression=ALS(ridge=1e-6 * w)),
    "salsa": lambda w: TensorTrainSolver(BASIS, **SMALL, scheme="explicit", regression=SALSA(damping=w)),
    "deep-bsde": lambda w: DeepBSDE(**NETWORK, batch=8, num_updates=4, learning_rate=w),
    "deep-backward": lambda w: DeepBackward(**NETWORK, num_samples=16, num_updates=4, learning_rate=w),
    "monte-carlo": lambda _: MonteCarlo(64, 3, form="exponential"),
}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class Bench:
    """A solver compiled once; how often it was traced."""

    def __init__(self, make):
        self.make, self.traces = make, 0
        with jax.enable_x64(True):
            self.pde = HJBLog(3)

        def run(key, solver):
            self.traces += 1
            return solver.run(key, self.pde)

        self._run = eqx.filter_jit(run)

    def run(self, key, value=0.01):
        # As arrays, the numbers are traced; as floats they would be compiled in.
        solver = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, self.make(value))
        return self._run(jax.random.key(key), solver)


# Options of solvers that are here already: every row compiles programs of its own.
VARIANTS = {"salsa"}


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.slow] * (name in VARIANTS)) for name in CASES], scope="module"
)
def bench(request):
    return Bench(CASES[request.param])


def test_every_public_solver_has_a_row():
    solvers = {thing for thing in vars(area).values() if isinstance(thing, type) and hasattr(thing, "run")}
    assert {type(make(0.1)) for make in CASES.values()} == solvers


def test_the_same_key_gives_the_same_bits_another_key_others_and_a_number_compiles_nothing(bench):
    first, again, other = bench.run(0), bench.run(0), bench.run(1)
    assert np.asarray(first.v0).tobytes() == np.asarray(again.v0).tobytes()
    pairs = zip(*(jax.tree.leaves(eqx.filter(found, eqx.is_array)) for found in (first, again)), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert float(first.v0) != float(other.v0)
    bench.run(0, 0.02)
    assert bench.traces == 1


def test_the_value_is_finite_and_cost_and_status_are_set(bench):
    solution = bench.run(0)
    assert solution.v0.shape == ()
    assert solution.v0.dtype == jnp.float64
    told = getattr(solution, "info", solution)
    assert np.isfinite(solution.v0)
    assert np.all(np.asarray(told.cost) >= 0)
    assert np.sum(told.cost) > 0
    assert set(np.asarray(told.status).ravel().tolist()) <= {Status.OK, Status.NOT_CONVERGED}


@pytest.mark.slow
def test_vmap_over_keys_is_a_loop(bench):
    solver = bench.make(0.01)
    keys = jax.random.split(jax.random.key(3), 2)
    one = jax.jit(lambda key: solver.run(key, bench.pde).v0, compiler_options=QUICK)
    together = jax.jit(jax.vmap(lambda key: solver.run(key, bench.pde).v0), compiler_options=QUICK)(keys)
    # Batched products are summed in another order, and a fixed point ends within its tolerance.
    np.testing.assert_allclose(together, [one(key) for key in keys], rtol=1e-6)


def test_it_has_an_example_or_a_reference(bench):
    text = type(bench.make(0.1)).__doc__ or ""
    assert ">>> " in text or "Reference" in text or "(Feynman and Kac)" in text
