"""What keeps a claim from a verdict although its numbers speak for one.

A verdict compares numbers; it does not see that an arm broke down and was clipped, that a rival's best learning rate
lies beyond the grid it was given, or that every method is worse than doing nothing. These are asked here, apart from
the test: ``held_back`` says in words what was found, and a claim with such a finding is never "supported".

What is no measurement decides nothing, so such a claim is not "refuted" either: a clip at which an arm lies (what is
not finite often ends there), a constant, a number of the guard that is not finite, too few effective samples; nor is
one whose own method stands at the edge of its grid, for it may do better beyond. That a rival stands there, or that
the method does not beat doing nothing, speaks against the claim alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from laureate.lab.claim import Claim, Guard
from laureate.lab.judging import statistics

__all__ = ["Finding", "applies", "at_limit", "held_back"]

Arms = Mapping[str, Mapping[str, Any]]

LEVEL = 0.95
# How near to a limit counts as at it, relative to the larger limit: numbers come in single precision.
TOLERANCE = 1e-5


class Finding(NamedTuple):
    """Why a claim may not be called supported, in words; ``void``: nor refuted."""

    words: str
    void: bool


def held_back(
    claim: Claim, arms: Arms, effects: Any, guards: Iterable[Guard] = (), interval: tuple[float, float] | None = None
) -> list[Finding]:
    """Why the claim may not be called supported, nor perhaps refuted; empty where nothing was found.

    arms: arm -> metric -> array, seeds first. effects: the claim's effect of each seed. guards: of its experiment, with
    their grids filled in (``Guard.at``). interval: of the effect.
    """
    found = [
        Finding(_constant(claim, np.asarray(effects, np.float64), interval), True),
        Finding(_trivial(claim, arms), False),
    ]
    for guard in guards:
        if applies(guard, claim):
            mine = [arm for arm in (claim.method, claim.baseline) if arm and (not guard.arms or arm in guard.arms)]
            reporting = [arm for arm in mine if guard.metric in arms.get(arm, {})]
            for arm in reporting:
                words, unmeasured = _broken(guard, arm, _values(guard, arms, arm))
                found.append(Finding(words, unmeasured or arm == claim.method))
            if mine and not reporting:
                words = f"{guard.metric}, which a guard asks for, is not reported by {' or '.join(mine)}"
                found.append(Finding(words, guard.kind != "grid"))
    return [finding for finding in found if finding.words]


def applies(guard: Guard, claim: Claim) -> bool:
    """Whether a claim rests on what the guard watches: named by it, or, for a limit, decided by that metric."""
    if guard.claims:
        return claim.name in guard.claims
    return guard.kind != "limit" or guard.metric in (claim.metric, claim.against)


def at_limit(guard: Guard, arm: str, arms: Arms) -> str:
    """That an arm lies at the limit of a guard, in words; empty where it does not, or is not the guard's."""
    if (guard.arms and arm not in guard.arms) or guard.metric not in arms.get(arm, {}):
        return ""
    return _broken(guard, arm, _values(guard, arms, arm))[0]


def _values(guard: Guard, arms: Arms, arm: str) -> Any:
    """[seeds, components]"""
    values = np.asarray(arms[arm][guard.metric], np.float64)
    return values.reshape(len(values), -1)


def _broken(guard: Guard, arm: str, values: Any) -> tuple[str, bool]:
    """What was found, and whether the arm's number is then no measurement at all; ("", False) where nothing was."""
    seeds, what = len(values), f"{guard.metric} of {arm}"
    if lost := int(np.sum(~np.isfinite(values).all(axis=1))):
        return f"{what} is not finite in {lost} of {seeds} seeds", True
    if guard.kind == "effective":
        worst = values.min()
        short = guard.low is not None and not worst >= guard.low
        words = f"{what} is {worst:.3g} in its worst seed, below the {guard.low:.3g} declared"
        return (words, True) if short else ("", False)
    size = TOLERANCE * max(abs(end) for end in (guard.low, guard.high) if end is not None)
    for end, at in (
        (guard.low, guard.low is not None and values <= guard.low + size),
        (guard.high, guard.high is not None and values >= guard.high - size),
    ):
        if end is None:
            continue
        if guard.kind == "limit" and np.any(at):
            return f"{what} lies at its limit {end:.3g} in {np.sum(np.any(at, axis=1))} of {seeds} seeds", True
        often = np.max(np.sum(at, axis=0))
        if guard.kind == "grid" and 2 * often >= seeds:
            edge = "lowest" if end == guard.low else "highest"
            return f"{what} is the {edge} of its grid, {end:.3g}, in {often} of {seeds} seeds", False
    return "", False


def _constant(claim: Claim, effects: Any, interval: tuple[float, float] | None) -> str:
    """A measured number differs from seed to seed. One that does not is a clip, a floor or a ceiling.

    So is one that so many seeds share that the interval of their median has no width. Checks are left out: what holds
    by mathematics may well be the same number in every seed.
    """
    if claim.role == "check" or len(effects) < 2 or not np.isfinite(effects).all():
        return ""
    if np.ptp(effects) > 1e-9 * np.abs(effects).max():
        low, high = interval or (0.0, 1.0)
        if low < high:
            return ""
        same = np.sum(effects == low)
        return f"{same} of {len(effects)} seeds give the same number, {low:.3g}: a limit that was not declared"
    return f"every seed gives the same number, {effects[0]:.3g}: a constant, or a limit that was not declared"


def _trivial(claim: Claim, arms: Arms) -> str:
    """Whether the method beats the arm that does nothing clever, by the same test and without a margin."""
    if not claim.trivial or claim.trivial == claim.baseline:
        return ""
    if claim.metric not in arms.get(claim.trivial, {}):
        there = ", ".join(sorted(arms.get(claim.trivial, {}))) or "none"
        raise ValueError(f"Claim {claim.name!r} needs the metric {claim.metric!r}; arm {claim.trivial!r} has: {there}.")
    method, trivial = (np.asarray(arms[arm][claim.metric], np.float64) for arm in (claim.method, claim.trivial))
    gain = trivial - method if claim.direction == "lower" else method - trivial
    if not np.isfinite(gain).all():
        return f"{claim.method} cannot be compared with the trivial {claim.trivial}: a seed is not finite"
    p, (low, high) = statistics.sign_flip(gain), statistics.interval(gain, LEVEL)
    if p < 1 - LEVEL and low > 0:
        return ""
    return (
        f"{claim.method} does not beat the trivial {claim.trivial} "
        f"(gain {statistics.mean(gain):.3g}, 95 % interval {low:.3g} to {high:.3g}, p = {p:.2g})"
    )
