"""Intervals for a probability from successes among trials: Clopper and Pearson's, which always cover, and others.

NumPy arrays are worked on in float64; JAX's may be traced, and in float32 the ends are rounded outwards.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import betaincinv, ndtri

from laureate._core import require
from laureate.uncertainty.ranks import namespace

__all__ = ["INTERVALS", "clopper_pearson", "hoeffding", "jeffreys", "wald", "wilson"]

OUTWARDS = 2e-6  # more than the error of the bisection in float32


def _beta_quantile(q: Any, a: Any, b: Any) -> Any:
    """The x with I_x(a, b) = q; JAX has no inverse of its ``betainc``, so that is bisected."""
    if namespace(q, a, b) is np:
        return betaincinv(a, b, q)
    q, a, b = (jnp.asarray(value, jnp.result_type(float)) for value in jnp.broadcast_arrays(q, a, b))

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        below = jax.scipy.special.betainc(a, b, middle) < q
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    low, high = jax.lax.fori_loop(0, 50, halve, (jnp.zeros_like(q), jnp.ones_like(q)))
    return 0.5 * (low + high)


def clopper_pearson(k: Any, n: Any, delta: Any, side: str = "two") -> tuple[Any, Any]:
    """The interval [lo, hi] that holds the probability in at least 1 − δ of all draws (Clopper & Pearson 1934)::

        lo = BetaInv(δ/2; k, n − k + 1),  0 if k = 0;      hi = BetaInv(1 − δ/2; k + 1, n − k),  1 if k = n

    k, n: successes and trials, arrays of any one shape; n = 0 gives [0, 1]. delta: δ in (0, 1).
    side: "two"; "lower" or "upper" puts all of δ at that end, and 0 or 1 at the other.

    >>> [round(float(end), 6) for end in clopper_pearson(9, 10, 0.1)]
    [0.605837, 0.994884]
    """
    require("clopper_pearson", "delta", "in (0, 1)", delta, lambda d: np.all((d > 0) & (d < 1)))
    require("clopper_pearson", "side", "'two', 'lower' or 'upper'", side, lambda s: s in ("two", "lower", "upper"))
    xp = namespace(k, n, delta)
    k, n = xp.asarray(k), xp.asarray(n)
    tail = delta / 2 if side == "two" else delta
    slack = OUTWARDS if xp is jnp and jnp.result_type(float) == jnp.float32 else 0.0
    # Both ends from the small tail, where it is exact: 1 − δ/2 has lost digits of δ.
    lo = xp.where(k > 0, _beta_quantile(tail, xp.maximum(k, 1), n - xp.maximum(k, 1) + 1) - slack, 0.0)
    hi = xp.where(k < n, 1 - _beta_quantile(tail, xp.maximum(n - k, 1), xp.minimum(k, n - 1) + 1) + slack, 1.0)
    lo, hi = xp.clip(lo, 0, 1), xp.clip(hi, 0, 1)
    return (xp.zeros_like(lo) if side == "upper" else lo), (xp.ones_like(hi) if side == "lower" else hi)


def wilson(k: Any, n: Any, delta: Any) -> tuple[Any, Any]:
    """Wilson's score interval: right on average over probabilities, not for each.

    k, n: successes and trials. delta: the chance that the interval misses.
    """
    z = -ndtri(np.asarray(delta) / 2)
    n = np.asarray(n, float)
    safe = np.maximum(n, 1)
    middle = (k + z**2 / 2) / (safe + z**2)
    half = z * np.sqrt(k * (safe - k) / safe + z**2 / 4) / (safe + z**2)
    return np.where(n > 0, middle - half, 0.0), np.where(n > 0, middle + half, 1.0)


def wald(k: Any, n: Any, delta: Any) -> tuple[Any, Any]:
    """The textbook's p ± z √(p (1 − p)/n), cut to [0, 1]: of no width where all trials end alike."""
    safe = np.maximum(np.asarray(n, float), 1)
    p = k / safe
    half = -ndtri(np.asarray(delta) / 2) * np.sqrt(p * (1 - p) / safe)
    empty = np.asarray(n) == 0
    return np.where(empty, 0.0, np.clip(p - half, 0, 1)), np.where(empty, 1.0, np.clip(p + half, 0, 1))


def jeffreys(k: Any, n: Any, delta: Any) -> tuple[Any, Any]:
    """Equal tails of the posterior Beta(k + ½, n − k + ½), with 0 at k = 0 and 1 at k = n."""
    k, n = np.asarray(k), np.asarray(n)
    lo = betaincinv(k + 0.5, n - k + 0.5, np.asarray(delta) / 2)
    hi = betaincinv(k + 0.5, n - k + 0.5, 1 - np.asarray(delta) / 2)
    return np.where(k > 0, lo, 0.0), np.where(k < n, hi, 1.0)


def hoeffding(k: Any, n: Any, delta: Any) -> tuple[Any, Any]:
    """Hoeffding's p ± √(log(2/δ)/2n), cut to [0, 1]: always covers, and is wide.

    k, n: successes and trials. delta: δ, the chance that the interval misses.
    """
    safe = np.maximum(np.asarray(n, float), 1)
    half = np.where(np.asarray(n) > 0, np.sqrt(np.log(2 / np.asarray(delta)) / (2 * safe)), 1.0)
    return np.clip(k / safe - half, 0, 1), np.clip(k / safe + half, 0, 1)


INTERVALS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "clopper-pearson": clopper_pearson,
    "wilson": wilson,
    "jeffreys": jeffreys,
    "wald": wald,
    "hoeffding": hoeffding,
}
