"""What a model's loss on the whole pool is, from the labels that were chosen, with a standard error."""

from collections.abc import Callable
from statistics import NormalDist
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require, warn
from laureate.active.weights import importance_weights, lure_weights, plain_weights, pure_weights

__all__ = [
    "RISKS",
    "BiasReport",
    "RiskEstimate",
    "WeightWarning",
    "bias_report",
    "importance_risk",
    "lure_ratio",
    "lure_risk",
    "plain_risk",
    "pure_risk",
]

Losses = Float[Array, "M *models"]


class WeightWarning(UserWarning):
    """The weights look wrong, or a few of them decide the estimate."""


class RiskEstimate(NamedTuple):
    """An estimate of the pool's mean loss, one number a model.

    value: the estimate. standard_error: of the choice of labels, given the pool; for the risk in the population add
        the pool's own variance, Var(L)/N. NaN where it is not defined: fewer than three picks, or all but one.
    effective: (Σ v)²/Σ v², the number of equally weighted labels that these are worth.
    max_weight: the largest share of one label, max v/Σ v.
    """

    value: Array
    standard_error: Array
    effective: Array
    max_weight: Array

    def interval(self, level: float = 0.95, scale: Literal["linear", "log"] = "linear") -> tuple[Array, Array]:
        """Where the pool's mean lies with probability ``level``, by the normal law of the estimate or of its logarithm.

        Estimates from few, unequal weights are skewed to the right: the linear interval then covers less than it says;
        ``"log"`` (for positive losses) corrects part of it.
        """
        require("RiskEstimate", "level", "in (0, 1)", level, lambda share: 0 < share < 1)
        require("RiskEstimate", "scale", "'linear' or 'log'", scale, lambda word: word in ("linear", "log"))
        reach = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        if scale == "linear":
            return self.value - reach, self.value + reach
        factor = jnp.exp(reach / self.value)
        return self.value / factor, self.value * factor


def lure_risk(losses: Losses, q: Float[Array, "M"], num_pool: int, *, log: bool = False) -> RiskEstimate:
    """The pool's mean loss from labels that were chosen, unbiased, with an unbiased variance.

    ::

        R_LURE = 1/M Σ v_m L_{i_m} = Σ p_m a_m,     a_m = L_{i_m}/(N q_m) + 1/N Σ_{t<m} L_{i_t}
        p_m = N(N-M) / (M (N-m)(N-m+1)),     V = Σ w_m (a_m - R)² / (1 + Σ w_m),  w_m = p_m²/(1 - 2 p_m)

    (Farquhar, Gal & Rainforth 2021; the variance is ours: the a_m are uncorrelated and have one mean, whatever the
    proposal learned on the way, so that E V is the variance of R over the picks.) Only for a model that was not fitted
    to these labels: for one that was, see `bias_report`.

    losses: of the picked points in the order of picking, ``[M]`` or ``[M, models]``.
    q, num_pool, log: as for `lure_weights`.

    >>> losses, q = jnp.array([1.5, 0.8, 0.3]), jnp.array([0.34, 0.21, 0.33])
    >>> risk = lure_risk(losses, q, 7)
    >>> round(float(risk.value), 3), round(float(risk.standard_error), 3)
    (0.59, 0.118)
    """
    return _lure("lure_risk", losses, q, num_pool, log)


def pure_risk(losses: Losses, q: Float[Array, "M"], num_pool: int, *, log: bool = False) -> RiskEstimate:
    """The same with the weights of `pure_weights`: R_PURE = 1/M Σ a_m, with its unbiased variance.

    The arguments are those of `lure_risk`.

    >>> round(float(pure_risk(jnp.array([1.5, 0.8, 0.3]), jnp.array([0.34, 0.21, 0.33]), 7).value), 3)
    0.616
    """
    u = pure_weights(q, num_pool, log=log)
    p = jnp.full(u.shape, 1 / u.shape[0], u.dtype)
    return _estimate("pure_risk", losses, u, lambda shaped: _design_variance(shaped, q, num_pool, p, log))


