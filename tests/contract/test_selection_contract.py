"""A row for every sampler of knockoffs; ``laureate.testing`` has the checks."""

import jax.numpy as jnp
import numpy as np
import pytest
from row_types import of_rows

from laureate.selection import (
    CopulaKnockoffs,
    FittedKnockoffGAN,
    GaussianKnockoffs,
    KnockoffGAN,
    MixtureKnockoffs,
    SecondOrderKnockoffs,
)
from laureate.selection.gan import _Base
from laureate.testing import check_knockoff_sampler

GAUSSIAN = GaussianKnockoffs(np.zeros(4), np.eye(4) + 0.3, "equi")


def untrained(key) -> FittedKnockoffGAN:
    """A generator as it begins, that corrects Gaussian knockoffs: what is drawn is drawn as after training."""
    generator, base = KnockoffGAN()._init(key, 4).generator, _Base.of(GAUSSIAN)
    mean, scale, history = np.ones(4), np.arange(1.0, 5.0), None
    return FittedKnockoffGAN(generator, base, *map(jnp.asarray, (mean, scale, 0.9, 0.0)), history)  # pyright: ignore


TABLE = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
FITTED = {
    "second-order": SecondOrderKnockoffs(),
    "mixture": MixtureKnockoffs(num_components=2),
    "copula": CopulaKnockoffs(),
    "gan-trained": KnockoffGAN(num_steps=2, num_checkpoints=1, batch=8),
}
SAMPLERS = {
    "gaussian": GAUSSIAN,
    **{name: lambda key, method=method: method.fit(key, TABLE) for name, method in FITTED.items()},
    "gan": untrained,
}
TYPES = of_rows("test_sampler", FITTED | {"gaussian": GAUSSIAN})
TYPES |= {"test_sampler[gan]": {untrained.__annotations__["return"]}}
# A switch, and what training alone looks at.
UNUSED = {"gan": (".uniform", ".base.correlation")}
SKIP = {"gan-trained": ("every number is used",)}  # the row of `gan` has the same numbers


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler(name):
    check_knockoff_sampler(SAMPLERS[name], TABLE, unused=UNUSED.get(name, ()), skip=SKIP.get(name, ()))
