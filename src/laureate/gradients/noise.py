"""Gaussian noise for pairs: drawn by a pair's global index, scaled by σ leaf by leaf, turned into its score."""

from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Shard(NamedTuple):
    """Which pairs live here: their global indices, and the mesh axis they are split over (None: all are here)."""

    pairs: Array
    axis: str | None


def pair_keys(key: Array, num_pairs: int, shard: Shard, draw: Any) -> Array:
    """A key a pair, by its global index: however the pairs are split over devices, the noise is the same.

    draw: which of a step's draws: 2j is the noise at segment j, 2j + 1 the episodes that begin there.
    """
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(shard.pairs + num_pairs * draw)


def draw_noise(keys: Array, theta: Any) -> Any:
    """Standard normal noise like theta for every pair, from the pair's own key.

    A pair's numbers are drawn in one go and then dealt out to the leaves: every call of the generator takes about as
    long to compile as all the rest of an update.
    """
    leaves, structure = jax.tree.flatten(theta)
    dtypes = sorted({leaf.dtype for leaf in leaves}, key=str)
    noise: list[Any] = [None] * len(leaves)
    for which, dtype in enumerate(dtypes):
        places = [place for place, leaf in enumerate(leaves) if leaf.dtype == dtype]
        sizes = [leaves[place].size for place in places]
        own = keys if len(dtypes) == 1 else jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, which)
        drawn = jax.vmap(partial(jax.random.normal, shape=(sum(sizes),), dtype=dtype))(own)
        for place, part in zip(places, jnp.split(drawn, [*accumulate(sizes)][:-1], axis=1), strict=True):
            noise[place] = part.reshape(-1, *leaves[place].shape)
    return structure.unflatten(noise)


def per_leaf(owner: str, sigma: Any, theta: Any) -> Any:
    """Sigma as a tree like theta, each leaf of theta's type and with an axis of one for the pairs."""
    leaves, structure = jax.tree.flatten(theta)
    scales = jax.tree.leaves(sigma)
    if jax.tree_util.all_leaves([sigma]) and jnp.ndim(sigma) == 0:
        scales = scales * len(leaves)
    elif jax.tree.structure(sigma) != structure:
        raise ValueError(
            f"{owner}.sigma must be a scalar or a tree like theta; the sigma tree does not match theta: "
            f"{jax.tree.structure(sigma)} against {structure}."
        )
    for scale, leaf in zip(scales, leaves, strict=True):
        if scale.shape not in ((), leaf.shape):
            raise ValueError(
                f"{owner}.sigma must have leaves that are scalars or shaped like theta's; "
                f"got shape {list(scale.shape)} where theta has {list(leaf.shape)}."
            )
    both = zip(scales, leaves, strict=True)
    return structure.unflatten([jnp.broadcast_to(scale.astype(x.dtype), (1, *x.shape)) for scale, x in both])


def score_of(noise: Any, sigma: Any) -> Any:
    """ε/σ²: the gradient of log N(θ + ε; θ, σ²) with respect to θ, in ``wide`` precision."""
    return jax.tree.map(lambda eps, scale: eps / (scale * scale), widen(noise), widen(sigma))


def wide(leaf: Array) -> Any:
    """In which type a leaf's scores are added up: its own, float32 at least."""
    return jnp.promote_types(leaf.dtype, jnp.float32)


def widen(tree: Any) -> Any:
    """The tree in the types in which it is added up."""
    return jax.tree.map(lambda leaf: leaf.astype(wide(leaf)), tree)


def zero_scores(theta: Any, shard: Shard) -> Any:
    """ξ/σ² = 0 for every pair: leaves of shape [pairs, ...]."""
    return jax.tree.map(lambda leaf: jnp.zeros((shard.pairs.size, *leaf.shape), wide(leaf)), theta)


def perturb(theta: Any, noise: Any) -> Any:
    """θ ± ε: leaves of shape [pairs, 2, ...]."""
    return jax.tree.map(lambda x, eps: jnp.stack([x[None] + eps, x[None] - eps], axis=1), theta, noise)
