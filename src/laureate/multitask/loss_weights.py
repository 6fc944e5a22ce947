"""Weights from the tasks' losses: GradNorm, uncertainty weighting, and the gradient over the loss."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.multitask.aggregator import Weighting, aggregator
from laureate.multitask.geometry import Shared
from laureate.multitask.impartial import Start, loss_scales

__all__ = ["GradNormState", "InverseLossState", "gradnorm", "inverse_loss", "uncertainty"]


class GradNormState(NamedTuple):
    """What the next step needs; a group is a set of parameters with weights of its own.

    weights: [groups, T]. optimiser: the state of the weights' optimiser. first: the losses of the first step, [groups,
    T]. count: steps made, [groups].
    """

    weights: Float[Array, "groups T"]
    optimiser: Any
    first: Float[Array, "groups T"]
    count: Int[Array, "groups"]  # pyright: ignore[reportIncompatibleMethodOverride]


def gradnorm(
    num_tasks: int, optimiser: optax.GradientTransformation, *, gamma: float | Array = 1.5, shared: Shared = None
) -> optax.GradientTransformationExtraArgs:
    """GradNorm as an Optax transformation: learned weights that bring the lengths of the gradients to a target.

    With n_t = ‖g_t‖ and the relative speed r_t = (L_t / L_t(0)) / mean of it (Chen et al. 2018)::

        w ← optimiser on Σ_t |w_t n_t - mean_s(w_s n_s) r_t^γ|, the target held fixed;   then Σ w = T

    Gradients, those of heads too, are multiplied by w. It needs ``losses=``.

    num_tasks: T. optimiser: of w, such as ``optax.adam(0.025)``.
    gamma: γ >= 0; 0 asks for equal lengths, for which `unit_sum` is the solution. shared: as of `aggregator`.

    >>> tx = gradnorm(2, optax.sgd(0.1), gamma=0.0)
    >>> losses, grads = jnp.ones(2), jnp.array([[1.0, 0.0], [0.0, 2.0]])
    >>> updates, state = jax.jit(tx.update)(grads, tx.init(jnp.zeros(2)), losses=losses)
    >>> [round(float(w), 3) for w in state.weightings[0].weights[0]]
    [1.158, 0.842]
    """
    require("gradnorm", "num_tasks", ">= 1", num_tasks, lambda n: isinstance(n, int) and n >= 1)
    require("gradnorm", "gamma", ">= 0", gamma, lambda g: g >= 0)

    def init(num_groups):
        ones = jnp.ones((num_groups, num_tasks))
        return GradNormState(ones, jax.vmap(optimiser.init)(ones), ones, jnp.zeros(num_groups, jnp.int32))

    def step(gram, losses, state):
        weights, moments, first, count = state
        first = jnp.where(count == 0, losses.astype(first.dtype), first)
        norms = jnp.sqrt(jnp.diagonal(gram))
        speed = losses / first
        target = jnp.mean(weights * norms) * (speed / jnp.mean(speed)) ** gamma
        updates, moments = optimiser.update(jnp.sign(weights * norms - target) * norms, moments, weights)
        moved = jnp.maximum(optax.apply_updates(weights, updates), 1e-6)  # pyright: ignore[reportArgumentType]
        moved = moved * num_tasks / jnp.sum(moved)
        return weights.astype(gram.dtype), GradNormState(moved, moments, first, count + 1)

    rule = Weighting("gradnorm", init, step, heads=True, losses=True, num_tasks=num_tasks)
    return aggregator(rule, shared=shared)


def uncertainty(
    num_tasks: int,
    optimiser: optax.GradientTransformation,
    *,
    factor: float | Sequence[float] = 0.5,
    start: Start = "loss",
    shared: Shared = None,
) -> optax.GradientTransformationExtraArgs:
    """Uncertainty weighting: every task's loss over a variance that is learned with it.

    With s = -log σ² (Kendall, Gal & Cipolla 2018)::

        c e^{s_t} L_t - s_t / 2,     c = 1/2 for a squared error, 1 for cross-entropy

    With c = 1/2 it is half of IMTL-L, `imtl_l`. It needs ``losses=``.

    factor: c > 0, a number or one a task. The other arguments are those of `imtl_l`.

    >>> tx = uncertainty(2, optax.sgd(0.1))
    >>> losses, grads = jnp.array([1.0, 100.0]), jnp.array([[3.0], [400.0]])
    >>> updates, state = jax.jit(tx.update)(grads, tx.init(jnp.zeros(1)), losses=losses)
    >>> round(float(updates[0]), 3)
    3.5
    """
    require("uncertainty", "factor", "> 0", jnp.asarray(factor, float), lambda c: np.all(c > 0))
    return aggregator(loss_scales("uncertainty", num_tasks, optimiser, start, factor), shared=shared)


class InverseLossState(NamedTuple):
    """What the next step needs; a group is a set of parameters with weights of its own.

    first: the losses of the first step, [groups, T]. count: steps made, [groups].
    """

    first: Float[Array, "groups T"]
    count: Int[Array, "groups"]  # pyright: ignore[reportIncompatibleMethodOverride]


def inverse_loss(
    num_tasks: int, *, by: Literal["now", "first"] = "now", shared: Shared = None
) -> optax.GradientTransformationExtraArgs:
    """Every task's gradient over its loss, g_t / L_t: one line, no learning, and free of the losses' units.

    Losses must be above 0. It needs ``losses=``; heads are scaled too.

    num_tasks: T. by: ``"now"`` for the loss of this batch, the gradient of Σ log L; ``"first"`` for that of the first.
    shared: as of `aggregator`.

    >>> tx = inverse_loss(2)
    >>> losses, grads = jnp.array([1.0, 100.0]), jnp.array([[3.0], [400.0]])
    >>> updates, state = jax.jit(tx.update)(grads, tx.init(jnp.zeros(1)), losses=losses)
    >>> round(float(updates[0]), 3)
    7.0
    """
    require("inverse_loss", "by", "'now' or 'first'", by, lambda word: word in ("now", "first"))

    def init(num_groups):
        return InverseLossState(jnp.ones((num_groups, num_tasks)), jnp.zeros(num_groups, jnp.int32))

    def step(gram, losses, state):
        first = jnp.where(state.count == 0, losses.astype(state.first.dtype), state.first)
        weights = 1 / (losses if by == "now" else first)
        return weights.astype(gram.dtype), InverseLossState(first, state.count + 1)

    rule = Weighting("inverse_loss", init, step, heads=True, losses=True, num_tasks=num_tasks)
    return aggregator(rule, shared=shared)
