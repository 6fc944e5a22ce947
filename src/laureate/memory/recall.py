"""Recall: from a damaged pattern to the nearest remembered one, at temperature zero."""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate._core import Status, require
from laureate.memory.hopfield import HopfieldNetwork, check_one

__all__ = ["RecallInfo", "recall"]


class RecallInfo(NamedTuple):
    """How a recall went.

    num_sweeps: passes over all units until none moved.
    cost: unit updates.
    status: ``Status.NOT_CONVERGED`` where some still moved at the last pass, ``Status.DIVERGED`` where a coupling or a
        field is not finite.
    """

    num_sweeps: Int[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def recall(
    key: Key[Array, ""],
    network: HopfieldNetwork,
    spins: Float[Array, "units"],
    mode: Literal["async", "sync"] = "async",
    keep_diagonal: bool = False,
    max_sweeps: int = 100,
) -> tuple[Float[Array, "units"], RecallInfo]:
    """Follow s_i ← sign(Σ_j J_ij s_j + b_i) until nothing moves; a unit whose field is nought stays.

    mode: ``"async"``: one unit after another, in a random order anew each sweep; the energy never rises.
        ``"sync"``: all at once, which may end in a cycle of two.
    keep_diagonal: keep J_ii, which holds every unit where it is and costs much of the reach of a memory.

    >>> from laureate.memory import store
    >>> network = store([[1, 1, 1, 1, -1, -1, -1, -1]])
    >>> damaged = jnp.array([-1.0, 1, 1, 1, -1, -1, -1, -1])
    >>> restored, info = recall(jax.random.key(0), network, damaged)
    >>> int(restored @ network.patterns[0]), int(info.status)
    (8, 0)
    """
    require("recall", "mode", "'async' or 'sync'", mode, lambda m: m in ("async", "sync"))
    require("recall", "max_sweeps", ">= 1", max_sweeps, lambda n: n >= 1)
    couplings = network.couplings
    if not keep_diagonal:
        couplings = couplings - jnp.diag(jnp.diag(couplings))
    units = network.num_units
    check_one("recall", "spins", spins, units)
    spins = jnp.asarray(spins, couplings.dtype)
    # A field within rounding of nought is no reason to move; rounding is of the size of the largest field there may be.
    largest = jnp.max(jnp.sum(jnp.abs(network.couplings), axis=1) + jnp.abs(network.field))
    nought = 1e-6 * jnp.fmin(largest, 1.0)

    def settled(spin, field):
        return jnp.where(jnp.abs(field) > nought, jnp.sign(field), spin).astype(spin.dtype)

    def one_by_one(key, spins):
        fields = couplings @ spins + network.field

        def visit(i, carry):
            spins, fields = carry
            unit = order[i]
            change = settled(spins[unit], fields[unit]) - spins[unit]
            return spins.at[unit].add(change), fields + couplings[:, unit] * change

        order = jax.random.permutation(key, units)
        return jax.lax.fori_loop(0, units, visit, (spins, fields))[0]

    def all_at_once(_, spins):
        return settled(spins, couplings @ spins + network.field)

    sweep = one_by_one if mode == "async" else all_at_once

    def body(carry):
        spins, number, _ = carry
        after = sweep(jax.random.fold_in(key, number), spins)
        return after, number + 1, jnp.any(after != spins)

    def going(carry):
        return carry[2] & (carry[1] < max_sweeps)

    spins, number, moving = jax.lax.while_loop(going, body, (spins, jnp.zeros((), jnp.int32), jnp.array(True)))
    status = jnp.where(moving, int(Status.NOT_CONVERGED), int(Status.OK))
    finite = jnp.all(jnp.isfinite(couplings)) & jnp.all(jnp.isfinite(network.field))
    status = jnp.where(finite, status, int(Status.DIVERGED)).astype(jnp.int32)
    return spins, RecallInfo(number, number * units, status)