def importance_risk(losses: Losses, q: Float[Array, "M"], num_pool: int, *, log: bool = False) -> RiskEstimate:
    """The mean of L/(N q), as if points were put back: biased; the standard error knows nothing of the bias.

    The arguments are those of `lure_risk`.

    >>> round(float(importance_risk(jnp.array([1.5, 0.8, 0.3]), jnp.array([0.34, 0.21, 0.33]), 7).value), 3)
    0.435
    """
    weights = importance_weights(q, num_pool, log=log)
    return _estimate("importance_risk", losses, weights, lambda x: _variance_of_mean(x * _as(weights, x)))


def plain_risk(losses: Losses, q: Float[Array, "M"], num_pool: int, *, log: bool = False) -> RiskEstimate:
    """The mean of the losses that were labelled: right for uniform picks alone, with their standard error.

    ::

        V = (1 - M/N) · S²/M,   S² the sample variance: picks without replacement

    The arguments are those of `lure_risk`.

    >>> round(float(plain_risk(jnp.array([1.5, 0.8, 0.3]), jnp.array([0.34, 0.21, 0.33]), 7).value), 3)
    0.867
    """
    weights = plain_weights(q, num_pool, log=log)
    left = 1 - weights.shape[0] / num_pool
    return _estimate("plain_risk", losses, weights, lambda x: left * _variance_of_mean(x))


RISKS: dict[str, Callable[..., RiskEstimate]] = {
    "lure": lure_risk,
    "pure": pure_risk,
    "importance": importance_risk,
    "plain": plain_risk,
}


def lure_ratio(
    numerator: Losses, denominator: Losses, q: Float[Array, "M"], num_pool: int, *, log: bool = False
) -> RiskEstimate:
    """A ratio of two pool means: precision, recall, F1, accuracy on a slice.

    ::

        T = Σ v_m A_m / Σ v_m B_m,   its variance that of R_LURE of the residuals A_m - T B_m, over (1/M Σ v_m B_m)²

    A ratio of unbiased numbers is biased by O(1/M). NaN where the denominator is 0.

    numerator, denominator: of each pick, ``[M]`` or ``[M, models]``; recall has (predicted and true, true).
    q, num_pool, log: as for `lure_weights`.

    >>> hit, true = jnp.array([1.0, 0.0, 1.0, 0.0]), jnp.array([1.0, 1.0, 1.0, 0.0])
    >>> round(float(lure_ratio(hit, true, jnp.full(4, 0.1), 20).value), 3)  # hardly any weight in it
    0.667
    """
    shape = np.shape(numerator)
    require("lure_ratio", "denominator", f"of shape {shape}", np.shape(denominator), lambda s: s == shape)
    below = _lure("lure_ratio", denominator, q, num_pool, log)
    ratio = _lure("", numerator, q, num_pool, log).value / below.value
    residual = _lure("", jnp.asarray(numerator) - ratio * jnp.asarray(denominator), q, num_pool, log)
    return RiskEstimate(ratio, residual.standard_error / jnp.abs(below.value), below.effective, below.max_weight)


class BiasReport(NamedTuple):
    """Where the gap between a trained model's loss on its labels and its true loss comes from; total = the sum.

    active: R_LURE(θ) - R̃(θ), of the choice of labels: negative where hard points were chosen.
    overfitting: r(θ) - R_LURE(θ), of training on these labels: positive where the model fits them.
    total: r(θ) - R̃(θ).
    """

    active: Array
    overfitting: Array
    total: Array


def bias_report(losses: Losses, q: Float[Array, "M"], num_pool: int, risk: Array, *, log: bool = False) -> BiasReport:
    """How much of a trained model's optimism is active-learning bias and how much is overfitting.

    losses: of the model on the labels it was trained on, in the order of picking, not weighted.
    q, num_pool, log: as for `lure_weights`. risk: the same model's mean loss on labels it has never seen.

    >>> report = bias_report(jnp.array([0.2, 0.1]), jnp.array([0.5, 0.25]), 5, jnp.array(0.4))
    >>> [round(float(part), 3) for part in report]
    [-0.045, 0.295, 0.25]
    """
    v = lure_weights(q, num_pool, log=log)
    shaped = _shaped("bias_report", losses, v)
    corrected, plain = jnp.mean(_as(v, shaped) * shaped, axis=0), jnp.mean(shaped, axis=0)
    return BiasReport(corrected - plain, risk - corrected, risk - plain)


