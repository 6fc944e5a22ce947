"""A supernet small enough that every network it holds can be trained: cells over 4 x 4 positions of 8 x 8 images."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.layers import BatchNorm, RunningStatistics
from laureate.problems.datasets import small_images

__all__ = ["CellParams", "CellSupernet"]

SIDE = 4  # positions along a side after the first layer
OPS = ("none", "skip", "avg3", "conv3")
MEMORY = 0.9  # of running statistics, a step


class CellParams(NamedTuple):
    """The trained numbers.

    stem: of the first layer, [pixels, channels]. kernels: of every cell and edge, [cells, edges, patch, channels].
    head, bias: of the last layer, [channels, classes] and [classes].
    """

    stem: Float[Array, "pixels channels"]
    kernels: Float[Array, "cells edges patch channels"]
    head: Float[Array, "channels classes"]
    bias: Float[Array, " classes"]


class CellSupernet(eqx.Module):
    """Cells whose nodes are all connected forward, as in NAS-Bench-201, one choice for all cells.

    node_t = Σ_{s<t} Σ_o w_eo o(node_s),   o in {none: 0, skip: x, avg3: norm(mean of 3 x 3), conv3: norm(K relu(x))}

    Pixels 2 x 2 become a position with ``channels`` numbers; after the last cell their mean goes to a linear
    classifier. Over so few positions a convolution is one product with a matrix that its kernel fills, which is quick
    on a CPU and stays so under vmap. Normalisations have no scale or shift of their own.

    data: "digits", or a larger set (``small_images``), averaged to 8 x 8.
    train: training images, the second half of which is for validation. test: test images.
    num_nodes: of a cell, >= 2: edges are their pairs. num_cells, channels: >= 1.

    >>> net = CellSupernet(train=40, test=20)
    >>> params, state = net.init(jax.random.key(0))
    >>> weights = jnp.full((3, 4), 0.25)
    >>> logits, state = net.apply(params, state, weights, net.inputs[:5], key=None, train=True)
    >>> net.edges, logits.shape
    (((0, 1), (0, 2), (1, 2)), (5, 10))
    """

    inputs: Float[Array, "train positions pixels"]
    labels: Int[Array, " train"]
    test_inputs: Float[Array, "test positions pixels"]
    test_labels: Int[Array, " test"]
    num_nodes: int = eqx.field(static=True)
    num_cells: int = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    num_classes: int = eqx.field(static=True)

    def __init__(
        self,
        data: str = "digits",
        train: int = 1000,
        test: int = 297,
        num_nodes: int = 3,
        num_cells: int = 2,
        channels: int = 8,
    ):
        require("CellSupernet", "num_nodes", ">= 2", num_nodes, lambda n: n >= 2)
        require("CellSupernet", "num_cells", ">= 1", num_cells, lambda n: n >= 1)
        require("CellSupernet", "channels", ">= 1", channels, lambda n: n >= 1)
        found = small_images(data, train=train, test=test)
        self.inputs, self.test_inputs = (_positions(part) for part in (found.train_images, found.test_images))
        self.labels, self.test_labels = jnp.asarray(found.train_labels), jnp.asarray(found.test_labels)
        self.num_nodes, self.num_cells, self.channels = num_nodes, num_cells, channels
        self.num_classes = int(found.train_labels.max()) + 1

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """From which node to which; all into the first node, then all into the second."""
        return tuple((source, target) for target in range(1, self.num_nodes) for source in range(target))

    @property
    def ops(self) -> tuple[tuple[str, ...], ...]:
        """The same four operations on every edge."""
        return (OPS,) * len(self.edges)

    def init(self, key: Array) -> tuple[CellParams, tuple[RunningStatistics, ...]]:
        """Parameters by He's rule, and statistics of no batch yet, for each node those of its edges."""
        width, edges, patch = self.channels, len(self.edges), 9 * self.channels
        sizes = (self.inputs.shape[-1] * width, self.num_cells * edges * patch * width, width * self.num_classes)
        drawn = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
        shapes = ((-1, width), (self.num_cells, edges, patch, width), (width, self.num_classes))
        stem, kernels, head = (values.reshape(shape) for values, shape in zip(drawn, shapes, strict=True))
        scaled = [values * (2 / values.shape[-2]) ** 0.5 for values in (stem, kernels, head)]
        statistics = [RunningStatistics.empty((self.num_cells, len(into) * 2 * width)) for into in self._into]
        return CellParams(*scaled, jnp.zeros(self.num_classes)), tuple(statistics)  # pyright: ignore

    @property
    def _into(self) -> list[list[int]]:
        """The edges into every node but the first."""
        return [[e for e, (_, end) in enumerate(self.edges) if end == t] for t in range(1, self.num_nodes)]

    def apply(
        self,
        params: CellParams,
        state: tuple[RunningStatistics, ...],
        weights: Float[Array, "edges ops"],
        x: Float[Array, "batch positions pixels"],
        *,
        key: Array | None = None,
        train: bool = True,
    ) -> tuple[Float[Array, "batch classes"], tuple[RunningStatistics, ...]]:
        """Logits, and the running statistics with this batch's; the key is not needed."""
        batch, width, weights = len(x), self.channels, jnp.asarray(weights)
        # A 3 x 3 kernel over so few positions as one matrix: D[p, i, q, o] = Σ_k [p is neighbour k of q] K[k, i, o].
        kernels = params.kernels.reshape(*params.kernels.shape[:2], 9, width, width)
        dense = jnp.einsum("kpq,nekio->nepiqo", NEIGHBOURS, kernels)
        dense = dense.reshape(*dense.shape[:2], SIDE**2 * width, SIDE**2 * width)
        average = jnp.asarray(np.kron(AVERAGE, np.eye(width, dtype=np.float32)))
        norms = [BatchNorm(2 * width * len(into), affine=False) for into in self._into]

        def cell(x: Array, parts: Any) -> tuple[Array, Any]:
            dense, known = parts
            nodes, averages, used = [x], [x @ average], []
            for into, norm, ran in zip(self._into, norms, known, strict=True):
                sources = [self.edges[edge][0] for edge in into]
                both = [(averages[s], jax.nn.relu(nodes[s]) @ dense[e]) for e, s in zip(into, sources, strict=True)]
                raw = jnp.stack([value.reshape(batch, SIDE**2, width) for pair in both for value in pair], axis=2)
                raw = raw.reshape(batch, SIDE**2, -1)
                normal, statistics = norm(raw, None if train else RunningStatistics(*ran))
                normal = normal.reshape(batch, SIDE**2, 2 * len(into), width)
                # Σ_e w_e,skip x_s + w_e,avg3 norm(mean) + w_e,conv3 norm(K relu(x_s)); none adds nothing
                mixed = jnp.einsum("bpnc,n->bpc", normal, weights[jnp.asarray(into), 2:].reshape(-1))
                skips = [weights[e, 1] * nodes[s] for e, s in zip(into, sources, strict=True)]
                nodes.append(jax.tree.reduce(jnp.add, [mixed.reshape(batch, -1), *skips]))
                averages.append(nodes[-1] @ average)
                used.append(tuple(jax.tree.leaves(statistics)))
            return nodes[-1], tuple(used)

        first = (x @ params.stem).reshape(batch, -1)
        counts = [jnp.broadcast_to(one.count, (self.num_cells,)) for one in state]
        known = tuple((n, one.mean, one.squares) for n, one in zip(counts, state, strict=True))
        last, used = jax.lax.scan(cell, first, (dense, known))
        if train:
            new = [RunningStatistics(count[0], mean, squares) for count, mean, squares in used]
            state = tuple(old.average(one, MEMORY) for old, one in zip(state, new, strict=True))
        return last.reshape(batch, SIDE**2, width).mean(1) @ params.head + params.bias, state


