"""Exact conditionals of a few sites: evaluate every configuration of a block, then draw one."""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from laureate._core import Status
from laureate.sampling._kernel import DiscreteKernel, KernelInfo, Tree
from laureate.sampling._layout import Layout
from laureate.sampling._wheel import first_beyond

__all__ = ["PlainState", "choose", "draw_block", "log_probabilities", "patterns", "shift", "valid_patterns"]


class PlainState(NamedTuple):
    """What a Gibbs sampler carries.

    position: the codes. logdensity: f(x), not tempered.
    """

    position: Tree
    logdensity: Float[Array, ""]


@functools.lru_cache(maxsize=32)
def patterns(num_values: int, block_size: int, radius: int) -> np.ndarray:
    """Cyclic shifts of a block's value indices with at most ``radius`` of them not zero; the first is all zero."""
    rows = []
    for count in range(radius + 1):
        for sites in itertools.combinations(range(block_size), count):
            for shifts in itertools.product(range(1, num_values), repeat=count):
                row = np.zeros(block_size, np.int32)
                row[list(sites)] = shifts
                rows.append(row)
    return np.stack(rows)


def draw_block(
    uniforms: Float[Array, "sites"], free: Bool[Array, "sites"] | None, block_size: int
) -> Int[Array, "block"]:
    """A uniform set of distinct sites, free ones first, by one uniform number a site."""
    if free is not None:
        uniforms = jnp.where(free, uniforms, -1.0)
    return jax.lax.top_k(uniforms, block_size)[1].astype(jnp.int32)


def valid_patterns(
    kernel: DiscreteKernel, layout: Layout, sites: Int[Array, "block"], shifts: np.ndarray
) -> Bool[Array, "patterns"]:
    """Which shifts stay within each site's number of values and leave masked sites alone."""
    movable = jnp.asarray(shifts) < layout.num_values(sites)
    free = layout.free_sites(kernel.site_mask)
    if free is not None:
        movable &= free[sites]
    return jnp.all(movable | (shifts == 0), axis=1)


def shift(
    layout: Layout, position: Tree, sites: Int[Array, "block"], shifts: Int[Array, "block"]
) -> tuple[Tree, Int[Array, "block"]]:
    """The position with the block's value indices shifted cyclically, and those indices."""
    index = layout.index(sites, layout.read(position, sites))
    index = (index + shifts) % layout.num_values(sites)
    return layout.write(position, sites, layout.code(sites, index)), index


def log_probabilities(
    kernel: DiscreteKernel,
    layout: Layout,
    position: Tree,
    sites: Int[Array, "block"],
    shifts: np.ndarray,
    known: Float[Array, ""] | None = None,
) -> tuple[Float[Array, "patterns"], Float[Array, "patterns"]]:
    """f of the position under every shift, and log of its conditional probability given all other sites.

    NaN where the masks forbid to go is given as -inf. ``known`` is f of the position itself (the first shift, zero),
    where the caller has it.
    """
    allowed = layout.values_allowed(kernel.category_mask)

    def one(pattern):
        moved, index = shift(layout, position, sites, pattern)
        return kernel.evaluate(moved), jnp.all(allowed[sites, index])

    if known is None:
        values, inside = jax.vmap(one)(jnp.asarray(shifts))
    else:
        values, inside = jax.vmap(one)(jnp.asarray(shifts[1:]))
        values, inside = jnp.append(known, values), jnp.append(True, inside)
    inside &= valid_patterns(kernel, layout, sites, shifts)
    beta = jnp.asarray(kernel.inverse_temperature, values.dtype)
    values = jnp.where(~inside & jnp.isnan(values), -jnp.inf, values)
    # A NaN configuration is never entered; `choose` flags it. The impossible stays so at β = 0, where 0 · -inf is NaN.
    logits = jnp.where(inside & (values > -jnp.inf), beta * values, -jnp.inf)
    return values, jax.nn.log_softmax(logits)


def choose(
    uniform: Float[Array, ""],
    layout: Layout,
    position: Tree,
    sites: Int[Array, "block"],
    shifts: np.ndarray,
    values: Float[Array, "patterns"],
    log_probs: Float[Array, "patterns"],
    cost: int,
) -> tuple[PlainState, KernelInfo]:
    """Draw a configuration of the block from its conditional."""
    choice = first_beyond(jnp.cumsum(jnp.exp(log_probs).astype(uniform.dtype)), uniform)
    moved, _ = shift(layout, position, sites, jnp.asarray(shifts)[choice])
    status = jnp.where(jnp.any(jnp.isnan(values)), int(Status.DIVERGED), int(Status.OK))
    info = KernelInfo(
        acceptance_rate=jnp.ones((), values.dtype),
        is_accepted=jnp.ones((), bool),
        log_ratio=jnp.zeros((), values.dtype),
        proposal=moved,
        cost=jnp.asarray(cost, jnp.int32),
        status=status.astype(jnp.int32),
    )
    return PlainState(moved, values[choice]), info
