"""Search over 100,000 papers: time a question, time to build the index, memory, size on disk.

    python benchmarks/catalogue_search.py [PAPERS]

The papers are made from the shipped ones: words of one entry and abstracts mixed of several, so that common words are
as common as in real listings. The bar is 50 ms a question.
"""

import dataclasses
import json
import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from laureate.catalogue import Catalogue, Entry, entries, index

QUERIES = Path(__file__).parents[1] / "tests" / "catalogue" / "queries.jsonl"


def papers(count: int) -> Iterator[Entry]:
    draw = random.Random(0)
    shipped = entries()
    yield from shipped
    for number in range(len(shipped), count):
        first, *others = draw.sample(shipped, 4)
        mixed = " ".join(text for other in others for text in (other.problem, other.does, " ".join(other.terms)))
        words = first.title.split()
        draw.shuffle(words)
        yield dataclasses.replace(
            first,
            id=f"{first.id}-{number}",
            title=" ".join(words),
            name="",
            award="",
            problem="",
            does="",
            demo="",
            asks=(),
            terms=(),
            abstract=f"{mixed} widget{number % 50_000}",
        )


def main(count: int = 100_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.sqlite"
        db = sqlite3.connect(path, isolation_level=None)
        start, cpu = time.perf_counter(), time.process_time()
        index.build(db, papers(count), "benchmark")
        print(f"index of {count:,} papers: {time.perf_counter() - start:.1f} s (CPU {time.process_time() - cpu:.1f} s)")
        print(f"on disk: {path.stat().st_size / 2**20:.0f} MiB")
        print(f"memory, largest while building: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")
        catalogue = Catalogue(db)
        questions = [json.loads(line)["question"] for line in QUERIES.read_text("utf-8").splitlines()]
        walls, cpus = [], []
        for question in questions:
            start, cpu = time.perf_counter(), time.process_time()
            catalogue.search(question)
            walls.append(1e3 * (time.perf_counter() - start))
            cpus.append(1e3 * (time.process_time() - cpu))
        for name, values in (("wall", sorted(walls)), ("CPU", sorted(cpus))):
            median, late, worst = values[len(values) // 2], values[int(0.95 * len(values))], values[-1]
            print(f"a question, {name}: median {median:.1f} ms, 95 % below {late:.1f} ms, worst {worst:.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
