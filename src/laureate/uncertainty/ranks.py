"""Where labels stand in the order of their probabilities, what score that gives them, and the conformal threshold.

All functions take NumPy or JAX arrays and answer in kind: JAX's may be traced, NumPy's sort is the faster on a CPU.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import betainc, betaincinv

from laureate._core import require

__all__ = [
    "CoverageLaw",
    "Ranked",
    "conformal_quantile",
    "coverage_law",
    "fit_temperature",
    "lac_score",
    "namespace",
    "rank_all",
    "rank_label",
    "raps_score",
    "saps_score",
    "set_of_size",
    "top_k_score",
]


class Ranked(NamedTuple):
    """Labels in the order of their probabilities: all that the scores of this module look at.

    rank: o, 1 for the most probable; ties go to the smaller class index. above: ρ, the mass strictly before the label.
    mass: p_y, its own. top: p_(1), the largest of the row.
    """

    rank: Any
    above: Any
    mass: Any
    top: Any


def namespace(*arrays: Any) -> Any:
    """``jax.numpy`` where an array is JAX's, otherwise ``numpy``."""
    return jnp if any(isinstance(array, jax.Array) for array in arrays) else np


def rank_label(p: Any, y: Any) -> Ranked:
    """The label ``y [...]`` of every row of ``p [..., K]``, without a sort.

    >>> [round(float(v), 2) for v in rank_label(np.array([0.15, 0.5, 0.05, 0.3]), np.array(3))]
    [2.0, 0.5, 0.3, 0.5]
    """
    xp = namespace(p, y)
    mass = xp.take_along_axis(p, xp.asarray(y)[..., None], axis=-1)
    tied = (p == mass) & (xp.arange(p.shape[-1]) < xp.asarray(y)[..., None])
    before = (p > mass) | tied
    above = xp.sum(p * before, axis=-1)
    return Ranked(1 + xp.sum(before, axis=-1), above, mass[..., 0], xp.max(p, axis=-1))


def rank_all(p: Any) -> Ranked:
    """The labels of every row of ``p [..., K]``, the most probable first.

    >>> rank_all(np.array([0.15, 0.5, 0.05, 0.3])).above.round(2).tolist()
    [0.0, 0.5, 0.8, 0.95]
    """
    xp = namespace(p)
    mass = xp.sort(p, axis=-1)[..., ::-1]
    cumulative = xp.cumsum(mass, axis=-1)
    above = xp.concatenate([xp.zeros_like(mass[..., :1]), cumulative[..., :-1]], axis=-1)
    return Ranked(xp.arange(1, p.shape[-1] + 1), above, mass, mass[..., :1])


def raps_score(at: Ranked, u: Any, k_reg: Any, lam: Any, penalty: Any = None) -> Any:
    """The score of regularised adaptive prediction sets (Angelopoulos et al. 2021, eq. 4)::

        s(x, y, u) = ρ(x, y) + u p_y + λ (o(x, y) − k_reg)⁺

    u: uniform on [0, 1), one an example; a trailing axis of length 1 where ``at`` has all labels.
    k_reg: the last rank without penalty. lam: λ, the penalty of every rank after it; 0 is APS.
    penalty: one's own penalties ``[K]`` of ranks 1, 2, …, which must not fall, instead of ``k_reg`` and ``lam``.

    >>> raps_score(rank_all(np.array([0.15, 0.5, 0.05, 0.3])), 0.5, k_reg=2, lam=0.1).round(3).tolist()
    [0.25, 0.65, 0.975, 1.175]
    """
    xp = namespace(*at, u, k_reg, lam)
    extra = lam * xp.maximum(at.rank - k_reg, 0) if penalty is None else xp.asarray(penalty)[at.rank - 1]
    return at.above + u * at.mass + xp.asarray(extra, at.mass.dtype)


def lac_score(at: Ranked, u: Any = None) -> Any:
    """The score 1 − p_y of the least ambiguous sets (Sadinle et al. 2019); it draws nothing."""
    del u
    return 1 - at.mass


def top_k_score(at: Ranked, u: Any) -> Any:
    """The score o(x, y) − 1 + u, whose sets have all the same size or one less."""
    return at.rank - 1 + u


def saps_score(at: Ranked, u: Any, lam: Any) -> Any:
    """The score of sorted adaptive prediction sets (Huang et al. 2024): of the probabilities only the largest counts.

    s = u p_(1) at rank 1, and p_(1) + (o − 2 + u) λ after it.
    """
    xp = namespace(*at, u, lam)
    return xp.where(at.rank == 1, u * at.top, at.top + (at.rank - 2 + u) * lam)


def conformal_quantile(scores: Any, alpha: Any, weights: Any = None, test_weight: Any = 1.0) -> Any:
    """The threshold τ below which a new score lies with probability 1 − α or more (Vovk et al. 2005)::

        τ = the ⌈(n + 1)(1 − α)⌉-th smallest of s_1, …, s_n,   ∞ where that index exceeds n

    scores: ``[n]``, exchangeable with the new one. alpha: α in (0, 1).
    weights: w_i ``[n]`` for a known shift of the inputs, and ``test_weight`` that of the new one: the smallest s_i at
        which Σ_{s_j ≤ s_i} w_j reaches (1 − α)(Σ_j w_j + w). Without them all are 1, which is the line above.

    >>> [float(conformal_quantile(np.arange(1.0, n + 1), alpha=0.1)) for n in (8, 9, 15, 20)]
    [inf, 9.0, 15.0, 19.0]
    """
    xp = namespace(scores, alpha, weights, test_weight)
    require("conformal_quantile", "alpha", "in (0, 1)", alpha, lambda a: 0 < a < 1)
    scores = xp.asarray(scores)
    scores = scores if xp.issubdtype(scores.dtype, np.floating) else scores.astype(float)  # whole numbers have no ∞
    n = scores.shape[0]
    # 1 − α is rounded: without this 10 × (1 − 0.7) would be above 3.
    slack = 1e-6 if xp is jnp else 1e-12
    if weights is None:
        ordered = xp.concatenate([xp.sort(scores), xp.full((1,), xp.inf, scores.dtype)])
        index = xp.ceil((n + 1) * (1 - xp.asarray(alpha) - slack)).astype(int)
        return ordered[xp.clip(index - 1, 0, n)]
    order = xp.argsort(scores)
    ordered = xp.concatenate([scores[order], xp.full((1,), xp.inf, scores.dtype)])
    reached = xp.cumsum(xp.asarray(weights)[order])
    short = reached < (1 - xp.asarray(alpha) - slack) * (xp.sum(weights) + test_weight)
    return ordered[xp.sum(short)]


