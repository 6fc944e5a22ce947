"""How a phrase changes a feature map: filters made of it, scales and shifts, or concatenation; one call."""

import abc
import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.layers import convolve

__all__ = ["AbstractModulation", "Concatenation", "FiLM", "LanguageFilter", "filter_each", "normalise_kernels"]

Features = Float[Array, "b h w c"]
MEGABYTE = 2**20


class AbstractModulation(eqx.Module):
    """The base of one's own: features [b, h, w, c] and text [b, d] in, features of the same shape out, each by its own.

    A subclass has an ``__init__(key, channels, text_size)``, so that `LanguageUNet` can make it for every level.
    """

    @abc.abstractmethod
    def __call__(self, features: Features, text: Float[Array, "b d"], *, key: Key[Array, ""] | None = None) -> Features:
        """The modulated features; ``key`` for dropout while training, None without."""

    @property
    def num_parameters(self) -> int:
        """Numbers that are trained."""
        return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self, eqx.is_inexact_array)))


def normalise_kernels(kernels: Float[Array, "*b i o"], epsilon: float = 1e-12) -> Float[Array, "*b i o"]:
    """k / max(‖k‖₂, ε) along the output channels: every input channel and tap has length 1.

    >>> import jax.numpy as jnp
    >>> normalise_kernels(jnp.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    wide = kernels.astype(jnp.promote_types(kernels.dtype, jnp.float32))  # half precision has no ε²
    squares = jnp.sum(wide**2, axis=-1, keepdims=True)
    return (wide * jax.lax.rsqrt(jnp.maximum(squares, epsilon**2))).astype(kernels.dtype)


def filter_each(features: Float[Array, "b h w i"], kernels: Float[Array, "b s s i o"]) -> Float[Array, "b h w o"]:
    """Convolve every map with its own kernel: Y[b, h, w] = Σ_{u, v} x[b, h + u − c, w + v − c] K[b, u, v], 0 outside.

    One example after the other: a grouped convolution, which says the same, is slow in XLA on CPUs, and its gradient
    a hundred times slower. 32 maps of 16 × 16 × 32 and kernels of 3 × 3, forward and with the gradient, milliseconds
    of one thread: so 3.0 and 9.3; patches and one product an example 4.6 and 12; nine products of moved maps 4.0 and
    11; PyTorch's grouped convolution 2.6 and 9.3. Gradients are by reverse mode only where s > 1.

    >>> import jax.numpy as jnp
    >>> maps = jnp.ones((2, 3, 3, 1))
    >>> kernels = jnp.stack([jnp.ones((3, 3, 1, 1)), jnp.zeros((3, 3, 1, 1))])
    >>> filter_each(maps, kernels)[:, 1].sum((1, 2)).tolist()
    [21.0, 0.0]
    """
    batch, height, width, inputs = features.shape
    count, side, other, of_kernel, outputs = kernels.shape
    if count != batch or side != other or side % 2 == 0 or of_kernel != inputs:
        raise ValueError(
            f"filter_each: kernels must be [{batch}, s, s, {inputs}, outputs] with s odd, for features "
            f"{list(features.shape)}; got {list(kernels.shape)}."
        )
    if side == 1:
        rows = features.reshape(batch, height * width, inputs)
        return (rows @ kernels.reshape(batch, inputs, outputs)).reshape(batch, height, width, outputs)
    return jax.lax.map(lambda pair: convolve(pair[0][None], pair[1])[0], (features, kernels))


class LanguageFilter(AbstractModulation):
    """A filter for every example, made of its phrase: language decides what the feature map is searched for.

    With r the phrase's vector, k reshaped to [s, s, channels, channels] and ∗ a convolution with zeros outside::

        k = W dropout(r) + b,    k ← k / ‖k‖₂ along the output channels,    f(F) = F ∗ k

    (Kesen et al., ICLR 2021 submission, section 3). The scale of W and b together changes nothing.

    key: of the initial weights. channels: of the features. text_size: numbers of the phrase's vector.
    kernel_size: s, odd; 1 in the authors' configuration.
    dropout: share of r that is set to 0 while training, in [0, 1); 0.1 is the authors'.
    megabytes: refuse weights larger than this: they number text_size · channels² · s².

    >>> import jax, jax.numpy as jnp
    >>> filters = LanguageFilter(jax.random.key(0), channels=8, text_size=5, kernel_size=3)
    >>> filters(jnp.ones((2, 6, 7, 8)), jnp.ones((2, 5))).shape
    (2, 6, 7, 8)
    """

    weight: Float[Array, "d k"]
    bias: Float[Array, " k"]
    dropout: float | Array
    channels: int = eqx.field(static=True)
    kernel_size: int = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        channels: int,
        text_size: int,
        *,
        kernel_size: int = 1,
        dropout: float | Array = 0.1,
        megabytes: float = 1024.0,
    ):
        _check_sizes("LanguageFilter", channels, text_size)
        require("LanguageFilter", "kernel_size", "odd and >= 1", kernel_size, lambda s: s >= 1 and s % 2 == 1)
        require("LanguageFilter", "dropout", "in [0, 1)", dropout, lambda p: 0 <= p < 1)
        numbers = kernel_size**2 * channels**2
        remedy = "Use fewer channels, a smaller kernel or a shorter text vector, or raise megabytes."
        size = 4 * (text_size + 1) * numbers / MEGABYTE
        require("LanguageFilter", "megabytes", f">= {size:.1f}, its weights", megabytes, lambda m: m >= size, remedy)
        self.weight, self.bias = _linear(key, text_size, numbers)
        self.dropout, self.channels, self.kernel_size = dropout, channels, kernel_size

    def kernels(self, text: Float[Array, "b d"], *, key: Key[Array, ""] | None = None) -> Float[Array, "b s s c c"]:
        """The filters of these phrases, [batch, s, s, inputs, outputs], normalised."""
        raw = _dropped(text, self.dropout, key) @ self.weight + self.bias
        return normalise_kernels(raw.reshape(-1, *(self.kernel_size,) * 2, *(self.channels,) * 2))

    def __call__(self, features: Features, text: Float[Array, "b d"], *, key: Key[Array, ""] | None = None) -> Features:
        """f(F) for every example; ``key`` for dropout while training."""
        _check_call("LanguageFilter", features, text, self.channels, self.weight.shape[0])
        return filter_each(features, self.kernels(text, key=key))


class FiLM(AbstractModulation):
    """A scale and a shift for every channel, made of the phrase: f(F) = (1 + γ(r)) F + β(r) (Perez et al., AAAI 2018).

    The authors' code has an option for it without the 1.

    key, channels, text_size, dropout: as for `LanguageFilter`.
    hidden: None: γ and β are linear in r; a number: by way of so many ReLU units; "matched": of as many as make its
        weights as numerous as those of a `LanguageFilter` with kernels of kernel_size.
    kernel_size: for "matched" alone.

    >>> import jax, jax.numpy as jnp
    >>> film = FiLM(jax.random.key(0), channels=8, text_size=5)
    >>> film(jnp.ones((2, 6, 7, 8)), jnp.ones((2, 5))).shape
    (2, 6, 7, 8)
    """

    layers: tuple[tuple[Array, Array], ...]
    dropout: float | Array
    channels: int = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        channels: int,
        text_size: int,
        *,
        hidden: int | Literal["matched"] | None = None,
        kernel_size: int = 1,
        dropout: float | Array = 0.1,
    ):
        _check_sizes("FiLM", channels, text_size)
        require("FiLM", "dropout", "in [0, 1)", dropout, lambda p: 0 <= p < 1)
        room = (text_size + 1) * (kernel_size * channels) ** 2
        self.layers = _perceptron("FiLM", key, text_size, 2 * channels, hidden, room)
        self.dropout, self.channels = dropout, channels

    def __call__(self, features: Features, text: Float[Array, "b d"], *, key: Key[Array, ""] | None = None) -> Features:
        """Scaled and shifted features; ``key`` for dropout while training."""
        _check_call("FiLM", features, text, self.channels, self.layers[0][0].shape[0])
        gamma, beta = jnp.split(_apply(self.layers, _dropped(text, self.dropout, key)), 2, axis=-1)
        return (1 + gamma[:, None, None]) * features + beta[:, None, None]


class Concatenation(AbstractModulation):
    """The phrase beside every position, mixed by a 1 × 1 convolution: f(F) = A F + B h(r) + b, as in Hu et al. (2016).

    The arguments are those of `FiLM`; h is the identity without hidden units.

    >>> import jax, jax.numpy as jnp
    >>> beside = Concatenation(jax.random.key(0), channels=8, text_size=5, hidden="matched")
    >>> beside(jnp.ones((2, 6, 7, 8)), jnp.ones((2, 5))).shape
    (2, 6, 7, 8)
    """

    mix: Float[Array, "c c"]
    layers: tuple[tuple[Array, Array], ...]
    dropout: float | Array
    channels: int = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        channels: int,
        text_size: int,
        *,
        hidden: int | Literal["matched"] | None = None,
        kernel_size: int = 1,
        dropout: float | Array = 0.1,
    ):
        _check_sizes("Concatenation", channels, text_size)
        require("Concatenation", "dropout", "in [0, 1)", dropout, lambda p: 0 <= p < 1)
        mix_key, text_key = jax.random.split(key)
        room = (text_size + 1) * (kernel_size * channels) ** 2 - channels**2
        self.mix = jax.random.normal(mix_key, (channels, channels)) / math.sqrt(channels)
        self.layers = _perceptron("Concatenation", text_key, text_size, channels, hidden, room)
        self.dropout, self.channels = dropout, channels

    def __call__(self, features: Features, text: Float[Array, "b d"], *, key: Key[Array, ""] | None = None) -> Features:
        """Features and phrase, mixed; ``key`` for dropout while training."""
        _check_call("Concatenation", features, text, self.channels, self.layers[0][0].shape[0])
        return features @ self.mix + _apply(self.layers, _dropped(text, self.dropout, key))[:, None, None]


def _check_sizes(owner: str, channels: int, text_size: int) -> None:
    require(owner, "channels", ">= 1", channels, lambda c: c >= 1)
    require(owner, "text_size", ">= 1", text_size, lambda d: d >= 1)


def _check_call(owner: str, features: Array, text: Array, channels: int, text_size: int) -> None:
    rule = f"[batch, height, width, {channels}], channels last"
    require(owner, "features", rule, features.shape, lambda shape: len(shape) == 4 and shape[-1] == channels)
    rule = f"[{features.shape[0]}, {text_size}], a row an example"
    require(owner, "text", rule, text.shape, lambda shape: shape == (features.shape[0], text_size))


def _dropped(text: Array, share: float | Array, key: Key[Array, ""] | None) -> Array:
    if key is None:
        return text
    share = jax.lax.stop_gradient(jnp.asarray(share, text.dtype))  # a setting, never trained
    return jnp.where(jax.random.bernoulli(key, 1 - share, text.shape), text / (1 - share), 0.0)


def _linear(key: Key[Array, ""], inputs: int, outputs: int) -> tuple[Array, Array]:
    """Uniform in ±1/√inputs, weights and bias alike, as PyTorch's; one draw dealt out."""
    drawn = jax.random.uniform(key, (inputs + 1, outputs), minval=-1.0, maxval=1.0) / math.sqrt(inputs)
    return drawn[:-1], drawn[-1]


def _perceptron(
    owner: str, key: Key[Array, ""], inputs: int, outputs: int, hidden: int | str | None, room: int
) -> tuple[tuple[Array, Array], ...]:
    rule = "None, 'matched' or an integer >= 1"
    require(owner, "hidden", rule, hidden, lambda h: h in (None, "matched") or (isinstance(h, int) and h >= 1))
    if hidden is None:
        return (_linear(key, inputs, outputs),)
    # (inputs + 1) h + (h + 1) outputs = room
    units = max(1, round((room - outputs) / (inputs + 1 + outputs))) if hidden == "matched" else int(hidden)
    first, second = jax.random.split(key)
    return _linear(first, inputs, units), _linear(second, units, outputs)


def _apply(layers: tuple[tuple[Array, Array], ...], values: Array) -> Array:
    for number, (weight, bias) in enumerate(layers):
        values = (jax.nn.relu(values) if number else values) @ weight + bias
    return values
