"""Layers for small images that are quick on a CPU: images are ``[batch, height, width, channels]`` throughout.

Every later method with images takes its networks from here. A network is applied to a whole batch at once, not to one
example under vmap: that keeps the matrices large. Gradients are by reverse mode only.

Which form of a layer stands here was decided by measuring on one thread (batch 256; milliseconds forward, or as said):

- a convolution 16 → 16 channels at 28 × 28: XLA's own 27, patches and one product 216, the same in cache-sized blocks
  20 to 28; its gradient for the kernel: XLA's own 188, patches in blocks 29 to 39;
- from one channel: XLA's own 14, a sum of nine shifted images 1.5;
- group normalisation with its gradient: over axes (positions, channels of a group) 36, over positions first 9.
"""

import math
from collections.abc import Iterator, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from laureate._core import require

__all__ = ["Convolution", "GroupNorm", "ResNet", "ResidualBlock", "convolve", "max_pool"]

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
    block = _divisor(batch, BLOCK // (height * width * side * side * inputs))

    # ∂/∂K = patches(x)ᵀ slope, block by block: all patches at once are s² times the images, and do not fit any cache.
    # They are sliced out inside the loop: images reshaped to blocks XLA would compute anew from the layer before.
    def add(total: Array, start: Array) -> tuple[Array, None]:
        some, their_slope = (jax.lax.dynamic_slice_in_dim(x, start, block) for x in (images, slope))
        rows = jnp.concatenate(list(_neighbours(some, side)), axis=-1).reshape(-1, side * side * inputs)
        return total + rows.T @ their_slope.reshape(-1, outputs), None

    nothing = jnp.zeros((side * side * inputs, outputs), kernel.dtype)
    for_kernel, _ = jax.lax.scan(add, nothing, jnp.arange(0, batch, block))
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
    """A layer without bias (a normalisation follows), with He's initialisation: normal, variance 2/(s² inputs)."""

    kernel: Float[Array, "s s i o"]

    def __init__(self, drawn: Float[Array, "s s i o"]):
        self.kernel = drawn * math.sqrt(2 / math.prod(drawn.shape[:3]))

    def __call__(self, images: Float[Array, "b h w i"]) -> Float[Array, "b h w o"]:
        """The convolved images."""
        return convolve(images, self.kernel)


class GroupNorm(eqx.Module):
    """Mean 0 and deviation 1 of each group of channels within each image; then a scale and a shift a channel.

    Of one image at a time, so that a representation does not depend on its neighbours in the batch
    (Yuxin Wu and Kaiming He, ECCV 2018). groups: must divide the channels.
    """

    scale: Float[Array, " c"]
    shift: Float[Array, " c"]
    groups: int = eqx.field(static=True)

    def __init__(self, channels: int, groups: int = 4):
        require("GroupNorm", "groups", f"a divisor of {channels}", groups, lambda g: g >= 1 and channels % g == 0)
        self.scale, self.shift, self.groups = jnp.ones(channels), jnp.zeros(channels), groups

    def __call__(self, images: Float[Array, "b h w c"]) -> Float[Array, "b h w c"]:
        """The normalised images."""
        channels = images.shape[-1]
        each = channels // self.groups

        def mean(values: Float[Array, "b h w c"]) -> Float[Array, "b 1 1 c"]:
            # Over positions first, and only then over a group's few channels: the rows stay contiguous.
            grouped = values.mean((1, 2)).reshape(-1, self.groups, each).mean(2)
            return jnp.repeat(grouped, each, axis=1)[:, None, None, :]

        centred = images - mean(images)
        factor = jax.lax.rsqrt(mean(centred**2) + 1e-5) * self.scale[None, None, None, :]
        return centred * factor + self.shift[None, None, None, :]


class ResidualBlock(eqx.Module):
    """relu(x + n(conv(relu(n(conv x))))), n the normalisation (Kaiming He et al., CVPR 2016)."""

    layers: tuple[Convolution, Convolution]
    norms: tuple[GroupNorm, GroupNorm]

    def __init__(self, drawn: Iterator[Array], channels: int):
        self.layers = Convolution(next(drawn)), Convolution(next(drawn))
        self.norms = GroupNorm(channels), GroupNorm(channels)

    def __call__(self, images: Float[Array, "b h w c"]) -> Float[Array, "b h w c"]:
        """As large as what came in."""
        hidden = jax.nn.relu(self.norms[0](self.layers[0](images)))
        return jax.nn.relu(images + self.norms[1](self.layers[1](hidden)))


class ResNet(eqx.Module):
    """A small residual network for images of about 8 to 32 pixels a side: from a batch to its features.

    A stage is a convolution to more channels, normalisation, ReLU, and ``blocks`` residual blocks; between two stages
    the image is halved. The features are the means over the positions that are left. Without blocks it is a plain
    convolutional network.

    key: of the initial weights. inputs: channels of an image. channels: of each stage, multiples of 4.
    blocks: residual blocks a stage, >= 0.

    >>> import jax, jax.numpy as jnp
    >>> network = ResNet(jax.random.key(0), channels=(8, 16))
    >>> network(jnp.ones((5, 28, 28, 1))).shape
    (5, 16)
    """

    stems: tuple[Convolution, ...]
    norms: tuple[GroupNorm, ...]
    residuals: tuple[tuple[ResidualBlock, ...], ...]

    def __init__(self, key: Array, inputs: int = 1, channels: Sequence[int] = (16, 32, 64), blocks: int = 1):
        rule = "one or more multiples of 4"
        require("ResNet", "channels", rule, channels, lambda c: len(c) > 0 and all(n > 0 and n % 4 == 0 for n in c))
        require("ResNet", "blocks", ">= 0", blocks, lambda b: b >= 0)
        shapes = []
        for before, now in zip((inputs, *channels), channels, strict=False):
            shapes += [(3, 3, before, now), *[(3, 3, now, now)] * (2 * blocks)]
        # One draw, dealt out: each call of the generator costs a tenth of a second to compile.
        sizes = [math.prod(shape) for shape in shapes]
        parts = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
        drawn = iter([part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])
        stems, residuals = [], []
        for now in channels:
            stems.append(Convolution(next(drawn)))
            residuals.append(tuple(ResidualBlock(drawn, now) for _ in range(blocks)))
        self.stems, self.residuals = tuple(stems), tuple(residuals)
        self.norms = tuple(GroupNorm(now) for now in channels)

    def __call__(self, images: Float[Array, "b h w i"]) -> Float[Array, "b f"]:
        """One row of features an image."""
        for i, (stem, norm, residuals) in enumerate(zip(self.stems, self.norms, self.residuals, strict=True)):
            images = jax.nn.relu(norm(stem(images if i == 0 else max_pool(images))))
            for block in residuals:
                images = block(images)
        return images.mean((1, 2))


def _neighbours(images: Array, side: int) -> Iterator[Array]:
    """The image moved by every step within a side × side neighbourhood, row by row; zeros come in."""
    height, width = images.shape[1:3]
    margin = (side - 1) // 2
    padded = jnp.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    return (padded[:, i : i + height, j : j + width] for i in range(side) for j in range(side))


def _divisor(number: int, most: int) -> int:
    """The largest divisor of a number up to a limit; 1 at least."""
    return max((d for d in range(1, min(number, most) + 1) if number % d == 0), default=1)
