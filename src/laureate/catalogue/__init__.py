"""The catalogue: papers found by the problem they solve, offline.

873 papers ship with the package (``papers.jsonl``: facts, and our own words for what each is good for); the user's own
imports join them. Nothing here loads jax, numpy or scipy.

>>> from laureate.catalogue import entries
>>> next(entry.title for entry in entries() if entry.id == "rnd")
'Exploration by Random Network Distillation'
"""

from laureate.catalogue.entry import COSTS, KINDS, TOPICS, Entry, entries
from laureate.catalogue.search import Catalogue, Hit, Result

__all__ = ["COSTS", "KINDS", "TOPICS", "Catalogue", "Entry", "Hit", "Result", "entries"]
