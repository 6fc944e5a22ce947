"""Noise on the state that a network is trained with, and how the target answers it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from laureate._core import require

__all__ = ["TrainingNoise"]


class TrainingNoise(eqx.Module):
    """Trains a simulator to come back from small errors of its own: the last frame is disturbed, the target corrects.

    With n ~ N(0, σ²) at the nodes that are predicted, and nowhere else (Pfaff et al. 2021, appendix; their code)::

        x̃_t = x_t + n,   x_{t−1} stays,   x̃_{t+1} = x_{t+1} + (1 − γ) n

    So the target of a first-order model is Δx − γ n: γ = 1 takes the whole error back. That of a second-order model is
    a − (1 + γ) n: γ = 1 corrects the position (a − 2n), γ = 0 the velocity alone (a − n).

    sigma: in the unit of the state, >= 0; 0: no noise. The authors take 0.003 for cloth, 0.02 for flow. What is larger
        than the change in one step hides what is to be learnt: `fit_simulator` warns of that.
    gamma: in [0, 1]; the authors take 0.1 for second order, 1 for first.

    >>> import jax, jax.numpy as jnp
    >>> frames, following = jnp.zeros((2, 3, 1)), jnp.ones((3, 1))
    >>> noise = TrainingNoise(0.1, gamma=1.0)
    >>> noisy, target = noise.disturb(jax.random.key(0), frames, following, jnp.array([True, True, False]))
    >>> bool((target == following).all()), float(noisy[1, 2, 0]), bool((noisy[0] == 0).all())
    (True, 0.0, True)
    """

    sigma: float | Array = 0.0
    gamma: float | Array = 0.1

    def __check_init__(self):
        require("TrainingNoise", "sigma", ">= 0", self.sigma, lambda s: s >= 0)
        require("TrainingNoise", "gamma", "in [0, 1]", self.gamma, lambda g: 0 <= g <= 1)

    def disturb(
        self, key: Array, frames: Float[Array, "h n d"], following: Float[Array, "n d"], free: Bool[Array, " n"]
    ) -> tuple[Float[Array, "h n d"], Float[Array, "n d"]]:
        """Frames with a noisy last one, and the state that is to follow it."""
        n = jnp.asarray(self.sigma, frames.dtype) * jax.random.normal(key, following.shape, frames.dtype)
        n = jnp.where(free[:, None], n, 0)
        return frames.at[-1].add(n), following + ((1 - jnp.asarray(self.gamma)) * n).astype(following.dtype)
