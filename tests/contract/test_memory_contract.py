"""A row for every sampler of the memory and for its training; ``laureate.testing`` has the checks."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from row_types import of_rows
from together import Together, costs

from laureate.memory import (
    BoltzmannMachine,
    ContrastiveDivergence,
    LayerGibbs,
    LowRankSpinGibbs,
    SpinGibbs,
    store,
    to_boltzmann_machine,
)
from laureate.sampling import run
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


TYPES |= {"test_all_samplers_together_and_driven": {type(kernel) for kernel, *_ in KERNELS.values()}}


def test_all_samplers_together_and_driven():
    """All rows in the same programs, the quick twin of ``test_sampler``; and by pairs of the options of ``run``."""
    first, other = (Together({name: row[place] for name, row in KERNELS.items()}) for place in (0, 1))
    cost = costs({name: cost for name, (_, _, cost) in KERNELS.items()})
    # A bias of a tenth turns few spins: tests/memory/test_memory_twins.py has larger ones.
    skip, unused = {"vmap over keys is a loop"}, (".patterns", ".hidden_bias")
    start = dict.fromkeys(KERNELS, jnp.ones(6))
    check_sampler(first, start, others=[other], cost=cost, driver=run, skip=skip, unused=unused)


@pytest.mark.parametrize("name", ["anew", pytest.param("persistent", marks=pytest.mark.slow)])
def test_training(name):
    def init(learner, key):
        machine = BoltzmannMachine(WEIGHTS, jnp.zeros(4), jnp.zeros(2))
        return learner.init(machine, jnp.ones((3, 4)) if name == "persistent" else None)

    def step(learner, key, data, state):
        return learner.update(key, state, data)

    # Two steps of both layers: of a chain for each of five rows, or of three that are kept.
    cost = 2 * 2 * (3 if name == "persistent" else len(SPINS))
    check_learner(DIVERGENCES[name], SPINS, init=init, step=step, learned=lambda state: state.machine, cost=cost)
