"""What a class-conditional generator and discriminator are made of; every part takes whole batches, channels last."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.layers import BatchNorm, RunningStatistics, convolve, max_pool

__all__ = ["Affine", "ConditionalBatchNorm", "ProjectionHead", "SelfAttention", "split_latents"]

LABELS = "labels of the rows, for a network with classes"


class Affine(eqx.Module):
    """A linear layer of rows [b, inputs], or a convolution of images [b, h, w, inputs], by the axes of its weight.

    weight: [inputs, outputs], or a kernel [s, s, inputs, outputs] with s odd.
    bias: [outputs], or None.

    >>> Affine(jnp.ones((3, 3, 2, 4)), jnp.zeros(4))(jnp.ones((1, 5, 5, 2))).shape
    (1, 5, 5, 4)
    """

    weight: Float[Array, "*_ i o"]
    bias: Float[Array, " o"] | None = None

    def __check_init__(self):
        # Not what a weight holds: while a tree is mapped over, it may be anything.
        axes = getattr(self.weight, "ndim", 2)
        require("Affine", "weight", "[inputs, outputs] or [s, s, inputs, outputs]", axes, lambda n: n in (2, 4))

    def __call__(self, x: Array) -> Array:
        """W x + b."""
        result = x @ self.weight if self.weight.ndim == 2 else convolve(x, self.weight)
        return result if self.bias is None else result + self.bias.reshape((1,) * (x.ndim - 1) + (-1,))


class ConditionalBatchNorm(eqx.Module):
    """Batch normalisation whose scale and shift are linear in a condition, such as a class and a piece of z.

    In symbols::

        y = (x − mean) / √(variance + ε) · (1 + cᵀA) + cᵀB

    With A = B = 0 it is plain batch normalisation; with a one-hot c, one of each class (Dumoulin et al. 2017).

    gain, bias: A and B, [condition, channels].
    epsilon: ε > 0.

    >>> norm = ConditionalBatchNorm(jnp.zeros((2, 3)), jnp.ones((2, 3)))
    >>> y, used = norm(jnp.arange(12.0).reshape(4, 3), jnp.ones((4, 2)))
    >>> [round(float(v), 3) for v in y.mean(0)], used.mean.tolist()
    ([2.0, 2.0, 2.0], [4.5, 5.5, 6.5])
    """

    gain: Float[Array, "condition c"]
    bias: Float[Array, "condition c"]
    epsilon: float = eqx.field(static=True, default=1e-5)

    def __check_init__(self):
        require("ConditionalBatchNorm", "epsilon", "> 0", self.epsilon, lambda e: e > 0)
        shapes = [getattr(part, "shape", ()) for part in (self.gain, self.bias)]
        rule = "of the shape of gain, [condition, channels]"
        require("ConditionalBatchNorm", "bias", rule, shapes, lambda both: both[0] == both[1])

    def init(self) -> RunningStatistics:
        """Of nothing."""
        return RunningStatistics.empty(self.gain.shape[-1:], self.gain.dtype)

    def __call__(
        self,
        x: Float[Array, "b *positions c"],
        condition: Float[Array, "b condition"],
        statistics: RunningStatistics | None = None,
    ) -> tuple[Float[Array, "b *positions c"], RunningStatistics]:
        """The normalised batch, and the statistics that were used: the batch's own where none are given."""
        norm = BatchNorm(self.gain.shape[-1], affine=False, epsilon=self.epsilon)
        return norm(x, statistics, 1 + condition @ self.gain, condition @ self.bias)


