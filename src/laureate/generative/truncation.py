"""The truncation trick: latents of a normal law cut at a threshold, and what has to be said with it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["StandingStatistics", "TruncationCurve", "truncated_normal", "truncated_variance", "truncation_curve"]


class StandingStatistics(NamedTuple):
    """What a trained generator normalises with when it samples, and what these statistics were made with.

    network: the generator's state that suits the averaged weights. statistics: mean and variance of every
    normalisation, over all rows of all batches. truncation: the threshold of the latents, inf for none. num_batches,
    batch: how many batches of how many rows.
    """

    network: Any
    statistics: Any
    truncation: Array
    num_batches: Array
    batch: Array


class TruncationCurve(NamedTuple):
    """How measures change with the threshold, each a table by name.

    thresholds: those asked for. mean: over repeats with other keys. low, high: the 95 % interval of that mean.
    """

    thresholds: Float[Array, " t"]
    mean: dict[str, Float[Array, " t"]]
    low: dict[str, Float[Array, " t"]]
    high: dict[str, Float[Array, " t"]]


def truncated_normal(
    key: Array, shape: tuple[int, ...], threshold: float | Array | None = None, dtype: Any = jnp.float32
) -> Array:
    """Latents for truncated sampling: N(0, 1) given |z| <= t in every entry (Brock et al. 2019, section 3.1).

    The same law as drawing entries anew until all lie within, in one pass. Not a clip, nor t times a normal law cut at
    2, nor one of deviation t, which are found under the same name.

    threshold: t > 0; None or inf for N(0, 1).

    >>> z = truncated_normal(jax.random.key(0), (1000,), 0.5)
    >>> bool(jnp.max(jnp.abs(z)) <= 0.5), round(float(jnp.std(z)), 2), round(truncated_variance(0.5) ** 0.5, 2)
    (True, 0.28, 0.28)
    """
    if threshold is None:
        return jax.random.normal(key, shape, dtype)
    require("truncated_normal", "threshold", "> 0", threshold, lambda t: t > 0, "Use None for no truncation.")
    t = jnp.asarray(threshold, dtype)
    # z = √2 erf⁻¹(u), u uniform within ±erf(t / √2), but above −1, where z would be −inf: with t = inf N(0, 1) exactly.
    most = jax.lax.erf(t / np.sqrt(2).astype(dtype))
    least = jnp.maximum(-most, jnp.nextafter(jnp.asarray(-1, dtype), jnp.asarray(0, dtype)))
    u = jax.random.uniform(key, shape, dtype, least, most)
    return jnp.clip(np.sqrt(2).astype(dtype) * jax.lax.erf_inv(u), -t, t)


def truncated_variance(threshold: float) -> float:
    """1 − 2 t φ(t) / (2 Φ(t) − 1), the variance of N(0, 1) given |z| <= t."""
    require("truncated_variance", "threshold", "> 0", threshold, lambda t: t > 0)
    # P(χ²₃ <= t²) / P(χ²₁ <= t²), which does not cancel for small t; beyond 100 nothing is cut off.
    half = min(float(threshold), 100.0) ** 2 / 2
    squares, inside = scipy.special.gammainc([1.5, 0.5], half)
    return float(squares / inside) if half > 1e-16 else 2 * half / 3


def truncation_curve(
    key: Array,
    sample: Callable[[Array, Array], Array],
    thresholds: Any,
    measures: Mapping[str, Callable[[Array], Array]],
    *,
    num_repeats: int = 8,
) -> TruncationCurve:
    """Fidelity against variety: measures of samples at every threshold, with intervals over repeats.

    sample: from (key, threshold) to made examples; every threshold gets the same keys. thresholds: [t], > 0, inf for no
    truncation. measures: from made examples to a number each, by name. num_repeats: >= 2. The intervals are those of
    Student's law: they say how sure the means are for this generator, not how another training would come out.

    >>> draw = lambda key, threshold: truncated_normal(key, (500,), threshold)
    >>> curve = truncation_curve(jax.random.key(0), draw, [0.5, jnp.inf], {"deviation": jnp.std})
    >>> bool(curve.high["deviation"][0] < curve.low["deviation"][1])
    True
    """
    require("truncation_curve", "num_repeats", ">= 2", num_repeats, lambda n: n >= 2)
    thresholds = jnp.asarray(thresholds, jnp.float32)
    rule, remedy = "[t], each > 0", "Use inf for no truncation."
    require("truncation_curve", "thresholds", rule, thresholds, lambda t: t.ndim == 1 and bool(np.all(t > 0)), remedy)
    keys = jax.random.split(key, num_repeats)

    def at(threshold):
        def once(key):
            made = sample(key, threshold)
            return {name: jnp.asarray(measure(made), jnp.float32) for name, measure in measures.items()}

        return jax.lax.map(once, keys)

    found = jax.lax.map(at, thresholds)  # name -> [t, repeats]
    factor = float(scipy.special.stdtrit(num_repeats - 1, 0.975)) / num_repeats**0.5
    mean = {name: jnp.mean(values, axis=1) for name, values in found.items()}
    half = {name: factor * jnp.std(values, axis=1, ddof=1) for name, values in found.items()}
    low, high = ({name: mean[name] + sign * half[name] for name in mean} for sign in (-1, 1))
    return TruncationCurve(thresholds, mean, low, high)
