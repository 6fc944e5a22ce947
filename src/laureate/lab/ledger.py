"""The ledger of a paper: what was declared when, what was changed, why, and whether results had been seen by then.

Each folder of a paper holds ``ledger.jsonl``, to which lines are only ever added: one object a declaration or change of
a claim. ``digest`` says what decides a claim; two declarations with one digest are decided alike. A test fails where a
claim differs from its last line, and another where a line of the history was changed or is gone.

``scripts/ledger.py`` adds lines.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from laureate.lab.claim import Claim, Experiment, Paper
from laureate.lab.judging import DIGEST_RULES
from laureate.lab.judging.guards import applies

__all__ = ["Entry", "digest", "history", "missing", "path_of", "read", "summary"]

Seen = Literal["before", "after"]


@dataclass(frozen=True)
class Entry:
    """One line: a claim was declared, changed or removed.

    date: the day, as 2026-11-16. claim: its name within the paper. digest: of what decides it from then on; empty where
    it was removed. reason: why, in a sentence. results: whether results of this claim had been seen when it was
    written, ``"before"`` them or ``"after"``. where: the commit, or ``"this commit"`` for a line that is part of it.
    """

    date: str
    claim: str
    digest: str
    reason: str
    results: Seen
    where: str

    def __post_init__(self) -> None:
        if self.results not in ("before", "after"):
            raise ValueError(f"Entry.results must be 'before' or 'after'; got {self.results!r}.")
        if not self.reason.strip():
            raise ValueError(f"Entry.reason of {self.claim!r} must say why; got {self.reason!r}.")

    def line(self) -> str:
        """As it stands in the file."""
        return json.dumps(asdict(self), ensure_ascii=False)


def decisive(experiment: Experiment, claim: Claim) -> dict[str, Any]:
    """Everything that decides a claim, as plain values.

    Its test, metric, margin, bounds and arms; the settings and seeds of every scale; trial, problem, data sets, guards;
    the rules of judging up to 2 (later ones: ``judging.RULE_CHANGES``). Not its wording, its role or its place in the
    paper, nor blocks, costs and compilation, nor the settings of the ``tiny`` scale of the tests, which decide nothing.
    (Where data sets differ between scales those of ``tiny`` are in it all the same, as in every digest so far.)
    """
    test = ("kind", "metric", "method", "baseline", "better", "margin", "relative", "against", "at_least", "at_most")
    return {
        "claim": {name: getattr(claim, name) for name in (*test, "trivial")},
        "arms": {name: dict(experiment.arm(name).settings) for name in experiment.arms_of(claim)},
        "scales": {
            name: {"seeds": scale.seeds, "problem": dict(scale.problem), "settings": dict(scale.settings)}
            for name, scale in experiment.scales.items()
            if name != "tiny"
        },
        "experiment": [experiment.name, experiment.trial, experiment.problem, experiment.over_seeds, experiment.x64],
        "data": experiment.data,
        "guards": [asdict(guard) for guard in experiment.guards if applies(guard, claim)],
        "rules": DIGEST_RULES,
    }


def digest(experiment: Experiment, claim: Claim) -> str:
    """Twelve hexadecimal digits of what decides the claim."""
    text = json.dumps(decisive(experiment, claim), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def path_of(paper_id: str) -> Path:
    """Where the paper's ledger lies."""
    return Path(__file__).parents[1] / "papers" / paper_id.replace("-", "_") / "ledger.jsonl"


def read(paper_id: str) -> list[Entry]:
    """All lines of a paper's ledger in order; none where there is no file."""
    path = path_of(paper_id)
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return [Entry(**json.loads(line)) for line in lines]


def history(paper_id: str) -> dict[str, list[Entry]]:
    """The lines of each claim, by its name, the first declaration first."""
    found: dict[str, list[Entry]] = {}
    for entry in read(paper_id):
        found.setdefault(entry.claim, []).append(entry)
    return found


def missing(paper: Paper, entries: Mapping[str, list[Entry]] | None = None) -> dict[str, str]:
    """The claims whose last line is not what they are now, with the digest it should have; empty for what was removed.

    >>> from laureate.papers import paper
    >>> missing(paper("pes"))
    {}
    """
    entries = history(paper.id) if entries is None else entries
    now = {claim.name: digest(experiment, claim) for experiment in paper.experiments for claim in experiment.claims}
    last = {name: lines[-1].digest for name, lines in entries.items()}
    return {name: now.get(name, "") for name in dict.fromkeys((*now, *last)) if now.get(name, "") != last.get(name, "")}


def summary(entries: Iterable[Entry], reasons: bool = True) -> str:
    """A claim's history in a sentence, for the board: "declared 2026-11-16, changed once after a result: …"."""
    first, *changes = entries
    late = [entry for entry in changes if entry.results == "after"]
    words = f"declared {first.date}"
    if first.results == "after":
        words += " after results had been seen" + f" ({first.reason})" * reasons
    early = len(changes) - len(late)
    if early:
        words += f", changed {_times(early)} before any result"
    if late:
        why = f": {'; '.join(entry.reason for entry in late)}" * reasons
        words += f", changed {_times(len(late))} after a result{why}"
    return words


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
