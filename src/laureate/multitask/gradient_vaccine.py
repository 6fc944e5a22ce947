"""Gradient Vaccine: pairs of tasks pulled up to a cosine that is tracked along training; PCGrad is its special case."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, UInt

from laureate._core import as_key, require
from laureate.multitask.aggregator import Weighting, aggregator
from laureate.multitask.geometry import Shared, norms_and_cosines, wide

__all__ = ["GradVacState", "gradvac", "pcgrad", "vaccine", "visiting_order"]

Track = Literal["modified", "raw"]
LARGEST = 0.999  # a target's absolute value, beyond which a correction has no bounded length


def vaccine(
    gram: Float[Array, "T T"],
    target: Float[Array, "T T"],
    order: Int[Array, "T V"],
    beta: float | Array = 0.01,
    *,
    track: Track = "modified",
) -> tuple[Float[Array, "T T"], Float[Array, "T T"]]:
    """Coefficients C of the corrected gradients g'_i = Σ_k C_ik g_k, and the moved targets.

    Every task i begins with g'_i = g_i and visits the others in its order; with p = cos(g'_i, g_j), h = target_ij::

        if p < h:  g'_i ← g'_i + ‖g'_i‖ (h √(1-p²) - p √(1-h²)) / (‖g_j‖ √(1-h²)) g_j     so that cos(g'_i, g_j) = h
        h ← (1-β) h + β p                                              always, with p before the correction

    (Wang et al. 2021.) ‖g'_i‖ grows by √(1-p²)/√(1-h²). A later visit may undo an earlier one. All is computed from the
    Gram matrix. Tasks whose gradient is 0 are passed over, and their targets stay; so is g'_i once corrections have
    cancelled it to within rounding.

    gram: inner products of the gradients. target: h, in (-1, 1); beyond ±0.999 it is taken as that.
    order: whom each task visits, one after the other, `visiting_order`; itself is passed over.
    beta: β in [0, 1]; with 0 and targets 0 this is PCGrad. track: the p that moves h: ``"modified"`` as above, or
        ``"raw"``, that of the uncorrected gradients.

    >>> gram, order = jnp.array([[1.0, 0.0], [0.0, 4.0]]), jnp.array([[1], [0]])
    >>> coefficients, target = jax.jit(vaccine)(gram, jnp.full((2, 2), 0.6), order, 0.5)
    >>> [round(x, 3) for x in sum(coefficients.tolist(), [])], round(target.tolist()[0][1], 3)
    ([1.0, 0.375, 1.5, 1.0], 0.3)
    """
    require("vaccine", "beta", "in [0, 1]", beta, lambda b: 0 <= b <= 1)
    require("vaccine", "track", "'modified' or 'raw'", track, lambda word: word in ("modified", "raw"))
    shape = np.shape(gram)
    require("vaccine", "gram", "a square matrix [T, T]", shape, lambda s: len(s) == 2 and s[0] == s[1])
    require("vaccine", "target", f"of shape {shape}", np.shape(target), lambda s: s == shape)
    require("vaccine", "order", f"[{shape[0]}, visits]", np.shape(order), lambda s: len(s) == 2 and s[0] == shape[0])
    gram = wide(gram)
    norms, cosines = norms_and_cosines(gram)
    finite = jnp.all(jnp.isfinite(gram))

    def corrected(i, order_i, target_i):
        def visit(carry, j):
            c, h_i = carry
            square = c @ gram @ c
            left = square > 10 * jnp.finfo(gram.dtype).eps * (jnp.abs(c) @ norms) ** 2  # more than rounding
            length = jnp.sqrt(jnp.where(left, square, 1.0))  # ‖g'_i‖
            meets = (i != j) & (norms[j] != 0) & left & finite
            p = jnp.clip((c @ gram[:, j]) / jnp.where(meets, length * norms[j], 1.0), -1.0, 1.0)
            h = jnp.clip(h_i[j], -LARGEST, LARGEST)
            sines = jnp.sqrt(1 - p**2), jnp.sqrt(1 - h**2)
            w = length * (h * sines[0] - p * sines[1]) / jnp.where(meets, norms[j] * sines[1], 1.0)
            c = c.at[j].add(jnp.where(meets & (p < h), w, 0.0))
            seen = p if track == "modified" else cosines[i, j]
            h_i = h_i.at[j].set(jnp.where(meets, (1 - beta) * h_i[j] + beta * seen, h_i[j]))
            return (c, h_i), None

        start = jnp.where(jnp.arange(len(norms)) == i, 1.0, 0.0).astype(gram.dtype)
        return jax.lax.scan(visit, (start, target_i), order_i)[0]

    rows = jnp.arange(len(norms))
    return jax.vmap(corrected)(rows, jnp.asarray(order), jnp.asarray(target, gram.dtype))


def visiting_order(key: Key[Array, ""], num_tasks: int) -> Int[Array, "T T"]:
    """A random order of all tasks for each of them.

    >>> [sorted(row) for row in visiting_order(jax.random.key(0), 2).tolist()]
    [[0, 1], [0, 1]]
    """
    return jnp.argsort(jax.random.uniform(key, (num_tasks, num_tasks)), axis=1)


class GradVacState(NamedTuple):
    """What the next step needs; a group is a set of parameters with weights of its own.

    target: the cosines aimed at, [groups, T, T]. key: the bits of a key, [groups, bits]. count: steps made, [groups].
    """

    target: Float[Array, "groups T T"]
    key: UInt[Array, "groups bits"]
    count: Int[Array, "groups"]  # pyright: ignore[reportIncompatibleMethodOverride]


def gradvac(
    key: Key[Array, ""],
    num_tasks: int,
    *,
    beta: float | Array = 0.01,
    target: float | Array = 0.0,
    track: Track = "modified",
    shared: Shared = None,
    per: Any = "all",
    rescale: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """Gradient Vaccine as an Optax transformation: related tasks are made to agree as much as they usually do.

    The corrections are those of `vaccine`, from a fresh random order at every step; the result is Σ_i g'_i, on the
    leaves that all tasks share. The corrected sum is longer than the plain one, which is a hidden learning rate under
    SGD: see ``rescale``. Since h follows the mean of p, about half of all pairs are corrected at any time, unrelated
    ones too.

    key: of the orders; kept in the state. num_tasks: T.
    beta: β in [0, 1], how fast targets follow the cosines; public code has 0.5.
    target: h at the start, a number or [T, T], in (-1, 1); with ``beta=0`` it stays. track: as of `vaccine`.
    shared, per, rescale: as of `aggregator`; ``per`` gives every group its own targets.

    >>> tx = optax.chain(gradvac(jax.random.key(0), 2, target=0.6, beta=0.0), optax.sgd(1.0))
    >>> params = jnp.zeros(2)
    >>> updates, state = jax.jit(tx.update)(jnp.array([[1.0, 0.0], [0.0, 2.0]]), tx.init(params), params)
    >>> [round(x, 3) for x in updates.tolist()]  # -(1, 0.75) - (1.5, 2)
    [-2.5, -2.75]
    """
    require("gradvac", "num_tasks", ">= 1", num_tasks, lambda n: isinstance(n, int) and n >= 1)
    require("gradvac", "beta", "in [0, 1]", beta, lambda b: 0 <= b <= 1)
    start = jnp.broadcast_to(jnp.asarray(target, float), (num_tasks, num_tasks))
    require("gradvac", "target", "in (-1, 1)", start, lambda h: np.all(np.abs(h) < 1))
    require("gradvac", "track", "'modified' or 'raw'", track, lambda word: word in ("modified", "raw"))
    rule = _visits("gradvac", key, start, beta, track)
    return aggregator(rule, shared=shared, per=per, rescale=rescale)


def pcgrad(
    key: Key[Array, ""], num_tasks: int, *, shared: Shared = None, per: Any = "all", rescale: bool = False
) -> optax.GradientTransformationExtraArgs:
    """PCGrad as an Optax transformation: of two conflicting gradients each loses what points against the other.

    Every task i visits the others in random order (Yu et al. 2020)::

        if ⟨g'_i, g_j⟩ < 0:  g'_i ← g'_i - ⟨g'_i, g_j⟩ / ‖g_j‖² g_j

    The same code as `gradvac` with targets that stay 0. The arguments are those of `gradvac`.

    >>> tx = pcgrad(jax.random.key(0), 2)
    >>> grads = jnp.array([[1.0, 0.0], [-1.0, 1.0]])
    >>> updates, state = jax.jit(tx.update)(grads, tx.init(jnp.zeros(2)))
    >>> [round(x, 3) for x in updates.tolist()]  # (1/2, 1/2) + (0, 1)
    [0.5, 1.5]
    """
    require("pcgrad", "num_tasks", ">= 1", num_tasks, lambda n: isinstance(n, int) and n >= 1)
    rule = _visits("pcgrad", key, jnp.zeros((num_tasks, num_tasks)), 0.0, "modified")
    return aggregator(rule, shared=shared, per=per, rescale=rescale)


def _visits(name: str, key: Key[Array, ""], start: Array, beta: float | Array, track: Track) -> Weighting:
    num_tasks = len(start)

    def init(num_groups):
        bits = jax.random.key_data(jax.random.split(as_key(key), num_groups))
        target = jnp.broadcast_to(start, (num_groups, *start.shape))
        return GradVacState(target, bits, jnp.zeros(num_groups, jnp.int32))

    def step(gram, losses, state):
        del losses
        own_key = jax.random.fold_in(as_key(state.key), state.count)
        coefficients, target = vaccine(gram, state.target, visiting_order(own_key, num_tasks), beta, track=track)
        weights = jnp.sum(coefficients, axis=0)  # Σ_i g'_i = Σ_k (Σ_i C_ik) g_k
        return weights, GradVacState(target.astype(state.target.dtype), state.key, state.count + 1)

    return Weighting(name, init, step, num_tasks=num_tasks)
