"""How far scores are from being probabilities: the KS error with its test, and the measures beside which it stands."""

from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jaxtyping import Array, Float

from laureate._core import require
from laureate.uncertainty.calibration import checked, running, sort_rows

__all__ = ["KSResult", "brier", "cumulative_difference", "ece", "ks_error", "ks_test", "nll"]

NULL_MEAN = float(np.sqrt(np.pi / 2))  # E sup|W| of a Brownian motion on [0, 1]
TERMS = 12


class KSResult(NamedTuple):
    """The KS error and what it would be by chance.

    statistic: KS = max |d|. range: max d − min d, the same whichever of two classes is counted.
    floor: the mean of the statistic if the scores were the true probabilities. z: statistic over its unit of noise.
    p_value: of the hypothesis that the scores are the true probabilities, for large samples.
    """

    statistic: Array
    range: Array
    floor: Array
    z: Array
    p_value: Array


def cumulative_difference(
    p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
) -> tuple[Float[Array, "points"], Float[Array, "points"]]:
    """The curve whose slope is the miscalibration, from (0, 0): fractiles t and d(t), each [rows + 1].

    ::

        d(t_i) = Σ_{j ≤ i} w_j (y_j − p_j),   t_i = Σ_{j ≤ i} w_j,   rows by ascending score     (Gupta et al., eq. 11)

    Rows of equal score are one step: all of them stand at its end, so that the order of the rows does not matter.

    p: scores in [0, 1]. y: hits, 0 or 1. weights: of the rows; None: all alike.

    >>> t, d = cumulative_difference(np.array([0.9, 0.2, 0.4]), np.array([1.0, 0.0, 1.0]))
    >>> print([f"{gap:.3f}" for gap in d])
    ['0.000', '-0.067', '0.133', '0.167']
    """
    return _curve(*checked("cumulative_difference", p, y, weights))


@jax.jit
def _curve(p, y, weights):
    rows = sort_rows(p, y, weights)
    places = jnp.concatenate([jnp.zeros(1, rows.last.dtype), rows.last])
    return running(rows.weight)[places], running(rows.weight * (rows.hit - rows.score))[places]


def ks_error(
    p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
) -> Float[Array, ""]:
    """The Kolmogorov-Smirnov calibration error: the largest gap between running sums of hits and scores, without bins.

    ::

        KS = max_t |d(t)|     (Gupta et al. 2021, eq. 12)

    Where the miscalibration has one sign this is its mean size; where it changes sign, parts cancel. A constant score
    has a small KS error and is of no use: judge by ``brier`` or ``nll`` too.

    p: scores in [0, 1]. y: hits, 0 or 1. weights: of the rows; None: all alike.

    >>> print(f"{ks_error(np.array([0.2, 0.4, 0.9]), np.array([0.0, 1.0, 1.0])):.4f}")
    0.1667
    """
    return _largest(*checked("ks_error", p, y, weights))


@jax.jit
def _largest(p, y, weights):
    return jnp.max(jnp.abs(_curve(p, y, weights)[1]))


def ks_test(p: Float[Array, "rows"], y: Float[Array, "rows"]) -> KSResult:
    """Whether a KS error is more than chance: if the scores are the true probabilities, d is a random walk.

    ::

        KS / σ → sup|W|,   σ² = mean p(1 − p) / rows,   E sup|W| = √(π/2),
        P(sup|W| > x) = 4 Σ_k (−1)^k Q((2k + 1) x)

    Q: the upper tail of the normal law; W: Brownian motion on [0, 1].

    >>> found = ks_test(np.array([0.2, 0.4, 0.9]), np.array([0.0, 1.0, 1.0]))
    >>> print(f"{found.statistic:.3f} {found.floor:.3f} {found.p_value:.2f}")
    0.167 0.292 0.89
    """
    return _test(*checked("ks_test", p, y))


