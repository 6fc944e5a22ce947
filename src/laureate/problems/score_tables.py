"""Tables of scores on many games, drawn with the spread that a paper reports of its own."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["ScoreTable", "ScoreTables"]


class ScoreTable(NamedTuple):
    """Scores of four players, one number a game.

    scores: of an agent. random: of a random policy. gamer: of a human player. record: the world record.
    """

    scores: Float[Array, " games"]
    random: Float[Array, " games"]
    gamer: Float[Array, " games"]
    record: Float[Array, " games"]


class ScoreTables(eqx.Module):
    """Log-normal scores with a median and a mean as reported, and records that are log-normal too.

    ::

        agent / gamer = e^N(log m, s²),  s² = 2 log(mean / m);    record / gamer = 1 + e^N(log k, t²)

    A random policy scores 0 and a gamer 1 on every game.

    games: how many. median, mean: of agent / gamer; the mean must be the larger. record, spread: k and t.

    >>> table = ScoreTables(55).draw(jax.random.key(0))
    >>> table.scores.shape, bool((table.record > table.gamer).all())
    ((55,), True)
    """

    games: int = eqx.field(static=True, default=55)
    median: float = eqx.field(static=True, default=2.15)
    mean: float = eqx.field(static=True, default=11.33)
    record: float = eqx.field(static=True, default=8.0)
    spread: float = eqx.field(static=True, default=1.5)

    def __check_init__(self):
        require("ScoreTables", "games", ">= 2", self.games, lambda n: n >= 2)
        require("ScoreTables", "median", "> 0", self.median, lambda m: m > 0)
        require("ScoreTables", "mean", f">= median = {self.median}", self.mean, lambda m: m >= self.median)

    def draw(self, key: Array) -> ScoreTable:
        """A table."""
        drawn = jax.random.normal(key, (2, self.games))
        sigma = math.sqrt(2 * math.log(self.mean / self.median))
        scores = self.median * jnp.exp(sigma * drawn[0])
        gamer = jnp.ones(self.games)
        return ScoreTable(scores, 0 * gamer, gamer, 1 + self.record * jnp.exp(self.spread * drawn[1]))
