"""Convolutions with stride 2 as products of matrices, and DreamerV2's encoder and decoder of 64 × 64 images.

A convolution with stride 2 and an even kernel is one with stride 1 of blocks of 2 × 2 pixels: patches of blocks, then
one product. On CPUs this is several times as quick as XLA's own, most of all backwards.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["PixelDecoder", "PixelEncoder", "convolve_down", "convolve_up", "make_pixels"]

RULE = "uint8, or floats within -0.5 and 0.5"
SIDE, KERNELS_DOWN, KERNELS_UP = 64, (4, 4, 4, 4), (5, 5, 6, 6)


def convolve_down(image: Float[Array, "h w i"], kernel: Float[Array, "s s i o"]) -> Float[Array, "p q o"]:
    """Y[p, q] = Σ_{u, v} x[2p + u, 2q + v] K[u, v], without padding; s even.

    >>> image = jnp.arange(16.0).reshape(4, 4, 1)
    >>> convolve_down(image, jnp.ones((4, 4, 1, 1))).tolist()
    [[[120.0]]]
    """
    side = kernel.shape[0]
    require("convolve_down", "kernel", "square, of an even side", kernel.shape[:2], lambda s: s[0] == s[1] == side)
    require("convolve_down", "kernel", "square, of an even side", side, lambda s: s % 2 == 0)
    rows, columns, inputs = image.shape[0] // 2, image.shape[1] // 2, image.shape[2]
    blocks = image[: 2 * rows, : 2 * columns].reshape(rows, 2, columns, 2, inputs)
    blocks = blocks.transpose(0, 2, 1, 3, 4).reshape(rows, columns, 4 * inputs)
    high, wide, half = rows - side // 2 + 1, columns - side // 2 + 1, side // 2
    moved = [blocks[u : u + high, v : v + wide] for u in range(half) for v in range(half)]
    matrix = kernel.reshape(half, 2, half, 2, inputs, -1).transpose(0, 2, 1, 3, 4, 5).reshape(-1, kernel.shape[-1])
    return jnp.concatenate(moved, axis=-1) @ matrix


def convolve_up(image: Float[Array, "h w i"], kernel: Float[Array, "s s i o"]) -> Float[Array, "p q o"]:
    """Its transpose: Y[2h + u, 2w + v] += x[h, w] K[u, v], of side 2 (h − 1) + s; s even or odd.

    >>> convolve_up(jnp.ones((1, 1, 1)), jnp.arange(9.0).reshape(3, 3, 1, 1))[..., 0].tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    """
    side, _, inputs, outputs = kernel.shape
    half = (side + 1) // 2
    even = jnp.pad(kernel, ((0, 2 * half - side), (0, 2 * half - side), (0, 0), (0, 0)))
    matrix = even.reshape(half, 2, half, 2, inputs, outputs).transpose(4, 0, 2, 1, 3, 5).reshape(inputs, -1)
    high, wide = image.shape[:2]
    # Split, not sliced: the gradient of slices is a sum of nine padded arrays, that of a split one concatenation.
    parts = jnp.split(image @ matrix, half * half, axis=-1)
    added = jnp.zeros((high + half - 1, wide + half - 1, 4 * outputs), image.dtype)
    for (u, v), part in zip(itertools.product(range(half), repeat=2), parts, strict=True):
        added = added + jnp.pad(part, ((u, half - 1 - u), (v, half - 1 - v), (0, 0)))
    # XLA on a CPU would compute the slope of this anew for each of the parts; behind a barrier it does once.
    added = jax.lax.optimization_barrier(added)
    rows, columns = added.shape[:2]
    spread = added.reshape(rows, columns, 2, 2, outputs).transpose(0, 2, 1, 3, 4)
    return spread.reshape(2 * rows, 2 * columns, outputs)[: 2 * (high - 1) + side, : 2 * (wide - 1) + side]


class PixelEncoder(eqx.Module):
    """Four convolutions, kernels of 4, stride 2: an image of 64 × 64 to 2 × 2 × 8 ``depth`` numbers.

    kernels, shifts: of each. Images are uint8, which become x/255 − ½, or floats within −½ and ½.
    """

    kernels: tuple[Float[Array, "s s i o"], ...]
    shifts: tuple[Float[Array, " o"], ...]

    def __call__(self, image: Float[Array, "h w c"]) -> Float[Array, " embedded"]:
        """The embedded image."""
        x = scaled(image)
        for kernel, shift in zip(self.kernels, self.shifts, strict=True):
            x = jax.nn.elu(convolve_down(x, kernel) + shift)
        return x.reshape(-1)


class PixelDecoder(eqx.Module):
    """From features to an image of 64 × 64: a linear map, then convolutions up with kernels 5, 5, 6, 6.

    linear: from features to the first 1 × 1 image. kernels, shifts: of each convolution.
    """

    linear: eqx.nn.Linear
    kernels: tuple[Float[Array, "s s i o"], ...]
    shifts: tuple[Float[Array, " o"], ...]

    def __call__(self, features: Float[Array, " features"]) -> Float[Array, "h w c"]:
        """The mean of the image."""
        x, last = self.linear(features)[None, None], len(self.kernels) - 1
        for number, (kernel, shift) in enumerate(zip(self.kernels, self.shifts, strict=True)):
            x = convolve_up(x, kernel) + shift
            x = x if number == last else jax.nn.elu(x)
        return x


def scaled(image: Array) -> Array:
    """An image as floats within −½ and ½; floats must be so already."""
    if jnp.issubdtype(image.dtype, jnp.integer):
        return image.astype(jnp.float32) / 255 - 0.5
    check_images(image)
    return image


def check_images(image: Array) -> None:
    """Refuse floats beyond −½ and ½, where they are known: not within jit, vmap or grad."""
    if not isinstance(image, Tracer) and not jnp.issubdtype(image.dtype, jnp.integer):
        largest = float(np.max(np.abs(np.asarray(image)), initial=0.0))
        require("PixelEncoder", "image", RULE, largest, lambda m: m <= 0.5 + 1e-6, "Divide by 255, subtract 0.5.")


def make_pixels(
    key: Array, shape: tuple[int, int, int], num_features: int, *, depth: int = 48
) -> tuple[PixelEncoder, PixelDecoder]:
    """DreamerV2's networks for images of 64 × 64.

    shape: (64, 64, channels). num_features: of the decoder's input. depth: channels of the first convolution.
    """
    remedy = "For other sizes bring an encoder and a decoder of your own to WorldModel."
    require(
        "make_pixels", "shape", "(64, 64, channels)", shape, lambda s: len(s) == 3 and s[:2] == (SIDE, SIDE), remedy
    )
    require("make_pixels", "depth", ">= 1", depth, lambda d: d >= 1)
    channels = [shape[-1], *(depth * 2**i for i in range(4))]
    back = [32 * depth, 4 * depth, 2 * depth, depth, shape[-1]]
    plans = [(s, s, i, o) for s, (i, o) in zip(KERNELS_DOWN, itertools.pairwise(channels), strict=True)]
    plans += [(s, s, i, o) for s, (i, o) in zip(KERNELS_UP, itertools.pairwise(back), strict=True)]
    plans.append((1, 1, num_features, back[0]))
    pool, used, kernels = jax.random.normal(key, (sum(int(np.prod(plan)) for plan in plans),)), 0, []
    for plan in plans:
        number, fan = int(np.prod(plan)), (plan[2] + plan[3]) * plan[0] * plan[1] / 2
        kernels.append(pool[used : used + number].reshape(plan) / np.sqrt(fan))
        used += number
    zeros = [jnp.zeros(kernel.shape[-1]) for kernel in kernels]
    empty = eqx.filter_eval_shape(eqx.nn.Linear, num_features, back[0], key=key)
    linear = eqx.tree_at(lambda one: (one.weight, one.bias), empty, (kernels[8][0, 0].T, zeros[8]))
    encoder = PixelEncoder(tuple(kernels[:4]), tuple(zeros[:4]))
    return encoder, PixelDecoder(linear, tuple(kernels[4:8]), tuple(zeros[4:8]))
