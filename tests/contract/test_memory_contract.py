"""A row for every sampler of the memory; ``laureate.testing`` has the checks."""

import jax.numpy as jnp
import pytest

from laureate.memory import LayerGibbs, LowRankSpinGibbs, SpinGibbs, store, to_boltzmann_machine
from laureate.testing import check_sampler

NETWORK = store([[1, 1, 1, -1, -1, 1], [1, -1, 1, -1, 1, 1]])


def machine(beta):
    return to_boltzmann_machine(NETWORK, beta=beta)


KERNELS = {
    "layers": (LayerGibbs(machine(0.5)), LayerGibbs(machine(0.7)), 2 * 6 * 2),
    "spins": (SpinGibbs(NETWORK, beta=0.5), SpinGibbs(NETWORK, beta=0.7), 2 * 6 * 6),
    "low-rank": (LowRankSpinGibbs(machine(0.5)), LowRankSpinGibbs(machine(0.7)), 3 * 6 * 2),
}
TYPES = {type(kernel) for kernel, *_ in KERNELS.values()}


@pytest.mark.parametrize("name", KERNELS)
def test_sampler(name):
    kernel, other, cost = KERNELS[name]
    # The couplings are made of the patterns; sampling does not look at these.
    check_sampler(kernel, jnp.ones(6), others=[other], cost=cost, unused=(".patterns",))
