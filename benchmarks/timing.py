"""How we time (``laureate.lab.running.timing``), and how rows are printed."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from laureate.lab.running.timing import compare, seconds_of

__all__ = ["compare", "print_rows", "seconds_of"]


def print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """A table, or with ``--json`` on the command line a JSON list."""
    rows = list(rows)
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=2, default=float))
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_text(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(columns)]
    for line in (columns, *cells):
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
