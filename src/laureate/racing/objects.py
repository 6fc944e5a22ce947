"""Problems that were made in this process, by name: a cell refers to its problem by a name, and these have no file."""

import itertools
from typing import Any

__all__ = ["hold", "is_held"]

_held: dict[str, Any] = {}
_numbers = itertools.count()


def hold(problem: Any) -> str:
    """A reference to the object, ``module:name``, good within this process."""
    name = f"problem_{next(_numbers)}"
    _held[name] = problem
    return f"{__name__}:{name}"


def is_held(reference: str) -> bool:
    """Whether a reference is to such an object."""
    return reference.startswith(f"{__name__}:")


def __getattr__(name: str) -> Any:
    try:
        return _held[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
