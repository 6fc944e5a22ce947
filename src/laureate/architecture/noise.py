"""How far a choice is the validation set's chance: resampling it, to see whether the choice is made again."""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate._core import require

__all__ = ["NoiseReport", "choice_noise"]


class NoiseReport(NamedTuple):
    """How certain a choice is.

    chosen: on the whole validation set. agreement: the share of resampled sets with the same choice.
    margin: by how much the chosen candidate's mean score differs from the second's, in the score's own unit.
    standard_error: of that difference, over the same examples, for a set of the size asked about.
    """

    chosen: Int[Array, ""]
    agreement: Float[Array, ""]
    margin: Float[Array, ""]
    standard_error: Float[Array, ""]


def choice_noise(
    key: Key[Array, ""],
    values: Float[Array, "candidates examples"],
    *,
    size: int | None = None,
    criterion: Literal["accuracy", "loss"] = "accuracy",
    num_resamples: int = 200,
) -> NoiseReport:
    """Would another validation set, of the same or another size, have led to the same choice?

    agreement = share of b = 1..B with o*(V_b) = o*(V),    V_b drawn from V with replacement

    Candidates are compared on the same examples. Ties are broken by chance, as ``ties="random"`` does.

    values: each example's accuracy (0 or 1) or loss without each candidate: ``SupernetScore.examples``.
    size: examples of a resampled set, >= 1; None: as many as there are. num_resamples: B, >= 1.

    >>> clear = jnp.stack([jnp.zeros(50), jnp.ones(50)])
    >>> report = choice_noise(jax.random.key(0), clear, size=10)
    >>> int(report.chosen), float(report.agreement), float(report.margin)
    (0, 1.0, 1.0)
    """
    values = jnp.asarray(values, jnp.result_type(float))
    require("choice_noise", "values", "[candidates >= 2, examples >= 1]", values.shape, _is_table)
    require("choice_noise", "criterion", "'accuracy' or 'loss'", criterion, lambda c: c in ("accuracy", "loss"))
    size = values.shape[1] if size is None else size
    require("choice_noise", "size", "None or >= 1", size, lambda n: n >= 1)
    require("choice_noise", "num_resamples", ">= 1", num_resamples, lambda n: n >= 1)
    whole_key, key = jax.random.split(key)
    importance = -values if criterion == "accuracy" else values  # the most important is chosen

    def choose(key: Array, means: Array) -> Array:
        return jnp.argmax(jnp.where(means >= means.max(), jax.random.uniform(key, means.shape), -1.0))

    def again(key: Array) -> Array:
        draw_key, tie_key = jax.random.split(key)
        drawn = jax.random.randint(draw_key, (size,), 0, values.shape[1])
        return choose(tie_key, importance[:, drawn].mean(1))

    means = importance.mean(1)
    chosen = choose(whole_key, means)
    found = jax.vmap(again)(jax.random.split(key, num_resamples))
    others = jnp.where(jnp.arange(len(means)) == chosen, -jnp.inf, means)
    second = jnp.argmax(others)
    difference = importance[chosen] - importance[second]
    error = jnp.std(difference) / jnp.sqrt(size)
    return NoiseReport(chosen, jnp.mean((found == chosen).astype(means.dtype)), means[chosen] - means[second], error)


def _is_table(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[0] >= 2 and shape[1] >= 1
