"""How the gradients of several tasks lie to each other: Gram matrix, cosines, conflicts, projections of a step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from laureate._core import Status, require

__all__ = ["TaskGeometry", "task_geometry", "task_gram"]

# None: all leaves; a function of a leaf's path, such as ``lambda path: "trunk" in path``; or a tree of bools.
Shared = Callable[[str], bool] | Any


class TaskGeometry(NamedTuple):
    """What `task_geometry` found of T tasks.

    gram: inner products of the tasks' gradients. norms: their lengths. cosines: of every pair, 0 with a zero gradient.
    conflicts: share of pairs whose inner product is negative.
    projections: of the step onto every unit gradient; all must be positive for a step that helps every task.
    amplification: length of the step over that of the plain sum.
    cost: gradients that were read, T. status: DIVERGED where one is not finite.
    """

    gram: Float[Array, "T T"]
    norms: Float[Array, "T"]
    cosines: Float[Array, "T T"]
    conflicts: Float[Array, ""]
    projections: Float[Array, "T"]
    amplification: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def task_geometry(grads: Any, step: Any = None, *, shared: Shared = None) -> TaskGeometry:
    """Norms, cosines and conflicts of the tasks' gradients, and what a step means for each task.

    ::

        G = J Jᵀ,   cos_ij = G_ij / √(G_ii G_jj),   projection_t = ⟨step, g_t⟩ / ‖g_t‖

    grads: the tree of ``jax.jacrev(losses)(params)``; every leaf begins with the axis of tasks.
    step: what an aggregator made of it, a tree without that axis; by default the plain sum.
    shared: which leaves count, as for `aggregator`.

    >>> found = jax.jit(task_geometry)({"w": jnp.array([[1.0, 0.0], [-3.0, 4.0]])})
    >>> [round(float(x), 3) for x in found.cosines[0]], found.conflicts.item()
    ([1.0, -0.6], 1.0)
    """
    num_tasks = count_tasks("task_geometry", grads)
    kept = shared_leaves("task_geometry", grads, shared)
    rows = [row for row, keep in zip(jax.tree.leaves(grads), kept, strict=True) if keep]
    gram = sum_of_grams(rows)
    moved = [jnp.sum(wide(row), axis=0) for row in rows]
    if step is not None:
        moved = [leaf for leaf, keep in zip(jax.tree.leaves(step), kept, strict=True) if keep]
        shapes = [(leaf.shape, row.shape[1:]) for leaf, row in zip(moved, rows, strict=True)]
        require("task_geometry", "step", "of the gradients' shapes without the axis of tasks", shapes, _alike)
    norms, cosines = norms_and_cosines(gram)
    inner = jnp.stack([jnp.tensordot(wide(row), wide(leaf), leaf.ndim) for row, leaf in zip(rows, moved, strict=True)])
    length = jnp.sqrt(jnp.sum(jnp.stack([jnp.sum(wide(leaf) ** 2) for leaf in moved])))
    pairs = jnp.triu(jnp.ones_like(gram), 1)
    return TaskGeometry(
        gram,
        norms,
        cosines,
        jnp.sum(pairs * (gram < 0)) / max(1, num_tasks * (num_tasks - 1) // 2),
        _over(jnp.sum(inner, axis=0), norms),
        _over(length, jnp.sqrt(jnp.maximum(jnp.sum(gram), 0.0))),
        jnp.asarray(num_tasks),
        jnp.where(jnp.all(jnp.isfinite(gram)) & jnp.isfinite(length), Status.OK, Status.DIVERGED),
    )


def task_gram(grads: Any, *, shared: Shared = None) -> Float[Array, "T T"]:
    """Inner products of the tasks' gradients, in float32 at least; also of gradients at shared features [T, ...].

    The arguments are those of `task_geometry`.

    >>> task_gram(jnp.array([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [[9.0, 0.0], [0.0, 16.0]]
    """
    count_tasks("task_gram", grads)
    kept = shared_leaves("task_gram", grads, shared)
    return sum_of_grams([row for row, keep in zip(jax.tree.leaves(grads), kept, strict=True) if keep])


def count_tasks(owner: str, grads: Any, params: Any = None) -> int:
    """T, which every leaf must begin with; with ``params`` what follows must be the parameter's own shape."""
    paths = jax.tree_util.tree_leaves_with_path(grads)
    hint = "Make them with jax.jacrev(losses)(params), where losses returns an array [T], before anything is summed."
    require(owner, "grads", "a tree with at least one leaf", len(paths), lambda count: count > 0, hint)
    first = jnp.shape(paths[0][1])
    for number, (path, leaf) in enumerate(paths):
        name, shape = jax.tree_util.keystr(path) or "the only leaf", jnp.shape(leaf)
        rule = f"[T, ...] with T = {first[0]} for {name}" if first else f"[T, ...] for {name}"
        require(owner, "grads", rule, shape, lambda s: len(s) > 0 and s[0] == first[0], hint)
        if params is not None:
            inner = jnp.shape(jax.tree.leaves(params)[number])
            rule = f"of shape [T, *{list(inner)}] for the parameter {name}"
            require(owner, "grads", rule, shape, lambda s, inner=inner: s[1:] == inner, hint)
    return first[0]


def shared_leaves(owner: str, tree: Any, shared: Shared) -> list[bool]:
    """Of every leaf whether all tasks share it."""
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    if shared is None:
        return [True] * len(paths)
    kept = [bool(shared(path)) for path in paths] if callable(shared) else None
    if kept is None:
        kept = [bool(keep) for keep in jax.tree.leaves(jax.tree.broadcast(shared, tree))]
    require(owner, "shared", f"true of at least one leaf; the paths are {', '.join(paths)}", kept, any)
    return kept


def sum_of_grams(rows: list[Array]) -> Float[Array, "T T"]:
    """Σ over leaves of J Jᵀ."""
    flat = [wide(row).reshape(row.shape[0], -1) for row in rows]
    return jnp.sum(jnp.stack([jnp.matmul(row, row.T, precision="highest") for row in flat]), axis=0)


def norms_and_cosines(gram: Float[Array, "T T"]) -> tuple[Float[Array, "T"], Float[Array, "T T"]]:
    """Lengths, and cosines with exact ones on the diagonal; 0 where a gradient is 0."""
    norms = jnp.sqrt(jnp.diagonal(gram))
    cosines = jnp.clip(_over(gram, norms[:, None] * norms), -1.0, 1.0)
    return norms, jnp.where(jnp.eye(len(norms), dtype=bool) & (norms != 0), 1.0, cosines)


def wide(leaf: Array) -> Array:
    """In float32 at least."""
    return jnp.asarray(leaf).astype(jnp.promote_types(jnp.result_type(leaf), jnp.float32))


def _over(top: Array, bottom: Array) -> Array:
    """A quotient that is 0 where the denominator is."""
    return jnp.where(bottom == 0, 0.0, top / jnp.where(bottom == 0, 1.0, bottom))


def _alike(shapes: list[tuple]) -> bool:
    return all(one == other for one, other in shapes)
