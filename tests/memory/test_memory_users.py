"""What demanding users met: data that are no spins, in a trainer that is compiled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest

from laureate._core import Status
from laureate.memory import BoltzmannMachine, ContrastiveDivergence, train

MACHINE = BoltzmannMachine(0.1 * jnp.ones((3, 1)), jnp.zeros(3), jnp.zeros(1))
TRAINER = ContrastiveDivergence(optax.sgd(0.1))


def test_data_that_are_no_spins():
    bits, state = jnp.eye(5, 3), TRAINER.init(MACHINE)
    with pytest.raises(ValueError, match=r"train.data must be -1 or \+1 everywhere; .* become spins by 2 \* x - 1"):
        train(jax.random.key(0), TRAINER, state, bits, 2, 4)
    update = eqx.filter_jit(TRAINER.update)
    assert int(update(jax.random.key(0), state, bits)[1].status) == Status.DIVERGED
    assert int(update(jax.random.key(0), state, 2 * bits - 1)[1].status) == Status.OK
