"""Directions instead of units: SVCCA between two models, and the projections that erase directions."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.interpretation.moments import Moments, at_least_single

__all__ = ["DirectionsResult", "keep_directions", "mean_difference", "svcca"]


class DirectionsResult(NamedTuple):
    """The directions of a model by their canonical correlation with another, the highest first.

    correlations: 0 beyond ``num_kept``. directions: columns ``[units, units]``; zeros beyond ``num_kept``.
    num_kept: as many as the model with fewer principal components has. components: principal components of each model.
    """

    correlations: Float[Array, "d"]
    directions: Float[Array, "d d"]
    num_kept: Int[Array, ""]
    components: Int[Array, "2"]


def svcca(
    moments: Moments, model: int, other: int, *, variance: float | Array = 0.99, ridge: float | Array = 0.0
) -> DirectionsResult:
    """Singular vector canonical correlation (Raghu et al. 2017): what two models share, as directions of the first.

    Of each model the fewest principal components V with the wanted share of variance; whitened by their deviations,
    W = V Λ^(−1/2), the canonical correlations are the singular values of W_mᵀ Σ_mm' W_m' = U diag(ρ) Zᵀ, and the
    directions are C = W_m U: the activations x C have canonical correlation ρ with those of the other model.

    variance: share kept, in (0, 1]. ridge: added to the variances, as a share of the largest, >= 0; needed where there
        are fewer tokens than units, for then everything correlates perfectly.
    """
    for name, number in (("model", model), ("other", other)):
        require("svcca", name, f"in 0..{moments.num_models - 1}", number, lambda m: 0 <= m < moments.num_models)
    require("svcca", "other", "another model", other, lambda o: o != model)
    require("svcca", "variance", "in (0, 1]", variance, lambda v: 0 < v <= 1)
    require("svcca", "ridge", ">= 0", ridge, lambda r: r >= 0)
    units = max(len(moments.means[model]), len(moments.means[other]))
    remedy = f"With no more tokens than units ({units}) set ridge > 0, or bring more tokens."
    plain = lambda count: count > units or _positive(ridge)  # noqa: E731
    require("svcca", "moments", "of more tokens than units", moments.count, plain, remedy)
    mine, my_count = _whitening(moments.covariance(model, model), variance, ridge)
    theirs, their_count = _whitening(moments.covariance(other, other), variance, ridge)
    left, values, _ = jnp.linalg.svd(mine.T @ moments.covariance(model, other) @ theirs, full_matrices=True)
    size, width = len(mine), min(len(mine), len(theirs))
    kept = jnp.minimum(my_count, their_count)
    shown = jnp.arange(size) < kept
    correlations = jnp.zeros(size, values.dtype).at[:width].set(jnp.clip(values, 0.0, 1.0))
    directions = jnp.where(shown, mine @ left, 0.0)
    return DirectionsResult(jnp.where(shown, correlations, 0.0), directions, kept, jnp.stack([my_count, their_count]))


def _positive(ridge: float | Array) -> bool:
    try:
        return bool(ridge > 0)
    except Exception:  # a traced ridge: its worth is not known, and it was asked for
        return True


def _whitening(covariance: Array, variance: float | Array, ridge: float | Array) -> tuple[Array, Array]:
    """V Λ^(−1/2) with columns of zeros for what is left out, and how many columns are not."""
    values, vectors = jnp.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = jnp.max(values)
    before = jnp.cumsum(values) - values
    # A component is kept while those before it have less than the share that is wanted.
    tolerance = len(values) * jnp.finfo(values.dtype).eps
    kept = (before < (variance - tolerance) * jnp.sum(values)) & (values > tolerance * largest)
    scale = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values + ridge * largest, 1.0)), 0.0)
    return vectors * scale, jnp.sum(kept)


def keep_directions(directions: Float[Array, "d k"], keep: Array) -> Float[Array, "d d"]:
    """The projection on some of the directions, P = C (CᵀC)⁻¹ Cᵀ with the columns that ``keep`` names.

    Rows of activations times P lose the directions that are not kept, and whatever lies outside all of them.

    keep: True for the columns to keep, ``[directions]``.

    >>> keep_directions(jnp.eye(3), jnp.array([True, False, False])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    directions = jnp.asarray(directions)
    require("keep_directions", "directions", "[units, directions]", directions.shape, lambda shape: len(shape) == 2)
    keep = jnp.asarray(keep, bool)
    rule = f"one entry a direction, [{directions.shape[1]}]"
    require("keep_directions", "keep", rule, keep.shape, lambda shape: shape == directions.shape[1:])
    # Columns of one length: which are left out must not depend on their units.
    length = jnp.linalg.norm(directions, axis=0)
    chosen = jnp.where(keep & (length > 0), directions / jnp.where(length > 0, length, 1.0), 0.0)
    left, values, _ = jnp.linalg.svd(chosen, full_matrices=False)
    left = left * (values > 1e3 * jnp.finfo(values.dtype).eps)
    return left @ left.T


def mean_difference(activations: Float[Array, "n d"], labels: Array) -> Float[Array, "d"]:
    """From the mean of those labelled 0 to the mean of those labelled 1: the direction of a property, as steered by."""
    activations, labels = jnp.asarray(activations), jnp.asarray(labels)
    activations = activations.astype(at_least_single(activations))
    rule = f"one entry a token, [{len(activations)}]"
    require("mean_difference", "labels", rule, labels.shape, lambda shape: shape == (len(activations),))
    means = []
    for value in (0, 1):
        weight = (labels == value).astype(activations.dtype)
        remedy = "A property needs tokens that have it and tokens that have it not."
        require("mean_difference", "labels", f"{value} somewhere", jnp.sum(weight), lambda count: count > 0, remedy)
        means.append(weight @ activations / jnp.sum(weight))
    return means[1] - means[0]
