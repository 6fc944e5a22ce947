"""Phrases as numbers: a vocabulary on the host, and a recurrent encoder whose last state is the phrase's vector."""

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from laureate._core import require

__all__ = ["PhraseEncoder", "Tokens", "Vocabulary"]


class Tokens(NamedTuple):
    """Phrases as numbers. words: [n, max_words], 0 behind the end. lengths: [n], at least 1."""

    words: np.ndarray
    lengths: np.ndarray


class Vocabulary:
    """The words that are known, by number: 0 is padding and 1 stands for all others.

    words: in any order, lower case; they are sorted. max_words: more words in a phrase are an error, never cut off.

    >>> vocabulary = Vocabulary.of(["the red square", "the blue one"])
    >>> vocabulary.encode(["the blue square"]).words.tolist()
    [[6, 2, 5, 0]]
    """

    def __init__(self, words: Iterable[str], max_words: int = 16):
        self.words = ("<pad>", "<unk>", *sorted(set(words)))
        require("Vocabulary", "words", "one or more", list(words), lambda w: len(self.words) > 2)
        require("Vocabulary", "max_words", ">= 1", max_words, lambda n: n >= 1)
        self.max_words = max_words
        self._places = {word: place for place, word in enumerate(self.words)}

    @staticmethod
    def of(phrases: Iterable[str], max_words: int | None = None) -> "Vocabulary":
        """Of all words in these phrases; by default ``max_words`` is one more than the longest has."""
        split = [_split(phrase) for phrase in phrases]
        most = 1 + max(map(len, split), default=0) if max_words is None else max_words
        return Vocabulary({word for words in split for word in words}, most)

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, phrases: Sequence[str]) -> Tokens:
        """As numbers, padded; words that are not known become ``<unk>``, with a warning that counts them."""
        require("Vocabulary", "phrases", "a list of strings", type(phrases).__name__, lambda n: n != "str")
        split = [_split(phrase) for phrase in phrases]
        for phrase, words in zip(phrases, split, strict=True):
            require("Vocabulary", "phrase", "at least one word", phrase, lambda _, words=words: len(words) > 0)
            rule, remedy = f"at most {self.max_words} words", "Raise max_words; nothing is cut off."
            require("Vocabulary", "phrase", rule, phrase, lambda _, words=words: len(words) <= self.max_words, remedy)
        unknown = [word for words in split for word in words if word not in self._places]
        if unknown:
            shown = ", ".join(sorted(set(unknown))[:5])
            told = f"Vocabulary: {len(unknown)} words are not known and become <unk>: {shown}"
            warnings.warn(told, UserWarning, stacklevel=2)
        table = np.zeros((len(split), self.max_words), np.int32)
        for row, words in zip(table, split, strict=True):
            row[: len(words)] = [self._places.get(word, 1) for word in words]
        return Tokens(table, np.array([len(words) for words in split], np.int32))


def _split(phrase: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['-][^\W_]+)*", phrase.lower())


class PhraseEncoder(eqx.Module):
    """The last hidden state of an LSTM over a phrase's words, one vector a phrase; padding changes nothing.

    With x_t the embedding of word t and σ the logistic function (Hochreiter and Schmidhuber 1997)::

        i, f, o = σ(W[x_t ; h_{t−1}] + b),    g = tanh(…),    c_t = f c_{t−1} + i g,    h_t = o tanh(c_t)

    key: of the initial weights. num_words: as ``len(vocabulary)``. text_size: numbers of h, the phrase's vector.
    embedding: numbers of x, or an array [num_words, e] of vectors that are known already (and are trained on).

    >>> import jax
    >>> encoder = PhraseEncoder(jax.random.key(0), num_words=7, text_size=4)
    >>> tokens = Vocabulary.of(["the red square", "the blue one"]).encode(["the red one", "the square"])
    >>> encoder(*tokens).shape
    (2, 4)
    """

    embeddings: Float[Array, "n e"]
    weight: Float[Array, "i g"]
    bias: Float[Array, " g"]
    text_size: int = eqx.field(static=True)

    def __init__(self, key: Key[Array, ""], num_words: int, text_size: int, embedding: int | Array = 16):
        require("PhraseEncoder", "num_words", ">= 3", num_words, lambda n: n >= 3)
        require("PhraseEncoder", "text_size", ">= 1", text_size, lambda n: n >= 1)
        known = not isinstance(embedding, int)
        if known:
            rule = f"a size or vectors [{num_words}, e]"
            require(
                "PhraseEncoder", "embedding", rule, np.shape(embedding), lambda s: len(s) == 2 and s[0] == num_words
            )
        else:
            require("PhraseEncoder", "embedding", ">= 1", embedding, lambda e: e >= 1)
        size = embedding.shape[1] if known else embedding
        words_key, weights_key = jax.random.split(key)
        self.embeddings = jnp.asarray(embedding) if known else jax.random.normal(words_key, (num_words, size))
        # Uniform in ±1/√text_size as PyTorch's, but for the gate f, which begins open.
        bound = 1 / math.sqrt(text_size)
        self.weight = jax.random.uniform(weights_key, (size + text_size, 4 * text_size), minval=-bound, maxval=bound)
        self.bias = jnp.zeros(4 * text_size).at[text_size : 2 * text_size].set(1.0)
        self.text_size = text_size

    def __call__(self, words: Int[Array, "b t"], lengths: Int[Array, " b"]) -> Float[Array, "b d"]:
        """One row a phrase."""
        require("PhraseEncoder", "words", "[phrases, places]", np.shape(words), lambda s: len(s) == 2)
        require("PhraseEncoder", "lengths", "one a phrase", np.shape(lengths), lambda s: s == np.shape(words)[:1])
        rule = f"in 1 to {np.shape(words)[1]}"
        require("PhraseEncoder", "lengths", rule, lengths, lambda n: np.all((n >= 1) & (n <= np.shape(words)[1])))
        embedded = self.embeddings[jnp.asarray(words)]
        inputs = embedded @ self.weight[: embedded.shape[-1]] + self.bias  # of all words in one product
        recurrent = self.weight[embedded.shape[-1] :]
        start = jnp.zeros((len(embedded), self.text_size), inputs.dtype)

        def read(state: tuple[Array, Array], place: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
            (hidden, cell), (entering, inside) = state, place
            i, f, o, g = jnp.split(entering + hidden @ recurrent, 4, axis=-1)
            new_cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            new_hidden = jax.nn.sigmoid(o) * jnp.tanh(new_cell)
            return (jnp.where(inside, new_hidden, hidden), jnp.where(inside, new_cell, cell)), None

        inside = jnp.arange(embedded.shape[1])[:, None, None] < jnp.asarray(lengths)[None, :, None]
        (hidden, _), _ = jax.lax.scan(read, (start, start), (inputs.swapaxes(0, 1), inside))
        return hidden
