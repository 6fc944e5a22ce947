"""Small models that read a sentence word by word and say a target word for each: recurrent, or with attention.

Each has an encoder, whose states ``[length, units]`` are looked at and changed, and a decoder that reads them.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.problems._training import train_by_adam

__all__ = [
    "AttentionEncoder",
    "Decoder",
    "RecurrentEncoder",
    "Translator",
    "make_translator",
    "nats",
    "train_translator",
]


class RecurrentEncoder(eqx.Module):
    """A gated recurrent unit over the words: h ← (1 − z) h + z tanh(W x + r (U h)), from left to right.

    >>> RecurrentEncoder(jax.random.key(0), 5, 8)(jnp.array([0, 3, 4])).shape
    (3, 8)
    """

    table: Float[Array, "v 3*d"]
    recurrent: Float[Array, "d 3*d"]
    bias: Float[Array, "3*d"]

    def __init__(self, key: Key[Array, ""], words: int, units: int):
        drawn = jax.random.normal(key, (words + units, 3 * units)) / jnp.sqrt(units)
        self.table, self.recurrent = drawn[:words], drawn[words:]
        self.bias = jnp.zeros(3 * units)

    def __call__(self, words: Int[Array, "t"]) -> Float[Array, "t d"]:
        """The state after every word; padding (−1) is read as the first word, and comes last."""
        units = len(self.recurrent)

        def step(h, given):
            past = h @ self.recurrent
            update, reset = jnp.split(jax.nn.sigmoid(given[: 2 * units] + past[: 2 * units]), 2)
            new = jnp.tanh(given[2 * units :] + reset * past[2 * units :])
            h = (1 - update) * h + update * new
            return h, h

        inputs = self.table[jnp.maximum(words, 0)] + self.bias
        return jax.lax.scan(step, jnp.zeros(units), inputs)[1]


class AttentionEncoder(eqx.Module):
    """A transformer with two layers of causal attention, each followed by a perceptron; the last norm is its output.

    key: of the weights.
    words: how many there are.
    units: width of a state.
    length: of the longest sentence.
    layers, heads: of attention.

    >>> AttentionEncoder(jax.random.key(0), 5, 8, 3)(jnp.array([0, 3, 4])).shape
    (3, 8)
    """

    table: Float[Array, "v d"]
    places: Float[Array, "t d"]
    attention: Float[Array, "l 4 d d"]
    inner: Float[Array, "l d 2*d"]
    outer: Float[Array, "l 2*d d"]
    heads: int = eqx.field(static=True)

    def __init__(self, key: Key[Array, ""], words: int, units: int, length: int, layers: int = 2, heads: int = 2):
        rows = words + length + layers * 8 * units
        drawn = jax.random.normal(key, (rows, units))
        self.table, self.places = drawn[:words] * 0.5, drawn[words : words + length] * 0.5
        scaled = drawn[words + length :].reshape(layers, 8, units, units) / jnp.sqrt(units)
        self.attention = scaled[:, :4]
        self.inner = scaled[:, 4:6].transpose(0, 2, 1, 3).reshape(layers, units, 2 * units)
        self.outer = scaled[:, 6:].reshape(layers, 2 * units, units) / jnp.sqrt(2.0)
        self.heads = heads

    def __call__(self, words: Int[Array, "t"]) -> Float[Array, "t d"]:
        """The normed residual stream at every word."""
        length, units = len(words), self.table.shape[1]
        x = self.table[jnp.maximum(words, 0)] + self.places[:length]
        earlier = jnp.tril(jnp.ones((length, length), bool))
        for attention, inner, outer in zip(self.attention, self.inner, self.outer, strict=True):
            query, keys, value = ((_norm(x) @ w).reshape(length, self.heads, -1) for w in attention[:3])
            scores = jnp.einsum("ihd,jhd->hij", query, keys) / jnp.sqrt(units / self.heads)
            weights = jax.nn.softmax(jnp.where(earlier, scores, -1e9))
            x = x + jnp.einsum("hij,jhd->ihd", weights, value).reshape(length, units) @ attention[3]
            x = x + jax.nn.relu(_norm(x) @ inner) @ outer
        return _norm(x)


def _norm(x: Float[Array, "t d"]) -> Float[Array, "t d"]:
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-5)


class Decoder(eqx.Module):
    """A perceptron from the state at a word to logits of its translation.

    key: of the weights.
    units: width of a state.
    hidden: of the perceptron.
    words: how many logits.

    >>> Decoder(jax.random.key(0), 8, 6, 5)(jnp.ones((3, 8))).shape
    (3, 5)
    """

    first: Float[Array, "d k"]
    shift: Float[Array, "k"]
    last: Float[Array, "k v"]
    bias: Float[Array, "v"]

    def __init__(self, key: Key[Array, ""], units: int, hidden: int, words: int):
        drawn = jax.random.normal(key, (hidden, units + words))
        self.first = drawn[:, :units].T * jnp.sqrt(2 / units)
        self.last = drawn[:, units:] / jnp.sqrt(hidden)
        self.shift, self.bias = jnp.zeros(hidden), jnp.zeros(words)

    def __call__(self, states: Float[Array, "... d"]) -> Float[Array, "... v"]:
        """Logits for every state."""
        return jax.nn.relu(states @ self.first + self.shift) @ self.last + self.bias


class Translator(eqx.Module):
    """An encoder and a decoder; what the encoder hands on may be changed.

    >>> model = make_translator(jax.random.key(0), "recurrent", 5, 6, 8, 3)
    >>> model(jnp.array([0, 3, 4])).shape
    (3, 6)
    """

    encoder: RecurrentEncoder | AttentionEncoder
    decoder: Decoder

    def __call__(
        self, words: Int[Array, "t"], intervention: Callable[[Array], Array] = lambda states: states
    ) -> Float[Array, "t v"]:
        """Logits of the translation of every word."""
        return self.decoder(intervention(self.encoder(words)))


def make_translator(
    key: Key[Array, ""], kind: str, num_sources: int, num_targets: int, units: int, length: int
) -> Translator:
    """A translator before training: ``"recurrent"`` or ``"attention"``; the decoder has twice as many hidden units.

    key: of the weights. kind: of the encoder. num_sources, num_targets: words of either language. units: of a state.
    length: of the longest sentence.
    """
    require("make_translator", "kind", "'recurrent' or 'attention'", kind, lambda k: k in ("recurrent", "attention"))
    first, then = jax.random.split(key)
    if kind == "recurrent":
        encoder = RecurrentEncoder(first, num_sources, units)
    else:
        encoder = AttentionEncoder(first, num_sources, units, length)
    return Translator(encoder, Decoder(then, units, 2 * units, num_targets))


def nats(logits: Float[Array, "... v"], targets: Int[Array, "..."]) -> Float[Array, ""]:
    """Mean negative log-likelihood of the target words; padding (−1) does not count."""
    shown = targets >= 0
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.maximum(targets, 0))
    return jnp.sum(jnp.where(shown, losses, 0.0)) / jnp.maximum(jnp.sum(shown), 1)


def train_translator(
    key: Key[Array, ""],
    model: Any,
    sources: Int[Array, "n t"],
    targets: Int[Array, "n t"],
    num_steps: int,
    batch: int = 32,
    learning_rate: float | Array = 0.01,
) -> Any:
    """Cross-entropy by Adam, its rate falling to 0 as a cosine; batches are drawn with replacement.

    key: of the batches. model: a `Translator`. sources, targets: sentences and their translations. num_steps, batch: of
        Adam, and sentences each. learning_rate: the first.
    """

    def loss(model, chosen):
        return nats(jax.vmap(model)(sources[chosen]), targets[chosen])

    return train_by_adam(key, model, loss, len(sources), num_steps, batch, learning_rate)
