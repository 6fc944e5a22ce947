"""Weights whose columns stand at right angles: a penalty for a generator, and first weights that begin so."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require
from laureate.generative.stateful import by_shape, named_weights

__all__ = ["OrthogonalPenalty", "orthogonal"]


class OrthogonalPenalty(eqx.Module):
    """Keep a generator smooth over all of latent space, so that truncated latents serve (Brock et al. 2019, eq. 2, 3)::

        "off-diagonal"  β Σ ‖WᵀW ⊙ (1 − I)‖²     "full"  β Σ ‖WᵀW − I‖²

    The first leaves the lengths of columns free and is BigGAN's. W is a weight as the matrix of its last axis (its
    outputs) against all others. The authors' code adds 2 β of what is 4 β in the true gradient: its β is half of ours.

    weight: β, >= 0.
    kind: "off-diagonal" or "full".
    where: whether to penalise a weight, from its path; BigGAN leaves the shared embedding out.

    >>> w = jnp.array([[1.0, 1.0], [0.0, 2.0]])
    >>> float(OrthogonalPenalty(1.0)(w)), float(OrthogonalPenalty(1.0, "full")(w))
    (2.0, 18.0)
    """

    weight: float | Array = 1e-4
    kind: str = eqx.field(static=True, default="off-diagonal")
    where: Callable[[str], bool] = eqx.field(static=True, default=lambda path: "embedding" not in path)

    def __check_init__(self):
        require("OrthogonalPenalty", "weight", ">= 0", self.weight, lambda w: w >= 0)
        rule = "'off-diagonal' or 'full'"
        require("OrthogonalPenalty", "kind", rule, self.kind, lambda kind: kind in ("off-diagonal", "full"))

    def __call__(self, network: Any) -> Array:
        """Of all weights of a network together."""
        total = jnp.zeros(())
        for _, stack in by_shape([weight for path, weight in named_weights(network) if self.where(path)]):
            gram, one = jnp.einsum("kmi,kmj->kij", stack, stack), jnp.eye(stack.shape[-1], dtype=stack.dtype)[None]
            total += jnp.sum((gram - one if self.kind == "full" else gram * (1 - one)) ** 2)
        return self.weight * total


def orthogonal(key: Array, *shapes: tuple[int, ...]) -> list[Float[Array, "*shape"]]:
    """Weights whose matrix, of the last axis against all others, has orthonormal columns, or rows where it is wide.

    shapes: of two axes at least each; all come from one draw.

    >>> (w,) = orthogonal(jax.random.key(0), (5, 3))
    >>> bool(jnp.allclose(w.T @ w, jnp.eye(3), atol=1e-5))
    True
    """
    require("orthogonal", "shapes", "of two axes at least", shapes, lambda all_: all(len(s) >= 2 for s in all_))
    sizes = [math.prod(shape) for shape in shapes]
    pool, used, drawn = jax.random.normal(key, (sum(sizes),)), 0, []
    for shape, size in zip(shapes, sizes, strict=True):
        columns, rows = shape[-1], size // shape[-1]
        drawn.append(pool[used : used + size].reshape(max(rows, columns), min(rows, columns)))
        used += size
    made: dict[int, Array] = {}
    for places, stack in by_shape(drawn):
        q, r = jnp.linalg.qr(stack)
        q = q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None]  # uniform over all such matrices
        made |= {place: q[n] for n, place in enumerate(places)}
    wide = [size // shape[-1] < shape[-1] for shape, size in zip(shapes, sizes, strict=True)]
    return [(made[n].T if wide[n] else made[n]).reshape(shape) for n, shape in enumerate(shapes)]
