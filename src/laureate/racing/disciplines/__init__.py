"""The disciplines: one file an area, with ``DISCIPLINE`` in it. There is nothing to register."""

import importlib
import pkgutil
from functools import cache

from laureate.racing.discipline import Discipline

__all__ = ["disciplines"]


@cache
def _found() -> tuple[Discipline, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(importlib.import_module(f"{__name__}.{name}").DISCIPLINE for name in names)


def disciplines() -> list[Discipline]:
    """All of them, by name."""
    return list(_found())
