"""What the observations of an experiment say about one claim of it.

Every kind of claim comes down to one or two *sides*: numbers, one a seed, whose centre must be above 0 for the claim
to hold. With x the reported effect of a seed and m the margin:

==================  ==============================================  ==========================  ==================
kind                x                                               sides                       centre
==================  ==============================================  ==========================  ==================
better              baseline - method (lower) or method - baseline  x - m                       mean, sign flips
equal               as for better                                   x + m and m - x             mean, sign flips
trend               slope (higher) or -slope (lower)                x - m                       mean, sign flips
trend with bounds   slope                                           x - at_least, at_most - x   median, signs
bound               the method's metric                             x - at_least, at_most - x   median, signs
==================  ==============================================  ==========================  ==================

Two arms that are the same method can be exchanged within a seed, so for ``better`` without a margin the sign-flip
test of a side keeps its level exactly, whatever the distribution. With a margin, or for a trend, it takes the seeds to
lie symmetrically around their mean.

A metric that is held against a bound is often skewed (an error, a loss), and may be a disaster in one seed of twenty.
Every test of a mean from few seeds is then wrong too often: of log-normal numbers whose mean is just the bound the sign
flips supported "at most" in 16 % of runs of ten seeds, and where 5 % of seeds diverge, in 59 %. So a bound speaks of
the median over seeds and is decided by the exact sign test, which keeps its level for every distribution. What it does
not say is that no seed is worse: the worst one is shown.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from laureate.lab.claim import Claim, Guard
from laureate.lab.judging import statistics
from laureate.lab.judging.guards import held_back
from laureate.lab.judging.results import Answer, Measured
from laureate.lab.judging.statistics import Floats

__all__ = ["Draft", "answers", "draft", "measure", "simulate"]

Arms = Mapping[str, Mapping[str, Any]]

LEVEL = 0.95
EQUAL_LEVEL = 0.90  # two one-sided tests at 5 % are one interval at 90 %
_OF_MEANS = statistics.interval, statistics.sign_flip


@dataclass(frozen=True)
class Draft:
    """What the observations say about one claim, before the other claims of the paper are looked at.

    supports, refutes: the p-values of the claim and of its opposite.
    inside, outside: whether the interval lies wholly on the claim's side, or wholly on the other.
    edge: what an interval that is neither includes, in words.
    fault: why nothing can be decided, in words; empty if it can.
    guard: why it may not be called supported whatever the test says, in words; empty if it may.
    void: the part of ``guard`` for which it may not be called refuted either: what is no measurement decides nothing.
    looks: with which other numbers of seeds it was judged before (``laureate.lab.judging.verdict``).
    centre: what ``effect``, ``low`` and ``high`` are of: the mean over seeds, or their median for bounds.
    """

    claim: Claim
    seeds: int
    test: str
    effect: float = math.nan
    low: float = -math.inf
    high: float = math.inf
    supports: float = 1.0
    refutes: float = 1.0
    inside: bool = False
    outside: bool = False
    effect_size: float = math.nan
    improvement: float = math.nan
    edge: str = ""
    fault: str = ""
    guard: str = ""
    void: str = ""
    looks: tuple[int, ...] = ()
    centre: Literal["mean", "median"] = "mean"


def draft(claim: Claim, arms: Arms, guards: Iterable[Guard] = (), looks: tuple[int, ...] = ()) -> Draft:
    """Weigh one claim (not a question) by its arms: arm -> metric -> array with the seeds on the first axis.

    guards: of the claim's experiment, their grids filled in (``Guard.at``). looks: as in ``Draft``.
    """
    weighed = replace(simulate(claim, [arms])[0], looks=looks)
    if weighed.fault:
        return weighed
    found = held_back(claim, arms, effects(claim, arms), guards, (weighed.low, weighed.high))
    guard, void = ("; ".join(f.words for f in found if f.void or not only) for only in (False, True))
    return replace(weighed, guard=guard, void=void)


def simulate(claim: Claim, experiments: Sequence[Arms]) -> list[Draft]:
    """``draft`` of one claim in many experiments with equally many seeds, vectorised over them.

    For simulations: how often is the claim supported if nothing is there? How many seeds find an effect of this size?
    """
    terms = [_terms(claim, arms) for arms in experiments]
    faults = [_fault(claim, arms, t) for arms, t in zip(experiments, terms, strict=True)]
    sound = np.array([not fault for fault in faults])
    x = np.stack([t.x for t in terms])  # [experiments, seeds]
    sides = np.stack([t.sides for t in terms])  # [experiments, 1 or 2, seeds]
    x, sides = np.where(sound[:, None], x, 0.0), np.where(sound[:, None, None], sides, 0.0)
    number, seeds = sides.shape[1:]

    level = EQUAL_LEVEL if claim.kind == "equal" else LEVEL
    bounded = claim.at_least is not None or claim.at_most is not None
    interval, p_value = (statistics.median_interval, statistics.sign_test) if bounded else _OF_MEANS
    low, high = interval(x, LEVEL)
    shared = number == 1 and np.array_equal(sides[:, 0], x)  # no margin: the side is the effect
    near, far = (low[:, None], high[:, None]) if shared else interval(sides, LEVEL)
    ends = [(LEVEL, near, far)]  # of the intervals of the sides, the narrower first
    if level != LEVEL:
        near, end = interval(sides, level)
        ends.insert(0, (level, near, end))
    supports = p_value(sides).max(-1)
    refutes = np.minimum(1.0, number * p_value(sides, "less").min(-1))
    if bounded:
        effect = np.median(x, axis=-1)
        size, improvement = statistics.effect_size(sides).min(-1), (sides >= 0).all(1).mean(-1)
        how = (
            f"exact one-sided sign test{'s' * (number > 1)} of the median by seed and 95 % interval of order statistics"
        )
    else:
        effect = statistics.mean(x)
        size, improvement = statistics.effect_size(x), statistics.probability_of_improvement(x)
        patterns = f"all 2^{seeds}" if seeds <= statistics.EXACT else f"{statistics.PATTERNS:,} random"
        how = (
            f"one-sided sign-flip test{'s' * (number > 1)} by seed ({patterns} patterns) and {100 * level:.0f} % BCa "
            "bootstrap interval, expanded for few seeds"
        )
    test, centre = f"{terms[0].shown}: {how}", "median" if bounded else "mean"
    return [
        Draft(claim, seeds, test, fault=fault, centre=centre)
        if fault
        else Draft(
            claim,
            seeds,
            test,
            effect=float(effect[i]),
            low=float(low[i]),
            high=float(high[i]),
            supports=float(supports[i]),
            refutes=float(refutes[i]),
            inside=bool((near[i] > 0).all()),
            outside=bool((far[i] < 0).any()),
            effect_size=float(size[i]),
            improvement=float(improvement[i]),
            edge=_edge(terms[i], [(level, low[i], high[i]) for level, low, high in ends]),
            centre=centre,
        )
        for i, fault in enumerate(faults)
    ]


def answers(claim: Claim, arms: Arms) -> tuple[Answer, ...]:
    """The table that answers a question: mean and 95 % BCa interval of each arm, a reason where there is no mean.

    A vector metric gives lists, an entry a component; None stands for what is not finite.
    """
    table = []
    for arm in arms:
        values = _metric(claim, arms, arm, claim.metric)
        broken = int(_broken(values).sum())
        components = np.moveaxis(values, 0, -1)
        low, high = statistics.interval(components, LEVEL)
        with np.errstate(invalid="ignore"):
            mean = statistics.mean(components)
        reason = f"{broken} of {len(values)} seeds not finite" if broken else ""
        ends = (_or_none(ends.tolist()) for ends in (mean, low, high))
        table.append(Answer(arm, *ends, seeds=len(values), reason=reason))
    return tuple(table)


def effects(claim: Claim, arms: Arms) -> Floats:
    """The effect of each seed, whose mean (for bounds: median) the verdict reports."""
    return _terms(claim, arms).x


def measure(claim: Claim, arms: Arms) -> Measured:
    """The numbers behind a claim (not a question), for a picture and a line of the board."""
    terms = _terms(claim, arms)
    against = np.min(np.where(np.isfinite(terms.sides), terms.sides, -np.inf), axis=0)
    return Measured(
        effects=tuple(terms.x.tolist()),
        worst=int(np.argmin(against)),
        method_mean=_mean(claim, arms, claim.method),
        baseline_mean=_mean(claim, arms, claim.baseline),
        trivial_mean=_mean(claim, arms, claim.trivial),
        axis=terms.axis,
        lines=tuple(terms.lines),
        holds=terms.holds,
    )


def _mean(claim: Claim, arms: Arms, arm: str) -> float:
    """The mean of an arm's metric; NaN where there is no such arm, or one seed gives a curve."""
    values = np.asarray(arms.get(arm, {}).get(claim.metric, ()), np.float64)
    return float(values.mean()) if values.ndim == 1 and values.size else math.nan


