"""An environment of one's own: a room with a key in one corner and a door in another.

The only reward is for reaching the door with the key. Any object with ``reset``, ``step`` and two spaces is an
environment, and a problem for the lab:

    laureate run rnd/chain --problem examples/own_environment.py:Keys
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from laureate.control import PPO, BonusPPO, Training, law_of, make_actor_critic, make_rnd
from laureate.loops import Box, Discrete, Timestep

SIDE, LIMIT = 7, 60
MOVES = jnp.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
KEY, DOOR = jnp.array([0, SIDE - 1]), jnp.array([SIDE - 1, 0])
WAY = [0] * (SIDE - 1) + [1] * (SIDE - 1) + [2] * (SIDE - 1)  # right to the key, back, down to the door


class State(NamedTuple):
    """Where one stands, whether one has the key, and the steps walked."""

    place: jax.Array
    has_key: jax.Array
    clock: jax.Array


class Keys:
    """The room."""

    observation_space = Box((2 * SIDE**2,))
    action_space = Discrete(4)

    def observe(self, state):
        """One-hot: the cell, without the key or with it."""
        cell = state.place[0] * SIDE + state.place[1]
        return jax.nn.one_hot(cell + SIDE**2 * state.has_key, 2 * SIDE**2)

    def reset(self, key):
        """In the upper left corner, without the key."""
        state = State(jnp.zeros(2, int), jnp.asarray(False), jnp.asarray(0))
        return state, self.observe(state)

    def step(self, key, state, action):
        """One cell on."""
        place = jnp.clip(state.place + MOVES[action], 0, SIDE - 1)
        state = State(place, state.has_key | jnp.all(place == KEY), state.clock + 1)
        out = state.has_key & jnp.all(place == DOOR)
        late = (state.clock >= LIMIT) & ~out
        return state, Timestep(self.observe(state), out.astype(jnp.float32), out, late)


def train(with_bonus, num_updates=150):
    """The mean return of the episodes in every update."""
    world, inputs = Keys(), 2 * SIDE**2
    heads = 2 if with_bonus else 1
    network = make_actor_critic(jax.random.key(0), inputs, 4, num_heads=heads, width=32)
    ppo = PPO(network, law_of(world.action_space), (0.999, 0.99)[:heads], (1, 0)[:heads], learning_rate=1e-3)
    bonus = make_rnd(jax.random.key(1), inputs, width=32, learning_rate=1e-3) if with_bonus else None
    return Training(world, BonusPPO(ppo, bonus), num_steps=32).run(jax.random.key(2), num_updates).seen.episode_return


if __name__ == "__main__":
    for name, with_bonus in (("PPO", False), ("PPO and RND", True)):
        found = train(with_bonus)
        print(f"{name:12} out of the door in {float(found[-20:].mean()):.0%} of the last episodes")
