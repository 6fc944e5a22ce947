"""A row for every modulation and for the network that they modulate; ``laureate.testing`` has the checks."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from row_types import of_rows

from laureate.grounding import Concatenation, FiLM, LanguageFilter, LanguageUNet
from laureate.testing import ContractError, check_modulation

RNG = np.random.default_rng(0)
FEATURES, TEXT = RNG.normal(size=(3, 5, 4, 4)), RNG.normal(size=(3, 6))
KEY = jax.random.key(1)
MAKERS = {
    "filter": functools.partial(LanguageFilter, KEY, 4, 6, kernel_size=3),
    "film": functools.partial(FiLM, KEY, 4, 6, hidden=5),
    "concatenation": functools.partial(Concatenation, KEY, 4, 6),
}


UNET = functools.partial(LanguageUNet, KEY, 4, 6, depth=2, width=4, kernel_size=3)


def unet(dropout):
    return UNET(modulation=functools.partial(LanguageFilter, dropout=dropout))


ROWS = MAKERS | {"unet": unet}
TYPES = of_rows("test_modulation", MAKERS | {"unet": UNET}, lambda make: make.func)


@pytest.mark.parametrize("name", ROWS)
def test_modulation(name):
    layer, other = eqx.filter_jit(lambda: (ROWS[name](dropout=0.3), ROWS[name](dropout=0.6)))()
    check_modulation(layer, FEATURES, TEXT, others=[other])


def test_a_layer_that_mixes_examples_is_found_out():
    class Mixing(eqx.Module):
        weight: jax.Array

        def __call__(self, features, text, *, key=None):
            mean = features.mean(0, keepdims=True)
            return (features - mean) * (1 + (text @ self.weight)[:, None, None])

    with pytest.raises(ContractError, match="examples do not see each other"):
        check_modulation(Mixing(jnp.ones((6, 4))), FEATURES, TEXT)
