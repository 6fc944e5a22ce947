"""Meshes as graphs: edges both ways from cells, kinds of nodes, files through meshio, values carried between meshes."""

import enum
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from laureate._core import require
from laureate.layers import Graph, make_graph

__all__ = ["MeshNodes", "NodeKind", "barycentric", "edges_from_cells", "mesh_graph", "read_mesh"]


class NodeKind(enum.IntEnum):
    """What a node of a mesh is, by the numbers of the authors' data; only NORMAL and OUTFLOW nodes are predicted."""

    NORMAL = 0
    OBSTACLE = 1
    AIRFOIL = 2
    HANDLE = 3
    INFLOW = 4
    OUTFLOW = 5
    WALL = 6
    OTHER = 7
    ANOTHER = 8


class MeshNodes(NamedTuple):
    """What a mesh says of its nodes.

    position: the place in mesh space, [n, d]. kind: one of `NodeKind`, [n]. extra: further numbers, [n, k], where k may
    be 0.
    """

    position: Float[Array, "n d"]
    kind: Int[Array, " n"]
    extra: Float[Array, "n k"]


def edges_from_cells(cells: Any) -> tuple[np.ndarray, np.ndarray]:
    """Senders and receivers of the edges of triangles or tetrahedra: each once in either direction, sorted.

    cells: [c, 3] or [c, 4] node numbers; [c, 2] are edges already. Four columns are tetrahedra: of quadrilaterals the
        diagonals would be edges too, so split those into triangles first.

    >>> senders, receivers = edges_from_cells([[0, 1, 2], [2, 1, 3]])
    >>> list(zip(senders.tolist(), receivers.tolist()))[:4]
    [(0, 1), (0, 2), (1, 0), (1, 2)]
    """
    cells = np.asarray(cells)
    fine = cells.ndim == 2 and cells.shape[1] in (2, 3, 4) and cells.dtype.kind in "iu"
    remedy = "Quadrilaterals are to be split into triangles."
    require(
        "edges_from_cells", "cells", "integers [c, 2], [c, 3] or [c, 4]", _told(cells, fine), lambda _: fine, remedy
    )
    first, second = np.triu_indices(cells.shape[1], 1)
    pairs = np.stack([cells[:, first].ravel(), cells[:, second].ravel()], 1)
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    return pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.int32)


def mesh_graph(positions: Any, cells: Any, kinds: Any = None, extra: Any = None) -> Graph:
    """The graph of a mesh: `MeshNodes`, edges both ways, nothing on the edges; offsets are made where they are needed.

    positions: [n, d] in mesh space, d = 1, 2 or 3. cells: as for `edges_from_cells`, without degenerate ones.
    kinds: [n] integers of `NodeKind`; None: all NORMAL, so that nothing is held, which is warned of.
    extra: [n, k] further numbers of every node, such as a material; None: none.

    >>> graph = mesh_graph([[0.0, 0], [1, 0], [0, 1], [1, 1]], [[0, 1, 2], [2, 1, 3]], kinds=[3, 0, 0, 0])
    >>> graph.num_nodes, graph.num_edges
    (4, 10)
    """
    positions, cells = np.asarray(positions), np.asarray(cells)
    rule = "numbers [n, d] with d in 1, 2, 3"
    fine = positions.ndim == 2 and 1 <= positions.shape[1] <= 3 and positions.dtype.kind in "fiu"
    require("mesh_graph", "positions", rule, _told(positions, fine), lambda _: fine)
    positions = positions.astype(np.promote_types(positions.dtype, np.float32))
    broken = np.flatnonzero(~np.isfinite(positions).all(1))
    require("mesh_graph", "positions", "finite", broken[:10].tolist(), lambda bad: not bad, "These nodes are not.")
    senders, receivers = edges_from_cells(cells)
    count = len(positions)
    outside = np.unique(cells[(cells < 0) | (cells >= count)])
    require("mesh_graph", "cells", f"node numbers in 0 to {count - 1}", outside[:10].tolist(), lambda bad: not bad)
    rule, remedy = f"[c, k] with k <= {positions.shape[1] + 1}", "Quadrilaterals are to be split into triangles."
    require("mesh_graph", "cells", rule, cells.shape, lambda shape: shape[1] <= positions.shape[1] + 1, remedy)
    flat = np.flatnonzero(_are_flat(positions, cells))
    remedy = "These cells have no volume."
    require("mesh_graph", "cells", "of positive volume", flat[:10].tolist(), lambda bad: not bad, remedy)
    alone = np.setdiff1d(np.arange(count), cells)
    remedy = "These nodes are in no cell: a network tells them nothing of the others. Remove them."
    require("mesh_graph", "cells", "such that every node is in one", alone[:10].tolist(), lambda bad: not bad, remedy)
    _, where, number = np.unique(positions, axis=0, return_index=True, return_counts=True)
    twins = np.sort(where[number > 1])
    remedy = "These nodes lie where another does. Merge them."
    require("mesh_graph", "positions", "distinct", twins[:10].tolist(), lambda bad: not bad, remedy)
    if kinds is None:
        warnings.warn("mesh_graph: kinds were not given, so no node is held fixed.", stacklevel=2)
        kinds = np.zeros(count, np.int32)
    kinds = np.asarray(kinds)
    most = max(NodeKind)
    fine = kinds.shape == (count,) and kinds.dtype.kind in "iu" and bool(np.all((kinds >= 0) & (kinds <= most)))
    require("mesh_graph", "kinds", f"{count} integers in 0 to {most}", _told(kinds, fine), lambda _: fine)
    extra = np.zeros((count, 0), positions.dtype) if extra is None else np.asarray(extra)
    fine = extra.ndim == 2 and len(extra) == count and bool(np.isfinite(extra).all())
    require("mesh_graph", "extra", f"finite numbers [{count}, k]", _told(extra, fine), lambda _: fine)
    nodes = MeshNodes(jnp.asarray(positions), jnp.asarray(kinds, jnp.int32), jnp.asarray(extra.astype(positions.dtype)))
    return make_graph(nodes, None, senders, receivers)


