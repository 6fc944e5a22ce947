"""Weights that undo the choice of labels: LURE, PURE, and two ways that are biased."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["WEIGHTS", "check_log", "importance_weights", "lure_weights", "plain_weights", "pure_weights"]

ARGMAX = "A pick that was certain has no correction: mix some uniform mass into the proposal (Acquisition.floor)."


def lure_weights(q: Float[Array, "M"], num_pool: int, *, log: bool = False) -> Float[Array, "M"]:
    """Weights for labels that were chosen one after the other: their weighted mean is the pool's mean, on average.

    For M picks out of a pool of N, without replacement, the m-th with probability q_m among those left::

        v_m = 1 + (N-M)/(N-m) · (1/((N-m+1) q_m) - 1),     E[1/M Σ v_m L_{i_m}] = 1/N Σ L_n

    (Farquhar, Gal & Rainforth 2021, R_LURE). Whatever the proposal saw, labels included, as long as every point that is
    left could be picked. Uniform picks have weight 1; with the whole pool labelled all weights are 1. Usable as
    ``sample_weight`` and in a weighted loss; a loss that is averaged *before* it is weighted ignores them.

    q: probability of each pick among the points left at that moment, in the order of picking, each in (0, 1].
    num_pool: N, the size of the pool before the first pick, >= M.
    log: ``q`` holds natural logarithms, for proposals so sharp that probabilities underflow.

    >>> [round(float(v), 4) for v in lure_weights(jnp.array([0.5, 0.25]), 5)]
    [0.55, 1.0]
    """
    inverse, m, n = _prepared(lure_weights, q, num_pool, log)
    count = m.shape[0]
    # (N-M)/(N-m) is 0/0 at m = N = M, where nothing is left to be corrected.
    share = (n - count) / jnp.maximum(n - m, 1)
    return 1 + share * (inverse / (n - m + 1) - 1)


def pure_weights(q: Float[Array, "M"], num_pool: int, *, log: bool = False) -> Float[Array, "M"]:
    """The paper's first correction, unbiased as LURE and simpler, mostly of a larger variance.

    ::

        u_m = 1/(N q_m) + (M-m)/N     (Farquhar, Gal & Rainforth 2021, R_PURE)

    The arguments are those of `lure_weights`. With the whole pool labelled the mean still depends on the order.

    >>> [round(float(u), 4) for u in pure_weights(jnp.array([0.5, 0.25]), 5)]
    [0.6, 0.8]
    """
    inverse, m, n = _prepared(pure_weights, q, num_pool, log)
    return inverse / n + (m.shape[0] - m) / n


def importance_weights(q: Float[Array, "M"], num_pool: int, *, log: bool = False) -> Float[Array, "M"]:
    """Plain importance weights 1/(N q_m), as if points were put back: biased downwards, for what was picked is gone.

    The arguments are those of `lure_weights`.

    >>> [round(float(w), 4) for w in importance_weights(jnp.array([0.5, 0.25]), 5)]
    [0.4, 0.8]
    """
    inverse, _, n = _prepared(importance_weights, q, num_pool, log)
    return inverse / n


def plain_weights(q: Float[Array, "M"], num_pool: int, *, log: bool = False) -> Float[Array, "M"]:
    """Weights of 1: the mean of what was labelled, biased towards whatever the proposal likes.

    The arguments are those of `lure_weights`.

    >>> plain_weights(jnp.array([0.5, 0.25]), 5).tolist()
    [1.0, 1.0]
    """
    inverse, _, _ = _prepared(plain_weights, q, num_pool, log)
    return jnp.ones_like(inverse)


WEIGHTS: dict[str, Callable[..., Array]] = {
    "lure": lure_weights,
    "pure": pure_weights,
    "importance": importance_weights,
    "plain": plain_weights,
}


def check_log(picks: Any, q: Any, num_pool: int, *, log: bool = False) -> None:
    """Raise ``ValueError`` unless picks and their probabilities can be the log of one labelling session.

    picks: indices into the pool in the order of picking: none twice, all in 0..num_pool-1, as many as ``q``.
    The other arguments are those of `lure_weights`.

    >>> check_log([3, 1], [0.5, 0.25], 5)
    """
    picks = np.asarray(picks)
    require("check_log", "picks", f"one for each q, {np.shape(q)}", picks.shape, lambda s: s == np.shape(q))
    rule = f"whole numbers in 0..{num_pool - 1}: a pool must not grow during a session"
    whole = np.issubdtype(picks.dtype, np.integer)
    require("check_log", "picks", rule, picks, lambda p: whole and bool(((p >= 0) & (p < num_pool)).all()))
    values, counts = np.unique(picks, return_counts=True)
    twice = values[counts > 1].tolist()
    if twice:
        raise ValueError(
            f"check_log.picks must be without repetition; got {twice} more than once. "
            "The weights are for picks without replacement."
        )
    _prepared(check_log, q, num_pool, log)


def _prepared(owner: Callable, q: Any, num_pool: int, log: bool) -> tuple[Array, Array, float]:
    """1/q, m = 1..M and N, after looking at what can be looked at outside jit."""
    name = owner.__name__
    require(name, "q", "one number a pick, [M] with M >= 1", np.shape(q), lambda s: len(s) == 1 and s[0] >= 1)
    count = np.shape(q)[0]
    require(name, "num_pool", f">= the number of picks, {count}", num_pool, lambda n: n >= count)
    if not isinstance(q, Tracer):
        _check_probabilities(name, np.asarray(q, np.float64), num_pool, log)
    values = jnp.asarray(q)
    values = values.astype(jnp.promote_types(values.dtype, jnp.float32))
    # Whole numbers in the precision of the weights: float32 counts to 16 million, and an integer N² to 46,000.
    return jnp.exp(-values) if log else 1 / values, jnp.arange(1, count + 1, dtype=values.dtype), float(num_pool)


def _check_probabilities(name: str, q: np.ndarray, num_pool: int, log: bool) -> None:
    inside = (q <= 0) & (q > -np.inf) if log else (q > 0) & (q <= 1)
    if not inside.all():
        at = int(np.argmin(inside))
        rule = "finite and <= 0, as a logarithm" if log else "in (0, 1]"
        raise ValueError(f"{name}.q must be {rule}; got {q[at]} at position {at}. {ARGMAX}")
    certain = (q == 0 if log else q == 1) & (np.arange(1, len(q) + 1) < num_pool)
    if certain.any():
        at = int(np.argmax(certain))
        raise ValueError(f"{name}.q must be below 1 while other points are left; got 1 at position {at}. {ARGMAX}")
