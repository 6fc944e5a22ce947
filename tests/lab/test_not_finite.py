"""A value that is not finite never becomes a verdict, on a user's own problem and through caps and clips either."""

from pathlib import Path

import numpy as np
import pytest

from laureate.lab.judging.evidence import draft
from laureate.lab.judging.verdict import decide
from laureate.lab.running.plan import Selection, plan
from laureate.lab.running.worker import compute
from laureate.papers import paper

BROKEN = Path(__file__).with_name("broken_problems.py")


@pytest.mark.parametrize(
    ("paper_id", "experiment", "problem", "claims"),
    [
        ("pes", "toy-schedule", "NanUnroll", 1),  # the arms of one claim: each is a program of its own
        pytest.param("pes", "toy-schedule", "NanUnroll", None, marks=pytest.mark.slow),
        pytest.param("pes", "unbiased", "NanUnroll", None, marks=pytest.mark.slow),
        pytest.param("tensor-train-pde", "hjb", "NanPDE", None, marks=pytest.mark.slow),
    ],
)
def test_a_problem_of_nans_decides_nothing(paper_id, experiment, problem, claims):
    about = paper(paper_id)
    (declared,) = [one for one in about.experiments if one.name == experiment]
    decided = [claim for claim in declared.claims if claim.kind != "question"][:claims]
    chosen = declared.claims if claims is None else tuple(decided)
    arms = {}
    for cell in plan([Selection(about, declared, chosen)], "tiny", problem=f"{BROKEN}:{problem}"):
        outcome = compute(cell)
        assert not outcome.error, outcome.error
        arms[cell.arm] = {name: np.repeat(values, 10, axis=0) for name, values in outcome.metrics.items()}
    guards = [guard.at(declared.scales["tiny"]) for guard in declared.guards]
    for claim in decided:
        verdict = decide([draft(claim, arms, guards)], 1)[0]
        assert verdict.verdict == "inconclusive", (claim.name, verdict.reason)
        assert "not finite" in verdict.reason or verdict.guard, verdict.reason
