"""From the probabilities of several classes to one score a row and whether it hit: the only multiclass step."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.uncertainty.calibration import within

__all__ = ["top_scores", "within_scores"]


def top_scores(
    probabilities: Float[Array, "rows classes"], labels: Int[Array, "rows"], r: int = 1
) -> tuple[Float[Array, "rows"], Float[Array, "rows"]]:
    """The r-th largest probability of each row, and 1 where that class is the label: ``p, y`` for a calibrator.

    >>> p, y = top_scores(np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]), np.array([0, 1]))
    >>> print(p, y)
    [0.7 0.4] [1. 0.]
    """
    return _top(*_checked("top_scores", probabilities, labels, r), r)


@partial(jax.jit, static_argnums=2)
def _top(probabilities, labels, r):
    chosen = jnp.argsort(-probabilities, axis=1)[:, r - 1]
    scores = jnp.take_along_axis(probabilities, chosen[:, None], axis=1)[:, 0]
    return scores, (chosen == labels).astype(scores.dtype)


def within_scores(
    probabilities: Float[Array, "rows classes"], labels: Int[Array, "rows"], r: int = 2
) -> tuple[Float[Array, "rows"], Float[Array, "rows"]]:
    """The sum of the r largest probabilities of each row, and 1 where the label is among those classes.

    >>> p, y = within_scores(np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]), np.array([1, 0]))
    >>> print(np.round(p, 2), y)
    [0.9 0.7] [1. 1.]
    """
    return _within(*_checked("within_scores", probabilities, labels, r), r)


@partial(jax.jit, static_argnums=2)
def _within(probabilities, labels, r):
    chosen = jnp.argsort(-probabilities, axis=1)[:, :r]
    scores = jnp.sum(jnp.take_along_axis(probabilities, chosen, axis=1), axis=1)
    return jnp.clip(scores, 0, 1), jnp.any(chosen == labels[:, None], axis=1).astype(scores.dtype)


def check_rows(owner: str, probabilities: Array, labels: Array) -> None:
    """Raise unless these are probabilities of classes, a row each, with a label each; values only where known."""
    shape = np.shape(probabilities)
    require(owner, "probabilities", "[rows, classes]", shape, lambda s: len(s) == 2 and s[1] > 1)
    require(owner, "labels", f"[{shape[0]}], one a row", np.shape(labels), lambda s: s == shape[:1])
    within(owner, "probabilities", probabilities, "Are these logits? Apply softmax.")
    if not isinstance(probabilities, Tracer):
        sums = np.asarray(probabilities, np.float64).sum(1)
        require(
            owner,
            "probabilities",
            "rows of sum 1",
            float(sums[np.abs(sums - 1).argmax()]),
            lambda s: abs(s - 1) < 1e-3,
            "Are these logits? Apply softmax.",
        )
    if not isinstance(labels, Tracer):
        known = np.asarray(labels)
        strange = sorted(set(known[(known < 0) | (known >= shape[1]) | (known != np.round(known))].tolist()))
        require(owner, "labels", f"whole numbers from 0 to {shape[1] - 1}", strange, lambda s: not s)


def _checked(owner: str, probabilities: Array, labels: Array, r: int) -> tuple[Array, Array]:
    check_rows(owner, probabilities, labels)
    classes = np.shape(probabilities)[1]
    require(owner, "r", f"from 1 to {classes}", r, lambda r: 1 <= r <= classes)
    return jnp.asarray(probabilities), jnp.asarray(labels)
