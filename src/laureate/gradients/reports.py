"""What every estimator carries and reports, and what its checked mode raises."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import Status

__all__ = ["EstimatorState", "Info"]


class EstimatorState(NamedTuple):
    """What the next step needs, and no more: a pytree of fixed shapes, to be carried or saved.

    pairs: the antithetic particles. None where each step starts anew (full ES) or from one state (truncated ES).
    center: the episodes with unperturbed parameters, for the estimators that have them.
    last_key: the bits of the last step's key, in checked mode.
    """

    pairs: Any = None
    center: Any = None
    last_key: Any = None


class Info(NamedTuple):
    """What a step reports.

    loss: mean over particles and inner steps of the unroll's own loss, perturbed as the particles are.
    cost: inner steps computed, over all particles; who waits counts, for waiting costs the same.
    status: ``Status.DIVERGED`` if nobody was left with a finite loss or the gradient is not finite (it is then given as
        zero), else ``Status.OK``.
    num_nonfinite: pairs (or workers) left out of this step's mean because their loss was not finite.
    num_done: episodes that ended in this step.
    num_unequal: pairs whose two signs ended at different inner steps.
    noise_rms: root mean square of ξ/σ, about the square root of how many independent draws ξ holds.
    difference: L⁺ − L⁻ of every pair.
    """

    loss: Array
    cost: Array
    status: Array
    num_nonfinite: Array
    num_done: Array
    num_unequal: Array | None = None
    noise_rms: Array | None = None
    difference: Array | None = None


def as_cost(num_steps: int) -> Array:
    """A number of inner steps as an array: an integer, or a float where 32 bits do not hold it."""
    return jnp.asarray(num_steps, jnp.int32 if num_steps < 2**31 else float)


def all_finite(tree: Any) -> Array:
    """Whether every number of a tree is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def status_of(usable: Array) -> Array:
    """OK or DIVERGED, as an array."""
    return jnp.where(usable, int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32)


def unused_key(est: Any, key: Array) -> Any:
    """In checked mode, the bits of a key no step has been given yet."""
    return jax.random.key_data(jax.random.fold_in(key, 0)) if est.checked else None


def checked(est: Any, key: Array, gradient: Any, state: EstimatorState, info: Info) -> tuple[Any, Any]:
    """In checked mode, raise for a non-finite loss and for a key given twice running; otherwise pass on."""
    if not est.checked:
        return gradient, None
    owner = type(est).__name__
    broken = (info.num_nonfinite > 0) | (info.status != int(Status.OK))
    message = (
        "a particle's loss is not finite; unchecked, it is left out and counted (or the gradient is not: then zero)."
    )
    gradient = eqx.error_if(gradient, broken, f"{owner}.step: {message}")
    bits = jax.random.key_data(key)
    same = jnp.all(bits == state.last_key)
    gradient = eqx.error_if(gradient, same, f"{owner}.step: the same key was given twice; every step needs its own.")
    return gradient, bits
