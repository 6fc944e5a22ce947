"""The four terms that KnockoffGAN's networks play for, and two of ours, each a function of a minibatch."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from laureate.selection.tables import swap

__all__ = ["critic_loss", "hints", "information", "moment_gap", "swap_loss"]

Critic = Callable[[Array], Array]


def hints(swapped: Array, revealed: Array, hidden: Array | float = 0.5) -> Array:
    """H_j = S_j where it is revealed, B_j = 1, and ``hidden`` where it is not."""
    return jnp.where(revealed, swapped.astype(float), hidden)


def swap_loss(
    logits: Callable[[Array, Array], Array], x: Array, knockoff: Array, s: Array, b: Array, hidden: Array | float = 0.5
):
    """L_D = E Σ_j (1 - B_j) [S_j log D_j + (1 - S_j) log(1 - D_j)], and the same per coordinate that was asked.

    D_j = sigmoid(logits(u, H)_j) guesses whether variable j was swapped in u = (X, X̃)_swap(S). Under exchangeability no
    D gets more than -log 2 a coordinate.

    logits: of D, from (u, H). x, knockoff: X and X̃. s, b: S and B, of x's shape.
    hidden: what H says of the others.
    """
    u = jnp.concatenate(swap(x, knockoff, s), axis=-1)
    found = logits(u, hints(s, b, hidden))
    terms = jnp.where(s, jax.nn.log_sigmoid(found), jax.nn.log_sigmoid(-found))
    asked = 1.0 - b.astype(terms.dtype)
    total = jnp.mean(jnp.sum(asked * terms, axis=-1))
    return total, jnp.sum(asked * terms) / jnp.maximum(jnp.sum(asked), 1.0)


def critic_loss(f: Critic, x: Array, knockoff: Array, mix: Array, penalty: Array | float = 10.0) -> Array:
    """L_f = E [f(X) - f(X̃) - η (‖∇f(εX + (1 - ε)X̃)‖ - 1)²], the critic of a Wasserstein GAN with gradient penalty.

    f: from rows to numbers. x, knockoff: X and X̃. mix: ε in [0, 1], one a row. penalty: η.
    """
    between = mix * x + (1.0 - mix) * knockoff
    slope = jax.vmap(jax.grad(lambda v: f(v[None])[0]))(between)
    norm = jnp.sqrt(jnp.sum(slope**2, axis=-1) + 1e-12)
    return jnp.mean(f(x) - f(knockoff)) - penalty * jnp.mean((norm - 1.0) ** 2)


def information(t: Callable[[Array, Array], Array], x: Array, knockoff: Array, shuffled: Array) -> Array:
    """Î_j = E T_j(x_j, x̃_j) - log E exp T_j(x_κ(j), x̃_j), ``[p]``: MINE's lower bound on I(X_j; X̃_j) (Belghazi et al.).

    shuffled: the rows of ``x`` in another order.
    """
    joint, apart = t(x, knockoff), t(shuffled, knockoff)
    n = x.shape[0]
    return jnp.mean(joint, axis=0) - (jax.nn.logsumexp(apart, axis=0) - jnp.log(n))


def moment_gap(x: Array, knockoff: Array) -> Array:
    """‖mean gap‖² + ‖C_x - C_x̃‖² + ‖off(C_x - C_xx̃)‖² of v = (x, x²): 0 for knockoffs (ours, not the paper's).

    The squares of gaps would be biased by the batch's noise, so gaps of its two halves are multiplied.
    """
    n, p = x.shape
    half = n // 2
    v, w = (jnp.concatenate([a, jnp.clip(a**2 - 1.0, -1.0, 8.0) / jnp.sqrt(2.0)], axis=1) for a in (x, knockoff))
    off = 1.0 - jnp.tile(jnp.eye(p, dtype=x.dtype), (2, 2))

    def gaps(v, w):
        return jnp.mean(v - w, axis=0), (v.T @ v - w.T @ w) / half, off * (v.T @ v - v.T @ w) / half

    first, second = gaps(v[:half], w[:half]), gaps(v[half : 2 * half], w[half : 2 * half])
    return sum((jnp.sum(a * b) for a, b in zip(first, second, strict=True)), jnp.zeros((), x.dtype)) / p
