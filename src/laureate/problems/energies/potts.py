"""Potts models: unordered categories, one-hot rows to the energy."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

__all__ = ["DensePotts", "PottsLattice"]


class PottsLattice(eqx.Module):
    """A side × side Potts model on a torus: f(x) = coupling·Σ_edges 1[x_i = x_j].

    side: sites along an edge, >= 3.
    num_categories: K >= 2; the critical coupling of the infinite lattice is ln(1 + √K).
    coupling: weight of an edge whose ends agree.
    """

    side: int = eqx.field(static=True, default=8)
    num_categories: int = eqx.field(static=True, default=3)
    coupling: float | Float[Array, ""] = 0.5

    def __call__(self, x: Float[Array, "side side K"]) -> Float[Array, ""]:
        """f(x) of relaxed one-hot x."""
        return self.coupling * jnp.sum(x * (jnp.roll(x, 1, 0) + jnp.roll(x, 1, 1)))

    def start(self, key: Key[Array, ""]) -> Int[Array, "side side"]:
        """Categories at random."""
        return jax.random.randint(key, (self.side, self.side), 0, self.num_categories)

    def sweep(self, key: Key[Array, ""], x: Int[Array, "side side"]) -> Int[Array, "side side"]:
        """All even sites, then all odd ones, from their exact conditionals; for even ``side``, a valid Gibbs sweep."""
        row, column = jnp.indices((self.side, self.side))
        noise = jax.random.gumbel(key, (self.side, self.side, self.num_categories))  # a site is drawn once
        for colour in range(2):
            rows = jax.nn.one_hot(x, self.num_categories)
            around = sum(jnp.roll(rows, shift, axis) for shift in (1, -1) for axis in (0, 1))
            fresh = jnp.argmax(self.coupling * around + noise, axis=-1)  # Gumbel's trick
            x = jnp.where((row + column) % 2 == colour, fresh.astype(x.dtype), x)
        return x

    @property
    def num_moves(self) -> int:
        """Moves a site has: one a category."""
        return self.num_categories

    def neighbours(self, site: Int[Array, ""]) -> Int[Array, "4"]:
        """The sites whose differences change with this one; sites are numbered row by row."""
        row, column = site // self.side, site % self.side
        rows = (row + jnp.array([1, -1, 0, 0])) % self.side
        columns = (column + jnp.array([0, 0, 1, -1])) % self.side
        return (rows * self.side + columns).astype(jnp.int32)

    def site_differences(self, read: Callable[[Array], Array], site: Int[Array, ""]) -> Float[Array, "K"]:
        """Exact f(x') - f(x) for every category of ``site``, -inf for its own; ``read(sites)`` gives categories."""
        kinds = jnp.arange(self.num_categories)
        agree = jnp.sum(read(self.neighbours(site))[:, None] == kinds[None, :], axis=0).astype(float)
        here = read(site)
        return jnp.where(kinds == here, -jnp.inf, self.coupling * (agree - agree[here]))


class DensePotts(eqx.Module):
    """f(x) = ½ Σ_ij x_iᵀ J_ij x_j + Σ_i b_i·x_i with any couplings; what one learns from data."""

    couplings: Float[Array, "sites K sites K"]
    bias: Float[Array, "sites K"]

    def __call__(self, x: Float[Array, "sites K"]) -> Float[Array, ""]:
        """f(x) of relaxed one-hot x."""
        fields = jnp.einsum("ikjl,jl->ik", symmetric_blocks(self.couplings), x)
        return 0.5 * jnp.sum(x * fields) + jnp.sum(self.bias * x)


def symmetric_blocks(couplings: Float[Array, "n K n K"]) -> Float[Array, "n K n K"]:
    """Symmetrised, with no coupling of a site to itself."""
    couplings = (couplings + couplings.transpose(2, 3, 0, 1)) / 2
    apart = 1.0 - jnp.eye(couplings.shape[0], dtype=couplings.dtype)
    return couplings * apart[:, None, :, None]
