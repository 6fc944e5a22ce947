"""The weights of a supernet's operations: from alpha and what is decided, and with something taken out."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require, warn
from laureate.architecture.space import Space

__all__ = ["check_alpha", "effective_weights", "optimal_mixture", "without_edges", "without_operations"]


def effective_weights(
    space: Space,
    alpha: Float[Array, "edges ops"],
    choice: Int[Array, " edges"] | None = None,
    kept: Bool[Array, " edges"] | None = None,
) -> Float[Array, "edges ops"]:
    """The weights that the supernet is applied with.

    w_e = softmax(α_e) while edge e is undecided, then one-hot; 0 for an edge that was dropped.

    Decided rows do not depend on alpha: their gradient is zero, exactly.

    choice: the number of each edge's operation, -1 while it is undecided; None: nothing is decided.
    kept: False for an edge that was dropped; None: all are kept.

    >>> space = Space((("none", "skip"), ("skip", "conv3", "avg3")))
    >>> weights = effective_weights(space, jnp.log(jnp.array([[1.0, 3, 9], [1, 1, 2]])), jnp.array([-1, 2]))
    >>> [[round(weight, 3) for weight in row] for row in weights.tolist()]
    [[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]
    """
    soft = jax.nn.softmax(jnp.where(space.valid, alpha, -jnp.inf), axis=1)
    if choice is not None:
        soft = jnp.where((choice >= 0)[:, None], jax.nn.one_hot(choice, soft.shape[1], dtype=soft.dtype), soft)
    return soft if kept is None else jnp.where(kept[:, None], soft, 0.0)


def without_operations(weights: Float[Array, "edges ops"], edge: Int[Array, ""]) -> Float[Array, "ops edges ops"]:
    """One array of weights for each operation o of an edge, with w_eo = 0; the others keep theirs, not renormalised."""
    edges, ops = weights.shape
    removed = (jnp.arange(edges)[:, None] == edge) & (jnp.arange(ops) == jnp.arange(ops)[:, None, None])
    return jnp.where(removed, 0.0, weights)


def without_edges(weights: Float[Array, "edges ops"], edges: Int[Array, " k"]) -> Float[Array, "k edges ops"]:
    """One array of weights for each of these edges e, with w_e = 0."""
    return jnp.where((jnp.arange(len(weights)) == edges[:, None])[..., None], 0.0, weights)


def optimal_mixture(
    variance_op: Float[Array, ""], variance_skip: Float[Array, ""], covariance: Float[Array, ""] | float = 0.0
) -> Float[Array, ""]:
    """The weight θ of an operation beside a skip connection that estimates their common target best.

    θ* = argmin var(θ o + (1 - θ) x - m) = (V_x - C) / (V_x + V_o - 2C),    V_o = var(o - m), V_x = var(x - m)

    The better the skip's input x already is, the smaller the operation's weight, whatever the operation is worth: so a
    large weight is no evidence of an operation's strength (Wang et al. 2021, proposition 1, there with C = 0).

    variance_op, variance_skip: V_o and V_x, > 0. covariance: C, between the two errors.

    >>> float(optimal_mixture(1.0, 3.0)), float(optimal_mixture(1.0, 0.25))
    (0.75, 0.2)
    """
    return (variance_skip - covariance) / (variance_skip + variance_op - 2 * covariance)


def check_alpha(owner: str, space: Space, alpha: Array) -> Array:
    """The alpha of a space, as an array of numbers; it warns where it looks like probabilities."""
    alpha = jnp.asarray(alpha)
    if alpha.ndim == 2 and len(alpha) == space.num_edges and alpha.shape[1] < space.shape[1]:
        edge = int(np.argmax(np.asarray(space.num_ops) > alpha.shape[1]))
        told = f"edge {edge} has {space.num_ops[edge]} operations, and {alpha.shape[1]} columns were given"
    else:
        told = "one row an edge, one column an operation"
    rule = f"of shape {space.shape} ({told})"
    require(owner, "alpha", rule, alpha.shape, lambda shape: shape == space.shape)
    alpha = alpha if jnp.issubdtype(alpha.dtype, jnp.floating) else alpha.astype(jnp.float32)
    if not isinstance(alpha, Tracer):
        known = np.where(space.valid, np.asarray(alpha), 0.0)
        require(owner, "alpha", "finite", alpha, lambda _: bool(np.isfinite(known).all()))
        if space.shape[1] > 1 and known.min() >= 0 and np.allclose(known.sum(1), 1, atol=1e-5):
            warn(
                f"{owner}.alpha: all rows sum to 1, as probabilities do, but logits are expected; softmax is taken of "
                "them. Give log(probabilities) if that is what they are."
            )
    return alpha
