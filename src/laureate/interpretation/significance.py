"""Is the agreement of models more than chance? Permutation nulls, what chance gives, and intervals from groups."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.interpretation.moments import Moments, MomentsState, RunningMoments, place_of
from laureate.interpretation.ranking import RankingResult, max_corr, other_models

__all__ = ["NullResult", "ScoreInterval", "expected_null", "permutation_null", "score_interval"]

Ranking = Callable[[Moments, int], RankingResult]


class NullResult(NamedTuple):
    """Scores beside those of models that have nothing to do with each other.

    observed: each unit's score. null: the same with tokens exchanged, ``[permutations, units]``.
    p_value: share of the null that is at least the score, the score itself counted. high: the null's quantile at
        ``level``.
    adjusted: the same as p_value beside the largest of all units, so that one unit in all is falsely below 0.05 in 5 %.
    """

    observed: Float[Array, "d"]
    null: Float[Array, "p d"]
    p_value: Float[Array, "d"]
    high: Float[Array, "d"]
    adjusted: Float[Array, "d"]


def expected_null(num_units: int, num_tokens: int) -> float:
    """What max_j |ρ| is by chance: √(2 log(2d)/n) for d independent units on n independent tokens.

    >>> round(expected_null(500, 10_000), 3)
    0.037
    """
    require("expected_null", "num_units", ">= 1", num_units, lambda n: n >= 1)
    require("expected_null", "num_tokens", ">= 1", num_tokens, lambda n: n >= 1)
    return math.sqrt(2 * math.log(2 * num_units) / num_tokens)


def permutation_null(
    key: Key[Array, ""],
    activations: Sequence[Float[Array, "n d"]],
    model: int,
    *,
    num_permutations: int = 100,
    block: int = 1,
    ranking: Ranking = max_corr,
    level: float = 0.95,
) -> NullResult:
    """Exchange the tokens of every other model, which leaves the models but not what they share, and rank again.

    Tokens that follow each other are alike, and exchanging them one by one makes the null too narrow: exchange blocks,
    sentences at best. Works under jit; the activations of all tokens must fit in memory.

    key: each other model's tokens are exchanged in an order of their own.
    activations: one array ``[tokens, units]`` a model. model: whose units are ranked.
    num_permutations: >= 1; the smallest p is 1/(num_permutations + 1).
    block: tokens that stay together, >= 1; tokens that do not fill a block are left out.
    ranking: `max_corr` or another function of moments and a model. level: of the band, in (0, 1).
    """
    values = [jnp.asarray(x) for x in activations]
    stats = RunningMoments(tuple(x.shape[-1] for x in values))
    require("permutation_null", "num_permutations", ">= 1", num_permutations, lambda n: n >= 1)
    require("permutation_null", "level", "in (0, 1)", level, lambda share: 0 < share < 1)
    blocks = len(values[0]) // block if block >= 1 else 0
    rule = f"in 1..{len(values[0]) // 2}, for at least two blocks to exchange"
    require("permutation_null", "block", rule, block, lambda size: size >= 1 and blocks >= 2)
    values = [x[: blocks * block] for x in values]
    state, _ = stats.update(stats.init(), values)
    whole = stats.finish(state)
    others = other_models(whole, model, "permutation_null")
    mine = values[model] - whole.means[model]

    def shuffled(key):
        products = list(whole.products)
        for other, one in zip(others, jax.random.split(key, len(others)), strict=True):
            order = jax.random.permutation(one, blocks)
            rows = (order[:, None] * block + jnp.arange(block)).ravel()
            product = mine.T @ (values[other] - whole.means[other])[rows]
            low, high = min(model, other), max(model, other)
            products[place_of(low, high, len(values))] = product if model < other else product.T
        return ranking(Moments(whole.count, whole.means, tuple(products)), model).scores

    observed = ranking(whole, model).scores
    null = jax.lax.map(shuffled, jax.random.split(key, num_permutations))
    # Not below, instead of at least: a score that is not a number is then never beyond chance.
    above = jnp.sum(~(null < observed), axis=0)
    above_all = jnp.sum(~(jnp.max(null, axis=1)[:, None] < observed), axis=0)
    return NullResult(
        observed,
        null,
        (1 + above) / (num_permutations + 1),
        jnp.quantile(null, level, axis=0),
        (1 + above_all) / (num_permutations + 1),
    )


class ScoreInterval(NamedTuple):
    """Each unit's score with what the choice of tokens does to it.

    scores: from all tokens. corrected: less the bias that the groups show, as a maximum is high by chance.
    low, high: the interval's ends, around the corrected score. standard_error: of them. order: by the scores.
    """

    scores: np.ndarray
    corrected: np.ndarray
    low: np.ndarray
    high: np.ndarray
    standard_error: np.ndarray
    order: Int[Array, "d"]


def score_interval(
    stats: RunningMoments,
    groups: Sequence[MomentsState],
    model: int,
    *,
    ranking: Ranking = max_corr,
    level: float = 0.95,
) -> ScoreInterval:
    """The jackknife over groups of tokens: documents, say, each with a state of its own, in flat memory.

    With θ from all groups and θ_g from all but one: error² = (G − 1)/G Σ (θ_g − mean)², and Student's law with G − 1
    degrees of freedom.

    stats: what the groups' states were made with. groups: at least 3, of about equally many tokens.
    model, ranking: as for `permutation_null`. level: in (0, 1).
    """
    from scipy.special import stdtrit

    require("score_interval", "groups", "at least 3 states", len(groups), lambda n: n >= 3)
    require("score_interval", "level", "in (0, 1)", level, lambda share: 0 < share < 1)
    merge, rank = jax.jit(stats.merge), jax.jit(lambda state: ranking(stats.finish(state), model))
    # All before and all after each group, so that leaving one out is one merge.
    before, after = [stats.init()], [stats.init()]
    for state in groups:
        before.append(merge(before[-1], state))
    for state in reversed(groups):
        after.append(merge(state, after[-1]))
    after.reverse()
    whole = rank(before[-1])
    scores = np.asarray(whole.scores, np.float64)
    without = np.stack([np.asarray(rank(merge(before[g], after[g + 1])).scores) for g in range(len(groups))])
    count, mean = len(groups), without.mean(0, dtype=np.float64)
    error = np.sqrt((count - 1) / count * ((without - mean) ** 2).sum(0))
    corrected = count * scores - (count - 1) * mean
    width = float(stdtrit(count - 1, (1 + level) / 2)) * error
    return ScoreInterval(scores, corrected, corrected - width, corrected + width, error, whole.order)
