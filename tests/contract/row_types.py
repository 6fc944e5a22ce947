"""Which classes the rows of a contract are made of: what stands in no row is found to have none."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx


def types_in(*rows: Any) -> set[type]:
    """The classes of the modules among these and of all modules inside them.

    >>> sorted(kind.__name__ for kind in types_in({"a": (eqx.nn.Identity(), 1)}, eqx.nn.Lambda(eqx.nn.Identity())))
    ['Identity', 'Lambda']
    """
    found: set[type] = set()
    for row in rows:
        if isinstance(row, eqx.Module):
            found |= {type(row)} | types_in(*vars(row).values())
        elif isinstance(row, Mapping):
            found |= types_in(*row.values())
        elif isinstance(row, list | tuple):
            found |= types_in(*row)
    return found
