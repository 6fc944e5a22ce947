"""A row for every estimate that says how far off it may be; ``laureate.testing.check_standard_error`` has the check."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import memory, sampling
from laureate import robustness as rob
from laureate.architecture import choice_noise
from laureate.pde import MonteCarlo
from laureate.problems.pdes import HJBLog
from laureate.testing import check_standard_error

RNG = np.random.default_rng(0)
WEIGHTS = jnp.asarray(0.4 * RNG.normal(size=(5, 2)), jnp.float32)
MACHINE = memory.BoltzmannMachine(WEIGHTS, 0.1 * jnp.ones(5), jnp.zeros(2))
BIASES = jnp.asarray([0.5, -1.0, 1.5, 0.2])


def game(masks):
    return 3 * masks[:, 0] * masks[:, 1] + masks[:, 2] * masks[:, 3] * masks[:, 0]


def found(result):
    return result.mean, result.standard_error


def annealed(key):
    kernel = sampling.Gibbs(lambda x: BIASES @ x, sampling.Binary())
    uniform = lambda x: 0.0 * jnp.sum(x) - 4 * jnp.log(2.0)  # noqa: E731
    result = sampling.annealed_importance_sampling(
        key, kernel, uniform, lambda key: jax.random.bernoulli(key, 0.5, (4,)), jnp.linspace(0, 1, 6), num_chains=60
    )
    return result.log_ratio, result.standard_error


def partition(key):
    result = memory.annealed_log_partition(key, MACHINE, num_chains=60, num_temperatures=6)
    return result.log_partition, result.standard_error


def margin(key):
    """The margin's error is that of the examples: new ones for every key."""
    data_key, key = jax.random.split(key)
    values = jnp.asarray([0.0, 1.0])[:, None] + jax.random.normal(data_key, (2, 40))
    report = choice_noise(key, values, criterion="loss", num_resamples=1)
    return report.margin, report.standard_error


# A function of a key, and what it estimates where that is known. A logarithm of a mean is biased: no exact value.
ROWS = {
    "interaction": (lambda key: found(rob.estimate_interaction(key, game, 4, "banzhaf", num_samples=60)), None),
    "subsets": (lambda key: found(rob.estimate_by_subsets(key, game, 4, size=2, num_samples=60)), None),
    "annealed-importance": (annealed, None),
    "annealed-partition": (partition, None),
    "choice-noise": (margin, 1.0),
    "monte-carlo": (lambda key: MonteCarlo(64, 3, form="exponential").run(key, HJBLog(3))[:2], None),
}


@pytest.mark.parametrize("name", ROWS)
def test_standard_error(name):
    function, exact = ROWS[name]
    check_standard_error(function, exact=exact, name=name)