class _Terms(NamedTuple):
    """A claim in numbers, and how it is drawn.

    x, sides: by seed. edges: what lies at each side's 0. shown: the hypothesis in symbols.
    axis: what ``x`` is. lines: (value, words) where the verdict turns. holds: the means for which the claim is right.
    """

    x: Floats
    sides: list[Floats]
    edges: list[str]
    shown: str
    axis: str
    lines: list[tuple[float, str]]
    holds: tuple[float, float]


def _terms(claim: Claim, arms: Arms) -> _Terms:
    if claim.is_question:
        raise ValueError(f"Claim {claim.name!r} is a question and gets no verdict; use answers().")
    if claim.relative and claim.kind not in ("better", "equal"):
        raise ValueError(
            f"Claim {claim.name!r}.relative must be False for kind {claim.kind!r}, which has no baseline; got True."
        )
    with np.errstate(over="ignore", invalid="ignore"):  # _fault() finds what is not finite and says so
        if claim.kind in ("better", "equal"):
            return _compared(claim, arms)
        name = f"{claim.metric} of {claim.method}"
        if claim.kind == "bound":
            axis = f"{_words(claim.metric)}{_unit(claim)}, {claim.method}"
            return _bounded(claim, _scalar(claim, arms, claim.method), name, axis)
        x, name = _slopes(claim, arms), f"slope of {name} against {claim.against}"
        axis = f"slope of {_words(claim.metric)} against {_words(claim.against)}{_unit(claim)}, {claim.method}"
        if claim.at_least is not None or claim.at_most is not None:
            return _bounded(claim, x, name, axis)
        if claim.better == "lower":
            x, name, axis = -x, f"-({name})", f"minus the {axis}"
        shown = f"{name} > {claim.margin:.3g}"
        lines, holds = _beyond_margin(claim.margin)
        return _Terms(x, [x - claim.margin], [_beyond(claim)], shown, axis, lines, holds)


