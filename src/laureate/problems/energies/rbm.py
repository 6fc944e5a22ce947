"""Restricted Boltzmann machines, the hidden units summed out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

__all__ = ["RestrictedBoltzmannMachine", "random_rbm"]


class RestrictedBoltzmannMachine(eqx.Module):
    """f(v) = b·v + Σ_j softplus(W_j·v + c_j) over visible v ∈ {0, 1}.

    weights: W.
    visible_bias, hidden_bias: b and c.
    """

    weights: Float[Array, "hidden visible"]
    visible_bias: Float[Array, "visible"]
    hidden_bias: Float[Array, "hidden"]

    def __call__(self, v: Float[Array, "visible"]) -> Float[Array, ""]:
        """f(v) of relaxed v."""
        return self.visible_bias @ v + jnp.sum(jax.nn.softplus(self.weights @ v + self.hidden_bias))

    def start(self, key: Key[Array, ""]) -> Bool[Array, "visible"]:
        """Visible units at random."""
        return jax.random.bernoulli(key, 0.5, self.visible_bias.shape)

    def sweep(self, key: Key[Array, ""], v: Bool[Array, "visible"]) -> Bool[Array, "visible"]:
        """Hidden units given visible, then visible given hidden: a block-Gibbs step that f alone does not offer."""
        hidden = len(self.hidden_bias)
        uniforms = jax.random.uniform(key, (hidden + len(v),))
        h = uniforms[:hidden] < jax.nn.sigmoid(self.weights @ v.astype(float) + self.hidden_bias)
        return uniforms[hidden:] < jax.nn.sigmoid(h.astype(float) @ self.weights + self.visible_bias)

    def log_partition(self) -> Float[Array, ""]:
        """log Z by summing over all hidden configurations; at most 20 hidden units."""
        hidden = len(self.hidden_bias)
        if hidden > 20:
            raise ValueError(f"RestrictedBoltzmannMachine.log_partition: at most 20 hidden units; got {hidden}.")
        states = jnp.asarray((np.arange(2**hidden)[:, None] >> np.arange(hidden)) & 1, self.weights.dtype)
        free = jax.lax.map(
            lambda h: h @ self.hidden_bias + jnp.sum(jax.nn.softplus(h @ self.weights + self.visible_bias)),
            states,
            batch_size=4096,
        )
        return jax.nn.logsumexp(free)


def random_rbm(key: Key[Array, ""], visible: int = 100, hidden: int = 25) -> RestrictedBoltzmannMachine:
    """The paper code's random machine: weights of variance 0.05, biases N(0, 1).

    key: of the draws. visible, hidden: numbers of units.
    """
    normals = jax.random.normal(key, (hidden + 1, visible + 1))
    return RestrictedBoltzmannMachine(0.05**0.5 * normals[:-1, :-1], normals[-1, :-1], normals[:-1, -1])