class ProjectionHead(eqx.Module):
    """A discriminator's last layer that knows the class (Miyato & Koyama 2018)::

        D(x, y) = wᵀh + b + ⟨E_y, h⟩,   h = Σ over positions of relu(features)

    weight: w, [features, 1]. bias: b, [1]. embedding: E, [classes, features], or None for no classes.

    >>> head = ProjectionHead(jnp.ones((3, 1)), jnp.zeros(1), jnp.eye(3))
    >>> head(jnp.ones((2, 4, 4, 3)), jnp.array([0, 2])).tolist()
    [64.0, 64.0]
    """

    weight: Float[Array, "f 1"]
    bias: Float[Array, " 1"]
    embedding: Float[Array, "classes f"] | None

    def __call__(self, features: Float[Array, "b *positions f"], y: Int[Array, " b"] | None = None) -> Array:
        """One number a row."""
        hidden = jax.nn.relu(features)
        hidden = jnp.sum(hidden, axis=tuple(range(1, hidden.ndim - 1)))
        logits = (hidden @ self.weight + self.bias[None])[:, 0]
        if self.embedding is None:
            return logits
        require("ProjectionHead", "y", LABELS, y, lambda labels: labels is not None)
        return logits + jnp.sum(self.embedding[y] * hidden, axis=1)


class SelfAttention(eqx.Module):
    """Let every position of an image see all others (Zhang et al. 2019)::

        y = x + γ W_o softmax(θ φᵀ) g,   θ = x W_θ,   φ, g = halved(x W_φ), halved(x W_g)

    With γ = 0, as it begins, it is the identity.

    query, keys, values, output: W_θ and W_φ [c, c/8], W_g [c, c/2], W_o [c/2, c].
    gamma: γ, a number.

    >>> block = SelfAttention(jnp.ones((8, 1)), jnp.ones((8, 1)), jnp.ones((8, 4)), jnp.ones((4, 8)), jnp.zeros(()))
    >>> x = jnp.arange(128.0).reshape(1, 4, 4, 8)
    >>> bool(jnp.all(block(x) == x))
    True
    """

    query: Float[Array, "c k"]
    keys: Float[Array, "c k"]
    values: Float[Array, "c v"]
    output: Float[Array, "v c"]
    gamma: Float[Array, ""]

    def __call__(self, x: Float[Array, "b h w c"]) -> Float[Array, "b h w c"]:
        """As large as what came in; height and width are even."""
        require("SelfAttention", "x", "[b, h, w, c] with h and w even", x.shape, lambda s: s[1] % 2 == s[2] % 2 == 0)
        batch, height, width, channels = x.shape
        rows = lambda part: part.reshape(batch, -1, part.shape[-1])  # noqa: E731
        theta = rows(x @ self.query)
        phi, g = (rows(max_pool(x @ weight)) for weight in (self.keys, self.values))
        seen = jax.nn.softmax(jnp.einsum("bqk,bpk->bqp", theta, phi), axis=-1)
        told = jnp.einsum("bqp,bpv->bqv", seen, g) @ self.output
        return x + self.gamma * told.reshape(batch, height, width, channels)


def split_latents(z: Float[Array, "b n"], num_pieces: int) -> list[Float[Array, "b m"]]:
    """z in so many equal pieces: the first for the first layer, one for every block (hierarchical latents).

    num_pieces: a divisor of the size of z.

    >>> [piece.shape for piece in split_latents(jnp.ones((2, 6)), 3)]
    [(2, 2), (2, 2), (2, 2)]
    """
    size = z.shape[-1]
    remedy = f"The next size that works is {-(-size // num_pieces) * num_pieces}."
    require("split_latents", "z", f"of a size divisible by {num_pieces}", size, lambda n: n % num_pieces == 0, remedy)
    return jnp.split(z, num_pieces, axis=-1)


def grown(x: Any) -> Any:
    """Every pixel four times."""
    batch, height, width, channels = x.shape
    wide = jnp.broadcast_to(x[:, :, None, :, None, :], (batch, height, 2, width, 2, channels))
    return wide.reshape(batch, 2 * height, 2 * width, channels)


def halved(x: Any) -> Any:
    """The mean of every 2 × 2 pixels."""
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).mean((2, 4))
