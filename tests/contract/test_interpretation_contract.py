"""A row for the running statistics; ``laureate.testing`` has the checks. Faults planted in one are reported."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.interpretation import MomentsState, RunningMoments
from laureate.testing import ContractError, check_running_statistics

RNG = np.random.default_rng(0)
ACTIVATIONS = [3 + RNG.normal(size=(24, 3)), RNG.normal(size=(24, 2)), 100 + RNG.normal(size=(24, 3))]
MOMENTS = RunningMoments((3, 2, 3))
TYPES = {"test_running_moments": {type(MOMENTS)}}


def test_running_moments():
    assert "merging" in check_running_statistics(MOMENTS, ACTIVATIONS)


class Faulty(eqx.Module):
    """The same with a fault of a name."""

    inner: RunningMoments
    fault: str = eqx.field(static=True)

    def init(self):
        return self.inner.init()

    def update(self, state, activations, mask=None):
        if self.fault == "mask":
            mask = None
        new, info = self.inner.update(state, activations, mask)
        if self.fault == "report":
            info = info._replace(cost=info.cost + 1)
        if self.fault == "divergence":
            info = info._replace(status=jnp.asarray(0))
        if self.fault == "order of chunks":  # the last chunk's means instead of all
            new = new._replace(means=tuple(jnp.asarray(x, jnp.float32).mean(0) for x in activations))
        if self.fault == "state shapes":
            new = new._replace(count=new.count.astype(float))
        return new, info

    def merge(self, first, second):
        merged = self.inner.merge(first, second)
        if self.fault == "merging":
            products = tuple(a + b for a, b in zip(first.products, second.products, strict=True))
            return MomentsState(merged.count, merged.means, products)
        return merged

    def finish(self, state):
        return self.inner.finish(state)


SLOW = [pytest.param(fault, marks=pytest.mark.slow) for fault in ("divergence", "order of chunks", "mask")]


@pytest.mark.parametrize("fault", ["state shapes", "report", "merging", *SLOW])
def test_a_fault_is_reported_by_its_property(fault):
    with pytest.raises(ContractError) as caught:
        check_running_statistics(Faulty(MOMENTS, fault), ACTIVATIONS)
    assert caught.value.property == fault
