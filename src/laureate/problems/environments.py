"""Small environments of which much is known exactly: a chain with a far reward, and a grid with a noisy television."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require
from laureate.loops import Box, Discrete, Timestep

__all__ = ["Chain", "ChainState", "NoisyTV", "NoisyTVState"]

# One step to every side; the fifth action is for the television.
MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0], [0, 0]], np.int32)
WATCH = 4


class ChainState(NamedTuple):
    """Where one stands.

    place: the state's number, from 0. clock: steps walked.
    """

    place: Int[Array, ""]
    clock: Int[Array, ""]


class Chain(eqx.Module):
    """States in a row; one action goes on, the other back, and which is which differs from state to state.

    The only reward, 1, is for reaching the last state, where the episode terminates. One begins in the first, where
    going back stays. The observation is one-hot.

    size: states, >= 2.
    limit: steps after which an episode is truncated; 0 for twice the size.
    seed: of the actions' meaning; ``drawn`` gives another.
    deadly: whether the limit is a rule of the game, so that it terminates the episode instead of truncating it.

    >>> chain = Chain(3)
    >>> state, seen = chain.reset(jax.random.key(0))
    >>> state, timestep = chain.step(jax.random.key(0), state, chain.forward[0])
    >>> seen.tolist(), int(state.place), timestep.observation.tolist()
    ([1.0, 0.0, 0.0], 1, [0.0, 1.0, 0.0])
    """

    size: int = eqx.field(static=True)
    limit: int = eqx.field(static=True)
    deadly: bool = eqx.field(static=True)
    forward: Int[Array, " size"]

    def __init__(self, size: int = 40, limit: int = 0, seed: int = 0, deadly: bool = False):
        require("Chain", "size", ">= 2", size, lambda n: n >= 2)
        require("Chain", "limit", "0, or >= size - 1", limit, lambda n: n == 0 or n >= size - 1)
        self.size, self.limit, self.deadly = size, limit or 2 * size, deadly
        self.forward = jnp.asarray(np.random.default_rng(seed).integers(0, 2, size), jnp.int32)

    @property
    def observation_space(self) -> Box:
        """One-hot."""
        return Box((self.size,), 0.0, 1.0)

    @property
    def action_space(self) -> Discrete:
        """Two."""
        return Discrete(2)

    def drawn(self, key: Array) -> "Chain":
        """The same with meanings of the actions drawn anew."""
        forward = jax.random.bernoulli(key, 0.5, (self.size,)).astype(jnp.int32)
        return eqx.tree_at(lambda chain: chain.forward, self, forward)

    def reset(self, key: Array) -> tuple[ChainState, Array]:
        """The first state."""
        del key
        state = ChainState(jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32))
        return state, self.observe(state)

    def observe(self, state: ChainState) -> Float[Array, " size"]:
        """One-hot."""
        return jax.nn.one_hot(state.place, self.size)

    def step(self, key: Array, state: ChainState, action: Array) -> tuple[ChainState, Timestep]:
        """Go on or back."""
        del key
        on = jnp.where(action == self.forward[state.place], 1, -1)
        state = ChainState(jnp.clip(state.place + on, 0, self.size - 1), state.clock + 1)
        there = state.place == self.size - 1
        late = (state.clock >= self.limit) & ~there
        seen, reward, never = self.observe(state), there.astype(jnp.float32), jnp.asarray(False)
        ends = (there | late, never) if self.deadly else (there, late)
        return state, Timestep(seen, reward, *ends)

    def values(self, forward_probability: float | Array, gamma: float | Array) -> Float[Array, " size"]:
        """V = (I − γ P)⁻¹ r of a policy that goes on with one probability everywhere, without a time limit."""
        p, at = forward_probability, np.arange(self.size - 1)
        move = jnp.zeros((self.size, self.size)).at[at, at + 1].add(p).at[at, np.maximum(at - 1, 0)].add(1 - p)
        reward = move[:, -1]
        move = move.at[:, -1].set(0.0)  # nothing follows
        return jnp.linalg.solve(jnp.eye(self.size) - gamma * move, reward)


class NoisyTVState(NamedTuple):
    """Where one stands, and what is shown there.

    place: the cell, (row, column). screen: what the television shows, [pixels]. clock: steps walked.
    """

    place: Int[Array, "2"]
    screen: Float[Array, " pixels"]
    clock: Int[Array, ""]


class NoisyTV(eqx.Module):
    """A square room with a television in the corner opposite to the start, and no reward at all.

    Beside the television, one cell, the fifth action switches to another picture at random; elsewhere it does nothing.
    One sees the cell, one-hot, and the screen, which is dark (zeros) away from it.

    side: cells a side, >= 2.
    pixels: of the screen, >= 1.
    pictures: how many different ones there are, +1 and −1 drawn once; 0 for new noise at every switch.
    limit: steps after which an episode is truncated, >= 1.

    >>> room = NoisyTV(3, pixels=4)
    >>> state, seen = room.reset(jax.random.key(0))
    >>> seen.shape, bool(room.watching(state))
    ((13,), False)
    """

    side: int = eqx.field(static=True, default=6)
    pixels: int = eqx.field(static=True, default=16)
    pictures: int = eqx.field(static=True, default=8)
    limit: int = eqx.field(static=True, default=64)

    def __check_init__(self):
        for name, least in (("side", 2), ("pixels", 1), ("pictures", 0), ("limit", 1)):
            require("NoisyTV", name, f">= {least}", getattr(self, name), lambda n, least=least: n >= least)

    @property
    def observation_space(self) -> Box:
        """Cell and screen."""
        return Box((self.side**2 + self.pixels,), -1.0, 1.0)

    @property
    def action_space(self) -> Discrete:
        """Four moves, and another picture."""
        return Discrete(len(MOVES))

    def reset(self, key: Array) -> tuple[NoisyTVState, Array]:
        """The corner without the television, in the dark."""
        del key
        state = NoisyTVState(jnp.zeros(2, jnp.int32), jnp.zeros(self.pixels), jnp.asarray(0, jnp.int32))
        return state, self.observe(state)

    def watching(self, state: NoisyTVState) -> Bool[Array, ""]:
        """Whether one stands beside the television."""
        return jnp.all(state.place == self.side - 1)

    def observe(self, state: NoisyTVState) -> Array:
        """Cell and screen."""
        cell = jax.nn.one_hot(self.cell(state.place), self.side**2)
        return jnp.concatenate([cell, state.screen])

    def cell(self, place: Int[Array, "2"]) -> Array:
        """The number of a cell."""
        return place[0] * self.side + place[1]

    def step(self, key: Array, state: NoisyTVState, action: Array) -> tuple[NoisyTVState, Timestep]:
        """Move, or another picture."""
        place = jnp.clip(state.place + jnp.asarray(MOVES)[action], 0, self.side - 1)
        if self.pictures:
            table = np.random.default_rng(0).integers(0, 2, (self.pictures, self.pixels)) * 2.0 - 1
            picture = jnp.asarray(table, jnp.float32)[jax.random.randint(key, (), 0, self.pictures)]
        else:
            picture = jax.random.rademacher(key, (self.pixels,), jnp.float32)
        moved = NoisyTVState(place, state.screen, state.clock + 1)
        switched = self.watching(moved) & (action == WATCH)
        screen = jnp.where(switched, picture, jnp.where(self.watching(moved), state.screen, 0.0))
        moved: Any = moved._replace(screen=screen)
        late = moved.clock >= self.limit
        return moved, Timestep(self.observe(moved), jnp.asarray(0.0), jnp.asarray(False), late)
