"""Ising models: spins s ∈ {-1, 1}, stored as x ∈ {0, 1} with s = 2x - 1."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

__all__ = [
    "DenseIsing",
    "IsingLattice",
    "lattice_energy_per_edge",
    "lattice_log_partition",
    "lattice_matrix",
    "random_graph_couplings",
]


class IsingLattice(eqx.Module):
    """A side × side Ising model on a torus, in the form that needs no matrix.

    f(x) = Σ_i field s_i + 2σ Σ_edges s_i s_j, every edge once: the coupling of an edge is 2σ, because the paper's code
    writes f = sᵀJs with J = σ·adjacency and so counts each edge twice. The critical point is σ = ln(1 + √2)/4 = 0.2203.

    side: sites along an edge, >= 3 (with two, a pair would be joined twice).
    sigma: σ, half the coupling of an edge.
    field: added s_i weight.
    """

    side: int = eqx.field(static=True, default=10)
    sigma: float | Float[Array, ""] = 0.2
    field: float | Float[Array, ""] = 0.0

    def __call__(self, x: Float[Array, "side side"]) -> Float[Array, ""]:
        """f(x) of relaxed x."""
        s = 2 * x - 1
        edges = s * (jnp.roll(s, 1, 0) + jnp.roll(s, 1, 1))
        return 2 * self.sigma * jnp.sum(edges) + self.field * jnp.sum(s)

    def start(self, key: Key[Array, ""]) -> Bool[Array, "side side"]:
        """Spins at random."""
        return jax.random.bernoulli(key, 0.5, (self.side, self.side))

    def edge_energy(self, x: Array) -> Float[Array, ""]:
        """Mean s_i s_j over the edges."""
        s = 2.0 * x.astype(float) - 1.0
        return jnp.mean(s * (jnp.roll(s, 1, 0) + jnp.roll(s, 1, 1))) / 2

    def sweep(self, key: Key[Array, ""], x: Bool[Array, "side side"]) -> Bool[Array, "side side"]:
        """All even sites, then all odd ones, from their exact conditionals; for even ``side``, a valid Gibbs sweep."""
        row, column = jnp.indices((self.side, self.side))
        uniforms = jax.random.uniform(key, (self.side, self.side))  # a site is drawn once, with its colour
        for colour in range(2):
            s = 2.0 * x - 1.0
            around = sum(jnp.roll(s, shift, axis) for shift in (1, -1) for axis in (0, 1))
            # p(s_i = 1 | rest) = sigmoid(2·(2σ Σ_j s_j + field))
            fresh = uniforms < jax.nn.sigmoid(4 * self.sigma * around + 2 * self.field)
            x = jnp.where((row + column) % 2 == colour, fresh, x)
        return x

    # What an incremental sampler asks of an energy that knows its neighbours: sites are numbered row by row.

    @property
    def num_moves(self) -> int:
        """Moves a site has."""
        return 1

    def neighbours(self, site: Int[Array, ""]) -> Int[Array, "4"]:
        """The sites whose differences change with this one."""
        row, column = site // self.side, site % self.side
        rows = (row + jnp.array([1, -1, 0, 0])) % self.side
        columns = (column + jnp.array([0, 0, 1, -1])) % self.side
        return (rows * self.side + columns).astype(jnp.int32)

    def site_differences(self, read: Callable[[Array], Array], site: Int[Array, ""]) -> Float[Array, "1"]:
        """Exact f(x') - f(x) for the one flip of ``site``: -2 s_i (2σ Σ_j s_j + field); ``read(sites)`` gives x."""
        s = 2.0 * read(jnp.append(site, self.neighbours(site))).astype(float) - 1.0
        return (-2.0 * s[0] * (2.0 * self.sigma * jnp.sum(s[1:]) + self.field))[None]


class DenseIsing(eqx.Module):
    """f(x) = sᵀJs + b·s with any couplings J; what one learns from data. Only J's off-diagonal, symmetrised, counts."""

    couplings: Float[Array, "sites sites"]
    bias: Float[Array, "sites"]

    def __call__(self, x: Float[Array, "sites"]) -> Float[Array, ""]:
        """f(x) of relaxed x."""
        s = 2 * x - 1
        return s @ symmetric(self.couplings) @ s + self.bias @ s


def symmetric(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """(J + Jᵀ)/2 with a zero diagonal: s_i² is constant on spins but would corrupt the gradient."""
    matrix = (matrix + matrix.T) / 2
    return matrix - jnp.diag(jnp.diag(matrix))


def lattice_matrix(side: int, sigma: float) -> np.ndarray:
    """J = σ·adjacency of the torus, for `DenseIsing`."""
    matrix = np.zeros((side * side, side * side))
    for row in range(side):
        for column in range(side):
            for other in ((row + 1) % side * side + column, row * side + (column + 1) % side):
                matrix[row * side + column, other] = matrix[other, row * side + column] = sigma
    return matrix


def random_graph_couplings(key: Key[Array, ""], sites: int, degree: float) -> Float[Array, "sites sites"]:
    """J of a random graph (Erdős and Rényi), as in the paper's code: an edge with probability degree/sites.

    Its weight is N(0, 1/degree), and f = sᵀJs counts it twice; symmetric, nothing on the diagonal.
    """
    edge_key, weight_key = jax.random.split(key)
    edges = jax.random.bernoulli(edge_key, degree / sites, (sites, sites))
    upper = jnp.triu(edges * jax.random.normal(weight_key, (sites, sites)), 1) / jnp.sqrt(degree)
    return upper + upper.T


def lattice_log_partition(side: int, sigma: float) -> float:
    """log Z of the torus without a field, by the transfer matrix; 2^side states, so side <= 12."""
    if not 3 <= side <= 12:
        raise ValueError(f"lattice_log_partition: side must be in 3..12; got {side}.")
    states = (np.arange(2**side)[:, None] >> np.arange(side)) & 1
    s = 2.0 * states - 1.0
    within = 2 * sigma * np.sum(s * np.roll(s, 1, axis=1), axis=1)
    transfer = np.exp(within[:, None] / 2 + 2 * sigma * s @ s.T + within[None, :] / 2)
    values = np.linalg.eigvalsh(transfer)
    top = values[-1]
    return float(side * np.log(top) + np.log(np.sum((values / top) ** side)))


def lattice_energy_per_edge(side: int, sigma: float) -> float:
    """Exact mean of s_i s_j over an edge: (∂ log Z / ∂(2σ)) / (2·side²), by central differences."""
    step = 1e-4
    rise = lattice_log_partition(side, sigma + step) - lattice_log_partition(side, sigma - step)
    return rise / (2 * step) / (2 * 2 * side * side)
