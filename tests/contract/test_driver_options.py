"""No pair of a driver's options changes what is computed; of methods that only count, for the drivers' sake."""

import equinox as eqx
import jax.numpy as jnp
from test_drivers_resume import NODES, Estimator, Walker

from laureate import decentralized, gradients, sampling
from laureate.testing import check_decentralized_optimiser, check_gradient_estimator, check_sampler

DRIVER = "options of the driver by pairs"
# What is promised of methods stands in the areas' own tables.
OF_ALL = {"state shapes", "report", "no retrace", "every number is used", "saved and loaded", "float64"}
OF_KEYS = {"same key, same bits", "another key, other bits", "vmap over keys is a loop"}


def test_of_sampling():
    skip = OF_ALL | OF_KEYS | {"caches are fresh"}
    assert check_sampler(Walker(), jnp.zeros(3), driver=sampling.run, skip=skip) == ["keys are used once", DRIVER]


def test_of_gradients():
    skip = OF_ALL | OF_KEYS | {"gradient like theta", "bfloat16", "keys are used once"}
    assert check_gradient_estimator(Estimator(), jnp.ones(2), driver=gradients.train, skip=skip) == [DRIVER]


def test_of_decentralized():
    make = lambda rate: eqx.tree_at(lambda one: one.learning_rate, NODES, jnp.asarray(rate))  # noqa: E731
    skip = OF_ALL | {"numbers are used", "vmap over rates is a loop", "bfloat16", "keys are used once"}
    assert check_decentralized_optimiser(make, jnp.arange(4.0), driver=decentralized.train, skip=skip) == [DRIVER]
