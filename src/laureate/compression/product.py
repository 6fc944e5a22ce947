"""Product quantisation: short blocks of weights are written as the number of a centroid in a small codebook."""

import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require, warn
from laureate.compression.kmeans import kmeans, nearest
from laureate.compression.quantizer import Outputs, Quantizer, as_rows, from_rows
from laureate.compression.scalar import ScalarQuantizer

__all__ = ["Codebook", "ProductQuantizer"]

EIGHT = ScalarQuantizer(8, scheme="symmetric")


class Codebook(NamedTuple):
    """The parameters of a `ProductQuantizer`.

    centroids: [K, block], one a row.
    """

    centroids: Float[Array, "centroids block"]


class ProductQuantizer(Quantizer):
    """Replaces each block of weights by the nearest of K centroids, which k-means finds.

    W as [outputs, inputs], cut along the inputs into blocks b of length B:  φ(b) = c_k(b),  k(b) = argmin_k |b - c_k|²
    bits a weight = log2(K) / B + 32 K B / (number of weights)         (Jégou, Douze, Schmid 2011; Stock et al. 2021)

    block: B; the inputs of a weight must be a multiple of it. 8 for dense layers, 9 for 3 x 3 kernels, 4 for attention.
    num_centroids: K, at most 65,536; a weight with fewer blocks gets as many centroids as it has blocks.
    num_steps: of k-means.
    codebook_bits: 32, or 8: the codebook's numbers are rounded to int8 with one scale, so that all that is stored are
        bytes.
    outputs: which axis of a weight counts its outputs, ``"first"`` or ``"last"``, as for `ScalarQuantizer`.

    >>> import jax, jax.numpy as jnp
    >>> weights = jnp.tile(jnp.array([[1.0, 2.0], [3.0, 4.0]]), (4, 3))
    >>> quantizer = ProductQuantizer(block=2, num_centroids=2)
    >>> book = quantizer.fit(jax.random.key(0), weights)
    >>> codes = quantizer.encode(weights, book)
    >>> codes.shape, bool(jnp.allclose(quantizer.decode(codes, book, weights.shape), weights))
    ((24,), True)
    """

    block: int = eqx.field(default=8, static=True)
    num_centroids: int = eqx.field(default=256, static=True)
    num_steps: int = eqx.field(default=15, static=True)
    codebook_bits: Literal[8, 32] = eqx.field(default=32, static=True)
    outputs: Outputs = eqx.field(default="first", static=True)

    def __check_init__(self):
        name = "ProductQuantizer"
        require(name, "block", "an integer >= 1", self.block, lambda b: isinstance(b, int) and b >= 1)
        require(name, "num_centroids", "in 1..65536", self.num_centroids, lambda k: 1 <= k <= 2**16)
        require(name, "num_steps", ">= 0", self.num_steps, lambda n: n >= 0)
        require(name, "codebook_bits", "8 or 32", self.codebook_bits, (8, 32).__contains__)
        require(name, "outputs", "'first' or 'last'", self.outputs, ("first", "last").__contains__)

    @property
    def keeps_codes(self) -> bool:
        """Finding the nearest centroids costs more than a step of training."""
        return True

    def check(self, path: str, shape: tuple[int, ...]) -> None:
        """The inputs must be whole blocks, and the centroids should be fewer than the blocks."""
        inputs = math.prod(shape) // (shape[0] if self.outputs == "first" else shape[-1])
        if inputs % self.block:
            near = sorted((d for d in range(1, inputs + 1) if inputs % d == 0), key=lambda d: abs(d - self.block))[:3]
            raise ValueError(
                f"ProductQuantizer.block must divide the {inputs} inputs of {path} {list(shape)}, whose outputs are "
                f"{self.outputs}; got {self.block}. Blocks near it that do: {', '.join(map(str, sorted(near)))}."
            )
        if (blocks := self.count(shape)) < self.num_centroids:
            warn(
                f"ProductQuantizer.num_centroids = {self.num_centroids} is more than the {blocks} blocks of {path} "
                f"{list(shape)}: {blocks} are used, which saves nothing. Take fewer, or leave this weight out."
            )

    def bits(self, shape: tuple[int, ...]) -> int:
        """⌈log2 K⌉."""
        return max(1, (self._centroids(shape) - 1).bit_length())

    def count(self, shape: tuple[int, ...]) -> int:
        """A code for every block."""
        return math.prod(shape) // self.block

    def spread(self, blocks: Array, shape: tuple[int, ...]) -> Array:
        """Every weight of a block gets its value."""
        whole = jnp.broadcast_to(blocks[:, None], (*blocks.shape, self.block))  # jnp.repeat takes twenty times as long
        return from_rows(whole, shape, self.outputs)

    def fit(self, key: Any, weights: Float[Array, "..."], start: Codebook | None = None) -> Codebook:
        """Centroids of the blocks of these weights; from an earlier codebook on, where one is given."""
        if key is None:
            raise TypeError("ProductQuantizer.fit.key must be a key, for k-means begins at random blocks; got None.")
        before = None if start is None else start.centroids
        found = kmeans(key, self._blocks(weights), self._centroids(weights.shape), self.num_steps, start=before)
        return Codebook(found.centroids)

    def encode(self, weights: Float[Array, "..."], parameters: Codebook) -> Int[Array, "codes"]:
        """k(b) for every block, output by output."""
        return nearest(self._blocks(weights), parameters.centroids)

    def decode(self, codes: Int[Array, "codes"], parameters: Codebook, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """The centroids in their places. Its gradient for a centroid is the sum over the blocks that it stands for."""
        return from_rows(parameters.centroids[codes], shape, self.outputs)

    def inside(self, weights: Float[Array, "..."], parameters: Codebook) -> Bool[Array, "..."]:
        """Everywhere: a codebook has no range."""
        return jnp.ones(weights.shape, bool)

    def excess(self, weights: Float[Array, "..."], parameters: Codebook) -> Float[Array, ""]:
        """0: a codebook has no range."""
        return jnp.zeros(())

    def store(self, parameters: Codebook) -> tuple[Array, ...]:
        """The centroids in float32, or as bytes with their scale."""
        centroids = parameters.centroids.astype(jnp.float32)
        if self.codebook_bits == 32:
            return (centroids,)
        grid = EIGHT.fit(None, centroids)
        codes = EIGHT.encode(centroids, grid) - grid.zero_point.ravel()
        return codes.astype(jnp.int8).reshape(centroids.shape), *EIGHT.store(grid)

    def restore(self, stored: tuple[Array, ...], shape: tuple[int, ...]) -> Codebook:
        """The codebook again."""
        return Codebook(stored[0] if self.codebook_bits == 32 else stored[0].astype(jnp.float32) * stored[1])

    def _blocks(self, weights: Array) -> Array:
        return as_rows(weights, self.outputs).reshape(-1, self.block)

    def _centroids(self, shape: tuple[int, ...]) -> int:
        return min(self.num_centroids, self.count(shape))
