"""A row for every sampler of the memory and for its training; ``laureate.testing`` has the checks."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from row_types import of_rows

from laureate.memory import (
    BoltzmannMachine,
    ContrastiveDivergence,
    LayerGibbs,
    LowRankSpinGibbs,
    SpinGibbs,
    store,
    to_boltzmann_machine,
)
from laureate.testing import check_learner, check_sampler

NETWORK = store([[1, 1, 1, -1, -1, 1], [1, -1, 1, -1, 1, 1]])


def machine(beta):
    return to_boltzmann_machine(NETWORK, beta=beta)


KERNELS = {
    "layers": (LayerGibbs(machine(0.5)), LayerGibbs(machine(0.7)), 2 * 6 * 2),
    "spins": (SpinGibbs(NETWORK, beta=0.5), SpinGibbs(NETWORK, beta=0.7), 2 * 6 * 6),
    "low-rank": (LowRankSpinGibbs(machine(0.5)), LowRankSpinGibbs(machine(0.7)), 3 * 6 * 2),
}
RNG = np.random.default_rng(0)
SPINS = np.sign(RNG.normal(size=(5, 4))).astype(np.float32)
WEIGHTS = jnp.asarray(0.3 * RNG.normal(size=(4, 2)), jnp.float32)
DIVERGENCES = {name: ContrastiveDivergence(optax.sgd(0.1), num_steps=2) for name in ("anew", "persistent")}
TYPES = of_rows("test_sampler", KERNELS, lambda row: type(row[0])) | of_rows("test_training", DIVERGENCES)


@pytest.mark.parametrize("name", KERNELS)
def test_sampler(name):
    kernel, other, cost = KERNELS[name]
    # The couplings are made of the patterns; sampling does not look at these.
    check_sampler(kernel, jnp.ones(6), others=[other], cost=cost, unused=(".patterns",))


@pytest.mark.parametrize("name", ["anew", pytest.param("persistent", marks=pytest.mark.slow)])
def test_training(name):
    def init(learner, key):
        machine = BoltzmannMachine(WEIGHTS, jnp.zeros(4), jnp.zeros(2))
        return learner.init(machine, jnp.ones((3, 4)) if name == "persistent" else None)

    def step(learner, key, data, state):
        return learner.update(key, state, data)

    check_learner(DIVERGENCES[name], SPINS, init=init, step=step, learned=lambda state: state.machine)
