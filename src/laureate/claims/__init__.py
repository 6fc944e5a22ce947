"""One file a paper: what it says, the arms, the scales and how each claim is judged, written down before it is run.

A paper's id is its file's name with dashes: ``gibbs_with_gradients.py`` holds ``PAPER`` with the id
``gibbs-with-gradients``. There is no other register; a new file is found by being there.
"""

import importlib
import pkgutil

from laureate.lab.claim import Paper

__all__ = ["all_papers", "paper", "paper_ids"]


def paper_ids() -> list[str]:
    """The ids of all papers that run here, in alphabetical order."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def paper(paper_id: str) -> Paper:
    """The paper of that id; ``KeyError`` where there is none."""
    if paper_id not in paper_ids():
        raise KeyError(paper_id)
    return importlib.import_module(f"{__name__}.{paper_id.replace('-', '_')}").PAPER


def all_papers() -> list[Paper]:
    """Every paper that runs here."""
    return [paper(paper_id) for paper_id in paper_ids()]
