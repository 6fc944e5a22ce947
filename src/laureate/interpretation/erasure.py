"""What a model loses when units are erased: curves along a ranking, and each unit alone."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require
from laureate.interpretation.interventions import Identity, SetUnits, erasure_masks

__all__ = ["AblationResult", "CurveResult", "ablation_effects", "erase_curve", "rank_agreement"]

Evaluate = Callable[[Callable[[Array], Array]], Any]


class CurveResult(NamedTuple):
    """A metric with more and more units erased.

    fractions: of the units. counts: how many. values: the metric at each. intact: the metric of the model as it is.
    """

    fractions: Float[Array, "f"]
    counts: Array
    values: Float[Array, "f ..."]
    intact: Float[Array, "..."]


def erase_curve(
    evaluate: Evaluate,
    order: Array,
    fractions: Array,
    *,
    from_: Literal["top", "bottom"] = "top",
    values: Array | float = 0.0,
    traced: bool = True,
    tolerance: float = 1e-4,
) -> CurveResult:
    """Erase units from the top or the bottom of a ranking and measure each time.

    evaluate: ``evaluate(intervention) -> metric``: runs the model with the intervention where the units were recorded.
    order: of a ranking, the most important first. fractions: of the units to erase, in [0, 1].
    values: what erased units are set to: 0, or the units' means. Zero hits units with large means hardest, whatever
        they say: look at both.
    traced: False calls ``evaluate`` on the host, once a fraction, for metrics that are no jax functions, as BLEU.
    tolerance: by how much, of the intact metric, a run that erases nothing may differ from the model as it is.

    >>> weights = jnp.array([3.0, 1.0, 2.0])
    >>> metric = lambda intervention: intervention(jnp.ones(3)) @ weights
    >>> erase_curve(metric, jnp.array([0, 2, 1]), jnp.array([0.0, 0.34, 1.0])).values.tolist()
    [6.0, 3.0, 0.0]
    """
    masks = erasure_masks(order, fractions, from_)
    intact = jnp.asarray(evaluate(Identity()))
    nothing = jnp.asarray(evaluate(SetUnits(jnp.zeros(len(order), bool), values)))
    size = tolerance * jnp.maximum(jnp.max(jnp.abs(intact)), 1e-30)
    remedy = "Erasing nothing changes the model: the hook itself does something."
    require(
        "erase_curve",
        "evaluate",
        f"the same within {tolerance:g} when no unit is erased",
        jnp.max(jnp.abs(nothing - intact)) - size,
        lambda excess: excess <= 0,
        remedy,
    )
    one = lambda mask: jnp.asarray(evaluate(SetUnits(mask, values)))  # noqa: E731
    found = jax.lax.map(one, masks) if traced else jnp.stack([one(mask) for mask in masks])
    return CurveResult(jnp.atleast_1d(jnp.asarray(fractions)), masks.sum(1), found, intact)


class AblationResult(NamedTuple):
    """What each unit is worth.

    effects: the metric without the unit, less the intact metric, [units, ...]. intact: the metric of the model as it
    is.
    """

    effects: Float[Array, "d ..."]
    intact: Float[Array, "..."]


def ablation_effects(
    evaluate: Evaluate, num_units: int, *, values: Array | float = 0.0, batch: int = 1
) -> AblationResult:
    """Erase every unit alone and measure: the truth about single units, at the cost of one run a unit.

    evaluate, values: as for `erase_curve`; a loss, so that more is worse. num_units: of the activations.
    batch: units that are erased side by side; more is faster and takes more memory.
    """
    require("ablation_effects", "num_units", ">= 1", num_units, lambda n: n >= 1)
    require("ablation_effects", "batch", ">= 1", batch, lambda n: n >= 1)
    intact = jnp.asarray(evaluate(Identity()))
    one = lambda mask: jnp.asarray(evaluate(SetUnits(mask, values)))  # noqa: E731
    found = jax.lax.map(one, jnp.eye(num_units, dtype=bool), batch_size=batch)
    return AblationResult(found - intact, intact)


def rank_agreement(first: Any, second: Any, kind: Literal["spearman", "kendall"] = "spearman") -> float:
    """Spearman's rank correlation or Kendall's τ (b: equals count for nobody) of two lists of scores.

    0 where one is constant; not a number where a score is not finite.

    first, second: as many scores each. kind: "spearman" or "kendall".

    >>> rank_agreement([1, 2, 3], [10, 20, 30]), rank_agreement([1, 2, 3], [3, 2, 1], "kendall")
    (1.0, -1.0)
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    fine = lambda shapes: shapes[0] == shapes[1] and len(shapes[0]) == 1 and shapes[0][0] >= 2  # noqa: E731
    require("rank_agreement", "scores", "two lists of one length >= 2", (first.shape, second.shape), fine)
    require("rank_agreement", "kind", "'spearman' or 'kendall'", kind, lambda name: name in ("spearman", "kendall"))
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return float("nan")
    if kind == "kendall":
        one, two = (np.sign(x[:, None] - x) for x in (first, second))
    else:
        one, two = (_ranks(x) - (len(x) - 1) / 2 for x in (first, second))
    scale = np.sqrt(np.sum(one * one) * np.sum(two * two))
    return float(np.sum(one * two) / scale) if scale > 0 else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """Places in order; equals share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]
