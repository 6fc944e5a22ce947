"""Convolutions that are quick on a CPU: images are ``[batch, height, width, channels]`` throughout.

A layer is applied to a whole batch at once, not to one example under vmap: that keeps the matrices large. Gradients
are by reverse mode only.

Which form of a layer stands here was decided by measuring on one thread (batch 256; milliseconds forward, or as said):

- a convolution 16 → 16 channels at 28 × 28: XLA's own 27, patches and one product 216, the same in cache-sized blocks
  20 to 28; its gradient for the kernel: XLA's own 188, patches in blocks 29 to 39, and as it is done here a third less;
- from one channel: XLA's own 14, a sum of nine shifted images 1.5.
"""

import math
from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

__all__ = ["Convolution", "convolve", "max_pool"]

# Floats of the patches that are multiplied at once: a megabyte, about what a core's own cache holds.
BLOCK = 2**18


@jax.custom_vjp
def convolve(images: Float[Array, "b h w i"], kernel: Float[Array, "s s i o"]) -> Float[Array, "b h w o"]:
    """Y[b, h, w] = Σ_{u, v} x[b, h + u − c, w + v − c] K[u, v] with c = (s − 1)/2, s odd; zeros beyond the border.

    >>> import jax.numpy as jnp
    >>> image = jnp.zeros((1, 3, 3, 1)).at[0, 1, 1, 0].set(1.0)
    >>> kernel = jnp.arange(9.0).reshape(3, 3, 1, 1)
    >>> convolve(image, kernel)[0, :, :, 0].tolist()  # a point gives the kernel back, mirrored
    [[8.0, 7.0, 6.0], [5.0, 4.0, 3.0], [2.0, 1.0, 0.0]]
    """
    side, other, inputs, _ = kernel.shape
    if side != other or side % 2 == 0 or inputs != images.shape[-1]:
        raise ValueError(
            f"convolve: the kernel must be [s, s, {images.shape[-1]}, outputs] with s odd, for images "
            f"{list(images.shape)}; got {list(kernel.shape)}."
        )
    if side == 1:
        return images @ kernel[0, 0]
    if inputs == 1:
        pairs = zip(_neighbours(images, side), kernel.reshape(side * side, 1, 1, 1, -1), strict=True)
        return jax.tree.reduce(jnp.add, [x * k for x, k in pairs])
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _forward(images: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return convolve(images, kernel), (images, kernel)


def _backward(saved: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    images, kernel = saved
    side, _, inputs, outputs = kernel.shape
    # ∂/∂x: the slope, convolved with the kernel mirrored and turned from outputs to inputs.
    for_images = convolve(slope, kernel[::-1, ::-1].transpose(0, 1, 3, 2))
    batch, height, width, _ = images.shape
    # ∂/∂K[u, v] = Σ x[h + u − c, w + v − c]ᵀ slope[h, w], as one product for all (u, v). Either the images are moved by
    # every (u, v), s² inputs columns to copy, or the images by every v and the slope back by every u, s (inputs +
    # outputs) columns: whichever is less.
    shared = inputs + outputs <= side * inputs
    columns = side * (inputs + outputs) if shared else side * side * inputs
    margin, block = (side - 1) // 2, _divisor(batch, BLOCK // (height * width * columns))

    # Block by block, for the whole does not fit any cache. They are sliced out inside the loop: images reshaped to
    # blocks XLA would compute anew from the layer before.
    def add(total: Array, start: Array) -> tuple[Array, None]:
        some, their_slope = (jax.lax.dynamic_slice_in_dim(x, start, block) for x in (images, slope))
        if shared:
            wide = jnp.pad(some, ((0, 0), (0, 0), (margin, margin), (0, 0)))
            high = jnp.pad(their_slope, ((0, 0), (margin, margin), (0, 0), (0, 0)))
            moved = [wide[:, :, v : v + width] for v in range(side)]
            back = [high[:, side - 1 - u : side - 1 - u + height] for u in range(side)]
        else:
            moved, back = list(_neighbours(some, side)), [their_slope]
        left, right = (jnp.concatenate(parts, axis=-1) for parts in (moved, back))
        return total + left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1]), None

    nothing = jnp.zeros((side * inputs, side * outputs) if shared else (side * side * inputs, outputs), kernel.dtype)
    for_kernel, _ = jax.lax.scan(add, nothing, jnp.arange(0, batch, block))
    if shared:
        for_kernel = for_kernel.reshape(side, inputs, side, outputs).transpose(2, 0, 1, 3)
    return for_images, for_kernel.reshape(kernel.shape)


convolve.defvjp(_forward, _backward)


def max_pool(images: Float[Array, "b h w c"], size: int = 2) -> Float[Array, "b p q c"]:
    """The largest of size × size pixels; rows and columns that fill no square are left out.

    By reshaping: XLA's windowed reduction takes several times as long on a CPU.

    >>> import jax.numpy as jnp
    >>> max_pool(jnp.arange(20.0).reshape(1, 4, 5, 1))[0, :, :, 0].tolist()
    [[6.0, 8.0], [16.0, 18.0]]
    """
    batch, height, width, channels = images.shape
    rows, columns = height // size, width // size
    cut = images[:, : rows * size, : columns * size]
    return cut.reshape(batch, rows, size, columns, size, channels).max((2, 4))


class Convolution(eqx.Module):
    """A layer without bias (a normalisation follows), with He's initialisation: normal, variance 2/(s² inputs).

    drawn: normal numbers [s, s, inputs, outputs] of variance 1, which are scaled to the weights.
    """

    kernel: Float[Array, "s s i o"]

    def __init__(self, drawn: Float[Array, "s s i o"]):
        self.kernel = drawn * math.sqrt(2 / math.prod(drawn.shape[:3]))

    def __call__(self, images: Float[Array, "b h w i"]) -> Float[Array, "b h w o"]:
        """The convolved images."""
        return convolve(images, self.kernel)


def _neighbours(images: Array, side: int) -> Iterator[Array]:
    """The image moved by every step within a side × side neighbourhood, row by row; zeros come in."""
    height, width = images.shape[1:3]
    margin = (side - 1) // 2
    padded = jnp.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    return (padded[:, i : i + height, j : j + width] for i in range(side) for j in range(side))


def _divisor(number: int, most: int) -> int:
    """The largest divisor of a number up to a limit; 1 at least."""
    return max((d for d in range(1, min(number, most) + 1) if number % d == 0), default=1)
