"""From evidence to verdicts: supported, refuted, inconclusive or not run, each with its reason in words.

A claim says that the centre of each of its sides, mean or median, is above 0 (``laureate.lab.judging.evidence``).

*Supported*: the test rejects "centre <= 0" for every side with p < 0.05 after Holm over the paper's claims, the 95 %
interval of every side lies above 0 (90 % for ``equal``: two one-sided tests), and no guard of the experiment holds it
back (``laureate.lab.judging.guards``). *Refuted*: the same evidence for the opposite, that some side's centre is below
0 (p doubled where there are two sides to choose from; Holm over the opposites), and it is not void: what is no
measurement refutes nothing. Otherwise *inconclusive*.

A claim that was judged before with another number of seeds pays for the look (``laureate.lab.judging.looks``): before
Holm its p-values are multiplied by 10 at the second look, by 30 at the third, and so on.
"""

import math
from collections.abc import Sequence

from laureate.lab.judging import statistics
from laureate.lab.judging.evidence import Draft, draft, simulate
from laureate.lab.judging.looks import price as price_of
from laureate.lab.judging.results import Verdict, Word

__all__ = ["ALPHA", "Draft", "Verdict", "decide", "draft", "simulate"]

ALPHA = 0.05


def decide(drafts: Sequence[Draft], family: int, whose: str = "in the paper") -> list[Verdict]:
    """The verdicts, with Holm in each direction over the ``family`` claims of the paper; those not given are p = 1.

    whose: where these claims are, in words.
    """
    prices = [price_of(1 + len(d.looks)) for d in drafts]
    supports, refutes = (
        statistics.holm([min(1.0, m * p) for m, p in zip(prices, side, strict=True)], family).tolist()
        for side in ([d.supports for d in drafts], [d.refutes for d in drafts])
    )
    verdicts = []
    for d, p, opposite in zip(drafts, supports, refutes, strict=True):
        word, reason = _decide(d, p, opposite, family, whose)
        verdicts.append(
            Verdict(
                verdict=word,
                reason=reason,
                seeds=d.seeds,
                effect=d.effect,
                low=d.low,
                high=d.high,
                p=p,
                p_raw=d.supports,
                effect_size=d.effect_size,
                improvement=d.improvement,
                family=family,
                test=d.test,
                guard=d.guard,
                centre=d.centre,
                looks=d.looks,
            )
        )
    return verdicts


def _decide(d: Draft, p: float, opposite: float, family: int, whose: str) -> tuple[Word, str]:
    after = f"after Holm over {family} claims" if family > 1 else f"with one claim {whose}"
    price = price_of(1 + len(d.looks))
    if price > 1:
        after += f", times {price} for look {1 + len(d.looks)}"
    if d.fault:
        return "inconclusive", d.fault
    if d.inside and p < ALPHA and d.guard:
        return "inconclusive", f"held back: {d.guard}"
    if d.inside and p < ALPHA:
        return "supported", f"the interval lies on the claim's side, p = {p:.2g} {after}"
    if d.outside and opposite < ALPHA and d.void:
        return "inconclusive", f"held back: {d.void}"
    if d.outside and opposite < ALPHA:
        return "refuted", f"the interval lies on the other side, p = {opposite:.2g} of the opposite {after}"
    reasons = [] if d.inside or d.outside else [d.edge]
    least = 0.5**d.seeds if d.centre == "median" else statistics.smallest_p(d.seeds)
    if least * family * price >= ALPHA:
        enough = math.floor(math.log2(family * price / ALPHA)) + 1
        needed = f"it takes at least {enough} with {family} claim{'s' * (family > 1)} {whose}"
        if d.seeds >= enough:  # above 30 seeds patterns are drawn, and their p cannot be smaller
            needed = f"ask for {statistics.EXACT}, of which all sign patterns are counted"
        reasons.append(
            f"needs {'more' if d.seeds < enough else 'other'} seeds: the smallest p that {d.seeds} seeds can give is "
            f"{least:.3g} before Holm{f' and the price of look {1 + len(d.looks)}' * (price > 1)}; {needed}"
        )
    elif d.inside or d.outside:
        reasons.append(f"p = {p if d.inside else opposite:.2g} {after}")
    return "inconclusive", "; ".join(reasons)
