"""A small convolutional energy-based model of binary images."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

__all__ = ["ConvolutionalEnergy", "base_logits"]


class ConvolutionalEnergy(eqx.Module):
    """f(x) = log Bernoulli(x; base) + readout of two convolutions, as the paper's deep energy-based models are built.

    key: for the weights.
    base: logits of independent pixels, usually of the data's mean (`base_logits`).
    channels: of both convolutions.
    """

    first: Float[Array, "3 3 1 channels"]
    second: Float[Array, "3 3 channels channels"]
    readout: Float[Array, "channels"]
    biases: Float[Array, "2 channels"]
    base: Float[Array, "side side"]

    def __init__(self, key: Key[Array, ""], base: Float[Array, "side side"], channels: int = 16):
        keys = jax.random.split(key, 3)
        self.first = jax.random.normal(keys[0], (3, 3, 1, channels)) * (2 / 9) ** 0.5
        self.second = jax.random.normal(keys[1], (3, 3, channels, channels)) * (2 / (9 * channels)) ** 0.5
        # Starts near zero: at first the model is its base, from which chains can be drawn exactly.
        self.readout = jax.random.normal(keys[2], (channels,)) * 0.01
        self.biases = jnp.zeros((2, channels))
        self.base = base

    def __call__(self, x: Float[Array, "side side"]) -> Float[Array, ""]:
        """f(x) of relaxed x."""
        h = jax.nn.silu(_convolve(2 * x[:, :, None] - 1, self.first, 1) + self.biases[0])
        h = jax.nn.silu(_convolve(h, self.second, 2) + self.biases[1])
        return base_logdensity(jax.lax.stop_gradient(self.base), x) + jnp.sum(h @ self.readout)


def base_logits(images: Float[Array, "n side side"], smoothing: float = 0.01) -> Float[Array, "side side"]:
    """Logits of mean·(1 - 2ε) + ε, as in the paper's code."""
    mean = jnp.mean(images, axis=0) * (1 - 2 * smoothing) + smoothing
    return jnp.log(mean) - jnp.log1p(-mean)


def base_logdensity(base: Float[Array, "side side"], x: Float[Array, "side side"]) -> Float[Array, ""]:
    """log Bernoulli(x; base), normalised."""
    return jnp.sum(x * base - jax.nn.softplus(base))


def _convolve(h: Float[Array, "side side c"], kernel: Float[Array, "3 3 c d"], stride: int) -> Float[Array, "s s d"]:
    # Nine shifted products instead of XLA's convolution, which is slow on a CPU and slower with weights a seed.
    padded = jnp.pad(h, ((1, 1), (1, 1), (0, 0)))
    side = h.shape[0]
    parts = [
        padded[row : row + side : stride, column : column + side : stride] @ kernel[row, column]
        for row in range(3)
        for column in range(3)
    ]
    return functools.reduce(jnp.add, parts)
