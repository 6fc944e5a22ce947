"""What every estimator of prediction sets promises."""

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from laureate.testing._checks import Check, keys_used_once
from laureate.testing._estimators import (
    LOADED,
    clone,
    every_setting_is_used,
    refuses,
    settings_stay,
    spoiled,
    with_fitted,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_prediction_sets"]

ROWS, CLASSES = 200, 5


def check_prediction_sets(
    estimator: Any,
    *,
    proba: bool = False,
    draws: bool = True,
    settled: Mapping[str, Any] | None = None,
    exact: bool = True,
    num_repeats: int = 30,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``fit(key, rows, y)`` and ``predict_set(key, rows) -> bool [n, K]`` of an estimator of prediction sets.

    It is in scikit-learn's manner (``get_params``, ``set_params``, fitted names end in ``_``) and has the setting
    ``alpha``, the share of sets that may miss; see ``laureate.uncertainty.AbstractSets``. Rows are made here, with
    labels drawn from their own probabilities; nothing is compiled.

    estimator: not fitted.
    proba: whether rows are probabilities; otherwise they are logits.
    draws: whether a set depends on the key of ``predict_set``.
    settled: settings with which it does not, so that rows can be compared; ``randomized=False`` where there is one.
    exact: whether sets cover no more than they promise either; not so where they are rounded up.
    num_repeats: how many calibration sets are drawn to count how often the label is in its set.
    unused: names of numbers among the settings that rightly change no set.
    skip: properties to leave out: those in the list that is returned.

    Properties: sets are bool, a row and a class each; they hold the label as often as promised, within four standard
    errors of the count; a larger alpha gives subsets; every number among the settings changes the sets; a row's set
    does not depend on the other rows nor on its place; the same keys give the same bits, another key other sets, and no
    key is used twice; what ends in ``_`` can be saved as arrays and is all that is fitted; rows that are not finite,
    labels that are no class, fewer labels than rows, another number of classes, an alpha that is no share and sets
    before ``fit`` are refused with a ValueError; the constructor and ``fit`` leave the settings alone, ``fit`` returns
    the estimator, and a clone is not fitted.
    """
    check = Check(type(estimator).__name__, skip)
    keys = iter(jax.random.split(jax.random.key(0), 2 * num_repeats + 4))
    calm = {"randomized": False} if settled is None and "randomized" in estimator.get_params() else dict(settled or {})
    (x, y), (new, _) = (_rows(np.random.default_rng(seed), proba) for seed in (0, 1))
    fit_key, set_key, other_key = (next(keys) for _ in range(3))

    def fit(*given, **settings):
        """A fitted clone, whatever its ``fit`` returns."""
        made = clone(check, estimator).set_params(**settings)
        made.fit(*given)
        return made

    with KeyRecorder() as recorder:
        fitted = clone(check, estimator)
        returned = fitted.fit(fit_key, x, y)
        sets = np.asarray(fitted.predict_set(set_key, new))
        keys_used_once(check, recorder)
    if check.wants("sets"):
        right = sets.shape == (ROWS, CLASSES) and sets.dtype == bool
        check.require(right, f"bool[{ROWS}, {CLASSES}]", f"{sets.dtype}{list(sets.shape)}", "A column a class.")
    if check.wants("same key, same bits"):
        again = fit(fit_key, x, y).predict_set(set_key, new)
        check.bits(np.asarray(again), sets, "the same sets from the same keys", "Draw from the keys alone.")
    if draws and check.wants("another key, other bits"):
        same = np.array_equal(fitted.predict_set(other_key, new), sets)
        check.require(not same, "other sets from another key", "the same", "Is the key used?")
    if check.wants("saved and loaded"):
        loaded = with_fitted(check, clone(check, estimator), fitted)
        check.bits(np.asarray(loaded.predict_set(set_key, new)), sets, "the same sets of a loaded estimator", LOADED)
    if check.wants("a larger alpha gives subsets"):
        alpha = estimator.get_params()["alpha"]
        wider = fit(fit_key, x, y, alpha=min(2 * alpha, (1 + alpha) / 2))
        smaller = np.asarray(wider.predict_set(set_key, new))
        remedy = "Is tau a quantile, with the same draws whatever alpha is? Settings that are tuned for alpha may move."
        check.require(not np.any(smaller & ~sets), "subsets", f"{np.any(smaller & ~sets, axis=1).sum()} others", remedy)
        check.require(np.any(sets & ~smaller), "some smaller sets", "the same", "Is alpha used?")

    def made(one):
        one.fit(fit_key, x, y)
        return np.asarray(one.predict_set(set_key, new))

    every_setting_is_used(check, estimator, made, unused)
    still = fit(fit_key, x, y, **calm)
    alone = np.asarray(still.predict_set(set_key, new))
    if check.wants("rows do not see each other"):
        mixed = np.where(np.arange(ROWS)[:, None] % 2 == 0, new, x)
        found = np.asarray(still.predict_set(set_key, mixed))[::2]
        check.bits(found, alone[::2], "the same sets beside other rows", "Judge every row alone.")
    if check.wants("order of rows"):
        order = np.random.default_rng(2).permutation(ROWS)
        found = np.asarray(still.predict_set(set_key, new[order]))
        check.bits(found, alone[order], "the same sets in another order", "Use no row's number.")
    refuses(check, _wrong(clone(check, estimator), fitted, fit, fit_key, set_key, x, y))
    settings_stay(check, estimator, fitted, returned)
    if check.wants("coverage"):
        _coverage(check, fit, 1 - estimator.get_params()["alpha"], keys, proba, exact, num_repeats)
    return check.finish()


def _rows(generator: np.random.Generator, proba: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a model that is right on average, and labels drawn from what it says: exchangeable."""
    logits = generator.normal(size=(ROWS, CLASSES)) * generator.uniform(0.5, 4.0, size=(ROWS, 1))
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = np.sum(generator.uniform(size=(ROWS, 1)) > np.cumsum(p, axis=1)[:, :-1], axis=1)
    return (p if proba else logits), y


def _coverage(
    check: Check, fit: Callable, wanted: float, keys: Any, proba: bool, exact: bool, num_repeats: int
) -> None:
    hits, seen = 0, np.random.default_rng(3)
    for _ in range(num_repeats):
        (x, y), (new, labels) = (_rows(seen, proba) for _ in range(2))
        sets = np.asarray(fit(next(keys), x, y).predict_set(next(keys), new))
        hits += np.sum(sets[np.arange(ROWS), labels])
    share, fewest = hits / (num_repeats * ROWS), ROWS // 2  # rows that calibrate, where others are tuned on
    # A calibration set's own coverage varies as a Beta variable, and the count beside it as a binomial one.
    error = 4 * math.sqrt(wanted * (1 - wanted) * (1 / fewest + 1 / ROWS) / num_repeats)
    counted = f"{share:.3f} in {num_repeats} times {ROWS} rows"
    remedy = "tau is the ⌈(n + 1)(1 − alpha)⌉-th smallest score of rows that nothing was tuned on."
    check.require(
        share >= wanted - error, f"at least {wanted - error:.3f} of the sets to hold the label", counted, remedy
    )
    if exact:
        most = wanted + 1 / (fewest + 1) + error
        check.require(share <= most, f"at most {most:.3f} of the sets to hold the label", counted, remedy)


def _wrong(
    fresh: Any, fitted: Any, fit: Callable, fit_key: Any, set_key: Any, x: np.ndarray, y: np.ndarray
) -> dict[str, Callable[[], Any]]:
    """Calls that must not go through, by what is wrong with them."""
    fewer = x[:, 1:] / x[:, 1:].sum(axis=1)[:, None]
    calls = {
        "sets before fit": partial(fresh.predict_set, set_key, x),
        "another number of classes": partial(fitted.predict_set, set_key, fewer),
        "fewer labels than rows": partial(fit, fit_key, x, y[1:]),
    }
    for value in (np.nan, np.inf):
        rows = spoiled(x, (3, 1), value)
        calls[f"calibration rows of {value}"] = partial(fit, fit_key, rows, y)
        calls[f"rows of {value}"] = partial(fitted.predict_set, set_key, rows)
    for label in (-1, CLASSES):
        calls[f"the label {label}"] = partial(fit, fit_key, x, spoiled(y, 3, label))
    for alpha in (-0.1, 0.0, 1.0, 1.1):
        calls[f"an alpha of {alpha:g}"] = partial(fit, fit_key, x, y, alpha=alpha)
    return calls
