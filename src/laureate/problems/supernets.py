"""A supernet small enough that every network it holds can be trained: cells over 4 x 4 positions of 8 x 8 images."""

from typing import NamedTuple

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
    """The trained numbers: a first layer, a kernel for every cell and edge, a last layer."""

    stem: Float[Array, "pixels channels"]
    kernels: Float[Array, "cells edges patch channels"]
    head: Float[Array, "channels classes"]
    bias: Float[Array, " classes"]


class CellSupernet(eqx.Module):
    """Cells whose nodes are all connected forward, as in NAS-Bench-201, one choice for all cells.

    node_t = Σ_{s<t} Σ_o w_eo o(node_s),   o in {none: 0, skip: x, avg3: norm(mean of 3 x 3), conv3: norm(K relu(x))}

    Pixels 2 x 2 become a position with ``channels`` numbers; after the last cell their mean goes to a linear
    classifier. Convolutions are products with patches, so that vmap over parameters stays affordable. Normalisations
    have no scale or shift of their own.

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

    def init(self, key: Array) -> tuple[CellParams, RunningStatistics]:
        """Parameters by He's rule, and statistics of no batch yet: ``[cells, edges, (avg3, conv3), channels]``."""
        width, edges, patch = self.channels, len(self.edges), 9 * self.channels
        sizes = (self.inputs.shape[-1] * width, self.num_cells * edges * patch * width, width * self.num_classes)
        drawn = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
        stem, kernels, head = (
            values.reshape(shape) * (2 / shape[-2]) ** 0.5
            for values, shape in zip(
                drawn,
                ((-1, width), (self.num_cells, edges, patch, width), (width, self.num_classes)),
                strict=True,
            )
        )
        statistics = RunningStatistics.empty((self.num_cells, edges, 2, width))
        return CellParams(stem * (2 / len(stem)) ** 0.5, kernels, head, jnp.zeros(self.num_classes)), statistics

    def apply(
        self,
        params: CellParams,
        state: RunningStatistics,
        weights: Float[Array, "edges ops"],
        x: Float[Array, "batch positions pixels"],
        *,
        key: Array | None = None,
        train: bool = True,
    ) -> tuple[Float[Array, "batch classes"], RunningStatistics]:
        """Logits, and the running statistics with this batch's; the key is not needed."""
        norm = BatchNorm(self.channels, affine=False)
        x, _ = norm(x @ params.stem)  # of the images themselves, so always by the batch
        seen = []
        for cell in range(self.num_cells):
            nodes = [x]
            for target in range(1, self.num_nodes):
                total = jnp.zeros_like(x)
                for edge, (source, into) in enumerate(self.edges):
                    if into == target:
                        ran = jax.tree.map(lambda leaf, c=cell, e=edge: leaf[c, e], state)
                        mixed, used = self._mix(norm, params.kernels[cell, edge], weights[edge], nodes[source], ran, train)
                        total, seen = total + mixed, [*seen, used]
                nodes.append(total)
            x = nodes[-1]
        if train:
            batch = jax.tree.map(lambda *leaves: jnp.stack(leaves).reshape(state.mean.shape[:2] + leaves[0].shape), *seen)
            state = state.average(batch, MEMORY)
        return x.mean(1) @ params.head + params.bias, state

    def _mix(
        self, norm: BatchNorm, kernel: Array, weights: Array, x: Array, ran: RunningStatistics, train: bool
    ) -> tuple[Array, RunningStatistics]:
        patches = _patches(x)  # [batch, positions, 9, channels]
        averaged = patches.sum(2) / COUNTS
        convolved = jax.nn.relu(patches).reshape(*x.shape[:2], -1) @ kernel
        results, used = [], []
        for number, value in enumerate((averaged, convolved)):
            known = None if train else jax.tree.map(lambda leaf, n=number: leaf[n], ran)
            normal, statistics = norm(value, known)
            results.append(normal)
            used.append(statistics)
        _, skip, average, convolution = weights
        mixed = skip * x + average * results[0] + convolution * results[1]
        return mixed, jax.tree.map(lambda *leaves: jnp.stack(leaves), *used)


# How many of a position's 3 x 3 neighbours lie within the image: an average leaves the border out.
COUNTS = np.convolve(np.ones(SIDE), np.ones(3), "same")
COUNTS = np.outer(COUNTS, COUNTS).reshape(-1, 1).astype(np.float32)


def _positions(images: np.ndarray) -> Array:
    """Images as ``[n, 16, 4]``: 8 x 8 pixels (larger ones averaged, after a margin of white is cut to a multiple of 8)."""
    side = images.shape[1]
    block = side // (2 * SIDE)
    margin = (side - 2 * SIDE * block) // 2
    cut = images[:, margin : margin + 2 * SIDE * block, margin : margin + 2 * SIDE * block]
    small = cut.reshape(-1, 2 * SIDE, block, 2 * SIDE, block).mean((2, 4))
    parts = small.reshape(-1, SIDE, 2, SIDE, 2).transpose(0, 1, 3, 2, 4)
    return jnp.asarray(parts.reshape(-1, SIDE * SIDE, 4), jnp.float32)


def _patches(x: Array) -> Array:
    """The 3 x 3 neighbours of every position, zeros beyond the border: ``[batch, positions, 9, channels]``."""
    batch, _, channels = x.shape
    padded = jnp.pad(x.reshape(batch, SIDE, SIDE, channels), ((0, 0), (1, 1), (1, 1), (0, 0)))
    moved = [padded[:, i : i + SIDE, j : j + SIDE] for i in range(3) for j in range(3)]
    return jnp.stack(moved, axis=3).reshape(batch, SIDE * SIDE, 9, channels)
