"""The disciplines: one file an area, with ``DISCIPLINE`` in it. There is nothing to register."""

import importlib
import pkgutil
from functools import cache

from laureate.racing.discipline import Discipline

__all__ = ["WITHOUT_RACE", "disciplines"]

# Areas in which there is nothing to race, and why.
WITHOUT_RACE = {
    "architecture": "its rules choose from one trained supernet, with nothing to tune: call `select` once with each",
    "grounding": "its ways to let language in are parts of one network that trains for minutes; no budget is shared",
    "interpretation": "erasing units shows whether a ranking of them is right: `ablation_effects`, `rank_agreement`",
    "memory": "one model with three starts: compare `hebbian_weights`, `principal_weights` and `random_weights`",
    "training": "its rules are for early blocks of your own network, to save time: `cost_table` says how much",
}


@cache
def _found() -> tuple[Discipline, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(importlib.import_module(f"{__name__}.{name}").DISCIPLINE for name in names)


def disciplines() -> list[Discipline]:
    """All of them, by name."""
    return list(_found())
