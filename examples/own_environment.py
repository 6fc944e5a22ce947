"""An environment of one's own: a room with a key in one corner and a door in another.

The only reward is for reaching the door with the key. Any object with ``reset``, ``step`` and two spaces is an
environment, and a problem for the lab:

    laureate run rnd/chain --problem examples/own_environment.py:Keys

An episode can be looked at: ``record`` writes it down, ``draw`` says how it looks, ``save_gif`` keeps it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from laureate.control import PPO, BonusPPO, Training, law_of, make_actor_critic, make_rnd, player, record
from laureate.loops import Box, Discrete, Scene, Stroke, Timestep, frames_of, save_gif

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


def draw(states):
    """States of an episode as a drawing that moves: the room, the key until it is taken, the door, the walker."""
    middle = lambda place: np.asarray(place)[..., None, ::-1] + 0.5  # noqa: E731
    cells = np.argwhere(np.ones((SIDE, SIDE)))
    ground = [Stroke(middle(cell)[None], 0.92, "ground", square=True) for cell in cells]
    door = Stroke(middle(DOOR)[None], 0.92, "goal", square=True)
    key = Stroke(middle(KEY)[None], 0.5, "lit", shown=~np.asarray(states.has_key))
    return Scene(SIDE, SIDE, (*ground, door, key, Stroke(middle(states.place), 0.6, "body")))


def train(with_bonus, num_updates=150):
    """The training, and its outcome: ``outcome.seen.episode_return`` has the mean return of every update."""
    world, inputs = Keys(), 2 * SIDE**2
    heads = 2 if with_bonus else 1
    network = make_actor_critic(jax.random.key(0), inputs, 4, num_heads=heads, width=32)
    ppo = PPO(network, law_of(world.action_space), (0.999, 0.99)[:heads], (1, 0)[:heads], learning_rate=1e-3)
    bonus = make_rnd(jax.random.key(1), inputs, width=32, learning_rate=1e-3) if with_bonus else None
    training = Training(world, BonusPPO(ppo, bonus), num_steps=32)
    return training, training.run(jax.random.key(2), num_updates)


if __name__ == "__main__":
    for name, with_bonus in (("PPO", False), ("PPO and RND", True)):
        training, outcome = train(with_bonus)
        found = float(outcome.seen.episode_return[-20:].mean())
        episode = record(jax.random.key(3), Keys(), player(training, outcome.state)[0], LIMIT)
        path = save_gif(f"{name.lower().replace(' ', '-')}.gif", frames_of(draw(episode.state)))
        print(f"{name:12} out of the door in {found:.0%} of the last episodes; one more is in {path}")
