"""What demanding users met: states that are made to be saved, by whatever saves them."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.gradients import PersistentES, train


class Decay:
    def init(self, key, theta):
        return jnp.ones(())

    def step(self, key, theta, state):
        state = 0.9 * state + theta
        return state, state**2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_orbax_brings_a_run_back(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        orbax = pytest.importorskip("orbax.checkpoint")
    estimator, optimiser = PersistentES(Decay(), num_pairs=3, truncation=5, horizon=20, sigma=0.1), optax.adam(0.1)
    key = jax.random.key(0)
    whole, _ = train(key, estimator, optimiser, 0.3, 6)
    _, history = train(key, estimator, optimiser, 0.3, 3)
    with orbax.StandardCheckpointer() as keeper:
        keeper.save(tmp_path / "run", history.last)
        keeper.wait_until_finished()
        back = keeper.restore(tmp_path / "run", history.last)
    again, _ = train(key, estimator, optimiser, 0.3, 3, start=back)
    assert np.array_equal(whole, again)
