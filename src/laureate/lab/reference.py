"""Verdicts that ship: what we measured ourselves, so that a fresh board is not empty.

Each folder of a paper may hold ``reference.jsonl``: one result a line, as it stood in our store, with the machine, the
versions, the scale and the day (``scripts/board.py --reference STORE`` writes it). They are marked as a reference
wherever they are shown, and what is measured here takes their place. A line whose claim has been declared anew since
(its digest is not the last one of the paper's ledger) is not shown: it would be about another claim.

Beside it may lie ``films.jsonl``: what a paper's page shows moving, one arm a line, recorded by ``scripts/films.py``.

Read without NumPy, so that a search answers before it is loaded.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from laureate.lab.claim import Paper
from laureate.lab.judging.results import ClaimResult, Result

__all__ = ["film_panels", "line_of", "path_of", "reference", "with_reference"]

# What a declaration says already, or says nothing about this result.
LEFT_OUT = ("statement", "source", "data", "over", "unit", "role", "reported", "problem", "run", "paper", "reference")
DIGITS = 5


def path_of(paper_id: str) -> Path:
    """Where the reference of a paper lies."""
    return Path(__file__).parents[1] / "papers" / paper_id.replace("-", "_") / "reference.jsonl"


def line_of(result: Result, digest: str, versions: str) -> str:
    """A result as it stands in the file; empty where it was not run."""
    if isinstance(result, ClaimResult) and result.verdict == "not run":
        return ""
    record = {name: value for name, value in result.to_json().items() if name not in LEFT_OUT}
    kept = {name: _short(value) for name, value in record.items() if _says(value)}
    return json.dumps(kept | {"digest": digest, "versions": versions}, ensure_ascii=False)


def _says(value: Any) -> bool:
    """Whether it is more than a field's default; a measured 0.0 is, a count of 0 is not."""
    return isinstance(value, float) or value not in (None, "", [], 0)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) and math.isfinite(value) else value


@cache
def _lines(path: Path) -> tuple[dict[str, Any], ...]:
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return tuple(json.loads(line) for line in lines)


def reference(paper: Paper) -> dict[str, Result]:
    """Claim id -> our result of it, for claims that are declared as they were when it was measured."""
    lines = _lines(path_of(paper.id))
    if not lines:
        return {}
    today = {entry["claim"]: entry["digest"] for entry in _lines(path_of(paper.id).with_name("ledger.jsonl"))}
    statements = {claim.name: claim.statement for claim in paper.claims}
    found = {}
    for line in lines:
        name = line["id"].partition("/")[2]
        if name in statements and line["digest"] == today.get(name):
            found[line["id"]] = Result.from_json(line | {"reference": True, "statement": statements[name]})
    return found


def with_reference(paper: Paper, found: Mapping[str, Result]) -> dict[str, Result]:
    """What was found here, and our reference where nothing was measured; an attempt that failed hides nothing."""
    failed = {
        id: result for id, result in found.items() if isinstance(result, ClaimResult) and result.verdict == "not run"
    }
    return {**failed, **reference(paper), **{id: result for id, result in found.items() if id not in failed}}


def film_panels(paper: Paper) -> dict[str, list[dict[str, Any]]]:
    """Film -> what was recorded of its arms, in their order; films of which an arm is missing are left out.

    A panel has the ``arm``, its ``scene`` in plain values (``laureate.loops.plain_scene``), what it ``said``, the
    ``seed`` and ``scale``, the ``day`` and the ``versions``.
    """
    lines = {(line["film"], line["arm"]): line for line in _lines(path_of(paper.id).with_name("films.jsonl"))}
    films = {film.name: [lines.get((film.name, arm)) for arm in film.arms] for film in paper.films}
    return {name: [panel for panel in panels if panel] for name, panels in films.items() if all(panels)}
