"""Very small worlds for agents that learn a model: a crossroads, a ledge, two rooms, a mass on a line."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.loops import Box, Discrete, Timestep

__all__ = ["Crossroads", "Hearth", "Ledge", "PointMass", "PointMassState", "Room", "WalkState"]

MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]], np.int32)


class WalkState(NamedTuple):
    """Where one stands.

    place: the cell, a number or (row, column). clock: steps walked.
    """

    place: Array
    clock: Int[Array, ""]


class Crossroads(eqx.Module):
    """Sequences of pictures: the middle of a square, then one of the branches around it at random, then the middle.

    What follows the middle cannot be known; what follows a branch can. A picture has one bright pixel.

    branches: how many, 2 … 8, all as likely.

    >>> pictures = Crossroads(8).draw(jax.random.key(0), 4, 2)
    >>> pictures.shape, pictures[0, 0].tolist()  # the middle of 3 × 3 pixels
    ((4, 2, 9), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    """

    branches: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        require("Crossroads", "branches", "2 to 8", self.branches, lambda n: 2 <= n <= 8)

    @property
    def ends(self) -> Float[Array, "branches 9"]:
        """The pictures of the branches."""
        around = np.array([0, 1, 2, 3, 5, 6, 7, 8])[: self.branches]
        return jnp.asarray(np.eye(9, dtype=np.float32)[around])

    def last_middle(self, length: int) -> int:
        """The last time of a sequence at which the middle is seen and a branch may follow."""
        return (length - 1) // 2 * 2

    def draw(self, key: Array, length: int, number: int) -> Float[Array, "length number 9"]:
        """Pictures at even times of the middle, at odd times of a branch."""
        which = jax.random.randint(key, (length, number), 0, self.branches)
        middle = jnp.asarray(np.eye(9, dtype=np.float32)[4])
        return jnp.where((jnp.arange(length) % 2 == 0)[:, None, None], middle, self.ends[which])


class Ledge(eqx.Module):
    """Cells in a row with an abyss at both ends: a reward for every step that ends on a cell, none for a fall.

    One begins in the middle. A fall terminates the episode. The observation is one-hot: the cells, then the abyss.

    cells: >= 1. reward: of a step.

    >>> ledge = Ledge(3, reward=1.0)
    >>> [round(v, 3) for v in ledge.values(0.5).tolist()]  # V = r + γ/2 (V left + V right)
    [1.429, 1.714, 1.429]
    """

    cells: int = eqx.field(static=True, default=5)
    reward: float = 0.2

    def __check_init__(self):
        require("Ledge", "cells", ">= 1", self.cells, lambda n: n >= 1)

    @property
    def observation_space(self) -> Box:
        """One-hot."""
        return Box((self.cells + 1,), 0.0, 1.0)

    @property
    def action_space(self) -> Discrete:
        """Left and right."""
        return Discrete(2)

    def observe(self, state: WalkState) -> Float[Array, " cells+1"]:
        """One-hot; the abyss last."""
        inside = (state.place >= 0) & (state.place < self.cells)
        return jax.nn.one_hot(jnp.where(inside, state.place, self.cells), self.cells + 1)

    def reset(self, key: Array) -> tuple[WalkState, Array]:
        """The middle."""
        del key
        state = WalkState(jnp.asarray(self.cells // 2, jnp.int32), jnp.asarray(0, jnp.int32))
        return state, self.observe(state)

    def step(self, key: Array, state: WalkState, action: Array) -> tuple[WalkState, Timestep]:
        """One cell on."""
        del key
        state = WalkState(state.place + jnp.where(action == 1, 1, -1), state.clock + 1)
        fallen = (state.place < 0) | (state.place >= self.cells)
        reward = jnp.where(fallen, 0.0, self.reward)
        return state, Timestep(self.observe(state), reward, fallen, jnp.asarray(False))

    def values(self, gamma: float | Array) -> Float[Array, " cells"]:
        """V = (I − γ P)⁻¹ r of random steps, the reward of being on the cell included."""
        at = np.arange(self.cells - 1)
        move = np.zeros((self.cells, self.cells))
        move[at, at + 1] = move[at + 1, at] = 0.5
        return jnp.linalg.solve(jnp.eye(self.cells) - gamma * jnp.asarray(move), jnp.full(self.cells, self.reward))


class Room(eqx.Module):
    """A square room: reach a goal that is not seen, in as few steps as possible.

    A reward of 1 at the goal, where the episode terminates, less 1/limit for every step. One begins in a corner. The
    observation is the cell, one-hot.

    side: cells a side, >= 2. limit: steps after which an episode is truncated, >= 1. goal: its cell; ``drawn`` gives
    another, at least as many steps away as the side.

    >>> room = Room(3)
    >>> state, seen = room.reset(jax.random.key(0))
    >>> seen.shape, int(room.goal)
    ((9,), 8)
    """

    side: int = eqx.field(static=True)
    limit: int = eqx.field(static=True)
    goal: Int[Array, ""]

    def __init__(self, side: int = 5, limit: int = 25, goal: int = -1):
        require("Room", "side", ">= 2", side, lambda n: n >= 2)
        require("Room", "limit", ">= 1", limit, lambda n: n >= 1)
        self.side, self.limit, self.goal = side, limit, jnp.asarray(goal % side**2, jnp.int32)

    @property
    def observation_space(self) -> Box:
        """One-hot."""
        return Box((self.side**2,), 0.0, 1.0)

    @property
    def action_space(self) -> Discrete:
        """Four moves."""
        return Discrete(len(MOVES))

    def drawn(self, key: Array) -> "Room":
        """The same with another goal, at least ``side`` steps from the start."""
        rows, columns = np.divmod(np.arange(self.side**2), self.side)
        far = np.flatnonzero(rows + columns >= self.side).astype(np.int32)
        goal = jnp.asarray(far)[jax.random.randint(key, (), 0, len(far))]
        return eqx.tree_at(lambda room: room.goal, self, goal)

    def reset(self, key: Array) -> tuple[WalkState, Array]:
        """The corner."""
        del key
        state = WalkState(jnp.zeros(2, jnp.int32), jnp.asarray(0, jnp.int32))
        return state, self.observe(state)

    def observe(self, state: WalkState) -> Float[Array, " cells"]:
        """One-hot."""
        return jax.nn.one_hot(state.place[0] * self.side + state.place[1], self.side**2)

    def step(self, key: Array, state: WalkState, action: Array) -> tuple[WalkState, Timestep]:
        """One cell on; walls stop."""
        del key
        place = jnp.clip(state.place + jnp.asarray(MOVES)[action], 0, self.side - 1)
        state = WalkState(place, state.clock + 1)
        there = place[0] * self.side + place[1] == self.goal
        reward = there.astype(jnp.float32) - 1.0 / self.limit
        return state, Timestep(self.observe(state), reward, there, (state.clock >= self.limit) & ~there)


class Hearth(eqx.Module):
    """A square room with a warm cell that is not seen: a reward of 1 for every step that ends on it.

    One begins on any cell, all as likely, and may walk or stay; nothing ends an episode but its limit. The observation
    is the cell, one-hot. Every step may be rewarded, so that who acts at random meets rewards from the beginning, and a
    return lies between 0 and ``best``: how soon values are learned is asked, not who finds a goal at all.

    side: cells a side, >= 2. limit: steps after which an episode is truncated, >= 1. warm: the cell; ``drawn`` gives
    another. bright: what the observation has where one stands, > 0: what a model of it gains by a likelihood of
    variance 1 grows with its square.

    >>> hearth = Hearth(3, 8)
    >>> state, seen = hearth.reset(jax.random.key(0))
    >>> seen.shape, int(hearth.warm), round(float(hearth.best()), 3)  # in a corner: two steps away on average
    ((9,), 8, 6.889)
    """

    side: int = eqx.field(static=True)
    limit: int = eqx.field(static=True)
    warm: Int[Array, ""]
    bright: Float[Array, ""]

    def __init__(self, side: int = 5, limit: int = 16, warm: int = -1, bright: float = 1.0):
        require("Hearth", "side", ">= 2", side, lambda n: n >= 2)
        require("Hearth", "limit", ">= 1", limit, lambda n: n >= 1)
        require("Hearth", "bright", "> 0", bright, lambda b: b > 0)
        self.side, self.limit, self.warm = side, limit, jnp.asarray(warm % side**2, jnp.int32)
        self.bright = jnp.asarray(bright, jnp.float32)

    @property
    def observation_space(self) -> Box:
        """One pixel a cell."""
        return Box((self.side**2,), 0.0)

    @property
    def action_space(self) -> Discrete:
        """Four moves, and to stay."""
        return Discrete(len(MOVES) + 1)

    def drawn(self, key: Array) -> "Hearth":
        """The same with another cell that is warm, all as likely."""
        warm = jax.random.randint(key, (), 0, self.side**2, jnp.int32)
        return eqx.tree_at(lambda hearth: hearth.warm, self, warm)

    def best(self) -> Float[Array, ""]:
        """The mean return of who always takes a shortest way, and stays: limit − max(distance − 1, 0)."""
        rows, columns = np.divmod(np.arange(self.side**2), self.side)
        away = jnp.abs(rows - self.warm // self.side) + jnp.abs(columns - self.warm % self.side)
        return jnp.mean(jnp.maximum(self.limit - jnp.maximum(away - 1, 0), 0).astype(jnp.float32))

    def reset(self, key: Array) -> tuple[WalkState, Array]:
        """Any cell."""
        place = jax.random.randint(key, (2,), 0, self.side, jnp.int32)
        state = WalkState(place, jnp.asarray(0, jnp.int32))
        return state, self.observe(state)

    def observe(self, state: WalkState) -> Float[Array, " cells"]:
        """One-hot, times its brightness."""
        return self.bright * jax.nn.one_hot(state.place[0] * self.side + state.place[1], self.side**2)

    def step(self, key: Array, state: WalkState, action: Array) -> tuple[WalkState, Timestep]:
        """One cell on, or none; walls stop."""
        del key
        moves = np.concatenate([MOVES, np.zeros((1, 2), np.int32)])
        state = WalkState(jnp.clip(state.place + jnp.asarray(moves)[action], 0, self.side - 1), state.clock + 1)
        reward = (state.place[0] * self.side + state.place[1] == self.warm).astype(jnp.float32)
        return state, Timestep(self.observe(state), reward, jnp.asarray(False), state.clock >= self.limit)


class PointMassState(NamedTuple):
    """How a mass moves.

    place: x. speed: v. clock: steps done.
    """

    place: Float[Array, ""]
    speed: Float[Array, ""]
    clock: Int[Array, ""]


class PointMass(eqx.Module):
    """A mass on a line with friction that shall be brought to the middle and kept there by a force within −1 and 1.

    ::

        v ← 0.8 v + 0.4 a,    x ← clip(x + 0.3 v, ±1.5),    reward = exp(−8 x²)

    One begins at rest at a place drawn from −1 … 1. The observation is (x, v). A return is at most ``limit``.

    limit: steps of an episode, which is truncated, >= 1.

    >>> mass = PointMass(20)
    >>> state, seen = mass.reset(jax.random.key(0))
    >>> seen.shape, mass.action_space.shape
    ((2,), (1,))
    """

    limit: int = eqx.field(static=True, default=20)

    def __check_init__(self):
        require("PointMass", "limit", ">= 1", self.limit, lambda n: n >= 1)

    @property
    def observation_space(self) -> Box:
        """Place and speed."""
        return Box((2,))

    @property
    def action_space(self) -> Box:
        """The force."""
        return Box((1,), -1.0, 1.0)

    def reset(self, key: Array) -> tuple[PointMassState, Array]:
        """At rest somewhere."""
        place = jax.random.uniform(key, (), minval=-1.0, maxval=1.0)
        state = PointMassState(place, jnp.asarray(0.0), jnp.asarray(0, jnp.int32))
        return state, self.observe(state)

    def observe(self, state: PointMassState) -> Float[Array, "2"]:
        """(x, v)."""
        return jnp.stack([state.place, state.speed])

    def step(self, key: Array, state: PointMassState, action: Array) -> tuple[PointMassState, Timestep]:
        """Push."""
        del key
        speed = 0.8 * state.speed + 0.4 * jnp.clip(jnp.reshape(action, ()), -1.0, 1.0)
        state = PointMassState(jnp.clip(state.place + 0.3 * speed, -1.5, 1.5), speed, state.clock + 1)
        reward = jnp.exp(-8 * state.place**2)
        return state, Timestep(self.observe(state), reward, jnp.asarray(False), state.clock >= self.limit)
