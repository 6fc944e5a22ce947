"""The check of conditional models finds planted faults."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate._core import Status
from laureate.generative import AbstractConditional, ConditionalInfo, ConditionalState, Hooks
from laureate.testing import ContractError, check_conditional_model

X = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)


class Toy(AbstractConditional):
    """y = x + shift + noise, the shift learned by descent; each fault breaks one promise."""

    rate: float | jax.Array = 0.1
    fault: str = eqx.field(static=True, default="")

    @property
    def networks(self):
        return {"shift": jnp.zeros(2, jnp.asarray(self.rate).dtype)}

    @property
    def hooks(self):
        return Hooks()

    def init(self):
        return ConditionalState(jnp.zeros((), jnp.int32), self.arrays(), None)

    def step(self, key, x, y, state):
        shift = state.parameters["shift"]
        gap = jnp.mean(y - x, axis=0) - shift
        rate = 0.1 if self.fault == "rate not used" else self.rate
        after = shift + (0.0 if self.fault == "stands still" else rate) * gap
        loss = jnp.sum(gap**2)
        if self.fault == "key used twice":
            loss = loss + 0 * (jax.random.normal(key) + jax.random.uniform(key)).astype(loss.dtype)
        fine = self.fault == "silent"
        status = jnp.where(jnp.isfinite(loss) | fine, Status.OK, Status.DIVERGED)
        cost = jnp.asarray(2 if self.fault == "wrong cost" else 1)
        number = state.step + (2 if self.fault == "steps counted twice" else 1)
        return ConditionalState(number, {"shift": after}, None), ConditionalInfo(loss, cost, status)

    def draw(self, key, state, x, **options):
        noise = jnp.zeros(2, x.dtype) if self.fault == "no noise" else jax.random.normal(key, (2,), x.dtype)
        if self.fault == "narrow":
            noise = noise.astype(jnp.float32).astype(jnp.float16)
        return x.astype(noise.dtype) + state.parameters["shift"].astype(noise.dtype) + noise


def check(fault=""):
    return check_conditional_model(Toy(fault=fault), X, X + 1, others=[Toy(0.2, fault=fault)], cost=1)


def test_a_sound_model_passes_all():
    assert {"training", "answers", "numbers are used", "every number is used", "divergence", "float64"} <= set(check())


@pytest.mark.parametrize(
    ("fault", "property"),
    [
        pytest.param("stands still", "training", marks=pytest.mark.slow),
        pytest.param("wrong cost", "training", marks=pytest.mark.slow),
        pytest.param("no noise", "answers", marks=pytest.mark.slow),
        ("rate not used", "numbers are used"),
        ("key used twice", "keys are used once"),
        ("steps counted twice", "training"),
        pytest.param("silent", "divergence", marks=pytest.mark.slow),
        pytest.param("narrow", "float64", marks=pytest.mark.slow),
    ],
)
def test_faults_of_a_model(fault, property):
    with pytest.raises(ContractError) as raised:
        check(fault)
    assert raised.value.property == property
