"""Small mazes of certain steps, for imitation with an exact inner solver."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require

__all__ = ["Maze", "MazeTables", "Mazes"]

# Stay, and one step to every side.
MOVES = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))


class MazeTables(NamedTuple):
    """A maze as tables.

    following: the state after every action, [states, actions]. start: the law of the first state, [states]. features:
    coordinates within −1 and 1, [states, 2]. reward: 1 at the goal and −0.1 elsewhere, [states].
    """

    following: Int[Array, "states actions"]
    start: Float[Array, " states"]
    features: Float[Array, "states 2"]
    reward: Float[Array, " states"]


class Maze(eqx.Module):
    """A square room with a wall across its middle that leaves one way through, at the left or at the right end.

    One starts anywhere in the lowest row; the goal is in the middle of the highest. Walls are cells from which and to
    which nobody moves.

    side: cells a side, >= 5 and odd. gap: where the wall is open, "left" or "right".

    >>> tables = Maze(5).tables()
    >>> tables.following.shape, float(tables.start.sum())
    ((25, 5), 1.0)
    """

    side: int = eqx.field(static=True, default=7)
    gap: str = eqx.field(static=True, default="left")

    def __check_init__(self):
        require("Maze", "side", "odd, >= 5", self.side, lambda n: n >= 5 and n % 2 == 1)
        require("Maze", "gap", "'left' or 'right'", self.gap, lambda g: g in ("left", "right"))

    def tables(self) -> MazeTables:
        """Transitions, start, coordinates and the true reward."""
        side, middle = self.side, self.side // 2
        wall = np.zeros((side, side), bool)
        wall[middle, 1:] = True
        if self.gap == "right":
            wall = wall[:, ::-1]
        rows, columns = np.divmod(np.arange(side * side), side)
        following = np.zeros((side * side, len(MOVES)), np.int32)
        for action, (down, right) in enumerate(MOVES):
            to_row, to_column = np.clip(rows + down, 0, side - 1), np.clip(columns + right, 0, side - 1)
            blocked = wall[to_row, to_column] | wall[rows, columns]
            following[:, action] = np.where(blocked, np.arange(side * side), to_row * side + to_column)
        start = np.where(rows == side - 1, 1 / side, 0.0)
        reward = np.where((rows == 0) & (columns == middle), 1.0, -0.1)
        features = np.stack([rows, columns], axis=1) / middle - 1.0
        found = [jnp.asarray(values, jnp.float32) for values in (start, features, reward)]
        return MazeTables(jnp.asarray(following), *found)


class Mazes(eqx.Module):
    """A maze to learn in, and its mirror image to be tried in.

    side: cells a side.
    """

    side: int = eqx.field(static=True, default=7)

    @property
    def learned_in(self) -> MazeTables:
        """The way through is at the left."""
        return Maze(self.side, "left").tables()

    @property
    def tried_in(self) -> MazeTables:
        """The way through is at the right."""
        return Maze(self.side, "right").tables()

    def demonstration(self, key: Array, environment: Any, policy: Array, discount: Any, length: int) -> Array:
        """States and actions [length, 2] of a policy π(a | s), begun anew after each step with probability 1 − γ.

        So each pair is visited as often as the discounted returns of the policy count it.
        """
        first_key, step_key = jax.random.split(key)

        def move(state, key):
            action_key, anew_key, start_key = jax.random.split(key, 3)
            action = jax.random.categorical(action_key, jnp.log(policy[state] + 1e-30))
            start = jax.random.categorical(start_key, jnp.log(environment.start))
            anew = jax.random.uniform(anew_key) >= discount
            return jnp.where(anew, start, environment.following[state, action]), jnp.stack([state, action])

        first = jax.random.categorical(first_key, jnp.log(environment.start))
        return jax.lax.scan(move, first, jax.random.split(step_key, length))[1]
