"""From the observations of a paper's experiments to typed results: the one place where results are made."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from laureate.lab.cell import DEFAULT_PROBLEM
from laureate.lab.claim import Claim, Experiment, Paper
from laureate.lab.judging.evidence import Arms, Draft, answers, draft, measure
from laureate.lab.judging.results import ClaimResult, QuestionResult, Result, not_run
from laureate.lab.judging.verdict import decide

__all__ = ["Observed", "judge"]

WALL_OVER_CPU = "wall_over_cpu"  # the metric of trials that read a clock


@dataclass(frozen=True)
class Observed:
    """What was measured of one experiment, for those of its claims that are to be decided.

    arms: arm -> metric -> array with the seeds first; an arm that failed is not there.
    seconds: of computing, by arm.
    looks: claim -> with which other numbers of seeds it was judged before.
    """

    experiment: Experiment
    claims: tuple[Claim, ...]
    arms: Arms
    seconds: Mapping[str, float]
    looks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def judge(paper: Paper, observed: Sequence[Observed], **circumstances: Any) -> list[Result]:
    """The result of every claim, with Holm over all the claims of the paper, and the tables that answer questions.

    On a user's own problem the family is what was run: most of a paper's claims are about problems of its own.

    circumstances: ``scale``, ``problem``, ``machine`` and ``run``, as in ``Result``.
    """
    drafts: dict[str, Draft] = {}
    results: dict[str, Result] = {}
    for one in observed:
        scale = one.experiment.scales.get(circumstances.get("scale", ""))
        facts = circumstances | {"declared_seeds": scale.seeds if scale else 0}
        for claim in one.claims:
            needed = set(one.experiment.arms_of(claim))
            seconds = round(sum(one.seconds.get(arm, 0.0) for arm in needed), 3)
            missing = sorted(needed - set(one.arms))
            # A question is answered by the arms that are there.
            undecided = [] if claim.is_question and one.arms else missing
            reason = f"failed: {', '.join(undecided)}" if undecided else ""
            result = not_run(paper, one.experiment, claim, reason, seconds=seconds, **facts)
            results[claim.name] = result if undecided else _weighed(claim, one, result)
            if not undecided and not claim.is_question:
                guards = [guard.at(scale) for guard in one.experiment.guards] if scale else ()
                drafts[claim.name] = draft(claim, one.arms, guards, one.looks.get(claim.name, ()))
    own = circumstances.get("problem", DEFAULT_PROBLEM) != DEFAULT_PROBLEM
    tested = [claim for one in observed for claim in one.claims] if own else paper.claims
    family = sum(not claim.is_question for claim in tested)
    whose = "of this run" if own else "in the paper"
    for name, verdict in zip(drafts, decide(list(drafts.values()), family, whose), strict=True):
        results[name] = replace(results[name], **vars(verdict))
    return list(results.values())


def _weighed(claim: Claim, observed: Observed, result: ClaimResult | QuestionResult) -> Result:
    if isinstance(result, QuestionResult):
        table = answers(claim, observed.arms)
        return replace(result, answers=table, seeds=max(row.seeds for row in table))
    return replace(result, measured=measure(claim, observed.arms), busy=_busy(claim, observed))


def _busy(claim: Claim, observed: Observed) -> float:
    """How many times longer the wall's clock ran than the CPU's, in the worst seed; NaN where no trial says it."""
    arms = [observed.arms.get(arm, {}) for arm in observed.experiment.arms_of(claim)]
    return float(max((np.max(arm[WALL_OVER_CPU]) for arm in arms if WALL_OVER_CPU in arm), default=math.nan))
