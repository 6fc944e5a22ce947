"""An inner problem and an equation as small as can be, for tests that look at drivers."""

import equinox as eqx
import jax
import jax.numpy as jnp


class Decay:
    """s ← 0.9 s + θ, of which the square is the loss."""

    def init(self, key, theta):
        return jnp.ones(())

    def step(self, key, theta, state):
        return 0.9 * state + theta, state**2


class Heat(eqx.Module):
    """The heat equation with ‖x‖² at the end."""

    x0: jax.Array
    horizon: float = 0.5

    def drift(self, t, x):
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        return jnp.ones(())

    def driver(self, t, x, y, z):
        return 0.0 * y

    def terminal(self, x):
        return jnp.sum(x**2)
