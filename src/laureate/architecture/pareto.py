"""What a selection passes on its way: networks between the supernet and the last one, by cost and by score."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from laureate._core import require
from laureate.architecture.loop import Decision

__all__ = ["ParetoPoint", "hypervolume", "pareto"]


class ParetoPoint(NamedTuple):
    """A snapshot that no other beats in both cost and score.

    cost: as ``cost_fn`` counts it. score: the higher the better. step: after which decision it was taken, from 0.
    """

    cost: float
    score: float
    step: int


def pareto(history: Sequence[Decision], cost_fn: Callable[[np.ndarray], float]) -> tuple[ParetoPoint, ...]:
    """The snapshots for which no other has a higher score at no higher cost, the cheapest first.

    history: of ``select(..., snapshots=True)``, with scores of which the higher is the better.
    cost_fn: of weights ``[edges, ops]``, for example the operations' FLOPs times whether they have any weight.

    >>> from laureate.architecture import PerturbationSelection, Space, select
    >>> import jax
    >>> rule = PerturbationSelection(Space([("skip", "conv3")] * 2), order="fixed")
    >>> found = select(jax.random.key(0), rule, score_fn=lambda w: w[0, 1] + 0.9 * w[1, 1] + w[1, 0], snapshots=True)
    >>> [(point.cost, round(point.score, 2)) for point in pareto(found.history, lambda w: float((w[:, 1] > 0).sum()))]
    [(1.0, 2.0)]
    """
    scored = [(float(cost_fn(step.weights)), step.score, number) for number, step in enumerate(history)]
    remedy = "Ask select for snapshots=True."
    require(
        "pareto", "history", "decisions with scores", history, lambda h: all(d.score is not None for d in h), remedy
    )
    front: list[ParetoPoint] = []
    for cost, score, number in sorted(scored, key=lambda point: (point[0], -point[1])):  # type: ignore[operator]
        if not front or score > front[-1].score:  # type: ignore[operator]
            front.append(ParetoPoint(cost, score, number))  # type: ignore[arg-type]
    return tuple(front)


def hypervolume(points: Sequence[ParetoPoint], cost: float, score: float = 0.0) -> float:
    """The area of costs and scores that the points beat, up to a highest cost and from a lowest score.

    ∫ max(0, best score at no more than c - ``score``) dc  for c in 0..``cost``

    >>> hypervolume([ParetoPoint(1.0, 0.5, 0), ParetoPoint(3.0, 1.0, 1)], cost=4.0)
    2.0
    """
    require("hypervolume", "cost", "> 0", cost, lambda c: c > 0)
    area, best, before = 0.0, 0.0, 0.0
    for point in sorted(points):
        here = min(max(point.cost, 0.0), cost)
        area += best * (here - before)
        before = here
        if point.cost <= cost:
            best = max(best, point.score - score)
    return area + best * (cost - before)
