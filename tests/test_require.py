"""What is known is compared at once, also while something else is traced; what is traced is let through."""

import jax
import jax.numpy as jnp
import pytest

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
