"""Which classes the rows of a contract are about: what stands in no row is found to have none."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx


def of_rows(test: str, rows: Mapping[str, Any], kind: Callable[[Any], type] = type) -> dict[str, set[type]]:
    """The class that each row of a parametrised test is about, by the test's name.

    >>> found = of_rows("test_layer", {"a": (eqx.nn.Identity(), 1)}, lambda row: type(row[0]))
    >>> found == {"test_layer[a]": {eqx.nn.Identity}}
    True
    """
    return {f"{test}[{name}]": {kind(row)} for name, row in rows.items()}


def types_in(*rows: Any) -> tuple[set[type], set[type]]:
    """The classes of the modules among these, each of which is a row, and of the modules inside them, which are not.

    >>> rows, inside = types_in({"a": (eqx.nn.Identity(), 1)}, eqx.nn.Lambda(eqx.nn.Lambda(eqx.nn.Identity())))
    >>> sorted(kind.__name__ for kind in rows), sorted(kind.__name__ for kind in inside)
    (['Identity', 'Lambda'], ['Identity', 'Lambda'])
    >>> types_in(eqx.nn.Lambda(eqx.nn.Identity()))[1] == {eqx.nn.Identity}
    True
    """
    found: set[type] = set()
    inside: set[type] = set()
    for row in rows:
        if isinstance(row, eqx.Module):
            found.add(type(row))
            inside = inside.union(*types_in(*vars(row).values()))
        elif isinstance(row, Mapping | list | tuple):
            of, within = types_in(*(row.values() if isinstance(row, Mapping) else row))
            found, inside = found | of, inside | within
    return found, inside
