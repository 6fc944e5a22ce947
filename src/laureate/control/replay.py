"""A replay buffer of fixed shape, inside compiled programs: a ring of steps of several environments."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from laureate._core import require
from laureate.control.world_model import Sequences

__all__ = ["Replay", "ReplayState"]


class ReplayState(NamedTuple):
    """What was lived.

    rows: a ring of steps, [capacity, environments, ...]. count: how many rows were ever written.
    """

    rows: Sequences
    count: Int[Array, ""]  # pyright: ignore[reportIncompatibleMethodOverride]


class Replay(eqx.Module):
    """The newest steps of several environments, from which sequences are drawn.

    ::

        start ~ uniform over what is kept,    sequence = steps start … start + length − 1 of one environment

    A sequence may run over the end of an episode, where ``first`` says so; its own first step counts as one.

    capacity: steps kept of each environment, >= length. length: of a sequence, >= 2.

    >>> replay = Replay(8, 3)
    >>> at = jnp.arange(6.0)[:, None]  # six steps of one environment
    >>> steps = Sequences(at[..., None], at[..., None], at, at < 0, at < 0)
    >>> state = replay.add(steps, replay.init(steps))
    >>> found = replay.sample(jax.random.key(0), 2, state)
    >>> found.reward.shape, (found.reward[1:] - found.reward[:-1]).tolist(), found.first[:, 0].tolist()
    ((3, 2), [[1.0, 1.0], [1.0, 1.0]], [True, False, False])
    """

    capacity: int = eqx.field(static=True)
    length: int = eqx.field(static=True, default=50)

    def __check_init__(self):
        require("Replay", "length", ">= 2", self.length, lambda n: n >= 2)
        require("Replay", "capacity", f">= length = {self.length}", self.capacity, lambda n: n >= self.length)

    def init(self, rows: Sequences) -> ReplayState:
        """Empty, for steps as these [T, environments, ...]."""
        empty = jax.tree.map(lambda leaf: jnp.zeros((self.capacity, *leaf.shape[1:]), leaf.dtype), rows)
        return ReplayState(empty, jnp.asarray(0, jnp.int32))

    def add(self, rows: Sequences, state: ReplayState) -> ReplayState:
        """With T more steps; the oldest are overwritten."""
        number = rows.reward.shape[0]
        require("Replay", "rows", f"at most capacity = {self.capacity} steps", number, lambda n: n <= self.capacity)
        at = (state.count + jnp.arange(number)) % self.capacity
        put = lambda ring, new: ring.at[at].set(new)  # noqa: E731
        return ReplayState(jax.tree.map(put, state.rows, rows), state.count + number)

    def sample(self, key: Array, batch: int, state: ReplayState) -> Sequences:
        """``batch`` sequences, [length, batch, ...]; at least ``length`` steps must have been added."""
        remedy = "Add more steps first, or ask for a smaller length."
        require("Replay", "count", f">= length = {self.length}", state.count, lambda n: n >= self.length, remedy)
        start_key, row_key = jax.random.split(key)
        kept = jnp.minimum(state.count, self.capacity)
        start = jax.random.randint(start_key, (batch,), 0, kept - self.length + 1) + (state.count - kept)
        row = jax.random.randint(row_key, (batch,), 0, state.rows.reward.shape[1])
        at = (start + jnp.arange(self.length)[:, None]) % self.capacity
        found = jax.tree.map(lambda ring: ring[at, row], state.rows)
        return found._replace(first=found.first.at[0].set(True))
