"""What every estimator of confidence intervals promises."""

import math
import warnings
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np

from laureate.testing._checks import Check
from laureate.testing._estimators import (
    LOADED,
    clone,
    every_setting_is_used,
    refuses,
    settings_stay,
    spoiled,
    with_fitted,
)

__all__ = ["check_confidence_intervals"]

# Scores far from each other, so that bins of any usual width hold one alone, and how often each is right.
SCORES, RIGHT = np.array([0.05, 0.35, 0.65, 0.95]), np.array([0.2, 0.5, 0.7, 0.9])
ROWS, GROUPS = 160, 6


def check_confidence_intervals(
    estimator: Any,
    *,
    groups: bool = False,
    num_repeats: int = 200,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``fit(score, correct)`` and ``interval(score) -> (lo, hi)`` of an estimator with a PAC guarantee.

    It is in scikit-learn's manner and has the setting ``delta``, the share of calibration sets with which any of its
    intervals may be wrong; see ``laureate.uncertainty.PACConfidence``. Rows are made here: four scores, each right
    with a known probability; nothing is compiled.

    estimator: not fitted.
    groups: whether ``fit`` and ``interval`` also take a value for each row, and promise for all groups at once.
    num_repeats: how many calibration sets are drawn to count how often any interval is wrong.
    unused: names of numbers among the settings that rightly change no interval.
    skip: properties to leave out: those in the list that is returned.

    Properties: intervals are [lo, hi] in [0, 1], one a row; all of them hold what they promise at once in a share
    1 − delta of calibration sets, within four standard errors, without groups and with them; what ends in ``_`` can be
    saved as arrays and is all that is fitted; every number among the settings changes them; a larger delta gives
    narrower intervals, and so do more rows; a row's interval does not depend on the other rows nor on their order, nor
    on the order of the calibration's; scores beyond [0, 1] or not finite, events that are neither 0 nor 1, fewer events
    than scores, a delta that is no share and intervals before ``fit`` are refused with a ValueError; the constructor
    and ``fit`` leave the settings alone, ``fit`` returns the estimator, and a clone is not fitted.
    """
    check = Check(type(estimator).__name__, skip)
    delta = estimator.get_params()["delta"]
    score, right, _ = _rows(np.random.default_rng(0), 4 * ROWS)

    def fit(*given, **settings):
        """A fitted clone, whatever its ``fit`` returns."""
        made = clone(check, estimator).set_params(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are few rows
            made.fit(*given)
        return made

    def width(of):
        lo, hi = of.interval(SCORES)
        return np.asarray(hi) - np.asarray(lo)

    fitted = clone(check, estimator)
    returned = fitted.fit(score, right)
    lo, hi = (np.asarray(end) for end in fitted.interval(score))
    if check.wants("intervals"):
        sound = lo.shape == hi.shape == score.shape and np.all((lo >= 0) & (lo <= hi) & (hi <= 1))
        got = f"{list(lo.shape)} and {list(hi.shape)}, from {lo.min():g} to {hi.max():g}"
        check.require(sound, f"0 <= lo <= hi <= 1, {len(score)} of each", got, "Clip to [0, 1].")
    if check.wants("saved and loaded"):
        loaded = with_fitted(check, clone(check, estimator), fitted).interval(score)
        same = [np.asarray(end) for end in loaded]
        check.bits(same, [lo, hi], "the same intervals of a loaded estimator", LOADED)
    if check.wants("a larger delta gives narrower intervals"):
        wider = fit(score, right, delta=(1 + delta) / 2).interval(score)
        narrower = np.all((wider[0] >= lo) & (wider[1] <= hi)) and np.any(wider[1] - wider[0] < hi - lo)
        check.require(
            narrower, "intervals within those of a smaller delta", "others", "Is delta used, and not 1 − delta?"
        )
    every_setting_is_used(check, estimator, lambda one: _ends(one, score, right), unused)
    if check.wants("more rows give narrower intervals"):
        thrice = fit(np.tile(score, 3), np.tile(right, 3))
        got = f"widths {width(thrice)} after {width(fitted)}"
        check.require(np.all(width(thrice) < width(fitted)), "narrower ones", got, "Do counts reach the bound?")
    order = np.random.default_rng(1).permutation(len(score))
    if check.wants("rows do not see each other"):
        alone = fitted.interval(score[:3])
        check.bits(
            [np.asarray(end) for end in alone], [lo[:3], hi[:3]], "the same intervals alone", "Judge rows alone."
        )
        mixed = fitted.interval(score[order])
        same = [np.asarray(end) for end in mixed]
        check.bits(same, [lo[order], hi[order]], "the same intervals in another order", "Use no row's number.")
    if check.wants("order of the calibration rows"):
        again = fit(score[order], right[order]).interval(score)
        check.bits([np.asarray(end) for end in again], [lo, hi], "the same intervals", "Count; use no row's number.")
    refuses(check, _wrong(clone(check, estimator), fitted, fit, score, right))
    settings_stay(check, estimator, fitted, returned)
    if check.wants("coverage"):
        _coverage(check, fit, delta, num_repeats, grouped=False)
    if groups and check.wants("coverage of groups"):
        _coverage(check, fit, delta, num_repeats, grouped=True)
    return check.finish()


def _ends(fresh: Any, score: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are few rows
        fresh.fit(score, right)
    return [np.asarray(end) for end in fresh.interval(SCORES)]


def _rows(generator: np.random.Generator, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, whether each was right, and groups that matter for neither."""
    place = generator.integers(len(SCORES), size=number)
    return SCORES[place], generator.uniform(size=number) < RIGHT[place], generator.integers(GROUPS, size=number)


def _coverage(check: Check, fit: Callable, delta: float, num_repeats: int, grouped: bool) -> None:
    generator, missed = np.random.default_rng(2), 0
    asked = (np.tile(SCORES, GROUPS), np.repeat(np.arange(GROUPS), len(SCORES))) if grouped else (SCORES,)
    truth = np.resize(RIGHT, len(asked[0]))
    for _ in range(num_repeats):
        score, right, group = _rows(generator, ROWS * GROUPS if grouped else ROWS)
        group[:GROUPS] = np.arange(GROUPS)  # so that all are there
        lo, hi = fit(score, right, *(group,) * grouped).interval(*asked)
        missed += bool(np.any((lo > truth) | (hi < truth)))
    most = delta + 4 * math.sqrt(delta * (1 - delta) / num_repeats)
    expected = f"some interval to be wrong in at most {most:.3f} of the calibration sets"
    remedy = "All intervals share delta: each has delta over their number, and half of it at each end."
    check.require(missed <= most * num_repeats, expected, f"{missed / num_repeats:.3f} of {num_repeats}", remedy)


def _wrong(
    fresh: Any, fitted: Any, fit: Callable, score: np.ndarray, right: np.ndarray
) -> dict[str, Callable[[], Any]]:
    """Calls that must not go through, by what is wrong with them."""
    events = right.astype(float)
    calls = {
        "intervals before fit": partial(fresh.interval, score),
        "fewer events than scores": partial(fit, score, right[1:]),
        "an event of 2": partial(fit, score, spoiled(events, 3, 2)),
        "an event of nan": partial(fit, score, spoiled(events, 3, np.nan)),
    }
    for value in (-0.1, 1.1, np.nan, np.inf):
        rows = spoiled(score, 3, value)
        calls[f"a calibration score of {value:g}"] = partial(fit, rows, right)
        calls[f"a score of {value:g}"] = partial(fitted.interval, rows)
    for delta in (-0.1, 0.0, 1.0, 1.1):
        calls[f"a delta of {delta:g}"] = partial(fit, score, right, delta=delta)
    return calls
