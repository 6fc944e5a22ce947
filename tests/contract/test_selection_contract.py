"""A row for every sampler of knockoffs; ``laureate.testing`` has the checks."""

import jax.numpy as jnp
import numpy as np
import pytest

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


def untrained(key):
    """A generator as it begins, that corrects Gaussian knockoffs: what is drawn is drawn as after training."""
    generator, base = KnockoffGAN()._init(key, 4).generator, _Base.of(SAMPLERS["gaussian"](key))
    mean, scale, history = np.ones(4), np.arange(1.0, 5.0), None
    return FittedKnockoffGAN(generator, base, *map(jnp.asarray, (mean, scale, 0.9, 0.0)), history)  # pyright: ignore


TABLE = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
SAMPLERS = {
    "gaussian": lambda key: GaussianKnockoffs(np.zeros(4), np.eye(4) + 0.3, "equi"),
    "second-order": lambda key: SecondOrderKnockoffs().fit(key, TABLE),
    "mixture": lambda key: MixtureKnockoffs(num_components=2).fit(key, TABLE),
    "copula": lambda key: CopulaKnockoffs().fit(key, TABLE),
    "gan": untrained,
}
TYPES = {GaussianKnockoffs, SecondOrderKnockoffs, MixtureKnockoffs, CopulaKnockoffs, FittedKnockoffGAN}
# A switch, and what training alone looks at.
UNUSED = {"gan": (".uniform", ".base.correlation")}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "copula")) for n in SAMPLERS])
def test_sampler(name):
    check_knockoff_sampler(SAMPLERS[name], TABLE, unused=UNUSED.get(name, ()))
