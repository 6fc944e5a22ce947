"""How well chains mix and how far samples are from a reference. What BlackJAX has, it does."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["Mixing", "hamming_distance", "hamming_mmd", "mixing"]


class Mixing(NamedTuple):
    """Effective sample size over all chains, and rank-normalised split R-hat (near 1 when chains agree)."""

    effective: Float[Array, "..."]
    r_hat: Float[Array, "..."]


def mixing(trace: Float[Array, "chains steps ..."]) -> Mixing:
    """Effective sample size and split R-hat of a statistic, by `blackjax.diagnostics`.

    Not of the parity of Σx: a sampler that nearly always flips one variable makes it alternate.

    >>> trace = jax.random.normal(jax.random.key(0), (4, 500))
    >>> result = mixing(trace)
    >>> bool(result.effective > 1000), bool(jnp.abs(result.r_hat - 1) < 0.02)
    (True, True)
    """
    from blackjax.diagnostics import effective_sample_size, rhat  # a second to import; only these lines need it

    if trace.ndim < 2 or trace.shape[0] < 2 or trace.shape[1] < 4:
        raise ValueError(f"mixing: trace must have at least 2 chains of 4 steps; got shape {trace.shape}.")
    return Mixing(effective_sample_size(trace), rhat(trace))


def hamming_distance(samples: Array, reference: Array) -> Float[Array, "..."]:
    """How many variables differ from ``reference``, over its shape; leading axes of ``samples`` are kept.

    >>> hamming_distance(jnp.array([[0, 1, 1], [0, 0, 0]]), jnp.array([0, 0, 0]))
    Array([2., 0.], dtype=float32)
    """
    axes = tuple(range(samples.ndim - reference.ndim, samples.ndim))
    return jnp.sum(samples != reference, axis=axes).astype(float)


def hamming_mmd(a: Array, b: Array) -> Float[Array, ""]:
    """Squared maximum mean discrepancy of two sets of samples, with the kernel exp(-share of variables that differ).

    Samples lie along the first axis. The V-statistic, as in the paper's code: never negative, and biased upwards by
    about 1/samples.

    >>> float(hamming_mmd(jnp.zeros((3, 2)), jnp.zeros((5, 2))))
    0.0
    """
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"hamming_mmd: both sets must have as many variables; got {a.shape[1]} and {b.shape[1]}.")

    def mean_kernel(x, y):
        return jnp.mean(jax.lax.map(lambda row: jnp.mean(jnp.exp(-jnp.mean(row != y, axis=1))), x, batch_size=32))

    return jnp.maximum(mean_kernel(a, a) + mean_kernel(b, b) - 2 * mean_kernel(a, b), 0.0)
