"""Which results are shown of all that are stored: read without NumPy, so that a search answers before it is loaded."""

import contextlib
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from laureate.lab.cell import DEFAULT_PROBLEM
from laureate.lab.judging.results import Result
from laureate.lab.storing.schema import RANK, SEEDS

__all__ = ["read_shown", "shown"]

# The inner questions read the index alone.
QUESTION = f"""
SELECT v.claim, v.problem, v.data, runs.id AS run, runs.started FROM (
    SELECT claim, problem, (
        SELECT run FROM verdicts AS mine WHERE mine.claim = every.claim AND mine.problem = every.problem
        ORDER BY {RANK} DESC, {SEEDS} DESC, run DESC LIMIT 1
    ) AS run FROM (
        SELECT DISTINCT claim, problem FROM verdicts
        WHERE ?1 IS NULL OR claim IN (SELECT value FROM json_each(?1))
    ) AS every
) AS best CROSS JOIN verdicts AS v ON v.run = best.run AND v.claim = best.claim JOIN runs ON runs.id = v.run
"""


def shown(db: sqlite3.Connection, claims: Iterable[str] | None = None) -> dict[tuple[str, str], Result]:
    """(claim id, problem) -> the result of the largest scale, then the most seeds, then the newest; of these claims."""
    rows = db.execute(QUESTION, (None if claims is None else json.dumps(list(claims)),))
    return {
        (claim, problem): Result.from_json(json.loads(data) | {"id": claim, "run": run, "started": started})
        for claim, problem, data, run, started in rows
    }


def read_shown(path: Path) -> dict[str, Result]:
    """Claim id -> what is shown of it on the paper's own problem; empty where nothing was run, or cannot be read."""
    if not path.exists():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)) as db:
            return {claim: result for (claim, problem), result in shown(db).items() if problem == DEFAULT_PROBLEM}
    except (sqlite3.DatabaseError, ValueError):
        return {}
