"""A row for every quantiser and for training in stages, by ``laureate.testing``; faults planted in one are reported."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from row_types import of_rows

from laureate.compression import IterativeQuantization, ProductQuantizer, ScalarQuantizer, match
from laureate.compression.quantizer import Quantizer
from laureate.testing import ContractError, check_learner, check_quantizer

QUANTIZERS = {
    "int4": ScalarQuantizer(4),
    "int3-channel-symmetric": ScalarQuantizer(3, "symmetric", "channel", outputs="last"),
    "product": ProductQuantizer(4, 6, 3),
    "product-int8": ProductQuantizer(8, 5, 3, codebook_bits=8, outputs="last"),
}
SHAPES = {"product-int8": (16, 6), "int3-channel-symmetric": (2, 2, 3, 4)}
ITERATIVE = IterativeQuantization((match({"v": ProductQuantizer(4, 3, 2)}),), optax.sgd(0.1))
TYPES = of_rows("test_quantizer", QUANTIZERS)
TYPES |= {"test_a_stage_of_iterative_quantisation": {type(ITERATIVE)}}


@pytest.mark.parametrize("name", QUANTIZERS)
def test_quantizer(name):
    check_quantizer(QUANTIZERS[name], SHAPES.get(name, (6, 16)))


def test_a_stage_of_iterative_quantisation():
    weights = {name: jnp.asarray(np.random.default_rng(0).normal(size=(4, 8)), jnp.float32) for name in "vw"}

    def init(method, key):
        return method.advance(key, method.init(weights))

    def step(method, key, rows, state):
        return method.step(state, lambda model: jnp.mean((rows @ model["v"] - model["w"][:3]) ** 2))

    rows = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    learned = lambda state: eqx.filter(state.model, eqx.is_inexact_array)  # noqa: E731
    check_learner(ITERATIVE, rows, init=init, step=step, learned=learned, draws=False, cost=1)


class Signs(Quantizer):
    """A quantiser of one's own: signs times the mean size, in one bit; with a fault where one is asked for."""

    fault: str = eqx.field(default="", static=True)
    share: float | jax.Array = 1.0  # of the mean size

    @property
    def keeps_codes(self):
        return False

    def check(self, path, shape):
        pass

    def bits(self, shape):
        return 1

    def count(self, shape):
        return shape[0] * shape[1]

    def fit(self, key, weights, start=None):
        return (1.0 if self.fault == "number ignored" else self.share) * jnp.mean(jnp.abs(weights))

    def encode(self, weights, parameters):
        codes = (weights > 0).ravel().astype(jnp.int32)
        return {"codes": codes + 1, "quantised twice": 1 - codes}.get(self.fault, codes)

    def decode(self, codes, parameters, shape):
        decoded = (2 * codes.reshape(shape) - 1) * (1.0 if self.fault == "every number is used" else parameters)
        return decoded * jnp.nan if self.fault == "decoding" else decoded

    def spread(self, blocks, shape):
        return blocks[::-1].reshape(shape) if self.fault == "blocks" else blocks.reshape(shape)

    def inside(self, weights, parameters):
        return jnp.ones(() if self.fault == "range" else weights.shape, bool)

    def excess(self, weights, parameters):
        return jnp.zeros(())

    def store(self, parameters):
        return (2 * parameters if self.fault == "stored" else parameters,)

    def restore(self, stored, shape):
        return stored[0]


def test_a_quantizer_of_ones_own_keeps_the_contract():
    assert "blocks" in check_quantizer(Signs())


@pytest.mark.parametrize(
    "fault", ["codes", "decoding", "quantised twice", "stored", "every number is used", "blocks", "range"]
)
def test_a_fault_is_reported_by_its_property(fault):
    with pytest.raises(ContractError) as caught:
        check_quantizer(Signs(fault))
    assert caught.value.property == fault


def test_a_number_of_a_quantizer_that_changes_nothing_is_told():
    with pytest.raises(ContractError, match=r"another number at \.share") as caught:
        check_quantizer(Signs("number ignored"))
    assert caught.value.property == "every number is used"
    check_quantizer(Signs("number ignored"), unused=(".share",))
