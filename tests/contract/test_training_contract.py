"""A row for every rule of a trainer of blocks; ``laureate.testing`` has the checks."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from row_types import of_rows

from laureate.testing import check_block_trainer
from laureate.training import (
    Chain,
    Dense,
    Fixed,
    Hebbian,
    LocalizedTraining,
    Oja,
    RandomDirection,
    WeakSupervision,
)

GENERATOR = np.random.default_rng(0)
DRAWN = [jnp.asarray(GENERATOR.normal(size=(4, 4)), jnp.float32) for _ in range(3)]
BLOCKS = [*(Chain((Dense(d), jax.nn.relu)) for d in DRAWN[:2]), Dense(DRAWN[2])]
BATCH = jnp.asarray(GENERATOR.normal(size=(6, 4)), jnp.float32), jnp.arange(6) % 4
OPTIMISER = optax.adam(0.01)
ROWS = {
    "hebbian": (Hebbian(), {"local_rate": 1e-2}, {"local_rate": 2e-2}),
    "oja": (Oja(), {"local_rate": 1e-2, "normalise": None, "relative": False}, {"local_rate": 2e-2}),
    "random": (
        RandomDirection(),
        {"local_rate": 1e-2, "supervision": WeakSupervision(rising=-1.0, window=4.0)},
        {"supervision": WeakSupervision(rising=-0.5, window=4.0), "local_rate": 3e-2},
    ),
}
TRAINERS = {
    name: [LocalizedTraining(Fixed(2), rule, OPTIMISER, **more) for more in (options, options | other)]
    for name, (rule, options, other) in ROWS.items()
}
TYPES = of_rows("test_block_trainer", TRAINERS, lambda row: type(row[0]))


@pytest.mark.parametrize("name", TRAINERS)
def test_block_trainer(name):
    trainer, changed = TRAINERS[name]
    # On one batch the loss never rises.
    check_block_trainer(trainer, BLOCKS, BATCH, others=[changed], unused=(".rising",))
