"""One number for an agent that was tried on many games: means, medians, and means of scores held below records."""

from typing import Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["aggregate_scores", "top_influence"]

How = Literal["gamer-median", "gamer-mean", "record-mean", "clipped-record-mean"]


def aggregate_scores(
    scores: Float[Array, "... games"],
    random: Float[Array, " games"],
    reference: Float[Array, " games"],
    how: How = "clipped-record-mean",
) -> Float[Array, "..."]:
    """Scores on many games as one number.

    ::

        s = (score − random) / (reference − random),    median s,  mean s,  or mean min(s, 1)

    Hafner et al. (2021, section 3) recommend the mean of scores normalised by the human world record and clipped at
    it: no game can dominate it, and none stops to count once a gamer is beaten.

    scores: of each game, last axis. random: a random policy's. reference: a gamer's, or the world record.
    how: "gamer-median", "gamer-mean", "record-mean" (which is the same with another reference) or
        "clipped-record-mean".

    >>> table = jnp.array([2.0, 0.5, 30.0])
    >>> [round(float(aggregate_scores(table, jnp.zeros(3), jnp.ones(3), how)), 3)
    ...  for how in ("gamer-median", "gamer-mean", "clipped-record-mean")]
    [2.0, 10.833, 0.833]
    """
    require("aggregate_scores", "how", f"one of {', '.join(get_args(How))}", how, lambda h: h in get_args(How))
    games = scores.shape[-1:]
    for name, row in (("random", random), ("reference", reference)):
        require("aggregate_scores", name, f"of shape {games}, as games", jnp.shape(row), lambda s: s == games)
    gap = reference - random
    require("aggregate_scores", "reference - random", "nowhere 0", gap, lambda g: np.all(np.asarray(g) != 0))
    normal = (scores - random) / gap
    if how == "gamer-median":
        return jnp.median(normal, axis=-1)
    return jnp.mean(jnp.minimum(normal, 1.0) if how == "clipped-record-mean" else normal, axis=-1)


def top_influence(
    scores: Float[Array, " games"],
    random: Float[Array, " games"],
    reference: Float[Array, " games"],
    how: How = "clipped-record-mean",
) -> Float[Array, ""]:
    """By what share an aggregate changes, at most, when one game is left out.

    The arguments are those of ``aggregate_scores``.

    >>> round(float(top_influence(jnp.array([1.0, 1.0, 7.0]), jnp.zeros(3), jnp.ones(3), "gamer-mean")), 4)
    0.6667
    """
    games = scores.shape[0]
    require("top_influence", "scores", "of two games at least", games, lambda n: n >= 2)
    rows = np.array([[j for j in range(games) if j != i] for i in range(games)])
    whole = aggregate_scores(scores, random, reference, how)
    without = jnp.stack([aggregate_scores(scores[row], random[row], reference[row], how) for row in rows])
    return jnp.max(jnp.abs(without - whole)) / jnp.abs(whole)
