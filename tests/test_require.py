"""What is known is compared at once, also while something else is traced; what is traced is let through."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import active, architecture, compression, imbalance, training
from laureate._core import require


def positive(value):
    require("Method", "rate", "> 0", value, lambda rate: rate > 0, "Try 0.1.")


def test_a_known_array_is_compared_while_something_else_is_traced():
    rate = jnp.asarray(-1.0)
    with pytest.raises(ValueError, match=r"Method.rate must be > 0; got -1.0. Try 0.1."):
        jax.eval_shape(lambda x: positive(rate) or x, 1.0)
    with pytest.raises(ValueError, match=r"got -1.0"):
        positive(rate)
    positive(jnp.asarray(2.0))


def test_a_traced_value_is_let_through():
    jax.eval_shape(lambda rate: positive(rate) or rate, -1.0)


def test_keys_are_handed_on_as_they_are():
    key = jax.random.key(0)
    require("Method", "key", "a key", key, lambda found: found is key)
    with pytest.raises(ValueError, match=r"Method.key must be many; got .*key"):
        require("Method", "key", "many", key, lambda found: found.ndim == 1)


def probabilities():
    architecture.MagnitudeSelection(SPACE).init(KEY, [[0.5, 0.5]])


def collapsed():
    trainer = training.LocalizedTraining(training.Fixed(1), training.Frozen(), optax.sgd(0.0), local_rate=0.1)
    state = trainer.init(KEY, [training.Dense(k * jnp.ones((2, 2))) for k in (1, 2)])
    doubled = eqx.tree_at(lambda state: state.blocks[0].weight, state, 3 * jnp.ones((2, 2)))
    trainer.end_epoch(doubled, ())


SPACE = architecture.Space([("none", "skip")])
KEY = jax.random.key(0)
Q = np.r_[1e-4, np.full(11, 0.02)]
# What warns of what it was given, however deep in the library the reason is found.
WARNINGS = {
    "pure_risk": lambda: active.pure_risk(np.ones(12), Q, 40),
    "importance_risk": lambda: active.importance_risk(np.ones(12), Q, 40),
    "lure_risk": lambda: active.lure_risk(np.ones(12), Q, 40),
    "lure_ratio": lambda: active.lure_ratio(np.ones(12), np.ones(12), Q, 40),
    "adjust": lambda: imbalance.adjust(np.zeros(2), np.log([0.5, 0.5]), tau=4.0),
    "focal": lambda: imbalance.focal_cross_entropy(np.zeros(2), 0, np.log([0.5, 0.5]), tau=4.0),
    "quantize": lambda: compression.quantize({"w": np.eye(8)}, compression.ProductQuantizer(4), KEY),
    "expected_bytes": lambda: compression.expected_bytes({"w": np.eye(8)}, compression.ProductQuantizer(4)),
    "select": probabilities,
    "end_epoch": collapsed,
}


@pytest.mark.parametrize("name", WARNINGS)
def test_a_warning_points_at_the_line_of_the_user(name):
    with pytest.warns(UserWarning, match=".") as told:
        WARNINGS[name]()
    assert {warning.filename for warning in told} == {__file__}
