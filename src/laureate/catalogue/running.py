"""What of the catalogue runs here: a paper of the same id with claims, and their last verdicts on this machine.

The store is read with one question of our own, because its class loads NumPy and a search should answer before that is
done; a test holds the two together.
"""

import contextlib
import json
import sqlite3
from typing import Any

from laureate import papers
from laureate.lab.storing.home import store_path

__all__ = ["claims_of", "latest_verdicts", "running_ids"]

# The inner question reads an index alone: a store of many runs costs no look at their old verdicts.
_LATEST = """
SELECT v.claim, v.data, v.run FROM
    (SELECT claim, max(run) AS run FROM verdicts WHERE problem = 'default' GROUP BY claim) AS newest
    CROSS JOIN verdicts AS v ON v.run = newest.run AND v.claim = newest.claim
"""


def running_ids() -> list[str]:
    """Ids of the papers whose claims can be measured here."""
    return papers.paper_ids()


def latest_verdicts() -> dict[str, dict[str, Any]]:
    """Claim id -> its newest verdict on the paper's own problem; empty where nothing was run or read."""
    path = store_path()
    if not path.exists():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)) as db:
            return {claim: json.loads(data) | {"run": run} for claim, data, run in db.execute(_LATEST)}
    except sqlite3.DatabaseError:
        return {}


def claims_of(paper_id: str, verdicts: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The claims of a paper that runs here, each with its verdict; questions left out."""
    if paper_id not in papers.paper_ids():
        return []
    found = []
    for claim in papers.paper(paper_id).claims:
        if claim.kind != "question":
            claim_id = f"{paper_id}/{claim.name}"
            told = verdicts.get(claim_id, {})
            facts = {name: told.get(name) for name in ("effect", "low", "high", "scale", "seeds", "run")}
            found.append(
                {"id": claim_id, "statement": claim.statement, "verdict": told.get("verdict", "not run")} | facts
            )
    return found
