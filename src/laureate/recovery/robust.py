"""A dictionary that drifts: D̃ = D + ε, columns normalised. A fresh closed form, a learned encoder, or a stale weight.

The paper learns a network that turns D̃ into a weight. The closed form makes it optional: a new weight is one solve.
"""

import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.core import Tracer

from laureate import loops
from laureate._core import require
from laureate.recovery.weights import analytic_weight, coherence_loss

__all__ = ["UnrolledCoherence", "fit_encoder", "perturb"]


def perturb(key: Array, D: Array, sigma: float | Array) -> Array:  # noqa: N803
    """D̃ = D + σ ε with ε Gaussian, columns normalised."""
    require("perturb", "sigma", ">= 0", sigma, lambda s: s >= 0)
    drifted = D + sigma * jax.random.normal(key, D.shape, D.dtype)
    return drifted / jnp.linalg.norm(drifted, axis=0)


class UnrolledCoherence(eqx.Module):
    """A network from a dictionary to its weight: T steps W ← W − B_t (D̃ᵀW − I) from W = D̃, with B_t learned.

    B_t starts at ``step_size`` · D, where a step is one of gradient descent on ½‖D̃ᵀW − I‖². In the end columns are
    scaled so that w_mᵀ d̃_m = 1, as the weight requires.

    >>> D = jnp.eye(3)
    >>> bool(jnp.allclose(UnrolledCoherence(D)(D), D))
    True
    """

    matrices: Array

    def __init__(self, D: Any, num_steps: int = 4, step_size: float = 0.1):  # noqa: N803
        require("UnrolledCoherence", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
        require("UnrolledCoherence", "step_size", "> 0", step_size, lambda s: s > 0)
        self.matrices = jnp.tile(step_size * jnp.asarray(D), (num_steps, 1, 1))

    def __call__(self, D: Array) -> Array:  # noqa: N803
        """The weight of this dictionary, [N, M]."""
        eye = jnp.eye(D.shape[1], dtype=D.dtype)

        def step(weight, matrix):
            return weight - matrix @ (D.T @ weight - eye), None

        weight = jax.lax.scan(step, D, self.matrices)[0]
        return weight / jnp.sum(weight * D, axis=0)


def fit_encoder(
    key: Array,
    encoder: UnrolledCoherence,
    D: Array,  # noqa: N803
    sigma: float | Array,
    *,
    optimiser: optax.GradientTransformation,
    num_steps: int = 500,
    batch: int = 16,
    progress: Callable[[loops.Progress], None] | None = None,
) -> tuple[UnrolledCoherence, Array]:
    """Train the encoder on ‖D̃ᵀW − I‖², w_mᵀ d̃_m = 1, over drifts of size U(0, σ); also the losses, [steps].

    progress: called about every second with a ``laureate.loops.Progress``; not within jit.
    key: of the drifts and the draws. sigma: σ, the largest drift. optimiser: any of Optax. batch: drifts a step.
    """
    drifted = perturb(jax.random.fold_in(key, num_steps), D, sigma)  # the steps have 0, 1, ..., steps - 1
    diagonal = jnp.min(jnp.sum(analytic_weight(D) * drifted, axis=0))
    if not isinstance(diagonal, Tracer) and float(diagonal) < 0.5:
        warnings.warn(
            f"sigma = {float(sigma):.3g} turns D so far that w_mᵀ d̃_m falls to {float(diagonal):.2f}: an encoder that "
            "has seen one D will hardly follow. Use weight='closed_form'.",
            stacklevel=2,
        )

    def loss(encoder, key):
        def one(key):
            size_key, noise_key = jax.random.split(key)
            drifted = perturb(noise_key, D, sigma * jax.random.uniform(size_key))
            return coherence_loss(drifted, encoder(drifted))

        return jnp.mean(jax.vmap(one)(jax.random.split(key, batch)))

    def step(carry, key):
        matrices, state = carry
        value, slope = jax.value_and_grad(lambda m: loss(eqx.tree_at(lambda e: e.matrices, encoder, m), key))(matrices)
        updates, state = optimiser.update(slope, state, matrices)
        return (optax.apply_updates(matrices, updates), state), value

    start = encoder.matrices, optimiser.init(encoder.matrices)
    (matrices, _), losses = loops.scan(step, start, jax.random.split(key, num_steps), progress=progress)
    return eqx.tree_at(lambda e: e.matrices, encoder, matrices), losses