def _compared(claim: Claim, arms: Arms) -> _Terms:
    method, baseline = _scalar(claim, arms, claim.method), _scalar(claim, arms, claim.baseline)
    if method.shape != baseline.shape:
        raise ValueError(
            f"Claim {claim.name!r} is paired by seed; arm {claim.method!r} has {len(method)} seeds and "
            f"{claim.baseline!r} has {len(baseline)}."
        )
    x = baseline - method if claim.better == "lower" else method - baseline
    first, second = (claim.baseline, claim.method) if claim.better == "lower" else (claim.method, claim.baseline)
    shown = f"{claim.metric} of {first} - {claim.metric} of {second}"
    margin = np.full_like(x, claim.margin)
    if claim.relative:
        # m_i = share · b_i, up to sign, has the mean share · |b̄|. The number share · |b̄| itself would be taken as
        # known though it is measured on the same seeds, and the claim supported too often.
        margin = claim.margin * np.copysign(1.0, baseline.mean()) * baseline
    mean_margin = float(margin.mean())
    axis = f"{_words(claim.metric)}{_unit(claim)}: {first} − {second}"
    if claim.kind == "equal":
        edges, shown = [f"the margin -{_size(claim)}", _beyond(claim)], f"|{shown}| < {_size(claim)}"
        holds = (-mean_margin, mean_margin)
        lines = [(-mean_margin, "margin"), (mean_margin, "margin")]
        return _Terms(x, [x + margin, margin - x], edges, shown, axis, lines, holds)
    lines, holds = _beyond_margin(mean_margin)
    return _Terms(x, [x - margin], [_beyond(claim)], f"{shown} > {_size(claim)}", axis, lines, holds)


def _beyond_margin(margin: float) -> tuple[list[tuple[float, str]], tuple[float, float]]:
    return [(0.0, "no effect")] + ([(margin, "margin")] if margin else []), (margin, math.inf)