def read_mesh(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Positions and cells (tetrahedra, else triangles) of a mesh file of any kind that meshio reads.

    Nodes that no cell uses are left out, and a third coordinate that is the same everywhere too. Needs the extra
    ``laureate[meshes]``.
    """
    try:
        import meshio
    except ImportError as error:
        raise ImportError("read_mesh needs meshio, which is not installed. pip install 'laureate[meshes]'") from error
    read = meshio.read(path)
    found = {kind: np.concatenate([b.data for b in read.cells if b.type == kind]) for kind in read.cells_dict}
    kind = next((kind for kind in ("tetra", "triangle") if kind in found), None)
    rule = "a mesh of triangles or tetrahedra"
    require("read_mesh", "path", rule, sorted(found), lambda _: kind is not None, "Split other cells first.")
    used, cells = np.unique(found[kind or ""], return_inverse=True)
    positions = np.asarray(read.points, float)[used]
    if positions.shape[1] == 3 and kind == "triangle" and np.ptp(positions[:, 2]) == 0:
        positions = positions[:, :2]
    return positions, cells.reshape(found[kind or ""].shape)


def barycentric(positions: Any, cells: Any, places: Any) -> tuple[np.ndarray, np.ndarray]:
    """How values at the nodes of a mesh are carried to other places: nodes [m, k] and their weights [m, k].

    The weights of a place sum to 1 and give linear functions exactly. A place outside the mesh takes those of the
    nearest cell, in the sense of the least negative weight. For meshes of up to some thousand cells: all are tried.

    >>> nodes, weights = barycentric([[0.0, 0], [1, 0], [0, 1]], [[0, 1, 2]], [[0.25, 0.5]])
    >>> nodes.tolist(), weights.tolist()
    ([[0, 1, 2]], [[0.25, 0.25, 0.5]])
    """
    positions, cells, places = np.asarray(positions, float), np.asarray(cells), np.asarray(places, float)
    rule = f"[m, {positions.shape[1]}], as the mesh"
    require("barycentric", "places", rule, places.shape, lambda s: len(s) == 2 and s[1] == positions.shape[1])
    least = positions.shape[1] + 1
    require("barycentric", "cells", f"[c, {least}]", cells.shape, lambda s: len(s) == 2 and s[1] == least)
    corners = positions[cells]  # [c, k, d]
    sides = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    rest = np.einsum("cij,mcj->mci", np.linalg.inv(sides), places[:, None] - corners[None, :, 0])
    weights = np.concatenate([1 - rest.sum(-1, keepdims=True), rest], -1)  # [m, c, k]
    best = weights.min(-1).argmax(1)
    return cells[best], weights[np.arange(len(places)), best]


def _are_flat(positions: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Whether a cell has no length, area or volume but by the rounding of coordinates; a triangle may lie in space.

    The volume is the product of the singular values of the sides. The determinant of their products would lose half of
    the digits: the root of a rounding error is no rounding error.
    """
    wide = positions.astype(np.float64)
    sides = wide[cells[:, 1:]] - wide[cells[:, :1]]  # [c, k, d]
    values = np.linalg.svd(sides, compute_uv=False)
    rounding = 2 * np.finfo(positions.dtype).eps * np.abs(wide).max()
    return (values[:, -1] <= rounding) | (values.prod(1) <= 1e-12 * _scale(wide) ** values.shape[1])


def _scale(positions: np.ndarray) -> float:
    return float(np.ptp(positions, axis=0).max()) or 1.0


def _told(array: np.ndarray, fine: bool) -> Any:
    return "as it should be" if fine else f"{array.dtype}{list(array.shape)}"
