"""A row for every rule of selection and for the training of supernets; ``laureate.testing`` has the checks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from row_types import of_rows

from laureate.architecture import MagnitudeSelection, PerturbationSelection, RandomSelection, Space, SupernetTraining
from laureate.testing import check_architecture_selection, check_learner

SPACE = Space([("none", "skip", "conv3"), ("skip", "conv3"), ("none", "conv3", "avg3")])
RULES = {
    "perturbation": PerturbationSelection(SPACE),
    "magnitude": MagnitudeSelection(SPACE, exclude=("none",)),
    "random": RandomSelection(SPACE, order="reverse"),
}


class Net(eqx.Module):
    """Skip, or scale with noise."""

    noise: jax.Array
    ops = (("skip", "scale"),)

    def apply(self, params, state, weights, x, *, key, train):
        noise = self.noise * jax.random.normal(key, x.shape) if train else 0.0
        return weights[0, 0] * x + weights[0, 1] * params * (x + noise), state + 1


OPTIMISER = optax.adam(0.1)  # a new object would compile anew
TRAINING, OTHER = (
    SupernetTraining(Net(jnp.asarray(noise)), OPTIMISER, alpha_optimiser=OPTIMISER) for noise in (0.3, 0.5)
)
TYPES = of_rows("test_selection", RULES) | {"test_supernet_training": {type(TRAINING)}}


@pytest.mark.parametrize("name", RULES)
def test_selection(name):
    assert check_architecture_selection(RULES[name])


def test_supernet_training():
    """A gradient of alpha, and one of the weights."""
    x, labels = np.cos(np.arange(12.0, dtype=np.float32)).reshape(4, 3), np.arange(4) % 3
    check_learner(
        TRAINING,
        ((x, labels), (x[::-1], labels)),
        init=lambda training, key: training.init(jnp.asarray([2.0, 1.0, -1.0]), jnp.asarray(0)),
        step=lambda training, key, batches, state: training.darts_step(key, state, *batches),
        learned=lambda state: (state.params, state.alpha),
        others=[OTHER],
        cost=2,
    )
