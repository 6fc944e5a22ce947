"""Which slices show a difference best: directions found by gradients of the sliced Stein discrepancy itself."""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from laureate._core import require
from laureate.sampling.stein_discrepancy import (
    Kernel,
    Scores,
    Slices,
    checked,
    floored,
    median_distance,
    sliced_gram,
    sliced_ksd,
    summed,
    unit,
)

__all__ = ["MaxSlicedKSD", "fit_slices", "max_sliced_ksd", "random_slices"]

LEAST = 10  # draws to fit slices to


class MaxSlicedKSD(NamedTuple):
    """The discrepancy along fitted slices, by draws they were not fitted to.

    value: the sum over slices. per_slice: each slice's own, [m]. slices: the fitted ones.
    """

    value: Float[Array, ""]
    per_slice: Float[Array, "m"]
    slices: Slices


def max_sliced_ksd(
    key: Array, samples: Float[Array, "n d"], scores: Scores, *, split: float = 0.2, kernel: Kernel = "rbf", **settings
) -> MaxSlicedKSD:
    """How far draws are from a density along the lines that show it best.

    ::

        max_{|g_r| = 1} Σ_r E h_{r,g_r}     (max-sliced KSD, "maxSKSD-g", and with learn_r "maxSKSD-rg")

    The first draws find the slices, the others give the value: without bias for those slices.

    samples, scores, kernel: as for `ksd`.
    split: share of the draws, the first, that the slices are fitted to; at least ten.
    settings: of `fit_slices`.

    >>> x = jax.random.normal(jax.random.key(0), (300, 5)).at[:, 0].multiply(0.4)
    >>> found = jax.jit(lambda key, x: max_sliced_ksd(key, x, -x, num_steps=50))(jax.random.key(1), x)
    >>> int(found.per_slice.argmax())
    0
    """
    x, s = checked("max_sliced_ksd", samples, scores, kernel)
    known = first_part("max_sliced_ksd", len(x), split)
    slices = fit_slices(key, x[:known], s[:known], kernel=kernel, **settings)
    return MaxSlicedKSD(*sliced_ksd(x[known:], s[known:], slices, kernel=kernel), slices)


def fit_slices(
    key: Array,
    samples: Float[Array, "n d"],
    scores: Scores,
    *,
    r: Float[Array, "m d"] | None = None,
    learn_r: bool = False,
    num_steps: int = 300,
    batch: int | None = 50,
    optimiser: optax.GradientTransformation | None = None,
    objective: Literal["v", "u"] = "v",
    kernel: Kernel = "rbf",
) -> Slices:
    """Find for each r the direction g along which draws differ most from a density.

    ::

        g ← Adam on −Σ_r E h_{r,g_r/|g_r|},   g_r ~ N(0, I) at first, batches of draws, ℓ the median of each batch

    Test with other draws than these. The diagonal of the V-statistic, (mean s_r² + a²/ℓ²)/n, pulls g towards ±r also
    where there is nothing to find: that they agree is no evidence.

    samples, scores, kernel: as for `ksd`.
    r: where the score is projected on, rows of length 1; the axes by default.
    learn_r: moves r too; the authors' own notes say that it hurts.
    num_steps, optimiser: any of Optax; by default adam(0.01, b2=0.99).
    batch: draws of a step; None for all.
    objective: "v", as published, or "u".

    >>> x = jax.random.normal(jax.random.key(0), (60, 4))
    >>> slices = jax.jit(lambda key, x: fit_slices(key, x, -x, num_steps=5))(jax.random.key(1), x)
    >>> slices.g.shape
    (4, 4)
    """
    x, s = checked("fit_slices", samples, scores, kernel, objective)
    require("fit_slices", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
    require("fit_slices", "batch", "None or >= 2", batch, lambda b: b is None or b >= 2)
    optimiser = optax.adam(1e-2, b2=0.99) if optimiser is None else optimiser
    n, d = x.shape
    size = n if batch is None else min(batch, n)
    start, steps = jax.random.split(key)
    fixed = jnp.eye(d, dtype=x.dtype) if r is None else unit(jnp.asarray(r, x.dtype))
    g = unit(jax.random.normal(start, fixed.shape, x.dtype))

    def loss(raw, x, s):
        def one(r, g):
            ell = floored(median_distance((x @ g)[:, None]))
            return summed(sliced_gram(x, s, r, g, ell, kernel), objective)

        both = slices_of(raw)
        return -jnp.sum(jax.vmap(one)(both.r, both.g))

    def slices_of(raw):
        return Slices(unit(raw.r) if learn_r else fixed, unit(raw.g))

    def step(carry, key):
        raw, state = carry
        rows = jax.random.permutation(key, n)[:size] if size < n else jnp.arange(n)
        updates, state = optimiser.update(jax.grad(loss)(raw, x[rows], s[rows]), state, raw)
        return (optax.apply_updates(raw, updates), state), None

    raw = Slices(fixed, g)
    (raw, _), _ = jax.lax.scan(step, (raw, optimiser.init(raw)), jax.random.split(steps, num_steps))
    return slices_of(raw)


def random_slices(key: Array, dimension: int, num_slices: int | None = None) -> Slices:
    """Slices that look anywhere: g uniform on the sphere for each axis r.

    num_slices: that many instead, with r uniform as well.

    >>> random_slices(jax.random.key(0), 3).g.shape
    (3, 3)
    """
    first, second = jax.random.split(key)
    number = dimension if num_slices is None else num_slices
    r = jnp.eye(dimension) if num_slices is None else unit(jax.random.normal(first, (number, dimension)))
    return Slices(r, unit(jax.random.normal(second, (number, dimension))))


def first_part(owner: str, n: int, split: float) -> int:
    """How many draws find slices."""
    require(owner, "split", "between 0 and 1", split, lambda share: 0 < share < 1)
    known = int(np.floor(n * split))
    remedy = f"Pass slices=, or more than {n} draws."
    require(owner, "samples * split", f">= {LEAST}, and 2 draws left", known, lambda k: LEAST <= k <= n - 2, remedy)
    return known
