"""One folder a paper: what it says, the arms, the scales and how each claim is judged, and the trials that compute.

====================  =================================================================================
``about.py``          ``PAPER``: the problem, the idea, the equation, an example, and its experiments
``experiments*.py``   the experiments with their claims; data only
``trials*.py``        the pure functions that compute, loaded in the worker alone
``ledger.jsonl``      when each claim was declared and changed, and why; lines are only added
``reference.jsonl``   what we measured of it, shown where nothing was measured yet (``laureate.lab.reference``)
``speed.py``          ``COMPARISONS``: what ``laureate bench`` times beside peers
====================  =================================================================================

A paper's id is its folder's name with dashes: ``gibbs_with_gradients/`` holds ``gibbs-with-gradients``. There is no
other register; a new folder is found by being there. Title, authors, venue and award come from the catalogue.
"""

import dataclasses
import importlib
from functools import cache
from pathlib import Path

from laureate.catalogue.entry import entry_by_id
from laureate.lab.claim import Paper

__all__ = ["all_papers", "comparisons_of", "paper", "paper_ids"]


def paper_ids() -> list[str]:
    """The ids of all papers that run here, in alphabetical order."""
    return sorted(about.parent.name.replace("_", "-") for about in Path(__file__).parent.glob("*/about.py"))


@cache
def paper(paper_id: str) -> Paper:
    """The paper of that id with its facts from the catalogue; ``KeyError`` where there is none."""
    if paper_id not in paper_ids():
        raise KeyError(paper_id)
    declared: Paper = importlib.import_module(f"{__name__}.{paper_id.replace('-', '_')}.about").PAPER
    entry = entry_by_id(paper_id)
    facts = {name: getattr(entry, name) for name in ("title", "authors", "year", "award", "url")}
    return dataclasses.replace(declared, venue=entry.venue.removesuffix(f" {entry.year}"), **facts)


def comparisons_of(paper_id: str) -> str:
    """Where what is timed beside peers is, by name: it is loaded in a process of its own."""
    return f"{__name__}.{paper_id.replace('-', '_')}.speed:COMPARISONS"


def all_papers() -> list[Paper]:
    """Every paper that runs here."""
    return [paper(paper_id) for paper_id in paper_ids()]
