"""A row for every solver of parabolic equations; what they must do: ``laureate.testing.check_pde_solver``."""

import jax
import pytest
from row_types import of_rows

from laureate.pde import ALS, SALSA, DeepBackward, DeepBSDE, MonteCarlo, Polynomials, TensorTrainSolver
from laureate.problems.pdes import HJBLog
from laureate.testing import check_pde_solver

BASIS = Polynomials(-6.0, 6.0, 1)
SMALL = {"rank": 2, "num_steps": 3, "num_samples": 60}
NETWORK = {"num_steps": 3, "width": 4}
# A solver with one number that may be swept.
ROWS = {
    "implicit": lambda w: TensorTrainSolver(BASIS, **SMALL, tolerance=w),
    "explicit": lambda w: TensorTrainSolver(BASIS, **SMALL, scheme="explicit", regression=ALS(ridge=1e-6 * w)),
    "salsa": lambda w: TensorTrainSolver(BASIS, **SMALL, scheme="explicit", regression=SALSA(damping=w)),
    "deep-bsde": lambda w: DeepBSDE(**NETWORK, batch=8, num_updates=4, learning_rate=w),
    "deep-backward": lambda w: DeepBackward(**NETWORK, num_samples=16, num_updates=4, learning_rate=w),
    "monte-carlo": lambda _: MonteCarlo(64, 3, form="exponential"),
}
TYPES = of_rows("test_contract", ROWS, lambda make: type(make(0.1)))
# Paths, updates, and updates that are ten times as many for the first network; sweeps end where they have converged.
COSTS = {"monte-carlo": 64, "deep-bsde": 4, "deep-backward": 4 * (10 + 1)}
# It compiles a second program of seconds; two rows have it always.
OVER_KEYS = ("vmap over keys is a loop",)
ALWAYS = {"monte-carlo", "explicit"}
# Deep BSDE makes a network from a fixed key at every update, of which it keeps the form and no number.
TEMPLATES = {"deep-bsde": ("keys are used once",)}
DOUBLE = {"implicit", "explicit", "salsa"}  # refuse single precision, in words


# Others of their class.
SIBLINGS = {"salsa", "explicit"}


@pytest.fixture
def pde():
    with jax.enable_x64(True):
        return HJBLog(3)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SIBLINGS)) for name in ROWS])
def test_contract(name, pde):
    with jax.enable_x64(True):
        solver, other = ROWS[name](0.01), ROWS[name](0.02)
    skip = (*TEMPLATES.get(name, ()), *OVER_KEYS * (name not in ALWAYS))
    # Where iterations end is a whole number, which a tolerance a little smaller does not move.
    more = {"others": [other], "single": name not in DOUBLE, "cost": COSTS.get(name), "unused": (".tolerance",)}
    check_pde_solver(solver, pde, skip=skip, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ROWS if name not in ALWAYS])
def test_over_keys(name, pde):
    with jax.enable_x64(True):
        solver = ROWS[name](0.01)
    skip = TEMPLATES.get(name, ())
    assert set(OVER_KEYS) <= set(check_pde_solver(solver, pde, single=False, unused=(".tolerance",), skip=skip))
