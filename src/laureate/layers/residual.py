"""Small residual networks for images, made of this room's layers; applied to a whole batch at once."""

import math
from collections.abc import Iterator, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from laureate._core import require
from laureate.layers.convolution import Convolution, max_pool
from laureate.layers.normalisation import GroupNorm

__all__ = ["ResNet", "ResidualBlock"]


class ResidualBlock(eqx.Module):
    """relu(x + n(conv(relu(n(conv x))))), n the normalisation (Kaiming He et al., CVPR 2016).

    drawn: gives the normal numbers of both convolutions, one after the other (``Convolution``).
    channels: of what comes in and goes out, a multiple of 4.
    """

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

    A stage is a convolution to more channels, normalisation, ReLU, and ``num_blocks`` residual blocks; between two
    stages the image is halved. The features are the means over the positions that are left. Without blocks it is a
    plain convolutional network.

    key: of the initial weights.
    inputs: channels of an image.
    channels: of each stage, multiples of 4.
    num_blocks: residual blocks a stage, >= 0.

    >>> import jax, jax.numpy as jnp
    >>> network = ResNet(jax.random.key(0), channels=(8, 16))
    >>> network(jnp.ones((5, 28, 28, 1))).shape
    (5, 16)
    """

    stems: tuple[Convolution, ...]
    norms: tuple[GroupNorm, ...]
    residuals: tuple[tuple[ResidualBlock, ...], ...]

    def __init__(self, key: Array, inputs: int = 1, channels: Sequence[int] = (16, 32, 64), num_blocks: int = 1):
        rule = "one or more multiples of 4"
        require("ResNet", "channels", rule, channels, lambda c: len(c) > 0 and all(n > 0 and n % 4 == 0 for n in c))
        require("ResNet", "num_blocks", ">= 0", num_blocks, lambda b: b >= 0)
        shapes = []
        for before, now in zip((inputs, *channels), channels, strict=False):
            shapes += [(3, 3, before, now), *[(3, 3, now, now)] * (2 * num_blocks)]
        # One draw, dealt out: each call of the generator costs a tenth of a second to compile.
        sizes = [math.prod(shape) for shape in shapes]
        parts = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
        drawn = iter([part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])
        stems, residuals = [], []
        for now in channels:
            stems.append(Convolution(next(drawn)))
            residuals.append(tuple(ResidualBlock(drawn, now) for _ in range(num_blocks)))
        self.stems, self.residuals = tuple(stems), tuple(residuals)
        self.norms = tuple(GroupNorm(now) for now in channels)

    def __call__(self, images: Float[Array, "b h w i"]) -> Float[Array, "b f"]:
        """One row of features an image."""
        for i, (stem, norm, residuals) in enumerate(zip(self.stems, self.norms, self.residuals, strict=True)):
            images = jax.nn.relu(norm(stem(images if i == 0 else max_pool(images))))
            for block in residuals:
                images = block(images)
        return images.mean((1, 2))
