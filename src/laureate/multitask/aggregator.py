"""One Optax transformation for all: a number a task from the tasks' Gram matrix, and the axis of tasks is gone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from laureate._core import require
from laureate.multitask.geometry import Shared, count_tasks, shared_leaves, sum_of_grams, wide

__all__ = ["AggregatorState", "Weighting", "aggregator"]


class Weighting(NamedTuple):
    """A rule that gives every task a number, from which `aggregator` makes a transformation; write your own.

    name: for errors. init: ``init(num_groups)``, its state, every leaf with that leading axis; ``()`` without one.
    step: ``step(gram, losses, state) -> (weights, state)`` of one group, [T, T] and [T] in, [T] out.
    heads: whether leaves that belong to one task are multiplied by the weights too, as a scale of the loss would be.
    losses: whether it needs ``losses=``. num_tasks: T where it must be known before the first step.
    independent: whether it needs at least as many shared parameters as tasks.
    """

    name: str
    init: Callable[[int], Any]
    step: Callable[[Array, Array, Any], tuple[Array, Any]]
    heads: bool = False
    losses: bool = False
    num_tasks: int | None = None
    independent: bool = False


class AggregatorState(NamedTuple):
    """What the next step needs.

    weightings: their states, in their order.
    """

    weightings: tuple[Any, ...]


def aggregator(
    *weightings: Weighting, shared: Shared = None, per: Any = "all", rescale: bool = False
) -> optax.GradientTransformationExtraArgs:
    """An Optax transformation that takes the gradients of T tasks, with a leading axis of tasks, and returns one.

    With weights a_t of the tasks (Liu et al. 2021, algorithm 1)::

        shared leaves: g = Σ_t a_t g_t,     leaves of one task: its own gradient, scaled only as its loss is

    ``init(params)`` takes parameters without the axis. ``update(grads, state, params, losses=values)`` takes
    ``grads, values`` of ``jax.jacrev``; ``losses`` is needed by rules that look at the losses. With ``gram=`` the
    weights are made from another Gram matrix, such as that of the gradients at the last shared features
    (`task_gram`), and applied to these gradients. Gradients that are not finite give an update that is not, for
    ``optax.apply_if_finite``. Clipping belongs after it. ``jax.jacrev`` holds T times the parameters.

    weightings: rules, one after the other: each sees gradients and losses already multiplied by those before.
    shared: which leaves all tasks share: None for all, a function of a leaf's path as ``jax.tree_util.keystr`` writes
        it, or a tree of bools. Say it where tasks have heads: their zeros would shrink every cosine.
    per: ``"all"`` for one Gram matrix, ``"leaf"`` for one a shared leaf, or a tree of labels, one a label.
    rescale: whether the result gets the length of the plain sum, in each group: then no hidden learning rate is left.

    >>> mean = aggregator(Weighting("mean", lambda groups: (), lambda gram, losses, state: (0 * losses + 0.5, state)))
    >>> params, grads = {"w": jnp.zeros(2)}, {"w": jnp.array([[1.0, 0.0], [0.0, 3.0]])}
    >>> updates, state = jax.jit(mean.update)(grads, mean.init(params), params)
    >>> updates["w"].tolist()
    [0.5, 1.5]
    """
    owner = " with ".join(one.name for one in weightings)
    require("aggregator", "weightings", "at least one", len(weightings), lambda count: count > 0)
    word = per if isinstance(per, str) else ""
    require(owner, "per", "'all', 'leaf' or a tree of labels", word, lambda w: w in ("", "all", "leaf"))

    def groups_of(tree: Any) -> list[int]:
        """The number of every leaf's group; -1 where the leaf belongs to one task."""
        kept = shared_leaves(owner, tree, shared)
        labels = list(range(len(kept))) if word == "leaf" else [0] * len(kept)
        labels = labels if word else jax.tree.leaves(jax.tree.broadcast(per, tree))
        order = list(dict.fromkeys(label for label, keep in zip(labels, kept, strict=True) if keep))
        return [order.index(label) if keep else -1 for label, keep in zip(labels, kept, strict=True)]

    def init(params: Any) -> AggregatorState:
        num_groups = 1 + max(groups_of(params))
        return AggregatorState(tuple(one.init(num_groups) for one in weightings))

    def update(grads, state, params=None, *, losses=None, gram=None, **extra):
        del extra
        num_tasks = count_tasks(owner, grads, params)
        leaves, tree = jax.tree.flatten(grads)
        groups = groups_of(grads)
        members = [[x for x, g in zip(leaves, groups, strict=True) if g == k] for k in range(1 + max(groups))]
        _check(weightings, num_tasks, losses, members)
        own = jnp.stack([sum_of_grams(rows) for rows in members])
        grams = own if gram is None else _given(owner, gram, own)
        values = jnp.ones(num_tasks) if losses is None else wide(losses)
        weights, heads = jnp.ones(own.shape[:2], own.dtype), jnp.ones(num_tasks, own.dtype)
        states = []
        for one, carried in zip(weightings, state.weightings, strict=True):
            scaled = weights[:, :, None] * grams * weights[:, None, :]
            factors, carried = jax.vmap(one.step)(scaled, weights * values, carried)
            weights = weights * factors
            heads = heads * factors[0] if one.heads else heads
            states.append(carried)
        if rescale:
            weights = weights * _lengths(jnp.ones_like(weights), own) / _lengths(weights, own, instead=1.0)
        each = [heads if group < 0 else weights[group] for group in groups]
        moved = [jnp.tensordot(a, wide(x), 1).astype(x.dtype) for a, x in zip(each, leaves, strict=True)]  # Σ a_t g_t
        return jax.tree.unflatten(tree, moved), AggregatorState(tuple(states))

    return optax.GradientTransformationExtraArgs(init, update)  # pyright: ignore[reportArgumentType]


def _lengths(weights: Array, grams: Array, instead: float = 0.0) -> Array:
    """‖Σ a_t g_t‖ = √(aᵀ G a) of every group, as a column; ``instead`` where it is 0."""
    square = jnp.maximum(jnp.einsum("ks,kst,kt->k", weights, grams, weights), 0.0)[:, None]
    return jnp.where(square == 0, instead, jnp.sqrt(jnp.where(square == 0, 1.0, square)))


def _given(owner: str, gram: Any, own: Array) -> Array:
    """The user's Gram matrix for the only group."""
    rule = f"of shape {own.shape[1:]}, with per='all'"
    require(owner, "gram", rule, (len(own), *np.shape(gram)), lambda shape: shape == (1, *own.shape[1:]))
    return jnp.asarray(gram, own.dtype)[None]


def _check(weightings: tuple[Weighting, ...], num_tasks: int, losses: Any, members: list[list[Array]]) -> None:
    """What each rule needs is there."""
    for one in weightings:
        if one.losses and losses is None:
            raise TypeError(f"{one.name} needs the tasks' losses: update(grads, state, params, losses=values).")
        known = one.num_tasks in (None, num_tasks)
        require(one.name, "num_tasks", f"{num_tasks}, as the gradients say", one.num_tasks, lambda n, k=known: k)
        if one.independent:
            fewest = min(sum(x.size // num_tasks for x in rows) for rows in members)
            rule = f"at most the number of shared parameters, {fewest}"
            require(one.name, "number of tasks", rule, num_tasks, lambda n, most=fewest: n <= most)
    if losses is not None:
        require(weightings[0].name, "losses", f"of shape ({num_tasks},)", np.shape(losses), (num_tasks,).__eq__)
