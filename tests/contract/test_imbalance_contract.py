"""A row for what draws random numbers in ``laureate.imbalance``; ``laureate.testing`` has the check."""

import equinox as eqx
import jax.numpy as jnp

from laureate.imbalance import balanced_indices
from laureate.testing import check_random_function

LABELS = jnp.array([0, 0, 0, 0, 1, 1, 2])
TYPES = {}


def test_keys():
    draw = eqx.filter_jit(lambda key: balanced_indices(key, LABELS, 3, 20))
    check_random_function(draw, name="balanced_indices")
