"""The name under which an earlier Laureate kept a cell whose numbers are the same, so that its store is not lost.

Up to version 0.1 a fingerprint held the text of every file that a trial could import. ``predecessors.json`` has, for
every experiment whose code has not changed since, the hash of those files as they were; with it the old fingerprint is
computed again, for the versions of libraries that are installed here. It therefore finds a cell only where those are
the versions it was computed with, as it was then. A row counts only for the definitions it was written for: a later
change of the method ends it. A user's own problem has no row.

``scripts/predecessors.py`` writes the file.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from laureate.lab.running.definitions import program
from laureate.lab.running.fingerprint import SETTINGS, installed_versions

__all__ = ["TABLE", "predecessor"]

TABLE = Path(__file__).with_name("predecessors.json")


def predecessor(configuration: Mapping[str, Any], references: tuple[str, ...]) -> str:
    """The old fingerprint of a cell with this configuration; empty where there is none."""
    table = _table()
    row = table["experiments"].get(f"{configuration['paper']}/{configuration['experiment']}")
    if row is None or row["definitions"] != program((*references, SETTINGS)).hash:
        return ""
    depended_on = {
        "protocol": table["protocol"],
        "configuration": dict(configuration) | {"trial": row["trial"], "problem": row["problem"]},
        "sources": row["sources"],
        "versions": installed_versions(tuple(table["libraries"])) | {"laureate": table["laureate"]},
    }
    return hashlib.sha256(json.dumps(depended_on, sort_keys=True).encode()).hexdigest()


@cache
def _table() -> dict[str, Any]:
    return json.loads(TABLE.read_text("utf-8"))
