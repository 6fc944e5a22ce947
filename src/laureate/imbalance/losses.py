"""Losses for classes of unequal frequency, in Optax's form: one number an example, no mean; all are called alike."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.imbalance.priors import check_labels, check_prior, check_tau

__all__ = [
    "LOSSES",
    "cross_entropy",
    "equalised_cross_entropy",
    "focal_cross_entropy",
    "label_margin_cross_entropy",
    "logit_adjusted_cross_entropy",
    "pairwise_margin_cross_entropy",
    "vector_scaling_cross_entropy",
    "weighted_cross_entropy",
]

Logits = Float[Array, "... C"]
Labels = Int[Array, "..."]
Prior = Float[Array, "... C"]
Losses = Float[Array, "..."]


def logit_adjusted_cross_entropy(
    logits: Logits, labels: Labels, log_prior: Prior, *, tau: float | Array = 1.0
) -> Losses:
    """Cross-entropy for a low *balanced* error: train with it, predict with the raw logits.

    ::

        ℓ(y, f) = -log softmax(f + τ log π)_y,     minimised by f = log P(y|x)/π_y^τ

    (Menon et al. 2021, the logit-adjusted loss.) Opposite in sign to `adjust`, and never together with it. Where the
    logits have a free bias it is plain training from a bias of τ log π, which is subtracted in the end: with enough
    training and no weight decay on that bias both ways are one.

    logits: of the network, ``[..., C]``. labels: classes, 0..C-1.
    log_prior: log π of the training labels (`laureate.imbalance.log_prior`), ``[C]`` or one a row.
    tau: τ >= 0; 1 is consistent for the balanced error, 0 is plain cross-entropy.

    >>> logits, prior = jnp.array([1.0, 0.0, -1.0]), jnp.log(jnp.array([0.7, 0.2, 0.1]))
    >>> [round(float(logit_adjusted_cross_entropy(logits, y, prior)), 4) for y in (0, 1, 2)]
    [0.1173, 2.37, 4.0632]
    """
    _check("logit_adjusted_cross_entropy", logits, labels, log_prior, tau)
    return optax.softmax_cross_entropy_with_integer_labels(jnp.asarray(logits) + tau * jnp.asarray(log_prior), labels)


def cross_entropy(logits: Logits, labels: Labels, log_prior: Prior, *, tau: float | Array = 0.0) -> Losses:
    """Plain cross-entropy, which knows nothing of priors; it is there so that rivals are called alike.

    The arguments are those of `logit_adjusted_cross_entropy`; ``tau`` is not used.
    """
    _check("cross_entropy", logits, labels, log_prior, tau)
    return optax.softmax_cross_entropy_with_integer_labels(jnp.asarray(logits), labels)


def weighted_cross_entropy(logits: Logits, labels: Labels, log_prior: Prior, *, tau: float | Array = 1.0) -> Losses:
    """Cross-entropy with weights inverse to the class frequency, consistent for the balanced error too.

    ::

        ℓ(y, f) = -(1/C π_y)^τ log softmax(f)_y

    The weights average 1 over the training labels at τ = 1, as scikit-learn's ``class_weight="balanced"``.
    The arguments are those of `logit_adjusted_cross_entropy`.
    """
    _check("weighted_cross_entropy", logits, labels, log_prior, tau)
    weight = jnp.exp(-tau * (_at(log_prior, labels) + jnp.log(np.shape(logits)[-1])))
    return weight * optax.softmax_cross_entropy_with_integer_labels(jnp.asarray(logits), labels)


def label_margin_cross_entropy(
    logits: Logits, labels: Labels, log_prior: Prior, *, tau: float | Array = 0.25, margin: float | Array = 1.0
) -> Losses:
    """LDAM's margin: the right class must win by more, the rarer it is; not consistent for the balanced error.

    ::

        ℓ(y, f) = -log softmax(f - Δ_y e_y)_y,     Δ_y = margin · (min π / π_y)^τ     (Cao et al. 2019, τ = 1/4)

    margin: of the rarest class, >= 0. The other arguments are those of `logit_adjusted_cross_entropy`.
    """
    _check("label_margin_cross_entropy", logits, labels, log_prior, tau)
    require("label_margin_cross_entropy", "margin", ">= 0", margin, lambda m: m >= 0)
    prior, logits = jnp.asarray(log_prior), jnp.asarray(logits)
    size = margin * jnp.exp(tau * (jnp.min(prior, axis=-1) - _at(prior, labels)))
    right = jax.nn.one_hot(jnp.asarray(labels), logits.shape[-1], dtype=logits.dtype)
    return optax.softmax_cross_entropy_with_integer_labels(logits - size[..., None] * right, labels)


def equalised_cross_entropy(logits: Logits, labels: Labels, log_prior: Prior, *, tau: float | Array = 1.0) -> Losses:
    """The equalised loss: rare classes are pushed down less as wrong answers; not consistent for the balanced error.

    ::

        ℓ(y, f) = log(1 + Σ_{k≠y} π_k^τ e^{f_k - f_y})     (Tan et al. 2020, in the paper's form)

    The arguments are those of `logit_adjusted_cross_entropy`.
    """
    _check("equalised_cross_entropy", logits, labels, log_prior, tau)
    logits, prior = jnp.asarray(logits), jnp.asarray(log_prior)
    wrong = 1 - jax.nn.one_hot(jnp.asarray(labels), logits.shape[-1], dtype=logits.dtype)
    return optax.softmax_cross_entropy_with_integer_labels(logits + wrong * tau * prior, labels)


def focal_cross_entropy(logits: Logits, labels: Labels, log_prior: Prior, *, tau: float | Array = 2.0) -> Losses:
    """The focal loss, which makes little of what is already right and knows nothing of priors.

    ::

        ℓ(y, f) = -(1 - p_y)^τ log p_y,   p = softmax(f)     (Lin et al. 2017, there γ)

    The arguments are those of `logit_adjusted_cross_entropy`.
    """
    _check("focal_cross_entropy", logits, labels, log_prior, tau)
    nats = optax.softmax_cross_entropy_with_integer_labels(jnp.asarray(logits), labels)
    # 1 - p is 0 where p rounds to 1; a power of 0 has no gradient there.
    return jnp.maximum(-jnp.expm1(-nats), 1e-7) ** tau * nats


def vector_scaling_cross_entropy(
    logits: Logits, labels: Labels, log_prior: Prior, *, tau: float | Array = 1.0, gamma: float | Array = 0.2
) -> Losses:
    """The vector-scaling loss: additive as logit adjustment, and multiplicative, which still acts at zero error.

    ::

        ℓ(y, f) = -log softmax((π/max π)^γ f + τ log π)_y     (Kini et al. 2021)

    gamma: γ >= 0; 0 is logit adjustment. The other arguments are those of `logit_adjusted_cross_entropy`.
    """
    _check("vector_scaling_cross_entropy", logits, labels, log_prior, tau)
    require("vector_scaling_cross_entropy", "gamma", ">= 0", gamma, lambda g: g >= 0)
    prior = jnp.asarray(log_prior)
    factor = jnp.exp(gamma * (prior - jnp.max(prior, axis=-1, keepdims=True)))
    return optax.softmax_cross_entropy_with_integer_labels(factor * jnp.asarray(logits) + tau * prior, labels)


LOSSES: dict[str, Callable[..., Losses]] = {
    "cross-entropy": cross_entropy,
    "logit-adjusted": logit_adjusted_cross_entropy,
    "weighted": weighted_cross_entropy,
    "label-margin": label_margin_cross_entropy,
    "equalised": equalised_cross_entropy,
    "focal": focal_cross_entropy,
    "vector-scaling": vector_scaling_cross_entropy,
}


def pairwise_margin_cross_entropy(
    logits: Logits, labels: Labels, weight: Float[Array, "C"], margin: Float[Array, "C C"]
) -> Losses:
    """The family that contains them: a weight for each class and a margin for each pair of classes.

    ::

        ℓ(y, f) = α_y log(1 + Σ_{k≠y} e^{Δ_yk} e^{f_k - f_y})

    For any δ > 0, α_y = δ_y/π_y with Δ_yk = log δ_k/δ_y is consistent for the balanced error (Menon et al. 2021):
    δ = π is logit adjustment, δ = 1 weighted cross-entropy.

    logits, labels: as above. weight: α, >= 0. margin: Δ, its diagonal is not used.

    >>> prior, logits = jnp.array([0.7, 0.2, 0.1]), jnp.array([1.0, 0.0, -1.0])
    >>> margin = jnp.log(prior[None, :] / prior[:, None])
    >>> round(float(pairwise_margin_cross_entropy(logits, 1, jnp.ones(3), margin)), 4)
    2.37
    """
    classes = np.shape(logits)[-1]
    check_labels("pairwise_margin_cross_entropy", labels, classes)
    require("pairwise_margin_cross_entropy", "weight", f"of shape ({classes},)", np.shape(weight), (classes,).__eq__)
    rule = f"of shape ({classes}, {classes})"
    require("pairwise_margin_cross_entropy", "margin", rule, np.shape(margin), (classes, classes).__eq__)
    logits, labels = jnp.asarray(logits), jnp.asarray(labels)
    own = jax.nn.one_hot(labels, classes, dtype=logits.dtype)
    shifted = logits + jnp.where(own > 0, 0.0, jnp.asarray(margin)[labels])
    return jnp.asarray(weight)[labels] * optax.softmax_cross_entropy_with_integer_labels(shifted, labels)


def _check(owner: str, logits: Array, labels: Array, log_prior: Array, tau: float | Array) -> None:
    check_prior(owner, logits, log_prior)
    check_labels(owner, labels, np.shape(logits)[-1])
    check_tau(owner, tau)


def _at(log_prior: Array, labels: Array) -> Array:
    """log π_y of each label."""
    prior, labels = jnp.asarray(log_prior), jnp.asarray(labels)
    rows = jnp.broadcast_to(prior, (*labels.shape, prior.shape[-1]))
    return jnp.take_along_axis(rows, labels[..., None], axis=-1)[..., 0]