def _bounded(claim: Claim, x: Floats, name: str, axis: str) -> _Terms:
    sides, edges, shown, lines = [], [], name, []
    low, high = -math.inf, math.inf
    if claim.at_least is not None:
        low = claim.at_least
        sides.append(x - low)
        edges.append(f"the bound {low:.3g}")
        lines.append((low, "at least"))
        shown = f"{low:.3g} < {shown}"
    if claim.at_most is not None:
        high = claim.at_most
        sides.append(high - x)
        edges.append(f"the bound {high:.3g}")
        lines.append((high, "at most"))
        shown = f"{shown} < {high:.3g}"
    return _Terms(x, sides, edges, shown, axis, lines, (low, high))


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def _unit(claim: Claim) -> str:
    return f" ({claim.unit})" if claim.unit else ""


def _size(claim: Claim) -> str:
    return f"{claim.margin:.3g}" + f" |{claim.metric} of {claim.baseline}|" * claim.relative


def _beyond(claim: Claim) -> str:
    return f"the margin {_size(claim)}" if claim.margin else "0"


def _metric(claim: Claim, arms: Arms, arm: str, metric: str) -> Floats:
    if arm not in arms:
        raise ValueError(f"Claim {claim.name!r} needs the arm {arm!r}; there are: {', '.join(arms) or 'none'}.")
    if metric not in arms[arm]:
        there = ", ".join(sorted(arms[arm])) or "none"
        raise ValueError(f"Claim {claim.name!r} needs the metric {metric!r}; arm {arm!r} has: {there}.")
    values = np.asarray(arms[arm][metric], np.float64)
    if values.ndim < 1 or len(values) < 1:
        raise ValueError(
            f"Claim {claim.name!r}: metric {metric!r} of arm {arm!r} must have at least 1 seed on its first axis; "
            f"got shape {values.shape}."
        )
    return values


def _scalar(claim: Claim, arms: Arms, arm: str) -> Floats:
    values = _metric(claim, arms, arm, claim.metric)
    if values.ndim != 1:
        raise ValueError(
            f"Claim {claim.name!r} of kind {claim.kind!r} needs one number a seed; metric {claim.metric!r} of arm "
            f"{arm!r} has shape {values.shape}, seeds first."
        )
    return values


def _slopes(claim: Claim, arms: Arms) -> Floats:
    y, x = (_metric(claim, arms, claim.method, metric) for metric in (claim.metric, claim.against))
    if y.ndim != 2 or y.shape != x.shape or y.shape[1] < 2:
        raise ValueError(
            f"Claim {claim.name!r} of kind 'trend' needs two vectors of one length, at least 2, a seed; in arm "
            f"{claim.method!r} metric {claim.metric!r} has shape {y.shape} and {claim.against!r} has {x.shape}."
        )
    return statistics.slopes(y, x)


def _broken(values: Floats) -> Any:
    """Which seeds have an entry that is not finite."""
    return ~np.isfinite(values.reshape(len(values), -1)).all(-1)


def _fault(claim: Claim, arms: Arms, terms: _Terms) -> str:
    """Why nothing can be decided. A seed that is not finite is never dropped: it may be the method's own failure."""
    faults = []
    metrics = [claim.metric, claim.against] if claim.kind == "trend" else [claim.metric]
    for arm in [claim.method, claim.baseline] if claim.kind in ("better", "equal") else [claim.method]:
        broken = np.any([_broken(_metric(claim, arms, arm, metric)) for metric in metrics], axis=0)
        if broken.any():
            faults.append(f"{broken.sum()} of {len(broken)} seeds not finite in arm {arm}")
    undefined = _broken(np.stack([terms.x, *terms.sides], -1))
    if undefined.any() and not faults:
        what = f"slope against {claim.against}" if claim.kind == "trend" else "effect"
        faults.append(f"the {what} is not finite in {undefined.sum()} of {len(undefined)} seeds")
    return "; ".join(faults)


def _edge(terms: _Terms, ends: list[tuple[float, Floats, Floats]]) -> str:
    """What the intervals of the sides include, each given by its level and its ends."""
    for edge, side in zip(terms.edges, terms.sides, strict=True):
        if not side.any():
            return f"every seed lies exactly at {edge}, neither beyond nor short of it"
    for level, lows, highs in ends:
        crossed = [edge for edge, low, high in zip(terms.edges, lows, highs, strict=True) if low <= 0 <= high]
        if crossed:
            return f"the {100 * level:.0f} % interval includes {' and '.join(crossed)}"
    return ""


def _or_none(values: Any) -> Any:
    """For json: nested lists, None where a number is not finite."""
    if isinstance(values, list):
        return [_or_none(value) for value in values]
    return values if math.isfinite(values) else None
