"""Are these knockoffs exchangeable with their originals? A test on held-out rows that needs no response."""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import require
from laureate.selection.tables import as_table

__all__ = [
    "InvalidKnockoffWarning",
    "InvalidKnockoffsError",
    "ValidityReport",
    "discrimination",
    "second_moment_gaps",
    "validity_report",
]

CLIP = 4.0  # standard deviations: heavy tails would drown the rest of the classifier's features
ROUNDING = 1e-5  # standard deviations: where X̃ = X, what compilers round differently must not tell the two apart
RIDGE = 5.0  # of the mean diagonal: features are many and rows few; more or less of it costs power, never the level


class InvalidKnockoffsError(ValueError):
    """A selection was refused, for the knockoffs can be told from their originals on held-out rows."""


class InvalidKnockoffWarning(UserWarning):
    """A selection was made though its knockoffs can be told from their originals on held-out rows, or are untested."""


class ValidityReport(NamedTuple):
    """What held-out rows say about (X, X̃) =d (X, X̃)_swap(S).

    accuracy: of a classifier that is shown an unseen row and the row with variables swapped; 0.5 is valid.
    p_value: of "0.5" against "more", exact (binomial).
    mean_gap, covariance_gap, cross_gap: the largest |E X - E X̃|, |cov X - cov X̃| and, off the diagonal,
        |cov X - cov(X, X̃)|, in standard deviations of X.
    correlation: ``[p]``, of each variable with its knockoff; near 1 there is no power; copies are valid.
    num_rows: how many rows the classifier was tested on.
    """

    accuracy: Array
    p_value: Array
    mean_gap: Array
    covariance_gap: Array
    cross_gap: Array
    correlation: Array
    num_rows: int

    def __str__(self) -> str:
        return (
            f"held-out accuracy {float(self.accuracy):.3f} (0.5 is valid), p = {float(self.p_value):.2g} on "
            f"{self.num_rows} rows; largest gaps: mean {float(self.mean_gap):.2f}, covariance "
            f"{float(self.covariance_gap):.2f}, cross {float(self.cross_gap):.2f}; mean correlation with the "
            f"originals {float(jnp.mean(self.correlation)):.2f}"
        )


def validity_report(x: Any, knockoff: Any, key: Array | None = None, train: float = 0.5) -> ValidityReport:
    """Test knockoffs of rows that their sampler was not fitted to.

    x, knockoff: ``[n, p]``. train: the share of rows on which the classifier is trained; it is tested on the others.

    >>> import jax
    >>> x, other = jax.random.normal(jax.random.key(0), (2, 400, 4))
    >>> report = validity_report(x, other)  # independent variables: an independent copy is a knockoff
    >>> bool(report.p_value > 0.01), bool(validity_report(x, 2 * other).p_value < 0.01)
    (True, True)
    """
    x, knockoff = as_table("validity_report", x), as_table("validity_report", knockoff)
    require("validity_report", "X_knockoff", f"of X's shape {x.shape}", knockoff.shape, lambda s: s == x.shape)
    require("validity_report", "train", "in (0, 1)", train, lambda t: 0 < t < 1)
    require("validity_report", "X", "of at least 4 rows", x.shape[0], lambda n: n >= 4)
    key = jax.random.key(0) if key is None else key
    first = min(max(int(train * x.shape[0]), 2), x.shape[0] - 2)
    accuracy, correct = discrimination(key, x[:first], knockoff[:first], x[first:], knockoff[first:])
    n = x.shape[0] - first
    # P(Binomial(n, 1/2) >= correct), a regularised incomplete beta function.
    p_value = jnp.where(correct > 0, jax.scipy.special.betainc(jnp.maximum(correct, 1.0), n - correct + 1.0, 0.5), 1.0)
    return ValidityReport(accuracy, p_value, *second_moment_gaps(x, knockoff), n)