def set_of_size(p: Any, size: Any, mass: Any = None) -> Any:
    """The ``size [...]`` most probable labels of every row of ``p [..., K]``, as bool; ties as in `Ranked`.

    mass: the sorted probabilities of `rank_all`, where they are known.

    >>> set_of_size(np.array([[0.2, 0.5, 0.1, 0.2]]), np.array([2])).tolist()
    [[True, True, False, False]]
    """
    xp = namespace(p, size)
    size = xp.asarray(size)[..., None]
    mass = xp.sort(p, axis=-1)[..., ::-1] if mass is None else mass
    least = xp.take_along_axis(mass, xp.clip(size - 1, 0, p.shape[-1] - 1), axis=-1)
    inside = (p >= least) & (size > 0)
    if xp is np and np.array_equal(np.count_nonzero(inside, axis=-1), size[..., 0]):
        return inside
    more, equal = p > least, p == least  # of labels as probable as the last one, those of the smaller indices
    spare = size - xp.sum(more, axis=-1, keepdims=True)
    return inside & (more | (xp.cumsum(equal, axis=-1) <= spare))


def fit_temperature(
    logits: Any, y: Any, min_temperature: float = 0.05, max_temperature: float = 20.0, num_steps: int = 30
) -> Any:
    """The temperature T at which softmax(z / T) has the smallest mean negative log-likelihood of the labels.

    In β = 1/T that loss is convex with the derivative E[Σ_j p_j z_j − z_y], whose sign change is bisected in log β.
    T stays between ``min_temperature`` and ``max_temperature``. `Temperature` does the same for probabilities, with
    weights.

    logits, y: z and the true classes. num_steps: of bisection.

    >>> z = np.log(np.array([[0.8, 0.2]] * 10)) * 3  # said three times too loudly
    >>> round(float(fit_temperature(z, np.array([0] * 8 + [1] * 2))), 3)
    3.0
    """
    xp = namespace(logits, y)
    z = logits - xp.max(logits, axis=-1, keepdims=True)
    right = xp.mean(xp.take_along_axis(z, xp.asarray(y)[..., None], axis=-1))

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)  # of log T
        weight = xp.exp(z * xp.exp(-middle))
        slope = xp.mean(xp.sum(weight * z, axis=-1) / xp.sum(weight, axis=-1)) - right
        too_cold = slope > 0
        return xp.where(too_cold, middle, low), xp.where(too_cold, high, middle)

    ends = (xp.asarray(math.log(min_temperature), z.dtype), xp.asarray(math.log(max_temperature), z.dtype))
    if xp is jnp:
        ends = jax.lax.fori_loop(0, num_steps, halve, ends)
    else:
        for step in range(num_steps):
            ends = halve(step, ends)
    return xp.exp(0.5 * (ends[0] + ends[1]))


class CoverageLaw(NamedTuple):
    """The law Beta(a, b) of the coverage over calibration sets, where scores have no ties.

    a: the rank of the threshold among the n calibration scores. b: n + 1 − a.
    """

    a: int
    b: int

    @property
    def mean(self) -> float:
        """The coverage over calibration sets and new examples."""
        return self.a / (self.a + self.b)

    @property
    def sd(self) -> float:
        """How far the coverage of one calibration set is off, typically."""
        return math.sqrt(self.a * self.b / (self.a + self.b + 1)) / (self.a + self.b)

    def cdf(self, coverage: Any) -> Any:
        """The share of calibration sets whose coverage is at most this."""
        return 1.0 * (np.asarray(coverage) >= 1) if self.b == 0 else betainc(self.a, self.b, coverage)

    def ppf(self, share: Any) -> Any:
        """The coverage below which this share of calibration sets lies."""
        return np.ones_like(share, float) if self.b == 0 else betaincinv(self.a, self.b, share)


def coverage_law(n: int, alpha: float) -> CoverageLaw:
    """How the coverage of one calibration set of ``n`` rows is distributed: Beta(k, n + 1 − k), k = ⌈(n + 1)(1 − α)⌉.

    The promise 1 − α is one on the mean over calibration sets: nearly half of them cover less.

    >>> law = coverage_law(1000, 0.1)
    >>> law, round(law.sd, 4), round(float(law.cdf(0.9)), 3)
    (CoverageLaw(a=901, b=100), 0.0095, 0.485)
    """
    require("coverage_law", "n", ">= 1", n, lambda n: n >= 1)
    require("coverage_law", "alpha", "in (0, 1)", alpha, lambda a: 0 < a < 1)
    k = min(n + 1, math.ceil((n + 1) * (1 - alpha - 1e-12)))
    return CoverageLaw(k, n + 1 - k)
