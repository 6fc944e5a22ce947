"""Convolutions that halve an image and transposed ones that double it, as ordinary ones at the smaller size.

An image of half the size with four times the channels, one for each place of a 2 × 2 square, has the same numbers; on
it both are convolutions of stride 1, which `laureate.layers.convolve` does fast on a CPU.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate.layers import convolve

__all__ = ["double", "halve"]


def halve(images: Float[Array, "b h w i"], kernel: Float[Array, "k k i o"]) -> Float[Array, "b p q o"]:
    """Y[q] = Σ_u x[2q + u − c] K[u], c = (k − 1)/2, k odd, zeros outside: p = ⌈h/2⌉ rows.

    >>> import jax.numpy as jnp
    >>> halve(jnp.arange(5.0).reshape(1, 1, 5, 1), jnp.ones((3, 3, 1, 1)))[0, 0, :, 0].tolist()
    [1.0, 6.0, 7.0]
    """
    batch, height, width, channels = images.shape
    even = jnp.pad(images, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)))
    rows, columns = (height + 1) // 2, (width + 1) // 2
    squares = even.reshape(batch, rows, 2, columns, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    parts = _by_place(kernel).transpose(0, 2, 1, 3, 4, 5)  # [l, l, 2, 2, i, o]
    side = len(parts)
    return convolve(squares.reshape(batch, rows, columns, -1), parts.reshape(side, side, 4 * channels, -1))


def double(
    images: Float[Array, "b p q i"], kernel: Float[Array, "k k i o"], size: tuple[int, int]
) -> Float[Array, "b h w o"]:
    """The transpose of `halve`: Y[2i + u − c] += x[i] K[u]. size: (h, w), of which ``images`` have half, rounded up.

    >>> import jax.numpy as jnp
    >>> double(jnp.ones((1, 1, 3, 1)), jnp.ones((3, 3, 1, 1)), (1, 5))[0, 0, :, 0].tolist()
    [1.0, 2.0, 1.0, 2.0, 1.0]
    """
    batch, rows, columns, channels = images.shape
    height, width = size
    if ((height + 1) // 2, (width + 1) // 2) != (rows, columns):
        halved = f"{rows} × {columns} when it is halved and rounded up"
        raise ValueError(f"double.size must be {halved}; got {height} × {width}.")
    parts = _by_place(kernel)[::-1, :, ::-1].transpose(0, 2, 4, 1, 3, 5)  # [l, l, i, 2, 2, o]
    side, outputs = len(parts), kernel.shape[-1]
    squares = convolve(images, parts.reshape(side, side, channels, 4 * outputs))
    squares = squares.reshape(batch, rows, columns, 2, 2, outputs).transpose(0, 1, 3, 2, 4, 5)
    return squares.reshape(batch, 2 * rows, 2 * columns, outputs)[:, :height, :width]


def _by_place(kernel: Float[Array, "k k i o"]) -> Float[Array, "l 2 l 2 i o"]:
    """U[a + A, b] = K[u] where u − c = 2a + b with b in {0, 1}; zeros where there is no such u."""
    side = kernel.shape[0]
    centre = (side - 1) // 2
    reach = (centre + 1) // 2
    before, long = 2 * reach - centre, 2 * reach + 1
    margins = (before, 2 * long - side - before)
    padded = jnp.pad(kernel, (margins, margins, (0, 0), (0, 0)))
    return padded.reshape(long, 2, long, 2, *kernel.shape[2:])
