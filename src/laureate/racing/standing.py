"""From what was measured to a ranked table: intervals over seeds, which differences are real, the Pareto set.

Pure functions of numbers. Every pair of entrants is compared by the lab's exact sign-flip test on differences paired by
seed, two-sided; Holm over *all* pairs, for who is first is chosen by the same numbers, and testing him alone against
the others would find a winner among equals too often. A difference is real if p < 0.05 then and its interval agrees.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laureate.lab.judging import statistics
from laureate.pages.wording import number
from laureate.racing.results import Metric, Pair, Standing

__all__ = [
    "ALPHA",
    "Measured",
    "compare",
    "compared",
    "decidable",
    "enough_seeds",
    "envelope",
    "pareto",
    "stand",
]

Floats = NDArray[np.float64]
ALPHA = 0.05
LEAST = 1e-12  # what a metric that is compared by factors is at least


@dataclass(frozen=True)
class Measured:
    """An entrant's runs, a row a seed and a column a point of its curve; NaN in ``cost`` beyond where a run came.

    quality: of the metric that decides, as the metric counts it.
    """

    cost: Floats
    seconds: Floats
    quality: Floats

    @property
    def last(self) -> NDArray[np.int64]:
        """The last point that each seed came to; -1 for none."""
        return np.isfinite(self.cost).sum(axis=1) - 1

    def final(self, what: Floats) -> Floats:
        """One number a seed: at the last point it came to."""
        at = np.take_along_axis(what, np.maximum(self.last, 0)[:, None], axis=1)[:, 0]
        return np.where(self.last < 0, np.nan, at)


def compared(values: Any, metric: Metric) -> Floats:
    """Values as they are compared: themselves, or their logarithms."""
    numbers = np.asarray(values, np.float64)
    return np.log(np.maximum(numbers, LEAST)) if metric.log else numbers


def stand(scores: Mapping[str, Sequence[float] | Floats], metric: Metric) -> Standing:
    """The standing by one number a seed and entrant; all have the same seeds in the same order.

    >>> found = stand({"a": [1.0, 1.1, 0.9], "b": [2.0, float("nan"), 1.9]}, Metric("loss", "a loss"))
    >>> found.order, dict(found.diverged)
    (('a',), {'b': 1})
    """
    values = {name: np.asarray(one, np.float64) for name, one in scores.items()}
    diverged = {name: int((~np.isfinite(one)).sum()) for name, one in values.items() if not np.isfinite(one).all()}
    sound = {name: one for name, one in values.items() if name not in diverged}
    shown = np.exp if metric.log else np.asarray
    mean = {name: float(shown(statistics.mean(compared(one, metric)))) for name, one in sound.items()}
    ends = {name: shown(statistics.interval(compared(one, metric))) for name, one in sound.items()}
    order = sorted(sound, key=lambda name: -metric.sign * mean[name])
    failing = sorted(diverged, key=lambda name: diverged[name])
    for name in failing:
        finite = values[name][np.isfinite(values[name])]
        mean[name] = float(shown(compared(finite, metric).mean())) if len(finite) else math.nan
        ends[name] = np.array([-math.inf, math.inf])
    return Standing(
        tuple(order),
        {name: diverged[name] for name in failing},
        mean,
        {name: float(end[0]) for name, end in ends.items()},
        {name: float(end[1]) for name, end in ends.items()},
        compare({name: sound[name] for name in order}, metric),
        max(map(len, values.values()), default=0),
    )


def compare(scores: Mapping[str, Floats], metric: Metric) -> tuple[Pair, ...]:
    """Every pair, the better of the two by its mean first; Holm over all of them."""
    found, raw = [], []
    for first, second in itertools.combinations(scores, 2):
        gain = metric.sign * (compared(scores[first], metric) - compared(scores[second], metric))
        up, down = (float(statistics.sign_flip(gain, side)) for side in ("greater", "less"))
        raw.append(min(1.0, 2 * min(up, down)))
        low, high = statistics.interval(gain)
        found.append((first, second, float(statistics.mean(gain)), float(low), float(high), not gain.any()))
    pairs = []
    for (first, second, mean, low, high, same), p, adjusted in zip(found, raw, statistics.holm(raw), strict=True):
        apart = low > 0 or high < 0
        real = bool(adjusted < ALPHA and apart and not same)
        words = _in_words(mean, low, high, metric)
        pairs.append(Pair(first, second, mean, low, high, p, float(adjusted), real, same, *words))
    return tuple(pairs)


def _in_words(mean: float, low: float, high: float, metric: Metric) -> tuple[str, str]:
    """By how much, and the interval: factors where that is what is compared."""
    values = (mean, low, high)
    if metric.log:
        values = tuple(math.exp(min(value, 700.0)) for value in values)
    by, *ends = map(number, values)
    return f"{by} times" if metric.log else by, f"[{', '.join(ends)}]"


def decidable(standing: Standing) -> bool:
    """Whether as many seeds can call any difference real, after Holm over all pairs."""
    seeds, pairs = standing.seeds, max(1, len(standing.pairs))
    return seeds == 0 or 2 * statistics.smallest_p(seeds) * pairs < ALPHA


def enough_seeds(entrants: int, least: int = 10) -> int:
    """Seeds with which a difference that shows in every seed can be called real, after Holm over all pairs; one more.

    n seeds give at best a two-sided p of 2^{1 − n}.

    >>> enough_seeds(2), enough_seeds(8)
    (10, 12)
    """
    pairs = max(1, entrants * (entrants - 1) // 2)
    return max(least, math.floor(math.log2(2 * pairs / ALPHA)) + 2)


def at_seconds(measured: Mapping[str, Measured], moment: float) -> dict[str, Floats]:
    """One number a seed and entrant: the quality at that moment, between two points in proportion to log time.

    An entrant's clock is the median over its seeds, so that what else the machine did in one of them moves nothing.
    NaN where it had nothing yet.
    """
    found = {}
    for name, one in measured.items():
        points = int(one.last.min()) + 1
        clock = np.median(one.seconds[:, :points], axis=0)
        quality = one.quality[:, :points]
        if points < 1 or clock[0] > moment * (1 + 1e-9):
            found[name] = np.full(len(quality), np.nan)
            continue
        clock = np.maximum.accumulate(np.maximum(clock, 1e-9))
        after = int(np.searchsorted(clock, moment * (1 + 1e-9), side="right"))
        if after >= points:
            found[name] = quality[:, -1]
            continue
        span = math.log(clock[after] / clock[after - 1])
        share = math.log(moment / clock[after - 1]) / span if span > 0 else 0.0
        found[name] = (1 - share) * quality[:, after - 1] + share * quality[:, after]
    return found


def pareto(seconds: Mapping[str, float], quality: Mapping[str, float], metric: Metric) -> tuple[str, ...]:
    """Those of whom nobody is both at least as fast and at least as good, and one of the two more; fastest first.

    >>> pareto({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 5.0, "b": 3.0, "c": 4.0}, Metric("loss", "a loss"))
    ('a', 'b')
    """

    def beaten(name: str) -> bool:
        mine = (-seconds[name], metric.sign * quality[name])
        return any(
            (-seconds[other], metric.sign * quality[other]) != mine
            and -seconds[other] >= mine[0]
            and metric.sign * quality[other] >= mine[1]
            for other in quality
        )

    return tuple(sorted((name for name in quality if not beaten(name)), key=lambda name: seconds[name]))


def envelope(measured: Mapping[str, Measured], targets: Sequence[int], metric: Metric) -> list[tuple[int, str]]:
    """Who has the best mean at each budget on the way; seeds that did not come so far, or diverged, leave one out."""
    found = []
    for i, target in enumerate(targets):
        there = {
            name: metric.sign * float(compared(one.quality[:, i], metric).mean())
            for name, one in measured.items()
            if i < one.quality.shape[1] and np.isfinite(one.cost[:, i]).all() and np.isfinite(one.quality[:, i]).all()
        }
        if there:
            found.append((int(target), max(there, key=lambda name: there[name])))
    return found
