"""One step of an environment, and the first of the next episode where it ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from laureate.loops import Box, Discrete, Timestep, step_or_reset


class Dice:
    """States that are thrown: a step and a beginning with one key would be one throw. The action ends it or not."""

    def reset(self, key):
        thrown = jax.random.bits(key, (2,))
        return {"thrown": thrown, "clock": jnp.asarray(0)}, thrown

    def step(self, key, state, action):
        thrown = jax.random.bits(key, (2,))
        return {"thrown": thrown, "clock": state["clock"] + 1}, Timestep(thrown, 1.0, action == 1, action == 2)


def test_a_step_goes_on_or_begins_anew_by_a_key_of_its_own():
    """The same throw for every action: 0 goes on, 1 is an end by the rules and 2 one by the clock."""
    step = jax.vmap(lambda key, action: step_or_reset(key, Dice(), {"thrown": 0, "clock": jnp.asarray(4)}, action))
    keys = jnp.repeat(jax.random.split(jax.random.key(0), 2), 3)
    state, seen, timestep = jax.jit(step)(keys, jnp.arange(6) % 3)
    for first in (0, 3):
        reached, *begun = np.asarray(state["thrown"])[first : first + 3]
        assert_array_equal(timestep.observation[first : first + 3], [reached] * 3)  # of what has ended, where it has
        assert_array_equal(begun[0], begun[1])
        assert not np.isin(begun[0], reached).any()
    assert_array_equal(seen, state["thrown"])
    assert_array_equal(state["clock"], [5, 0, 0] * 2)
    assert len(np.unique(state["thrown"])) == 8  # another key, another throw of both


def test_spaces_that_are_none():
    with pytest.raises(ValueError, match=r"Discrete\.num must be an integer >= 1; got 0"):
        Discrete(0)
    with pytest.raises(ValueError, match=r"Box\.low must be <= high = 1\.0; got 2\.0"):
        Box((2,), 2.0, 1.0)
    assert (Discrete(1).num, Box((), 1.0, 1.0).shape) == (1, ())
