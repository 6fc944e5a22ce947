"""Mixing matrices: how much a node takes of each neighbour, and how fast that spreads."""

import numpy as np

from laureate._core import require
from laureate.decentralized.topologies import Topology

__all__ = ["check_matrix", "constant_weights", "metropolis_weights", "optimal_weights", "spectral_gap", "spectrum_ends"]

TOLERANCE = 1e-7


def metropolis_weights(topology: Topology) -> np.ndarray:
    """W_ij = 1 / (1 + max(deg_i, deg_j)) on edges, the rest on the diagonal: needs only the neighbours' degrees.

    >>> from laureate.decentralized import ring
    >>> metropolis_weights(ring(4))[0].round(3).tolist()
    [0.333, 0.333, 0.0, 0.333]
    """
    degrees = topology.degrees
    return _from_edges(topology, np.array([1.0 / (1 + max(degrees[i], degrees[j])) for i, j in topology.edges]))


def constant_weights(topology: Topology) -> np.ndarray:
    """The best single weight for all edges, 2 / (μ_2 + μ_n) with μ the Laplacian's eigenvalues (Xiao & Boyd 2004).

    No weights at all mix faster on graphs whose edges are all alike: rings, hypercubes, the complete graph.
    """
    values = np.linalg.eigvalsh(topology.laplacian)
    weight = 2.0 / (values[1] + values[-1]) if topology.size > 1 else 0.0
    return _from_edges(topology, np.full(len(topology.edges), weight))


def optimal_weights(topology: Topology) -> np.ndarray:
    """The symmetric weights with the largest spectral gap: min ‖W − J‖₂ over one number an edge (Xiao & Boyd 2004).

    The norm is smoothed to Σ_i |λ_i|^p, p = 8 … 512, each minimum the next one's start, from the best constant weight
    on; the best matrix met is kept. Weights may be negative. Costs n³ a step: meant for up to some hundred nodes.

    >>> from laureate.decentralized import star
    >>> graph = star(6)
    >>> bool(spectral_gap(optimal_weights(graph)) >= spectral_gap(metropolis_weights(graph)))
    True
    """
    from scipy.optimize import minimize  # only here, and slow to load

    ends = np.array(topology.edges).reshape(-1, 2)
    average = np.full((topology.size, topology.size), 1.0 / topology.size)
    candidates = [constant_weights(topology), metropolis_weights(topology)]
    if topology.size < 3:
        return candidates[0]
    best = max(candidates, key=spectral_gap)
    weights = best[ends[:, 0], ends[:, 1]]
    for power in (8, 32, 128, 512):

        def objective(weights, power=power):
            values, vectors = np.linalg.eigh(_from_edges(topology, weights) - average)
            top = np.abs(values).max()
            scaled = np.abs(values) / top
            total = np.sum(scaled**power)
            # d λ_k / d w_ij = −(v_i − v_j)², for W = I − Σ_edges w_ij (e_i − e_j)(e_i − e_j)ᵀ
            slopes = -((vectors[ends[:, 0]] - vectors[ends[:, 1]]) ** 2)
            pull = np.sign(values) * scaled ** (power - 1) / total * total ** (1 / power)
            return top * total ** (1 / power), slopes @ pull

        found = minimize(objective, weights, jac=True, method="L-BFGS-B")
        weights = found.x
        best = max(best, _from_edges(topology, weights), key=spectral_gap)
    return best


def spectrum_ends(matrix: np.ndarray) -> tuple[float, float]:
    """(λ_n, λ_2): the smallest eigenvalue, and the largest beside the 1 of the mean."""
    if len(matrix) == 1:
        return 0.0, 0.0
    values = np.linalg.eigvalsh(matrix)
    return float(values[0]), float(values[-2])


def spectral_gap(matrix: np.ndarray) -> float:
    """1 − λ with λ = max(|λ_2|, |λ_n|), by which differences shrink in a plain round.

    >>> from laureate.decentralized import ring
    >>> round(spectral_gap(metropolis_weights(ring(8))), 4)  # 2/3 (1 − cos(2π/8))
    0.1953
    """
    low, high = spectrum_ends(matrix)
    return 1.0 - max(abs(low), abs(high))


def check_matrix(matrix: np.ndarray, topology: Topology) -> np.ndarray:
    """The matrix in double precision; ``ValueError`` unless symmetric, rows of sum 1 and weights on edges alone."""
    matrix = np.asarray(matrix, np.float64)
    size = topology.size
    require("Gossip", "weights", f"a {size} × {size} matrix", matrix.shape, lambda shape: shape == (size, size))
    require("Gossip", "weights", "finite", float(np.abs(matrix).max()), np.isfinite)
    for error, rule in (
        (np.abs(matrix - matrix.T), "symmetric"),
        (np.abs(matrix.sum(1) - 1.0), "stochastic (every row sums to 1)"),
        (np.abs(np.where(topology.laplacian + np.eye(size) == 0, matrix, 0.0)), "0 where the topology has no edge"),
    ):
        if error.max() > TOLERANCE:
            where = tuple(int(k) for k in np.unravel_index(error.argmax(), error.shape))
            place = where[0] if len(where) == 1 else where
            raise ValueError(f"Gossip.weights must be {rule}; got a violation of {error.max():.3g} at {place}.")
    return matrix


def _from_edges(topology: Topology, weights: np.ndarray) -> np.ndarray:
    matrix = np.zeros((topology.size, topology.size))
    for (i, j), weight in zip(topology.edges, weights, strict=True):
        matrix[i, j] = matrix[j, i] = weight
    return matrix + np.diag(1.0 - matrix.sum(1))
