"""How much players of a game cooperate: interaction indices by enumeration, by an identity, and estimated.

A game is a function from masks ``[m, n]`` of 0 and 1, one set of players a row, to rewards ``[m, ...]``; what follows
the first axis (a batch of images) is treated alike. For a pair i, j

    I_ij = Σ_{S ⊆ N∖{i, j}} w(|S|) Δ_ij(S),      Δ_ij(S) = v(S ∪ ij) - v(S ∪ i) - v(S ∪ j) + v(S)

is a mean of Δ over contexts S whose size has the law of the index and which are uniform given their size.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from laureate._core import require

__all__ = [
    "Game",
    "Index",
    "InteractionResult",
    "estimate_by_subsets",
    "estimate_interaction",
    "exact_interactions",
    "interaction_sums",
    "mean_interaction",
    "mean_of_pairs",
    "shapley_values",
    "tabulate",
]

Game = Callable[[Array], Array]
Index = Literal["shapley", "banzhaf", "faith-shap"]
MOST = 16  # players that are enumerated
CHUNK = 1024  # sets whose rewards are asked for at once


class InteractionResult(NamedTuple):
    """An estimate of the mean interaction of a pair.

    mean: unbiased, in the game's shape. standard_error: of the mean, by the samples' own spread.
    cost: rewards that were asked for.
    """

    mean: Float[Array, "..."]
    standard_error: Float[Array, "..."]
    cost: Int[Array, ""]


def law_of_sizes(index: Index, num_players: int) -> np.ndarray:
    """The probability that a pair is looked at in a context of 0 .. n - 2 players."""
    require("interactions", "index", "'shapley', 'banzhaf' or 'faith-shap'", index, lambda i: i in LAWS)
    require("interactions", "num_players", ">= 2", num_players, lambda n: isinstance(n, int) and n >= 2)
    return LAWS[index](num_players)


def _shapley(n: int) -> np.ndarray:
    return np.full(n - 1, 1 / (n - 1))  # every size alike


def _banzhaf(n: int) -> np.ndarray:
    return np.array([math.comb(n - 2, s) / 2 ** (n - 2) for s in range(n - 1)])  # every set alike


def _faith_shap(n: int) -> np.ndarray:
    sizes = np.arange(n - 1)
    return 6 * (sizes + 1) * (n - 1 - sizes) / ((n + 1) * n * (n - 1))  # of order two


LAWS: dict[str, Callable[[int], np.ndarray]] = {"shapley": _shapley, "banzhaf": _banzhaf, "faith-shap": _faith_shap}


def exact_interactions(game: Game, num_players: int, index: Index = "shapley") -> Float[Array, "n n ..."]:
    """The interaction of every pair, from the rewards of all 2ⁿ sets; 0 on the diagonal.

    index: ``"shapley"``: the Shapley interaction index (Grabisch, Roubens 1999), which the paper's definition, φ of the
        merged pair less φ of each where the other is absent, comes to. ``"banzhaf"``: all contexts alike.
        ``"faith-shap"``: the coefficients of the best approximation by pairs (Tsai, Yeh, Ravikumar 2023). In a game
        that has only pairwise terms all three are these terms.

    >>> product = lambda masks: 5 * masks[:, 0] * masks[:, 1] + masks[:, 2]
    >>> exact_interactions(product, 3).tolist()
    [[0.0, 5.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    n = num_players
    weights = law_of_sizes(index, n) / np.array([math.comb(n - 2, s) for s in range(n - 1)])

    def of_sets(masks, rewards):
        sizes = jnp.sum(masks, axis=1).astype(jnp.int32)

        def weighted(taken):
            # w(|S|) v where S is the set less those of the pair that are in it.
            s = sizes - taken
            w = jnp.where((s >= 0) & (s <= n - 2), jnp.asarray(weights, rewards.dtype)[jnp.clip(s, 0, n - 2)], 0)
            return w.reshape(-1, *(1,) * (rewards.ndim - 1)) * rewards

        masks = masks.astype(rewards.dtype)
        others = 1 - masks
        pairs = lambda one, values, two: jnp.einsum("ai,a...,aj->ij...", one, values, two)  # noqa: E731
        mixed = pairs(masks, weighted(1), others)
        return pairs(masks, weighted(2), masks) - mixed - jnp.swapaxes(mixed, 0, 1) + pairs(others, weighted(0), others)

    found = _enumerated("exact_interactions", game, n, of_sets)
    apart = 1 - jnp.eye(n, dtype=found.dtype)
    return found * apart.reshape(n, n, *(1,) * (found.ndim - 2))


def shapley_values(game: Game, num_players: int) -> Float[Array, "n ..."]:
    """φ_i = Σ_{S ⊆ N∖i} |S|!(n - |S| - 1)!/n! [v(S ∪ i) - v(S)], from the rewards of all 2ⁿ sets.

    >>> np.round(shapley_values(lambda masks: 6 * masks[:, 0] * masks[:, 1] + masks[:, 2], 3)).tolist()
    [3.0, 3.0, 1.0]
    """
    n = num_players
    weights = np.array([1 / (n * math.comb(n - 1, s)) for s in range(n)])

    def of_sets(masks, rewards):
        sizes = jnp.sum(masks, axis=1).astype(jnp.int32)
        shape = (-1, *(1,) * (rewards.ndim - 1))
        w = jnp.asarray(weights, rewards.dtype)
        present = jnp.where(sizes > 0, w[jnp.maximum(sizes - 1, 0)], 0).reshape(shape) * rewards
        absent = jnp.where(sizes < n, w[jnp.minimum(sizes, n - 1)], 0).reshape(shape) * rewards
        masks = masks.astype(rewards.dtype)
        return jnp.einsum("ai,a...->i...", masks, present) - jnp.einsum("ai,a...->i...", 1 - masks, absent)

    return _enumerated("shapley_values", game, n, of_sets)


def _enumerated(owner: str, game: Game, n: int, of_sets: Callable[[Array, Array], Array]) -> Array:
    """The sum over all sets of what ``of_sets`` makes of masks and rewards, a chunk at a time."""
    sets = _all_sets(owner, n)

    def of_chunk(total, some):
        masks = _masks(some, n)
        return total + of_sets(masks, _wide(game(masks))), None

    shape = jax.eval_shape(lambda some: of_chunk(0.0, some)[0], sets[0])
    return jax.lax.scan(of_chunk, jnp.zeros(shape.shape, shape.dtype), sets)[0]


def _all_sets(owner: str, n: int) -> Int[Array, "chunks chunk"]:
    """The numbers 0 .. 2ⁿ - 1, whose bits say who is in a set, in chunks."""
    remedy = f"That needs 2^{n} = {2**n} rewards. Take larger units, or estimate_interaction."
    fits = lambda n: isinstance(n, int) and 2 <= n <= MOST  # noqa: E731
    require(owner, "num_players", f"an integer in [2, {MOST}]", n, fits, remedy)
    return jnp.arange(2**n, dtype=jnp.int32).reshape(-1, min(2**n, CHUNK))


def _wide(rewards: Array) -> Array:
    """In single precision at least: weights of votes and counts would be whole numbers, too."""
    return rewards.astype(jnp.promote_types(rewards.dtype, jnp.float32))


def _masks(sets: Int[Array, "chunk"], n: int) -> Float[Array, "chunk n"]:
    return ((sets[:, None] >> jnp.arange(n, dtype=jnp.int32)) & 1).astype(float)


def tabulate(game: Game, num_players: int) -> Game:
    """The same game with its rewards for all 2ⁿ sets asked for once: then every index costs only its sums.

    >>> game = tabulate(lambda masks: 5 * masks[:, 0] * masks[:, 1] + masks[:, 2], 3)
    >>> game(jnp.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])).tolist()
    [5.0, 1.0]
    """
    sets = _all_sets("tabulate", num_players)
    rewards = jax.lax.map(lambda some: game(_masks(some, num_players)), sets)
    rewards = rewards.reshape(-1, *rewards.shape[2:])
    codes = 2 ** jnp.arange(num_players)
    return lambda masks: rewards[masks.astype(jnp.int32) @ codes]


def mean_of_pairs(interactions: Float[Array, "n n ..."]) -> Float[Array, "..."]:
    """The mean over pairs i ≠ j.

    >>> float(mean_of_pairs(jnp.array([[9.0, 2.0], [2.0, 9.0]])))
    2.0
    """
    n = len(interactions)
    diagonal = jnp.einsum("ii...->...", interactions)
    return (jnp.sum(interactions, axis=(0, 1)) - diagonal) / (n * (n - 1))


def interaction_sums(game: Game, num_players: int) -> Float[Array, "n ..."]:
    """Σ_{j ≠ i} I_ij of the Shapley index for every player i, exactly, from 2n + 2 rewards.

        Σ_{j ≠ i} I_ij = v(N) - v(N∖i) - v(i) + v(∅)

    >>> interaction_sums(lambda masks: 5 * masks[:, 0] * masks[:, 1] + masks[:, 2], 3).tolist()
    [5.0, 5.0, 0.0]
    """
    require("interaction_sums", "num_players", ">= 2", num_players, lambda n: isinstance(n, int) and n >= 2)
    return cuts(game, jnp.eye(num_players))


def mean_interaction(game: Game, num_players: int) -> Float[Array, "..."]:
    """The mean Shapley interaction over all pairs, exactly, from 2n + 2 rewards instead of 2ⁿ.

        E_{i ≠ j}[I_ij] = E_i[v(N) - v(N∖i) - v(i) + v(∅)] / (n - 1)

    >>> float(mean_interaction(lambda masks: 6 * masks[:, 0] * masks[:, 1] + masks[:, 2], 3))
    2.0
    """
    return jnp.mean(interaction_sums(game, num_players), axis=0) / (num_players - 1)


def cuts(game: Game, subsets: Float[Array, "m n"]) -> Float[Array, "m ..."]:
    """T(S) = v(N) - v(N∖S) - v(S) + v(∅) for each set S: all interaction across the cut; one call of the game."""
    m, n = subsets.shape
    ends = jnp.stack([jnp.ones(n, subsets.dtype), jnp.zeros(n, subsets.dtype)])
    values = _wide(game(jnp.concatenate([subsets, 1 - subsets, ends])))
    return values[-2] - values[m : 2 * m] - values[:m] + values[-1]


def estimate_by_subsets(
    key: Key[Array, ""], game: Game, num_players: int, size: int, num_samples: int
) -> InteractionResult:
    """The paper's estimate from random sets of ``size`` players, divided so that sizes can be compared.

        T(S) / (k (n - k)),      |S| = k, drawn without replacement

    Unbiased for the mean Shapley interaction if k = 1, or if the game has only pairwise terms.

    >>> pair = lambda masks: 6 * masks[:, 0] * masks[:, 1]
    >>> found = estimate_by_subsets(jax.random.key(0), pair, 4, size=2, num_samples=200)
    >>> bool(abs(found.mean - 1.0) < 4 * found.standard_error)  # one pair of six interacts
    True
    """
    _check_samples("estimate_by_subsets", num_samples)
    rule = f"an integer in [1, {num_players - 1}], one less than there are players at most"
    require("estimate_by_subsets", "size", rule, size, lambda k: isinstance(k, int) and 1 <= k < num_players)
    places = _places(jax.random.uniform(key, (num_samples, num_players)))
    found = cuts(game, (places < size).astype(float)) / (size * (num_players - size))
    return _summary(found, 2 * num_samples + 2)


def estimate_interaction(
    key: Key[Array, ""], game: Game, num_players: int, index: Index = "shapley", num_samples: int = 100
) -> InteractionResult:
    """The mean interaction of a pair by any index: Δ_ij(S) of random pairs in random contexts, four rewards a sample.

    >>> pair = lambda masks: 6 * masks[:, 0] * masks[:, 1]
    >>> found = estimate_interaction(jax.random.key(0), pair, 4, "banzhaf", num_samples=400)
    >>> bool(abs(found.mean - 1.0) < 4 * found.standard_error)
    True
    """
    _check_samples("estimate_interaction", num_samples)
    law = np.cumsum(law_of_sizes(index, num_players))
    drawn = jax.random.uniform(key, (num_samples, num_players + 1))
    places = _places(drawn[:, 1:])  # a random order: the first two are the pair, the next ones the context
    size = jnp.sum(drawn[:, :1] > jnp.asarray(law[:-1], drawn.dtype), axis=1, keepdims=True)
    context = (places >= 2) & (places < 2 + size)
    one, two = context | (places == 0), context | (places == 1)
    masks = jnp.concatenate([one | two, one, two, context]).astype(float)
    both, first, second, neither = jnp.split(_wide(game(masks)), 4)
    return _summary(both - first - second + neither, 4 * num_samples)


def _places(uniform: Array) -> Array:
    """The place of each player in a random order, row by row."""
    return jnp.argsort(jnp.argsort(uniform, axis=1), axis=1)


def _summary(samples: Array, cost: int) -> InteractionResult:
    error = jnp.std(samples, axis=0, ddof=1) / jnp.sqrt(float(len(samples)))
    return InteractionResult(jnp.mean(samples, axis=0), error, jnp.asarray(cost, jnp.int32))


def _check_samples(owner: str, num_samples: int) -> None:
    require(owner, "num_samples", "an integer >= 2", num_samples, lambda m: isinstance(m, int) and m >= 2)
