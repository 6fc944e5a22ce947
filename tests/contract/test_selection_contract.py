"""A row for every sampler of knockoffs; ``laureate.testing`` has the checks."""

import numpy as np
import pytest

from laureate.selection import CopulaKnockoffs, GaussianKnockoffs, MixtureKnockoffs, SecondOrderKnockoffs
from laureate.testing import check_knockoff_sampler

TABLE = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
SAMPLERS = {
    "gaussian": lambda key: GaussianKnockoffs(np.zeros(4), np.eye(4) + 0.3, "equi"),
    "second-order": lambda key: SecondOrderKnockoffs().fit(key, TABLE),
    "mixture": lambda key: MixtureKnockoffs(num_components=2).fit(key, TABLE),
    "copula": lambda key: CopulaKnockoffs().fit(key, TABLE),
}
TYPES = {GaussianKnockoffs, SecondOrderKnockoffs, MixtureKnockoffs, CopulaKnockoffs}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "copula")) for n in SAMPLERS])
def test_sampler(name):
    check_knockoff_sampler(SAMPLERS[name], TABLE)
