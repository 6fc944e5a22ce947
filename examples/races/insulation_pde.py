"""How warm is the middle of a six-dimensional slab that radiates? Heat with a source that cools by temperature.

laureate race examples/races/insulation_pde.py:pde --seconds 60
"""

import equinox as eqx
import jax
import jax.numpy as jnp


class Slab(eqx.Module):
    """∂V/∂t + ½ ΔV − k V = 0 with V(T, x) = 1 + ½ cos(Σ x / √6), which is linear and has a closed form."""

    x0: jax.Array
    horizon: float = 1.0
    cooling: float = 0.5

    def drift(self, t, x):
        """None."""
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        """Of one everywhere."""
        return jnp.ones((), x.dtype)

    def driver(self, t, x, y, z):
        """Cooling in proportion to the temperature."""
        return -self.cooling * y

    def terminal(self, x):
        """A wave along the diagonal."""
        return 1.0 + 0.5 * jnp.cos(jnp.sum(x) / jnp.sqrt(6.0))

    def exact(self, t, x):
        """The wave decays by e^{−τ/2}, everything by e^{−kτ}."""
        left = self.horizon - t
        wave = 0.5 * jnp.exp(-left / 2) * jnp.cos(jnp.sum(x) / jnp.sqrt(6.0))
        return jnp.exp(-self.cooling * left) * (1.0 + wave)


def pde():
    """At the origin."""
    return Slab(jnp.zeros(6))
