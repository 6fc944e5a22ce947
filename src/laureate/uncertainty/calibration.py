"""What all calibrators share: ``fit(p, y)`` on scores and hits gives a map, whose ``transform`` recalibrates scores."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["AbstractCalibrator", "AbstractScoreMap", "CalibrationInfo", "CalibrationWarning"]


class CalibrationWarning(UserWarning):
    """A map was fitted, but the data hardly determine it; the message says why and what to use instead."""


class CalibrationInfo(NamedTuple):
    """How a fit went.

    cost: passes over the rows. clipped: the share of them clipped to [0, 1]. status: NOT_CONVERGED where it was stopped
    before its tolerance, DIVERGED where the map is not finite.
    """

    cost: Array
    clipped: Array
    status: Array


class AbstractScoreMap(eqx.Module):
    """A fitted map from scores to probabilities; a pytree, so that it is saved, vmapped and jitted like any other."""

    @abc.abstractmethod
    def transform(self, p: Float[Array, "..."]) -> Float[Array, "..."]:
        """The recalibrated probability of each score."""


class AbstractCalibrator(eqx.Module):
    """The settings of a calibration map."""

    @abc.abstractmethod
    def fit(
        self, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
    ) -> AbstractScoreMap:
        """The map for scores ``p`` in [0, 1] whose hits are ``y``: 1 where right, 0 where wrong.

        weights: of the rows; a row of weight 2 counts as two.
        """


def floating(*arrays: Array) -> tuple[Array, ...]:
    """The arrays in one floating type, of single precision at least."""
    kind = jnp.promote_types(jnp.result_type(*arrays), jnp.float32)
    return tuple(jnp.asarray(array, kind) for array in arrays)


def checked(
    owner: str, p: Float[Array, "rows"], y: Float[Array, "rows"], weights: Float[Array, "rows"] | None = None
) -> tuple[Array, Array, Array]:
    """Scores, hits and weights in one floating type; what is known of their values is held to the rules."""
    require(
        owner, "p", "[rows] with at least one", np.shape(p), lambda s: len(s) == 1 and s[0] > 0, "top_scores helps."
    )
    require(owner, "y", f"as long as p, {np.shape(p)}", np.shape(y), lambda s: s == np.shape(p))
    within(owner, "p", p, "Are these logits? Apply a sigmoid or softmax.")
    within(owner, "y", y, "Give 1 where the prediction is right, 0 where it is wrong; top_scores makes them.")
    return floating(p, y, checked_weights(owner, len(p), weights))  # pyright: ignore[reportReturnType]


def checked_weights(owner: str, rows: int, weights: Any) -> Any:
    """The weights of the rows, 1 each where none are given."""
    if weights is None:
        return np.ones(rows, np.float32)
    require(owner, "weights", f"[{rows}], one a row", np.shape(weights), lambda s: s == (rows,))
    if not isinstance(weights, Tracer):
        least = float(np.asarray(weights).min())
        require(owner, "weights", "> 0", least, lambda least: least > 0, "Leave out rows of weight 0.")
    return weights


def within(owner: str, field: str, values: Array, remedy: str) -> None:
    """Raise unless all values lie in [0, 1], naming the first row that does not; traced ones are let through."""
    if not isinstance(values, Tracer):
        known = np.asarray(values)
        for row in np.argwhere(~((known >= 0) & (known <= 1)))[:1]:
            place, value = ", ".join(map(str, row)), known[tuple(row)]
            raise ValueError(f"{owner}.{field} must be within [0, 1]; got {value} in row {place}. {remedy}")


class SortedRows(NamedTuple):
    """Rows by ascending score. Rows with equal scores are one group, of which ``first`` and ``last`` are the ends.

    score, hit, weight: [rows], the weights of sum 1. order: where each row stood.
    first: number of rows before a row's group. last: number of rows up to its end.
    """

    score: Array
    hit: Array
    weight: Array
    order: Array
    first: Array
    last: Array


def sort_rows(p: Array, y: Array, weights: Array) -> SortedRows:
    """The rows by score, with the ends of their groups."""
    order, places = jnp.argsort(p), jnp.arange(p.size)
    score = p[order]
    new = jnp.concatenate([jnp.ones(1, bool), score[1:] != score[:-1]])
    first = jax.lax.cummax(jnp.where(new, places, 0))
    last = jax.lax.cummin(jnp.where(jnp.roll(new, -1), places + 1, p.size), reverse=True)
    return SortedRows(score, y[order], weights[order] / jnp.sum(weights), order, first, last)


def running(values: Array) -> Array:
    """0 and the running sums, [rows + 1]."""
    return jnp.concatenate([jnp.zeros(1, values.dtype), jnp.cumsum(values)])
