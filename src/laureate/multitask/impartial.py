"""Impartial multi-task learning: equal projections (IMTL-G), equal scaled losses (IMTL-L), both (IMTL)."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from laureate._core import Status, require
from laureate.multitask.aggregator import Weighting, aggregator
from laureate.multitask.geometry import Shared, norms_and_cosines, wide

__all__ = ["ImpartialInfo", "ImpartialState", "LossScaleState", "imtl", "imtl_g", "imtl_l", "imtl_weights"]

Normalise = Literal["unit", "sum"]
Start = Literal["loss", "zeros"]
SAME = 1e-3  # how far from 1 the projections of unit gradients may be; opposed tasks are at 1


class ImpartialInfo(NamedTuple):
    """What `imtl_weights` found.

    projection: of the step onto every unit gradient. sign: -1 where the published weights, which sum to 1, point uphill
        for all tasks, else 1. negative: tasks with a weight below 0. active: tasks whose gradient is not 0.
    condition: number of the cosine matrix, inf where tasks are collinear.
    cost: Gram matrices that were solved, 1. status: NOT_CONVERGED where no direction has equal projections (opposed
        tasks; the weights are then 0), DIVERGED where a weight is not finite.
    """

    projection: Float[Array, ""]
    sign: Float[Array, ""]
    negative: Int[Array, ""]
    active: Array
    condition: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def imtl_weights(gram: Float[Array, "T T"], normalise: Normalise = "unit") -> tuple[Float[Array, "T"], ImpartialInfo]:
    """Weights with which the sum of gradients has the same projection onto every task's unit gradient.

    With lengths n, unit gradients u and the matrix K of cosines::

        ⟨Σ a_t g_t, u_s⟩ equal for all s:   a_t ∝ (K⁻¹ 1)_t / n_t

    (Liu et al. 2021, eq. 1 and 2, where the first task is singled out; the same numbers.) A task whose gradient is 0
    gets weight 0 and no say. Collinear tasks share one.

    gram: inner products of the tasks' gradients, `task_gram`.
    normalise: ``"unit"``: the coefficients a_t n_t of the unit gradients sum to T, so that the common projection is
        never negative and the units of the losses do not matter; the step does not shrink with the gradients.
        ``"sum"``: the weights a_t sum to 1, as published; where some are negative the step can go uphill for all tasks
        (``info.sign``), and its length follows the smallest gradient.

    >>> weights, info = jax.jit(imtl_weights)(jnp.array([[4.0, 0.0], [0.0, 16.0]]))
    >>> weights.tolist(), info.projection.item()
    ([0.5, 0.25], 1.0)
    """
    shape = np.shape(gram)
    require("imtl_weights", "gram", "a square matrix [T, T]", shape, lambda s: len(s) == 2 and s[0] == s[1])
    require("imtl_weights", "normalise", "'unit' or 'sum'", normalise, lambda word: word in ("unit", "sum"))
    norms, cosines = norms_and_cosines(wide(gram))
    active = ~(norms == 0)  # what is not finite stays in, and is seen in the result
    ones = active.astype(norms.dtype)
    finite = jnp.all(jnp.isfinite(cosines))
    values, vectors = jnp.linalg.eigh(jnp.where(finite, cosines + jnp.diag(1 - ones), jnp.eye(len(ones))))
    kept = values > 10 * len(ones) * jnp.finfo(norms.dtype).eps * values[-1]
    x = vectors @ (jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0) * (vectors.T @ ones))  # K⁻¹ 1
    possible = jnp.max(jnp.abs(cosines @ (x * ones) - 1) * ones) < SAME
    some = possible & jnp.any(active)
    x = jnp.where(some, x * ones, 0.0)
    weights = x / jnp.where(active, norms, 1.0)  # (K⁻¹ 1)_t / n_t: a projection of 1
    published = jnp.sum(weights)
    # Σ x = 1ᵀ K⁻¹ 1 > 0, which Σ x_t / n_t need not be
    divisor = published if normalise == "sum" else jnp.sum(x) / jnp.sum(ones)
    projection = jnp.where(some, 1 / jnp.where(some, divisor, 1.0), 0.0)
    weights = jnp.where(some, weights / jnp.where(some, divisor, 1.0), 0.0)
    weights = jnp.where(finite, weights, jnp.nan)
    bad = jnp.where(jnp.all(jnp.isfinite(weights)), Status.NOT_CONVERGED, Status.DIVERGED)
    return weights, ImpartialInfo(
        projection,
        jnp.where(published < 0, -1.0, 1.0),
        jnp.sum(weights < 0),
        active,
        jnp.where(kept[0], values[-1] / values[0], jnp.inf),
        jnp.asarray(1),
        jnp.where(possible & jnp.all(jnp.isfinite(weights)), Status.OK, bad),
    )


def imtl_g(
    *, normalise: Normalise = "unit", shared: Shared = None, per: Any = "all", rescale: bool = False
) -> optax.GradientTransformationExtraArgs:
    """IMTL-G as an Optax transformation: no task's gradient has a larger projection on the step than another's.

    The weights are those of `imtl_weights`, on the leaves that all tasks share; leaves of one task are left as they
    are. With two tasks it is the sum of unit gradients, `unit_sum`. A task that is nearly solved, whose small gradient
    is mostly noise, has the same say as any other: where tasks differ in how much data they have, the plain sum can be
    better. Opposed tasks give an update of 0; the state says so, `ImpartialState`.

    normalise: as of `imtl_weights`. shared, per, rescale: as of `aggregator`.

    >>> params, grads = jnp.zeros(2), jnp.array([[2.0, 0.0], [0.0, 512.0]])
    >>> optimiser = optax.chain(imtl_g(), optax.sgd(0.5))
    >>> updates, state = jax.jit(optimiser.update)(grads, optimiser.init(params), params)
    >>> updates.tolist()
    [-0.5, -0.5]
    """
    return aggregator(_projections(normalise), shared=shared, per=per, rescale=rescale)


def imtl_l(
    num_tasks: int, optimiser: optax.GradientTransformation, *, start: Start = "loss", shared: Shared = None
) -> optax.GradientTransformationExtraArgs:
    """IMTL-L as an Optax transformation: learned scales that bring every task's loss to the same size.

    Every task's loss becomes (Liu et al. 2021, eq. 6)::

        e^{s_t} L_t - s_t,    ∂/∂s_t = e^{s_t} L_t - 1,    best at e^{s_t} = 1/L_t

    Gradients, those of heads too, are multiplied by e^{s_t} and summed. Losses must be above 0. It needs
    ``update(grads, state, params, losses=values)``.

    num_tasks: T.
    optimiser: of s, any of Optax, such as ``optax.sgd(0.1)``; the paper has the network's own.
    start: ``"loss"``: s begins at -log L of the first batch. ``"zeros"``: at 0, as in public code; with large losses s
        then overshoots and switches the task off for hundreds of steps.
    shared: as of `aggregator`.

    >>> params, grads = jnp.zeros(1), jnp.array([[3.0], [400.0]])
    >>> optimiser = imtl_l(2, optax.sgd(0.1))
    >>> losses = jnp.array([1.0, 100.0])
    >>> updates, state = jax.jit(optimiser.update)(grads, optimiser.init(params), params, losses=losses)
    >>> round(float(updates[0]), 3)
    7.0
    """
    return aggregator(loss_scales("imtl_l", num_tasks, optimiser, start), shared=shared)


def imtl(
    num_tasks: int,
    optimiser: optax.GradientTransformation,
    *,
    start: Start = "loss",
    normalise: Normalise = "unit",
    shared: Shared = None,
    per: Any = "all",
    rescale: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """IMTL, both parts: scales e^{s_t} of the losses, and equal projections of the scaled gradients on shared leaves.

    ::

        shared: Σ a_t e^{s_t} g_t,  a from the gradients of the scaled losses;    heads: e^{s_t} g_t

    (Liu et al. 2021, algorithm 1.) The arguments are those of `imtl_l` and `imtl_g`.

    >>> params, grads = {"trunk": jnp.zeros(2), "head": jnp.zeros(1)}, {"trunk": jnp.eye(2), "head": jnp.ones((2, 1))}
    >>> optimiser = imtl(2, optax.sgd(0.1), shared=lambda path: "trunk" in path)
    >>> losses = jnp.array([0.5, 0.25])
    >>> updates, state = jax.jit(optimiser.update)(grads, optimiser.init(params), params, losses=losses)
    >>> [round(float(x), 3) for x in (*updates["trunk"], *updates["head"])]
    [1.0, 1.0, 6.0]
    """
    parts = loss_scales("imtl", num_tasks, optimiser, start), _projections(normalise)
    return aggregator(*parts, shared=shared, per=per, rescale=rescale)


class ImpartialState(NamedTuple):
    """Of the last step, what `ImpartialInfo` says, [groups] each.

    status: of the weights. negative: how many of them are below 0. sign: −1 or 1.
    """

    status: Int[Array, "groups"]
    negative: Int[Array, "groups"]
    sign: Float[Array, "groups"]


class LossScaleState(NamedTuple):
    """What the next step needs; a group is a set of parameters with weights of its own.

    s: the logarithms of the losses' scales, [groups, T]. optimiser: the state of their optimiser. count: steps made,
    [groups].
    """

    s: Float[Array, "groups T"]
    optimiser: Any
    count: Int[Array, "groups"]  # pyright: ignore[reportIncompatibleMethodOverride]


def _projections(normalise: Normalise) -> Weighting:
    require("imtl_g", "normalise", "'unit' or 'sum'", normalise, lambda word: word in ("unit", "sum"))

    def init(num_groups):
        zeros = jnp.zeros(num_groups, jnp.int32)
        return ImpartialState(zeros + Status.OK, zeros, jnp.ones(num_groups, jnp.float32))

    def step(gram, losses, state):
        del losses
        weights, info = imtl_weights(gram, normalise)
        seen = info.status, info.negative, info.sign
        return weights, ImpartialState(*(new.astype(old.dtype) for new, old in zip(seen, state, strict=True)))

    return Weighting("imtl_g", init, step, independent=True)


def loss_scales(
    name: str, num_tasks: int, optimiser: optax.GradientTransformation, start: Start, factor: Any = None
) -> Weighting:
    """e^s with s trained on e^s L - s; with a ``factor`` c, on c e^s L - s / 2, which is uncertainty weighting."""
    require(name, "num_tasks", ">= 1", num_tasks, lambda n: isinstance(n, int) and n >= 1)
    require(name, "start", "'loss' or 'zeros'", start, lambda word: word in ("loss", "zeros"))
    loss_part, log_part = (1.0, 1.0) if factor is None else (jnp.asarray(factor, float), 0.5)

    def init(num_groups):
        s = jnp.zeros((num_groups, num_tasks))
        return LossScaleState(s, jax.vmap(optimiser.init)(s), jnp.zeros(num_groups, jnp.int32))

    def step(gram, losses, state):
        del gram
        s, moments, count = state
        best = jnp.log(log_part / loss_part) - jnp.log(losses)
        fresh = (start == "loss") & (count == 0)
        s = jnp.where(fresh, best.astype(s.dtype), s)
        slope = loss_part * jnp.exp(s) * losses - log_part  # e^s L - 1
        # 0 at the start but for rounding, of which Adam would make a whole step
        updates, moments = optimiser.update(jnp.where(fresh, 0.0, slope).astype(s.dtype), moments, s)
        weights = jnp.broadcast_to(loss_part * jnp.exp(s), losses.shape)
        return weights, LossScaleState(optax.apply_updates(s, updates), moments, count + 1)  # pyright: ignore[reportArgumentType]

    return Weighting(name, init, step, heads=True, losses=True, num_tasks=num_tasks)
