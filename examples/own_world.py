"""A world of one's own for an agent that learns a model of it: a lift that takes passengers up and lets them out.

Any object with ``reset``, ``step`` and two spaces is a world, and a problem for the lab:

    laureate run dreamer-v2/room --problem examples/own_world.py:Lift
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from laureate.control import DreamerTraining, OneHot, Replay, make_dreamer
from laureate.loops import Box, Discrete, Timestep

FLOORS, LIMIT = 4, 16


class State(NamedTuple):
    """The floor, whether somebody is inside, and the steps done."""

    floor: jax.Array
    loaded: jax.Array
    clock: jax.Array


class Lift:
    """Up, down, or open the door: people get in on the ground floor and want to the top."""

    observation_space = Box((FLOORS + 1,))
    action_space = Discrete(3)

    def observe(self, state):
        """The floor, one-hot, and whether somebody is inside."""
        return jnp.append(jax.nn.one_hot(state.floor, FLOORS), state.loaded.astype(jnp.float32))

    def reset(self, key):
        """Empty, on some floor."""
        state = State(jax.random.randint(key, (), 0, FLOORS), jnp.asarray(False), jnp.asarray(0))
        return state, self.observe(state)

    def step(self, key, state, action):
        """A reward for everybody who gets out at the top."""
        floor = jnp.clip(state.floor + jnp.array([1, -1, 0])[action], 0, FLOORS - 1)
        opened = action == 2
        out = opened & state.loaded & (floor == FLOORS - 1)
        loaded = (state.loaded & ~out) | (opened & (floor == 0))
        state = State(floor, loaded, state.clock + 1)
        return state, Timestep(self.observe(state), out.astype(jnp.float32), jnp.asarray(False), state.clock >= LIMIT)


def train(num_updates=600):
    """The mean return of the episodes in every update."""
    rates = {"model_rate": 3e-3, "actor_rate": 1e-3, "critic_rate": 3e-3, "slow_every": 10, "horizon": 8, "gamma": 0.95}
    rates |= {"entropy": 0.03}  # with much less it settles on one action before the model is any good
    sizes = {"latent": OneHot(4, 4), "memory": 16, "width": 16}
    agent = make_dreamer(jax.random.key(0), (FLOORS + 1,), OneHot(1, 3), **sizes, **rates)
    training = DreamerTraining(Lift(), agent, Replay(1024, 8), 4, 4, batch=8, num_warmup=8)
    return training.run(jax.random.key(1), num_updates).seen


if __name__ == "__main__":
    seen = train()
    for name, part in (("first", slice(None, 100)), ("last", slice(-100, None))):
        passengers = float(seen.episode_return[part] @ seen.episodes[part] / seen.episodes[part].sum())
        print(f"{name:5} updates: {passengers:.2f} passengers an episode")
