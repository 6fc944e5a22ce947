"""The factorial hidden Markov model: several binary chains seen through one noisy sum."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

__all__ = ["FactorialHMM", "random_factorial_hmm"]


class FactorialHMM(eqx.Module):
    """The posterior of K binary chains of N steps, given y_t ~ N(w·x_t, noise²).

    f(x) = log p(x_1) + Σ_t log p(x_t | x_{t-1}) + Σ_t log N(y_t; w·x_t, noise²); every chain starts at 0 or 1 alike
    and keeps its value with probability ``keep``.

    observations: y.
    weights: w.
    keep: in (0, 1).
    noise: standard deviation of an observation.
    """

    observations: Float[Array, "steps"]
    weights: Float[Array, "chains"]
    keep: float = 0.95
    noise: float = 0.5

    def __call__(self, x: Float[Array, "steps chains"]) -> Float[Array, ""]:
        """f(x) of relaxed x: the log joint of x and the observations."""
        same = x[1:] * x[:-1] + (1 - x[1:]) * (1 - x[:-1])
        prior = jnp.sum(same * jnp.log(self.keep) + (1 - same) * jnp.log1p(-self.keep)) - x.shape[1] * jnp.log(2.0)
        residual = (self.observations - x @ self.weights) / self.noise
        return prior - 0.5 * jnp.sum(residual**2) - x.shape[0] * jnp.log(self.noise * jnp.sqrt(2 * jnp.pi))

    def start(self, key: Key[Array, ""]) -> Bool[Array, "steps chains"]:
        """Hidden values at random."""
        return jax.random.bernoulli(key, 0.5, (len(self.observations), len(self.weights)))

    def log_evidence(self) -> Float[Array, ""]:
        """log p(y) by forward filtering over the 2^K joint states; at most 10 chains."""
        chains = len(self.weights)
        if chains > 10:
            raise ValueError(f"FactorialHMM.log_evidence: at most 10 chains; got {chains}.")
        states = jnp.asarray((np.arange(2**chains)[:, None] >> np.arange(chains)) & 1, self.weights.dtype)
        changed = jnp.sum(states[:, None, :] != states[None, :, :], axis=-1)
        transition = changed * jnp.log1p(-self.keep) + (chains - changed) * jnp.log(self.keep)
        means = states @ self.weights
        emission = jax.scipy.stats.norm.logpdf(self.observations[:, None], means[None, :], self.noise)

        def forward(alpha, log_likelihood):
            return jax.nn.logsumexp(alpha[:, None] + transition, axis=0) + log_likelihood, None

        alpha, _ = jax.lax.scan(forward, emission[0] - chains * jnp.log(2.0), emission[1:])
        return jax.nn.logsumexp(alpha)


def random_factorial_hmm(
    key: Key[Array, ""], chains: int = 10, steps: int = 100, keep: float = 0.95, noise: float = 0.5
) -> FactorialHMM:
    """The paper code's setting: weights N(0, 1), observations drawn from the model itself.

    key: of the draws. chains, steps: K and N. keep, noise: as for `FactorialHMM`.
    """
    normal_key, flip_key = jax.random.split(key)
    normals = jax.random.normal(normal_key, (chains + steps,))
    weights = normals[:chains]
    # x_1 is 1 with probability one half, and each later x_t differs from the one before with probability 1 - keep.
    chance = jnp.full((steps, 1), 1 - keep).at[0].set(0.5)
    x = jnp.cumsum(jax.random.bernoulli(flip_key, chance, (steps, chains)).astype(jnp.int32), axis=0) % 2
    y = x.astype(weights.dtype) @ weights + noise * normals[chains:]
    return FactorialHMM(y, weights, keep, noise)