def discrimination(key: Array, x: Array, knockoff: Array, x_test: Array, knockoff_test: Array) -> tuple[Array, Array]:
    """The accuracy, and the number right, of a classifier that is shown a row and the row with some variables swapped.

    It says which of the two is the original, u = (X, X̃) or u_S. Exchangeability makes (u, u_S) and (u_S, u) alike: the
    number right is exactly Binomial(n, 1/2), whatever the classifier. Ours is a kernel ridge regression of 1 on
    φ(u) - φ(u_S). With v = (x, x²), standardised, m = (v + ṽ)/2 and d = v - ṽ, a swap of j flips the sign of d_j and
    leaves m: φ is made of d_j, d_j m_k and d_j d_k, second moments and those of squares, where tails and mixtures show.
    With d_S and d_N the swapped and the other part of d, and ⟨·,·⟩ between two rows,
    K = ⟨d_S, d_S⟩ (1 + ⟨m, m⟩ + ⟨d_N, d_N⟩) + ⟨d_S, d_N⟩⟨d_N, d_S⟩.
    """
    train_key, test_key, tie_key = jax.random.split(key, 3)
    mean, scale = jnp.mean(x, axis=0), jnp.std(x, axis=0)
    scale = jnp.where(scale > 0, scale, 1.0)
    n, p = x.shape
    # Two sets S for every row in training, and one for every row of the test.
    x, knockoff = jnp.concatenate([x, x]), jnp.concatenate([knockoff, knockoff])

    def parts(key, x, knockoff):
        x, knockoff = (jnp.clip((v - mean) / scale, -CLIP, CLIP) for v in (x, knockoff))
        first, second = (jnp.concatenate([v, (v**2 - 1.0) / jnp.sqrt(2.0)], axis=1) for v in (x, knockoff))
        swapped = jnp.tile(jax.random.bernoulli(key, 0.5, x.shape), (1, 2))
        m, d = 0.5 * (first + second), first - second
        d = jnp.where(jnp.abs(d) < ROUNDING, 0.0, d)
        return m, jnp.where(swapped, d, 0.0), jnp.where(swapped, 0.0, d)

    def kernel(one, other):
        (m, s, r), (m_, s_, r_) = one, other  # averages, swapped and remaining differences
        same = s @ s_.T
        return (same * (1.0 + m @ m_.T + r @ r_.T) + (s @ r_.T) * (r @ s_.T)) / p**2

    train, test = parts(train_key, x, knockoff), parts(test_key, x_test, knockoff_test)
    gram = kernel(train, train)
    ridge = RIDGE * jnp.trace(gram) / (2 * n) + 1e-6
    weights = jnp.linalg.solve(gram + ridge * jnp.eye(2 * n, dtype=gram.dtype), jnp.ones(2 * n, gram.dtype))
    score = kernel(test, train) @ weights
    # A score of exactly 0, as where X̃ = X, is decided by a fair coin.
    tie = jax.random.rademacher(tie_key, score.shape, score.dtype)
    right = jnp.where(score == 0, tie, score) > 0
    return jnp.mean(right), jnp.sum(right).astype(score.dtype)


def second_moment_gaps(x: Array, knockoff: Array) -> tuple[Array, Array, Array, Array]:
    """The largest gaps of means, covariances and cross-covariances, and ``[p]`` correlations with the originals."""
    mean, scale = jnp.mean(x, axis=0), jnp.std(x, axis=0)
    scale = jnp.where(scale > 0, scale, 1.0)
    z, k = (x - mean) / scale, (knockoff - mean) / scale
    gap = jnp.max(jnp.abs(jnp.mean(k, axis=0)))
    k = k - jnp.mean(k, axis=0)
    n = x.shape[0]
    own, other, cross = z.T @ z / n, k.T @ k / n, z.T @ k / n
    off = (own - cross) * (1.0 - jnp.eye(own.shape[0]))
    spread = jnp.sqrt(jnp.diag(other))
    correlation = jnp.diag(cross) / jnp.where(spread > 0, spread, 1.0)
    return gap, jnp.max(jnp.abs(own - other)), jnp.max(jnp.abs(off)), correlation


def refuse_or_warn(report: ValidityReport, level: float, allow_invalid: bool) -> None:
    """Refuse, or warn, where the report's p-value is below ``level``."""
    if float(report.p_value) >= level:
        return
    message = (
        f"the knockoffs are not exchangeable with their originals: {report}. A list made from them has no bound on its "
        "share of false discoveries."
    )
    if not allow_invalid:
        raise InvalidKnockoffsError(
            f"No selection: {message} Try CopulaKnockoffs (skewed or discrete columns), MixtureKnockoffs (clusters) or "
            "RefinedKnockoffs, or give allow_invalid=True to select all the same."
        )
    warnings.warn(f"Selected all the same: {message}", InvalidKnockoffWarning, stacklevel=3)