def _lure(name: str, losses: Losses, q: Array, num_pool: int, log: bool) -> RiskEstimate:
    v = lure_weights(q, num_pool, log=log)
    n, count = float(num_pool), v.shape[0]
    if count == n:  # nothing was left to chance
        return _estimate(name, losses, v, lambda x: jnp.zeros(x.shape[1:], x.dtype))
    m = jnp.arange(1, count + 1, dtype=v.dtype)
    p = n * (n - count) / (count * (n - m) * (n - m + 1))
    return _estimate(name, losses, v, lambda x: _design_variance(x, q, num_pool, p, log))


def _design_variance(losses: Array, q: Array, num_pool: int, p: Array, log: bool) -> Array:
    """V of ``lure_risk`` for terms a_m with weights p_m; NaN where some p_m is 1/2 or more."""
    ahead = jnp.cumsum(losses, axis=0) - losses
    inverse = importance_weights(q, num_pool, log=log)
    a = _as(inverse, losses) * losses + ahead / float(num_pool)
    w = p**2 / (1 - 2 * p)
    found = jnp.sum(_as(w, a) * (a - jnp.sum(_as(p, a) * a, axis=0)) ** 2, axis=0) / (1 + jnp.sum(w))
    return jnp.where(jnp.max(p) < 0.5, found, jnp.nan)


def _variance_of_mean(values: Array) -> Array:
    count = values.shape[0]
    return jnp.var(values, axis=0, ddof=1) / count if count > 1 else jnp.full(values.shape[1:], jnp.nan)


def _estimate(name: str, losses: Array, weights: Array, variance: Callable[[Array], Array]) -> RiskEstimate:
    shaped = _shaped(name, losses, weights)
    total = jnp.sum(weights)
    effective, largest = total**2 / jnp.sum(weights**2), jnp.max(weights) / total
    if name not in ("", "plain_risk") and not isinstance(weights, Tracer):
        _warn(name, np.asarray(weights, np.float64), float(effective), float(largest))
    value = jnp.mean(_as(weights, shaped) * shaped, axis=0)
    return RiskEstimate(value, jnp.sqrt(variance(shaped)), effective, largest)


def _warn(name: str, weights: np.ndarray, effective: float, largest: float) -> None:
    count = len(weights)
    if count < 10:
        return
    error = weights.std(ddof=1) / np.sqrt(count)
    # E v_m = 1 for LURE; of PURE and of importance sampling that holds only for M << N.
    if name.startswith("lure") and abs(weights.mean() - 1) > 4 * error + 1e-6:
        said = f"{name}: the weights average {weights.mean():.3g} ± {error:.2g} and should average 1."
        warn(f"{said} Is q normalised over the points left, and in the order of picking?", WeightWarning)
    elif largest > 0.2 or effective < count / 5:
        said = f"{name}: {count} labels are worth {effective:.1f}; one has {largest:.0%} of the weight."
        warn(f"{said} Mix more uniform mass into the proposal (Acquisition.floor).", WeightWarning)


def _shaped(name: str, losses: Array, weights: Array) -> Array:
    count = weights.shape[0]
    rule = f"of shape ({count},) or ({count}, models), as q"
    require(name or "lure_ratio", "losses", rule, np.shape(losses), lambda s: s[:1] == (count,))
    values = jnp.asarray(losses)
    return values.astype(jnp.promote_types(values.dtype, weights.dtype))


def _as(weights: Array, losses: Array) -> Array:
    return weights.reshape(weights.shape + (1,) * (losses.ndim - 1))
