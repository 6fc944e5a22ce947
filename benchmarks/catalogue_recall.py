"""How often a right paper comes first, among five, among ten: questions of tests/catalogue/queries.jsonl.

    python benchmarks/catalogue_recall.py [--misses]

`tune`: what fields, weights and synonyms were chosen on. `held`: written after that from papers not looked at before,
in words of people with a problem; its first measurement, before anything was changed for it, was 0.857, 0.986 and 1.000
(questions that put a problem: 0.870, 0.981, 1.000). Right answers were given before the search was seen, except for
seven papers added to six questions of `tune` after reading that they solve the problem just as well.
"""

import json
import sqlite3
import sys
from collections import defaultdict
from pathlib import Path

from laureate.catalogue import Catalogue, entries, index

QUERIES = Path(__file__).parents[1] / "tests" / "catalogue" / "queries.jsonl"


def main(misses: bool = False) -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    index.build(db, entries(), "benchmark")
    catalogue = Catalogue(db)
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for line in QUERIES.read_text("utf-8").splitlines():
        query = json.loads(line)
        found = [hit.entry.id for hit in catalogue.search(query["question"], limit=10).hits]
        rank = next((rank for rank, paper_id in enumerate(found) if paper_id in query["right"]), 99)
        for half in (query["set"], "both"):
            places[half, query["kind"]].append(rank)
            places[half, "all"].append(rank)
        if misses and rank:
            print(f"{rank:>3}  {query['question']}\n     found {found[:3]}, right {query['right'][:3]}")
    print(f"{'questions':<18} {'n':>4}  recall at 1, 5, 10")
    for (half, kind), ranks in sorted(places.items()):
        at = "  ".join(f"{sum(rank < most for rank in ranks) / len(ranks):.3f}" for most in (1, 5, 10))
        print(f"{half:<6} {kind:<11} {len(ranks):>4}  {at}")


if __name__ == "__main__":
    main("--misses" in sys.argv)
