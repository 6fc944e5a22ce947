"""Which units of a model matter? Rankings from the agreement of models, and the simple scores they must beat.

Every score is such that higher means more important. The rankings by agreement are those of Bau et al. (2019), who take
MaxCorr and MinCorr from Li et al. (2016), "Convergent learning".
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.interpretation.moments import Moments, at_least_single

__all__ = [
    "RankingResult",
    "linear_regression",
    "max_corr",
    "min_corr",
    "output_norm",
    "random_order",
    "ranked",
    "standard_deviation",
]


class RankingResult(NamedTuple):
    """The units of a model by importance.

    scores: of each unit, higher is more important. order: units, the most important first; of equals the first.
    partner_model, partner_unit: whom a unit agrees with most, as its score counts it; −1 where nobody is compared.
    """

    scores: Float[Array, "d"]
    order: Int[Array, "d"]
    partner_model: Int[Array, "d"]
    partner_unit: Int[Array, "d"]


def ranked(
    scores: Float[Array, "d"],
    partner_model: Int[Array, "d"] | None = None,
    partner_unit: Int[Array, "d"] | None = None,
) -> RankingResult:
    """A ranking from scores of one's own; what is not finite comes last.

    >>> ranked(jnp.array([0.1, 0.9, 0.5])).order.tolist()
    [1, 2, 0]
    """
    scores = jnp.asarray(scores)
    none = jnp.full(scores.shape, -1)
    order = jnp.argsort(-jnp.where(jnp.isfinite(scores), scores, -jnp.inf), stable=True)
    return RankingResult(
        scores,
        order,
        none if partner_model is None else partner_model,
        none if partner_unit is None else partner_unit,
    )


def max_corr(moments: Moments, model: int) -> RankingResult:
    """MaxCorr: a unit matters if some unit of some other model does the same.

    MaxCorr(i, m) = max_{j, m' ≠ m} |ρ(x_i^m, x_j^m')|.

    The maximum over many units is high by chance where tokens are few: compare with `permutation_null`.
    """
    strength, unit, others = _best_partners(moments, model, "max_corr")
    chosen = jnp.argmax(strength, axis=0)
    return _with_partners(strength, unit, others, chosen)


def min_corr(moments: Moments, model: int) -> RankingResult:
    """MinCorr: a unit matters if every other model has a unit that does the same.

    MinCorr(i, m) = min_{m' ≠ m} max_j |ρ(x_i^m, x_j^m')|.
    """
    strength, unit, others = _best_partners(moments, model, "min_corr")
    chosen = jnp.argmin(strength, axis=0)
    return _with_partners(strength, unit, others, chosen)


def linear_regression(
    moments: Moments, model: int, *, aggregate: str = "mean", ridge: float | Array = 0.0
) -> RankingResult:
    """LinReg: a unit matters if the units of another model together predict it.

    score(i, m) = aggregate over m' of R² = 1 − MSE / Var, of x_i^m regressed on all units of m' with an intercept.

    aggregate: ``"mean"``, ``"min"`` or ``"max"`` over the other models; the paper does not say, the mean is our choice.
        The partner of a unit is the model that predicts it best; for ``"min"`` the one that predicts it worst.
    ridge: added to the eigenvalues of the other model's correlations, >= 0. Without it those below rounding are left
        out, so that units which say the same do no harm.
    """
    reduce = {"mean": jnp.mean, "min": jnp.min, "max": jnp.max}
    require("linear_regression", "aggregate", f"one of {', '.join(reduce)}", aggregate, lambda name: name in reduce)
    require("linear_regression", "ridge", ">= 0", ridge, lambda r: r >= 0)
    others = other_models(moments, model, "linear_regression")
    explained = jnp.stack([_explained(moments, model, other, ridge) for other in others])
    chosen = (jnp.argmin if aggregate == "min" else jnp.argmax)(explained, axis=0)
    return ranked(reduce[aggregate](explained, axis=0), jnp.asarray(others)[chosen])


def _explained(moments: Moments, model: int, other: int, ridge: float | Array) -> Float[Array, "d"]:
    """R² = 2 cᵀb − bᵀR b of b = (R + ridge)⁻¹ c, c the correlations with the other's units and R those among them.

    Along the eigenvectors of R, with eigenvalues λ: Σ c² (λ + 2 ridge)/(λ + ridge)²; without a ridge Σ c²/λ.
    """
    among, across = moments.correlation(other, other), moments.correlation(model, other)
    values, vectors = jnp.linalg.eigh(among)
    kept = values > len(values) * jnp.finfo(values.dtype).eps * jnp.max(values)
    shrunk = jnp.where(kept, values + ridge, 1.0)
    inverse = jnp.where(kept, (values + 2 * ridge) / shrunk**2, 0.0)
    return jnp.clip(jnp.sum((across @ vectors) ** 2 * inverse, axis=1), 0.0, 1.0)


def standard_deviation(moments: Moments, model: int) -> RankingResult:
    """How much a unit varies: a score that needs no other model."""
    return ranked(moments.deviation(check_model(moments, model, "standard_deviation")))


def output_norm(weights: Float[Array, "d o"]) -> RankingResult:
    """How much is made of a unit: the norm of the weights that read it, ``[units, outputs]``."""
    require("output_norm", "weights", "[units, outputs]", jnp.shape(weights), lambda shape: len(shape) == 2)
    weights = jnp.asarray(weights)
    return ranked(jnp.linalg.norm(weights.astype(at_least_single(weights)), axis=1))


def random_order(key: Key[Array, ""], num_units: int) -> RankingResult:
    """No order at all: what every ranking must beat."""
    require("random_order", "num_units", ">= 1", num_units, lambda n: n >= 1)
    return ranked(jax.random.uniform(key, (num_units,)))


def check_model(moments: Moments, model: int, owner: str) -> int:
    """The model's number, if there is such a model."""
    rule = f"in 0..{moments.num_models - 1}"
    require(owner, "model", rule, model, lambda m: 0 <= m < moments.num_models)
    return model


def other_models(moments: Moments, model: int, owner: str) -> list[int]:
    """All models but one."""
    remedy = "Train another with another seed, or use standard_deviation or ablation_effects, which need only one."
    require(owner, "moments", "of at least 2 models", moments.num_models, lambda n: n >= 2, remedy)
    check_model(moments, model, owner)
    return [other for other in range(moments.num_models) if other != model]


def _best_partners(moments: Moments, model: int, owner: str) -> tuple[Array, Array, Array]:
    """max_j |ρ| and its j, [others, units], and the others."""
    others = other_models(moments, model, owner)
    sizes = [jnp.abs(moments.correlation(model, other)) for other in others]
    strength = jnp.stack([jnp.max(size, axis=1) for size in sizes])
    unit = jnp.stack([jnp.argmax(size, axis=1) for size in sizes])
    return strength, unit, jnp.asarray(others)


def _with_partners(strength: Array, unit: Array, others: Array, chosen: Array) -> RankingResult:
    along = lambda table: jnp.take_along_axis(table, chosen[None], axis=0)[0]  # noqa: E731
    return ranked(along(strength), others[chosen], along(unit))
