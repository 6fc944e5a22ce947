"""Laureate: the methods of celebrated machine-learning papers, and their claims re-measured on your machine.

The areas are imported by name (``from laureate.gradients import PersistentES``); nothing is loaded here, so that
``laureate --help`` answers at once. ``laureate.race`` is loaded when it is asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laureate.racing.api import race as race

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "race":
        import importlib

        return importlib.import_module("laureate.racing.api").race
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
