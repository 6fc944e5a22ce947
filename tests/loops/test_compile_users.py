"""A new number of steps, and numbers of weak type, compile nothing, in all five areas: by jax's own events."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from small_runs import Decay, Heat

from laureate import decentralized, gradients, pde, representation, sampling
from program_budget import COMPILED, WHOLE

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def programs():
    """Names of whole programs as they are compiled; single operations outside any jit are none."""
    rooms = (jax.numpy, jax.lax, jax.random, jax.numpy.linalg)
    single = {name.lstrip("_") for room in rooms for name in dir(room)} - WHOLE
    found: list[str] = []

    def listen(event, seconds, **more):
        name = str(more.get("fun_name", "")).removeprefix("jit(").removesuffix(")").removeprefix("jit_")
        if event == COMPILED and name.lstrip("_") not in single | {"stage", "reduce_any", "reduce_all"}:
            found.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    jax.monitoring.unregister_event_duration_listener(listen)


ES = gradients.PersistentES(Decay(), num_pairs=2, truncation=2, horizon=4, sigma=0.1)
SGD = optax.sgd(0.01)
GOSSIP = decentralized.Gossip(decentralized.ring(4))
MODEL = eqx.nn.Linear(3, 2, key=KEY)
ROWS = jnp.arange(24.0).reshape(8, 3) / 24


def pull(key, x, target):
    return x - target


def field(x):
    return jnp.sum(x)


def solved(number, steps):
    with jax.enable_x64(True):
        number = number()
        basis = pde.Polynomials(-4.0, 4.0, degree=2)
        solver = pde.TensorTrainSolver(basis, num_steps=steps, num_samples=50, use_terminal=False, tolerance=number)
        return solver.solve(KEY, Heat(jnp.zeros(1)))


# A call by what makes a number, which may be weak, and by how many steps.
CALLS = {
    "gradients": lambda number, steps: gradients.train(KEY, ES, SGD, number(), steps),
    "sampling": lambda number, steps: sampling.run(
        KEY,
        sampling.GibbsWithGradients(field, sampling.Binary(), inverse_temperature=number()),
        np.zeros((2, 3), bool),
        steps,
    ),
    "pde": solved,
    "decentralized": lambda number, steps: decentralized.train(
        KEY, decentralized.DPSGD(GOSSIP, number()), pull, jnp.zeros(4), steps, data=jnp.arange(4.0)
    ),
    "representation": lambda number, steps: representation.fine_tune(
        KEY,
        MODEL,
        ROWS * number(),
        jnp.arange(8) % 2,
        ROWS,
        jnp.arange(8) % 2,
        2,
        optimiser=SGD,
        num_steps=steps,
        batch=4,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("area", CALLS)
def test_a_new_number_of_steps_and_weak_types_compile_nothing(area, programs):
    call = CALLS[area]
    call(lambda: 0.3, 4)
    programs.clear()
    call(lambda: 0.3, 7)
    call(lambda: 0.2, 5)
    call(lambda: jnp.asarray(0.4), 5)  # of weak type
    call(lambda: jnp.asarray(0.5, float), 6)
    assert programs == []
