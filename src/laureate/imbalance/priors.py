"""Class frequencies, what is wrong with the predictions for each class, and how logits are corrected for them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Key

from laureate._core import require, warn

__all__ = [
    "adjust",
    "balanced_error",
    "balanced_indices",
    "class_counts",
    "class_errors",
    "log_prior",
    "normalise_weights",
    "tune_tau",
]

# Rows times classes for which one uniform number of 23 bits, and sums in single precision, still tell all rows apart.
MOST = 2**18


def class_counts(labels: Int[Array, "n"], num_classes: int) -> Int[Array, "C"]:
    """How often each class occurs; under jit as well.

    >>> class_counts(jnp.array([0, 2, 2]), 3).tolist()
    [1, 0, 2]
    """
    check_labels("class_counts", labels, num_classes)
    return jnp.zeros(num_classes, jnp.int32).at[jnp.asarray(labels)].add(1)


def log_prior(counts: Float[Array, "C"], *, smoothing: float = 0.0) -> Float[Array, "C"]:
    """log π_y from the counts of the *training* labels, before any resampling.

    ::

        π_y = (n_y + smoothing) / Σ_k (n_k + smoothing)

    counts: n_y >= 0, counts or frequencies. smoothing: >= 0; needed where a class has no example.

    >>> [round(float(p), 2) for p in jnp.exp(log_prior(jnp.array([90, 9, 1])))]
    [0.9, 0.09, 0.01]
    """
    require("log_prior", "counts", "a vector, [C] with C >= 2", np.shape(counts), lambda s: len(s) == 1 and s[0] >= 2)
    require("log_prior", "smoothing", ">= 0", smoothing, lambda s: s >= 0)
    if not isinstance(counts, Tracer):
        known = np.asarray(counts, np.float64)
        require("log_prior", "counts", "finite and >= 0", known, lambda n: bool((np.isfinite(n) & (n >= 0)).all()))
        empty = np.flatnonzero(known == 0).tolist()
        if empty and not isinstance(smoothing, Tracer) and smoothing == 0:
            raise ValueError(
                f"log_prior.counts must be > 0; got 0 for the classes {empty}. log 0 would make a loss ignore them: "
                "collect examples, leave the classes out, or give smoothing > 0."
            )
    values = jnp.asarray(counts)
    values = values.astype(jnp.promote_types(values.dtype, jnp.float32)) + smoothing
    return jnp.log(values) - jnp.log(jnp.sum(values))


def adjust(
    logits: Float[Array, "... C"],
    log_prior: Float[Array, "... C"],
    *,
    tau: float | Array = 1.0,
    target: Float[Array, "... C"] | None = None,
) -> Float[Array, "... C"]:
    """Logits of a model that is already trained, corrected for the class frequencies it was trained with.

    ::

        f_y(x) - τ log π_y  (+ log π'_y)     argmax: the Bayes rule of the balanced error at τ = 1, argmax_y P(x|y)

    (Menon et al. 2021, post-hoc logit adjustment.) The logits must be calibrated: log-probabilities will do, logits
    divided by a temperature need τ divided too. Not for a model trained with `logit_adjusted_cross_entropy`, whose
    logits are corrected: the prior would be removed twice.

    logits: of the trained model. log_prior: `log_prior` of its training labels.
    tau: τ >= 0; 0 changes nothing, larger values favour rare classes more.
    target: log π' of the classes where the model is used; without it all classes count the same.

    >>> adjust(jnp.log(jnp.array([0.7, 0.25, 0.05])), jnp.log(jnp.array([0.9, 0.09, 0.01]))).argmax().tolist()
    2
    """
    check_prior("adjust", logits, log_prior)
    check_tau("adjust", tau)
    adjusted = jnp.asarray(logits) - tau * jnp.asarray(log_prior)
    if target is None:
        return adjusted
    check_prior("adjust", logits, target, "target")
    return adjusted + jnp.asarray(target)


def normalise_weights(
    weights: Float[Array, "d C"], log_prior: Float[Array, "C"] | None = None, *, tau: float | Array = 1.0
) -> Float[Array, "d C"]:
    """The last layer's weights with the norm of every class equalised, the rival that needs no prior.

    ::

        w_y / ‖w_y‖^τ     (Kang et al. 2020)

    weights: a column a class, and where all of it is 0 it stays so; leave its bias out.
    log_prior: not used; there so that rivals are called alike.

    >>> normalise_weights(jnp.array([[3.0, 0.5], [4.0, 0.0]])).tolist()
    [[0.6000000238418579, 1.0], [0.800000011920929, 0.0]]
    """
    del log_prior
    check_tau("normalise_weights", tau)
    weights = jnp.asarray(weights)
    norms = jnp.linalg.norm(weights.astype(jnp.promote_types(weights.dtype, jnp.float32)), axis=0)
    scaled = weights / jnp.where(norms == 0, 1, norms) ** tau
    return scaled.astype(jnp.result_type(weights, float))


def balanced_indices(
    key: Key[Array, ""], labels: Int[Array, "n"], num_classes: int, num_draws: int
) -> Int[Array, "num_draws"]:
    """Rows drawn with replacement so that every class is equally likely: resampling, the oldest rival.

    Do not take class frequencies of what it draws for ``log_prior``: they are uniform. Every class needs an example.
    Where rows times classes are above a quarter of a million the rows are sorted at each call, on the host if they are
    known there: draw many at once.

    labels: classes, a row each. num_classes: C. num_draws: how many rows are drawn.

    >>> rows = balanced_indices(jax.random.key(0), jnp.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), 2, 1000)
    >>> 0.4 < float((rows == 9).mean()) < 0.6
    True
    """
    counts = class_counts(labels, num_classes)
    log_weight = -log_prior(counts)
    if len(labels) * num_classes > MOST:
        # XLA would take minutes to sort what it knows while it compiles.
        order = jnp.argsort(labels) if isinstance(labels, Tracer) else jnp.asarray(np.argsort(labels, kind="stable"))
        class_key, row_key = jax.random.split(key)
        drawn = jax.random.randint(class_key, (num_draws,), 0, num_classes)
        first = jnp.cumsum(counts) - counts  # of each class, once the rows are in the order of their classes
        return order[first[drawn] + jax.random.randint(row_key, (num_draws,), 0, counts[drawn])]
    # An inverse CDF: Gumbel noise over n rows for each of the draws would be n times the work.
    edges = jnp.cumsum(jnp.exp(log_weight[jnp.asarray(labels)]))
    place = jax.random.uniform(key, (num_draws,), edges.dtype, maxval=edges[-1])
    return jnp.minimum(jnp.searchsorted(edges, place, side="right"), len(edges) - 1)


def class_errors(predictions: Int[Array, "n"], labels: Int[Array, "n"], num_classes: int) -> Float[Array, "C"]:
    """The share of wrong predictions in each class; NaN for a class without rows.

    >>> class_errors(jnp.array([0, 0, 1]), jnp.array([0, 1, 1]), 2).tolist()
    [0.0, 0.5]
    """
    require(
        "class_errors", "predictions", f"of shape {np.shape(labels)}", np.shape(predictions), np.shape(labels).__eq__
    )
    counts = class_counts(labels, num_classes)
    wrong = jnp.zeros(num_classes).at[jnp.asarray(labels)].add(jnp.asarray(predictions) != jnp.asarray(labels))
    return wrong / counts


def balanced_error(predictions: Int[Array, "n"], labels: Int[Array, "n"], num_classes: int) -> Float[Array, ""]:
    """The mean of the classes' errors, 1/C Σ_y P(wrong | y); every class must have a row.

    predictions, labels: classes 0 to C − 1, a row each. num_classes: C.

    >>> float(balanced_error(jnp.array([0, 0, 1]), jnp.array([0, 1, 1]), 2))
    0.25
    """
    check_classes("balanced_error", labels, num_classes)
    return jnp.mean(class_errors(predictions, labels, num_classes))


def tune_tau(
    logits: Float[Array, "n C"], labels: Int[Array, "n"], log_prior: Float[Array, "C"], grid: Float[Array, "g"]
) -> tuple[Float[Array, ""], Float[Array, "g"], Float[Array, "g"]]:
    """τ by the balanced error on rows that were not trained on: the best, the error of each, and its standard error.

    The standard error is that of the rows, √Σ_y e_y (1 - e_y)/n_y / C: with three rows of a class it is large, and
    τ = 1 is then as good a choice. Among equals the one nearest to 1.

    labels: of the same rows as the logits, every class among them. log_prior: as for `adjust`.
    grid: the values of τ that are tried.

    >>> logits = jnp.log(jnp.array([[0.6, 0.4], [0.9, 0.1]]))
    >>> float(tune_tau(logits, jnp.array([1, 0]), jnp.log(jnp.array([0.8, 0.2])), jnp.array([0.0, 1.0, 2.0]))[0])
    1.0
    """
    check_prior("tune_tau", logits, log_prior)
    grid, num_classes = jnp.asarray(grid), np.shape(log_prior)[-1]
    check_labels("tune_tau", labels, num_classes)
    check_classes("tune_tau", labels, num_classes)
    require(
        "tune_tau", "grid", "a vector of numbers >= 0", grid, lambda g: g.ndim == 1 and g.size > 0 and (g >= 0).all()
    )
    counts = class_counts(labels, num_classes)

    def errors(tau):
        each = class_errors(jnp.argmax(jnp.asarray(logits) - tau * log_prior, axis=-1), labels, num_classes)
        return jnp.mean(each), jnp.sqrt(jnp.sum(each * (1 - each) / counts)) / num_classes

    found, spread = jax.vmap(errors)(grid)
    ties = jnp.where(found <= jnp.min(found) + 1e-7, jnp.abs(grid - 1), jnp.inf)
    return grid[jnp.argmin(ties)], found, spread


def check_prior(owner: str, logits: Any, log_prior: Any, field: str = "log_prior") -> None:
    """Raise unless it is a vector of logarithms, one a class."""
    classes, shape = np.shape(logits)[-1:], np.shape(log_prior)
    rule = f"of shape [{classes[0] if classes else 'C'}], a number a class of logits {np.shape(logits)}"
    require(owner, field, rule, shape, lambda s: bool(s) and s[-1:] == classes)
    if not isinstance(log_prior, Tracer):
        known = np.asarray(log_prior, np.float64)
        hint = "These look like counts or probabilities: pass log_prior(counts)."
        require(owner, field, "finite logarithms of probabilities", known, lambda p: bool(np.isfinite(p).all()))
        require(owner, field, "<= 0, logarithms of probabilities", known, lambda p: bool((p <= 1e-6).all()), hint)


def check_tau(owner: str, tau: Any) -> None:
    """Raise for a negative τ, warn of one beyond 3."""
    require(owner, "tau", ">= 0", tau, lambda t: np.all(np.asarray(t) >= 0))
    if not isinstance(tau, Tracer) and np.any(np.asarray(tau) > 3):
        warn(f"{owner}: tau = {tau} is far beyond 1; frequent classes will hardly be predicted.")


def check_labels(owner: str, labels: Any, num_classes: int) -> None:
    """Raise unless they are whole numbers of classes."""
    kind = jnp.asarray(labels).dtype
    hint = "For soft labels add tau * log_prior to the logits of optax.softmax_cross_entropy."
    require(owner, "labels", "whole numbers", kind, lambda d: bool(jnp.issubdtype(d, jnp.integer)), hint)
    if not isinstance(labels, Tracer):
        known = np.asarray(labels)
        rule = f"in 0..{num_classes - 1}"
        require(owner, "labels", rule, known, lambda y: bool(((y >= 0) & (y < num_classes)).all()))


def check_classes(owner: str, labels: Any, num_classes: int) -> None:
    """Raise unless every class has a row."""
    if not isinstance(labels, Tracer):
        absent = sorted(set(range(num_classes)) - set(np.asarray(labels).tolist()))
        require(owner, "labels", "of every class; absent are those here", absent, lambda a: not a)