def _neighbours() -> np.ndarray:
    """``[9, positions, positions]``: whether the first position is neighbour k (row by row) of the second."""
    place = np.stack(np.divmod(np.arange(SIDE**2), SIDE), axis=1)
    step = np.stack(np.divmod(np.arange(9), 3), axis=1) - 1
    return (place[None, :, None] == place[None, None] + step[:, None, None]).all(-1).astype(np.float32)


NEIGHBOURS = _neighbours()
# The mean over the neighbours within the image: an average leaves the border out.
AVERAGE = NEIGHBOURS.sum(0) / NEIGHBOURS.sum((0, 1))


def _positions(images: np.ndarray) -> Array:
    """Images as ``[n, 16, 4]``, four pixels a position; larger ones are averaged to 8 x 8, their margin cut."""
    side = images.shape[1]
    block = side // (2 * SIDE)
    margin = (side - 2 * SIDE * block) // 2
    cut = images[:, margin : margin + 2 * SIDE * block, margin : margin + 2 * SIDE * block]
    small = cut.reshape(-1, 2 * SIDE, block, 2 * SIDE, block).mean((2, 4))
    parts = small.reshape(-1, SIDE, 2, SIDE, 2).transpose(0, 1, 3, 2, 4)
    return jnp.asarray(parts.reshape(-1, SIDE * SIDE, 4), jnp.float32)
