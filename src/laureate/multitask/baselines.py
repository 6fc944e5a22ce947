"""Sums, sums of unit gradients, and the shortest combination (MGDA): gradients alone decide."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from laureate._core import Status, require
from laureate.multitask.aggregator import Weighting, aggregator
from laureate.multitask.geometry import Shared, norms_and_cosines, wide

__all__ = ["MinimumNormInfo", "mgda", "mgda_weights", "uniform", "unit_sum"]


def _stateless(num_groups: int) -> tuple:
    del num_groups
    return ()


def uniform(weights: Sequence[float] | None = None, *, shared: Shared = None) -> optax.GradientTransformationExtraArgs:
    """The plain sum of the tasks' gradients, or one with fixed weights: what others must beat.

    ::

        g = Σ_t w_t g_t,     w_t = 1 unless given

    weights: w, numbers >= 0, one a task, for heads as well. shared: as of `aggregator`.

    >>> tx = uniform()
    >>> jax.jit(tx.update)(jnp.array([[1.0, 2.0], [3.0, 4.0]]), tx.init(jnp.zeros(2)))[0].tolist()
    [4.0, 6.0]
    """
    num_tasks = None if weights is None else len(weights)
    fixed = 1.0 if weights is None else jnp.asarray(weights, float)
    require("uniform", "weights", ">= 0", fixed, lambda w: np.all(w >= 0))

    def step(gram, losses, state):
        return jnp.broadcast_to(jnp.asarray(fixed, gram.dtype), losses.shape), state

    return aggregator(Weighting("uniform", _stateless, step, heads=True, num_tasks=num_tasks), shared=shared)


def unit_sum(
    *, shared: Shared = None, per: Any = "all", rescale: bool = False
) -> optax.GradientTransformationExtraArgs:
    """The sum of unit gradients, Σ_t g_t / ‖g_t‖ on shared leaves; with two tasks it is IMTL-G.

    A gradient of 0 adds nothing. shared, per, rescale: as of `aggregator`.

    >>> tx = unit_sum()
    >>> jax.jit(tx.update)(jnp.array([[2.0, 0.0], [0.0, 64.0]]), tx.init(jnp.zeros(2)))[0].tolist()
    [1.0, 1.0]
    """

    def step(gram, losses, state):
        del losses
        norms = jnp.sqrt(jnp.diagonal(gram))
        return jnp.where(norms == 0, 0.0, 1 / jnp.where(norms == 0, 1.0, norms)), state

    return aggregator(Weighting("unit_sum", _stateless, step), shared=shared, per=per, rescale=rescale)


class MinimumNormInfo(NamedTuple):
    """What `mgda_weights` found.

    square: ‖g‖², the squared length of the combination. gap: ‖g‖² - min_t ⟨g, g_t⟩, in its unit; it is above the least
    by twice that at most. cost: steps taken. status: NOT_CONVERGED where the gap is above the tolerance, DIVERGED where
    a gradient is not finite.
    """

    square: Float[Array, ""]
    gap: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def mgda_weights(
    gram: Float[Array, "T T"], *, num_steps: int = 500, tolerance: float | None = None
) -> tuple[Float[Array, "T"], MinimumNormInfo]:
    """Weights >= 0 that sum to 1 and make the shortest combination of the gradients.

    ::

        a = argmin ‖Σ_t a_t g_t‖²,   a ≥ 0, Σ a = 1

    (Désidéri 2012; Sener & Koltun 2018.) Mass goes from the task with the largest ⟨g, g_t⟩ to the one with the
    smallest, as far as is best, until the two are equal.

    gram: inner products of the gradients. num_steps: moves at most.
    tolerance: of ‖g‖² - min_t ⟨g, g_t⟩ over the largest squared length; by default ten roundings.

    >>> weights, info = jax.jit(mgda_weights)(jnp.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> [round(float(a), 3) for a in weights]
    [0.75, 0.25]
    """
    require("mgda_weights", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
    gram = wide(gram)
    count = gram.shape[0]
    largest = jnp.max(jnp.diagonal(gram))
    gram = gram / jnp.where(largest == 0, 1.0, largest)
    least = 10 * jnp.finfo(gram.dtype).eps if tolerance is None else tolerance

    def gap(a):
        inner = gram @ a  # ⟨g, g_t⟩
        return a @ inner - jnp.min(inner)

    def going(carry):
        a, steps = carry
        return (gap(a) > least) & (steps < num_steps)

    def move(carry):
        a, steps = carry
        inner = gram @ a
        to, away = jnp.argmin(inner), jnp.argmax(jnp.where(a > 0, inner, -jnp.inf))
        curvature = gram[to, to] + gram[away, away] - 2 * gram[to, away]
        amount = jnp.clip((inner[away] - inner[to]) / jnp.maximum(curvature, least), 0.0, a[away])
        return a.at[to].add(amount).at[away].add(-amount), steps + 1

    start = jnp.full(count, 1 / count, gram.dtype)
    a, steps = jax.lax.while_loop(going, move, (start, jnp.asarray(0)))
    a = jnp.where(jnp.all(jnp.isfinite(gram)), a, jnp.nan)
    left = gap(a)
    status = jnp.where(left > least, Status.NOT_CONVERGED, Status.OK)
    status = jnp.where(jnp.isfinite(left), status, Status.DIVERGED)
    return a, MinimumNormInfo(largest * (a @ gram @ a), largest * left, steps, status)


def mgda(
    *, normalise: bool = False, shared: Shared = None, per: Any = "all", rescale: bool = False
) -> optax.GradientTransformationExtraArgs:
    """MGDA as an Optax transformation: the shortest combination of the gradients, which is downhill for all or 0.

    The weights are those of `mgda_weights`. It follows the task with the smallest gradient.

    normalise: whether the gradients are made unit gradients first. shared, per, rescale: as of `aggregator`.

    >>> tx = mgda()
    >>> updates, state = jax.jit(tx.update)(jnp.array([[1.0, 0.0], [0.0, 2.0]]), tx.init(jnp.zeros(2)))
    >>> [round(float(x), 3) for x in updates]
    [0.8, 0.4]
    """

    def step(gram, losses, state):
        del losses
        if not normalise:
            return mgda_weights(gram)[0], state
        norms, cosines = norms_and_cosines(gram)
        return mgda_weights(cosines)[0] / jnp.where(norms == 0, 1.0, norms), state

    return aggregator(Weighting("mgda", _stateless, step), shared=shared, per=per, rescale=rescale)