@jax.jit
def _test(p, y, weights) -> KSResult:
    _, d = _curve(p, y, weights)
    statistic = jnp.max(jnp.abs(d))
    noise = jnp.sqrt(jnp.mean(p * (1 - p)) / p.size)
    # Scores of 0 and 1 alone leave nothing to chance: a gap is then a proof, no gap none.
    z = jnp.where(noise > 0, statistic / jnp.where(noise > 0, noise, 1), jnp.where(statistic > 0, jnp.inf, 0.0))
    return KSResult(statistic, jnp.max(d) - jnp.min(d), NULL_MEAN * noise, z, exceeded(z))


def exceeded(x: Array) -> Array:
    """P(sup|W| > x) of a Brownian motion on [0, 1]: two series, each where it converges quickly."""
    odd = 2 * jnp.arange(TERMS) + 1
    signs = (-1.0) ** jnp.arange(TERMS)
    tail = 2 * jnp.sum(signs * erfc(odd * x / np.sqrt(2)))  # Q(x) = erfc(x / √2) / 2
    small = jnp.clip(x, 1e-3, 1.0)
    inside = 4 / jnp.pi * jnp.sum(signs / odd * jnp.exp(-(jnp.pi**2) * odd**2 / (8 * small**2)))
    return jnp.where(x < 1, 1 - inside, tail)


def ece(
    p: Float[Array, "rows"], y: Float[Array, "rows"], num_bins: int = 15, scheme: Literal["width", "mass"] = "width"
) -> Float[Array, ""]:
    """The expected calibration error: mean gap between hits and scores within bins, Σ_b (n_b / n) |ȳ_b − p̄_b|.

    num_bins: how many. scheme: ``"width"``: equally wide, closed above; ``"mass"``: equally many rows, ties together.

    >>> print(f"{ece(np.array([0.2, 0.4, 0.9]), np.array([0.0, 1.0, 1.0]), num_bins=2):.4f}")
    0.1667
    """
    require("ece", "num_bins", ">= 1", num_bins, lambda b: b >= 1)
    require("ece", "scheme", "width or mass", scheme, lambda s: s in ("width", "mass"))
    return _ece(*checked("ece", p, y), num_bins, scheme)


@partial(jax.jit, static_argnums=(3, 4))
def _ece(p, y, weights, bins, scheme):
    if scheme == "width":
        which = jnp.clip(jnp.ceil(p * bins).astype(int) - 1, 0, bins - 1)
        gaps = jax.ops.segment_sum(y - p, which, bins)
    else:
        rows = sort_rows(p, y, weights)
        gaps = jax.ops.segment_sum(rows.hit - rows.score, rows.first * bins // p.size, bins)
    return jnp.sum(jnp.abs(gaps)) / p.size


def brier(p: Float[Array, "rows"], y: Float[Array, "rows"]) -> Float[Array, ""]:
    """The mean squared difference of scores and hits, mean (p − y)²: calibration and sharpness in one number.

    >>> print(f"{brier(np.array([0.2, 0.4, 0.9]), np.array([0.0, 1.0, 1.0])):.4f}")
    0.1367
    """
    p, y, _ = checked("brier", p, y)
    return _mean_square(p - y)


def nll(p: Float[Array, "rows"], y: Float[Array, "rows"]) -> Float[Array, ""]:
    """The mean negative log-likelihood of the hits, −mean [y log p + (1 − y) log(1 − p)], in nats.

    Scores of exactly 0 and 1 are moved in by the precision of their type, as scikit-learn's ``log_loss`` does.

    >>> print(f"{nll(np.array([0.2, 0.4, 0.9]), np.array([0.0, 1.0, 1.0])):.4f}")
    0.4149
    """
    p, y, _ = checked("nll", p, y)
    return _cross_entropy(p, y)


@jax.jit
def _mean_square(gap):
    return jnp.mean(gap**2)


@jax.jit
def _cross_entropy(p, y):
    margin = jnp.finfo(p.dtype).eps
    p = jnp.clip(p, margin, 1 - margin)
    return -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log1p(-p))
