"""Triangle meshes of the plane and P1 finite elements on them, as plain matrices: what learned simulators learn from.

All in NumPy and double precision. Meshes have up to some hundred nodes, so matrices are dense.
"""

import numpy as np

__all__ = [
    "advection_matrix",
    "boundary_of",
    "edges_of",
    "elastic_matrix",
    "grid_cells",
    "mass_matrix",
    "stiffness_matrix",
    "stretched_grid",
]


def grid_cells(rows: int, columns: int) -> np.ndarray:
    """Triangles of a grid of nodes, numbered along rows: two for every square, the diagonals alternating."""
    cells = []
    for i, j in np.ndindex(rows - 1, columns - 1):
        a, b, c, d = (i * columns + j, i * columns + j + 1, (i + 1) * columns + j, (i + 1) * columns + j + 1)
        cells += [[a, b, c], [b, d, c]] if (i + j) % 2 else [[a, b, d], [a, d, c]]
    return np.asarray(cells, np.int32)


def stretched_grid(generator: np.random.Generator, side: int, jitter: float = 0.2, stretch: float = 0.5) -> np.ndarray:
    """Nodes of a grid over the unit square: lines drawn together somewhere (stretch < 1), inner nodes moved by chance.

    jitter: as a share of the smallest spacing. Nodes of a side stay on it.
    """
    line = np.linspace(0.0, 1.0, side)
    # t + a sin(2πt + φ)/2π has a slope in 1 ± a; its ends are brought back to 0 and 1.
    lines = []
    for _ in range(2):
        amount, phase = generator.uniform(0, stretch), generator.uniform(0, 2 * np.pi)
        moved = line + amount * np.sin(2 * np.pi * line + phase) / (2 * np.pi)
        lines.append((moved - moved[0]) / (moved[-1] - moved[0]))
    y, x = np.meshgrid(lines[1], lines[0], indexing="ij")
    places = np.stack([x.ravel(), y.ravel()], 1)
    inner = np.all((places > 1e-9) & (places < 1 - 1e-9), axis=1)
    least = min(np.diff(one).min() for one in lines)
    return places + inner[:, None] * generator.uniform(-jitter, jitter, places.shape) * least


def edges_of(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Senders and receivers of the edges of cells, each in both directions once."""
    first, second = np.triu_indices(cells.shape[1], 1)
    pairs = np.stack([cells[:, first].ravel(), cells[:, second].ravel()], 1)
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0).astype(np.int32)
    return pairs[:, 0], pairs[:, 1]


def boundary_of(cells: np.ndarray) -> np.ndarray:
    """The nodes on sides that one triangle alone has."""
    sides = np.sort(np.concatenate([cells[:, [0, 1]], cells[:, [1, 2]], cells[:, [2, 0]]]), axis=1)
    kinds, number = np.unique(sides, axis=0, return_counts=True)
    return np.unique(kinds[number == 1])


def _elements(positions: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Areas [c], and the gradients of the three hat functions [c, 3, 2]."""
    a, b, c = (positions[cells[:, i]] for i in range(3))
    double = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    turn = lambda d: np.stack([-d[:, 1], d[:, 0]], 1)  # noqa: E731  (a quarter to the left)
    gradients = np.stack([turn(c - b), turn(a - c), turn(b - a)], 1) / double[:, None, None]
    return np.abs(double) / 2, gradients


def _assembled(cells: np.ndarray, blocks: np.ndarray, size: int) -> np.ndarray:
    matrix = np.zeros((size, size))
    np.add.at(matrix, (cells[:, :, None], cells[:, None, :]), blocks)
    return matrix


def mass_matrix(positions: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """∫ φ_i φ_j; all entries together are the area."""
    areas, _ = _elements(positions, cells)
    return _assembled(cells, areas[:, None, None] * (np.ones((3, 3)) + np.eye(3)) / 12, len(positions))


def stiffness_matrix(positions: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """∫ ∇φ_i · ∇φ_j; rows sum to 0, and a linear field is harmonic inside."""
    areas, g = _elements(positions, cells)
    return _assembled(cells, areas[:, None, None] * np.einsum("cid,cjd->cij", g, g), len(positions))


def advection_matrix(positions: np.ndarray, cells: np.ndarray, wind: np.ndarray) -> np.ndarray:
    """∫ φ_i (wind · ∇φ_j), for a wind that is the same everywhere."""
    areas, g = _elements(positions, cells)
    blocks = areas[:, None, None] / 3 * np.broadcast_to((g @ wind)[:, None, :], (len(cells), 3, 3))
    return _assembled(cells, blocks, len(positions))


def elastic_matrix(positions: np.ndarray, cells: np.ndarray, poisson: float = 0.3) -> np.ndarray:
    """The stiffness of a plate in plane stress with Young's modulus 1: [2n, 2n], unknowns (x, y) node by node.

    positions: [n, 2]. cells: triangles, [t, 3]. poisson: Poisson's ratio.
    """
    areas, g = _elements(positions, cells)
    strain = np.zeros((len(cells), 3, 6))  # (ε_xx, ε_yy, 2 ε_xy) of the six displacements
    strain[:, 0, 0::2], strain[:, 1, 1::2] = g[:, :, 0], g[:, :, 1]
    strain[:, 2, 0::2], strain[:, 2, 1::2] = g[:, :, 1], g[:, :, 0]
    law = np.array([[1, poisson, 0], [poisson, 1, 0], [0, 0, (1 - poisson) / 2]]) / (1 - poisson**2)
    blocks = areas[:, None, None] * np.einsum("cki,kl,clj->cij", strain, law, strain)
    unknowns = (2 * cells[:, :, None] + np.arange(2)).reshape(len(cells), 6)
    return _assembled(unknowns, blocks, 2 * len(positions))
